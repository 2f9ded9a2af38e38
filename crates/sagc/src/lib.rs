//! Straggler-aware control of the group size in synchronous group-relative training (GRPO, DAPO and relatives).
//!
//! A synchronous step waits for its longest rollout, the more so the more members a group has. A [`GroupSizer`] chooses
//! how many members the next step's groups get: [`Fixed`] always the same, [`Sagc`] as many as a budget on the long-run
//! rate of straggling groups allows, [`baselines`] by other rules. It reads lengths, never rewards. No dependencies;
//! lengths may be in any unit (tokens, steps, seconds).
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
//! optimisation with a posterior over risk as a function of the group size. Only its abstract was available to us; update
//! rule and constants are our own design, which [`Sagc`] documents.
//!
//! What it does not promise: fewer straggling groups need not mean shorter steps. With the number of rollouts held fixed
//! in one wave, a step waits for the same longest rollout whatever the group size. Measure seconds.

#![no_std]

extern crate alloc;
#[cfg(test)]
extern crate std;

mod report;
mod sizer;

pub mod straggler;

mod gauge;

mod risk;

mod utility;

mod config;
mod menu;

mod control;
mod controller;
mod ladder;
mod queue;
mod timing;

mod status;

pub mod baselines;

mod math;
mod random;
mod saved;

pub mod conformance;

pub use config::{ConfigError, Estimate, SagcConfig};
pub use controller::Sagc;
pub use gauge::Gauge;
pub use menu::check_menu;
pub use report::GroupReport;
pub use risk::beta_binomial_risk;
pub use saved::StateError;
pub use sizer::{Fixed, GroupSizer};
pub use status::Status;
pub use straggler::{Reference, Straggling};
pub use utility::Utility;

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
