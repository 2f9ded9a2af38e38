//! One update of the pathwise trainer at the size of the quick preset, for both policies: 256 environments, 32 steps,
//! minibatches of 1024, 4 epochs, cheetah's 17 observations and 6 actions. `cargo bench -p benches --bench update`

use std::cell::RefCell;

use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use diffusion_policy::{DiffusionConfig, DiffusionPolicy};
use onpolicy::{GaussianPolicy, Noise, Pathwise, Trainer};
use rollouts::{Rollout, Status};
use trust_region::{CriticConfig, Gate, TrustRegion, TrustRegionConfig};

const OBS: usize = 17;
const ACT: usize = 6;
const STEPS: usize = 32;
const LANES: usize = 256;

fn update(c: &mut Criterion) {
    let mut group = c.benchmark_group("update");
    group.sample_size(10).throughput(Throughput::Elements((STEPS * LANES) as u64));
    bench(&mut group, "gaussian", GaussianPolicy::new(OBS, ACT, 64, 3, 1).unwrap());
    bench(&mut group, "diffusion", DiffusionPolicy::new(DiffusionConfig::new(OBS, ACT), 1).unwrap());
    group.finish();
}

fn bench<P: Pathwise>(
    group: &mut criterion::BenchmarkGroup<'_, criterion::measurement::WallTime>,
    name: &str,
    policy: P,
) {
    let config = TrustRegionConfig {
        discount: 0.99,
        lambda: 0.95,
        epochs: 4,
        minibatch: 1024,
        kl_bound: 0.1,
        kl_samples: 1,
        target_entropy: 4.0,
        temperature: 0.1,
        multiplier: 0.01,
        actor_lr: 1e-3,
        critic_lr: 1e-3,
        temperature_lr: 3e-3,
        multiplier_lr: 3e-3,
        clip_norm: 0.5,
        anneal_updates: 0,
        gate: Gate::Clipped,
        critic: CriticConfig { width: 128, bins: 101, low: -50.0, high: 150.0, aux_weight: 1.0 },
    };
    let mut trainer = TrustRegion::new(config, OBS, &policy, 1).unwrap();
    let policy = RefCell::new(policy);
    let mut noise = Noise::new(2);
    group.bench_function(name, |b| {
        b.iter_batched(
            || {
                let obs = noise.normal((STEPS * LANES, OBS)).unwrap();
                let drawn = policy.borrow().sample(&obs, &mut noise).unwrap();
                Rollout {
                    steps: STEPS,
                    lanes: LANES,
                    next_obs: Some(obs.clone()),
                    action: drawn.action.flatten_all().unwrap().to_vec1().unwrap(),
                    trace: drawn.trace,
                    obs,
                    log_prob: Vec::new(),
                    length: vec![STEPS as u32; LANES],
                    reward: noise.uniform(STEPS * LANES),
                    status: vec![Status::Running; STEPS * LANES],
                    group: (0..LANES as u32).collect(),
                }
            },
            |rollout| trainer.update(&mut *policy.borrow_mut(), rollout).unwrap(),
            BatchSize::PerIteration,
        )
    });
}

criterion_group!(all, update);
criterion_main!(all);
