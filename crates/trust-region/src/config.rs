//! Settings of the trainer.

/// Which of its two parts a state's policy loss is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Gate {
    /// Improvement inside the trust region, KL outside. The published form.
    Clipped,
    /// Both everywhere.
    Full,
    /// Improvement everywhere: no trust region.
    Value,
}

/// Shape and support of the critic.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CriticConfig {
    /// Width of every hidden layer and of the features.
    pub width: usize,
    /// Atoms of the value distribution.
    pub bins: usize,
    /// Value of the first atom.
    pub low: f32,
    /// Value of the last atom. Returns outside `[low, high]` are clipped.
    pub high: f32,
    /// Weight of the loss that predicts the next features; 0 leaves the predictor out.
    pub aux_weight: f32,
}

/// Settings of [`TrustRegion`](crate::TrustRegion). Symbols as in the crate's documentation.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TrustRegionConfig {
    /// γ, in (0, 1].
    pub discount: f32,
    /// λ of the returns, in [0, 1].
    pub lambda: f32,
    /// Passes over a rollout.
    pub epochs: usize,
    /// Rows of one critic step and one policy step.
    pub minibatch: usize,
    /// ε: KL(old‖new) of whole decisions that a state may move per update, nats.
    pub kl_bound: f32,
    /// K: traces of the old policy over which a state's KL is averaged.
    pub kl_samples: usize,
    /// m: the temperature holds the entropy at −m nats per action dimension.
    pub target_entropy: f32,
    /// α₀: first temperature.
    pub temperature: f32,
    /// β₀: first multiplier.
    pub multiplier: f32,
    /// Adam step of the policy.
    pub actor_lr: f64,
    /// Adam step of the critic.
    pub critic_lr: f64,
    /// Adam step of ln α.
    pub temperature_lr: f64,
    /// Adam step of ln β.
    pub multiplier_lr: f64,
    /// Gradient norm to which the critic, and the policy with both multipliers, are clipped.
    pub clip_norm: f64,
    /// Updates over which all Adam steps fall linearly to 0; 0 keeps them constant.
    pub anneal_updates: u64,
    /// What a state's policy loss is made of.
    pub gate: Gate,
    /// The critic.
    pub critic: CriticConfig,
}

/// A setting outside its range.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("`{field}` is {value}; it must be {expected}")]
pub struct ConfigError {
    /// Field of [`TrustRegionConfig`].
    pub field: &'static str,
    /// As given.
    pub value: String,
    /// What would be taken.
    pub expected: &'static str,
}

impl TrustRegionConfig {
    /// Errors: the first setting outside its range.
    pub fn check(&self) -> Result<(), ConfigError> {
        let positive = "a finite number above 0";
        let rules: [(&'static str, f64, bool, &'static str); 17] = [
            ("discount", self.discount.into(), self.discount > 0.0 && self.discount <= 1.0, "above 0 and at most 1"),
            ("lambda", self.lambda.into(), (0.0..=1.0).contains(&self.lambda), "between 0 and 1"),
            ("epochs", self.epochs as f64, self.epochs > 0, "at least 1"),
            ("minibatch", self.minibatch as f64, self.minibatch > 0, "at least 1"),
            ("kl_bound", self.kl_bound.into(), above_zero(self.kl_bound.into()), positive),
            ("kl_samples", self.kl_samples as f64, self.kl_samples > 0, "at least 1"),
            ("target_entropy", self.target_entropy.into(), self.target_entropy.is_finite(), "a finite number"),
            ("temperature", self.temperature.into(), above_zero(self.temperature.into()), positive),
            ("multiplier", self.multiplier.into(), above_zero(self.multiplier.into()), positive),
            ("actor_lr", self.actor_lr, above_zero(self.actor_lr), positive),
            ("critic_lr", self.critic_lr, above_zero(self.critic_lr), positive),
            ("temperature_lr", self.temperature_lr, not_negative(self.temperature_lr), "a finite number, 0 or above"),
            ("multiplier_lr", self.multiplier_lr, not_negative(self.multiplier_lr), "a finite number, 0 or above"),
            ("clip_norm", self.clip_norm, above_zero(self.clip_norm), positive),
            ("critic.width", self.critic.width as f64, self.critic.width > 0, "at least 1"),
            ("critic.bins", self.critic.bins as f64, self.critic.bins > 1, "at least 2"),
            (
                "critic.aux_weight",
                self.critic.aux_weight.into(),
                not_negative(self.critic.aux_weight.into()),
                "a finite number, 0 or above",
            ),
        ];
        for (field, value, ok, expected) in rules {
            if !ok {
                return Err(ConfigError { field, value: value.to_string(), expected });
            }
        }
        let (low, high) = (self.critic.low, self.critic.high);
        if !(low.is_finite() && high.is_finite() && low < high) {
            let value = format!("{low} with `critic.high` {high}");
            return Err(ConfigError { field: "critic.low", value, expected: "finite and below `critic.high`" });
        }
        Ok(())
    }
}

fn above_zero(x: f64) -> bool {
    x.is_finite() && x > 0.0
}

fn not_negative(x: f64) -> bool {
    x.is_finite() && x >= 0.0
}
