//! The Gaussian policy keeps the promises of its traits.

use onpolicy::{GaussianPolicy, Noise, Policy, conformance};

fn disturb(p: &GaussianPolicy) {
    for params in p.params() {
        params.update(|v| v.iter_mut().enumerate().for_each(|(i, x)| *x += 0.05 * (i as f32 * 0.7).sin())).unwrap();
    }
}

#[test]
fn gaussian_policy_conforms() {
    let mut policy = GaussianPolicy::new(5, 3, 16, 3, 1).unwrap();
    let obs = Noise::new(9).normal((6, 5)).unwrap();
    conformance::check_policy(&mut policy, &obs, disturb).unwrap();
    conformance::check_pathwise(&mut policy, &obs, disturb).unwrap();
}
