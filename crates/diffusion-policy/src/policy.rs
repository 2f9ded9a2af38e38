//! The diffusion policy: configuration, and the policy traits on top of the chain's operations.

use std::sync::{Arc, Mutex};

use candle_core::{Result, Tensor};
use onpolicy::{Bundle, BundleError, Factors, Noise, Params, Pathwise, Persist, Policy, Reparameterised, Sampled};

use crate::chain::Measure;
use crate::network::Net;
use crate::ops::{self, Chain, PathOp, ScoreOp};
use crate::schedule;

/// Which per-step divergence the trust region sees.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KlForm {
    /// Closed-form Gaussian KL, variances included.
    Full,
    /// Only the term of the means, `(μ_new − μ_old)²/(2σ_old² + 1e-8)`: TruDi's form, exact at equal frictions.
    Means,
}

/// Shape of a [`DiffusionPolicy`].
#[derive(Clone, Debug, PartialEq)]
pub struct DiffusionConfig {
    /// Observation length O.
    pub obs_dim: usize,
    /// Action length d.
    pub action_dim: usize,
    /// Denoising steps N.
    pub steps: usize,
    /// Width of the control net's hidden layers.
    pub width: usize,
    /// Its linear layers, first and last included; at least 2.
    pub depth: usize,
    /// Layer norm in the hidden layers after the first.
    pub layer_norm: bool,
    /// Initial friction of every action dimension; noise variance is 2·dt/friction.
    pub friction: f32,
    /// Divergence used by the policy traits.
    pub kl_form: KlForm,
}

/// A configuration that makes no policy.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum ConfigError {
    /// A chain without steps has no density.
    #[error("a diffusion policy needs at least 1 denoising step, got {0}")]
    NoSteps(usize),
    /// Too few layers.
    #[error("the control network needs at least 2 linear layers, got {0}")]
    TooShallow(usize),
    /// A size is 0.
    #[error("{0} must be at least 1")]
    Empty(&'static str),
    /// Friction must be positive.
    #[error("friction must be positive and finite, got {0}")]
    Friction(f32),
}

impl DiffusionConfig {
    /// TruDi's chain (N = 8, friction 1, means-only KL) with a control net of 3 layers of width 64, which a CPU trains
    /// in minutes; the published width is 512.
    pub fn new(obs_dim: usize, action_dim: usize) -> Self {
        DiffusionConfig {
            obs_dim,
            action_dim,
            steps: 8,
            width: 64,
            depth: 3,
            layer_norm: true,
            friction: 1.0,
            kl_form: KlForm::Means,
        }
    }

    /// Refuses what makes no policy.
    pub fn check(&self) -> std::result::Result<(), ConfigError> {
        for (size, name) in
            [(self.obs_dim, "observation length"), (self.action_dim, "action length"), (self.width, "width")]
        {
            if size == 0 {
                return Err(ConfigError::Empty(name));
            }
        }
        if self.steps == 0 {
            return Err(ConfigError::NoSteps(self.steps));
        }
        if self.depth < 2 {
            return Err(ConfigError::TooShallow(self.depth));
        }
        if !(self.friction > 0.0 && self.friction.is_finite()) {
            return Err(ConfigError::Friction(self.friction));
        }
        Ok(())
    }
}

/// A denoising chain conditioned on the observation. The trace is the path x_0 … x_N, `[B, (N+1)·d]`.
#[derive(Clone, Debug)]
pub struct DiffusionPolicy {
    config: DiffusionConfig,
    chain: Arc<Chain>,
    params: Params,
}

impl DiffusionPolicy {
    /// A policy whose control starts at 0: actions are tanh of the prior's own chain.
    pub fn new(config: DiffusionConfig, seed: u64) -> Result<Self> {
        config.check().map_err(candle_core::Error::wrap)?;
        let (net, params) = Net::build(&config, &mut Noise::named(seed, "policy"))?;
        let chain = Arc::new(Chain { net, dt: schedule::cosine(config.steps) });
        Ok(DiffusionPolicy { config, chain, params })
    }

    /// Its shape.
    pub fn config(&self) -> &DiffusionConfig {
        &self.config
    }

    /// The parameters, to load into or to set.
    pub fn parameters(&self) -> &Params {
        &self.params
    }

    /// Friction per action dimension, softplus of its parameter.
    pub fn friction(&self) -> Result<Vec<f32>> {
        let p = self.params.to_vec()?;
        Ok(p[self.chain.net.friction.clone()].iter().map(|f| onpolicy::simd::softplus(*f)).collect())
    }

    fn noise(&self, obs: &Tensor, noise: &mut Noise) -> Vec<f32> {
        noise.normal_vec(obs.dims()[0] * self.chain.noise_width())
    }

    /// Actions, log π̂ and entropy estimate for given noise `[B, (N+1)·d]`, its first d columns the prior's draw.
    pub fn score_with(&self, obs: &Tensor, noise: Vec<f32>, graph: bool) -> Result<Reparameterised> {
        let rows = obs.dims()[0];
        if noise.len() != rows * self.chain.noise_width() {
            candle_core::bail!(
                "{rows} observations need {} numbers of noise, got {}",
                rows * self.chain.noise_width(),
                noise.len()
            );
        }
        let op = ScoreOp { chain: self.chain.clone(), noise, keep: graph, kept: Mutex::new(None) };
        let (obs, p) = (obs.detach().contiguous()?, self.params.var().as_tensor());
        let out = if graph { obs.apply_op2(p, op)? } else { obs.apply_op2_no_bwd(p, &op)? };
        let d = self.chain.net.d;
        Ok(Reparameterised {
            action: out.narrow(1, 0, d)?,
            log_prob: out.narrow(1, d, 1)?.squeeze(1)?,
            entropy: out.narrow(1, d + 1, 1)?.squeeze(1)?,
        })
    }

    /// The noise-free chain from the prior's draw in `noise` (as in [`DiffusionPolicy::score_with`]) with factor `c`
    /// on the control. c = 1 follows the mean of every step and is what TruDi evaluates.
    pub fn deterministic_with(&self, obs: &Tensor, noise: &[f32], c: f32) -> Result<Tensor> {
        ops::deterministic(&self.chain, self.params.var(), obs, noise, c)
    }

    /// The path `[B, (N+1)·d]` that given noise draws, with the log density of its steps `[B, N]`.
    pub fn path_with(&self, obs: &Tensor, noise: &[f32]) -> Result<(Tensor, Tensor)> {
        let t = ops::trace(&self.chain, self.params.var(), obs, noise)?;
        Ok((t.path, t.density))
    }

    /// KL(p‖q) per step at given paths of p, `[B, N]`, in a chosen form; differentiable in q.
    pub fn path_kl(p: &Self, q: &Self, obs: &Tensor, path: &Tensor, form: KlForm) -> Result<Tensor> {
        let (mean, eta) = ops::means(&p.chain, p.params.var(), obs, path)?;
        q.measure(form.measure(), obs, path, mean, eta)
    }

    fn measure(&self, what: Measure, obs: &Tensor, path: &Tensor, mean: Vec<f32>, eta: Vec<f32>) -> Result<Tensor> {
        let path = path.flatten_all()?.to_vec1::<f32>()?;
        let op = PathOp { chain: self.chain.clone(), what, path, mean, eta, kept: Mutex::new(None) };
        obs.detach().contiguous()?.apply_op2(self.params.var().as_tensor(), op)
    }
}

impl KlForm {
    fn measure(self) -> Measure {
        match self {
            KlForm::Full => Measure::FullKl,
            KlForm::Means => Measure::MeanKl,
        }
    }
}

impl Policy for DiffusionPolicy {
    type Obs = Tensor;
    type Action = Tensor;
    type Trace = Tensor;

    fn sample(&self, obs: &Tensor, noise: &mut Noise) -> Result<Sampled<Self>> {
        let t = ops::trace(&self.chain, self.params.var(), obs, &self.noise(obs, noise))?;
        Ok(Sampled { action: t.action, trace: t.path, log_prob: Factors::dense(t.density)? })
    }

    /// Density of each step of the path; the prior's factor, equal for all policies, is left out.
    fn log_prob(&self, obs: &Tensor, path: &Tensor) -> Result<Factors> {
        Factors::dense(self.measure(Measure::Density, obs, path, Vec::new(), Vec::new())?)
    }

    fn kl(p: &Self, q: &Self, obs: &Tensor, path: &Tensor) -> Result<Factors> {
        Factors::dense(Self::path_kl(p, q, obs, path, q.config.kl_form)?)
    }

    fn snapshot(&self) -> Result<Self> {
        Ok(DiffusionPolicy { config: self.config.clone(), chain: self.chain.clone(), params: self.params.snapshot()? })
    }

    fn params(&self) -> Vec<&Params> {
        vec![&self.params]
    }
}

impl Pathwise for DiffusionPolicy {
    fn action_dim(&self) -> usize {
        self.config.action_dim
    }

    fn sample_grad(&self, obs: &Tensor, noise: &mut Noise) -> Result<Reparameterised> {
        self.score_with(obs, self.noise(obs, noise), true)
    }

    fn sample_scored(&self, obs: &Tensor, noise: &mut Noise) -> Result<Reparameterised> {
        self.score_with(obs, self.noise(obs, noise), false)
    }

    fn deterministic(&self, obs: &Tensor, noise: &mut Noise) -> Result<Tensor> {
        self.deterministic_with(obs, &self.noise(obs, noise), 1.0)
    }

    /// The old chain is drawn once, and its means come with it.
    fn kl_from(&self, old: &Self, obs: &Tensor, repeats: usize, noise: &mut Noise) -> Result<Tensor> {
        let rows = obs.dims()[0];
        let obs = if repeats == 1 { obs.clone() } else { Tensor::cat(&vec![obs; repeats], 0)? };
        let t = ops::trace(&old.chain, old.params.var(), &obs, &old.noise(&obs, noise))?;
        let eta = ops::step_sizes(&old.chain, old.params.var())?;
        let per_step = self.measure(self.config.kl_form.measure(), &obs, &t.path, t.mean, eta)?;
        per_step.sum(1)?.reshape((repeats, rows))?.mean(0)
    }

    fn each_scalar(&self, f: &mut dyn FnMut(&'static str, f64)) {
        if let Ok(friction) = self.friction() {
            f("friction", friction.iter().map(|x| f64::from(*x)).sum::<f64>() / friction.len() as f64);
        }
    }
}

impl Persist for DiffusionPolicy {
    fn save(&self, prefix: &str, to: &mut Bundle) {
        self.params.save(prefix, to);
    }

    fn load(&mut self, prefix: &str, from: &Bundle) -> std::result::Result<(), BundleError> {
        self.params.load(prefix, from)
    }
}
