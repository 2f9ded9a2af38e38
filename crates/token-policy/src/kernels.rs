//! Row-wise pieces of a decoder block, with their gradients.

use std::ops::Range;

use onpolicy::multiversion;
use onpolicy::simd::{exp, sigmoid};

/// Σ a·b in sixteen running sums, added in a fixed order.
#[inline(always)]
pub(crate) fn dot(a: &[f32], b: &[f32]) -> f32 {
    let mut acc = [0.0f32; 16];
    let (ca, cb) = (a.chunks_exact(16), b.chunks_exact(16));
    let mut rest = 0.0;
    for (x, y) in ca.remainder().iter().zip(cb.remainder()) {
        rest += x * y;
    }
    for (x, y) in ca.zip(cb) {
        for k in 0..16 {
            acc[k] += x[k] * y[k];
        }
    }
    let mut width = 8;
    while width > 0 {
        for k in 0..width {
            acc[k] += acc[k + width];
        }
        width /= 2;
    }
    acc[0] + rest
}

multiversion! {
    /// Root-mean-square norm of rows of length `g.len()`.
    ///
    /// ```text
    /// inv = 1/√(mean x² + ε),   y = x·inv·g
    /// ```
    ///
    /// `x`, `y`: `[T, d]`; `inv`: `[T]`.
    pub(crate) fn rms_norm(x: &[f32], g: &[f32], eps: f32, y: &mut [f32], inv: &mut [f32]) {
        let d = g.len();
        for ((x, y), inv) in x.chunks_exact(d).zip(y.chunks_exact_mut(d)).zip(inv.iter_mut()) {
            *inv = 1.0 / (dot(x, x) / d as f32 + eps).sqrt();
            for k in 0..d {
                y[k] = x[k] * *inv * g[k];
            }
        }
    }
}

multiversion! {
    /// Gradient of [`rms_norm`]: adds to `dx` and `dg`.
    ///
    /// ```text
    /// dx += inv·(dy·g − x̂·mean(dy·g·x̂)),   dg += Σ dy·x̂,   x̂ = x·inv
    /// ```
    pub(crate) fn rms_norm_backward(x: &[f32], inv: &[f32], g: &[f32], dy: &[f32], dx: &mut [f32], dg: &mut [f32]) {
        let d = g.len();
        for (((x, dy), dx), inv) in
            x.chunks_exact(d).zip(dy.chunks_exact(d)).zip(dx.chunks_exact_mut(d)).zip(inv.iter())
        {
            let inv = *inv;
            let mut acc = [0.0f32; 16];
            for k in 0..d {
                acc[k % 16] += dy[k] * g[k] * x[k];
            }
            let mean = acc.iter().sum::<f32>() * inv / d as f32;
            for k in 0..d {
                let hat = x[k] * inv;
                dx[k] += inv * (dy[k] * g[k] - hat * mean);
                dg[k] += dy[k] * hat;
            }
        }
    }
}

multiversion! {
    /// `silu(gate)·up`. `gate_up`: `[T, 2f]`, gate first; `act`: `[T, f]`.
    pub(crate) fn swiglu(gate_up: &[f32], f: usize, act: &mut [f32]) {
        for (row, act) in gate_up.chunks_exact(2 * f).zip(act.chunks_exact_mut(f)) {
            let (gate, up) = row.split_at(f);
            for k in 0..f {
                act[k] = gate[k] * sigmoid(gate[k]) * up[k];
            }
        }
    }
}

multiversion! {
    /// Gradient of [`swiglu`]: `gate_up` becomes its own gradient.
    pub(crate) fn swiglu_backward(gate_up: &mut [f32], f: usize, dact: &[f32]) {
        for (row, dact) in gate_up.chunks_exact_mut(2 * f).zip(dact.chunks_exact(f)) {
            let (gate, up) = row.split_at_mut(f);
            for k in 0..f {
                let s = sigmoid(gate[k]);
                let silu = gate[k] * s;
                let d = dact[k];
                gate[k] = d * up[k] * (s + silu * (1.0 - s));
                up[k] = d * silu;
            }
        }
    }
}

multiversion! {
    /// Turns pairs (k, k + h/2) of every head by the angle of the row's position; `sign` −1 turns back.
    ///
    /// `x`: rows of `stride`, of which the first `heads·h` are turned; `cos`, `sin`: `[rows, h/2]`.
    pub(crate) fn rotate(x: &mut [f32], stride: usize, heads: usize, h: usize, cos: &[f32], sin: &[f32], sign: f32) {
        let half = h / 2;
        for ((row, cos), sin) in x.chunks_exact_mut(stride).zip(cos.chunks_exact(half)).zip(sin.chunks_exact(half)) {
            for head in row[..heads * h].chunks_exact_mut(h) {
                let (a, b) = head.split_at_mut(half);
                for k in 0..half {
                    let (u, v, s) = (a[k], b[k], sign * sin[k]);
                    a[k] = u * cos[k] - v * s;
                    b[k] = v * cos[k] + u * s;
                }
            }
        }
    }
}

multiversion! {
    /// Causal softmax of `scores·scale`, `[L, L]`, in place, for some of its rows: row i over its first i + 1 columns, 0 from
    /// there to the end of the rows' block of columns.
    pub(crate) fn causal_softmax(scores: &mut [f32], length: usize, rows: Range<usize>, scale: f32) {
        for i in rows.clone() {
            let row = &mut scores[i * length..i * length + rows.end];
            softmax(&mut row[..=i], scale);
            row[i + 1..].fill(0.0);
        }
    }
}

/// `softmax(scale·x)` in place.
#[inline(always)]
pub(crate) fn softmax(x: &mut [f32], scale: f32) {
    let mut top = f32::NEG_INFINITY;
    for v in x.iter() {
        top = top.max(*v);
    }
    for v in x.iter_mut() {
        *v = exp((*v - top) * scale);
    }
    let mut acc = [0.0f32; 16];
    for (k, v) in x.iter().enumerate() {
        acc[k % 16] += *v;
    }
    let inverse = 1.0 / acc.iter().sum::<f32>();
    for v in x.iter_mut() {
        *v *= inverse;
    }
}

multiversion! {
    /// Gradient of [`causal_softmax`]: `dp` becomes the gradient of the scores. Both begin at the first of the rows.
    ///
    /// ```text
    /// ds = scale·p·(dp − Σ p·dp)
    /// ```
    pub(crate) fn causal_softmax_backward(p: &[f32], dp: &mut [f32], length: usize, rows: Range<usize>, scale: f32) {
        for (r, i) in rows.clone().enumerate() {
            let p = &p[r * length..r * length + i + 1];
            let row = &mut dp[r * length..r * length + rows.end];
            let inner = dot(p, &row[..=i]);
            for k in 0..=i {
                row[k] = scale * p[k] * (row[k] - inner);
            }
            row[i + 1..].fill(0.0);
        }
    }
}

/// Cosines and sines of every position, `[positions, h/2]`: angle `t·θ^(−2k/h)`, computed in 64 bits.
pub(crate) fn rope_table(positions: usize, h: usize, theta: f64) -> (Vec<f32>, Vec<f32>) {
    let half = h / 2;
    let mut cos = Vec::with_capacity(positions * half);
    let mut sin = Vec::with_capacity(positions * half);
    for t in 0..positions {
        for k in 0..half {
            let angle = t as f64 * theta.powf(-2.0 * k as f64 / h as f64);
            cos.push(angle.cos() as f32);
            sin.push(angle.sin() as f32);
        }
    }
    (cos, sin)
}
