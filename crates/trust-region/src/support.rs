//! A value as a distribution over fixed atoms.

use candle_core::{Result, Tensor};
use onpolicy::mlp::BLOCK;
use onpolicy::multiversion;
use onpolicy::simd::normal_cdf_pdf;
use rayon::prelude::*;

use crate::ops::{CrossEntropy, Expectation};

/// Evenly spaced atoms z₁ … z_M from `low` to `high`, `w` apart.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Support {
    low: f32,
    high: f32,
    bins: usize,
}

/// Standard deviation of a target in units of the spacing (Farebrother et al. 2024).
const SPREAD: f32 = 0.75;

impl Support {
    /// `bins` ≥ 2 atoms between finite `low` < `high`.
    ///
    /// Panics otherwise.
    pub fn new(low: f32, high: f32, bins: usize) -> Self {
        assert!(low.is_finite() && high.is_finite() && low < high && bins >= 2, "no support: {low} {high} {bins}");
        Support { low, high, bins }
    }

    /// M.
    pub fn bins(&self) -> usize {
        self.bins
    }

    /// w = (high − low)/(M − 1)
    pub fn spacing(&self) -> f64 {
        (f64::from(self.high) - f64::from(self.low)) / (self.bins - 1) as f64
    }

    /// The atoms, `[M]`.
    pub fn atoms(&self) -> Vec<f32> {
        (0..self.bins).map(|i| (f64::from(self.low) + i as f64 * self.spacing()) as f32).collect()
    }

    /// Histogram of a Gaussian around a target, the HL-Gauss loss's label.
    ///
    /// ```text
    /// y ← clip(y, low, high),   σ = 0.75·w,   edges e_i halfway between the atoms and w/2 beyond the ends
    /// p_i = (Φ((e_{i+1} − y)/σ) − Φ((e_i − y)/σ)) / (Φ((e_{M+1} − y)/σ) − Φ((e_1 − y)/σ))
    /// ```
    ///
    /// `out`: `[M]`, overwritten. Farebrother et al. 2024, "Stop regressing", §3.1. Panics if its length differs.
    pub fn target(&self, y: f32, out: &mut [f32]) {
        assert_eq!(out.len(), self.bins);
        // in units of w from the first atom
        let at = (f64::from(y.clamp(self.low, self.high)) - f64::from(self.low)) / self.spacing();
        histogram(at as f32, out);
    }

    /// Expected value of softmax(logits), `[B, M]` → `[B]`; differentiable.
    pub fn expectation(&self, logits: &Tensor) -> Result<Tensor> {
        logits.contiguous()?.apply_op1(Expectation::new(self.atoms()))
    }

    /// Cross-entropy −Σᵢ pᵢ ln softmax(logits)ᵢ between the histograms of targets `[B]` and `[B, M]` logits, `[B]`;
    /// differentiable in the logits.
    ///
    /// Panics if there are not B targets.
    pub fn cross_entropy(&self, logits: &Tensor, targets: &[f32]) -> Result<Tensor> {
        assert_eq!(logits.dims()[0], targets.len());
        let mut labels = vec![0.0; targets.len() * self.bins];
        labels.par_chunks_mut(self.bins * BLOCK).zip(targets.par_chunks(BLOCK)).for_each(|(labels, targets)| {
            labels.chunks_exact_mut(self.bins).zip(targets).for_each(|(row, &y)| self.target(y, row));
        });
        logits.contiguous()?.apply_op1(CrossEntropy::new(labels))
    }
}

/// Spacings from a target beyond which its histogram is 0: Φ(−6/0.75) < 1e-15.
const REACH: f32 = 6.0;

multiversion! {
    /// Mass of N(at, SPREAD²) between the edges −½, ½, 1½, …, scaled to sum to 1.
    fn histogram(at: f32, out: &mut [f32]) {
        let cdf = |edge: f32| normal_cdf_pdf((edge - at) * (1.0 / SPREAD)).0;
        let first = (at - REACH).max(0.0) as usize;
        let last = ((at + REACH) as usize).min(out.len() - 1);
        let mass = cdf(last as f32 + 0.5) - cdf(first as f32 - 0.5);
        out.fill(0.0);
        for (i, p) in out[first..=last].iter_mut().enumerate() {
            let edge = (first + i) as f32 - 0.5;
            *p = (cdf(edge + 1.0) - cdf(edge)) * (1.0 / mass);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use candle_core::{Device, Var};

    #[test]
    fn a_target_on_an_atom_is_symmetric_and_its_mean_is_the_target() {
        let s = Support::new(-5.0, 5.0, 11);
        let mut p = vec![0.0; 11];
        s.target(1.0, &mut p);
        assert!((p[5] - p[7]).abs() < 1e-7);
        // Φ(2/3) − Φ(−2/3) and Φ(2) − Φ(2/3)
        assert!((p[6] - 0.495_015).abs() < 1e-5 && (p[7] - 0.229_742).abs() < 1e-5, "{p:?}");
        for y in [-2.0f32, -0.31, 0.0, 2.49] {
            s.target(y, &mut p);
            let mean: f32 = p.iter().zip(s.atoms()).map(|(p, z)| p * z).sum();
            assert!((p.iter().sum::<f32>() - 1.0).abs() < 1e-6);
            assert!((mean - y).abs() < 0.02, "{y}: {mean}");
        }
    }

    #[test]
    fn returns_beyond_the_support_count_as_its_ends() {
        let s = Support::new(0.0, 10.0, 101);
        let (mut a, mut b) = (vec![0.0; 101], vec![0.0; 101]);
        for (beyond, end) in [(-3.0, 0.0), (1e30, 10.0), (f32::INFINITY, 10.0)] {
            s.target(beyond, &mut a);
            s.target(end, &mut b);
            assert_eq!(a, b);
            assert!((a.iter().sum::<f32>() - 1.0).abs() < 1e-6);
        }
    }

    #[test]
    fn gradients_equal_finite_differences() {
        let s = Support::new(-2.0, 3.0, 7);
        let x: Vec<f32> = (0..14).map(|i| (i as f32 * 1.3).sin()).collect();
        let var = Var::from_vec(x.clone(), (2, 7), &Device::Cpu).unwrap();
        let losses: [&dyn Fn(&Tensor) -> Tensor; 2] =
            [&|x| s.expectation(x).unwrap(), &|x| s.cross_entropy(x, &[0.4, -1.0]).unwrap()];
        let weights = Tensor::new(&[0.7f32, -1.2], &Device::Cpu).unwrap();
        let total = |f: &dyn Fn(&Tensor) -> Tensor, x: &Tensor| (f(x) * &weights).unwrap().sum_all().unwrap();
        for f in losses {
            let grads = total(f, &var).backward().unwrap();
            let grad = grads.get(&var).unwrap().flatten_all().unwrap().to_vec1::<f32>().unwrap();
            for (i, g) in grad.iter().enumerate() {
                let at = |d: f32| {
                    let mut x = x.clone();
                    x[i] += d;
                    total(f, &Tensor::from_vec(x, (2, 7), &Device::Cpu).unwrap()).to_scalar::<f32>().unwrap()
                };
                let slope = (at(0.02) - at(-0.02)) / 0.04;
                assert!((slope - g).abs() < 1e-3, "{i}: {g}, finite difference {slope}");
            }
        }
    }

    #[test]
    fn logits_that_are_not_finite_show_in_the_value() {
        let s = Support::new(0.0, 1.0, 3);
        for bad in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
            let x = Tensor::new(&[[0.0, bad, 1.0], [0.0f32, 0.0, 0.0]], &Device::Cpu).unwrap();
            let q = s.expectation(&x).unwrap().to_vec1::<f32>().unwrap();
            assert!(q[0].is_nan() && (q[1] - 0.5).abs() < 1e-6, "{q:?}");
            assert!(s.cross_entropy(&x, &[0.0, 0.0]).unwrap().to_vec1::<f32>().unwrap()[0].is_nan());
        }
    }
}
