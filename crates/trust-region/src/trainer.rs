//! The trainer: one critic step and one gated policy step per minibatch.

use std::time::Instant;

use candle_core::backprop::GradStore;
use candle_core::{DType, Device, Tensor};
use onpolicy::adam::{clip_scale, squared_norm};
use onpolicy::params::with_slice;
use onpolicy::{
    Adam, AdamConfig, Bundle, BundleError, Noise, Params, Pathwise, Persist, Rows, TrainError, Trainer, Wants,
};
use rollouts::{Rollout, Scalars, Status, returns::lambda_return};

use crate::config::{ConfigError, TrustRegionConfig};
use crate::critic::Critic;
use crate::loss::{Multipliers, critic_loss, multiplier_gradient, policy_loss, temperature_gradient};
use crate::multiplier::Multiplier;

/// Rows of one critic or policy pass outside the minibatches: bounds memory, changes no number.
const CHUNK: usize = 8192;

/// What one update tells.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Report {
    /// Mean KL(old‖new) over all minibatches, nats.
    pub kl: f64,
    /// Share of states inside the trust region.
    pub inside: f64,
    /// Mean entropy estimate, nats.
    pub entropy: f64,
    /// α after the update.
    pub temperature: f64,
    /// β after the update.
    pub multiplier: f64,
    /// Mean cross-entropy of the critic.
    pub critic_loss: f64,
    /// 1 − Var(G − Q)/Var(G) during the first epoch, each row judged before it is learned from. NaN if G is constant.
    pub explained_variance: f64,
    /// Mean soft return G.
    pub target_mean: f64,
    /// Share of returns outside the critic's support.
    pub clipped_targets: f64,
    /// Mean gradient norm of the policy and its multipliers before clipping.
    pub actor_grad_norm: f64,
    /// Mean gradient norm of the critic before clipping.
    pub critic_grad_norm: f64,
    /// Seconds in bootstrap values and returns.
    pub bootstrap_s: f64,
    /// Seconds in critic steps.
    pub critic_s: f64,
    /// Seconds in policy steps.
    pub actor_s: f64,
}

impl Scalars for Report {
    fn each(&self, f: &mut dyn FnMut(&'static str, f64)) {
        f("kl", self.kl);
        f("inside", self.inside);
        f("entropy", self.entropy);
        f("temperature", self.temperature);
        f("multiplier", self.multiplier);
        f("critic_loss", self.critic_loss);
        f("explained_variance", self.explained_variance);
        f("target_mean", self.target_mean);
        f("clipped_targets", self.clipped_targets);
        f("actor_grad_norm", self.actor_grad_norm);
        f("critic_grad_norm", self.critic_grad_norm);
        f("bootstrap_s", self.bootstrap_s);
        f("critic_s", self.critic_s);
        f("actor_s", self.actor_s);
    }
}

/// Maximum-entropy pathwise policy optimisation inside a KL trust region. With a diffusion policy it is TruDi, with a
/// Gaussian one REPPO.
#[derive(Debug)]
pub struct TrustRegion {
    config: TrustRegionConfig,
    action_dim: usize,
    critic: Critic,
    critic_adam: Vec<Adam>,
    actor_adam: Vec<Adam>,
    temperature: Multiplier,
    multiplier: Multiplier,
    noise: Noise,
    updates: u64,
}

/// Why a trainer cannot be made.
#[derive(Debug, thiserror::Error)]
pub enum SetupError {
    /// A setting is out of range.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// A tensor operation failed.
    #[error(transparent)]
    Tensor(#[from] candle_core::Error),
}

/// Everything a minibatch is drawn from. Row = `t * lanes + n`.
struct Data {
    /// `[R, O]`
    obs: Tensor,
    /// `[R, A]`
    action: Tensor,
    /// `[R]` soft λ-returns.
    returns: Vec<f32>,
    /// `[R, width]` features of the next state with an action of the policy that collected.
    next_features: Tensor,
    /// Rows that are not idle.
    live: Vec<u32>,
}

impl TrustRegion {
    /// A trainer for `policy` on observations of that length. All its randomness follows from `seed`.
    ///
    /// Errors: [`SetupError::Config`] for a setting out of range.
    pub fn new(
        config: TrustRegionConfig,
        obs_dim: usize,
        policy: &impl Pathwise,
        seed: u64,
    ) -> Result<Self, SetupError> {
        config.check()?;
        let action_dim = policy.action_dim();
        let critic = Critic::new(&config.critic, obs_dim, action_dim, &mut Noise::named(seed, "critic"))?;
        let adam = |params: &[&Params]| params.iter().map(|p| Adam::new(p.len(), AdamConfig::default())).collect();
        Ok(TrustRegion {
            config,
            action_dim,
            critic_adam: adam(&critic.params()),
            actor_adam: adam(&policy.params()),
            critic,
            temperature: Multiplier::new(config.temperature),
            multiplier: Multiplier::new(config.multiplier),
            noise: Noise::named(seed, "update"),
            updates: 0,
        })
    }

    /// The critic, for evaluation by best of K.
    pub fn critic(&self) -> &Critic {
        &self.critic
    }

    /// Updates made.
    pub fn updates(&self) -> u64 {
        self.updates
    }

    /// Soft returns and next features. The policy and the critic are those that collected.
    ///
    /// ```text
    /// a'_t ~ π(·|s'_t),   r̃_t = r_t − γ·α·ln π̂(a'_t|s'_t)·[not terminated]
    /// G = λ-return of r̃ with the values Q(s'_t, a'_t)
    /// ```
    fn evaluate<P: Pathwise>(&mut self, policy: &P, rollout: Rollout<Tensor, P::Trace>) -> Result<Data, TrainError> {
        let next = rollout.next_obs.ok_or(TrainError::NoBootstrap)?;
        let rows = rollout.reward.len();
        let (mut value, mut log_prob, mut features) = (Vec::new(), Vec::new(), Vec::new());
        for start in (0..rows).step_by(CHUNK) {
            let obs = next.narrow(0, start, CHUNK.min(rows - start))?;
            let drawn = policy.sample_scored(&obs, &mut self.noise)?;
            let judged = self.critic.judge(&obs, &drawn.action, Wants::Nothing)?;
            value.extend(self.critic.support().expectation(&judged.logits)?.to_vec1::<f32>()?);
            log_prob.extend(drawn.log_prob.to_vec1::<f32>()?);
            features.push(judged.features);
        }
        let bonus = self.config.discount * self.temperature.get() as f32;
        let soft: Vec<f32> = (rollout.reward.iter().zip(&log_prob).zip(&rollout.status))
            .map(|((r, l), s)| if *s == Status::Terminated { *r } else { r - bonus * l })
            .collect();
        let mut returns = vec![0.0; rows];
        let (gamma, lambda) = (self.config.discount, self.config.lambda);
        lambda_return(&soft, &value, &rollout.status, rollout.lanes, gamma, lambda, &mut returns);
        Ok(Data {
            obs: rollout.obs,
            action: Tensor::from_vec(rollout.action, (rows, self.action_dim), &Device::Cpu)?,
            returns,
            next_features: Rows::concat(&features)?,
            live: (0..rows as u32).filter(|&i| rollout.status[i as usize] != Status::Idle).collect(),
        })
    }

    /// Factor of all learning rates in this update.
    fn annealed(&self) -> f64 {
        match self.config.anneal_updates {
            0 => 1.0,
            n => 1.0 - self.updates.min(n) as f64 / n as f64,
        }
    }

    fn not_finite(&self, what: &'static str) -> TrainError {
        TrainError::NotFinite { what, update: self.updates }
    }

    /// One clipped Adam step of the critic.
    fn critic_step(&mut self, batch: &Batch, tally: &mut Tally, first_epoch: bool) -> Result<(), TrainError> {
        let weight = Tensor::ones(batch.returns.len(), DType::F32, &Device::Cpu)?;
        let aux = self.config.critic.aux_weight;
        let loss =
            critic_loss(&self.critic, &batch.obs, &batch.action, &batch.returns, &batch.next_features, &weight, aux)?;
        let grads = Gradients::of(&loss.total, &self.critic.params())?;
        let norm = grads.squared_norm().sqrt();
        if !norm.is_finite() {
            return Err(self.not_finite("the critic's gradient"));
        }
        tally.add(0, f64::from(loss.cross_entropy.to_scalar::<f32>()?));
        tally.add(1, norm);
        if first_epoch {
            let value = self.critic.support().expectation(&loss.logits)?.to_vec1::<f32>()?;
            tally.explain(&batch.returns, &value);
        }
        let lr = self.config.critic_lr * self.annealed();
        grads.apply(&self.critic.params(), &mut self.critic_adam, clip_scale(norm, self.config.clip_norm), lr)?;
        Ok(())
    }

    /// One clipped Adam step of the policy and both multipliers.
    fn policy_step<P: Pathwise>(
        &mut self,
        policy: &P,
        old: &P,
        batch: &Batch,
        tally: &mut Tally,
    ) -> Result<(), TrainError> {
        let c = self.config;
        let drawn = policy.sample_grad(&batch.obs, &mut self.noise)?;
        let value = self.critic.value(&batch.obs, &drawn.action, Wants::Input)?;
        let kl = policy.kl_from(old, &batch.obs, c.kl_samples, &mut self.noise)?;
        let weights = Multipliers {
            temperature: self.temperature.get(),
            multiplier: self.multiplier.get(),
            kl_bound: c.kl_bound.into(),
        };
        let loss = policy_loss(&drawn, &value, &kl, &weights, c.gate)?;
        let kls = kl.to_vec1::<f32>()?;
        let mean = |v: &[f32]| v.iter().map(|x| f64::from(*x)).sum::<f64>() / v.len() as f64;
        let (mean_kl, entropy) = (mean(&kls), mean(&drawn.entropy.to_vec1::<f32>()?));
        let target = f64::from(c.target_entropy) * self.action_dim as f64;
        let d_temperature = temperature_gradient(weights.temperature, target, entropy);
        let d_multiplier = multiplier_gradient(weights.multiplier, mean_kl, weights.kl_bound);
        let grads = Gradients::of(&loss, &policy.params())?;
        let norm = (grads.squared_norm() + d_temperature.powi(2) + d_multiplier.powi(2)).sqrt();
        if !norm.is_finite() {
            return Err(self.not_finite("the policy's gradient"));
        }
        let (scale, anneal) = (clip_scale(norm, c.clip_norm), self.annealed());
        grads.apply(&policy.params(), &mut self.actor_adam, scale, c.actor_lr * anneal)?;
        self.temperature.descend(d_temperature, scale, c.temperature_lr * anneal);
        self.multiplier.descend(d_multiplier, scale, c.multiplier_lr * anneal);
        tally.add(2, mean_kl);
        tally.add(3, kls.iter().filter(|k| **k < c.kl_bound).count() as f64 / kls.len() as f64);
        tally.add(4, entropy);
        tally.add(5, norm);
        Ok(())
    }
}

impl<P: Pathwise> Trainer<P> for TrustRegion {
    type Report = Report;

    /// Learns from one rollout. The trust region is around the policy as it comes in. Idle rows teach nothing.
    ///
    /// Errors: [`TrainError::NoBootstrap`], [`TrainError::NotFinite`] before the step that would have carried it into the
    /// parameters.
    fn update(&mut self, policy: &mut P, rollout: Rollout<Tensor, P::Trace>) -> Result<Report, TrainError> {
        let mut clock = Clock(Instant::now());
        let data = self.evaluate(policy, rollout)?;
        let old = policy.snapshot()?;
        let mut report = Report { bootstrap_s: clock.lap(), ..Default::default() };
        let mut tally = Tally::default();
        let rows = data.live.len();
        for epoch in 0..self.config.epochs {
            let order: Vec<u32> = self.noise.permutation(rows).iter().map(|&i| data.live[i as usize]).collect();
            for indices in order.chunks(self.config.minibatch) {
                let batch = data.batch(indices)?;
                self.critic_step(&batch, &mut tally, epoch == 0)?;
                report.critic_s += clock.lap();
                self.policy_step(policy, &old, &batch, &mut tally)?;
                report.actor_s += clock.lap();
            }
        }
        self.updates += 1;
        let (low, high) = (self.config.critic.low, self.config.critic.high);
        report.critic_loss = tally.mean(0);
        report.critic_grad_norm = tally.mean(1);
        report.kl = tally.mean(2);
        report.inside = tally.mean(3);
        report.entropy = tally.mean(4);
        report.actor_grad_norm = tally.mean(5);
        report.explained_variance = tally.explained_variance();
        report.temperature = self.temperature.get();
        report.multiplier = self.multiplier.get();
        let returns = || data.live.iter().map(|&i| data.returns[i as usize]);
        report.target_mean = returns().map(f64::from).sum::<f64>() / rows as f64;
        report.clipped_targets = returns().filter(|g| !(low..=high).contains(g)).count() as f64 / rows as f64;
        Ok(report)
    }
}

impl Persist for TrustRegion {
    fn save(&self, prefix: &str, to: &mut Bundle) {
        self.critic.save(&format!("{prefix}.critic"), to);
        for (i, adam) in self.critic_adam.iter().enumerate() {
            adam.save(&format!("{prefix}.critic_adam.{i}"), to);
        }
        for (i, adam) in self.actor_adam.iter().enumerate() {
            adam.save(&format!("{prefix}.actor_adam.{i}"), to);
        }
        self.temperature.save(&format!("{prefix}.temperature"), to);
        self.multiplier.save(&format!("{prefix}.multiplier"), to);
        self.noise.save(prefix, to);
        to.put_u64(&format!("{prefix}.updates"), &[self.updates]);
    }

    fn load(&mut self, prefix: &str, from: &Bundle) -> Result<(), BundleError> {
        self.critic.load(&format!("{prefix}.critic"), from)?;
        for (i, adam) in self.critic_adam.iter_mut().enumerate() {
            adam.load(&format!("{prefix}.critic_adam.{i}"), from)?;
        }
        for (i, adam) in self.actor_adam.iter_mut().enumerate() {
            adam.load(&format!("{prefix}.actor_adam.{i}"), from)?;
        }
        self.temperature.load(&format!("{prefix}.temperature"), from)?;
        self.multiplier.load(&format!("{prefix}.multiplier"), from)?;
        self.noise.load(prefix, from)?;
        self.updates = from.u64s(&format!("{prefix}.updates"), 1)?[0];
        Ok(())
    }
}

/// The rows of one step.
struct Batch {
    obs: Tensor,
    action: Tensor,
    returns: Vec<f32>,
    next_features: Tensor,
}

impl Data {
    fn batch(&self, indices: &[u32]) -> Result<Batch, TrainError> {
        let rows = Tensor::new(indices, &Device::Cpu)?;
        Ok(Batch {
            obs: self.obs.index_select(&rows, 0)?,
            action: self.action.index_select(&rows, 0)?,
            returns: indices.iter().map(|&i| self.returns[i as usize]).collect(),
            next_features: self.next_features.index_select(&rows, 0)?,
        })
    }
}

/// Gradients of a loss for several networks.
struct Gradients(Vec<Option<Tensor>>);

impl Gradients {
    fn of(loss: &Tensor, params: &[&Params]) -> candle_core::Result<Self> {
        let mut store: GradStore = loss.backward()?;
        params
            .iter()
            .map(|p| store.remove(p.var().as_tensor()).map(|g| g.contiguous()).transpose())
            .collect::<Result<_, _>>()
            .map(Gradients)
    }

    fn squared_norm(&self) -> f64 {
        self.0.iter().flatten().map(|g| with_slice(g, squared_norm).expect("gradients are f32 on the CPU")).sum()
    }

    /// Networks the loss does not depend on stay as they are.
    fn apply(&self, params: &[&Params], adam: &mut [Adam], scale: f64, lr: f64) -> candle_core::Result<()> {
        for ((grad, params), adam) in self.0.iter().zip(params).zip(adam) {
            if let Some(grad) = grad {
                with_slice(grad, |g| adam.step_params(params, g, scale as f32, lr))??;
            }
        }
        Ok(())
    }
}

/// Means over minibatches.
#[derive(Default)]
struct Tally {
    sums: [(f64, u64); 6],
    /// Σ1, Σ(G−Q), Σ(G−Q)², ΣG, ΣG²
    moments: [f64; 5],
}

impl Tally {
    fn add(&mut self, slot: usize, x: f64) {
        self.sums[slot].0 += x;
        self.sums[slot].1 += 1;
    }

    fn mean(&self, slot: usize) -> f64 {
        self.sums[slot].0 / self.sums[slot].1 as f64
    }

    fn explain(&mut self, returns: &[f32], value: &[f32]) {
        for (g, q) in returns.iter().zip(value) {
            let (g, error) = (f64::from(*g), f64::from(*g) - f64::from(*q));
            for (m, x) in self.moments.iter_mut().zip([1.0, error, error * error, g, g * g]) {
                *m += x;
            }
        }
    }

    fn explained_variance(&self) -> f64 {
        let [n, e, ee, g, gg] = self.moments;
        let variance = gg / n - (g / n).powi(2);
        if variance > 0.0 { 1.0 - (ee / n - (e / n).powi(2)) / variance } else { f64::NAN }
    }
}

struct Clock(Instant);

impl Clock {
    /// Seconds since the last lap.
    fn lap(&mut self) -> f64 {
        let now = Instant::now();
        now.duration_since(std::mem::replace(&mut self.0, now)).as_secs_f64()
    }
}
