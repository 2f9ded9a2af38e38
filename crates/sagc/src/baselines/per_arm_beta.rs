//! A risk per size, learned apart.

use alloc::string::String;
use alloc::vec::Vec;

use crate::control::Control;
use crate::math::{exp, ln};
use crate::risk::{Beta, GroupCounts};
use crate::{ConfigError, GroupReport, GroupSizer, SagcConfig, StateError, Status};

/// The queue of [`crate::Sagc`] with one Beta posterior per size and nothing shared between sizes.
///
/// ```text
/// r(G) ~ Beta(10·ρ_G + events_G, 10·(1 − ρ_G) + groups_G − events_G),   counts fade by γ per step
/// ρ_G = 1 − (1 − ε/2)^(G/G_1),   G_1 the smallest candidate
/// ```
///
/// A size that was never seen, or not for long, has the prior: the smallest straggles half as often as the budget
/// allows, larger ones as if of independent rollouts. A flat prior would not do: a smallest size thought worse than the
/// present one is never tried, however long the queue.
#[derive(Clone, Debug, PartialEq)]
pub struct PerArmBeta {
    control: Control,
    counts: GroupCounts,
}

const HEADER: &str = "per-arm-beta/1";
/// Groups that the prior is worth.
const PRIOR: f64 = 10.0;

impl PerArmBeta {
    /// Errors: [`ConfigError`] names the setting out of range.
    pub fn new(config: SagcConfig) -> Result<Self, ConfigError> {
        let control = Control::new(config)?;
        Ok(PerArmBeta { counts: GroupCounts::new(control.candidates()), control })
    }

    fn posteriors(&self) -> Vec<Beta> {
        let SagcConfig { candidates, budget, .. } = &self.control.config;
        let stays = ln(1.0 - budget / 2.0) / candidates[0] as f64;
        self.counts.posteriors(candidates.iter().map(|&g| {
            let none = exp(stays * g as f64);
            Beta { a: PRIOR * (1.0 - none), b: PRIOR * none }
        }))
    }

    fn out_of_reach(&self) -> bool {
        self.posteriors()[0].clearly_above(self.control.config.budget)
    }

    /// Where it stands, to print or to log.
    pub fn status(&self) -> Status {
        let risks: Vec<f64> = self.posteriors().iter().map(Beta::mean).collect();
        self.control.status(&risks, self.out_of_reach())
    }
}

impl GroupSizer for PerArmBeta {
    fn group_size(&self) -> usize {
        self.control.group_size()
    }

    fn observe(&mut self, seen: &GroupReport<'_>) {
        let Some((arm, count)) = self.control.take(seen) else { return };
        let out_of_reach = self.out_of_reach();
        self.control.book(&count, out_of_reach);
        self.counts.observe(self.control.config.fade, arm, &count);
        let posteriors = self.posteriors();
        let risks = self.control.estimate(&posteriors);
        self.control.choose(&risks);
    }

    fn save(&self) -> String {
        let mut line = self.control.write(HEADER);
        self.counts.write(&mut line);
        line.finish()
    }

    fn restore(&mut self, saved: &str) -> Result<(), StateError> {
        let (control, mut words) = self.control.read(HEADER, saved)?;
        let counts = GroupCounts::read(&mut words, control.candidates())?;
        words.end()?;
        *self = PerArmBeta { control, counts };
        Ok(())
    }
}
