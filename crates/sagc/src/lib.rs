//! Straggler-aware control of the group size in synchronous group-relative training (GRPO, DAPO and relatives).
//!
//! A synchronous step waits for its longest rollout, the more so the more members a group has. A [`GroupSizer`] chooses
//! how many members the next step's groups get: [`Fixed`] always the same, [`Sagc`] as many as a budget on the long-run
//! rate of straggling groups allows. It reads lengths only, never rewards. No dependencies; lengths may be in any unit
//! (tokens, steps, seconds).
//!
//! ```
//! use sagc::{GroupReport, GroupSizer, Sagc, SagcConfig};
//!
//! let mut sizer = Sagc::new(SagcConfig::new(&[4, 8, 16, 32]))?;
//! for step in 0..100 {
//!     let g = sizer.group_size();
//!     // … generate groups of g; here every fifth rollout is ten times as long as the others
//!     let length: Vec<f32> = (0..128).map(|i| if (i + step) % 5 == 0 { 1000.0 } else { 100.0 }).collect();
//!     sizer.observe(&GroupReport::new(g, &length));
//! }
//! assert_eq!(sizer.group_size(), 4); // large groups would all straggle
//! # Ok::<(), sagc::ConfigError>(())
//! ```
//!
//! After "Faster Synchronous On-Policy RL via Straggler-Aware Group Sizing" (arXiv 2606.02218): an online constrained
//! optimisation with a posterior over risk as a function of the group size. The public text leaves update rule and
//! constants open; [`Sagc`] documents ours.
//!
//! What it does not promise: fewer straggling groups need not mean shorter steps. With the number of rollouts held fixed
//! in one wave, a step waits for the same longest rollout whatever the group size. Measure seconds.

#![no_std]

extern crate alloc;
#[cfg(test)]
extern crate std;

pub mod straggler;

mod risk;

mod controller;

pub mod conformance;

pub use controller::{ConfigError, Sagc, SagcConfig, SagcState};
pub use risk::{Risk, beta_binomial_risk};
pub use straggler::{Reference, Straggling};

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;

/// What one generation step looked like, before any filtering of groups.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct GroupReport<'a> {
    /// Members per group, G.
    pub group_size: usize,
    /// `[groups * G]`, members of a group next to each other, in tokens or in seconds. A truncated rollout counts with
    /// the length it had.
    pub length: &'a [f32],
    /// `[groups * G]`: rollouts that were cut at the longest allowed length; empty if nobody knows.
    pub truncated: &'a [bool],
    /// Seconds the whole step took, where they are to count.
    pub seconds: Option<f64>,
}

impl<'a> GroupReport<'a> {
    /// Lengths alone.
    pub fn new(group_size: usize, length: &'a [f32]) -> Self {
        GroupReport { group_size, length, truncated: &[], seconds: None }
    }

    /// With the rollouts that were cut. `truncated`: `[groups * G]`.
    pub fn with_truncated(self, truncated: &'a [bool]) -> Self {
        GroupReport { truncated, ..self }
    }

    /// With the seconds that the step took.
    pub fn with_seconds(self, seconds: f64) -> Self {
        GroupReport { seconds: Some(seconds), ..self }
    }
}

/// Chooses the size of the next step's groups. [`conformance::check_group_sizer`] tests the promises.
///
/// * `group_size() ≥ 2`, and constant until [`GroupSizer::observe`] is called.
/// * Equal reports, equal choices.
/// * Reports without a complete group, and those with a length that is negative or not finite, change nothing.
pub trait GroupSizer {
    /// Members per group in the next step.
    fn group_size(&self) -> usize;
    /// Takes in a finished step. Call it once per generation step.
    fn observe(&mut self, seen: &GroupReport<'_>);
    /// Everything a checkpoint needs, as one line of text.
    fn save(&self) -> String;
    /// Takes back what an equal sizer saved. Errors: the text is not of this kind of sizer with these settings; then
    /// nothing changed.
    fn restore(&mut self, saved: &str) -> Result<(), StateError>;
}

/// A saved state that does not fit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StateError(
    /// What was expected and what was found.
    pub String,
);

impl core::fmt::Display for StateError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "saved state of a group sizer does not fit: {}", self.0)
    }
}

impl core::error::Error for StateError {}

/// Always the same size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fixed(usize);

impl Fixed {
    /// Errors: a group of fewer than 2 has nothing to compare.
    pub fn new(group_size: usize) -> Result<Self, ConfigError> {
        if group_size < 2 { Err(ConfigError::GroupTooSmall(group_size)) } else { Ok(Fixed(group_size)) }
    }
}

impl GroupSizer for Fixed {
    fn group_size(&self) -> usize {
        self.0
    }
    fn observe(&mut self, _: &GroupReport<'_>) {}
    fn save(&self) -> String {
        format!("fixed {}", self.0)
    }
    fn restore(&mut self, saved: &str) -> Result<(), StateError> {
        let own = self.save();
        if saved == own { Ok(()) } else { Err(StateError(format!("expected `{own}`, found `{saved}`"))) }
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
