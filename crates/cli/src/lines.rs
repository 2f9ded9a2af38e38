//! The line protocols: one JSON object a line in, one out.

use std::io::{BufRead, Write, stdin, stdout};

use anyhow::{Context, Result, anyhow};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use sim_vec::observe::Observer;
use sim_vec::physics::Physics;

use crate::Outcome;
use crate::args;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct State {
    qpos: Vec<f64>,
    qvel: Vec<f64>,
    #[serde(default)]
    ctrl: Vec<f64>,
    #[serde(default)]
    act: Vec<f64>,
}

/// `phalanx physics`.
pub(crate) fn physics(a: &args::Physics) -> Result<Outcome> {
    let model = sim_vec::mjcf::load(&a.model)?;
    let mut physics = Physics::new(model, a.precision.into(), None)?;
    each(|s: State| {
        let out = physics.evaluate(&s.qpos, &s.qvel, &s.act, &s.ctrl)?;
        Ok(json!({ "qacc": out.qacc, "qpos": out.qpos, "qvel": out.qvel, "act": out.act, "ncon": out.ncon }))
    })
}

/// `phalanx observe`.
pub(crate) fn observe(a: &args::Observe) -> Result<Outcome> {
    let mut observer = Observer::new(&a.task)?;
    each(|s: State| {
        no_activations(&s)?;
        let out = observer.observe(&s.qpos, &s.qvel, &s.ctrl)?;
        Ok(json!({ "observation": out.observation, "reward": out.reward }))
    })
}

fn no_activations(s: &State) -> Result<()> {
    if s.act.is_empty() { Ok(()) } else { Err(anyhow!("act has {} numbers, the model needs 0", s.act.len())) }
}

/// Answers every line as it comes. Empty lines are skipped.
fn each<T: DeserializeOwned>(mut answer: impl FnMut(T) -> Result<Value>) -> Result<Outcome> {
    let mut out = stdout().lock();
    for (i, line) in stdin().lock().lines().enumerate() {
        let line = line.context("standard input")?;
        if line.trim().is_empty() {
            continue;
        }
        let value = serde_json::from_str(&line)
            .map_err(|e| anyhow!("{e}; write {{\"qpos\": […], \"qvel\": […], \"ctrl\": […]}}"))
            .and_then(&mut answer)
            .with_context(|| format!("line {} of standard input", i + 1))?;
        writeln!(out, "{value}")?;
        out.flush()?;
    }
    Ok(Outcome::Done)
}
