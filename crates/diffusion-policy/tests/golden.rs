//! The chain equals the PyTorch reference number for number: path, densities, entropy parts, KL and gradients.

mod common;

use candle_core::Tensor;
use common::*;
use diffusion_policy::{DiffusionPolicy, KlForm};

const D: usize = 3;
const B: usize = 4;
const N: usize = 4;

/// Single precision through 4 steps of a chain and a network.
const TOL: f64 = 1e-5;

struct Fixture {
    golden: serde_json::Value,
    new: DiffusionPolicy,
    old: DiffusionPolicy,
    obs: Tensor,
    noise: Vec<f32>,
}

fn fixture() -> Fixture {
    let golden = golden();
    let noise = swap(&wave(&[N + 1, B, D], 1.5, 0.7), N + 1, B, D);
    Fixture {
        new: actor(&golden, 1.0, "f_raw"),
        old: actor(&golden, 1.05, "f_raw_old"),
        obs: tensor(wave(&[B, 5], 1.2, 0.3), B),
        noise,
        golden,
    }
}

/// Observations and old paths for both repetitions of the KL, `[K·B, …]`.
fn old_paths(f: &Fixture) -> (Tensor, Tensor) {
    let all = wave(&[2, N + 1, B, D], 1.4, 2.1);
    let noise: Vec<f32> = all.chunks_exact((N + 1) * B * D).flat_map(|k| swap(k, N + 1, B, D)).collect();
    let obs = Tensor::cat(&[&f.obs, &f.obs], 0).unwrap();
    let path = f.old.path_with(&obs, &noise).unwrap().0;
    (obs, path)
}

fn values(t: &Tensor) -> Vec<f32> {
    t.flatten_all().unwrap().to_vec1().unwrap()
}

#[test]
fn paths_actions_and_log_probabilities_equal_the_reference() {
    let f = fixture();
    let want = &f.golden["diffusion"];
    let drawn = f.new.score_with(&f.obs, f.noise.clone(), true).unwrap();
    close(&values(&drawn.action), &flat(&want["action"]), TOL, "action");
    close(&values(&drawn.log_prob), &flat(&want["log_pi"]), TOL, "log_pi");
    let entropy: Vec<f64> = flat(&want["run_cost"]).iter().map(|x| -x).collect();
    close(&values(&drawn.entropy), &entropy, TOL, "entropy = −run_cost");
    let path = f.new.path_with(&f.obs, &f.noise).unwrap().0;
    close(&swap(&values(&path), B, N + 1, D), &flat(&want["path"]), TOL, "path");
}

#[test]
fn deterministic_actions_equal_the_reference() {
    let f = fixture();
    for (c, key) in [(1.0, "ode_c1"), (0.5, "ode_c05")] {
        let action = f.new.deterministic_with(&f.obs, &f.noise, c).unwrap();
        close(&values(&action), &flat(&f.golden["diffusion"][key]), TOL, key);
    }
}

#[test]
fn step_densities_sum_to_the_reference_terms() {
    // Σ_k log N(x_{k+1}; μ_k, σ_k) from the reference's own means and deviations
    let f = fixture();
    let want = &f.golden["diffusion"];
    let (path, mu, sigma) = (flat(&want["path"]), flat(&want["mu"]), flat(&want["sigma"]));
    let mut density = vec![0.0f64; B * N];
    for (k, b, i) in (0..N).flat_map(|k| (0..B).flat_map(move |b| (0..D).map(move |i| (k, b, i)))) {
        let s = sigma[k * D + i];
        let z = (path[((k + 1) * B + b) * D + i] - mu[(k * B + b) * D + i]) / s;
        density[b * N + k] -= 0.5 * z * z + s.ln() + 0.5 * std::f64::consts::TAU.ln();
    }
    let (path, drawn) = f.new.path_with(&f.obs, &f.noise).unwrap();
    close(&values(&drawn), &density, TOL, "density when drawn");
    let scored = onpolicy::Policy::log_prob(&f.new, &f.obs, &path).unwrap();
    close(&values(&scored.value), &density, TOL, "density when scored");
}

#[test]
fn both_kl_forms_equal_the_reference() {
    let f = fixture();
    let (obs, path) = old_paths(&f);
    for (form, key) in [(KlForm::Means, "kl_simplified"), (KlForm::Full, "kl_full")] {
        let per_step = DiffusionPolicy::path_kl(&f.old, &f.new, &obs, &path, form).unwrap();
        let kl = per_step.sum(1).unwrap().reshape((2, B)).unwrap().mean(0).unwrap();
        close(&values(&kl), &flat(&f.golden["diffusion"][key]), TOL, key);
    }
}

#[test]
fn gradients_equal_autograd() {
    let f = fixture();
    let drawn = f.new.score_with(&f.obs, f.noise.clone(), true).unwrap();
    let grads = drawn.log_prob.mean_all().unwrap().backward().unwrap();
    let want = &f.golden["diffusion"]["grad_of_mean_log_pi"];
    close_gradient(&f.new, grads.get(f.new.parameters().var()).unwrap(), want, 2e-5, "log_pi");

    let (obs, path) = old_paths(&f);
    let kl = DiffusionPolicy::path_kl(&f.old, &f.new, &obs, &path, KlForm::Means)
        .unwrap()
        .sum(1)
        .unwrap()
        .mean_all()
        .unwrap();
    let grads = kl.backward().unwrap();
    close_gradient(
        &f.new,
        grads.get(f.new.parameters().var()).unwrap(),
        &f.golden["diffusion"]["grad_of_mean_kl"],
        2e-5,
        "kl",
    );
}
