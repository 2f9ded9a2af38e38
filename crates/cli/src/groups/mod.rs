//! Group-relative runs: on texts and on whole simulated episodes.

pub(crate) mod config;
pub(crate) mod presets;
mod sim;
mod sizer;
pub(crate) mod text;

use std::path::Path;

use anyhow::{Result, anyhow};
use grpo::{Aggregate, GrpoConfig, KlEstimate, KlTerm, Loss, Overlong, RatioOver, Spread};

use crate::agent::Agent;
use config::{GroupConfig, LossArg, SpreadArg};

/// Whether that is a text task: one by name, or a file of prompts.
pub(crate) fn is_text(task: &str) -> bool {
    text_tasks::find(task).is_ok() || Path::new(task).extension().is_some_and(|e| e == "jsonl")
}

/// Pairs policy, trainer and source.
pub(crate) fn build(config: &GroupConfig) -> Result<Box<dyn Agent>> {
    if config.is_text() { text::build(config) } else { sim::build(config) }
}

/// Settings of the trainer. `longest`: tokens of the longest completion, for the losses that need one.
fn trainer(config: &GroupConfig, longest: usize) -> Result<GrpoConfig> {
    let t = &config.trainer;
    let loss = match t.loss {
        LossArg::Grpo => Loss::grpo(),
        LossArg::DrGrpo => Loss::dr_grpo(longest),
        LossArg::Dapo => Loss::dapo(),
        LossArg::Gspo => Loss::gspo(),
        LossArg::Cispo => Loss::cispo(),
    };
    debug_assert!(loss.aggregate != Aggregate::ConstantDivisor(0));
    let eps = 1e-4;
    let settings = GrpoConfig {
        loss: Loss { kl: KlTerm { weight: t.kl_weight, estimate: KlEstimate::K3Straight }, ..loss },
        spread: match t.spread {
            SpreadArg::Population => Spread::Population { eps },
            SpreadArg::Sample => Spread::Sample { eps },
            SpreadArg::Batch => Spread::Batch { eps },
            SpreadArg::None => Spread::None,
            SpreadArg::LeaveOneOut => Spread::LeaveOneOut,
        },
        ratio: RatioOver::Factor,
        epochs: t.epochs,
        minibatches: t.minibatches,
        micro_batch: t.micro_batch,
        lr: t.lr,
        lr_warm_up: 5,
        anneal_updates: if t.anneal { config.updates } else { 0 },
        weight_decay: t.weight_decay,
        clip_norm: t.clip_norm,
        overlong: (t.overlong_margin > 0).then_some(Overlong {
            longest,
            margin: t.overlong_margin.min(longest),
            factor: 1.0,
        }),
        mask_truncated: t.mask_truncated,
        dynamic_sampling: (t.dynamic_sampling > 0).then_some(t.dynamic_sampling),
        straggler_threshold: config.group.threshold,
        ..GrpoConfig::new(t.rollouts)
    };
    settings.check().map_err(|e| anyhow!("trainer.{e}"))?;
    Ok(settings)
}
