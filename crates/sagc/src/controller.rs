//! The controller: a virtual queue of straggling groups beyond the budget.

use alloc::string::String;
use alloc::vec::Vec;

use crate::control::Control;
use crate::risk::{Beta, SharedRisk, rising};
use crate::{ConfigError, GroupReport, GroupSizer, SagcConfig, StateError, Status};

/// Straggler-aware group control.
///
/// ```text
/// rollout i straggles:  L_i > κ·m,  m the reference, by default an average of earlier steps' median lengths
/// s_t = share of groups with a straggler
/// Q  ← max(0, Q + s_t − ε)
/// G  = argmax_G V·U(G) − Q·r̂(G),   at most one candidate up or down, after ≥ H steps
/// r̂(G) = (20·r_rollouts(G) + events_G)/(20 + groups_G), then the running maximum over G
/// ```
///
/// U is [`crate::Utility`], r_rollouts is [`crate::beta_binomial_risk`], and the counts fade by γ per step. For any
/// sequence of lengths Σ(s_t − ε) ≤ Q + infeasible debt, so the long-run rate meets the budget whenever some candidate
/// can meet it: then Q stays bounded and next to nothing is infeasible.
///
/// Where no candidate can, excess at the smallest size is not queued but counted in [`Status::infeasible_debt`]; a queue
/// wound up there would keep groups small long after the cause is gone. "Can not" is decided before the step is looked
/// at, by the estimated risk of the smallest size lying two standard errors above the budget. Withholding whatever
/// exceeds the budget at the smallest size would break a budget that can be met: rates scatter about their mean, and
/// only the lucky half would be booked (0.29 instead of 0.25 in `a_budget_that_only_the_smallest_size_meets_is_met`).
///
/// It starts at the largest candidate. Neely 2010, ch. 4 (drift plus penalty); the setting of arXiv 2606.02218.
#[derive(Clone, Debug, PartialEq)]
pub struct Sagc {
    control: Control,
    risk: SharedRisk,
}

const HEADER: &str = "sagc/1";

impl Sagc {
    /// Errors: [`ConfigError`] names the setting out of range.
    pub fn new(config: SagcConfig) -> Result<Self, ConfigError> {
        let control = Control::new(config)?;
        Ok(Sagc { risk: SharedRisk::new(control.candidates()), control })
    }

    /// The settings.
    pub fn config(&self) -> &SagcConfig {
        &self.control.config
    }

    fn posteriors(&self) -> Vec<Beta> {
        self.risk.posteriors(&self.control.config.candidates)
    }

    /// Estimated risk r̂ of every candidate: the means of the posteriors, never falling with size.
    pub fn risks(&self) -> Vec<f64> {
        rising(self.posteriors().iter().map(Beta::mean))
    }

    /// Whether even the smallest size straggles too often, by two standard errors: raise the budget, raise the threshold
    /// or offer smaller sizes.
    pub fn out_of_reach(&self) -> bool {
        self.posteriors()[0].clearly_above(self.control.config.budget)
    }

    /// Where it stands, to print or to log.
    pub fn status(&self) -> Status {
        self.control.status(&self.risks(), self.out_of_reach())
    }
}

impl GroupSizer for Sagc {
    fn group_size(&self) -> usize {
        self.control.group_size()
    }

    fn observe(&mut self, seen: &GroupReport<'_>) {
        let Some((arm, count)) = self.control.take(seen) else { return };
        let out_of_reach = self.out_of_reach();
        self.control.book(&count, out_of_reach);
        self.risk.observe(self.control.config.fade, arm, &count);
        let posteriors = self.posteriors();
        let risks = rising(self.control.estimate(&posteriors).into_iter());
        self.control.choose(&risks);
    }

    fn save(&self) -> String {
        let mut line = self.control.write(HEADER);
        self.risk.write(&mut line);
        line.finish()
    }

    fn restore(&mut self, saved: &str) -> Result<(), StateError> {
        let (control, mut words) = self.control.read(HEADER, saved)?;
        let risk = SharedRisk::read(&mut words, control.candidates())?;
        words.end()?;
        *self = Sagc { control, risk };
        Ok(())
    }
}
