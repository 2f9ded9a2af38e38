//! The policy contract: every decision is a chain of F conditional factors with a tractable density.

use candle_core::{D, Result, Tensor};

use crate::noise::Noise;
use crate::params::Params;

/// A batch whose first dimension can be gathered and concatenated.
pub trait Rows: Sized {
    /// Length of the first dimension.
    fn rows(&self) -> usize;
    /// The rows with those u32 indices.
    fn select(&self, rows: &Tensor) -> Result<Self>;
    /// Batches one after the other.
    fn concat(parts: &[Self]) -> Result<Self>;
}

impl Rows for Tensor {
    fn rows(&self) -> usize {
        self.dims()[0]
    }
    fn select(&self, rows: &Tensor) -> Result<Self> {
        self.index_select(rows, 0)
    }
    fn concat(parts: &[Self]) -> Result<Self> {
        Tensor::cat(parts, 0)
    }
}

/// One number per conditional factor of a decision. Gaussian F = 1, diffusion F = steps, tokens F = length.
#[derive(Clone, Debug)]
pub struct Factors {
    /// `[B, F]`
    pub value: Tensor,
    /// `[B, F]`, 1 where the factor exists, else 0.
    pub mask: Tensor,
}

impl Factors {
    /// Every factor exists.
    pub fn dense(value: Tensor) -> Result<Self> {
        let mask = value.ones_like()?;
        Ok(Factors { value, mask })
    }

    /// Chain rule: the sum over factors, `[B]`.
    pub fn sum(&self) -> Result<Tensor> {
        (&self.value * &self.mask)?.sum(D::Minus1)
    }
}

/// Decisions drawn from a policy, detached from any graph.
pub struct Sampled<P: Policy> {
    /// What the environment receives.
    pub action: P::Action,
    /// What the policy needs to score the decision again.
    pub trace: P::Trace,
    /// Log density of each factor, nats.
    pub log_prob: Factors,
}

/// A stochastic policy. [`crate::conformance::check_policy`] tests the promises.
///
/// * Re-scoring equals sampling: `log_prob(obs, trace)` repeats what `sample` reported.
/// * Equal noise, equal sample. Rows are independent.
/// * `kl(p, p, …) = 0`; every factor of a closed form is ≥ 0.
/// * A snapshot never moves.
#[diagnostic::on_unimplemented(message = "`{Self}` is not a policy", note = "implement `onpolicy::Policy`")]
pub trait Policy: Sized {
    /// A batch of observations.
    type Obs: Rows;
    /// A batch of actions.
    type Action;
    /// A batch of traces.
    type Trace: Rows;

    /// Draws one decision per row.
    fn sample(&self, obs: &Self::Obs, noise: &mut Noise) -> Result<Sampled<Self>>;
    /// Log density of given decisions, differentiable in the parameters.
    fn log_prob(&self, obs: &Self::Obs, trace: &Self::Trace) -> Result<Factors>;
    /// KL(p‖q) per factor at a trace of p, nats; differentiable in q's parameters, constant in p's. Summed over
    /// factors and averaged over traces of p it is the KL divergence of whole decisions.
    fn kl(p: &Self, q: &Self, obs: &Self::Obs, trace_of_p: &Self::Trace) -> Result<Factors>;
    /// A copy that no later optimiser step changes.
    fn snapshot(&self) -> Result<Self>;
    /// Trainable parameters, in a fixed order.
    fn params(&self) -> Vec<&Params>;
}
