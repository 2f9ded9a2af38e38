//! Episodes of uniformly random actions, one JSON object a task on standard output.
//!
//! ```sh
//! cargo run --release -p sim-vec --example random_returns -- [tasks=acrobot-swingup,fish-swim] [episodes=64] [seed=1]
//!     [precision=f32]
//! ```
//!
//! `tasks` are those of the control suite that are exact unless named. An object holds `task`, `reference`, `returns`
//! (one an episode), `means` (an episode's mean of every entry of the observations that its steps led to) and
//! `non_finite` (lanes that turned non-finite). `benches/peers/return_statistics.py` compares them with dm_control's.
use rollouts::{Status, StepOut, VecEnv};
use serde_json::json;
use sim_vec::dispatch::Precision;
use sim_vec::registry::{Suite, TaskStatus, find, tasks};
use sim_vec::rng::Rng;
use sim_vec::{SimError, SimOptions, sim_vec};

/// Stream of a lane's actions; its episodes use the streams from 0.
const ACTIONS: u64 = 1 << 32;

fn main() -> Result<(), SimError> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let get = |key: &str| args.iter().find_map(|a| a.strip_prefix(key)?.strip_prefix('='));
    let number = |key: &str, default: u64| get(key).map_or(default, |a| a.parse().expect("a number"));
    let (episodes, seed) = (number("episodes", 64) as usize, number("seed", 1));
    let precision = if get("precision") == Some("f64") { Precision::F64 } else { Precision::F32 };
    let exact = tasks().iter().filter(|t| t.suite == Suite::Control && t.status == TaskStatus::Exact);
    let names =
        get("tasks").map_or_else(|| exact.map(|t| t.name).collect(), |list| list.split(',').collect::<Vec<_>>());
    for name in names {
        println!("{}", play(name, episodes, seed, precision)?);
    }
    Ok(())
}

/// Plays one episode in every lane.
fn play(name: &str, episodes: usize, seed: u64, precision: Precision) -> Result<serde_json::Value, SimError> {
    let info = find(name)?;
    let mut env = sim_vec(name, SimOptions { precision, ..SimOptions::new(episodes) })?;
    let s = env.spec();
    let seeds: Vec<u64> = (0..episodes as u64).map(|k| seed << 32 | k).collect();
    let mut rngs: Vec<Rng> = seeds.iter().map(|&s| Rng::episode(s, ACTIONS)).collect();
    let (mut obs, mut last_obs) = (vec![0.0; episodes * s.obs_dim], vec![0.0; episodes * s.obs_dim]);
    let (mut reward, mut status) = (vec![0.0; episodes], vec![Status::Running; episodes]);
    let (mut returns, mut means) = (vec![0.0; episodes], vec![0.0; episodes * s.obs_dim]);
    env.reset(&seeds, &mut obs);
    for t in 1..=s.episode_steps {
        let action: Vec<f32> = rngs
            .iter_mut()
            .flat_map(|r| (0..s.act_dim).map(|_| r.uniform(-1.0, 1.0) as f32).collect::<Vec<_>>())
            .collect();
        let out = StepOut { obs: &mut obs, reward: &mut reward, status: &mut status, last_obs: &mut last_obs };
        env.step(&action, out);
        returns.iter_mut().zip(&reward).for_each(|(sum, &r)| *sum += f64::from(r));
        let share = 1.0 / s.episode_steps as f64;
        means.iter_mut().zip(&last_obs).for_each(|(mean, &x)| *mean += share * f64::from(x));
        let expected = if t < s.episode_steps { Status::Running } else { Status::Truncated };
        assert!(env.non_finite_lanes() > 0 || status.iter().all(|s| *s == expected), "{name} step {t}");
    }
    let means: Vec<&[f64]> = means.chunks(s.obs_dim).collect();
    let non_finite = env.non_finite_lanes();
    Ok(json!({
        "task": name, "reference": info.reference, "returns": returns, "means": means, "non_finite": non_finite
    }))
}
