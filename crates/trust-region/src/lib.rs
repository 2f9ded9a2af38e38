//! Maximum-entropy pathwise policy optimisation inside a KL trust region, on-policy and in parallel simulation.
//!
//! One update takes a rollout of T steps in N environments and makes, for every minibatch of every epoch, a step of
//! the critic and a step of the policy:
//!
//! ```text
//! r̃_t = r_t − γ·α·ln π̂(a'_t|s'_t)                               soft reward, a'_t ~ π(·|s'_t)
//! G_t = r̃_t + γ·(λ·G_{t+1} + (1−λ)·Q(s'_t, a'_t))               soft λ-return, cut at truncation and termination
//! L_Q = CE(histogram(G), Q's distribution) + κ·‖pred − z'‖²      critic
//! L_π = α·ln π̂(a|s) − Q(s, a)   if KL(old‖π)(s) < ε,  else β·KL(old‖π)(s)
//! α rises while the entropy is below −m·A,  β rises while the mean KL is above ε
//! ```
//!
//! The gradient of Q reaches the policy through the action, so any [`onpolicy::Pathwise`] policy can be trained. With a
//! diffusion policy, whose KL is that of the whole denoising trajectory, this is TruDi (arXiv 2606.15260); with a
//! Gaussian one it is REPPO (Voelcker et al. 2025).
//!
//! ```
//! use onpolicy::{GaussianPolicy, Noise, Trainer};
//! use rollouts::{Rollout, Status};
//! use trust_region::{CriticConfig, Gate, TrustRegion, TrustRegionConfig};
//!
//! let config = TrustRegionConfig {
//!     discount: 0.99, lambda: 0.95, epochs: 2, minibatch: 16, kl_bound: 0.1, kl_samples: 1, target_entropy: 0.5,
//!     temperature: 0.1, multiplier: 0.01, actor_lr: 1e-3, critic_lr: 1e-3, temperature_lr: 3e-3, multiplier_lr: 3e-3,
//!     clip_norm: 0.5, anneal_updates: 0, gate: Gate::Clipped,
//!     critic: CriticConfig { width: 32, bins: 51, low: -10.0, high: 10.0, aux_weight: 1.0 },
//! };
//! let mut policy = GaussianPolicy::new(3, 2, 16, 3, 1)?;
//! let mut trainer = TrustRegion::new(config, 3, &policy, 1)?;
//! // 4 steps in 8 environments; onpolicy::SimCollector fills this from an environment
//! let (obs, action) = (Noise::new(1).normal((32, 3))?, vec![0.5; 64]);
//! let rollout = Rollout {
//!     steps: 4, lanes: 8, next_obs: Some(obs.clone()), trace: obs.clone(), obs, action,
//!     log_prob: vec![], reward: vec![1.0; 32], status: vec![Status::Running; 32], group: (0..8).collect(),
//!     length: vec![4; 8],
//! };
//! let report = trainer.update(&mut policy, rollout)?;
//! assert!(report.kl >= 0.0 && report.critic_loss > 0.0);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! In reading order: [`TrustRegionConfig`], [`TrustRegion`], [`loss`], [`Critic`], [`Support`], [`Multiplier`].
//!
//! Two choices differ from the published code, which supplies no true final observation and bonuses past the end: the
//! step at which an episode is truncated is learned from like any other, since its true successor is known; and a
//! terminated step carries no entropy bonus, since nothing is drawn after it.

mod config;
mod critic;
pub mod loss;
mod multiplier;
mod ops;
mod support;
mod trainer;

pub use config::{ConfigError, CriticConfig, Gate, TrustRegionConfig};
pub use critic::{Critic, Judged};
pub use multiplier::Multiplier;
pub use support::Support;
pub use trainer::{Report, SetupError, TrustRegion};
