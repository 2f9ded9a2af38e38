//! Seeded randomness in integers only, so that an instance is the same on every platform.

/// splitmix64 (Steele, Lea, Flood 2014), seeded by the hash of some words.
#[derive(Clone, Debug)]
pub(crate) struct Draw(u64);

const GOLDEN: u64 = 0x9E37_79B9_7F4A_7C15;

fn mix(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

/// A hash of words in their order.
pub(crate) fn hash(words: &[u64]) -> u64 {
    words.iter().fold(mix(words.len() as u64), |h, &w| mix(h.wrapping_add(GOLDEN) ^ mix(w.wrapping_add(GOLDEN))))
}

impl Draw {
    /// A stream of its own for each sequence of words.
    pub(crate) fn new(words: &[u64]) -> Self {
        Draw(hash(words))
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(GOLDEN);
        mix(self.0)
    }

    /// Uniform in `0..n`; multiply-shift, bias below n·2⁻⁶⁴.
    pub(crate) fn below(&mut self, n: usize) -> usize {
        ((u128::from(self.next()) * n as u128) >> 64) as usize
    }

    /// Uniform in `low..=high`.
    pub(crate) fn within(&mut self, low: i64, high: i64) -> i64 {
        low + self.below((high - low + 1) as usize) as i64
    }

    /// True `of` times out of `from`.
    pub(crate) fn chance(&mut self, of: usize, from: usize) -> bool {
        self.below(from) < of
    }

    /// One of them.
    pub(crate) fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len())]
    }

    /// A uniformly random order (Fisher–Yates).
    pub(crate) fn shuffle<T>(&mut self, items: &mut [T]) {
        for i in (1..items.len()).rev() {
            items.swap(i, self.below(i + 1));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_stream_is_the_same_on_every_platform() {
        let mut draw = Draw(0);
        // the reference sequence of splitmix64 from state 0
        assert_eq!([draw.next(), draw.next()], [0xE220_A839_7B1D_CDAF, 0x6E78_9E6A_A1B9_65F4]);
    }

    #[test]
    fn order_and_number_of_words_matter() {
        let seen: std::collections::BTreeSet<u64> =
            [&[][..], &[0], &[0, 0], &[0, 1], &[1, 0], &[1]].into_iter().map(hash).collect();
        assert_eq!(seen.len(), 6);
    }

    #[test]
    fn bounds_are_kept_and_reached() {
        let mut draw = Draw::new(&[7]);
        let mut count = [0; 6];
        for _ in 0..6000 {
            count[(draw.within(-2, 3) + 2) as usize] += 1;
        }
        // standard deviation 29: bounds at 5 of them
        assert!(count.iter().all(|c| (850..1150).contains(c)), "{count:?}");
    }
}
