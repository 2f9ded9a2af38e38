//! A chance constraint per step, without a queue.

use alloc::string::String;
use alloc::vec::Vec;

use crate::control::Control;
use crate::risk::{Beta, SharedRisk, rising};
use crate::{ConfigError, GroupReport, GroupSizer, SagcConfig, StateError, Status};

/// The largest size that meets the budget with enough certainty; the smallest if none does.
///
/// ```text
/// G = the largest candidate with P(r(G') ≤ ε) ≥ 1 − δ for every candidate G' ≤ G
/// ```
///
/// r(G) has the posterior of [`crate::Sagc`], dwell and one candidate per change as there. Budget that one step leaves
/// unused is lost to the next, so the rate stays below ε. A size that was not seen for long is known only as well as 20
/// groups tell, and is not tried before the chance allows for that. Weight, utility, estimate and anti-windup of the
/// settings have no effect; the queue is kept for [`GreedyChance::status`] alone.
#[derive(Clone, Debug, PartialEq)]
pub struct GreedyChance {
    control: Control,
    risk: SharedRisk,
    delta: f64,
}

const HEADER: &str = "greedy-chance/1";

impl GreedyChance {
    /// `delta`: δ, the accepted chance that the risk is above the budget, in (0, 1). Errors: [`ConfigError`] names the
    /// setting out of range.
    pub fn new(config: SagcConfig, delta: f64) -> Result<Self, ConfigError> {
        if !(delta > 0.0 && delta < 1.0) {
            return Err(ConfigError::Range("delta", delta, "between 0 and 1"));
        }
        let control = Control::new(config)?;
        Ok(GreedyChance { risk: SharedRisk::new(control.candidates()), control, delta })
    }

    fn posteriors(&self) -> Vec<Beta> {
        self.risk.posteriors(&self.control.config.candidates)
    }

    fn out_of_reach(&self) -> bool {
        self.posteriors()[0].clearly_above(self.control.config.budget)
    }

    /// Where it stands, to print or to log.
    pub fn status(&self) -> Status {
        let risks = rising(self.posteriors().iter().map(Beta::mean));
        self.control.status(&risks, self.out_of_reach())
    }
}

impl GroupSizer for GreedyChance {
    fn group_size(&self) -> usize {
        self.control.group_size()
    }

    fn observe(&mut self, seen: &GroupReport<'_>) {
        let Some((arm, count)) = self.control.take(seen) else { return };
        let out_of_reach = self.out_of_reach();
        self.control.book(&count, out_of_reach);
        self.risk.observe(self.control.config.fade, arm, &count);
        let (budget, certain) = (self.control.config.budget, 1.0 - self.delta);
        let meeting = self.posteriors().iter().take_while(|p| p.chance_below(budget) >= certain).count();
        self.control.move_towards(meeting.saturating_sub(1));
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
        (self.control, self.risk) = (control, risk);
        Ok(())
    }
}
