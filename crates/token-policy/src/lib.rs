//! Token policies: sampling from logits, and the log-probability of what was sampled. The network is not here yet.
//!
//! ```
//! use token_policy::{Sampling, sample};
//! let logits = [0.0, 2.0, -1.0];
//! let drawn = sample(&logits, &Sampling { temperature: 0.7, top_k: 0, top_p: 1.0 }, 0.5)?;
//! assert_eq!(drawn.token, 1);
//! assert!(drawn.log_prob < 0.0);
//! # Ok::<(), token_policy::SamplingError>(())
//! ```

mod sampler;

pub use sampler::{Drawn, Sampling, SamplingError, log_probs, sample};
