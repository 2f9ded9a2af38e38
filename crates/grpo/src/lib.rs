//! Group-relative policy optimisation: GRPO, Dr. GRPO, DAPO, GSPO and CISPO as pure functions on slices, and a trainer
//! over any [`onpolicy::Policy`] and any [`sagc::GroupSizer`].
//!
//! What it is not: a sampler or a reward. A source gives whole trajectories with their scores; the trainer asks for P
//! groups of G and learns from how members differ.
//!
//! ```
//! use grpo::{Loss, Sequence, Spread, Totals, group_advantage};
//!
//! let mut advantage = [0.0; 4];
//! group_advantage(&[1.0, 0.0, 0.0, 1.0], &[7, 7, 7, 7], Spread::Population { eps: 0.0 }, &mut advantage);
//! assert_eq!(advantage, [1.0, -1.0, -1.0, 1.0]);
//!
//! // the loss of two tokens and its slope in their log-probabilities
//! let (new, mut slope) = ([-0.5, -1.0], [0.0; 2]);
//! let s = Sequence { log_prob: &new, old: &new, reference: None, advantage: 1.0 };
//! let terms = Loss::dapo().evaluate(&s, Totals::of([2]), &mut slope);
//! assert_eq!((terms.loss, slope), (-1.0, [-0.5, -0.5]));
//! ```
//!
//! In reading order: [`group_advantage`], [`Loss`], [`GrpoConfig`], [`Grpo`], [`Report`].
//!
//! GRPO: Shao et al. 2024 (arXiv 2402.03300). Dr. GRPO: Liu et al. 2025 (arXiv 2503.20783). DAPO: Yu et al. 2025 (arXiv
//! 2503.14476). GSPO: Zheng et al. 2025 (arXiv 2507.18071).

mod advantage;
mod config;
#[allow(clippy::module_inception)]
mod grpo;
mod lanes;
mod loss;
mod report;

pub use advantage::{Spread, degenerate_chance, group_advantage, groups, informative};
pub use config::{ConfigError, GrpoConfig, Overlong};
pub use grpo::{Ask, Generated, Grpo, SetupError};
pub use lanes::RatioOver;
pub use loss::{Aggregate, KlEstimate, KlTerm, Loss, Sequence, Surrogate, Terms, Totals, overlong};
pub use report::{Report, Timing};
