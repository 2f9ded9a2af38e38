//! Sequences of different lengths, one after the other.

use candle_core::{Result, Tensor};
use onpolicy::Rows;

/// A batch of token sequences without padding.
///
/// ```text
/// ids  7 8 9 | 1 2 3 4 5 |    rows 0, 1 and an empty row 2
/// ends 3       8           8
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tokens {
    ids: Vec<u32>,
    ends: Vec<usize>,
}

impl Tokens {
    /// Those sequences, in order.
    pub fn new<S: AsRef<[u32]>>(sequences: impl IntoIterator<Item = S>) -> Self {
        let mut all = Tokens::default();
        for s in sequences {
            all.push(s.as_ref());
        }
        all
    }

    /// Adds a row.
    pub fn push(&mut self, row: &[u32]) {
        self.ids.extend_from_slice(row);
        self.ends.push(self.ids.len());
    }

    /// Rows, B.
    pub fn rows(&self) -> usize {
        self.ends.len()
    }

    /// Tokens of row `b`. Panics if there is no such row.
    pub fn row(&self, b: usize) -> &[u32] {
        &self.ids[self.start(b)..self.ends[b]]
    }

    /// Where row `b` begins in [`Tokens::ids`].
    pub fn start(&self, b: usize) -> usize {
        if b == 0 { 0 } else { self.ends[b - 1] }
    }

    /// All tokens, row after row.
    pub fn ids(&self) -> &[u32] {
        &self.ids
    }

    /// Rows in order.
    pub fn iter(&self) -> impl Iterator<Item = &[u32]> {
        (0..self.rows()).map(|b| self.row(b))
    }

    /// `[B]`: length of each row.
    pub fn lengths(&self) -> Vec<usize> {
        self.iter().map(<[u32]>::len).collect()
    }
}

impl Rows for Tokens {
    fn rows(&self) -> usize {
        self.ends.len()
    }

    fn select(&self, rows: &Tensor) -> Result<Self> {
        let rows = rows.to_vec1::<u32>()?;
        if let Some(b) = rows.iter().find(|b| **b as usize >= self.rows()) {
            candle_core::bail!("there is no row {b} among {} token sequences", self.rows());
        }
        Ok(Tokens::new(rows.iter().map(|b| self.row(*b as usize))))
    }

    fn concat(parts: &[Self]) -> Result<Self> {
        Ok(Tokens::new(parts.iter().flat_map(Tokens::iter)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use candle_core::Device;

    #[test]
    fn rows_come_back_as_they_were_put_in_whatever_their_length() {
        let t = Tokens::new([&[7, 8, 9][..], &[1, 2, 3, 4, 5], &[]]);
        assert_eq!((t.rows(), t.lengths()), (3, vec![3, 5, 0]));
        assert_eq!((t.row(0), t.row(1), t.row(2)), (&[7, 8, 9][..], &[1, 2, 3, 4, 5][..], &[][..]));
        let picked = t.select(&Tensor::new(&[1u32, 1, 0], &Device::Cpu).unwrap()).unwrap();
        assert_eq!(picked, Tokens::new([&[1, 2, 3, 4, 5][..], &[1, 2, 3, 4, 5], &[7, 8, 9]]));
        assert_eq!(Tokens::concat(&[picked.clone(), t.clone()]).unwrap().rows(), 6);
        assert!(t.select(&Tensor::new(&[3u32], &Device::Cpu).unwrap()).is_err());
    }
}
