//! What a trainer promises, with either policy.

use candle_core::Tensor;
use diffusion_policy::{DiffusionConfig, DiffusionPolicy};
use onpolicy::{Bundle, GaussianPolicy, Noise, Pathwise, Persist, TrainError, Trainer};
use rollouts::{Rollout, Status};
use trust_region::{CriticConfig, Gate, TrustRegion, TrustRegionConfig};

const STEPS: usize = 8;
const LANES: usize = 16;
const OBS: usize = 3;
const ACT: usize = 2;

fn config() -> TrustRegionConfig {
    TrustRegionConfig {
        discount: 0.9,
        lambda: 0.9,
        epochs: 2,
        minibatch: 48,
        kl_bound: 0.1,
        kl_samples: 2,
        target_entropy: 0.5,
        temperature: 0.1,
        multiplier: 0.05,
        actor_lr: 1e-3,
        critic_lr: 1e-3,
        temperature_lr: 3e-3,
        multiplier_lr: 3e-3,
        clip_norm: 0.5,
        anneal_updates: 0,
        gate: Gate::Clipped,
        critic: CriticConfig { width: 16, bins: 21, low: -10.0, high: 10.0, aux_weight: 1.0 },
    }
}

fn gaussian() -> GaussianPolicy {
    GaussianPolicy::new(OBS, ACT, 16, 3, 5).unwrap()
}

fn diffusion() -> DiffusionPolicy {
    DiffusionPolicy::new(DiffusionConfig { steps: 3, width: 16, ..DiffusionConfig::new(OBS, ACT) }, 5).unwrap()
}

/// One-step decisions whose reward is high where the action equals the first two observations' sign.
fn rollout<P: Pathwise>(policy: &P, seed: u64, status: Status) -> Rollout<Tensor, P::Trace> {
    let mut noise = Noise::new(seed);
    let obs = noise.normal((STEPS * LANES, OBS)).unwrap();
    let drawn = policy.sample(&obs, &mut noise).unwrap();
    let (o, action) = (obs.to_vec2::<f32>().unwrap(), drawn.action.to_vec2::<f32>().unwrap());
    let reward = (o.iter().zip(&action))
        .map(|(o, a)| 1.0 - a.iter().zip(o).map(|(a, o)| (a - 0.5 * o.signum()).powi(2)).sum::<f32>())
        .collect();
    Rollout {
        steps: STEPS,
        lanes: LANES,
        next_obs: Some(obs.clone()),
        obs,
        trace: drawn.trace,
        action: action.concat(),
        log_prob: Vec::new(),
        reward,
        status: vec![status; STEPS * LANES],
        group: (0..LANES as u32).collect(),
        length: vec![STEPS as u32; LANES],
    }
}

fn weights(policy: &impl Pathwise, trainer: &TrustRegion) -> Vec<u32> {
    let all = policy.params().into_iter().chain(trainer.critic().params());
    all.flat_map(|p| p.to_vec().unwrap()).map(f32::to_bits).collect()
}

fn trained<P: Pathwise>(mut policy: P, config: TrustRegionConfig, updates: u64) -> (P, TrustRegion) {
    let mut trainer = TrustRegion::new(config, OBS, &policy, 7).unwrap();
    for seed in 0..updates {
        let rollout = rollout(&policy, seed, Status::Running);
        trainer.update(&mut policy, rollout).unwrap();
    }
    (policy, trainer)
}

#[test]
fn either_policy_learns_a_one_step_task() {
    fn gain<P: Pathwise>(mut policy: P) -> (f32, f32) {
        let config = TrustRegionConfig { actor_lr: 5e-3, critic_lr: 5e-3, kl_bound: 0.5, ..config() };
        let mut trainer = TrustRegion::new(config, OBS, &policy, 7).unwrap();
        let mean = |p: &P| rollout(p, 999, Status::Terminated).reward.iter().sum::<f32>() / (STEPS * LANES) as f32;
        let before = mean(&policy);
        for seed in 0..60 {
            let rollout = rollout(&policy, seed, Status::Terminated);
            trainer.update(&mut policy, rollout).unwrap();
        }
        (before, mean(&policy))
    }
    for (before, after) in [gain(gaussian()), gain(diffusion())] {
        assert!(after > before + 0.5, "reward {before} → {after}");
    }
}

#[test]
fn equal_seeds_give_equal_bits_and_thread_count_changes_none() {
    fn bits<P: Pathwise>(make: impl Fn() -> P + Send + Sync, threads: usize) -> Vec<u32> {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| {
            let (policy, trainer) = trained(make(), config(), 2);
            weights(&policy, &trainer)
        })
    }
    assert_eq!(bits(gaussian, 1), bits(gaussian, 3));
    assert_eq!(bits(diffusion, 1), bits(diffusion, 3));
}

#[test]
fn every_parameter_moves_in_an_update() {
    fn moved<P: Pathwise>(make: impl Fn() -> P) {
        let (before, fresh) = trained(make(), config(), 0);
        // an output layer near zero hides the layers below it in the first step
        let (after, trainer) = trained(make(), config(), 3);
        let pairs = before.params().into_iter().zip(after.params());
        for (a, b) in pairs.chain(fresh.critic().params().into_iter().zip(trainer.critic().params())) {
            let (va, vb) = (a.to_vec().unwrap(), b.to_vec().unwrap());
            for part in a.parts() {
                assert!(va[part.range()] != vb[part.range()], "{} stood still", part.name);
            }
        }
    }
    moved(gaussian);
    moved(diffusion);
}

#[test]
fn a_restored_trainer_goes_on_to_the_same_bits() {
    let (mut policy, mut trainer) = trained(diffusion(), config(), 2);
    let mut saved = Bundle::default();
    policy.save("policy", &mut saved);
    trainer.save("trainer", &mut saved);

    let mut other = DiffusionPolicy::new(policy.config().clone(), 99).unwrap();
    other.load("policy", &saved).unwrap();
    let mut resumed = TrustRegion::new(config(), OBS, &other, 99).unwrap();
    resumed.load("trainer", &saved).unwrap();

    let next = |p: &DiffusionPolicy| rollout(p, 50, Status::Running);
    let reports = [
        {
            let r = next(&policy);
            trainer.update(&mut policy, r).unwrap()
        },
        {
            let r = next(&other);
            resumed.update(&mut other, r).unwrap()
        },
    ];
    assert_eq!(weights(&policy, &trainer), weights(&other, &resumed));
    assert_eq!(reports[0].kl.to_bits(), reports[1].kl.to_bits());
    assert_eq!(resumed.updates(), 3);
}

#[test]
fn a_tight_trust_region_holds_the_policy() {
    let loose = TrustRegionConfig { actor_lr: 1e-2, epochs: 8, gate: Gate::Value, ..config() };
    let tight = TrustRegionConfig { gate: Gate::Clipped, kl_bound: 0.01, multiplier: 1.0, ..loose };
    fn kl(config: TrustRegionConfig) -> f64 {
        let mut policy = diffusion();
        let mut trainer = TrustRegion::new(config, OBS, &policy, 7).unwrap();
        let rollout = rollout(&policy, 1, Status::Running);
        let old = onpolicy::Policy::snapshot(&policy).unwrap();
        let obs = rollout.obs.clone();
        trainer.update(&mut policy, rollout).unwrap();
        let kl = policy.kl_from(&old, &obs, 4, &mut Noise::new(3)).unwrap().to_vec1::<f32>().unwrap();
        f64::from(kl.iter().sum::<f32>()) / kl.len() as f64
    }
    let (loose, tight) = (kl(loose), kl(tight));
    assert!(loose > 0.1 && tight < 0.3 * loose, "KL without bound {loose}, with {tight}");
}

#[test]
fn a_rollout_without_next_observations_is_refused() {
    let mut policy = gaussian();
    let mut trainer = TrustRegion::new(config(), OBS, &policy, 7).unwrap();
    let rollout = Rollout { next_obs: None, ..rollout(&policy, 1, Status::Running) };
    assert!(matches!(trainer.update(&mut policy, rollout), Err(TrainError::NoBootstrap)));
}

#[test]
fn numbers_that_are_not_finite_stop_the_update_and_touch_no_parameter() {
    let mut policy = gaussian();
    let mut trainer = TrustRegion::new(config(), OBS, &policy, 7).unwrap();
    let before = weights(&policy, &trainer);
    let rollout = Rollout { reward: vec![f32::NAN; STEPS * LANES], ..rollout(&policy, 1, Status::Running) };
    assert!(matches!(trainer.update(&mut policy, rollout), Err(TrainError::NotFinite { update: 0, .. })));
    assert_eq!(weights(&policy, &trainer), before);
}

#[test]
fn idle_rows_teach_nothing() {
    let mut policy = gaussian();
    let mut trainer = TrustRegion::new(config(), OBS, &policy, 7).unwrap();
    let before = weights(&policy, &trainer);
    let rollout = rollout(&policy, 1, Status::Idle);
    trainer.update(&mut policy, rollout).unwrap();
    assert_eq!(weights(&policy, &trainer), before);
}

#[test]
fn learning_rates_reach_zero_at_the_end_of_annealing() {
    let config = TrustRegionConfig { anneal_updates: 2, ..config() };
    let (mut policy, mut trainer) = trained(gaussian(), config, 2);
    let before = weights(&policy, &trainer);
    let rollout = rollout(&policy, 3, Status::Running);
    trainer.update(&mut policy, rollout).unwrap();
    assert_eq!(weights(&policy, &trainer), before);
}

#[test]
fn settings_out_of_range_are_refused_by_name() {
    type Spoil = fn(&mut TrustRegionConfig);
    let wrong: [(&str, Spoil); 6] = [
        ("discount", |c| c.discount = 1.5),
        ("minibatch", |c| c.minibatch = 0),
        ("actor_lr", |c| c.actor_lr = f64::NAN),
        ("temperature", |c| c.temperature = 0.0),
        ("critic.bins", |c| c.critic.bins = 1),
        ("critic.low", |c| c.critic.low = 20.0),
    ];
    for (field, spoil) in wrong {
        let mut config = config();
        spoil(&mut config);
        let error = TrustRegion::new(config, OBS, &gaussian(), 7).unwrap_err().to_string();
        assert!(error.contains(&format!("`{field}`")), "{error}");
    }
}
