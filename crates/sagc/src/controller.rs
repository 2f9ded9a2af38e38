//! The controller: a virtual queue of straggling groups beyond the budget.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use crate::risk::Risk;
use crate::straggler::{Reference, Straggling, median};
use crate::{GroupReport, GroupSizer, StateError};

/// Settings of [`Sagc`].
#[derive(Clone, Debug, PartialEq)]
pub struct SagcConfig {
    /// Sizes to choose from, ascending, each at least 2. To hold the batch, let all divide the number of rollouts.
    pub candidates: Vec<usize>,
    /// ε: long-run share of groups that may straggle, in (0, 1).
    pub budget: f64,
    /// κ: a rollout straggles if it is longer than κ times the reference, above 1.
    pub threshold: f64,
    /// What lengths are compared with.
    pub reference: Reference,
    /// V: weight of a large group against the queue. Larger: slower, with a looser budget and fewer changes.
    pub weight: f64,
    /// Steps between changes at least.
    pub dwell: u32,
    /// γ: how much of the past counts after a step.
    pub fade: f64,
}

impl SagcConfig {
    /// Budget 0.25, threshold 2.5 against the running median, weight 5, dwell 4, fade 0.97. The laws in `tests/laws.rs`
    /// are checked with these, on log-normal and on Pareto lengths.
    pub fn new(candidates: &[usize]) -> Self {
        SagcConfig {
            candidates: candidates.into(),
            budget: 0.25,
            threshold: 2.5,
            reference: Reference::Running,
            weight: 5.0,
            dwell: 4,
            fade: 0.97,
        }
    }
}

/// Settings that make no controller.
#[derive(Clone, Debug, PartialEq)]
pub enum ConfigError {
    /// A group of fewer than 2 has nothing to compare.
    GroupTooSmall(usize),
    /// Candidates are missing, out of order or repeated.
    Candidates(Vec<usize>),
    /// A number is out of range: which, its value, the range.
    Range(&'static str, f64, &'static str),
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ConfigError::GroupTooSmall(g) => write!(f, "a group of {g} has nothing to compare; use at least 2"),
            ConfigError::Candidates(c) => {
                write!(f, "candidates {c:?} must be ascending, without repeats, at least one")
            }
            ConfigError::Range(field, value, range) => write!(f, "{field} is {value}; it must be {range}"),
        }
    }
}

impl core::error::Error for ConfigError {}

/// Everything a checkpoint needs.
#[derive(Clone, Debug, PartialEq)]
pub struct SagcState {
    /// Index of the present size among the candidates.
    pub arm: usize,
    /// Q: straggling beyond the budget, not yet made up for.
    pub queue: f64,
    /// Running median length; `None` before the first step.
    pub reference: Option<f64>,
    /// Steps since the last change.
    pub since_change: u32,
    /// Straggling beyond the budget that even the smallest size could not avoid; not in the queue.
    pub infeasible: f64,
    /// What is known of the risk.
    pub risk: Risk,
}

/// Straggler-aware group control.
///
/// ```text
/// rollout i straggles:  L_i > κ·m,  m the reference, by default an average of earlier steps' median lengths
/// s_t = share of groups with a straggler
/// Q  ← max(0, Q + s_t − ε)
/// G  = argmax_G V·U(G) − Q·r̂(G),   U(G) = (G−1)/(G+1),   at most one candidate up or down, after ≥ H steps
/// ```
///
/// U is the chance that a group of G holds both outcomes of a binary reward whose success probability is uniform. For
/// any sequence of lengths Σ(s_t − ε) ≤ Q + infeasible, so the long-run rate meets the budget whenever some candidate
/// can meet it: then Q stays bounded and next to nothing is infeasible.
///
/// Where no candidate can, excess at the smallest size is not queued but counted in [`SagcState::infeasible`]; a queue
/// wound up there would keep groups small long after the cause is gone. "Can not" is decided before the step is looked
/// at, by the estimated risk of the smallest size lying two standard errors above the budget. Withholding whatever
/// exceeds the budget at the smallest size would break a budget that can be met: rates scatter about their mean, and
/// only the lucky half would be booked (0.29 instead of 0.25 in `a_budget_that_only_the_smallest_size_meets_is_met`).
///
/// It starts at the largest candidate. Neely 2010, ch. 4 (drift plus penalty); the setting of arXiv 2606.02218.
#[derive(Clone, Debug, PartialEq)]
pub struct Sagc {
    config: SagcConfig,
    state: SagcState,
}

/// Weight of the past in the running median.
const REFERENCE_FADE: f64 = 0.9;

impl Sagc {
    /// Errors: [`ConfigError`] names the setting out of range.
    pub fn new(config: SagcConfig) -> Result<Self, ConfigError> {
        let c = &config.candidates;
        if let Some(&g) = c.iter().find(|g| **g < 2) {
            return Err(ConfigError::GroupTooSmall(g));
        }
        if c.is_empty() || c.windows(2).any(|w| w[0] >= w[1]) {
            return Err(ConfigError::Candidates(c.clone()));
        }
        let rules = [
            ("budget", config.budget, config.budget > 0.0 && config.budget < 1.0, "between 0 and 1"),
            ("threshold", config.threshold, config.threshold > 1.0 && config.threshold.is_finite(), "above 1"),
            ("weight", config.weight, config.weight > 0.0 && config.weight.is_finite(), "above 0"),
            ("fade", config.fade, config.fade > 0.0 && config.fade <= 1.0, "above 0 and at most 1"),
        ];
        if let Some((field, value, _, range)) = rules.into_iter().find(|r| !r.2) {
            return Err(ConfigError::Range(field, value, range));
        }
        let state = SagcState {
            arm: c.len() - 1,
            queue: 0.0,
            reference: None,
            since_change: 0,
            infeasible: 0.0,
            risk: Risk::new(c.len()),
        };
        Ok(Sagc { config, state })
    }

    /// What a checkpoint needs.
    pub fn state(&self) -> &SagcState {
        &self.state
    }

    /// Estimated risk of every candidate.
    pub fn risks(&self) -> Vec<f64> {
        self.state.risk.means(&self.config.candidates)
    }

    /// Whether even the smallest size straggles too often, by two standard errors: raise the budget, raise the threshold
    /// or offer smaller sizes.
    pub fn out_of_reach(&self) -> bool {
        let budget = self.config.budget;
        let excess = self.risks()[0] - budget;
        excess > 0.0 && excess * excess > 4.0 * self.state.risk.squared_error(0, budget)
    }

    fn decide(&mut self) {
        let s = &mut self.state;
        s.since_change = s.since_change.saturating_add(1);
        if s.since_change < self.config.dwell {
            return;
        }
        let sizes = &self.config.candidates;
        let risks = s.risk.means(sizes);
        let score = |k: usize| {
            let g = sizes[k] as f64;
            self.config.weight * (g - 1.0) / (g + 1.0) - s.queue * risks[k]
        };
        let mut best = s.arm;
        for k in 0..sizes.len() {
            if score(k) > score(best) {
                best = k;
            }
        }
        let next = match best.cmp(&s.arm) {
            core::cmp::Ordering::Less => s.arm - 1,
            core::cmp::Ordering::Equal => return,
            core::cmp::Ordering::Greater => s.arm + 1,
        };
        (s.arm, s.since_change) = (next, 0);
    }
}

impl GroupSizer for Sagc {
    fn group_size(&self) -> usize {
        self.config.candidates[self.state.arm]
    }

    fn observe(&mut self, seen: &GroupReport<'_>) {
        let own = self.config.reference == Reference::Group;
        // the present step does not define its own stragglers, but the first one must
        let normal = if own { None } else { Some(self.state.reference.unwrap_or_else(|| typical(seen))) };
        let Some(count) = Straggling::count(seen, self.config.threshold, normal) else { return };
        let out_of_reach = self.out_of_reach();
        let latest = typical(seen);
        self.state.reference = Some(match self.state.reference {
            Some(m) => REFERENCE_FADE * m + (1.0 - REFERENCE_FADE) * latest,
            None => latest,
        });
        // a size that is no candidate teaches about rollouts and, as the nearest one, about groups
        let arm = nearest(&self.config.candidates, seen.group_size);
        self.state.risk.observe(self.config.fade, arm, &count);
        let excess = count.rate() - self.config.budget;
        if self.state.arm == 0 && excess > 0.0 && out_of_reach {
            self.state.infeasible += excess;
        } else {
            self.state.queue = (self.state.queue + excess).max(0.0);
        }
        self.decide();
    }

    fn save(&self) -> String {
        let s = &self.state;
        let mut text = format!("sagc {} {} {}", s.arm, s.since_change, self.config.candidates.len());
        let reference = s.reference.unwrap_or(f64::NAN);
        let scalars = [s.queue, reference, s.infeasible, s.risk.a, s.risk.b];
        for x in scalars.iter().chain(&s.risk.events).chain(&s.risk.groups) {
            text += &format!(" {x:?}");
        }
        text
    }

    fn restore(&mut self, saved: &str) -> Result<(), StateError> {
        let n = self.config.candidates.len();
        let state =
            read(saved, n).ok_or_else(|| StateError(format!("expected one of {n} candidates, found `{saved}`")))?;
        self.state = state;
        Ok(())
    }
}

/// What [`Sagc::save`] wrote, for that many candidates.
fn read(saved: &str, candidates: usize) -> Option<SagcState> {
    let mut words = saved.strip_prefix("sagc ")?.split(' ');
    let (arm, since_change) = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
    let n: usize = words.next()?.parse().ok()?;
    let x: Vec<f64> = words.map(|w| w.parse().ok()).collect::<Option<_>>()?;
    if n != candidates || arm >= n || x.len() != 5 + 2 * n {
        return None;
    }
    let risk = Risk { a: x[3], b: x[4], events: x[5..5 + n].into(), groups: x[5 + n..].into() };
    let reference = Some(x[1]).filter(|m| !m.is_nan());
    Some(SagcState { arm, queue: x[0], reference, since_change, infeasible: x[2], risk })
}

/// Median of all lengths; 0 if there are none.
fn typical(seen: &GroupReport<'_>) -> f64 {
    if seen.length.is_empty() { 0.0 } else { median(seen.length) }
}

fn nearest(sizes: &[usize], g: usize) -> usize {
    let mut best = 0;
    for k in 0..sizes.len() {
        if sizes[k].abs_diff(g) < sizes[best].abs_diff(g) {
            best = k;
        }
    }
    best
}
