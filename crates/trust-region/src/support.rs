//! A value as a distribution over fixed atoms.

use std::sync::Mutex;

use candle_core::{CpuStorage, CustomOp1, Device, Layout, Result, Shape, Tensor};
use onpolicy::multiversion;
use onpolicy::params::{cpu_result, cpu_slice, with_slice};
use onpolicy::simd::{exp, ln};

/// Evenly spaced atoms z₁ … z_M from `low` to `high`, `w` apart.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Support {
    low: f32,
    high: f32,
    bins: usize,
}

/// Standard deviation of a target in units of the spacing (Farebrother et al. 2024).
const SPREAD: f64 = 0.75;
/// Beyond that many spacings from a target nothing is left of it: erfc(8/0.75/√2) < 1e-25.
const REACH: f64 = 8.0;

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
        out.fill(0.0);
        // in units of w from the first atom
        let y = (f64::from(y.clamp(self.low, self.high)) - f64::from(self.low)) / self.spacing();
        let first = (y - REACH).max(0.0) as usize;
        let last = ((y + REACH) as usize).min(self.bins - 1);
        let cdf = |edge: f64| normal_cdf((edge - y) / SPREAD);
        let below = cdf(first as f64 - 0.5);
        let mut left = below;
        for (i, p) in out.iter_mut().enumerate().take(last + 1).skip(first) {
            let right = cdf(i as f64 + 0.5);
            *p = (right - left) as f32;
            left = right;
        }
        let mass = (left - below) as f32;
        out[first..=last].iter_mut().for_each(|p| *p /= mass);
    }

    /// Expected value of softmax(logits), `[B, M]` → `[B]`; differentiable.
    pub fn expectation(&self, logits: &Tensor) -> Result<Tensor> {
        logits.contiguous()?.apply_op1(Expectation { atoms: self.atoms(), kept: Mutex::new(Vec::new()) })
    }

    /// Cross-entropy −Σᵢ pᵢ ln softmax(logits)ᵢ between the histograms of targets `[B]` and `[B, M]` logits, `[B]`;
    /// differentiable in the logits.
    ///
    /// Panics if there are not B targets.
    pub fn cross_entropy(&self, logits: &Tensor, targets: &[f32]) -> Result<Tensor> {
        assert_eq!(logits.dims()[0], targets.len());
        let mut labels = vec![0.0; targets.len() * self.bins];
        for (row, &y) in labels.chunks_exact_mut(self.bins).zip(targets) {
            self.target(y, row);
        }
        logits.contiguous()?.apply_op1(CrossEntropy { labels, kept: Mutex::new(Vec::new()) })
    }
}

/// Φ in f64: ½·erfc(−x/√2) with W. J. Cody's accuracy where it matters, by a continued fraction in the tails and a
/// power series around 0.
fn normal_cdf(x: f64) -> f64 {
    let a = x.abs();
    let density = (-0.5 * a * a).exp() / std::f64::consts::TAU.sqrt();
    let tail = if a < 3.0 {
        // Φ(a) − ½ = φ(a)·(a + a³/3 + a⁵/15 + …)
        let (mut term, mut sum, mut n) = (a, a, 1.0);
        while term > 1e-17 * sum {
            n += 2.0;
            term *= a * a / n;
            sum += term;
        }
        0.5 - density * sum
    } else {
        // φ(a)/(a + 1/(a + 2/(a + 3/(a + …))))
        let fraction = (1..=60).rev().fold(a, |below, k| a + f64::from(k) / below);
        density / fraction
    };
    if x > 0.0 { 1.0 - tail } else { tail }
}

multiversion! {
    /// Writes softmax of each row of `x`; returns nothing. `max` and `sum` take the row's largest logit and Σ e^(x−max).
    fn softmax_rows(x: &[f32], n: usize, p: &mut [f32], log_sum: &mut [f32]) {
        for ((x, p), log_sum) in x.chunks_exact(n).zip(p.chunks_exact_mut(n)).zip(log_sum) {
            let mut top = [f32::NEG_INFINITY; 16];
            for part in x.chunks(16) {
                for (t, v) in top.iter_mut().zip(part) {
                    *t = t.max(*v);
                }
            }
            let max = top.iter().fold(f32::NEG_INFINITY, |m, t| m.max(*t));
            for (p, x) in p.iter_mut().zip(x) {
                *p = exp(x - max);
            }
            let mut lanes = [0.0f32; 16];
            for part in p.chunks(16) {
                for (t, v) in lanes.iter_mut().zip(part) {
                    *t += *v;
                }
            }
            let sum = lanes.iter().sum::<f32>();
            for p in p.iter_mut() {
                *p *= 1.0 / sum;
            }
            *log_sum = max + ln(sum);
        }
    }
}

/// Softmax of `[B, M]` logits and ln Σ e^x of each row. A row that is not finite gives NaN.
fn softmax(x: &[f32], n: usize) -> (Vec<f32>, Vec<f32>) {
    let (mut p, mut log_sum) = (vec![0.0; x.len()], vec![0.0; x.len() / n]);
    softmax_rows(x, n, &mut p, &mut log_sum);
    for ((x, p), l) in x.chunks_exact(n).zip(p.chunks_exact_mut(n)).zip(&mut log_sum) {
        if x.iter().any(|x| !x.is_finite()) {
            p.fill(f32::NAN);
            *l = f32::NAN;
        }
    }
    (p, log_sum)
}

struct Expectation {
    atoms: Vec<f32>,
    /// Probabilities and means of the last forward pass.
    kept: Mutex<Vec<(Vec<f32>, Vec<f32>)>>,
}

impl CustomOp1 for Expectation {
    fn name(&self) -> &'static str {
        "expectation"
    }

    fn cpu_fwd(&self, logits: &CpuStorage, layout: &Layout) -> Result<(CpuStorage, Shape)> {
        let (rows, n) = layout.shape().dims2()?;
        let (p, _) = softmax(cpu_slice(logits, layout)?, n);
        let mean: Vec<f32> =
            p.chunks_exact(n).map(|p| p.iter().zip(&self.atoms).map(|(p, z)| p * z).sum::<f32>()).collect();
        *self.kept.lock().expect("no panic while held") = vec![(p, mean.clone())];
        cpu_result(mean, rows)
    }

    /// ∂q/∂xᵢ = pᵢ·(zᵢ − q)
    fn bwd(&self, logits: &Tensor, _: &Tensor, grad: &Tensor) -> Result<Option<Tensor>> {
        let kept = self.kept.lock().expect("no panic while held").pop();
        let Some((mut p, mean)) = kept else { candle_core::bail!("backward through one expectation runs once") };
        let n = self.atoms.len();
        with_slice(&grad.contiguous()?, |grad| {
            for ((p, q), g) in p.chunks_exact_mut(n).zip(&mean).zip(grad) {
                p.iter_mut().zip(&self.atoms).for_each(|(p, z)| *p *= g * (z - q));
            }
        })?;
        Ok(Some(Tensor::from_vec(p, logits.shape(), &Device::Cpu)?))
    }
}

struct CrossEntropy {
    labels: Vec<f32>,
    kept: Mutex<Vec<Vec<f32>>>,
}

impl CustomOp1 for CrossEntropy {
    fn name(&self) -> &'static str {
        "cross-entropy"
    }

    fn cpu_fwd(&self, logits: &CpuStorage, layout: &Layout) -> Result<(CpuStorage, Shape)> {
        let (rows, n) = layout.shape().dims2()?;
        let x = cpu_slice(logits, layout)?;
        let (p, log_sum) = softmax(x, n);
        let loss: Vec<f32> = (x.chunks_exact(n).zip(self.labels.chunks_exact(n)).zip(&log_sum))
            .map(|((x, label), l)| label.iter().zip(x).map(|(y, x)| if *y > 0.0 { y * (l - x) } else { 0.0 }).sum())
            .collect();
        *self.kept.lock().expect("no panic while held") = vec![p];
        cpu_result(loss, rows)
    }

    /// ∂/∂xᵢ = softmaxᵢ − labelᵢ, labels summing to 1
    fn bwd(&self, logits: &Tensor, _: &Tensor, grad: &Tensor) -> Result<Option<Tensor>> {
        let kept = self.kept.lock().expect("no panic while held").pop();
        let Some(mut p) = kept else { candle_core::bail!("backward through one cross-entropy runs once") };
        let n = logits.dims()[1];
        with_slice(&grad.contiguous()?, |grad| {
            for ((p, label), g) in p.chunks_exact_mut(n).zip(self.labels.chunks_exact(n)).zip(grad) {
                p.iter_mut().zip(label).for_each(|(p, y)| *p = g * (*p - y));
            }
        })?;
        Ok(Some(Tensor::from_vec(p, logits.shape(), &Device::Cpu)?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use candle_core::Var;

    #[test]
    fn the_normal_distribution_function_has_its_table_values() {
        for (x, want) in [
            (0.0, 0.5),
            (1.0, 0.841_344_746_068_543),
            (-1.0, 0.158_655_253_931_457),
            (2.9, 0.998_134_186_699_616),
            (-3.1, 9.676_032_132_183_56e-4),
            (-6.0, 9.865_876_450_377e-10),
        ] {
            assert!((normal_cdf(x) - want).abs() < 1e-12, "{x}: {}", normal_cdf(x));
        }
    }

    #[test]
    fn a_target_on_an_atom_is_symmetric_and_its_mean_is_the_target() {
        let s = Support::new(-5.0, 5.0, 11);
        let mut p = vec![0.0; 11];
        s.target(1.0, &mut p);
        assert_eq!(p[5], p[7]);
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
