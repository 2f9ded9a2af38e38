//! Policies whose action can be differentiated through.

use candle_core::{Result, Tensor};

use crate::noise::Noise;
use crate::policy::Policy;

/// Actions with their graph.
pub struct Reparameterised {
    /// `[B, A]` in (−1, 1), differentiable.
    pub action: Tensor,
    /// `[B]` log density of the action or, where it has no closed form, an upper bound of it in expectation; nats.
    pub log_prob: Tensor,
    /// `[B]` the entropy estimate that a temperature should watch, nats.
    pub entropy: Tensor,
}

/// A policy with reparameterised actions on continuous observations.
#[diagnostic::on_unimplemented(
    message = "`{Self}` has no pathwise action gradient",
    label = "this trainer differentiates the critic through the action",
    note = "token and other discrete policies cannot be reparameterised; train them with a likelihood-ratio trainer"
)]
pub trait Pathwise: Policy<Obs = Tensor, Action = Tensor> {
    /// Action length A.
    fn action_dim(&self) -> usize;

    /// Draws actions and keeps the graph from the parameters to them.
    fn sample_grad(&self, obs: &Tensor, noise: &mut Noise) -> Result<Reparameterised>;

    /// The same without a graph.
    fn sample_scored(&self, obs: &Tensor, noise: &mut Noise) -> Result<Reparameterised>;

    /// `[B, A]` the evaluation action: noise-free where the policy has a mode, else noise-free after the prior.
    fn deterministic(&self, obs: &Tensor, noise: &mut Noise) -> Result<Tensor>;

    /// KL(old‖self) of whole decisions for each state, `[B]`, nats: the mean over `repeats` traces of `old`.
    /// Differentiable in `self` only.
    fn kl_from(&self, old: &Self, obs: &Tensor, repeats: usize, noise: &mut Noise) -> Result<Tensor> {
        let rows = obs.dims()[0];
        let obs = if repeats == 1 { obs.clone() } else { Tensor::cat(&vec![obs; repeats], 0)? };
        let trace = old.sample(&obs, noise)?.trace;
        Self::kl(old, self, &obs, &trace)?.sum()?.reshape((repeats, rows))?.mean(0)
    }

    /// Scalars worth watching, as `friction`.
    fn each_scalar(&self, _f: &mut dyn FnMut(&'static str, f64)) {}
}
