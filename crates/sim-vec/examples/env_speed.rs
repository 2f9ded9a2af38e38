//! Wall time of whole control steps: physics, observations, rewards and new episodes, under random actions.
//!
//! ```sh
//! cargo run --release -p sim-vec --example env_speed -- task=humanoid-walk [precision=f32] [isa=avx512] [envs=256]
//!     [threads=1] [warm=50] [steps=100] [rounds=5] [stagger=on]
//! ```
//!
//! Before the first round `warm` control steps are taken, so that bodies lie and stumble as a random policy makes
//! them. Episodes begin at random phases of their clocks: every round pays its share of new episodes. With
//! `stagger=off` all begin at once, and fewer steps than an episode has are steps without new episodes. Without words it reads requests from standard input (see `request`) and keeps the environments of each for when it comes again.
//!
//! The answer is a line of JSON; `seconds` are per environment and control step, in each round.
mod request;

use request::{Failure, control};
use rollouts::{Status, StepOut, VecEnv};
use serde_json::json;
use sim_vec::{SimOptions, SimVec, registry, sim_vec};
use std::collections::HashMap;
use std::process::ExitCode;
use std::time::Instant;

const KEYS: [&str; 9] = ["task", "precision", "isa", "envs", "threads", "warm", "steps", "rounds", "stagger"];
/// Different actions kept in memory; they are taken round robin.
const ACTIONS: usize = 16;

/// Environments with the buffers of their caller.
struct Running {
    env: SimVec,
    actions: Vec<Vec<f32>>,
    obs: Vec<f32>,
    last_obs: Vec<f32>,
    reward: Vec<f32>,
    status: Vec<Status>,
    clock: usize,
}

impl Running {
    fn new(task: &str, options: SimOptions) -> Result<Self, Failure> {
        let mut env = sim_vec(task, options)?;
        let s = env.spec();
        let mut obs = vec![0.0; s.lanes * s.obs_dim];
        env.reset(&(0..s.lanes as u64).collect::<Vec<_>>(), &mut obs);
        let action = |t| (0..s.lanes * s.act_dim).map(move |i| control(i / s.act_dim, t, i % s.act_dim) as f32);
        Ok(Running {
            actions: (0..ACTIONS).map(|t| action(t).collect()).collect(),
            last_obs: obs.clone(),
            reward: vec![0.0; s.lanes],
            status: vec![Status::Running; s.lanes],
            clock: 0,
            env,
            obs,
        })
    }

    /// On the threads of the pool that calls.
    fn steps(&mut self, n: usize) {
        let Running { env, actions, obs, last_obs, reward, status, clock } = self;
        for _ in 0..n {
            env.step(&actions[*clock % ACTIONS], StepOut { obs, reward, status, last_obs });
            *clock += 1;
        }
    }
}

fn main() -> ExitCode {
    let mut kept: HashMap<String, Running> = HashMap::new();
    request::serve(&KEYS, |r| {
        let task = r.word("task").ok_or("give task=NAME")?;
        let (isa, precision) = r.lanes()?;
        let (envs, threads) = (r.number("envs", 256)?, r.number("threads", 1)?.max(1));
        let (warm, steps) = (r.number("warm", 50)?, r.number("steps", 100)?.max(1));
        let stagger = r.word("stagger").unwrap_or("on") == "on";
        let key = format!("{task} {isa} {precision:?} {envs} {threads} {stagger}");
        if !kept.contains_key(&key) {
            let options = SimOptions { lanes: envs, precision, stagger, isa: Some(isa) };
            let mut running = Running::new(task, options)?;
            // on all cores, however many are timed
            running.steps(warm);
            kept.insert(key.clone(), running);
        }
        let running = kept.get_mut(&key).expect("just made");
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build()?;
        pool.install(|| running.steps(1));
        let mut seconds = Vec::new();
        for _ in 0..r.number("rounds", 5)?.max(1) {
            let begin = Instant::now();
            pool.install(|| running.steps(steps));
            seconds.push(begin.elapsed().as_secs_f64() / (envs * steps) as f64);
        }
        let substeps = registry::build(task)?.substeps();
        let precision = format!("{precision:?}").to_lowercase();
        Ok(json!({ "seconds": seconds, "substeps": substeps, "isa": isa.to_string(), "precision": precision }))
    })
}
