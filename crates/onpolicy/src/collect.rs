//! From a vectorised environment to a rollout, and to evaluation returns.

use candle_core::{Device, Result, Tensor};
use rollouts::{Rollout, Status, StepOut, VecEnv};

use crate::bundle::{Bundle, BundleError, Persist};
use crate::noise::Noise;
use crate::normaliser::Normaliser;
use crate::policy::{Policy, Rows};

/// Steps an environment under a policy; episodes run on from one rollout to the next.
#[derive(Clone, Debug)]
pub struct SimCollector {
    /// `[N, O]` raw observations to act on next.
    obs: Vec<f32>,
    noise: Noise,
    running: Vec<f64>,
    finished: Vec<f64>,
    /// Lanes whose present episode began at a random phase: its return would be that of a part.
    partial: Vec<bool>,
}

/// Seeds of the lanes of a run: distinct for distinct run seeds and lanes.
pub fn lane_seeds(seed: u64, purpose: &str, lanes: usize) -> Vec<u64> {
    let mut noise = Noise::named(seed, purpose);
    let bits = noise.uniform(2 * lanes);
    bits.chunks_exact(2)
        .map(|b| (u64::from((b[0] * 16_777_216.0) as u32) << 32) | u64::from((b[1] * 16_777_216.0) as u32))
        .collect()
}

impl SimCollector {
    /// Resets the environment with lane seeds that follow from `seed`. `staggered`: the first episode of each lane is cut
    /// short by the environment, so its return does not count.
    pub fn new(env: &mut impl VecEnv, seed: u64, staggered: bool) -> Self {
        let s = env.spec();
        let mut obs = vec![0.0; s.lanes * s.obs_dim];
        env.reset(&lane_seeds(seed, "environment", s.lanes), &mut obs);
        SimCollector {
            obs,
            noise: Noise::named(seed, "collection"),
            running: vec![0.0; s.lanes],
            finished: Vec::new(),
            partial: vec![staggered; s.lanes],
        }
    }

    /// Steps every lane `steps` times. Observations in the rollout are normalised with the statistics as they stood at
    /// that step; both what is acted on and what follows enters the statistics first.
    pub fn collect<E: VecEnv, P: Policy<Obs = Tensor, Action = Tensor>>(
        &mut self,
        env: &mut E,
        policy: &P,
        normaliser: &mut Normaliser,
        steps: usize,
    ) -> Result<Rollout<Tensor, P::Trace>> {
        let s = env.spec();
        let width = s.lanes * s.obs_dim;
        let mut all_obs = Vec::with_capacity(steps * width);
        let mut all_next = Vec::with_capacity(steps * width);
        let mut all_action = Vec::with_capacity(steps * s.lanes * s.act_dim);
        let mut traces = Vec::with_capacity(steps);
        let mut reward = vec![0.0; steps * s.lanes];
        let mut status = vec![Status::Running; steps * s.lanes];
        for t in 0..steps {
            let rows = t * s.lanes..(t + 1) * s.lanes;
            normaliser.update(&self.obs);
            let mut obs = self.obs.clone();
            normaliser.apply(&mut obs);
            all_obs.extend_from_slice(&obs);
            let drawn = policy.sample(&Tensor::from_vec(obs, (s.lanes, s.obs_dim), &Device::Cpu)?, &mut self.noise)?;
            let action = drawn.action.flatten_all()?.to_vec1::<f32>()?;
            let mut last = vec![0.0; width];
            env.step(
                &action,
                StepOut {
                    obs: &mut self.obs,
                    reward: &mut reward[rows.clone()],
                    status: &mut status[rows.clone()],
                    last_obs: &mut last,
                },
            );
            normaliser.update(&last);
            normaliser.apply(&mut last);
            all_next.extend_from_slice(&last);
            all_action.extend_from_slice(&action);
            traces.push(drawn.trace);
            for (n, row) in rows.enumerate() {
                self.running[n] += f64::from(reward[row]);
                if status[row] != Status::Running {
                    let total = std::mem::take(&mut self.running[n]);
                    if !std::mem::replace(&mut self.partial[n], false) {
                        self.finished.push(total);
                    }
                }
            }
        }
        let rows = steps * s.lanes;
        Ok(Rollout {
            steps,
            lanes: s.lanes,
            obs: Tensor::from_vec(all_obs, (rows, s.obs_dim), &Device::Cpu)?,
            next_obs: Some(Tensor::from_vec(all_next, (rows, s.obs_dim), &Device::Cpu)?),
            trace: Rows::concat(&traces)?,
            action: all_action,
            log_prob: Vec::new(),
            reward,
            status,
            group: (0..s.lanes as u32).collect(),
            length: vec![steps as u32; s.lanes],
        })
    }

    /// Returns of the whole training episodes that ended since the last call.
    pub fn take_finished(&mut self) -> Vec<f64> {
        std::mem::take(&mut self.finished)
    }
}

impl Persist for SimCollector {
    fn save(&self, prefix: &str, to: &mut Bundle) {
        to.put_f32(&format!("{prefix}.obs"), &[self.obs.len()], &self.obs);
        to.put_u64(
            &format!("{prefix}.running_f64_bits"),
            &self.running.iter().map(|x| x.to_bits()).collect::<Vec<_>>(),
        );
        to.put_u64(
            &format!("{prefix}.finished_f64_bits"),
            &self.finished.iter().map(|x| x.to_bits()).collect::<Vec<_>>(),
        );
        to.put_u64(&format!("{prefix}.finished_len"), &[self.finished.len() as u64]);
        to.put_bytes(&format!("{prefix}.partial"), self.partial.iter().map(|p| u8::from(*p)).collect());
        self.noise.save(prefix, to);
    }

    fn load(&mut self, prefix: &str, from: &Bundle) -> std::result::Result<(), BundleError> {
        let shape = [self.obs.len()];
        self.obs.copy_from_slice(from.f32s(&format!("{prefix}.obs"), &shape)?);
        let floats = |v: &[u64]| v.iter().map(|&b| f64::from_bits(b)).collect::<Vec<_>>();
        self.running = floats(from.u64s(&format!("{prefix}.running_f64_bits"), self.running.len())?);
        let len = from.u64s(&format!("{prefix}.finished_len"), 1)?[0] as usize;
        self.finished = floats(from.u64s(&format!("{prefix}.finished_f64_bits"), len)?);
        let partial = from.bytes(&format!("{prefix}.partial"))?;
        self.partial = (0..self.partial.len()).map(|n| partial.get(n) == Some(&1)).collect();
        self.noise.load(prefix, from)
    }
}

/// Return of one fresh episode in each lane, with frozen statistics. `act` maps normalised observations `[N, O]` to
/// actions `[N, A]`. Every lane is stepped until its first end; what it does afterwards is not counted.
pub fn episode_returns(
    env: &mut impl VecEnv,
    normaliser: &Normaliser,
    seed: u64,
    mut act: impl FnMut(&Tensor, &mut Noise) -> Result<Tensor>,
) -> Result<Vec<f64>> {
    let s = env.spec();
    let mut noise = Noise::named(seed, "evaluation");
    let mut obs = vec![0.0; s.lanes * s.obs_dim];
    env.reset(&lane_seeds(seed, "evaluation environment", s.lanes), &mut obs);
    let (mut last, mut reward, mut status) = (obs.clone(), vec![0.0; s.lanes], vec![Status::Running; s.lanes]);
    let (mut total, mut open) = (vec![0.0; s.lanes], vec![true; s.lanes]);
    while open.iter().any(|&o| o) {
        let mut x = obs.clone();
        normaliser.apply(&mut x);
        let action = act(&Tensor::from_vec(x, (s.lanes, s.obs_dim), &Device::Cpu)?, &mut noise)?
            .flatten_all()?
            .to_vec1::<f32>()?;
        env.step(&action, StepOut { obs: &mut obs, reward: &mut reward, status: &mut status, last_obs: &mut last });
        for n in 0..s.lanes {
            if open[n] {
                total[n] += f64::from(reward[n]);
                open[n] = status[n] == Status::Running;
            }
        }
    }
    Ok(total)
}
