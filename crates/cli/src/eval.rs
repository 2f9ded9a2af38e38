//! Returns over fresh episodes.

use std::path::Path;

use anyhow::{Context, Result, bail};
use onpolicy::Bundle;
use serde_json::{Map, Value, json};

use crate::Outcome;
use crate::agent::{self, Agent};
use crate::args::{self, Mode, Which};
use crate::config::RunConfig;
use crate::run_dir;
use crate::train::threads;

/// How to evaluate.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Settings {
    pub mode: Mode,
    pub episodes: usize,
    pub k: usize,
    pub seed: u64,
}

impl Default for Settings {
    fn default() -> Self {
        Settings { mode: Mode::Ode, episodes: 64, k: 16, seed: 0 }
    }
}

/// What came out.
pub(crate) struct Evaluation {
    task: String,
    settings: Settings,
    returns: Vec<f64>,
}

impl Evaluation {
    fn mean(&self) -> f64 {
        self.returns.iter().sum::<f64>() / self.returns.len() as f64
    }

    /// Standard error of the mean; 0 for one episode.
    fn standard_error(&self) -> f64 {
        let n = self.returns.len() as f64;
        let mean = self.mean();
        let square = self.returns.iter().map(|r| (r - mean).powi(2)).sum::<f64>();
        if n < 2.0 { 0.0 } else { (square / (n - 1.0) / n).sqrt() }
    }

    fn extremes(&self) -> [f64; 2] {
        let fold = |f: fn(f64, f64) -> f64| self.returns.iter().copied().reduce(f).unwrap_or(f64::NAN);
        [fold(f64::min), fold(f64::max)]
    }

    /// For people.
    pub(crate) fn line(&self) -> String {
        let [min, max] = self.extremes();
        format!(
            "return over {} fresh episodes ({}): mean {:.1}, standard error {:.1}, min {min:.1}, max {max:.1}",
            self.returns.len(),
            self.settings.mode.name(),
            self.mean(),
            self.standard_error()
        )
    }

    fn json(&self) -> Value {
        let [min, max] = self.extremes();
        let mut object = json!({
            "task": self.task,
            "mode": self.settings.mode.name(),
            "episodes": self.returns.len(),
            "seed": self.settings.seed,
            "mean": self.mean(),
            "standard_error": self.standard_error(),
            "min": min,
            "max": max,
        });
        if self.settings.mode == Mode::BestOfK {
            object["k"] = json!(self.settings.k);
        }
        object
    }
}

/// Runs the episodes side by side.
pub(crate) fn evaluate(agent: &dyn Agent, config: &RunConfig, settings: Settings) -> Result<Evaluation> {
    let mut env = agent::environments(config, settings.episodes, false)?;
    let returns = agent.evaluate(&mut env, settings.mode, settings.k, settings.seed)?;
    Ok(Evaluation { task: config.task.clone(), settings, returns })
}

/// Keeps the result in the run's `eval.json`, one entry a mode.
pub(crate) fn record(root: &Path, result: &Evaluation) -> Result<()> {
    let path = root.join("eval.json");
    let old = std::fs::read_to_string(&path).ok().and_then(|t| serde_json::from_str::<Map<String, Value>>(&t).ok());
    let mut all = old.unwrap_or_default();
    all.insert(result.settings.mode.name().into(), result.json());
    let text = serde_json::to_string_pretty(&Value::Object(all))? + "\n";
    onpolicy::write_atomically(&path, text.as_bytes()).with_context(|| path.display().to_string())
}

/// `phalanx eval`.
pub(crate) fn command(a: args::Eval) -> Result<Outcome> {
    threads(a.threads)?;
    let config = run_dir::read_config(&a.dir)?;
    let path = match a.checkpoint {
        Which::Best => Some(run_dir::best(&a.dir)).filter(|p| p.is_file()),
        Which::Latest => run_dir::checkpoints(&a.dir)?.into_iter().next(),
    };
    let Some(path) = path else {
        bail!(
            "{} has no such checkpoint yet; let it train on: phalanx train --resume {}",
            a.dir.display(),
            a.dir.display()
        );
    };
    let bundle = Bundle::read(&path)?;
    let mut agent = agent::build(&config, 1)?;
    agent.load_to_act(&bundle).with_context(|| path.display().to_string())?;
    let settings = Settings { mode: a.mode, episodes: a.episodes as usize, k: a.k as usize, seed: a.seed };
    let result = evaluate(&*agent, &config, settings)?;
    record(&a.dir, &result)?;
    if a.json {
        println!("{}", result.json());
    } else {
        println!("{}", result.line());
    }
    Ok(Outcome::Done)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_summary_is_that_of_the_returns() {
        let e = Evaluation { task: "t".into(), settings: Settings::default(), returns: vec![1.0, 2.0, 3.0, 6.0] };
        assert_eq!((e.mean(), e.extremes()), (3.0, [1.0, 6.0]));
        // squares 4 + 1 + 0 + 9 = 14; √(14/3/4)
        assert!((e.standard_error() - 1.080_123_449_7).abs() < 1e-9);
        let one = Evaluation { returns: vec![5.0], ..e };
        assert_eq!(one.standard_error(), 0.0);
    }
}
