//! Sizers to compare [`crate::Sagc`] with. [`crate::Fixed`] is the static one.
//!
//! [`PerArmBeta`] and [`GreedyChance`] adapt as well, with less knowledge or without a queue. [`RandomWithHistogram`] and
//! [`Schedule`] tell adaptation from merely smaller groups. [`Oracle`] knows the risk, in simulation only.

mod greedy_chance;
mod oracle;
mod per_arm_beta;
mod random_with_histogram;
mod schedule;

pub use greedy_chance::GreedyChance;
pub use oracle::Oracle;
pub use per_arm_beta::PerArmBeta;
pub use random_with_histogram::RandomWithHistogram;
pub use schedule::Schedule;
