//! The table of tasks.

use std::io::{Write, stdout};

use anyhow::Result;
use serde_json::{Value, json};
use sim_vec::registry::{self, TaskInfo};

use crate::Outcome;
use crate::args;

/// `phalanx tasks`.
pub(crate) fn command(a: &args::Tasks) -> Result<Outcome> {
    let all = registry::tasks();
    let mut out = stdout().lock();
    if a.json {
        let list: Vec<Value> = all.iter().map(object).collect();
        writeln!(out, "{}", serde_json::to_string_pretty(&list)?)?;
        return Ok(Outcome::Done);
    }
    let header = ["task", "suite", "status", "obs", "act", "step (s)", "steps", "reference"].map(String::from);
    let size = |n: Option<usize>| n.map_or("-".into(), |n| n.to_string());
    let rows: Vec<[String; 8]> = std::iter::once(header)
        .chain(all.iter().map(|t| {
            [
                t.name.into(),
                t.suite.name().into(),
                t.status.name().into(),
                size(t.obs_dim),
                size(t.act_dim),
                t.dt_s.to_string(),
                t.episode_steps.to_string(),
                t.reference.into(),
            ]
        }))
        .collect();
    let width = |k: usize| rows.iter().map(|r| r[k].chars().count()).max().unwrap_or(0);
    let widths: [usize; 8] = std::array::from_fn(width);
    for row in &rows {
        let cells: Vec<String> = row.iter().zip(widths).map(|(cell, w)| format!("{cell:w$}")).collect();
        writeln!(out, "{}", cells.join("  ").trim_end())?;
    }
    Ok(Outcome::Done)
}

fn object(t: &TaskInfo) -> Value {
    json!({
        "name": t.name,
        "suite": t.suite.name(),
        "status": t.status.name(),
        "observation_size": t.obs_dim,
        "action_size": t.act_dim,
        "control_step_s": t.dt_s,
        "episode_steps": t.episode_steps,
        "discount": t.discount,
        "reference": t.reference,
    })
}
