//! Settings of the trainer.

use std::fmt;

use crate::advantage::Spread;
use crate::lanes::RatioOver;
use crate::loss::{Aggregate, Loss, Surrogate};

/// Soft punishment of length, added to the reward before advantages are taken.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Overlong {
    /// Longest length, L_max.
    pub longest: usize,
    /// Lengths before it over which the punishment grows, L_cache.
    pub margin: usize,
    /// Multiplies it.
    pub factor: f64,
}

/// Settings of [`crate::Grpo`].
#[derive(Clone, Debug, PartialEq)]
pub struct GrpoConfig {
    /// N: rollouts per update, whatever the group size; P·G = N.
    pub rollouts: usize,
    /// The loss.
    pub loss: Loss,
    /// What centred rewards are divided by.
    pub spread: Spread,
    /// Whether ratios are of factors or of decisions.
    pub ratio: RatioOver,
    /// μ: passes over the rollouts of an update.
    pub epochs: usize,
    /// Optimiser steps per pass.
    pub minibatches: usize,
    /// Lanes per forward pass: memory, not result.
    pub micro_batch: usize,
    /// Learning rate of Adam.
    pub lr: f64,
    /// Updates over which the learning rate rises to it.
    pub lr_warm_up: u64,
    /// Updates over which it falls linearly to 0 again; 0: it stays.
    pub anneal_updates: u64,
    /// Decoupled weight decay, per step times the learning rate.
    pub weight_decay: f64,
    /// Largest norm of a gradient.
    pub clip_norm: f64,
    /// Soft punishment of length.
    pub overlong: Option<Overlong>,
    /// Truncated lanes teach nothing and count in no divisor.
    pub mask_truncated: bool,
    /// Lanes of groups without signal count in no divisor and feel no divergence.
    pub mask_degenerate: bool,
    /// Rounds of generation, the first included, in which groups without signal are replaced; then training goes on with
    /// what there is. `None`: they stay.
    pub dynamic_sampling: Option<u32>,
    /// Whether the sizer is told the seconds of a generation, for utilities per second. What it chooses then depends on
    /// the machine, and runs no longer repeat.
    pub tell_seconds: bool,
    /// κ of the reported rate of stragglers; the sizer has its own.
    pub straggler_threshold: f64,
}

impl GrpoConfig {
    /// GRPO with N rollouts: one pass, one step, population spread, learning rate 1e-4, gradients up to 1.
    pub fn new(rollouts: usize) -> Self {
        GrpoConfig {
            rollouts,
            loss: Loss::grpo(),
            spread: Spread::Population { eps: 1e-4 },
            ratio: RatioOver::Factor,
            epochs: 1,
            minibatches: 1,
            micro_batch: 64,
            lr: 1e-4,
            lr_warm_up: 0,
            anneal_updates: 0,
            weight_decay: 0.0,
            clip_norm: 1.0,
            overlong: None,
            mask_truncated: false,
            mask_degenerate: false,
            dynamic_sampling: None,
            tell_seconds: false,
            straggler_threshold: 2.5,
        }
    }

    /// Errors with the first setting out of range.
    pub fn check(&self) -> Result<(), ConfigError> {
        let wrong = |field, value: String, expected| Err(ConfigError { field, value, expected });
        for (field, n, least) in [
            ("rollouts", self.rollouts, 2),
            ("epochs", self.epochs, 1),
            ("minibatches", self.minibatches, 1),
            ("micro_batch", self.micro_batch, 1),
        ] {
            if n < least {
                return wrong(field, n.to_string(), if least == 2 { "at least 2" } else { "at least 1" });
            }
        }
        let (low, high) = match self.loss.surrogate {
            Surrogate::Token { low, high } | Surrogate::Sequence { low, high } => (low, high),
            Surrogate::Weighted { cap } => (0.5, cap),
        };
        let positive = |x: f64| x > 0.0 && x.is_finite();
        let not_negative = |x: f64| x >= 0.0 && x.is_finite();
        let above_one = |x: Option<f64>| x.is_none_or(|x| x > 1.0 && x.is_finite());
        for (field, x, right, expected) in [
            ("lr", self.lr, not_negative(self.lr), "0 or more"),
            ("weight_decay", self.weight_decay, not_negative(self.weight_decay), "0 or more"),
            ("clip_norm", self.clip_norm, positive(self.clip_norm), "above 0"),
            ("low clip", low, positive(low) && low < 1.0, "between 0 and 1"),
            ("high clip", high, positive(high), "above 0"),
            ("dual_clip", self.loss.dual_clip.unwrap_or(2.0), above_one(self.loss.dual_clip), "above 1"),
            (
                "ratio_cap",
                self.loss.ratio_cap.unwrap_or(2.0),
                self.loss.ratio_cap.is_none_or(|cap| cap > 1.0 + high && cap.is_finite()),
                "above 1 + the high clip",
            ),
            ("divergence weight", self.loss.kl.weight, not_negative(self.loss.kl.weight), "0 or more"),
            (
                "straggler_threshold",
                self.straggler_threshold,
                self.straggler_threshold > 1.0 && self.straggler_threshold.is_finite(),
                "above 1",
            ),
        ] {
            if !right {
                return wrong(field, x.to_string(), expected);
            }
        }
        if self.loss.aggregate == Aggregate::ConstantDivisor(0) {
            return wrong("constant divisor", "0".into(), "the longest allowed length");
        }
        if self.dynamic_sampling == Some(0) {
            return wrong("dynamic_sampling", "0 rounds".into(), "at least 1 round, or none at all");
        }
        if let Some(o) = self.overlong
            && (o.margin == 0 || o.margin > o.longest || !not_negative(o.factor))
        {
            return wrong(
                "overlong",
                format!("{o:?}"),
                "a margin from 1 to the longest length and a factor of 0 or more",
            );
        }
        Ok(())
    }
}

/// A setting out of range.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigError {
    /// Which.
    pub field: &'static str,
    /// Its value.
    pub value: String,
    /// What would do.
    pub expected: &'static str,
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} is {}; it must be {}", self.field, self.value, self.expected)
    }
}

impl std::error::Error for ConfigError {}
