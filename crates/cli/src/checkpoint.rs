//! A run's state in a file, and what the loop itself must remember.

use std::collections::VecDeque;
use std::path::Path;

use anyhow::{Context, Result, bail};
use onpolicy::{Bundle, Persist};

use crate::agent::Agent;

/// Whole training episodes over which the mean return is taken.
const WINDOW: usize = 100;

/// Where the loop is.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Position {
    /// Updates done.
    pub updates: u64,
    /// Seconds of training, over all sittings.
    pub wall_s: f64,
    /// Returns of the last whole episodes.
    pub recent: VecDeque<f64>,
    /// Highest mean return so far over a full window.
    pub best: Option<f64>,
}

impl Position {
    /// Takes in the episodes of an update.
    pub(crate) fn observe(&mut self, returns: &[f64]) {
        self.recent.extend(returns);
        while self.recent.len() > WINDOW {
            self.recent.pop_front();
        }
    }

    /// Mean return of the last whole episodes; `None` before the first one ends.
    pub(crate) fn return_mean(&self) -> Option<f64> {
        (!self.recent.is_empty()).then(|| self.recent.iter().sum::<f64>() / self.recent.len() as f64)
    }

    /// Whether the mean return is a new best; remembers it.
    pub(crate) fn improves(&mut self) -> bool {
        let Some(mean) = self.return_mean().filter(|_| self.recent.len() == WINDOW) else { return false };
        let better = self.best.is_none_or(|b| mean > b);
        if better {
            self.best = Some(mean);
        }
        better
    }
}

impl Persist for Position {
    fn save(&self, prefix: &str, to: &mut Bundle) {
        to.put_u64(&format!("{prefix}.updates"), &[self.updates]);
        to.put_u64(&format!("{prefix}.wall_f64_bits"), &[self.wall_s.to_bits()]);
        to.put_u64(&format!("{prefix}.best_f64_bits"), &[self.best.unwrap_or(f64::NAN).to_bits()]);
        to.put_u64(&format!("{prefix}.recent_len"), &[self.recent.len() as u64]);
        let recent: Vec<u64> = self.recent.iter().map(|r| r.to_bits()).collect();
        to.put_u64(&format!("{prefix}.recent_f64_bits"), &recent);
    }

    fn load(&mut self, prefix: &str, from: &Bundle) -> Result<(), onpolicy::BundleError> {
        let one = |name: &str| Ok::<u64, onpolicy::BundleError>(from.u64s(&format!("{prefix}.{name}"), 1)?[0]);
        self.updates = one("updates")?;
        self.wall_s = f64::from_bits(one("wall_f64_bits")?);
        self.best = Some(f64::from_bits(one("best_f64_bits")?)).filter(|b| !b.is_nan());
        let len = one("recent_len")? as usize;
        let recent = from.u64s(&format!("{prefix}.recent_f64_bits"), len)?;
        self.recent = recent.iter().map(|r| f64::from_bits(*r)).collect();
        Ok(())
    }
}

/// Writes everything, atomically. `config` is the text of config.toml, so that the file stands on its own.
pub(crate) fn write(path: &Path, agent: &dyn Agent, position: &Position, config: &str) -> Result<()> {
    let mut bundle = Bundle::default();
    agent.save(&mut bundle);
    position.save("loop", &mut bundle);
    bundle.put_text("config", config);
    Ok(bundle.write(path)?)
}

/// Reads everything back.
pub(crate) fn read(path: &Path, agent: &mut dyn Agent, config: &str) -> Result<Position> {
    let bundle = Bundle::read(path)?;
    if bundle.text("config")? != config {
        bail!(
            "{} was written with other settings than config.toml has now; restore config.toml (the checkpoint holds a copy \
             under `config`) or start a new run",
            path.display()
        );
    }
    let mut position = Position::default();
    position.load("loop", &bundle).with_context(|| path.display().to_string())?;
    agent.load(&bundle).with_context(|| path.display().to_string())?;
    Ok(position)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mean_return_is_over_the_last_hundred_whole_episodes() {
        let mut p = Position::default();
        assert_eq!(p.return_mean(), None);
        p.observe(&[10.0; 50]);
        assert!(!p.improves(), "half a window decides nothing");
        p.observe(&[20.0; 50]);
        assert_eq!(p.return_mean(), Some(15.0));
        assert!(p.improves() && !p.improves());
        p.observe(&[30.0; 50]);
        assert_eq!(p.return_mean(), Some(25.0));
        assert!(p.improves());
    }

    #[test]
    fn a_position_survives_its_bundle() {
        for best in [None, Some(3.5)] {
            let p = Position { updates: 7, wall_s: 0.1, recent: VecDeque::from([1.0, -2.0]), best };
            let mut bundle = Bundle::default();
            p.save("loop", &mut bundle);
            let mut q = Position::default();
            q.load("loop", &bundle).unwrap();
            assert_eq!(p, q);
        }
    }
}
