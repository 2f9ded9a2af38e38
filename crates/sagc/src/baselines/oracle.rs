//! What could be had if the risk were known.

use alloc::string::String;
use alloc::vec::Vec;

use crate::control::Control;
use crate::risk::rising;
use crate::{ConfigError, GroupReport, GroupSizer, SagcConfig, StateError, Status};

/// The queue of [`crate::Sagc`] with the true risk of every size, which only a simulation can tell.
#[derive(Clone, Debug, PartialEq)]
pub struct Oracle {
    control: Control,
    risks: Vec<f64>,
}

const HEADER: &str = "oracle/1";

impl Oracle {
    /// `risks`: `[candidates]`, probability that a group of each size straggles. Errors: [`ConfigError`] names the
    /// setting out of range. Panics if there is not one risk per candidate.
    pub fn new(config: SagcConfig, risks: &[f64]) -> Result<Self, ConfigError> {
        let mut oracle = Oracle { control: Control::new(config)?, risks: Vec::new() };
        oracle.tell(risks)?;
        Ok(oracle)
    }

    /// From now on these are the risks. As [`Oracle::new`]; after an error the old ones hold.
    pub fn tell(&mut self, risks: &[f64]) -> Result<(), ConfigError> {
        assert_eq!(risks.len(), self.control.candidates(), "one risk per candidate");
        if let Some(&r) = risks.iter().find(|r| !(0.0..=1.0).contains(*r)) {
            return Err(ConfigError::Range("risk", r, "from 0 to 1"));
        }
        self.risks = rising(risks.iter().copied());
        Ok(())
    }

    fn out_of_reach(&self) -> bool {
        self.risks[0] > self.control.config.budget
    }

    /// Where it stands, to print or to log.
    pub fn status(&self) -> Status {
        self.control.status(&self.risks, self.out_of_reach())
    }
}

impl GroupSizer for Oracle {
    fn group_size(&self) -> usize {
        self.control.group_size()
    }

    fn observe(&mut self, seen: &GroupReport<'_>) {
        let Some((_, count)) = self.control.take(seen) else { return };
        let out_of_reach = self.out_of_reach();
        self.control.book(&count, out_of_reach);
        self.control.choose(&self.risks);
    }

    fn save(&self) -> String {
        let mut line = self.control.write(HEADER);
        line.floats(&self.risks);
        line.finish()
    }

    fn restore(&mut self, saved: &str) -> Result<(), StateError> {
        let (control, mut words) = self.control.read(HEADER, saved)?;
        let risks = (0..control.candidates())
            .map(|_| words.word("a risk from 0 to 1", |r: &f64| (0.0..=1.0).contains(r)))
            .collect::<Result<_, _>>()?;
        words.end()?;
        *self = Oracle { control, risks };
        Ok(())
    }
}
