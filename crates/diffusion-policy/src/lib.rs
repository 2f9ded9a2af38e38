//! A policy whose action is the end of a short denoising chain with tractable per-step densities.
//!
//! Every step is a Gaussian, so the path has a density, a closed-form KL divergence to another policy's path, and a
//! pathwise gradient; the action alone has none of these. What this crate is not: a trainer, or a generative model of
//! data. TruDi (arXiv 2606.15260) trains it inside a trust region over the whole path; see the crate `trust-region`.
//!
//! ```
//! use diffusion_policy::{DiffusionConfig, DiffusionPolicy};
//! use onpolicy::{Noise, Pathwise, Policy};
//! # fn main() -> candle_core::Result<()> {
//! let policy = DiffusionPolicy::new(DiffusionConfig::new(3, 2), 0)?;
//! let obs = Noise::new(1).normal((5, 3))?;
//! let drawn = policy.sample(&obs, &mut Noise::new(2))?;
//! assert_eq!(drawn.action.dims(), [5, 2]);
//! assert_eq!(drawn.log_prob.value.dims(), [5, 8]); // one factor per denoising step
//! # Ok(()) }
//! ```
//!
//! In reading order: [`schedule`]; `chain` holds the equations, forward and backward; `network` the control net;
//! `ops` makes them differentiable tensor operations; [`DiffusionPolicy`] is the policy.

mod chain;
mod network;
mod ops;
mod policy;
pub mod schedule;

pub use policy::{ConfigError, DiffusionConfig, DiffusionPolicy, KlForm};
