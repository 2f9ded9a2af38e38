//! The tanh-normal policy: one factor, closed forms. With the pathwise trainer it is REPPO's actor.

use candle_core::{D, Result, Tensor};

use crate::bundle::{Bundle, BundleError, Persist};
use crate::dense::{Activation, Norm};
use crate::mlp::{Mlp, Wants};
use crate::noise::Noise;
use crate::params::Params;
use crate::pathwise::{Pathwise, Reparameterised};
use crate::policy::{Factors, Policy, Sampled};

/// ½ ln 2π
const HALF_LOG_TAU: f64 = 0.918_938_533_204_672_7;

/// a = tanh x, x ~ N(μ(s), exp(ℓ(s))²); μ and ℓ from one network (hidden layers: RMS norm, SiLU).
///
/// The trace is x: densities and KL are computed before the squash, which cancels in ratios and divergences.
#[derive(Clone, Debug)]
pub struct GaussianPolicy {
    net: Mlp,
    action_dim: usize,
}

impl GaussianPolicy {
    /// `depth` linear layers of that width.
    pub fn new(obs_dim: usize, action_dim: usize, width: usize, depth: usize, seed: u64) -> Result<Self> {
        let mut noise = Noise::named(seed, "policy");
        let net = Mlp::uniform_width(
            Activation::None,
            obs_dim,
            width,
            2 * action_dim,
            depth,
            Norm::Rms,
            Activation::Silu,
            1.0,
            &mut noise,
        )?;
        Ok(GaussianPolicy { net, action_dim })
    }

    /// Mean and log standard deviation before the squash, each `[B, A]`.
    pub fn mean_log_std(&self, obs: &Tensor, wants: Wants) -> Result<(Tensor, Tensor)> {
        let out = self.net.forward(obs, wants)?;
        let d = self.action_dim;
        Ok((out.narrow(1, 0, d)?, out.narrow(1, d, d)?))
    }

    fn draw(&self, obs: &Tensor, wants: Wants, noise: &mut Noise) -> Result<(Tensor, Reparameterised)> {
        let (mean, log_std) = self.mean_log_std(obs, wants)?;
        let eps = noise.normal(mean.shape())?;
        let x = (&mean + log_std.exp()? * &eps)?;
        // log N(x; μ, σ) with (x−μ)/σ = ε, minus log |da/dx|
        let density = ((eps.sqr()? * -0.5)? - &log_std)?.affine(1.0, -HALF_LOG_TAU)?;
        let log_prob = (density - log_tanh_slope(&x)?)?.sum(D::Minus1)?;
        Ok((x.clone(), Reparameterised { action: x.tanh()?, entropy: log_prob.neg()?, log_prob }))
    }
}

/// ln(1 − tanh² x) = 2·(ln 2 − x − softplus(−2x)), elementwise.
fn log_tanh_slope(x: &Tensor) -> Result<Tensor> {
    // softplus(y) = max(y, 0) + ln(1 + e^{−|y|}) with y = −2x
    let y = (x * -2.0)?;
    let softplus = (y.relu()? + (y.abs()?.neg()?.exp()? + 1.0)?.log()?)?;
    ((x + softplus)? * -2.0)? + 2.0 * std::f64::consts::LN_2
}

impl Policy for GaussianPolicy {
    type Obs = Tensor;
    type Action = Tensor;
    type Trace = Tensor;

    fn sample(&self, obs: &Tensor, noise: &mut Noise) -> Result<Sampled<Self>> {
        let (mean, log_std) = self.mean_log_std(obs, Wants::Nothing)?;
        let eps = noise.normal(mean.shape())?;
        let x = (&mean + log_std.exp()? * &eps)?;
        let log_prob = ((eps.sqr()? * -0.5)? - &log_std)?.affine(1.0, -HALF_LOG_TAU)?.sum_keepdim(D::Minus1)?;
        Ok(Sampled { action: x.tanh()?, trace: x, log_prob: Factors::dense(log_prob)? })
    }

    /// Density of the pre-squash value.
    fn log_prob(&self, obs: &Tensor, x: &Tensor) -> Result<Factors> {
        let (mean, log_std) = self.mean_log_std(obs, Wants::Params)?;
        let z = ((x - mean)? / log_std.exp()?)?;
        Factors::dense(((z.sqr()? * -0.5)? - log_std)?.affine(1.0, -HALF_LOG_TAU)?.sum_keepdim(D::Minus1)?)
    }

    /// Closed form: ℓ_q − ℓ_p + ½(e^{2(ℓ_p−ℓ_q)} + ((μ_p−μ_q)/σ_q)² − 1), summed over dimensions.
    fn kl(p: &Self, q: &Self, obs: &Tensor, _: &Tensor) -> Result<Factors> {
        let (mp, lp) = p.mean_log_std(obs, Wants::Nothing)?;
        let (mq, lq) = q.mean_log_std(obs, Wants::Params)?;
        let ratio = ((&lp - &lq)? * 2.0)?.exp()?;
        let shift = ((mp - mq)? / lq.exp()?)?.sqr()?;
        let per_dim = ((lq - lp)? + ((ratio + shift)? - 1.0)? * 0.5)?;
        Factors::dense(per_dim.sum_keepdim(D::Minus1)?)
    }

    fn snapshot(&self) -> Result<Self> {
        Ok(GaussianPolicy { net: self.net.snapshot()?, action_dim: self.action_dim })
    }

    fn params(&self) -> Vec<&Params> {
        vec![self.net.params()]
    }
}

impl Pathwise for GaussianPolicy {
    fn action_dim(&self) -> usize {
        self.action_dim
    }

    fn sample_grad(&self, obs: &Tensor, noise: &mut Noise) -> Result<Reparameterised> {
        Ok(self.draw(obs, Wants::Params, noise)?.1)
    }

    fn sample_scored(&self, obs: &Tensor, noise: &mut Noise) -> Result<Reparameterised> {
        Ok(self.draw(obs, Wants::Nothing, noise)?.1)
    }

    fn deterministic(&self, obs: &Tensor, _: &mut Noise) -> Result<Tensor> {
        self.mean_log_std(obs, Wants::Nothing)?.0.tanh()
    }

    /// The closed form needs no traces.
    fn kl_from(&self, old: &Self, obs: &Tensor, _: usize, _: &mut Noise) -> Result<Tensor> {
        Self::kl(old, self, obs, obs)?.sum()
    }
}

impl Persist for GaussianPolicy {
    fn save(&self, prefix: &str, to: &mut Bundle) {
        self.net.params().save(prefix, to);
    }

    fn load(&mut self, prefix: &str, from: &Bundle) -> std::result::Result<(), BundleError> {
        self.net.params_mut().load(prefix, from)
    }
}
