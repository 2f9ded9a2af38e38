//! What a user may want to know between two steps.

use alloc::vec::Vec;
use core::fmt;

/// Where an adaptive sizer stands. [`fmt::Display`] prints it as one line, warnings last.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Status {
    /// Members per group in the next step.
    pub group_size: usize,
    /// Steps that were taken in.
    pub steps: u64,
    /// Mean share of groups that straggled, over all steps so far. `None` before the first.
    pub straggler_rate: Option<f64>,
    /// ε: share of groups that may straggle.
    pub budget: f64,
    /// Q: straggling beyond the budget, not yet made up for, in shares times steps.
    pub queue: f64,
    /// Straggling beyond the budget that even the smallest size could not avoid; not in the queue.
    pub infeasible_debt: f64,
    /// Whether even the smallest size straggles more often than the budget allows, by two standard errors.
    pub out_of_reach: bool,
    /// Share of the latest step's rollouts that were cut at the longest length. `None` if the report did not say.
    pub clipped: Option<f64>,
    /// Candidate sizes and the risk, mean of its posterior, that a group of each straggles.
    pub risks: Vec<(usize, f64)>,
}

impl Status {
    /// Whether more than half of the latest step's rollouts were cut. Then the median is the limit itself, nothing is
    /// much longer than it, and no group looks late although all are: raise the limit, or distrust the rate.
    pub fn clipped_alarm(&self) -> bool {
        self.clipped.is_some_and(|c| c > 0.5)
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "groups of {} after {} steps", self.group_size, self.steps)?;
        if let Some(rate) = self.straggler_rate {
            write!(f, "; {:.1} % straggled, budget {:.1} %", 100.0 * rate, 100.0 * self.budget)?;
        }
        write!(f, "; queue {:.2}; risk", self.queue)?;
        for (k, (g, risk)) in self.risks.iter().enumerate() {
            write!(f, "{} {g}: {risk:.2}", if k > 0 { "," } else { "" })?;
        }
        if self.infeasible_debt > 0.0 {
            write!(f, "; infeasible debt {:.2}", self.infeasible_debt)?;
        }
        if self.out_of_reach {
            write!(f, "; budget out of reach: raise budget or threshold, or offer smaller sizes")?;
        }
        if let Some(clipped) = self.clipped.filter(|_| self.clipped_alarm()) {
            write!(f, "; {:.0} % of rollouts were cut, which hides stragglers: raise the limit", 100.0 * clipped)?;
        }
        Ok(())
    }
}
