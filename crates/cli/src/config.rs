//! Everything a run is made of, as its `config.toml` holds it.

use anyhow::{Context, Result, anyhow, bail};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::args::{PolicyKind, PrecisionArg, TrainerKind};

/// A whole run. The names of its fields are the keys of `config.toml` and of `--set`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RunConfig {
    /// Format of this file.
    pub version: u32,
    pub task: String,
    pub seed: u64,
    /// Environment steps in all.
    pub steps: u64,
    pub env: EnvConfig,
    pub policy: PolicyConfig,
    pub trainer: TrainerConfig,
    pub critic: CriticSection,
    pub checkpoint: CheckpointConfig,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct EnvConfig {
    /// Parallel environments.
    pub envs: usize,
    pub precision: PrecisionArg,
    /// Environments begin at random phases of their first episode.
    pub stagger: bool,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct PolicyConfig {
    pub kind: PolicyKind,
    pub width: usize,
    /// Linear layers.
    pub depth: usize,
    /// Diffusion only, as are the following.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub denoising_steps: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub layer_norm: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub friction: Option<f32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kl_form: Option<KlFormArg>,
}

/// Which divergence of two chains.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum KlFormArg {
    /// Closed form with variances.
    Full,
    /// Means only, as published.
    Means,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct TrainerConfig {
    pub kind: TrainerKind,
    /// Steps of every environment per update.
    pub rollout_steps: usize,
    pub discount: f32,
    pub lambda: f32,
    pub epochs: usize,
    pub minibatch: usize,
    /// nats
    pub kl_bound: f32,
    pub kl_samples: usize,
    /// nats per action dimension, with the sign turned
    pub target_entropy: f32,
    pub temperature: f32,
    pub multiplier: f32,
    pub actor_lr: f64,
    pub critic_lr: f64,
    pub temperature_lr: f64,
    pub multiplier_lr: f64,
    pub clip_norm: f64,
    /// Learning rates fall linearly to 0 at the end of the run.
    pub anneal: bool,
    pub gate: GateArg,
}

/// What a state's policy loss is made of.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum GateArg {
    Clipped,
    Full,
    Value,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct CriticSection {
    pub width: usize,
    pub bins: usize,
    pub low: f32,
    pub high: f32,
    pub aux_weight: f32,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct CheckpointConfig {
    pub every_updates: u64,
}

const VERSION: u32 = 1;

impl RunConfig {
    pub(crate) const VERSION: u32 = VERSION;

    /// Environment steps of one update.
    pub(crate) fn steps_per_update(&self) -> u64 {
        (self.env.envs * self.trainer.rollout_steps) as u64
    }

    /// Updates of the whole run: the least number that makes `steps`.
    pub(crate) fn updates(&self) -> u64 {
        self.steps.div_ceil(self.steps_per_update())
    }

    /// Errors with the first setting out of range that no crate below checks.
    pub(crate) fn check(&self) -> Result<()> {
        let counts = [
            ("steps", self.steps as usize),
            ("env.envs", self.env.envs),
            ("policy.width", self.policy.width),
            ("trainer.rollout_steps", self.trainer.rollout_steps),
            ("checkpoint.every_updates", self.checkpoint.every_updates as usize),
        ];
        for (key, n) in counts {
            if n == 0 {
                bail!("{key} is 0; it must be at least 1");
            }
            if n > 1 << 50 {
                bail!("{key} is {n}; that is more than fits");
            }
        }
        for (key, n, most) in [
            ("env.envs", self.env.envs, 1 << 22),
            ("trainer.rollout_steps", self.trainer.rollout_steps, 1 << 20),
            ("policy.width", self.policy.width, 1 << 16),
            ("policy.depth", self.policy.depth, 1 << 8),
            ("critic.width", self.critic.width, 1 << 16),
            ("critic.bins", self.critic.bins, 1 << 16),
        ] {
            if n > most {
                bail!("{key} is {n}; it must be at most {most}");
            }
        }
        if self.policy.depth < 2 {
            bail!("policy.depth is {}; it must be at least 2", self.policy.depth);
        }
        let diffusion_only = [
            ("denoising_steps", self.policy.denoising_steps.is_some()),
            ("layer_norm", self.policy.layer_norm.is_some()),
            ("friction", self.policy.friction.is_some()),
            ("kl_form", self.policy.kl_form.is_some()),
        ];
        for (key, given) in diffusion_only {
            match (self.policy.kind, given) {
                (PolicyKind::Gaussian, true) => bail!("policy.{key} is for diffusion policies; remove it"),
                (PolicyKind::Diffusion, false) => bail!("policy.{key} is missing"),
                _ => {}
            }
        }
        Ok(())
    }
}

/// Applies `key=value` texts to settings.
pub(crate) fn set<C: Serialize + DeserializeOwned>(config: &C, changes: &[String]) -> Result<C> {
    let mut table = toml::Table::try_from(config)?;
    for change in changes {
        let (key, value) =
            change.split_once('=').ok_or_else(|| anyhow!("--set {change}: write KEY=VALUE, as kl_bound=0.2"))?;
        let path = resolve(&table, key.trim())?;
        let (section, last) = path.rsplit_once('.').unwrap_or(("", &path));
        let inner =
            if section.is_empty() { Some(&mut table) } else { table.get_mut(section).and_then(|v| v.as_table_mut()) };
        let slot = inner.and_then(|t| t.get_mut(last)).expect("resolved keys exist");
        *slot = parse(slot, value.trim()).with_context(|| format!("--set {change}"))?;
    }
    let text = toml::to_string(&table)?;
    toml::from_str(&text).map_err(|e| anyhow!("--set {}: {}", changes.join(" "), e.message()))
}

/// Every key of a table, dotted.
fn keys(table: &toml::Table, prefix: &str, to: &mut Vec<String>) {
    for (key, value) in table {
        let key = format!("{prefix}{key}");
        match value {
            toml::Value::Table(inner) => keys(inner, &format!("{key}."), to),
            _ => to.push(key),
        }
    }
}

/// The whole key that is meant: as written, or the only one that ends so.
fn resolve(table: &toml::Table, key: &str) -> Result<String> {
    let mut all = Vec::new();
    keys(table, "", &mut all);
    all.retain(|k| k != "version");
    let matches: Vec<&String> =
        all.iter().filter(|k| *k == key || k.rsplit_once('.').is_some_and(|(_, last)| last == key)).collect();
    match matches[..] {
        [one] => Ok(one.clone()),
        [_, _, ..] if all.iter().any(|k| k == key) => Ok(key.into()),
        [_, _, ..] => {
            let names: Vec<String> = matches.iter().map(|m| format!("`{m}`")).collect();
            bail!("--set {key}: several settings are called so; write {}", names.join(" or "))
        }
        [] => {
            let near = nearest(key, all.iter().map(String::as_str), 3);
            bail!("--set {key}: there is no such setting; the nearest are {near}")
        }
    }
}

/// The most similar names, quoted. Keys are compared with and without their section.
pub(crate) fn nearest<'a>(name: &str, all: impl Iterator<Item = &'a str>, count: usize) -> String {
    let score = |k: &str| {
        let last = k.rsplit_once('.').map_or(k, |(_, last)| last);
        strsim::jaro_winkler(name, k).max(strsim::jaro_winkler(name, last))
    };
    let mut scored: Vec<(f64, &str)> = all.map(|k| (score(k), k)).collect();
    scored.sort_by(|a, b| b.0.total_cmp(&a.0));
    scored.iter().take(count).map(|(_, k)| format!("`{k}`")).collect::<Vec<_>>().join(", ")
}

/// A value of the same kind as the one it replaces.
fn parse(old: &toml::Value, text: &str) -> Result<toml::Value> {
    Ok(match old {
        toml::Value::Integer(_) => {
            let n = crate::args::count(text).map_err(|e| anyhow!(e))?;
            toml::Value::Integer(i64::try_from(n).map_err(|_| anyhow!("{n} is more than fits"))?)
        }
        toml::Value::Float(_) => {
            let x: f64 = text.parse().map_err(|_| anyhow!("write a number, as 0.2 or 3e-4"))?;
            if !x.is_finite() {
                bail!("write a finite number");
            }
            toml::Value::Float(x)
        }
        toml::Value::Array(_) => {
            let item = |t: &str| {
                let n = crate::args::count(t.trim()).map_err(|e| anyhow!(e))?;
                Ok(toml::Value::Integer(i64::try_from(n).map_err(|_| anyhow!("{n} is more than fits"))?))
            };
            let list = text.trim_start_matches('[').trim_end_matches(']').split(',');
            toml::Value::Array(list.map(item).collect::<Result<_>>()?)
        }
        toml::Value::Boolean(_) => toml::Value::Boolean(text.parse().map_err(|_| anyhow!("write true or false"))?),
        _ => toml::Value::String(text.trim_matches('"').into()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::Preset;
    use crate::presets::preset;
    use crate::settings::Settings;

    fn quick() -> RunConfig {
        preset(Preset::Quick, PolicyKind::Diffusion, "cartpole-swingup")
    }

    fn text(config: &RunConfig) -> String {
        toml::to_string(config).unwrap()
    }

    #[test]
    fn every_preset_survives_its_own_text() {
        for p in [Preset::Quick, Preset::Paper] {
            for kind in [PolicyKind::Diffusion, PolicyKind::Gaussian] {
                let config = preset(p, kind, "cheetah-run");
                assert_eq!(Settings::read(&text(&config)).unwrap(), Settings::Steps(Box::new(config)));
            }
        }
    }

    #[test]
    fn settings_change_by_whole_or_short_key() {
        let changes =
            ["trainer.kl_bound=0.25", "bins=51", "steps=2M", "gate=full", "anneal=false", "env.precision=f64"];
        let c = set(&quick(), &changes.map(String::from)).unwrap();
        assert_eq!((c.trainer.kl_bound, c.critic.bins, c.steps), (0.25, 51, 2_000_000));
        assert_eq!((c.trainer.gate, c.trainer.anneal, c.env.precision), (GateArg::Full, false, PrecisionArg::F64));
    }

    #[test]
    fn wrong_settings_are_answered_with_what_would_do() {
        for (change, hint) in [
            ("kl_bond=1", "`trainer.kl_bound`"),
            ("trainer.kl_bond=1", "`trainer.kl_bound`"),
            ("kl_bound=much", "write a number"),
            ("bins=1.5", "whole number"),
            ("anneal=yes", "true or false"),
            ("gate=open", "clipped"),
            ("width=3", "`critic.width` or `policy.width`"),
            ("kl_bound", "KEY=VALUE"),
            ("kl_bound=inf", "finite"),
        ] {
            let error = format!("{:#}", set(&quick(), &[change.into()]).unwrap_err());
            assert!(error.contains(hint), "{change}: {error}");
        }
    }

    #[test]
    fn a_config_file_is_refused_by_key_and_line() {
        let text = text(&quick());
        for (from, to, hint) in [
            ("kl_bound", "kl_bond", "kl_bond"),
            ("version = 1", "version = 9", "version is 9"),
            ("envs = 256", "envs = 0", "env.envs is 0"),
            ("envs = 256", "envs = \"many\"", "envs"),
        ] {
            let error = format!("{:#}", Settings::read(&text.replace(from, to)).unwrap_err());
            assert!(error.contains(hint), "{error}");
        }
    }
}
