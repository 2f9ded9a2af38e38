//! The dense layer on slices: linear, bias, norm, activation, and its gradient. Everything else is built from it.
//!
//! ```text
//! t = x·Wᵀ + b          W: [out, in]
//! n = t                                     (Norm::None)
//!     (t − mean t)/√(var t + 1e-5)·γ + β    (Norm::Layer)
//!     t/√(mean t² + 1e-6)·γ                 (Norm::Rms)
//! y = act(n)
//! ```

use crate::matmul::{View, matmul};
use crate::multiversion;
use crate::simd::{normal_cdf_pdf, sigmoid};

/// Normalisation over a layer's features.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Norm {
    /// None.
    None,
    /// Layer normalisation with learnable scale and shift, ε = 1e-5.
    Layer,
    /// Root-mean-square normalisation with learnable scale, ε = 1e-6.
    Rms,
}

/// Elementwise activation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Activation {
    /// Identity.
    None,
    /// x·σ(x)
    Silu,
    /// x·Φ(x), exact (not the tanh approximation).
    Gelu,
}

impl Activation {
    /// Value at x.
    #[inline(always)]
    pub fn apply(self, x: f32) -> f32 {
        match self {
            Activation::None => x,
            Activation::Silu => x * sigmoid(x),
            Activation::Gelu => x * normal_cdf_pdf(x).0,
        }
    }

    /// Derivative at x.
    #[inline(always)]
    pub fn slope(self, x: f32) -> f32 {
        match self {
            Activation::None => 1.0,
            Activation::Silu => {
                let s = sigmoid(x);
                s * (1.0 + x * (1.0 - s))
            }
            Activation::Gelu => {
                let (cdf, pdf) = normal_cdf_pdf(x);
                cdf + x * pdf
            }
        }
    }
}

/// Sizes and kinds of one layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dense {
    /// Inputs.
    pub input: usize,
    /// Outputs.
    pub output: usize,
    /// Normalisation after the bias.
    pub norm: Norm,
    /// Activation after the norm.
    pub act: Activation,
}

impl Dense {
    /// Parameters: weight `[out, in]`, bias `[out]`, then scale `[out]` and shift `[out]` where the norm has them.
    pub fn params(&self) -> usize {
        self.output * (self.input + self.epilogue_params())
    }

    fn epilogue_params(&self) -> usize {
        match self.norm {
            Norm::None => 1,
            Norm::Rms => 2,
            Norm::Layer => 3,
        }
    }

    /// Forward over `rows`. `x`: `[rows, in]`; `y`: `[rows, out]`; `kept`: `[rows, out]` and `scale`: `[rows]` are
    /// what [`Dense::backward`] needs (normalised values and 1/std; without norm the pre-activations).
    pub fn forward(&self, p: &[f32], rows: usize, x: &[f32], y: &mut [f32], kept: &mut [f32], scale: &mut [f32]) {
        let (w, rest) = p.split_at(self.output * self.input);
        matmul(
            rows,
            self.output,
            self.input,
            kept,
            View::rows(self.output),
            false,
            x,
            View::rows(self.input),
            w,
            View::transposed(self.input),
        );
        epilogue(self.norm, self.act, self.output, rest, kept, scale, y);
    }

    /// Gradient. `dy`: `[rows, out]` is consumed as scratch; `dx`: `[rows, in]` is overwritten if given; `dp`
    /// (same layout as `p`) is added to if given.
    pub fn backward(
        &self,
        p: &[f32],
        rows: usize,
        x: &[f32],
        kept: &[f32],
        scale: &[f32],
        dy: &mut [f32],
        dx: Option<&mut [f32]>,
        dp: Option<&mut [f32]>,
    ) {
        let (w, rest) = p.split_at(self.output * self.input);
        match dp {
            Some(dp) => {
                let (dw, drest) = dp.split_at_mut(self.output * self.input);
                epilogue_backward(self.norm, self.act, self.output, rest, kept, scale, dy, drest);
                // dW += dtᵀ·x
                matmul(
                    self.output,
                    self.input,
                    rows,
                    dw,
                    View::rows(self.input),
                    true,
                    dy,
                    View::transposed(self.output),
                    x,
                    View::rows(self.input),
                );
            }
            None => {
                let mut unused = vec![0.0; self.output * self.epilogue_params()];
                epilogue_backward(self.norm, self.act, self.output, rest, kept, scale, dy, &mut unused);
            }
        }
        if let Some(dx) = dx {
            matmul(
                rows,
                self.input,
                self.output,
                dx,
                View::rows(self.input),
                false,
                dy,
                View::rows(self.output),
                w,
                View::rows(self.input),
            );
        }
    }
}

/// Sum in 16 partial sums, so that it vectorises and has one fixed order.
#[inline(always)]
pub(crate) fn sum(x: &[f32]) -> f32 {
    let mut acc = [0.0f32; 16];
    let chunks = x.chunks_exact(16);
    let tail: f32 = chunks.remainder().iter().sum();
    for c in chunks {
        for i in 0..16 {
            acc[i] += c[i];
        }
    }
    acc.iter().sum::<f32>() + tail
}

/// Inner product in the same order as [`sum`].
#[inline(always)]
pub(crate) fn dot(x: &[f32], y: &[f32]) -> f32 {
    let mut acc = [0.0f32; 16];
    let (a, b) = (x.chunks_exact(16), y.chunks_exact(16));
    let tail: f32 = a.remainder().iter().zip(b.remainder()).map(|(x, y)| x * y).sum();
    for (c, d) in a.zip(b) {
        for i in 0..16 {
            acc[i] += c[i] * d[i];
        }
    }
    acc.iter().sum::<f32>() + tail
}

multiversion! {
    /// Bias, norm and activation over `[rows, n]` in place of the linear part's result.
    ///
    /// `t` enters as x·Wᵀ and leaves as what the backward pass needs; `y` gets the layer's output.
    pub fn epilogue(norm: Norm, act: Activation, n: usize, p: &[f32], t: &mut [f32], scale: &mut [f32], y: &mut [f32]) {
        match act {
            Activation::None => rows_forward::<0>(norm, n, p, t, scale, y),
            Activation::Silu => rows_forward::<1>(norm, n, p, t, scale, y),
            Activation::Gelu => rows_forward::<2>(norm, n, p, t, scale, y),
        }
    }
}

multiversion! {
    /// Gradient of [`epilogue`]: `dy` becomes the gradient of the linear part's result; `dp` is added to.
    pub fn epilogue_backward(norm: Norm, act: Activation, n: usize, p: &[f32], kept: &[f32], scale: &[f32], dy: &mut [f32], dp: &mut [f32]) {
        match act {
            Activation::None => rows_backward::<0>(norm, n, p, kept, scale, dy, dp),
            Activation::Silu => rows_backward::<1>(norm, n, p, kept, scale, dy, dp),
            Activation::Gelu => rows_backward::<2>(norm, n, p, kept, scale, dy, dp),
        }
    }
}

multiversion! {
    /// `y = act(x)`, elementwise.
    pub fn activate(act: Activation, x: &[f32], y: &mut [f32]) {
        match act {
            Activation::None => y.copy_from_slice(x),
            Activation::Silu => y.iter_mut().zip(x).for_each(|(y, &x)| *y = Activation::Silu.apply(x)),
            Activation::Gelu => y.iter_mut().zip(x).for_each(|(y, &x)| *y = Activation::Gelu.apply(x)),
        }
    }
}

multiversion! {
    /// `dy *= act'(x)`, elementwise.
    pub fn activate_backward(act: Activation, x: &[f32], dy: &mut [f32]) {
        match act {
            Activation::None => {}
            Activation::Silu => dy.iter_mut().zip(x).for_each(|(d, &x)| *d *= Activation::Silu.slope(x)),
            Activation::Gelu => dy.iter_mut().zip(x).for_each(|(d, &x)| *d *= Activation::Gelu.slope(x)),
        }
    }
}

#[inline(always)]
fn activation<const A: u8>() -> Activation {
    match A {
        0 => Activation::None,
        1 => Activation::Silu,
        _ => Activation::Gelu,
    }
}

#[inline(always)]
fn rows_forward<const A: u8>(norm: Norm, n: usize, p: &[f32], t: &mut [f32], scale: &mut [f32], y: &mut [f32]) {
    let act = activation::<A>();
    let bias = &p[..n];
    for ((t, y), scale) in t.chunks_exact_mut(n).zip(y.chunks_exact_mut(n)).zip(scale) {
        match norm {
            Norm::None => {
                for i in 0..n {
                    t[i] += bias[i];
                    y[i] = act.apply(t[i]);
                }
            }
            Norm::Layer => {
                let (gamma, beta) = (&p[n..2 * n], &p[2 * n..3 * n]);
                for i in 0..n {
                    t[i] += bias[i];
                }
                let mean = sum(t) / n as f32;
                for x in t.iter_mut() {
                    *x -= mean;
                }
                let r = 1.0 / (dot(t, t) / n as f32 + 1e-5).sqrt();
                *scale = r;
                for i in 0..n {
                    t[i] *= r;
                    y[i] = act.apply(t[i] * gamma[i] + beta[i]);
                }
            }
            Norm::Rms => {
                let gamma = &p[n..2 * n];
                for i in 0..n {
                    t[i] += bias[i];
                }
                let r = 1.0 / (dot(t, t) / n as f32 + 1e-6).sqrt();
                *scale = r;
                for i in 0..n {
                    t[i] *= r;
                    y[i] = act.apply(t[i] * gamma[i]);
                }
            }
        }
    }
}

#[inline(always)]
fn rows_backward<const A: u8>(
    norm: Norm,
    n: usize,
    p: &[f32],
    kept: &[f32],
    scale: &[f32],
    dy: &mut [f32],
    dp: &mut [f32],
) {
    let act = activation::<A>();
    let (db, dnorm) = dp.split_at_mut(n);
    for ((g, kept), &r) in dy.chunks_exact_mut(n).zip(kept.chunks_exact(n)).zip(scale) {
        match norm {
            Norm::None => {
                for i in 0..n {
                    g[i] *= act.slope(kept[i]);
                    db[i] += g[i];
                }
            }
            Norm::Layer => {
                let (gamma, beta) = (&p[n..2 * n], &p[2 * n..3 * n]);
                let (dgamma, dbeta) = dnorm.split_at_mut(n);
                for i in 0..n {
                    let dn = g[i] * act.slope(kept[i] * gamma[i] + beta[i]);
                    dgamma[i] += dn * kept[i];
                    dbeta[i] += dn;
                    g[i] = dn * gamma[i];
                }
                let (mean, along) = (sum(g) / n as f32, dot(g, kept) / n as f32);
                for i in 0..n {
                    g[i] = r * (g[i] - mean - kept[i] * along);
                    db[i] += g[i];
                }
            }
            Norm::Rms => {
                let gamma = &p[n..2 * n];
                for i in 0..n {
                    let dn = g[i] * act.slope(kept[i] * gamma[i]);
                    dnorm[i] += dn * kept[i];
                    g[i] = dn * gamma[i];
                }
                let along = dot(g, kept) / n as f32;
                for i in 0..n {
                    g[i] = r * (g[i] - kept[i] * along);
                    db[i] += g[i];
                }
            }
        }
    }
}
