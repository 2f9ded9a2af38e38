//! Sizes drawn without looking.

use alloc::string::String;
use alloc::vec::Vec;

use crate::random::Random;
use crate::saved::{Line, Words, list};
use crate::{ConfigError, GroupReport, GroupSizer, StateError};

/// Every step an independent size from a given histogram, whatever was observed.
///
/// Given the histogram of an adaptive sizer's run, it has that sizer's mean size but none of its adaptation: what both
/// have in common is due to smaller groups alone.
#[derive(Clone, Debug, PartialEq)]
pub struct RandomWithHistogram {
    sizes: Vec<usize>,
    weights: Vec<f64>,
    present: usize,
    random: Random,
}

const HEADER: &str = "random/1";

impl RandomWithHistogram {
    /// `histogram`: sizes and how often each was used, in any unit. Errors: no sizes, one below 2, or weights that are
    /// negative, not finite or all 0.
    pub fn new(histogram: &[(usize, f64)], seed: u64) -> Result<Self, ConfigError> {
        let (sizes, weights): (Vec<usize>, Vec<f64>) = histogram.iter().copied().unzip();
        if sizes.is_empty() {
            return Err(ConfigError::Empty("the histogram"));
        }
        if let Some(&g) = sizes.iter().find(|g| **g < 2) {
            return Err(ConfigError::GroupTooSmall(g));
        }
        if let Some(&w) = weights.iter().find(|w| !(w.is_finite() && **w >= 0.0)) {
            return Err(ConfigError::Range("a weight of the histogram", w, "at least 0"));
        }
        let total = weights.iter().sum::<f64>();
        if !(total > 0.0 && total.is_finite()) {
            return Err(ConfigError::Range("the sum of the histogram", total, "above 0"));
        }
        let mut sizer = RandomWithHistogram { sizes, weights, present: 0, random: Random(seed) };
        sizer.draw();
        Ok(sizer)
    }

    fn draw(&mut self) {
        let mut left = self.random.uniform() * self.weights.iter().sum::<f64>();
        for (k, w) in self.weights.iter().enumerate().filter(|(_, w)| **w > 0.0) {
            // the last positive weight also takes what rounding left over
            self.present = k;
            left -= w;
            if left < 0.0 {
                return;
            }
        }
    }
}

impl GroupSizer for RandomWithHistogram {
    fn group_size(&self) -> usize {
        self.sizes[self.present]
    }

    fn observe(&mut self, seen: &GroupReport<'_>) {
        if seen.is_usable() {
            self.draw();
        }
    }

    fn save(&self) -> String {
        let mut line = Line::new(HEADER);
        line.word(list(&self.sizes)).word(self.present).word(self.random.0);
        line.finish()
    }

    fn restore(&mut self, saved: &str) -> Result<(), StateError> {
        let mut words = Words::open(HEADER, saved)?;
        words.exactly("the sizes", &list(&self.sizes))?;
        let present = words.word("index of a size", |k| *k < self.sizes.len())?;
        let random = Random(words.word("state of the generator", |_| true)?);
        words.end()?;
        (self.present, self.random) = (present, random);
        Ok(())
    }
}
