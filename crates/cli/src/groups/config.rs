//! Everything a group-relative run is made of, as its `config.toml` holds it.

use anyhow::{Result, bail};
use serde::{Deserialize, Serialize};

use crate::args::PrecisionArg;
use crate::config::CheckpointConfig;

/// A whole run. The names of its fields are the keys of `config.toml` and of `--set`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct GroupConfig {
    /// Format of this file.
    pub version: u32,
    pub task: String,
    pub seed: u64,
    /// Group-relative updates, after the warm-up.
    pub updates: u64,
    pub policy: PolicySection,
    /// Text only: learning from reference solutions first.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub warm_up: Option<WarmUp>,
    /// Text only: how completions are written.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub generation: Option<Generation>,
    /// Simulation only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub env: Option<EnvSection>,
    pub trainer: TrainerSection,
    pub group: GroupSection,
    pub evaluation: EvaluationSection,
    pub checkpoint: CheckpointConfig,
}

/// Kinds of policy that a group-relative run trains.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Kind {
    /// Autoregressive decoder over characters or a tokenizer's pieces.
    Transformer,
    /// Squashed normal distribution.
    Gaussian,
    /// Denoising chain.
    Diffusion,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct PolicySection {
    pub kind: Kind,
    /// Transformer: width of the residual stream, as are the following up to `start`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hidden: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub layers: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub heads: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kv_heads: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ffn: Option<usize>,
    /// Run directory whose weights to start from; empty: from scratch.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub start: Option<String>,
    /// Gaussian and diffusion: units of a layer, as are the following.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub width: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub depth: Option<usize>,
    /// Diffusion.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub denoising_steps: Option<usize>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct WarmUp {
    /// Optimiser steps; 0: none.
    pub steps: u64,
    /// Sequences per step.
    pub batch: usize,
    pub lr: f64,
}

/// How a batch of completions is written.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum BatchingArg {
    /// Group by group, each until its longest member ends.
    PaddedGroups,
    /// All at once until the longest ends.
    PaddedWave,
    /// Finished rows leave at once.
    Continuous,
}

/// Whether more is begun than is needed.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum RaceArg {
    /// No.
    None,
    /// Members of every group: the first that end are kept.
    Members,
    /// Members and prompts; those cut off get a round of their own later.
    Tail,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Generation {
    pub batching: BatchingArg,
    /// Sequences decoded side by side at most.
    pub slots: usize,
    /// Longest completion in tokens, the end token included.
    pub max_tokens: usize,
    pub temperature: f32,
    /// Whether more is begun than is needed.
    pub race: RaceArg,
    /// How much more, at least 1.
    pub race_factor: f32,
    /// Write every batch in all three ways and report the seconds of each; the completions are the same.
    pub compare: bool,
    /// Keep every completion's length in `lengths.csv`.
    pub trace: bool,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct EnvSection {
    pub precision: PrecisionArg,
    /// Longest episode in steps; 0: the task's.
    pub max_steps: usize,
}

/// Which loss.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum LossArg {
    Grpo,
    DrGrpo,
    Dapo,
    Gspo,
    Cispo,
}

impl LossArg {
    /// As in `config.toml`.
    pub(crate) fn name(self) -> &'static str {
        match self {
            LossArg::Grpo => "grpo",
            LossArg::DrGrpo => "dr-grpo",
            LossArg::Dapo => "dapo",
            LossArg::Gspo => "gspo",
            LossArg::Cispo => "cispo",
        }
    }
}

/// What centred rewards are divided by.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum SpreadArg {
    /// Standard deviation of the group with divisor G: the step's size does not depend on the group's.
    Population,
    /// With divisor G − 1.
    Sample,
    /// Of the whole batch.
    Batch,
    None,
    LeaveOneOut,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct TrainerSection {
    pub loss: LossArg,
    pub spread: SpreadArg,
    /// N: rollouts per update, whatever the group size.
    pub rollouts: usize,
    pub epochs: usize,
    pub minibatches: usize,
    /// Rollouts per forward pass: memory, not result.
    pub micro_batch: usize,
    pub lr: f64,
    /// The learning rate falls linearly to 0 at the end of the run.
    pub anneal: bool,
    pub clip_norm: f64,
    pub weight_decay: f64,
    /// β: weight of the divergence from the policy that group-relative training started with.
    pub kl_weight: f64,
    /// Rounds of generation in which groups without signal are replaced; 0: they stay.
    pub dynamic_sampling: u32,
    /// Tokens before the longest length, at most all of it, over which the reward falls; 0: it does not.
    pub overlong_margin: usize,
    /// Truncated rollouts teach nothing.
    pub mask_truncated: bool,
}

/// What lengths are compared with.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum ReferenceArg {
    Running,
    Group,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct GroupSection {
    /// As `--group`.
    pub sizer: String,
    /// Sizes to choose from.
    pub candidates: Vec<usize>,
    /// ε: long-run share of straggling groups.
    pub budget: f64,
    /// κ: how many times the reference is late.
    pub threshold: f64,
    pub reference: ReferenceArg,
    /// V: weight of large groups against the queue.
    pub weight: f64,
    /// Updates between changes at least.
    pub dwell: u32,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct EvaluationSection {
    /// Updates between evaluations on the held-out split; 0: only at the end.
    pub every: u64,
    /// Prompts of each.
    pub prompts: usize,
    /// Prompts of the evaluations before the first group-relative update and after the last.
    pub closing: usize,
}

impl GroupConfig {
    /// Updates of the run, the chunks of the warm-up included.
    pub(crate) fn updates(&self) -> u64 {
        self.warm_up_chunks() + self.updates
    }

    /// The warm-up as updates of [`WARM_UP_CHUNK`] steps.
    pub(crate) fn warm_up_chunks(&self) -> u64 {
        self.warm_up.as_ref().map_or(0, |w| w.steps.div_ceil(WARM_UP_CHUNK))
    }

    pub(crate) fn is_text(&self) -> bool {
        self.policy.kind == Kind::Transformer
    }

    /// Errors with the first setting out of range that no crate below checks.
    pub(crate) fn check(&self) -> Result<()> {
        let mut counts = vec![
            ("updates", self.updates as usize, usize::from(self.warm_up_chunks() == 0), 1 << 40),
            ("trainer.rollouts", self.trainer.rollouts, 2, 1 << 20),
            ("trainer.epochs", self.trainer.epochs, 1, 1 << 10),
            ("trainer.minibatches", self.trainer.minibatches, 1, 1 << 20),
            ("trainer.micro_batch", self.trainer.micro_batch, 1, 1 << 20),
            ("evaluation.prompts", self.evaluation.prompts, 1, 1 << 20),
            ("evaluation.closing", self.evaluation.closing, 1, 1 << 20),
            ("checkpoint.every_updates", self.checkpoint.every_updates as usize, 1, 1 << 40),
        ];
        let p = &self.policy;
        let own = |given: &[(&'static str, Option<usize>)]| -> Result<Vec<(&'static str, usize)>> {
            given
                .iter()
                .map(|(key, n)| n.map(|n| (*key, n)).ok_or_else(|| anyhow::anyhow!("{key} is missing")))
                .collect()
        };
        let sizes = match p.kind {
            Kind::Transformer => own(&[
                ("policy.hidden", p.hidden),
                ("policy.layers", p.layers),
                ("policy.heads", p.heads),
                ("policy.kv_heads", p.kv_heads),
                ("policy.ffn", p.ffn),
            ])?,
            Kind::Gaussian => own(&[("policy.width", p.width), ("policy.depth", p.depth)])?,
            Kind::Diffusion => own(&[
                ("policy.width", p.width),
                ("policy.depth", p.depth),
                ("policy.denoising_steps", p.denoising_steps),
            ])?,
        };
        counts.extend(sizes.into_iter().map(|(key, n)| (key, n, 1, 1 << 16)));
        match (&self.generation, &self.warm_up, &self.env, self.is_text()) {
            (Some(g), Some(w), None, true) => {
                counts.push(("generation.slots", g.slots, 1, 1 << 16));
                counts.push(("generation.max_tokens", g.max_tokens, 1, 1 << 20));
                counts.push(("warm_up.batch", w.batch, 1, 1 << 16));
            }
            (None, None, Some(_), false) => {}
            (_, _, _, true) => bail!("a transformer needs the sections [generation] and [warm_up] and no [env]"),
            (_, _, _, false) => bail!("a policy for simulation needs [env] and neither [generation] nor [warm_up]"),
        }
        for (key, n, least, most) in counts {
            if !(least..=most).contains(&n) {
                bail!("{key} is {n}; it must be between {least} and {most}");
            }
        }
        Ok(())
    }
}

/// Supervised steps that count as one update: metrics and checkpoints come between them.
pub(crate) const WARM_UP_CHUNK: u64 = 50;
