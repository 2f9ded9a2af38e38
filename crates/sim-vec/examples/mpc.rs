//! Predictive sampling: control by trying thousands of futures and doing what the best one begins with.
//!
//! ```sh
//! cargo run --release -p sim-vec --example mpc
//! ```
//!
//! A cart has to swing its pole up. Ten times a second, 2048 control sequences of one second are simulated from the
//! state at hand: the best of the last time, moved on, and noisy copies of it. The first part of the best is done.
//! There is no learning and nothing is known of the cart but its model. Howell et al. 2022, "Predictive Sampling".

use std::time::{Duration, Instant};

use sim_vec::rng::Rng;
use sim_vec::rollout::{Rollout, RolloutOptions, RolloutOut};
use sim_vec::{Precision, SimError, SimVec, VecEnv};

/// Sequences tried at a time.
const SEQUENCES: usize = 2048;
/// Controls in a sequence, each held for two physics steps of 0.01 s.
const HORIZON: usize = 50;
const HOLD: usize = 2;
/// Controls done before the next plan.
const REPLAN: usize = 5;
/// Knots between which the noise is interpolated: a cart needs pushes, not trembling.
const KNOTS: usize = 8;
const NOISE: f64 = 0.5;
const SECONDS: f64 = 8.0;

fn main() -> Result<(), SimError> {
    let Outcome { total, last, steps, plans, spent } = swing_up()?;
    println!(
        "return {total:.0} of at most {steps} in {SECONDS} s, reward {last:.2} at the end; {:.0} sequences/s of {HORIZON} \
         controls, {:.1} ms a plan",
        (plans * SEQUENCES) as f64 / spent.as_secs_f64(),
        1e3 * spent.as_secs_f64() / plans as f64
    );
    Ok(())
}

/// What came of it.
pub struct Outcome {
    /// Return.
    pub total: f32,
    /// Reward of the last step.
    pub last: f32,
    /// Control steps taken.
    pub steps: usize,
    /// Plans made.
    pub plans: usize,
    /// In simulating sequences.
    pub spent: Duration,
}

/// Starts with the pole hanging down and plans until the time is over.
pub fn swing_up() -> Result<Outcome, SimError> {
    // the world: one environment in f64, its control step the planner's
    let mut env = SimVec::builder("cartpole-swingup").precision(Precision::F64).substeps(HOLD).build()?;
    let mut now = env.buffers();
    env.reset(&[1], &mut now.obs);

    // the planner: the same model in f32, with a vector register's worth of futures at a time
    let mut rollout = Rollout::new(env.model().clone(), RolloutOptions::new(HOLD))?;
    let dim = rollout.state_dim();
    let mut states = vec![0.0; SEQUENCES * HORIZON * dim];
    let mut lived = vec![0; SEQUENCES];
    let mut controls = vec![0.0; SEQUENCES * HORIZON];
    let mut plan = vec![0.0; HORIZON];

    let mut spent = Duration::ZERO;
    let (mut total, mut last, mut plans) = (0.0, 0.0, 0);
    let steps = (SECONDS / env.spec().dt_s).round() as usize;
    for step in 0..steps {
        if step % REPLAN == 0 {
            candidates(&plan, step as u64, &mut controls);
            let start = [env.state_of(0)?];
            let begin = Instant::now();
            let out = RolloutOut { states: &mut states, sensors: None, lived: &mut lived };
            rollout.run(&start, HORIZON, &controls, out)?;
            spent += begin.elapsed();
            plans += 1;
            // a future that diverged is no plan; ties go to the first
            let value = |n: usize| match lived[n] {
                HORIZON => states[n * HORIZON * dim..(n + 1) * HORIZON * dim].chunks(dim).map(reward).sum(),
                _ => f64::NEG_INFINITY,
            };
            let best = (0..SEQUENCES)
                .map(|n| (value(n), n))
                .fold((f64::NEG_INFINITY, 0), |a, b| if b.0 > a.0 { b } else { a });
            plan.copy_from_slice(&controls[best.1 * HORIZON..(best.1 + 1) * HORIZON]);
        }
        env.step(&[plan[0] as f32], now.out());
        plan.rotate_left(1);
        plan[HORIZON - 1] = 0.0;
        total += now.reward[0];
        last = now.reward[0];
    }
    Ok(Outcome { total, last, steps, plans, spent })
}

/// Fills `[SEQUENCES, HORIZON]` with the plan and noisy copies of it.
fn candidates(plan: &[f64], seed: u64, controls: &mut [f64]) {
    for (n, sequence) in controls.chunks_mut(HORIZON).enumerate() {
        let mut rng = Rng::episode(seed, n as u64);
        let size = if n == 0 { 0.0 } else { NOISE };
        let knots: [f64; KNOTS] = std::array::from_fn(|_| size * rng.normal());
        for (t, control) in sequence.iter_mut().enumerate() {
            let at = t as f64 * (KNOTS - 1) as f64 / HORIZON as f64;
            let (k, part) = (at as usize, at.fract());
            *control = (plan[t] + (1.0 - part) * knots[k] + part * knots[k + 1]).clamp(-1.0, 1.0);
        }
    }
}

/// What a state is worth: the pole up, the cart in the middle, both slow. `state` is cart, pole, and their speeds.
fn reward(state: &[f64]) -> f64 {
    let [cart, pole, _, spin] = [state[0], state[1], state[2], state[3]];
    pole.cos() - 0.1 * cart * cart - 0.01 * spin * spin
}
