//! A million environment steps of every task under uniformly random actions: does any lane turn non-finite?
//!
//! ```sh
//! cargo run --release -p sim-vec --example endurance -- [tasks=acrobot-swingup,fish-swim] [steps=1000000] [lanes=256]
//!     [seed=1] [precision=f32]
//! ```
//!
//! `tasks` are all that run unless named. Prints non-finite lanes and steps per second of each; exit status 1 if any
//! lane turned non-finite.
use std::process::ExitCode;
use std::time::Instant;

use rollouts::{Status, StepOut, VecEnv};
use sim_vec::dispatch::Precision;
use sim_vec::registry::{TaskStatus, tasks};
use sim_vec::rng::Rng;
use sim_vec::{SimError, SimOptions, sim_vec};

fn main() -> Result<ExitCode, SimError> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let get = |key: &str| args.iter().find_map(|a| a.strip_prefix(key)?.strip_prefix('='));
    let number = |key: &str, default: u64| get(key).map_or(default, |a| a.parse().expect("a number"));
    let (steps, lanes, seed) = (number("steps", 1_000_000), number("lanes", 256), number("seed", 1));
    let precision = if get("precision") == Some("f64") { Precision::F64 } else { Precision::F32 };
    let running = tasks().iter().filter(|t| t.status != TaskStatus::Planned).map(|t| t.name);
    let names = get("tasks").map_or_else(|| running.collect(), |list| list.split(',').collect::<Vec<_>>());
    let mut all = 0;
    for name in names {
        let begin = Instant::now();
        let options = SimOptions { precision, stagger: true, ..SimOptions::new(lanes as usize) };
        let (taken, non_finite) = (steps.div_ceil(lanes) * lanes, endure(name, options, steps.div_ceil(lanes), seed)?);
        let rate = taken as f64 / begin.elapsed().as_secs_f64();
        println!("{name}: {non_finite} of {taken} steps turned a lane non-finite; {rate:.0} steps/s");
        all += non_finite;
    }
    println!("non-finite in all: {all}");
    Ok(if all == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Lanes that turned non-finite.
fn endure(name: &str, options: SimOptions, steps: u64, seed: u64) -> Result<u64, SimError> {
    let mut env = sim_vec(name, options)?;
    let s = env.spec();
    let (mut obs, mut last_obs) = (vec![0.0; s.lanes * s.obs_dim], vec![0.0; s.lanes * s.obs_dim]);
    let (mut reward, mut status) = (vec![0.0; s.lanes], vec![Status::Running; s.lanes]);
    let mut action = vec![0.0; s.lanes * s.act_dim];
    let mut rng = Rng::episode(seed, u64::from(u32::MAX));
    env.reset(&(0..s.lanes as u64).map(|k| seed << 32 | k).collect::<Vec<_>>(), &mut obs);
    for _ in 0..steps {
        action.iter_mut().for_each(|a| *a = rng.uniform(-1.0, 1.0) as f32);
        let out = StepOut { obs: &mut obs, reward: &mut reward, status: &mut status, last_obs: &mut last_obs };
        env.step(&action, out);
    }
    Ok(env.non_finite_lanes())
}
