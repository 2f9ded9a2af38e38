//! Sequences of different lengths in one rectangle.

/// A batch of token sequences, padded on the left so that all end in the last column and decoding goes on there.
///
/// ```text
/// ids [B*W]:   · · 7 8 9        lengths 3 and 5, W = 5
///              1 2 3 4 5        positions of row 0: 0 0 0 1 2
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeftPadded {
    /// `[B*W]`, row by row.
    pub ids: Vec<u32>,
    /// `[B]`: true lengths.
    pub lengths: Vec<usize>,
    /// W: the longest length.
    pub width: usize,
}

impl LeftPadded {
    /// Pads `sequences` with `pad` to the longest. No sequences: an empty rectangle.
    pub fn new(sequences: &[&[u32]], pad: u32) -> Self {
        let lengths: Vec<usize> = sequences.iter().map(|s| s.len()).collect();
        let width = lengths.iter().copied().max().unwrap_or(0);
        let mut ids = Vec::with_capacity(sequences.len() * width);
        for s in sequences {
            ids.extend(std::iter::repeat_n(pad, width - s.len()));
            ids.extend_from_slice(s);
        }
        LeftPadded { ids, lengths, width }
    }

    /// Tokens of row `b`, without padding. Panics if there is no such row.
    pub fn row(&self, b: usize) -> &[u32] {
        &self.ids[(b + 1) * self.width - self.lengths[b]..(b + 1) * self.width]
    }

    /// `[B*W]`: place of each token in its own sequence, 0 on padding. Positions shared by the rows of a batch would make
    /// a token's meaning depend on its neighbours' lengths.
    pub fn positions(&self) -> Vec<u32> {
        self.columns().map(|(column, first)| column.saturating_sub(first) as u32).collect()
    }

    /// Whether the query at column `query` of row `b` may see column `key`: not the future, and no padding. A padding
    /// query sees itself alone, so that its softmax is one of something.
    pub fn sees(&self, b: usize, query: usize, key: usize) -> bool {
        let first = self.width - self.lengths[b];
        key == query || (key >= first && key <= query)
    }

    /// `[B*W*W]` by row, query, key: 0 where [`Self::sees`], −∞ elsewhere; to be added to attention scores.
    pub fn causal_mask(&self) -> Vec<f32> {
        let w = self.width;
        let mut mask = Vec::with_capacity(self.lengths.len() * w * w);
        for b in 0..self.lengths.len() {
            for query in 0..w {
                mask.extend((0..w).map(|key| if self.sees(b, query, key) { 0.0 } else { f32::NEG_INFINITY }));
            }
        }
        mask
    }

    /// Column and first true column of every cell.
    fn columns(&self) -> impl Iterator<Item = (usize, usize)> + '_ {
        self.lengths.iter().flat_map(move |n| (0..self.width).map(move |column| (column, self.width - n)))
    }
}

/// How a completion ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// With an end token, which counts as part of it.
    Stopped,
    /// At the longest allowed length.
    Truncated,
}

/// Length of a completion within `ids`: up to and with the first of the `ends`, else all of it.
///
/// Models have several end tokens; with one of them unknown every completion looks truncated.
pub fn completion(ids: &[u32], ends: &[u32]) -> (usize, Ending) {
    match ids.iter().position(|id| ends.contains(id)) {
        Some(at) => (at + 1, Ending::Stopped),
        None => (ids.len(), Ending::Truncated),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn batch() -> LeftPadded {
        LeftPadded::new(&[&[7, 8, 9], &[1, 2, 3, 4, 5], &[]], 0)
    }

    #[test]
    fn rows_end_in_the_last_column_and_keep_their_own_positions() {
        let b = batch();
        assert_eq!(b.ids, [0, 0, 7, 8, 9, 1, 2, 3, 4, 5, 0, 0, 0, 0, 0]);
        assert_eq!(b.positions(), [0, 0, 0, 1, 2, 0, 1, 2, 3, 4, 0, 0, 0, 0, 0]);
        assert_eq!((b.row(0), b.row(1), b.row(2)), (&[7, 8, 9][..], &[1, 2, 3, 4, 5][..], &[][..]));
        assert_eq!(LeftPadded::new(&[], 0), LeftPadded { ids: vec![], lengths: vec![], width: 0 });
    }

    #[test]
    fn the_mask_of_two_rows_is_the_one_drawn_by_hand() {
        let mask = LeftPadded::new(&[&[5], &[6, 7]], 0).causal_mask();
        let seen: Vec<u8> = mask.iter().map(|m| u8::from(*m == 0.0)).collect();
        assert_eq!(seen, [1, 0, /**/ 0, 1, /* next row */ 1, 0, /**/ 1, 1]);
    }

    /// What a token attends to in a batch is what it attends to alone.
    #[test]
    fn padding_changes_nothing_that_a_token_sees() {
        let b = batch();
        for (row, &n) in b.lengths.iter().enumerate() {
            let first = b.width - n;
            for query in 0..n {
                let seen: Vec<usize> = (0..b.width).filter(|&k| b.sees(row, first + query, k)).collect();
                assert_eq!(seen, (first..=first + query).collect::<Vec<_>>());
            }
            assert!((0..first).all(|q| (0..b.width).filter(|&k| b.sees(row, q, k)).eq([q])), "padding sees itself");
        }
    }

    #[test]
    fn a_completion_ends_with_the_first_of_all_end_tokens() {
        assert_eq!(completion(&[4, 9, 4, 8], &[8, 9]), (2, Ending::Stopped));
        assert_eq!(completion(&[4, 4], &[8, 9]), (2, Ending::Truncated));
        assert_eq!(completion(&[9], &[9]), (1, Ending::Stopped));
        assert_eq!(completion(&[], &[9]), (0, Ending::Truncated));
    }
}
