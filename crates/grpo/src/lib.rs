//! Group-relative policy optimisation, as pure functions on slices.
//!
//! ```
//! use grpo::{Spread, group_advantage};
//! let mut advantage = [0.0; 4];
//! group_advantage(&[1.0, 0.0, 0.0, 1.0], 4, Spread::Population { eps: 0.0 }, &mut advantage);
//! assert_eq!(advantage, [1.0, -1.0, -1.0, 1.0]);
//! ```
//!
//! GRPO: Shao et al. 2024 (arXiv 2402.03300). Dr. GRPO: Liu et al. 2025 (arXiv 2503.20783). DAPO: Yu et al. 2025 (arXiv
//! 2503.14476). GSPO: Zheng et al. 2025 (arXiv 2507.18071).
//!
//! Not here yet: the trainer that uses them, and with it the group size chosen by `sagc`.

mod advantage;
mod loss;

pub use advantage::{Spread, group_advantage, informative};
pub use loss::{Aggregate, aggregate, clipped_surrogate, k3, overlong, sequence_surrogate};
