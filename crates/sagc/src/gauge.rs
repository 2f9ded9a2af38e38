//! Measures straggling over a run, whoever chose the sizes.

use crate::saved::{Line, StateError, Words};
use crate::straggler::{Reference, Straggling, median};
use crate::{ConfigError, GroupReport};

/// The rate of straggling groups over a run, and how many rollouts were cut.
///
/// ```text
/// rollout i straggles:  L_i > κ·m_{t−1},   m_t = 0.9·m_{t−1} + 0.1·median of step t's lengths
/// s_t = share of groups with a straggler
/// ```
///
/// The first step is compared with its own median. With [`Reference::Group`], m is the median of the rollout's group.
/// [`crate::Sagc`] has one inside; to measure a sizer that has none, keep one next to it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Gauge {
    threshold: f64,
    reference: Reference,
    median: Option<f64>,
    steps: u64,
    total: f64,
    clipped: Option<f64>,
}

/// Weight of the past in the running median.
const FADE: f64 = 0.9;

impl Gauge {
    /// `threshold`: κ. Errors: it is not a finite number above 1.
    pub fn new(threshold: f64, reference: Reference) -> Result<Self, ConfigError> {
        if !(threshold > 1.0 && threshold.is_finite()) {
            return Err(ConfigError::Range("threshold", threshold, "above 1"));
        }
        Ok(Gauge { threshold, reference, median: None, steps: 0, total: 0.0, clipped: None })
    }

    /// Takes in a step and counts its stragglers. `None`, and nothing changed, if the report is not usable.
    pub fn observe(&mut self, seen: &GroupReport<'_>) -> Option<Straggling> {
        if !seen.is_usable() {
            return None;
        }
        let latest = median(seen.length);
        let normal = match self.reference {
            // the present step does not define its own stragglers, but the first one must
            Reference::Running => Some(self.median.unwrap_or(latest)),
            Reference::Group => None,
        };
        let count = Straggling::count(seen, self.threshold, normal)?;
        self.median = Some(match self.median {
            Some(m) => FADE * m + (1.0 - FADE) * latest,
            None => latest,
        });
        self.steps += 1;
        self.total += count.rate();
        self.clipped = seen.clipped();
        Some(count)
    }

    /// m: running median length, in the unit of the lengths. `None` before the first step.
    pub fn median(&self) -> Option<f64> {
        self.median
    }

    /// Steps that were taken in.
    pub fn steps(&self) -> u64 {
        self.steps
    }

    /// Mean of s_t over the run so far, in [0, 1]. `None` before the first step.
    pub fn rate(&self) -> Option<f64> {
        (self.steps > 0).then(|| self.total / self.steps as f64)
    }

    /// Share of the latest step's rollouts that were cut. `None` if the report did not say.
    pub fn clipped(&self) -> Option<f64> {
        self.clipped
    }

    pub(crate) fn write(&self, line: &mut Line) {
        line.word(self.steps).floats(&[self.total]).maybe(self.median).maybe(self.clipped);
    }

    /// What was written, with the settings of `self`.
    pub(crate) fn read(&self, words: &mut Words<'_>) -> Result<Self, StateError> {
        Ok(Gauge {
            steps: words.word("number of steps", |_| true)?,
            total: words.amount("sum of rates")?,
            median: words.maybe("running median")?,
            clipped: words.maybe("share of cut rollouts")?,
            ..*self
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_is_compared_with_the_medians_before_it() {
        let mut gauge = Gauge::new(2.5, Reference::Running).unwrap();
        // against its own median of 100: 260 straggles
        assert_eq!(gauge.observe(&GroupReport::new(2, &[100.0, 100.0, 100.0, 260.0])).unwrap().events, 1);
        // everything is three times as long: against 100 all straggle
        assert_eq!(gauge.observe(&GroupReport::new(2, &[300.0; 4])).unwrap().events, 2);
        assert_eq!(gauge.median(), Some(0.9 * 100.0 + (1.0 - 0.9) * 300.0));
        assert_eq!((gauge.steps(), gauge.rate()), (2, Some(0.75)));
    }

    #[test]
    fn cut_rollouts_are_a_share_of_the_latest_step() {
        let mut gauge = Gauge::new(2.5, Reference::Running).unwrap();
        gauge.observe(&GroupReport::new(2, &[1.0; 4]).with_truncated(&[true, true, true, false]));
        assert_eq!(gauge.clipped(), Some(0.75));
        gauge.observe(&GroupReport::new(2, &[1.0; 4]));
        assert_eq!(gauge.clipped(), None);
    }
}
