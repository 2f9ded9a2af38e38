//! A policy that learns from whole episodes: a group is one start state.

use std::time::Instant;

use anyhow::{Context, Result, anyhow, bail};
use candle_core::Tensor;
use diffusion_policy::{DiffusionConfig, DiffusionPolicy};
use grpo::{Generated, Grpo, Timing};
use onpolicy::{
    Bundle, GaussianPolicy, Noise, Normaliser, Pathwise, Persist, Policy, collect_episodes, episode_returns, lane_seeds,
};
use rollouts::{Scalars, Status, VecEnv};
use sim_vec::{SimOptions, SimVec, sim_vec};

use super::config::{GroupConfig, Kind};
use super::sizer::Sizer;
use crate::agent::{Agent, Update};
use crate::args::Mode;
use crate::eval::{self, Asked, Evaluation};

struct SimAgent<P> {
    config: GroupConfig,
    env: SimVec,
    policy: P,
    grpo: Grpo<Sizer>,
    normaliser: Normaliser,
    noise: Noise,
    updates: u64,
}

fn environments(config: &GroupConfig, lanes: usize) -> Result<SimVec> {
    let env = config.env.as_ref().context("[env] is missing")?;
    let options = SimOptions { precision: env.precision.into(), stagger: false, ..SimOptions::new(lanes) };
    Ok(sim_vec(&config.task, options)?)
}

pub(crate) fn build(config: &GroupConfig) -> Result<Box<dyn Agent>> {
    let env = environments(config, config.trainer.rollouts)?;
    let (obs, act) = (env.spec().obs_dim, env.spec().act_dim);
    let (p, seed) = (&config.policy, config.seed);
    let (width, depth) = (p.width.context("policy.width is missing")?, p.depth.context("policy.depth is missing")?);
    if depth < 2 {
        bail!("policy.depth is {depth}; it must be at least 2");
    }
    match p.kind {
        Kind::Gaussian => pair(config, env, GaussianPolicy::new(obs, act, width, depth, seed)?),
        Kind::Diffusion => {
            let steps = p.denoising_steps.context("policy.denoising_steps is missing")?;
            let shape = DiffusionConfig { steps, width, depth, ..DiffusionConfig::new(obs, act) };
            shape.check().context("policy")?;
            pair(config, env, DiffusionPolicy::new(shape, seed)?)
        }
        Kind::Transformer => {
            bail!("a transformer writes text and {} is a simulation; use gaussian or diffusion", config.task)
        }
    }
}

fn pair<P>(config: &GroupConfig, env: SimVec, policy: P) -> Result<Box<dyn Agent>>
where
    P: Policy<Obs = Tensor, Action = Tensor> + Pathwise + Persist + 'static,
{
    let obs = env.spec().obs_dim;
    let longest = env.spec().episode_steps;
    let grpo = Grpo::new(super::trainer(config, longest)?, &policy, Sizer::new(config)?, config.seed)?;
    Ok(Box::new(SimAgent {
        config: config.clone(),
        env,
        policy,
        grpo,
        normaliser: Normaliser::new(obs),
        noise: Noise::named(config.seed, "group collection"),
        updates: 0,
    }))
}

impl<P> Agent for SimAgent<P>
where
    P: Policy<Obs = Tensor, Action = Tensor> + Pathwise + Persist,
{
    fn update(&mut self) -> Result<Update> {
        let limit = self.config.env.as_ref().map(|e| e.max_steps).filter(|n| *n > 0);
        let (seed, number) = (self.config.seed, self.updates);
        let Self { env, grpo, policy, normaliser, noise, .. } = self;
        let mut returns = Vec::new();
        let mut round = 0;
        let report = grpo.step(policy, &mut |policy, ask| {
            let begun = Instant::now();
            let starts = lane_seeds(seed, &format!("start states {number}, {round}"), ask.groups);
            round += 1;
            let r = collect_episodes(env, policy, normaliser, &starts, limit, noise)?;
            let mut totals = vec![0.0; r.lanes];
            for (row, reward) in r.reward.iter().enumerate() {
                totals[row % r.lanes] += f64::from(*reward);
            }
            returns.extend(totals);
            let generate_s = begun.elapsed().as_secs_f64();
            // steps of lanes are alike: the share of steps with fewer than half of the lanes live is that of the time
            let live =
                |t: usize| r.status[t * r.lanes..(t + 1) * r.lanes].iter().filter(|s| **s != Status::Idle).count();
            let tail = (0..r.steps).filter(|t| 2 * live(*t) < r.lanes).count() as f64 / r.steps as f64;
            let useful = r.length.iter().map(|n| u64::from(*n)).sum();
            let timing = Timing { generate_s, tail_s: tail * generate_s, useful, computed: r.rows() as u64 };
            Ok(Generated { rollout: r, timing })
        })?;
        self.updates += 1;
        let mut scalars = Vec::new();
        report.each(&mut |name, value| scalars.push((name, value)));
        if let Some(status) = self.grpo.sizer().status() {
            scalars.push(("sizer_queue", status.queue));
            scalars.push(("sizer_debt", status.infeasible_debt));
        }
        scalars.push(("non_finite_lanes", self.env.non_finite_lanes() as f64));
        Ok(Update { returns, scalars })
    }

    fn save(&self, to: &mut Bundle) {
        self.policy.save("policy", to);
        self.grpo.save("trainer", to);
        self.normaliser.save("normaliser", to);
        self.noise.save("collector", to);
        to.put_u64("episodes.progress", &[self.updates]);
    }

    fn load(&mut self, from: &Bundle) -> Result<()> {
        self.load_to_act(from)?;
        self.grpo.load("trainer", from)?;
        self.noise.load("collector", from)?;
        self.updates = from.u64s("episodes.progress", 1)?[0];
        Ok(())
    }

    fn load_to_act(&mut self, from: &Bundle) -> Result<()> {
        self.policy.load("policy", from)?;
        self.normaliser.load("normaliser", from)?;
        Ok(())
    }

    fn evaluate(&self, asked: &Asked) -> Result<Evaluation> {
        let mode = asked.mode.unwrap_or(Mode::Ode);
        if mode == Mode::BestOfK {
            return Err(anyhow!(
                "--mode best-of-k needs a critic, which group-relative training has not; use ode or sde"
            ));
        }
        if asked.split.is_some() || asked.samples.is_some() || asked.completions.is_some() {
            bail!("--split, --samples and --completions are for text tasks; {} is a simulation", self.config.task);
        }
        let mut env = environments(&self.config, asked.episodes.unwrap_or(64))?;
        let returns = episode_returns(&mut env, &self.normaliser, asked.seed, |obs, noise| match mode {
            Mode::Sde | Mode::Sample => Ok(self.policy.sample(obs, noise)?.action),
            _ => self.policy.deterministic(obs, noise),
        })?;
        eval::returns(&self.config.task, mode, None, asked.seed, &returns)
    }
}
