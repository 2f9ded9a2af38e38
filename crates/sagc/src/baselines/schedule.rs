//! Sizes fixed in advance.

use alloc::string::{String, ToString};
use alloc::vec::Vec;

use crate::saved::{Line, Words};
use crate::{ConfigError, GroupReport, GroupSizer, StateError};

/// The sizes of a list, one per step; the last one from then on.
///
/// With the sizes that an adaptive sizer chose on average it grows and shrinks as that one did, without looking.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Schedule {
    sizes: Vec<usize>,
    step: usize,
}

const HEADER: &str = "schedule/1";

impl Schedule {
    /// `sizes`: of steps 0, 1, … Errors: there are none, or one is below 2.
    pub fn new(sizes: Vec<usize>) -> Result<Self, ConfigError> {
        if sizes.is_empty() {
            return Err(ConfigError::Empty("the schedule"));
        }
        match sizes.iter().find(|g| **g < 2) {
            Some(&g) => Err(ConfigError::GroupTooSmall(g)),
            None => Ok(Schedule { sizes, step: 0 }),
        }
    }
}

impl GroupSizer for Schedule {
    fn group_size(&self) -> usize {
        self.sizes[self.step]
    }

    fn observe(&mut self, seen: &GroupReport<'_>) {
        if seen.is_usable() {
            self.step = (self.step + 1).min(self.sizes.len() - 1);
        }
    }

    fn save(&self) -> String {
        let mut line = Line::new(HEADER);
        line.word(self.sizes.len()).word(self.step);
        line.finish()
    }

    fn restore(&mut self, saved: &str) -> Result<(), StateError> {
        let mut words = Words::open(HEADER, saved)?;
        words.exactly("the number of sizes", &self.sizes.len().to_string())?;
        let step = words.word("a step of the schedule", |s| *s < self.sizes.len())?;
        words.end()?;
        self.step = step;
        Ok(())
    }
}
