//! Critic, losses, gradients and Adam steps equal the PyTorch reference, `trudi_reference.py --golden trudi.json`.

use candle_core::{Device, Tensor};
use diffusion_policy::{DiffusionConfig, DiffusionPolicy, KlForm};
use onpolicy::adam::{clip_scale, squared_norm};
use onpolicy::{Adam, AdamConfig, GaussianPolicy, Noise, Normaliser, Params, Pathwise, Policy, Wants};
use rollouts::{Status, returns::lambda_return};
use serde_json::Value;
use trust_region::loss::{Multipliers, critic_loss, multiplier_gradient, policy_loss, temperature_gradient};
use trust_region::{Critic, CriticConfig, Gate, Multiplier, Support};

/// Action length, batch, steps, observation length, width.
const D: usize = 3;
const B: usize = 4;
const N: usize = 4;
const O: usize = 5;
const H: usize = 8;
/// Single precision against double.
const TOL: f64 = 1e-5;

fn golden() -> Value {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden/trudi.json");
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

/// All numbers of a nested array, in order.
fn flat(v: &Value) -> Vec<f64> {
    match v {
        Value::Array(items) => items.iter().flat_map(flat).collect(),
        other => vec![other.as_f64().unwrap()],
    }
}

/// amp · sin(shift + 7i + 13j + 17l + 19n)
fn wave(shape: &[usize], amp: f64, shift: f64) -> Vec<f32> {
    let angle = |mut at: usize| {
        let mut angle = shift;
        for (dim, &len) in shape.iter().enumerate().rev() {
            angle += [7.0, 13.0, 17.0, 19.0][dim] * (at % len) as f64;
            at /= len;
        }
        angle
    };
    (0..shape.iter().product()).map(|at| (amp * angle(at).sin()) as f32).collect()
}

fn matrix(v: Vec<f32>, rows: usize) -> Tensor {
    let columns = v.len() / rows;
    Tensor::from_vec(v, (rows, columns), &Device::Cpu).unwrap()
}

fn values(t: &Tensor) -> Vec<f32> {
    t.flatten_all().unwrap().to_vec1().unwrap()
}

/// |got − want| ≤ tol · max(1, largest |want|) for every element.
fn close(got: &[f32], want: &Value, tol: f64, what: &str) {
    let want = flat(want);
    assert_eq!(got.len(), want.len(), "{what}");
    let scale = want.iter().fold(1.0f64, |m, x| m.max(x.abs()));
    for (i, (g, w)) in got.iter().zip(&want).enumerate() {
        assert!((f64::from(*g) - w).abs() <= tol * scale, "{what}[{i}]: {g}, PyTorch has {w}");
    }
}

/// Parameters number `first`, `first` + 1, … of the reference: waves of their own, norm scales plus 1.
fn fill(params: &Params, shift: f64, first: usize) {
    let mut all = params.to_vec().unwrap();
    for (i, part) in params.parts().iter().enumerate() {
        let one = if part.name.ends_with("norm.weight") { 1.0 } else { 0.0 };
        let wave = wave(&part.shape, 0.3, shift + (first + i) as f64);
        all[part.range()].iter_mut().zip(wave).for_each(|(a, w)| *a = w + one);
    }
    params.write(&all).unwrap();
}

/// Gradient against the reference's norm and first three elements of each named parameter.
fn close_gradient(params: &Params, names: &[&str], grad: &[f32], want: &Value, tol: f64) {
    assert_eq!(params.parts().len(), names.len());
    for (part, name) in params.parts().iter().zip(names) {
        let (g, want) = (&grad[part.range()], &want["per_param"][*name]);
        let (norm, expected) = (squared_norm(g).sqrt(), want["norm"].as_f64().unwrap());
        let scale = expected.max(1e-3);
        assert!((norm - expected).abs() <= tol * scale, "{name}: norm {norm}, PyTorch has {expected}");
        for (a, b) in g.iter().zip(flat(&want["first3"])) {
            assert!((f64::from(*a) - b).abs() <= tol * scale, "{name}: {a}, PyTorch has {b}");
        }
    }
}

const CRITIC: [&[&str]; 4] = [
    &["p0"],
    &["enc.0.weight", "enc.0.bias", "enc.1.scale", "enc.3.weight", "enc.3.bias"],
    &["head.0.weight", "head.0.bias", "head.1.scale", "head.3.weight", "head.3.bias"],
    &["pred.0.weight", "pred.0.bias", "pred.1.scale", "pred.3.weight", "pred.3.bias"],
];
const ACTOR: [&str; 14] = [
    "f_raw",
    "net.phase",
    "net.t1.weight",
    "net.t1.bias",
    "net.t2.weight",
    "net.t2.bias",
    "net.inp.weight",
    "net.inp.bias",
    "net.hid.0.weight",
    "net.hid.0.bias",
    "net.ln.0.weight",
    "net.ln.0.bias",
    "net.out.weight",
    "net.out.bias",
];

/// The reference's parameters come in this order: first layer's weight, bias, scale, then the last layer's.
fn critic() -> Critic {
    let config = CriticConfig { width: H, bins: 11, low: -5.0, high: 5.0, aux_weight: 1.0 };
    let critic = Critic::new(&config, O, D, &mut Noise::new(0)).unwrap();
    for (params, first) in critic.params().into_iter().zip([0, 1, 6, 11]).skip(1) {
        fill(params, 2.0, first);
    }
    critic
}

fn actor(golden: &Value, shift: f64, friction: &str) -> DiffusionPolicy {
    let policy = DiffusionPolicy::new(DiffusionConfig { steps: N, width: H, ..DiffusionConfig::new(O, D) }, 0).unwrap();
    fill(policy.parameters(), shift, 2);
    let raw = flat(&golden["inputs"][friction]);
    policy.parameters().update(|p| p.iter_mut().zip(raw).for_each(|(p, f)| *p = f as f32)).unwrap();
    policy
}

fn obs() -> Tensor {
    matrix(wave(&[B, O], 1.2, 0.3), B)
}

/// `[a, B, D]` → `[B, a, D]`
fn rows_first(v: &[f32], a: usize) -> Vec<f32> {
    (0..v.len()).map(|e| v[(e / D % a) * B * D + e / (a * D) * D + e % D]).collect()
}

fn kl(new: &DiffusionPolicy, old: &DiffusionPolicy) -> Tensor {
    let all = wave(&[2, N + 1, B, D], 1.4, 2.1);
    let noise: Vec<f32> = all.chunks_exact((N + 1) * B * D).flat_map(|k| rows_first(k, N + 1)).collect();
    let obs = Tensor::cat(&[obs(), obs()], 0).unwrap();
    let path = old.path_with(&obs, &noise).unwrap().0;
    let kl = DiffusionPolicy::path_kl(old, new, &obs, &path, KlForm::Means).unwrap();
    kl.sum(1).unwrap().reshape((2, B)).unwrap().mean(0).unwrap()
}

#[test]
fn histograms_of_targets_equal_the_reference() {
    let golden = golden();
    let support = Support::new(-5.0, 5.0, 11);
    let got: Vec<f32> = flat(&golden["hl_gauss"]["y"])
        .iter()
        .flat_map(|y| {
            let mut p = vec![0.0; 11];
            support.target(*y as f32, &mut p);
            p
        })
        .collect();
    close(&got, &golden["hl_gauss"]["probs"], 1e-6, "histogram");
}

#[test]
fn an_untrained_critic_has_the_reference_s_prior() {
    close(&critic().params()[0].to_vec().unwrap(), &golden()["params"]["p0"], 1e-6, "p0");
}

#[test]
fn critic_loss_gradient_and_adam_step_equal_the_reference() {
    let golden = golden();
    let want = &golden["critic"];
    let critic = critic();
    let (action, next) = (matrix(wave(&[B, D], 0.9, 0.2), B), matrix(wave(&[B, H], 0.5, 1.7), B));
    let judged = critic.judge(&obs(), &action, Wants::Nothing).unwrap();
    close(&values(&judged.features), &want["z"], TOL, "features");
    close(&values(&judged.logits), &want["logits"], TOL, "logits");
    close(&values(&critic.predict(&judged).unwrap()), &want["pred"], TOL, "prediction");
    close(&values(&critic.value(&obs(), &action, Wants::Nothing).unwrap()), &want["q"], TOL, "value");

    let returns: Vec<f32> = flat(&want["target"]).iter().map(|x| *x as f32).collect();
    let mask: Vec<f32> = flat(&want["mask"]).iter().map(|x| *x as f32).collect();
    let weight = Tensor::new(&*mask, &Device::Cpu).unwrap();
    let loss = critic_loss(&critic, &obs(), &action, &returns, &next, &weight, 1.0).unwrap();
    close(&values(&loss.total), &want["loss"], TOL, "loss");
    close(&values(&loss.cross_entropy), &want["ce"], TOL, "cross-entropy");

    let store = loss.total.backward().unwrap();
    let grads = critic.params().map(|p| values(store.get(p.var().as_tensor()).unwrap()));
    let norm = grads.iter().map(|g| squared_norm(g)).sum::<f64>().sqrt();
    let total = want["grad"]["total_norm"].as_f64().unwrap();
    assert!((norm / total - 1.0).abs() < TOL, "{norm} {total}");
    for ((params, names), grad) in critic.params().into_iter().zip(CRITIC).zip(&grads) {
        close_gradient(params, names, grad, &want["grad"], 2e-5);
        Adam::new(params.len(), AdamConfig::default())
            .step_params(params, grad, clip_scale(norm, 0.5) as f32, 3e-4)
            .unwrap();
        let after = params.to_vec().unwrap();
        for (part, name) in params.parts().iter().zip(names) {
            let first = part.offset..part.offset + part.len().min(3);
            close(&after[first], &want["after_adam_lr3e-4_clip0.5"][*name], 2e-6, name);
        }
    }
}

#[test]
fn soft_returns_equal_the_reference_where_no_step_is_both_terminated_and_truncated() {
    let golden = golden();
    let want = &golden["lambda_return"];
    let (done, truncated) = (flat(&want["done"]), flat(&want["trunc"]));
    // the reference lets truncation win where both are set; here a step is one or the other
    let status: Vec<Status> = (done.iter().zip(&truncated))
        .map(|(d, t)| match (*d > 0.0, *t > 0.0) {
            (_, true) => Status::Truncated,
            (true, _) => Status::Terminated,
            _ => Status::Running,
        })
        .collect();
    let mut out = vec![0.0; 18];
    lambda_return(&wave(&[6, 3], 1.0, 0.1), &wave(&[6, 3], 4.0, 0.9), &status, 3, 0.99, 0.95, &mut out);
    close(&out, &want["G_last_forced"], 1e-6, "return");
}

#[test]
fn policy_loss_and_gradient_equal_the_reference_in_every_mode() {
    let golden = golden();
    let (new, old, critic) = (actor(&golden, 1.0, "f_raw"), actor(&golden, 1.05, "f_raw_old"), critic());
    let noise = rows_first(&wave(&[N + 1, B, D], 1.5, 0.7), N + 1);
    let target = golden["actor_loss"]["ent_target"].as_f64().unwrap();
    let weights =
        Multipliers { temperature: 0.7, multiplier: 0.3, kl_bound: golden["actor_loss"]["kl_bound"].as_f64().unwrap() };
    for (name, gate) in [("clipped", Gate::Clipped), ("full", Gate::Full), ("value", Gate::Value)] {
        let want = &golden["actor_loss"][name];
        let drawn = new.score_with(&obs(), noise.clone(), true).unwrap();
        let value = critic.value(&obs(), &drawn.action, Wants::Input).unwrap();
        let kl = kl(&new, &old);
        close(&values(&value), &want["q"], TOL, "value");
        close(&values(&drawn.log_prob), &want["logp"], TOL, "log-probability");
        for (got, want) in values(&kl).iter().zip(flat(&want["kl"])) {
            assert!((f64::from(*got) / want - 1.0).abs() < 1e-3, "kl {got} {want}");
        }
        let loss = policy_loss(&drawn, &value, &kl, &weights, gate).unwrap();
        close(&values(&loss), &want["policy"], TOL, name);
        let grad = values(loss.backward().unwrap().get(new.parameters().var().as_tensor()).unwrap());
        close_gradient(new.parameters(), &ACTOR, &grad, &want["grad"], 1e-3);

        let entropy = drawn.entropy.to_vec1::<f32>().unwrap().iter().sum::<f32>() / B as f32;
        let mean_kl = values(&kl).iter().sum::<f32>() / B as f32;
        let duals = [
            ("log_alpha", temperature_gradient(0.7, target, entropy.into())),
            ("log_beta", multiplier_gradient(0.3, mean_kl.into(), weights.kl_bound)),
        ];
        for (name, got) in duals {
            let want = flat(&want["grad"]["per_param"][name]["first3"])[0];
            assert!((got - want).abs() < 1e-4 * want.abs().max(1e-3), "{name}: {got}, PyTorch has {want}");
        }
    }
}

#[test]
fn policy_and_multipliers_share_one_clip_and_step_as_the_reference() {
    let golden = golden();
    let want = &golden["actor_loss"]["after_adam_lr3e-4_clip0.5_mode_value"];
    let grads = &golden["actor_loss"]["value"]["grad"];
    let norm = grads["total_norm"].as_f64().unwrap();
    for (name, start) in [("log_alpha", 0.7f32), ("log_beta", 0.3)] {
        let mut multiplier = Multiplier::new(start);
        let gradient = flat(&grads["per_param"][name]["first3"])[0];
        multiplier.descend(gradient, clip_scale(norm, 0.5), 3e-4);
        let want = flat(&want[name])[0].exp();
        assert!((multiplier.get() - want).abs() < 1e-6, "{name}: {} {want}", multiplier.get());
    }
}

#[test]
fn normalised_observations_equal_the_reference() {
    let golden = golden();
    let want = &golden["normaliser"];
    let mut normaliser = Normaliser::new(O);
    for (mut batch, key) in
        [(wave(&[4, O], 2.0, 0.4), "out1"), (wave(&[6, O], 3.0, 0.8).iter().map(|x| 1.0 + x).collect(), "out2")]
    {
        normaliser.update(&batch);
        normaliser.apply(&mut batch);
        close(&batch, &want[key], 1e-6, key);
    }
}

#[test]
fn gaussian_policy_density_and_divergence_equal_the_reference() {
    let golden = golden();
    let want = &golden["gaussian"];
    let make = |shift| {
        let policy = GaussianPolicy::new(O, D, H, 3, 0).unwrap();
        fill(policy.params()[0], shift, 2);
        policy
    };
    let (new, old) = (make(3.0), make(3.05));
    let (mean, log_std) = new.mean_log_std(&obs(), Wants::Nothing).unwrap();
    close(&values(&mean), &want["mean"], TOL, "mean");
    close(&values(&log_std), &want["log_std"], TOL, "log deviation");
    close(
        &values(&new.deterministic(&obs(), &mut Noise::new(0)).unwrap()),
        &want["eval_action"],
        TOL,
        "evaluation action",
    );
    let kl = values(&new.kl_from(&old, &obs(), 1, &mut Noise::new(0)).unwrap());
    close(&kl, &want["kl_closed"], TOL, "divergence");

    let spread = (log_std.exp().unwrap() * matrix(wave(&[1, B, D], 1.5, 0.7), B)).unwrap();
    let x = (mean + spread).unwrap();
    close(&values(&x.tanh().unwrap()), &want["action"], TOL, "action");
    let density = values(&new.log_prob(&obs(), &x).unwrap().sum().unwrap());
    let slope = |x: f32| 2.0 * (std::f32::consts::LN_2 - x - (-2.0 * x).exp().ln_1p());
    let log_pi: Vec<f32> = density
        .iter()
        .zip(x.to_vec2::<f32>().unwrap())
        .map(|(d, x)| d - x.into_iter().map(slope).sum::<f32>())
        .collect();
    close(&log_pi, &want["log_pi"], TOL, "log-probability");
}
