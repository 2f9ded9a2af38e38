//! The two losses, as functions of what the networks say.

use candle_core::{DType, Result, Tensor};
use onpolicy::{Reparameterised, Wants};

use crate::config::Gate;
use crate::critic::Critic;
use crate::ops::SquaredError;

/// Loss of the critic on a batch, a scalar, and the cross-entropy alone.
///
/// ```text
/// mean_b w_b·( CE(histogram(G_b), logits_b) + κ·mean_i (pred_{b,i} − z'_{b,i})² )
/// ```
///
/// `obs: [B, O]`, `action: [B, A]`, `returns: [B]` G, `next_features: [B, width]` z', `weight: [B]` (0 leaves a row out),
/// `aux_weight` κ.
pub fn critic_loss(
    critic: &Critic,
    obs: &Tensor,
    action: &Tensor,
    returns: &[f32],
    next_features: &Tensor,
    weight: &Tensor,
    aux_weight: f32,
) -> Result<CriticLoss> {
    let judged = critic.judge(obs, action, Wants::Params)?;
    let entropy = (critic.support().cross_entropy(&judged.logits, returns)? * weight)?.mean_all()?;
    let total = if aux_weight > 0.0 {
        let target = next_features.contiguous()?;
        let error = critic.predict(&judged)?.apply_op1(SquaredError { target })?;
        (&entropy + ((error * weight)?.mean_all()? * f64::from(aux_weight))?)?
    } else {
        entropy.clone()
    };
    Ok(CriticLoss { total, cross_entropy: entropy, logits: judged.logits.detach() })
}

/// See [`critic_loss`].
pub struct CriticLoss {
    /// Scalar to differentiate.
    pub total: Tensor,
    /// Scalar.
    pub cross_entropy: Tensor,
    /// `[B, bins]`, without graph.
    pub logits: Tensor,
}

/// Loss of the policy on a batch, a scalar.
///
/// ```text
/// clipped:  mean_b { α·ln π̂_b − Q_b   if KL_b < ε
///                    β·KL_b           otherwise }
/// full:     mean_b (α·ln π̂_b − Q_b + β·KL_b)
/// value:    mean_b (α·ln π̂_b − Q_b)
/// ```
///
/// `value: [B]` Q of the drawn actions and `kl: [B]`, both differentiable. TruDi, eq. of the policy loss; REPPO, eq. 9.
pub fn policy_loss(
    drawn: &Reparameterised,
    value: &Tensor,
    kl: &Tensor,
    weights: &Multipliers,
    gate: Gate,
) -> Result<Tensor> {
    let improve = ((&drawn.log_prob * weights.temperature)? - value)?;
    let stay = (kl * weights.multiplier)?;
    match gate {
        Gate::Value => improve.mean_all(),
        Gate::Full => (improve + stay)?.mean_all(),
        Gate::Clipped => kl.detach().lt(weights.kl_bound)?.to_dtype(DType::U8)?.where_cond(&improve, &stay)?.mean_all(),
    }
}

/// The numbers that weigh a policy loss; constants in its gradient.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Multipliers {
    /// α
    pub temperature: f64,
    /// β
    pub multiplier: f64,
    /// ε, nats
    pub kl_bound: f64,
}

/// Gradient in ln α of `α·(target + entropy)`: descending it raises α while the entropy is below −target.
/// `target` is m·A, nats.
pub fn temperature_gradient(temperature: f64, target: f64, entropy: f64) -> f64 {
    temperature * (target + entropy)
}

/// Gradient in ln β of `−β·(kl − ε)`: descending it raises β while the mean KL is above ε.
pub fn multiplier_gradient(multiplier: f64, kl: f64, kl_bound: f64) -> f64 {
    -multiplier * (kl - kl_bound)
}
