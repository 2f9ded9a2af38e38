//! Control steps of whole batches under held random actions, new episodes included.
//!
//! `steps on one thread/TASK` goes through instruction sets and precisions, `steps on all threads` through tasks:
//! `cargo bench -p benches --bench sim_step -- 'one thread/humanoid-walk'`

use std::time::Duration;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use rollouts::{Status, StepOut, VecEnv};
use sim_vec::dispatch::{Isa, Precision};
use sim_vec::{SimOptions, SimVec, sim_vec};

const TASKS: [&str; 5] = ["cartpole-swingup", "cheetah-run", "hopper-hop", "walker-walk", "humanoid-walk"];
const LANES: usize = 1024;
/// On one thread: a step of the portable lanes should not take a second.
const FEW_LANES: usize = 256;
/// Steps that an action is held.
const HOLD: usize = 5;

/// A batch under actions, with the buffers of its caller.
struct Running {
    env: SimVec,
    action: Vec<f32>,
    obs: Vec<f32>,
    last_obs: Vec<f32>,
    reward: Vec<f32>,
    status: Vec<Status>,
    clock: usize,
}

impl Running {
    fn new(task: &str, options: SimOptions) -> Self {
        let mut env = sim_vec(task, SimOptions { stagger: true, ..options }).expect("a task that runs");
        let s = env.spec();
        let mut obs = vec![0.0; s.lanes * s.obs_dim];
        env.reset(&(0..s.lanes as u64).collect::<Vec<_>>(), &mut obs);
        Running {
            env,
            action: vec![0.0; s.lanes * s.act_dim],
            last_obs: obs.clone(),
            obs,
            reward: vec![0.0; s.lanes],
            status: vec![Status::Running; s.lanes],
            clock: 0,
        }
    }

    fn step(&mut self) {
        if self.clock.is_multiple_of(HOLD) {
            let t = (self.clock / HOLD) as f32;
            self.action.iter_mut().enumerate().for_each(|(i, a)| *a = (0.7 * i as f32 + t).sin());
        }
        self.clock += 1;
        let Running { env, action, obs, last_obs, reward, status, .. } = self;
        env.step(action, StepOut { obs, reward, status, last_obs });
    }
}

fn one_thread(c: &mut Criterion) {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build().expect("a thread");
    for task in TASKS {
        let mut group = c.benchmark_group(format!("steps on one thread/{task}"));
        group
            .sample_size(10)
            .measurement_time(Duration::from_secs(2))
            .throughput(Throughput::Elements(FEW_LANES as u64));
        for isa in Isa::ALL.into_iter().filter(|i| i.available()) {
            for (precision, word) in [(Precision::F32, "f32"), (Precision::F64, "f64")] {
                let options = SimOptions { precision, isa: Some(isa), ..SimOptions::new(FEW_LANES) };
                group.bench_function(BenchmarkId::new(isa.to_string(), word), |b| {
                    let mut running = Running::new(task, options);
                    pool.install(|| b.iter(|| running.step()))
                });
            }
        }
        group.finish();
    }
}

fn all_threads(c: &mut Criterion) {
    let mut group = c.benchmark_group("steps on all threads");
    group.sample_size(20).throughput(Throughput::Elements(LANES as u64));
    for task in TASKS {
        group.bench_function(task, |b| {
            let mut running = Running::new(task, SimOptions::new(LANES));
            b.iter(|| running.step())
        });
    }
    group.finish();
}

criterion_group!(all, one_thread, all_threads);
criterion_main!(all);
