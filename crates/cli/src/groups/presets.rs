//! Settings to start group-relative runs from, as constants.

use anyhow::{Result, bail};

use super::config::{
    BatchingArg, EnvSection, EvaluationSection, Generation, GroupConfig, GroupSection, Kind, LossArg, PolicySection,
    RaceArg, ReferenceArg, SpreadArg, TrainerSection, WarmUp,
};
use crate::args::{Algo, PolicyKind, PrecisionArg, Preset};
use crate::config::{CheckpointConfig, RunConfig};

/// The settings of a task and an algorithm. There is one preset, for two cores and half an hour: nothing is published
/// for models of this size.
///
/// * `grpo`: mean over each sequence's tokens, clipped at 0.2; advantages over the population deviation, so that a
///   changing group size does not change the step (arXiv 2402.03300).
/// * `dapo`: mean over all tokens, clipped at 0.2 and 0.28, groups without signal replaced for up to three rounds, soft
///   punishment of the last eighth of the longest length (arXiv 2503.14476).
pub(crate) fn preset(preset: Preset, algo: Algo, policy: Option<PolicyKind>, task: &str) -> Result<GroupConfig> {
    if preset == Preset::Paper {
        bail!("there is no paper preset for {}; leave --preset out, and --set what differs", algo.name());
    }
    let dapo = algo == Algo::Dapo;
    let text = super::is_text(task);
    let max_tokens = if text { super::text::longest(task)? } else { 0 };
    if text && policy.is_some() {
        bail!("--policy is for simulation; a text task trains a transformer");
    }
    if !text {
        sim_vec::registry::build(task)?;
    }
    let kind = match policy {
        _ if text => Kind::Transformer,
        Some(PolicyKind::Diffusion) => Kind::Diffusion,
        Some(PolicyKind::Gaussian) | None => Kind::Gaussian,
    };
    let (tokens, layers) = (|n: usize| text.then_some(n), |n: usize| (!text).then_some(n));
    Ok(GroupConfig {
        version: RunConfig::VERSION,
        task: task.into(),
        seed: 1,
        updates: if text { 220 } else { 300 },
        policy: PolicySection {
            kind,
            hidden: tokens(128),
            layers: tokens(4),
            heads: tokens(4),
            kv_heads: tokens(2),
            ffn: tokens(352),
            start: text.then(String::new),
            width: layers(64),
            depth: layers(3),
            denoising_steps: (kind == Kind::Diffusion).then_some(8),
        },
        warm_up: text.then_some(WarmUp { steps: 1500, batch: 64, lr: 2e-3 }),
        generation: text.then_some(Generation {
            batching: BatchingArg::Continuous,
            slots: 64,
            max_tokens,
            temperature: 1.0,
            race: RaceArg::None,
            race_factor: 1.25,
            compare: false,
            trace: false,
        }),
        env: (!text).then_some(EnvSection { precision: PrecisionArg::F32, max_steps: 0 }),
        trainer: TrainerSection {
            loss: if dapo { LossArg::Dapo } else { LossArg::Grpo },
            spread: SpreadArg::Population,
            rollouts: if text { 256 } else { 128 },
            epochs: 1,
            minibatches: if text { 1 } else { 4 },
            micro_batch: 64,
            lr: if text { 1e-4 } else { 1e-3 },
            anneal: true,
            clip_norm: 1.0,
            weight_decay: 0.0,
            kl_weight: 0.0,
            dynamic_sampling: if dapo && text { 3 } else { 0 },
            overlong_margin: if dapo { max_tokens / 8 } else { 0 },
            mask_truncated: false,
        },
        group: GroupSection {
            sizer: "static:8".into(),
            candidates: vec![4, 8, 16, 32],
            budget: 0.25,
            threshold: 2.5,
            reference: ReferenceArg::Running,
            weight: 5.0,
            dwell: 4,
        },
        evaluation: EvaluationSection { every: if text { 20 } else { 0 }, prompts: 256, closing: 1024 },
        checkpoint: CheckpointConfig { every_updates: 10 },
    })
}
