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
    /// What the episode is about, for tasks that draw it: position of the target (reacher: x, y; fish: x, y, z) or
    /// its angle (finger-turn).
    target: Option<Target>,
}

/// One number may stand without brackets.
#[derive(Deserialize)]
#[serde(untagged, expecting = "target: numbers, as in [0.1, 0.2]")]
enum Target {
    One(f64),
    Many(Vec<f64>),
}

impl State {
    /// The goal, of the length the task needs.
    fn goal(&self, task: &str, needed: usize) -> Result<&[f64]> {
        let given = match &self.target {
            Some(Target::One(x)) => std::slice::from_ref(x),
            Some(Target::Many(x)) => x,
            None if needed == 0 => &[],
            None => return Err(anyhow!("task `{task}` draws a target; add \"target\": [{needed} numbers]")),
        };
        let got = given.len();
        if got == needed { Ok(given) } else { Err(anyhow!("target has {got} numbers, task `{task}` needs {needed}")) }
    }
}

/// `phalanx physics`.
pub(crate) fn physics(a: &args::Physics) -> Result<Outcome> {
    let model = sim_vec::mjcf::load(&a.model)?;
    let mut physics = Physics::new(model, a.precision.into(), None)?;
    each(|s: State| {
        if s.target.is_some() {
            return Err(anyhow!("a model has no target; remove the key"));
        }
        let out = physics.evaluate(&s.qpos, &s.qvel, &s.act, &s.ctrl)?;
        Ok(json!({ "qacc": out.qacc, "qpos": out.qpos, "qvel": out.qvel, "act": out.act, "ncon": out.ncon }))
    })
}

/// `phalanx observe`.
pub(crate) fn observe(a: &args::Observe) -> Result<Outcome> {
    let mut observer = Observer::new(&a.task)?;
    each(|s: State| {
        no_activations(&s)?;
        let goal = s.goal(&a.task, observer.goal_dim())?;
        let out = observer.observe(&s.qpos, &s.qvel, &s.ctrl, goal)?;
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
