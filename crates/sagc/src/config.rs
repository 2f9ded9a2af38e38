//! Settings of the sizers that adapt.

use alloc::vec::Vec;
use core::fmt;

use crate::saved::list;
use crate::straggler::Reference;
use crate::utility::Utility;

/// Which number stands for the risk that is not known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Estimate {
    /// Mean of the posterior.
    Mean,
    /// A draw from the posterior of every size (Thompson sampling), from a generator with this seed.
    Thompson {
        /// Seed of the draws.
        seed: u64,
    },
}

/// Settings of [`crate::Sagc`] and of the baselines that share its parts.
#[derive(Clone, Debug, PartialEq)]
pub struct SagcConfig {
    /// Sizes to choose from, ascending, each at least 2. To hold the batch, let all divide the number of rollouts:
    /// [`crate::check_menu`].
    pub candidates: Vec<usize>,
    /// ε: long-run share of groups that may straggle, in (0, 1).
    pub budget: f64,
    /// κ: a rollout straggles if it is longer than κ times the reference, above 1.
    pub threshold: f64,
    /// What lengths are compared with.
    pub reference: Reference,
    /// U: what a large group is worth.
    pub utility: Utility,
    /// Which number stands for a size's risk.
    pub estimate: Estimate,
    /// V: weight of a large group against the queue. Larger: slower, with a looser budget and fewer changes.
    pub weight: f64,
    /// H: steps between changes at least.
    pub dwell: u32,
    /// γ: how much of the past counts after a step.
    pub fade: f64,
    /// Size of the first step, one of the candidates; `None` for the largest.
    pub start: Option<usize>,
    /// Whether excess that even the smallest size cannot avoid is kept out of the queue.
    pub anti_windup: bool,
}

impl SagcConfig {
    /// Budget 0.25, threshold 2.5 against the running median, uniform [`Utility::Informative`], posterior means, weight
    /// 5, dwell 4, fade 0.97, from the largest size, with anti-windup. The laws in `tests/` are checked with these;
    /// `examples/simulate` compares weights of 5 and 20.
    pub fn new(candidates: &[usize]) -> Self {
        SagcConfig {
            candidates: candidates.into(),
            budget: 0.25,
            threshold: 2.5,
            reference: Reference::Running,
            utility: Utility::default(),
            estimate: Estimate::Mean,
            weight: 5.0,
            dwell: 4,
            fade: 0.97,
            start: None,
            anti_windup: true,
        }
    }

    /// Errors: [`ConfigError`] names the setting out of range.
    pub(crate) fn check(&self) -> Result<(), ConfigError> {
        let c = &self.candidates;
        if let Some(&g) = c.iter().find(|g| **g < 2) {
            return Err(ConfigError::GroupTooSmall(g));
        }
        if c.is_empty() || c.windows(2).any(|w| w[0] >= w[1]) {
            return Err(ConfigError::Candidates(c.clone()));
        }
        if let Some(start) = self.start.filter(|s| !c.contains(s)) {
            return Err(ConfigError::Start(start, c.clone()));
        }
        let above_0 = |x: f64| x > 0.0 && x.is_finite();
        let [u, v] = self.utility.parameters();
        let rules = [
            ("budget", self.budget, self.budget > 0.0 && self.budget < 1.0, "between 0 and 1"),
            ("threshold", self.threshold, self.threshold > 1.0 && self.threshold.is_finite(), "above 1"),
            ("weight", self.weight, above_0(self.weight), "above 0"),
            ("fade", self.fade, self.fade > 0.0 && self.fade <= 1.0, "above 0 and at most 1"),
            ("u of the utility", u, above_0(u), "above 0"),
            ("v of the utility", v, above_0(v), "above 0"),
        ];
        match rules.into_iter().find(|r| !r.2) {
            Some((field, value, _, range)) => Err(ConfigError::Range(field, value, range)),
            None => Ok(()),
        }
    }
}

/// Settings that make no sizer.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum ConfigError {
    /// A group of fewer than 2 has nothing to compare.
    GroupTooSmall(usize),
    /// Candidates are missing, out of order or repeated.
    Candidates(Vec<usize>),
    /// The first size is none of the candidates.
    Start(usize, Vec<usize>),
    /// A number is out of range: which, its value, the range.
    Range(&'static str, f64, &'static str),
    /// A list of what is missing: a schedule or a histogram without sizes.
    Empty(&'static str),
    /// Candidates that do not divide the number of rollouts.
    Menu {
        /// Rollouts per step, N.
        rollouts: usize,
        /// The candidates that do not divide N.
        misfits: Vec<usize>,
        /// All sizes that do, from 2 on.
        fits: Vec<usize>,
    },
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ConfigError::GroupTooSmall(g) => write!(f, "a group of {g} has nothing to compare; use at least 2"),
            ConfigError::Candidates(c) => {
                write!(f, "candidates {c:?} must be ascending, without repeats, at least one")
            }
            ConfigError::Start(g, c) => write!(f, "start is {g}; it must be one of the candidates {}", list(c)),
            ConfigError::Range(field, value, range) => write!(f, "{field} is {value}; it must be {range}"),
            ConfigError::Empty(what) => write!(f, "{what} has no sizes; give at least one"),
            ConfigError::Menu { rollouts, fits, .. } if fits.is_empty() => {
                write!(f, "{rollouts} rollouts cannot be split into groups; use at least 2")
            }
            ConfigError::Menu { rollouts, misfits, fits } => {
                write!(
                    f,
                    "{rollouts} rollouts cannot be split into groups of {}; sizes that divide them: {}",
                    list(misfits),
                    list(fits)
                )
            }
        }
    }
}

impl core::error::Error for ConfigError {}
