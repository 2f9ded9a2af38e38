//! Traits and building blocks for on-policy reinforcement learning: where policies, trainers and sources of
//! experience meet. The only crate of the workspace that knows both plain slices and tensors.
//!
//! What it is not: an algorithm. Trainers live in their own crates and ask nothing about a policy but [`Policy`] or
//! [`Pathwise`].
//!
//! ```
//! use onpolicy::{GaussianPolicy, Noise, Pathwise, Policy};
//! # fn main() -> candle_core::Result<()> {
//! let policy = GaussianPolicy::new(3, 2, 16, 3, 0)?;
//! let obs = Noise::new(1).normal((5, 3))?;
//! let drawn = policy.sample(&obs, &mut Noise::new(2))?;
//! assert_eq!(drawn.action.dims(), [5, 2]);
//! // a policy is at distance 0 from its own snapshot
//! let kl = policy.kl_from(&policy.snapshot()?, &obs, 1, &mut Noise::new(3))?;
//! assert_eq!(kl.to_vec1::<f32>()?, [0.0; 5]);
//! # Ok(()) }
//! ```
//!
//! In reading order: [`Policy`], [`Pathwise`], [`Trainer`] and [`fit`]; [`SimCollector`],
//! [`collect_episodes`]; [`Noise`], [`Normaliser`];
//! [`params`], [`dense`], [`Mlp`] and [`Adam`] are what networks are made of; [`Bundle`] and [`Persist`] are
//! checkpoints; [`conformance`] is for your own policies.

pub mod adam;
mod bundle;
mod collect;
pub mod conformance;
pub mod dense;
mod episodes;
mod gaussian;
pub mod matmul;
pub mod mlp;
mod noise;
mod normaliser;
pub mod params;
mod pathwise;
mod policy;
#[doc(hidden)]
pub mod simd;
mod trainer;

pub use adam::{Adam, AdamConfig};
pub use bundle::{Bundle, BundleError, Persist, write_atomically};
pub use collect::{SimCollector, episode_returns, lane_seeds};
pub use episodes::collect_episodes;
pub use gaussian::GaussianPolicy;
pub use mlp::{Mlp, Wants};
pub use noise::{Noise, unit};
pub use normaliser::Normaliser;
pub use params::Params;
pub use pathwise::{Pathwise, Reparameterised};
pub use policy::{Factors, Policy, Rows, Sampled};
pub use trainer::{TrainError, Trainer, fit};
