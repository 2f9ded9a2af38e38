//! What must hold for any chain.

use candle_core::Tensor;
use diffusion_policy::{ConfigError, DiffusionConfig, DiffusionPolicy, KlForm};
use onpolicy::{Bundle, Noise, Pathwise, Persist, Policy, conformance};

fn disturb(p: &DiffusionPolicy) {
    p.parameters().update(|v| v.iter_mut().enumerate().for_each(|(i, x)| *x += 0.03 * (i as f32 * 0.7).sin())).unwrap();
}

fn policy(steps: usize, depth: usize, layer_norm: bool, kl_form: KlForm) -> DiffusionPolicy {
    let p = DiffusionPolicy::new(
        DiffusionConfig { steps, depth, width: 16, layer_norm, kl_form, ..DiffusionConfig::new(4, 2) },
        1,
    )
    .unwrap();
    // away from u = 0, so that every weight matters
    p.parameters().update(|v| v.iter_mut().enumerate().for_each(|(i, x)| *x += 0.1 * (i as f32 * 1.3).cos())).unwrap();
    p
}

fn values(t: &Tensor) -> Vec<f32> {
    t.flatten_all().unwrap().to_vec1().unwrap()
}

#[test]
fn every_shape_of_chain_conforms() {
    let obs = Noise::new(9).normal((6, 4)).unwrap();
    for (steps, depth, norm, form) in
        [(8, 3, true, KlForm::Full), (1, 2, true, KlForm::Full), (3, 4, false, KlForm::Full)]
    {
        let mut p = policy(steps, depth, norm, form);
        conformance::check_policy(&mut p, &obs, disturb).unwrap();
        let mut p = policy(steps, depth, norm, form);
        conformance::check_pathwise(&mut p, &obs, disturb).unwrap();
    }
}

#[test]
fn both_kl_forms_agree_at_equal_frictions_and_part_at_others() {
    let (old, new) = (policy(8, 3, true, KlForm::Means), policy(8, 3, true, KlForm::Means));
    let obs = Noise::new(9).normal((6, 4)).unwrap();
    let path = old.sample(&obs, &mut Noise::new(1)).unwrap().trace;
    let kl = |form| values(&DiffusionPolicy::path_kl(&old, &new, &obs, &path, form).unwrap().sum(1).unwrap());
    new.parameters()
        .update(|v| v.iter_mut().skip(2).enumerate().for_each(|(i, x)| *x += 0.03 * (i as f32).sin()))
        .unwrap();
    for (a, b) in kl(KlForm::Means).iter().zip(kl(KlForm::Full)) {
        assert!(*a > 1e-4 && (a - b).abs() < 1e-4 * b + 2e-6, "{a} {b}");
    }
    // friction ratio r adds ½(r − 1 − ln r) per step and dimension, 8 steps, 2 dimensions, to states at rest
    let shifted = policy(8, 3, true, KlForm::Means);
    shifted.parameters().update(|v| v[..2].iter_mut().for_each(|f| *f += 0.5)).unwrap();
    let r = shifted.friction().unwrap()[0] / old.friction().unwrap()[0];
    let full = values(&DiffusionPolicy::path_kl(&old, &shifted, &obs, &path, KlForm::Full).unwrap().sum(1).unwrap());
    assert!(full.iter().all(|k| *k > 16.0 * 0.5 * (r - 1.0 - r.ln()) - 1e-4), "{full:?} at ratio {r}");
}

#[test]
fn untrained_chain_has_the_prior_s_statistics() {
    // u = 0, friction 1, one action dimension: E[J] = −2.859, E[entropy estimate] = E[W] + E[J] with E[W] = 0.00, and
    // 28.9 % of actions beyond 0.99
    let p = DiffusionPolicy::new(DiffusionConfig::new(2, 1), 0).unwrap();
    let n = 100_000;
    let obs = Tensor::zeros((n, 2), candle_core::DType::F32, &candle_core::Device::Cpu).unwrap();
    let drawn = p.sample_scored(&obs, &mut Noise::new(1)).unwrap();
    let mean = |x: &[f32]| x.iter().map(|v| f64::from(*v)).sum::<f64>() / n as f64;
    assert!((mean(&values(&drawn.entropy)) + 2.859).abs() < 0.03);
    assert!((mean(&values(&drawn.log_prob)) - 0.52).abs() < 0.03);
    let beyond = values(&drawn.action).iter().filter(|a| a.abs() > 0.99).count() as f64 / n as f64;
    assert!((beyond - 0.289).abs() < 0.006, "{beyond}");
}

#[test]
fn thread_count_changes_no_bit() {
    let run = |threads| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| {
            let (p, q) = (policy(8, 3, true, KlForm::Means), policy(8, 3, true, KlForm::Means));
            disturb(&q);
            let obs = Noise::new(9).normal((700, 4)).unwrap();
            let r = q.sample_grad(&obs, &mut Noise::new(2)).unwrap();
            let kl = q.kl_from(&p, &obs, 2, &mut Noise::new(3)).unwrap();
            let loss = (((r.action.sum(1).unwrap() + r.log_prob).unwrap() + kl).unwrap()).sum_all().unwrap();
            values(loss.backward().unwrap().get(q.parameters().var()).unwrap())
        })
    };
    assert_eq!(run(1), run(3));
}

#[test]
fn kl_from_equals_the_kl_at_the_old_policy_s_traces() {
    let (old, new) = (policy(4, 3, true, KlForm::Full), policy(4, 3, true, KlForm::Full));
    disturb(&new);
    let obs = Noise::new(9).normal((5, 4)).unwrap();
    let fast = values(&new.kl_from(&old, &obs, 1, &mut Noise::new(3)).unwrap());
    let path = old.sample(&obs, &mut Noise::new(3)).unwrap().trace;
    let slow = values(&DiffusionPolicy::kl(&old, &new, &obs, &path).unwrap().sum().unwrap());
    for (a, b) in fast.iter().zip(&slow) {
        assert!((a - b).abs() <= 2e-6 + 1e-4 * b, "{fast:?} {slow:?}");
    }
}

#[test]
fn a_saved_policy_acts_the_same() {
    let p = policy(8, 3, true, KlForm::Means);
    let mut bundle = Bundle::default();
    p.save("policy", &mut bundle);
    let mut q = DiffusionPolicy::new(p.config().clone(), 7).unwrap();
    q.load("policy", &bundle).unwrap();
    let obs = Noise::new(9).normal((5, 4)).unwrap();
    let act = |p: &DiffusionPolicy| values(&p.deterministic(&obs, &mut Noise::new(1)).unwrap());
    assert_eq!(act(&p), act(&q));
}

#[test]
fn senseless_shapes_are_refused_with_a_reason() {
    let c = DiffusionConfig::new(4, 2);
    assert_eq!(DiffusionConfig { steps: 0, ..c.clone() }.check(), Err(ConfigError::NoSteps(0)));
    assert_eq!(DiffusionConfig { depth: 1, ..c.clone() }.check(), Err(ConfigError::TooShallow(1)));
    assert_eq!(DiffusionConfig { width: 0, ..c.clone() }.check(), Err(ConfigError::Empty("width")));
    assert!(DiffusionPolicy::new(DiffusionConfig { friction: f32::NAN, ..c }, 0).is_err());
    let p = policy(2, 2, true, KlForm::Full);
    assert!(
        p.sample(&Noise::new(1).normal((3, 5)).unwrap(), &mut Noise::new(1)).is_err(),
        "observations of another length"
    );
}
