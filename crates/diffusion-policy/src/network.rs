//! The control network u(x, s, k) on slices: parameter layout, time embedding, forward and backward over rows.

use std::ops::Range;

use candle_core::Result;
use onpolicy::dense::{Activation, Dense, Norm, epilogue, epilogue_backward};
use onpolicy::matmul::{View, matmul};
use onpolicy::params::{Init, Params, ParamsBuilder};
use onpolicy::{Noise, simd::sincos_turns};

use crate::DiffusionConfig;

const FREQUENCIES: usize = 32;
const TIME_HIDDEN: usize = 32;
const TIME_OUT: usize = 16;
/// Outputs are clamped to ±this.
pub(crate) const OUTPUT_CLIP: f32 = 1e4;

/// Where everything lies in the flat parameter vector.
///
/// First layer: `[H, d + O + 16]` over (x, s, time), GELU. Hidden layers: `[H, H]`, layer norm, GELU. Output: `[d, H]`.
#[derive(Clone, Debug)]
pub(crate) struct Net {
    pub d: usize,
    pub obs: usize,
    pub width: usize,
    pub steps: usize,
    pub friction: Range<usize>,
    phase: Range<usize>,
    time1: Range<usize>,
    time2: Range<usize>,
    first_w: Range<usize>,
    first_b: Range<usize>,
    hidden: Vec<(Dense, Range<usize>)>,
    out: (Dense, Range<usize>),
    pub len: usize,
}

/// ln(e^y − 1), so that softplus of it is y.
fn softplus_inverse(y: f32) -> f32 {
    if y > 20.0 { y } else { f64::from(y).exp_m1().ln() as f32 }
}

impl Net {
    /// Draws initial parameters: PyTorch's uniform for linear layers, the output layer 1e-8 of it so that u = 0.
    pub fn build(c: &DiffusionConfig, noise: &mut Noise) -> Result<(Net, Params)> {
        let (d, obs, h) = (c.action_dim, c.obs_dim, c.width);
        let mut b = ParamsBuilder::default();
        let mut linear = |b: &mut ParamsBuilder, name: &str, shape: [usize; 2], factor: f32, bias: f32| {
            let init = |factor| Init::Uniform { fan_in: shape[1], factor };
            let w = b.add(format!("{name}.weight"), &shape, init(factor), noise);
            let o = b.add(format!("{name}.bias"), &[shape[0]], init(bias), noise);
            w..o + shape[0]
        };
        let friction = b.add_values("friction", &[d], &vec![softplus_inverse(c.friction); d]);
        let phase = b.add_values("time.phase", &[FREQUENCIES], &[0.0; FREQUENCIES]);
        let time1 = linear(&mut b, "time.0", [TIME_HIDDEN, 2 * FREQUENCIES], 1.0, 1.0);
        let time2 = linear(&mut b, "time.1", [TIME_OUT, TIME_HIDDEN], 1.0, 1.0);
        let first = linear(&mut b, "first", [h, d + obs + TIME_OUT], 1.0, 1.0);
        let mut hidden = Vec::new();
        for l in 0..c.depth - 2 {
            let norm = if c.layer_norm { Norm::Layer } else { Norm::None };
            let layer = Dense { input: h, output: h, norm, act: Activation::Gelu };
            let mut range = linear(&mut b, &format!("hidden.{l}"), [h, h], 1.0, 1.0);
            if c.layer_norm {
                b.add_values(format!("hidden.{l}.norm.weight"), &[h], &vec![1.0; h]);
                b.add_values(format!("hidden.{l}.norm.bias"), &[h], &vec![0.0; h]);
                range.end += 2 * h;
            }
            hidden.push((layer, range));
        }
        let out = linear(&mut b, "out", [d, h], 1e-8, 0.0);
        let params = b.build()?;
        let net = Net {
            d,
            obs,
            width: h,
            steps: c.steps,
            friction: friction..friction + d,
            phase: phase..phase + FREQUENCIES,
            time1,
            time2,
            first_b: first.end - h..first.end,
            first_w: first.start..first.end - h,
            hidden,
            out: (Dense { input: h, output: d, norm: Norm::None, act: Activation::None }, out),
            len: params.len(),
        };
        Ok((net, params))
    }

    fn first_input(&self) -> usize {
        self.d + self.obs + TIME_OUT
    }

    /// Time part of the first layer's pre-activation, bias included: `[N, H]`, with what its gradient needs.
    pub fn time(&self, p: &[f32]) -> Time {
        let n = self.steps;
        let (l1, l2) = (time_layer(0), time_layer(1));
        let mut t = Time {
            features: vec![0.0; n * 2 * FREQUENCIES],
            kept1: vec![0.0; n * TIME_HIDDEN],
            hidden: vec![0.0; n * TIME_HIDDEN],
            embedding: vec![0.0; n * TIME_OUT],
            projected: vec![0.0; n * self.width],
        };
        for k in 0..n {
            for j in 0..FREQUENCIES {
                // the angle is up to 100·N radians: reduced in f64, or the features would carry no digits
                let coeff = 0.1 + (100.0 - 0.1) * j as f64 / (FREQUENCIES - 1) as f64;
                let turns = (coeff * k as f64 + f64::from(p[self.phase.start + j])) / std::f64::consts::TAU;
                let (sin, cos) = sincos_turns((turns - turns.floor()) as f32);
                t.features[k * 2 * FREQUENCIES + j] = sin;
                t.features[k * 2 * FREQUENCIES + FREQUENCIES + j] = cos;
            }
        }
        let mut scale = vec![0.0; n];
        l1.forward(&p[self.time1.clone()], n, &t.features, &mut t.hidden, &mut t.kept1, &mut scale);
        let mut kept2 = vec![0.0; n * TIME_OUT];
        l2.forward(&p[self.time2.clone()], n, &t.hidden, &mut t.embedding, &mut kept2, &mut scale);
        let w = View::transposed(self.first_input()).at(self.d + self.obs);
        matmul(
            n,
            self.width,
            TIME_OUT,
            &mut t.projected,
            View::rows(self.width),
            false,
            &t.embedding,
            View::rows(TIME_OUT),
            &p[self.first_w.clone()],
            w,
        );
        for row in t.projected.chunks_exact_mut(self.width) {
            row.iter_mut().zip(&p[self.first_b.clone()]).for_each(|(t, b)| *t += b);
        }
        t
    }

    /// Adds to `dp` what follows from the gradient `[N, H]` of [`Time::projected`].
    pub fn time_backward(&self, p: &[f32], t: &Time, dprojected: &[f32], dp: &mut [f32]) {
        let (n, h, width) = (self.steps, self.width, self.first_input());
        for row in dprojected.chunks_exact(h) {
            dp[self.first_b.clone()].iter_mut().zip(row).for_each(|(b, g)| *b += g);
        }
        let at = self.d + self.obs;
        matmul(
            h,
            TIME_OUT,
            n,
            &mut dp[self.first_w.clone()],
            View::rows(width).at(at),
            true,
            dprojected,
            View::transposed(h),
            &t.embedding,
            View::rows(TIME_OUT),
        );
        let mut dembedding = vec![0.0; n * TIME_OUT];
        matmul(
            n,
            TIME_OUT,
            h,
            &mut dembedding,
            View::rows(TIME_OUT),
            false,
            dprojected,
            View::rows(h),
            &p[self.first_w.clone()],
            View::rows(width).at(at),
        );
        let mut dhidden = vec![0.0; n * TIME_HIDDEN];
        // no norm, no activation: what the second layer keeps plays no part in its gradient
        let unused = vec![0.0; n * TIME_OUT];
        let scale = vec![0.0; n];
        time_layer(1).backward(
            &p[self.time2.clone()],
            n,
            &t.hidden,
            &unused,
            &scale,
            &mut dembedding,
            Some(&mut dhidden),
            Some(&mut dp[self.time2.clone()]),
        );
        let mut dfeatures = vec![0.0; n * 2 * FREQUENCIES];
        time_layer(0).backward(
            &p[self.time1.clone()],
            n,
            &t.features,
            &t.kept1,
            &scale,
            &mut dhidden,
            Some(&mut dfeatures),
            Some(&mut dp[self.time1.clone()]),
        );
        for k in 0..n {
            let row = k * 2 * FREQUENCIES;
            for j in 0..FREQUENCIES {
                let (sin, cos) = (t.features[row + j], t.features[row + FREQUENCIES + j]);
                dp[self.phase.start + j] += dfeatures[row + j] * cos - dfeatures[row + FREQUENCIES + j] * sin;
            }
        }
    }

    /// State part of the first layer's pre-activation, `[rows, H]`.
    pub fn state(&self, p: &[f32], rows: usize, s: &[f32]) -> Vec<f32> {
        let mut out = vec![0.0; rows * self.width];
        let w = View::transposed(self.first_input()).at(self.d);
        matmul(
            rows,
            self.width,
            self.obs,
            &mut out,
            View::rows(self.width),
            false,
            s,
            View::rows(self.obs),
            &p[self.first_w.clone()],
            w,
        );
        out
    }

    /// Adds the gradient of [`Net::state`]'s weights; `dstate`: `[rows, H]`.
    pub fn state_backward(&self, rows: usize, s: &[f32], dstate: &[f32], dp: &mut [f32]) {
        let view = View::rows(self.first_input()).at(self.d);
        matmul(
            self.width,
            self.obs,
            rows,
            &mut dp[self.first_w.clone()],
            view,
            true,
            dstate,
            View::transposed(self.width),
            s,
            View::rows(self.obs),
        );
    }

    /// u at rows whose first-layer part from state and time is `base` `[rows, H]`; `x`: `[rows, d]`.
    /// `base` becomes the first layer's pre-activation. Returns u unclamped.
    pub fn control(&self, p: &[f32], rows: usize, x: &[f32], mut base: Vec<f32>, keep: &mut Trunk, u: &mut [f32]) {
        let h = self.width;
        let w = View::transposed(self.first_input());
        matmul(rows, h, self.d, &mut base, View::rows(h), true, x, View::rows(self.d), &p[self.first_w.clone()], w);
        let mut y = vec![0.0; rows * h];
        // the bias is in the time part already
        let zero = vec![0.0; h];
        let mut scale = vec![0.0; rows];
        epilogue(Norm::None, Activation::Gelu, h, &zero, &mut base, &mut scale, &mut y);
        keep.first = base;
        keep.layers.clear();
        for (layer, range) in &self.hidden {
            let (mut next, mut kept, mut scale) = (vec![0.0; rows * h], vec![0.0; rows * h], vec![0.0; rows]);
            layer.forward(&p[range.clone()], rows, &y, &mut next, &mut kept, &mut scale);
            keep.layers.push((std::mem::replace(&mut y, next), kept, scale));
        }
        let mut kept = vec![0.0; rows * self.d];
        self.out.0.forward(&p[self.out.1.clone()], rows, &y, u, &mut kept, &mut scale);
        keep.last = y;
    }

    /// Gradient of [`Net::control`]. `du`: `[rows, d]` is consumed; `dx` `[rows, d]` is overwritten if given; returns
    /// the gradient of `base`, `[rows, H]`. `x` as in the forward pass.
    pub fn control_backward(
        &self,
        p: &[f32],
        rows: usize,
        x: &[f32],
        keep: &Trunk,
        du: &mut [f32],
        dx: Option<&mut [f32]>,
        dp: &mut [f32],
    ) -> Vec<f32> {
        let h = self.width;
        let mut g = vec![0.0; rows * h];
        let (unused, scale) = (vec![0.0; rows * self.d], vec![0.0; rows]);
        self.out.0.backward(
            &p[self.out.1.clone()],
            rows,
            &keep.last,
            &unused,
            &scale,
            du,
            Some(&mut g),
            Some(&mut dp[self.out.1.clone()]),
        );
        for ((layer, range), (input, kept, scale)) in self.hidden.iter().zip(&keep.layers).rev() {
            let mut next = vec![0.0; rows * h];
            layer.backward(
                &p[range.clone()],
                rows,
                input,
                kept,
                scale,
                &mut g,
                Some(&mut next),
                Some(&mut dp[range.clone()]),
            );
            g = next;
        }
        let mut bias = vec![0.0; h];
        epilogue_backward(Norm::None, Activation::Gelu, h, &[], &keep.first, &scale, &mut g, &mut bias);
        let width = self.first_input();
        matmul(
            h,
            self.d,
            rows,
            &mut dp[self.first_w.clone()],
            View::rows(width),
            true,
            &g,
            View::transposed(h),
            x,
            View::rows(self.d),
        );
        if let Some(dx) = dx {
            matmul(
                rows,
                self.d,
                h,
                dx,
                View::rows(self.d),
                false,
                &g,
                View::rows(h),
                &p[self.first_w.clone()],
                View::rows(width),
            );
        }
        g
    }
}

fn time_layer(l: usize) -> Dense {
    match l {
        0 => Dense { input: 2 * FREQUENCIES, output: TIME_HIDDEN, norm: Norm::None, act: Activation::Gelu },
        _ => Dense { input: TIME_HIDDEN, output: TIME_OUT, norm: Norm::None, act: Activation::None },
    }
}

/// The time embedding and its projection, for all steps of a chain.
pub(crate) struct Time {
    features: Vec<f32>,
    kept1: Vec<f32>,
    hidden: Vec<f32>,
    pub embedding: Vec<f32>,
    /// `[N, H]`
    pub projected: Vec<f32>,
}

/// What the gradient of the trunk needs.
#[derive(Default)]
pub(crate) struct Trunk {
    first: Vec<f32>,
    layers: Vec<(Vec<f32>, Vec<f32>, Vec<f32>)>,
    last: Vec<f32>,
}
