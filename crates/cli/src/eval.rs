//! Returns over fresh episodes.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use onpolicy::Bundle;
use serde_json::{Map, Value, json};

use crate::Outcome;
use crate::agent;
use crate::args::{self, Mode, SplitArg, Which};
use crate::run_dir;
use crate::train::threads;

/// What is asked of an evaluation. What is `None` depends on the kind of run.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Asked {
    pub mode: Option<Mode>,
    /// Episodes, or prompts of a text task.
    pub episodes: Option<usize>,
    pub k: usize,
    pub seed: u64,
    /// Text only.
    pub split: Option<SplitArg>,
    /// Text only: completions per prompt.
    pub samples: Option<usize>,
    /// Text only: where every completion is written.
    pub completions: Option<PathBuf>,
}

impl Default for Asked {
    fn default() -> Self {
        Asked { mode: None, episodes: None, k: 16, seed: 0, split: None, samples: None, completions: None }
    }
}

/// What came out.
pub(crate) struct Evaluation {
    /// Its entry in `eval.json`.
    pub key: String,
    pub json: Value,
    /// For people.
    pub line: String,
}

/// Summary of episodes' returns. Errors if one is not finite.
pub(crate) fn returns(task: &str, mode: Mode, k: Option<usize>, seed: u64, returns: &[f64]) -> Result<Evaluation> {
    if returns.iter().any(|r| !r.is_finite()) {
        bail!("a return is not finite: the policy's weights are not usable");
    }
    let [mean, error, min, max] = summary(returns);
    let mut json = json!({
        "task": task,
        "mode": mode.name(),
        "episodes": returns.len(),
        "seed": seed,
        "mean": mean,
        "standard_error": error,
        "min": min,
        "max": max,
    });
    if let Some(k) = k {
        json["k"] = json!(k);
    }
    let line = format!(
        "return over {} fresh episodes ({}): mean {mean:.1}, standard error {error:.1}, min {min:.1}, max {max:.1}",
        returns.len(),
        mode.name()
    );
    Ok(Evaluation { key: mode.name().into(), json, line })
}

/// Mean, its standard error (0 for one number), least, largest.
fn summary(x: &[f64]) -> [f64; 4] {
    let n = x.len() as f64;
    let mean = x.iter().sum::<f64>() / n;
    let square = x.iter().map(|r| (r - mean).powi(2)).sum::<f64>();
    let error = if n < 2.0 { 0.0 } else { (square / (n - 1.0) / n).sqrt() };
    let fold = |f: fn(f64, f64) -> f64| x.iter().copied().reduce(f).unwrap_or(f64::NAN);
    [mean, error, fold(f64::min), fold(f64::max)]
}

/// Keeps the result in the run's `eval.json`, one entry a way of evaluating.
pub(crate) fn record(root: &Path, result: &Evaluation) -> Result<()> {
    let path = root.join("eval.json");
    let old = std::fs::read_to_string(&path).ok().and_then(|t| serde_json::from_str::<Map<String, Value>>(&t).ok());
    let mut all = old.unwrap_or_default();
    all.insert(result.key.clone(), result.json.clone());
    let text = serde_json::to_string_pretty(&Value::Object(all))? + "\n";
    onpolicy::write_atomically(&path, text.as_bytes()).with_context(|| path.display().to_string())
}

/// `phalanx eval`.
pub(crate) fn command(a: args::Eval) -> Result<Outcome> {
    threads(a.threads)?;
    let settings = run_dir::read_config(&a.dir)?;
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
    let mut agent = agent::build_to_act(&settings)?;
    agent.load_to_act(&bundle).with_context(|| path.display().to_string())?;
    let asked = Asked {
        mode: a.mode,
        episodes: a.episodes.map(|n| n as usize),
        k: a.k as usize,
        seed: a.seed,
        split: a.split,
        samples: a.samples.map(|n| n as usize),
        completions: a.completions,
    };
    let result = agent.evaluate(&asked)?;
    record(&a.dir, &result)?;
    if a.json {
        println!("{}", result.json);
    } else {
        println!("{}", result.line);
    }
    Ok(Outcome::Done)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_summary_is_that_of_the_returns() {
        // squares 4 + 1 + 0 + 9 = 14; √(14/3/4)
        let [mean, error, min, max] = summary(&[1.0, 2.0, 3.0, 6.0]);
        assert_eq!((mean, min, max), (3.0, 1.0, 6.0));
        assert!((error - 1.080_123_449_7).abs() < 1e-9);
        assert_eq!(summary(&[5.0]), [5.0, 0.0, 5.0, 5.0]);
        assert!(returns("t", Mode::Ode, None, 0, &[1.0, f64::NAN]).is_err());
    }
}
