//! A policy with its trainer, behind one object: the place where kinds of policy and trainer are paired.

use std::path::Path;
use std::time::Instant;

use anyhow::{Context, Result, bail};
use candle_core::{Device, Tensor};
use diffusion_policy::{DiffusionConfig, DiffusionPolicy, KlForm};
use onpolicy::{Bundle, GaussianPolicy, Noise, Normaliser, Pathwise, Persist, SimCollector, Trainer, Wants};
use rollouts::{Scalars, VecEnv};
use sim_vec::{SimOptions, SimVec, sim_vec};
use trust_region::{CriticConfig, Gate, TrustRegion, TrustRegionConfig};

use crate::args::{Mode, PolicyKind, TrainerKind};
use crate::config::{GateArg, KlFormArg, RunConfig};
use crate::eval::{self, Asked, Evaluation};
use crate::groups;
use crate::settings::Settings;

/// What one update tells, in the order of `metrics.jsonl`.
pub(crate) struct Update {
    /// Returns of the whole episodes that ended; scores of texts.
    pub returns: Vec<f64>,
    /// Everything else.
    pub scalars: Vec<(&'static str, f64)>,
}

/// A policy that learns and acts. Everything that persists of a run, environments included, is in here.
pub(crate) trait Agent {
    /// Told before the first update of a sitting: where the run lies and how many updates it has.
    fn sit(&mut self, _root: &Path, _updates: u64) -> Result<()> {
        Ok(())
    }
    /// Collects experience and learns from it.
    fn update(&mut self) -> Result<Update>;
    /// Adds the whole state.
    fn save(&self, to: &mut Bundle);
    /// Takes the whole state back.
    fn load(&mut self, from: &Bundle) -> Result<()>;
    /// Takes back what acting needs.
    fn load_to_act(&mut self, from: &Bundle) -> Result<()>;
    /// How good the policy is.
    fn evaluate(&self, asked: &Asked) -> Result<Evaluation>;
    /// The evaluations at the end of a run.
    fn closing(&self) -> Result<Vec<Evaluation>> {
        Ok(vec![self.evaluate(&Asked::default())?])
    }
}

/// Pairs policy, trainer and source of experience, ready to train.
pub(crate) fn build(settings: &Settings) -> Result<Box<dyn Agent>> {
    match settings {
        Settings::Steps(c) => build_steps(c, c.env.envs),
        Settings::Groups(c) => groups::build(c),
    }
}

/// The same for evaluation, which needs no environments of its own.
pub(crate) fn build_to_act(settings: &Settings) -> Result<Box<dyn Agent>> {
    match settings {
        Settings::Steps(c) => build_steps(c, 1),
        Settings::Groups(c) => groups::build(c),
    }
}

/// Makes the environments of a run.
pub(crate) fn environments(config: &RunConfig, lanes: usize, stagger: bool) -> Result<SimVec> {
    let options = SimOptions { precision: config.env.precision.into(), stagger, ..SimOptions::new(lanes) };
    Ok(sim_vec(&config.task, options)?)
}

/// Pairs policy and trainer. `lanes`: environments to train in.
fn build_steps(config: &RunConfig, lanes: usize) -> Result<Box<dyn Agent>> {
    let env = environments(config, lanes, config.env.stagger)?;
    let (obs, act) = (env.spec().obs_dim, env.spec().act_dim);
    let (p, seed) = (&config.policy, config.seed);
    match (p.kind, config.trainer.kind) {
        (PolicyKind::Diffusion, TrainerKind::TrustRegion) => {
            let shape = DiffusionConfig {
                steps: p.denoising_steps.context("policy.denoising_steps is missing")?,
                width: p.width,
                depth: p.depth,
                layer_norm: p.layer_norm.context("policy.layer_norm is missing")?,
                friction: p.friction.context("policy.friction is missing")?,
                kl_form: match p.kl_form.context("policy.kl_form is missing")? {
                    KlFormArg::Full => KlForm::Full,
                    KlFormArg::Means => KlForm::Means,
                },
                ..DiffusionConfig::new(obs, act)
            };
            shape.check().context("policy")?;
            pair(config, env, DiffusionPolicy::new(shape, seed)?)
        }
        (PolicyKind::Gaussian, TrainerKind::TrustRegion) => {
            pair(config, env, GaussianPolicy::new(obs, act, p.width, p.depth, seed)?)
        }
    }
}

fn pair<P: Pathwise + Persist + 'static>(config: &RunConfig, mut env: SimVec, policy: P) -> Result<Box<dyn Agent>> {
    let obs = env.spec().obs_dim;
    let trainer = TrustRegion::new(trainer_config(config), obs, &policy, config.seed).map_err(|e| match e {
        trust_region::SetupError::Config(e) => {
            let section = if e.field.starts_with("critic.") { "" } else { "trainer." };
            anyhow::anyhow!("{section}{} is {}; it must be {}", e.field, e.value, e.expected)
        }
        other => other.into(),
    })?;
    let collector = SimCollector::new(&mut env, config.seed, config.env.stagger);
    Ok(Box::new(Pair { config: config.clone(), env, policy, trainer, normaliser: Normaliser::new(obs), collector }))
}

fn trainer_config(config: &RunConfig) -> TrustRegionConfig {
    let (t, c) = (&config.trainer, &config.critic);
    TrustRegionConfig {
        discount: t.discount,
        lambda: t.lambda,
        epochs: t.epochs,
        minibatch: t.minibatch,
        kl_bound: t.kl_bound,
        kl_samples: t.kl_samples,
        target_entropy: t.target_entropy,
        temperature: t.temperature,
        multiplier: t.multiplier,
        actor_lr: t.actor_lr,
        critic_lr: t.critic_lr,
        temperature_lr: t.temperature_lr,
        multiplier_lr: t.multiplier_lr,
        clip_norm: t.clip_norm,
        anneal_updates: if t.anneal { config.updates() } else { 0 },
        gate: match t.gate {
            GateArg::Clipped => Gate::Clipped,
            GateArg::Full => Gate::Full,
            GateArg::Value => Gate::Value,
        },
        critic: CriticConfig { width: c.width, bins: c.bins, low: c.low, high: c.high, aux_weight: c.aux_weight },
    }
}

struct Pair<P> {
    config: RunConfig,
    env: SimVec,
    policy: P,
    trainer: TrustRegion,
    normaliser: Normaliser,
    collector: SimCollector,
}

impl<P: Pathwise + Persist> Agent for Pair<P> {
    fn update(&mut self) -> Result<Update> {
        let (start, steps) = (Instant::now(), self.config.trainer.rollout_steps);
        let rollout = self.collector.collect(&mut self.env, &self.policy, &mut self.normaliser, steps)?;
        let collect_s = start.elapsed().as_secs_f64();
        let reward_mean = rollout.reward.iter().map(|r| f64::from(*r)).sum::<f64>() / rollout.reward.len() as f64;
        let report = self.trainer.update(&mut self.policy, rollout)?;
        let mut scalars = vec![("reward_mean", reward_mean)];
        report.each(&mut |name, value| scalars.push((name, value)));
        self.policy.each_scalar(&mut |name, value| scalars.push((name, value)));
        scalars.push(("collect_s", collect_s));
        scalars.push(("non_finite_lanes", self.env.non_finite_lanes() as f64));
        Ok(Update { returns: self.collector.take_finished(), scalars })
    }

    fn save(&self, to: &mut Bundle) {
        self.policy.save("policy", to);
        self.trainer.save("trainer", to);
        self.normaliser.save("normaliser", to);
        self.collector.save("collector", to);
        to.put_bytes("environments", self.env.snapshot());
    }

    fn load(&mut self, from: &Bundle) -> Result<()> {
        self.load_to_act(from)?;
        self.collector.load("collector", from)?;
        self.env.restore(from.bytes("environments")?).map_err(|e| anyhow::anyhow!("environments: {e}"))
    }

    fn load_to_act(&mut self, from: &Bundle) -> Result<()> {
        self.policy.load("policy", from)?;
        self.trainer.load("trainer", from)?;
        self.normaliser.load("normaliser", from)?;
        Ok(())
    }

    fn evaluate(&self, asked: &Asked) -> Result<Evaluation> {
        let (mode, episodes) = (asked.mode.unwrap_or(Mode::Ode), asked.episodes.unwrap_or(64));
        if asked.split.is_some() || asked.samples.is_some() || asked.completions.is_some() {
            bail!("--split, --samples and --completions are for text tasks; {} is a simulation", self.config.task);
        }
        let mut env = environments(&self.config, episodes, false)?;
        let returns = onpolicy::episode_returns(&mut env, &self.normaliser, asked.seed, |obs, noise| match mode {
            Mode::Ode | Mode::Greedy => self.policy.deterministic(obs, noise),
            Mode::Sde | Mode::Sample => Ok(self.policy.sample(obs, noise)?.action),
            Mode::BestOfK => best_of(&self.policy, &self.trainer, obs, asked.k, noise),
        })?;
        let k = (mode == Mode::BestOfK).then_some(asked.k);
        eval::returns(&self.config.task, mode, k, asked.seed, &returns)
    }
}

/// Of K drawn actions per state the one the critic values most.
fn best_of<P: Pathwise>(
    policy: &P,
    trainer: &TrustRegion,
    obs: &Tensor,
    k: usize,
    noise: &mut Noise,
) -> candle_core::Result<Tensor> {
    let (rows, width) = (obs.dims()[0], policy.action_dim());
    let mut best = vec![f32::NEG_INFINITY; rows];
    let mut chosen = vec![0.0; rows * width];
    for _ in 0..k {
        let action = policy.sample(obs, noise)?.action;
        let value = trainer.critic().value(obs, &action, Wants::Nothing)?.to_vec1::<f32>()?;
        let action = action.flatten_all()?.to_vec1::<f32>()?;
        for (n, &v) in value.iter().enumerate() {
            if v > best[n] {
                best[n] = v;
                chosen[n * width..(n + 1) * width].copy_from_slice(&action[n * width..(n + 1) * width]);
            }
        }
    }
    Tensor::from_vec(chosen, (rows, width), &Device::Cpu)
}
