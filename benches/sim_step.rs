//! Control steps of whole batches under held random actions: 1024 environments, all threads, resets included.
//! `cargo bench -p benches --bench sim_step`

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use rollouts::{Status, StepOut, VecEnv};
use sim_vec::{SimOptions, sim_vec};

const LANES: usize = 1024;

fn step(c: &mut Criterion) {
    let mut group = c.benchmark_group("sim_step");
    group.sample_size(20).throughput(Throughput::Elements(LANES as u64));
    for task in ["cartpole-swingup", "cheetah-run", "hopper-hop", "walker-walk", "humanoid-run"] {
        let mut env = sim_vec(task, SimOptions { stagger: true, ..SimOptions::new(LANES) }).unwrap();
        let s = env.spec();
        let mut obs = vec![0.0; LANES * s.obs_dim];
        let mut last_obs = obs.clone();
        let (mut reward, mut status) = (vec![0.0; LANES], vec![Status::Running; LANES]);
        env.reset(&(0..LANES as u64).collect::<Vec<_>>(), &mut obs);
        let mut t = 0;
        group.bench_function(task, |b| {
            b.iter(|| {
                t += 1;
                let action: Vec<f32> =
                    (0..LANES * s.act_dim).map(|i| (0.7 * i as f32 + (t / 5) as f32).sin()).collect();
                let out = StepOut { obs: &mut obs, reward: &mut reward, status: &mut status, last_obs: &mut last_obs };
                env.step(&action, out);
            })
        });
    }
    group.finish();
}

criterion_group!(all, step);
criterion_main!(all);
