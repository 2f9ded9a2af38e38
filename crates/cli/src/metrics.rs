//! One JSON object per update, and the same numbers for TensorBoard.

use std::fs::File;
use std::io::Write;
use std::path::Path;

use anyhow::{Context, Result};
use serde_json::{Map, Value, json};

use crate::agent::Update;
use crate::checkpoint::Position;
use crate::settings::Settings;
use crate::tensorboard::EventFile;

/// Where a run's numbers go.
pub(crate) struct Metrics {
    lines: File,
    events: EventFile,
}

/// One line of `metrics.jsonl`.
pub(crate) struct Line {
    /// In the file's order; NaN becomes null.
    pub values: Vec<(String, f64)>,
}

impl Line {
    /// The numbers of one update that took that many seconds.
    pub(crate) fn new(position: &Position, settings: &Settings, seconds: f64, update: &Update) -> Self {
        let mut values = vec![("update".to_string(), position.updates as f64)];
        if let Settings::Steps(c) = settings {
            let per_update = c.steps_per_update();
            values.push(("env_steps".into(), (position.updates * per_update) as f64));
            values.push(("wall_s".into(), position.wall_s));
            values.push(("steps_per_s".into(), per_update as f64 / seconds));
        } else {
            values.push(("wall_s".into(), position.wall_s));
        }
        values.push(("return_mean".into(), position.return_mean().unwrap_or(f64::NAN)));
        values.push(("episodes".into(), update.returns.len() as f64));
        let rename = |name: &str| match name.strip_suffix("_s") {
            Some(phase) => format!("seconds_{phase}"),
            None => name.to_string(),
        };
        values.extend(update.scalars.iter().map(|(name, value)| (rename(name), *value)));
        Line { values }
    }

    pub(crate) fn get(&self, name: &str) -> Option<f64> {
        self.values.iter().find(|v| v.0 == name).map(|v| v.1).filter(|v| v.is_finite())
    }

    fn json(&self) -> Value {
        let whole = |x: f64| x.fract() == 0.0 && x.abs() < 9e15;
        let number = |x: f64| if whole(x) { json!(x as i64) } else { json!(x) };
        Value::Object(self.values.iter().map(|(k, v)| (k.clone(), number(*v))).collect::<Map<_, _>>())
    }
}

impl Metrics {
    /// Goes on at the end of `lines`; events go to a new file in `dir`.
    pub(crate) fn new(lines: File, dir: &Path) -> Result<Self> {
        Ok(Metrics { lines, events: EventFile::create(dir)? })
    }

    /// Writes one update's numbers and hands them to the system.
    pub(crate) fn write(&mut self, line: &Line, env_steps: u64) -> Result<()> {
        let mut text = line.json().to_string();
        text.push('\n');
        self.lines.write_all(text.as_bytes()).context("cannot write metrics.jsonl")?;
        let finite = line.values.iter().filter(|v| v.1.is_finite());
        self.events
            .scalars(env_steps, finite.map(|(k, v)| (k.as_str(), *v as f32)))
            .context("cannot write TensorBoard events")
    }

    /// Makes sure everything written is on disk.
    pub(crate) fn sync(&mut self) -> Result<()> {
        self.lines.sync_data().context("cannot write metrics.jsonl")
    }
}
