//! Plain data that simulators, language tasks and on-policy trainers exchange. No dependencies, no tensors.
//!
//! What it is not: a simulator, a trainer, a storage class. A source of experience fills a [`Rollout`]; a trainer
//! takes it by value.
//!
//! ```
//! use rollouts::{returns::lambda_return, Status};
//! // one lane, two steps, reward 1; the second step was cut by a time limit where the critic says 10
//! let status = [Status::Running, Status::Truncated];
//! let mut g = [0.0; 2];
//! lambda_return(&[1.0, 1.0], &[10.0, 10.0], &status, 1, 0.9, 1.0, &mut g);
//! assert_eq!(g, [1.0 + 0.9 * 10.0, 1.0 + 0.9 * 10.0]);
//! ```
//!
//! In reading order: [`env`](VecEnv), [`TextTask`], [`Rollout`], [`returns`], [`Recorder`], [`conformance`].

pub mod conformance;
mod env;
mod record;
pub mod returns;
mod rollout;
mod text;

pub use env::{EnvSpec, SnapshotError, Status, StepBuffers, StepOut, VecEnv};
pub use record::{Recorder, Scalars};
pub use rollout::Rollout;
pub use text::TextTask;
