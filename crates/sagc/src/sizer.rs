//! The trait, and the simplest sizer.

use alloc::boxed::Box;
use alloc::string::String;

use crate::saved::{Line, Words};
use crate::{ConfigError, GroupReport, StateError};

/// Chooses the size of the next step's groups. [`crate::conformance::check_group_sizer`] tests the promises.
///
/// * `group_size() ≥ 2`, and constant until [`GroupSizer::observe`] is called.
/// * Equal reports, equal choices; those that draw have a seed.
/// * Reports without a complete group, and those with a length that is negative or not finite, change nothing.
pub trait GroupSizer {
    /// Members per group in the next step.
    fn group_size(&self) -> usize;
    /// Takes in a finished step. Call it once per generation step.
    fn observe(&mut self, seen: &GroupReport<'_>);
    /// Everything a checkpoint needs, as one line of text that begins with the kind and a version.
    fn save(&self) -> String;
    /// Takes back what an equal sizer saved, to the last bit. Errors: the text is not of this kind of sizer with these
    /// sizes; it says what was expected, and nothing changed. Settings other than the sizes may differ and hold from
    /// then on.
    fn restore(&mut self, saved: &str) -> Result<(), StateError>;
}

/// Always the same size: the static baseline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fixed(usize);

impl Fixed {
    /// Errors: a group of fewer than 2 has nothing to compare.
    pub fn new(group_size: usize) -> Result<Self, ConfigError> {
        if group_size < 2 { Err(ConfigError::GroupTooSmall(group_size)) } else { Ok(Fixed(group_size)) }
    }
}

const FIXED: &str = "fixed/1";

impl GroupSizer for Fixed {
    fn group_size(&self) -> usize {
        self.0
    }

    fn observe(&mut self, _: &GroupReport<'_>) {}

    fn save(&self) -> String {
        let mut line = Line::new(FIXED);
        line.word(self.0);
        line.finish()
    }

    fn restore(&mut self, saved: &str) -> Result<(), StateError> {
        let mut words = Words::open(FIXED, saved)?;
        words.exactly("size", &alloc::format!("{}", self.0))?;
        words.end()
    }
}

impl<S: GroupSizer + ?Sized> GroupSizer for &mut S {
    fn group_size(&self) -> usize {
        (**self).group_size()
    }
    fn observe(&mut self, seen: &GroupReport<'_>) {
        (**self).observe(seen);
    }
    fn save(&self) -> String {
        (**self).save()
    }
    fn restore(&mut self, saved: &str) -> Result<(), StateError> {
        (**self).restore(saved)
    }
}

impl<S: GroupSizer + ?Sized> GroupSizer for Box<S> {
    fn group_size(&self) -> usize {
        (**self).group_size()
    }
    fn observe(&mut self, seen: &GroupReport<'_>) {
        (**self).observe(seen);
    }
    fn save(&self) -> String {
        (**self).save()
    }
    fn restore(&mut self, saved: &str) -> Result<(), StateError> {
        (**self).restore(saved)
    }
}
