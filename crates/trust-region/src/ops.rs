//! Row-wise differentiable operations, rows split over threads.

use std::sync::Mutex;

use candle_core::{CpuStorage, CustomOp1, CustomOp2, Device, Layout, Result, Shape, Tensor};
use onpolicy::mlp::{BLOCK, sum_in_order};
use onpolicy::multiversion;
use onpolicy::params::{cpu_result, cpu_slice, with_slice};
use onpolicy::simd::{exp, ln};
use rayon::prelude::*;

multiversion! {
    /// Softmax p of each row of n and ln Σ eˣ.
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
                let d = x - max;
                // below e⁻⁶⁰ nothing is left in single precision but gradients that are denormal numbers, and slow
                *p = if d < -60.0 { 0.0 } else { exp(d) };
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

multiversion! {
    /// Inner products of the rows of `a` with those of `b`, which start over at its end.
    fn row_products(a: &[f32], b: &[f32], n: usize, out: &mut [f32]) {
        for ((a, b), out) in a.chunks_exact(n).zip(b.chunks_exact(n).cycle()).zip(out) {
            let mut lanes = [0.0f32; 16];
            for (a, b) in a.chunks(16).zip(b.chunks(16)) {
                for ((t, a), b) in lanes.iter_mut().zip(a).zip(b) {
                    *t += a * b;
                }
            }
            *out = lanes.iter().sum::<f32>();
        }
    }
}

/// Softmax of `[B, n]` logits and ln Σ eˣ of each row. A row that is not finite gives NaN.
fn softmax(x: &[f32], n: usize) -> (Vec<f32>, Vec<f32>) {
    let (mut p, mut log_sum) = (vec![0.0; x.len()], vec![0.0; x.len() / n]);
    let blocks = p.par_chunks_mut(BLOCK * n).zip(log_sum.par_chunks_mut(BLOCK));
    blocks.zip(x.par_chunks(BLOCK * n)).for_each(|((p, log_sum), x)| {
        softmax_rows(x, n, p, log_sum);
        for ((x, p), l) in x.chunks_exact(n).zip(p.chunks_exact_mut(n)).zip(log_sum) {
            // a sum is finite only if all its terms are, or if they overflow it, which is as bad
            if !x.iter().sum::<f32>().is_finite() {
                p.fill(f32::NAN);
                *l = f32::NAN;
            }
        }
    });
    (p, log_sum)
}

/// Rows of `a` with rows of `b` and their gradient, in parallel blocks.
fn each_row(n: usize, a: &mut [f32], b: &[f32], grad: &[f32], f: impl Fn(&mut [f32], &[f32], usize, f32) + Sync) {
    let blocks = a.par_chunks_mut(BLOCK * n).zip(b.par_chunks(BLOCK * n)).zip(grad.par_chunks(BLOCK));
    blocks.enumerate().for_each(|(block, ((a, b), grad))| {
        for (row, ((a, b), g)) in a.chunks_exact_mut(n).zip(b.chunks_exact(n)).zip(grad).enumerate() {
            f(a, b, block * BLOCK + row, *g);
        }
    });
}

/// What a forward pass leaves for the one backward pass that may follow.
struct Once<T>(Mutex<Option<T>>);

impl<T> Once<T> {
    fn new() -> Self {
        Once(Mutex::new(None))
    }

    fn put(&self, x: T) {
        *self.0.lock().expect("no panic while held") = Some(x);
    }

    fn take(&self) -> Result<T> {
        let kept = self.0.lock().expect("no panic while held").take();
        kept.ok_or_else(|| candle_core::Error::Msg("backward through one forward pass runs once".into()))
    }
}

/// softmax(x)·z: `[B, M]` → `[B]`.
pub struct Expectation {
    atoms: Vec<f32>,
    kept: Once<(Vec<f32>, Vec<f32>)>,
}

impl Expectation {
    /// `atoms`: `[M]` z.
    pub fn new(atoms: Vec<f32>) -> Self {
        Expectation { atoms, kept: Once::new() }
    }
}

impl CustomOp1 for Expectation {
    fn name(&self) -> &'static str {
        "expectation"
    }

    fn cpu_fwd(&self, logits: &CpuStorage, layout: &Layout) -> Result<(CpuStorage, Shape)> {
        let (rows, n) = layout.shape().dims2()?;
        let (p, _) = softmax(cpu_slice(logits, layout)?, n);
        let mut mean = vec![0.0; rows];
        row_products(&p, &self.atoms, n, &mut mean);
        self.kept.put((p, mean.clone()));
        cpu_result(mean, rows)
    }

    /// ∂q/∂xᵢ = pᵢ·(zᵢ − q)
    fn bwd(&self, logits: &Tensor, _: &Tensor, grad: &Tensor) -> Result<Option<Tensor>> {
        let (p, mean) = self.kept.take()?;
        let mut dx = vec![0.0; p.len()];
        with_slice(&grad.contiguous()?, |grad| {
            each_row(self.atoms.len(), &mut dx, &p, grad, |dx, p, row, g| {
                let q = mean[row];
                dx.iter_mut().zip(p).zip(&self.atoms).for_each(|((dx, p), z)| *dx = g * p * (z - q));
            })
        })?;
        Ok(Some(Tensor::from_vec(dx, logits.shape(), &Device::Cpu)?))
    }
}

/// −Σᵢ labelᵢ·ln softmax(x)ᵢ: `[B, M]` → `[B]`.
pub struct CrossEntropy {
    labels: Vec<f32>,
    kept: Once<Vec<f32>>,
}

impl CrossEntropy {
    /// `labels`: `[B, M]`, each row summing to 1.
    pub fn new(labels: Vec<f32>) -> Self {
        CrossEntropy { labels, kept: Once::new() }
    }
}

impl CustomOp1 for CrossEntropy {
    fn name(&self) -> &'static str {
        "cross-entropy"
    }

    fn cpu_fwd(&self, logits: &CpuStorage, layout: &Layout) -> Result<(CpuStorage, Shape)> {
        let (rows, n) = layout.shape().dims2()?;
        let x = cpu_slice(logits, layout)?;
        let (p, log_sum) = softmax(x, n);
        // Σ label = 1, so the loss is ln Σ eˣ − Σ label·x
        let mut loss = vec![0.0; rows];
        row_products(x, &self.labels, n, &mut loss);
        loss.iter_mut().zip(log_sum).for_each(|(loss, l)| *loss = l - *loss);
        self.kept.put(p);
        cpu_result(loss, rows)
    }

    /// ∂/∂xᵢ = softmaxᵢ − labelᵢ
    fn bwd(&self, logits: &Tensor, _: &Tensor, grad: &Tensor) -> Result<Option<Tensor>> {
        let mut p = self.kept.take()?;
        with_slice(&grad.contiguous()?, |grad| {
            each_row(logits.dims()[1], &mut p, &self.labels, grad, |p, label, _, g| {
                p.iter_mut().zip(label).for_each(|(p, y)| *p = g * (*p - y));
            })
        })?;
        Ok(Some(Tensor::from_vec(p, logits.shape(), &Device::Cpu)?))
    }
}

/// Mean over a row of (xᵢ − targetᵢ)²: `[B, n]` → `[B]`.
pub struct SquaredError {
    /// `[B, n]`, contiguous; a constant.
    pub target: Tensor,
}

impl CustomOp1 for SquaredError {
    fn name(&self) -> &'static str {
        "squared-error"
    }

    fn cpu_fwd(&self, x: &CpuStorage, layout: &Layout) -> Result<(CpuStorage, Shape)> {
        let (rows, n) = layout.shape().dims2()?;
        let x = cpu_slice(x, layout)?;
        let error = |(x, t): (&[f32], &[f32])| x.iter().zip(t).map(|(x, t)| (x - t) * (x - t)).sum::<f32>() / n as f32;
        let loss = with_slice(&self.target, |t| {
            assert_eq!(t.len(), x.len(), "target and prediction have one shape");
            x.chunks_exact(n).zip(t.chunks_exact(n)).map(error).collect()
        })?;
        cpu_result(loss, rows)
    }

    fn bwd(&self, x: &Tensor, _: &Tensor, grad: &Tensor) -> Result<Option<Tensor>> {
        let n = x.dims()[1];
        let mut dx = with_slice(x, |x| x.to_vec())?;
        with_slice(&grad.contiguous()?, |grad| {
            with_slice(&self.target, |t| {
                each_row(n, &mut dx, t, grad, |dx, t, _, g| {
                    let k = 2.0 * g / n as f32;
                    dx.iter_mut().zip(t).for_each(|(dx, t)| *dx = k * (*dx - t));
                })
            })
        })??;
        Ok(Some(Tensor::from_vec(dx, x.shape(), &Device::Cpu)?))
    }
}

/// x + factor·row: `[B, n]`, `[n]` → `[B, n]`.
pub struct AddRow(pub f32);

impl CustomOp2 for AddRow {
    fn name(&self) -> &'static str {
        "add-row"
    }

    fn cpu_fwd(&self, x: &CpuStorage, xl: &Layout, row: &CpuStorage, rl: &Layout) -> Result<(CpuStorage, Shape)> {
        let row = cpu_slice(row, rl)?;
        let mut y = cpu_slice(x, xl)?.to_vec();
        y.par_chunks_mut(BLOCK * row.len()).for_each(|block| {
            for y in block.chunks_exact_mut(row.len()) {
                y.iter_mut().zip(row).for_each(|(y, r)| *y += self.0 * r);
            }
        });
        cpu_result(y, xl.shape().clone())
    }

    fn bwd(&self, _: &Tensor, row: &Tensor, _: &Tensor, grad: &Tensor) -> Result<(Option<Tensor>, Option<Tensor>)> {
        let n = row.elem_count();
        let parts = with_slice(&grad.contiguous()?, |grad| {
            let sum = |block: &[f32]| {
                let mut total = vec![0.0; n];
                block.chunks_exact(n).for_each(|g| total.iter_mut().zip(g).for_each(|(t, g)| *t += self.0 * g));
                total
            };
            grad.par_chunks(BLOCK * n).map(sum).collect::<Vec<_>>()
        })?;
        Ok((Some(grad.clone()), Some(Tensor::from_vec(sum_in_order(parts, n), n, &Device::Cpu)?)))
    }
}
