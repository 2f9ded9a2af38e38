//! Adam in place, with one clip over everything that shares it.

use candle_core::Result;

use crate::bundle::{Bundle, BundleError, Persist};
use crate::multiversion;
use crate::params::Params;

/// Step sizes and decay rates of [`Adam`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AdamConfig {
    /// Decay of the first moment.
    pub beta1: f64,
    /// Decay of the second moment.
    pub beta2: f64,
    /// Added to the root of the second moment.
    pub eps: f64,
}

impl Default for AdamConfig {
    /// 0.9, 0.999, 1e-8: Kingma & Ba 2015.
    fn default() -> Self {
        AdamConfig { beta1: 0.9, beta2: 0.999, eps: 1e-8 }
    }
}

/// Adam (Kingma & Ba 2015) over flat vectors, with bias correction.
///
/// ```text
/// m ← β₁m + (1−β₁)g,   v ← β₂v + (1−β₂)g²
/// θ ← θ − lr · m/(1−β₁ᵗ) / (√(v/(1−β₂ᵗ)) + ε)
/// ```
#[derive(Clone, Debug)]
pub struct Adam {
    config: AdamConfig,
    steps: u64,
    m: Vec<f32>,
    v: Vec<f32>,
}

impl Adam {
    /// Moments for that many parameters.
    pub fn new(len: usize, config: AdamConfig) -> Self {
        Adam { config, steps: 0, m: vec![0.0; len], v: vec![0.0; len] }
    }

    /// One step on `theta` along `scale · grad`.
    ///
    /// Panics if the lengths differ.
    pub fn step(&mut self, theta: &mut [f32], grad: &[f32], scale: f32, lr: f64) {
        assert_eq!((theta.len(), grad.len()), (self.m.len(), self.m.len()));
        self.steps += 1;
        let t = self.steps as f64;
        let c = &self.config;
        let step = (lr / (1.0 - c.beta1.powf(t))) as f32;
        let root = (1.0 / (1.0 - c.beta2.powf(t)).sqrt()) as f32;
        adam(
            theta,
            grad,
            &mut self.m,
            &mut self.v,
            [
                scale,
                step,
                root,
                c.beta1 as f32,
                (1.0 - c.beta1) as f32,
                c.beta2 as f32,
                (1.0 - c.beta2) as f32,
                c.eps as f32,
            ],
        );
    }

    /// One step on a network's parameters.
    pub fn step_params(&mut self, params: &Params, grad: &[f32], scale: f32, lr: f64) -> Result<()> {
        params.update(|theta| self.step(theta, grad, scale, lr))
    }
}

/// Moments too small to move a parameter become 0. Left alone, those of parameters without gradient decay into
/// denormal numbers and stay there, and arithmetic on these is a hundred times slower.
#[inline(always)]
fn flush(x: f32) -> f32 {
    if x.abs() < 1e-30 { 0.0 } else { x }
}

multiversion! {
    fn adam(theta: &mut [f32], grad: &[f32], m: &mut [f32], v: &mut [f32], k: [f32; 8]) {
        let [scale, step, root, b1, c1, b2, c2, eps] = k;
        for i in 0..theta.len().min(grad.len()).min(m.len()).min(v.len()) {
            let g = grad[i] * scale;
            m[i] = flush(b1 * m[i] + c1 * g);
            v[i] = flush(b2 * v[i] + c2 * g * g);
            theta[i] -= step * m[i] / (v[i].sqrt() * root + eps);
        }
    }
}

/// Sum of squares in f64, in a fixed order.
pub fn squared_norm(x: &[f32]) -> f64 {
    x.iter().map(|&x| f64::from(x) * f64::from(x)).sum()
}

/// Factor that brings a gradient of that norm down to `max_norm`: `min(1, max_norm / (norm + 1e-6))`, PyTorch's rule.
pub fn clip_scale(norm: f64, max_norm: f64) -> f64 {
    (max_norm / (norm + 1e-6)).min(1.0)
}

impl Persist for Adam {
    fn save(&self, prefix: &str, to: &mut Bundle) {
        to.put_u64(&format!("{prefix}.adam.steps"), &[self.steps]);
        to.put_f32(&format!("{prefix}.adam.m"), &[self.m.len()], &self.m);
        to.put_f32(&format!("{prefix}.adam.v"), &[self.v.len()], &self.v);
    }

    fn load(&mut self, prefix: &str, from: &Bundle) -> std::result::Result<(), BundleError> {
        let n = [self.m.len()];
        self.steps = from.u64s(&format!("{prefix}.adam.steps"), 1)?[0];
        self.m.copy_from_slice(from.f32s(&format!("{prefix}.adam.m"), &n)?);
        self.v.copy_from_slice(from.f32s(&format!("{prefix}.adam.v"), &n)?);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_step_moves_by_the_learning_rate_against_the_sign() {
        let mut theta = [1.0, 1.0, 1.0];
        Adam::new(3, AdamConfig::default()).step(&mut theta, &[0.5, -2.0, 0.0], 1.0, 0.1);
        for (x, want) in theta.iter().zip([0.9, 1.1, 1.0]) {
            assert!((x - want).abs() < 1e-6, "{theta:?}");
        }
    }

    #[test]
    fn two_steps_match_the_formula_worked_by_hand() {
        // g = 1 then 3, scale ½: g = 0.5, 1.5
        let mut theta = [0.0];
        let mut adam = Adam::new(1, AdamConfig::default());
        adam.step(&mut theta, &[1.0], 0.5, 0.1);
        adam.step(&mut theta, &[3.0], 0.5, 0.1);
        let m = (0.9 * 0.05 + 0.1 * 1.5) / 0.19;
        let v = (0.999 * 0.001 * 0.25 + 0.001 * 2.25) / (1.0 - 0.999f64 * 0.999);
        let want = -0.1 - 0.1 * m / v.sqrt();
        assert!((f64::from(theta[0]) - want).abs() < 1e-6, "{theta:?} {want}");
    }

    #[test]
    fn moments_of_parameters_without_gradient_reach_zero_and_not_denormal_numbers() {
        let mut theta = [1.0];
        let mut adam = Adam::new(1, AdamConfig::default());
        adam.step(&mut theta, &[1e-12], 1.0, 0.1);
        for _ in 0..10_000 {
            adam.step(&mut theta, &[0.0], 1.0, 0.1);
        }
        assert_eq!((adam.m[0], adam.v[0]), (0.0, 0.0));
    }

    #[test]
    fn clipping_leaves_small_gradients_alone() {
        assert_eq!(clip_scale(0.3, 0.5), 1.0);
        assert!((clip_scale(5.0, 0.5) - 0.1).abs() < 1e-6);
        assert_eq!(squared_norm(&[3.0, 4.0]), 25.0);
    }
}
