//! The denoising chain on slices: one block of states from prior to action, and back.
//!
//! ```text
//! x_0 ~ N(0, σ₀²),   η_k = dt_k / softplus(f),   σ_k² = 2η_k,   g(x) = −x/σ₀²
//! μ_k = x_k + η_k·(g(x_k) + u(x_k, s, k)),   x_{k+1} = μ_k + σ_k·ε_k,   a = tanh x_N
//! μᵇ_k = x_{k+1} + η_k·g(x_{k+1})            (reference noising kernel, the same σ_k)
//! W = Σ_k log N(x_k; μᵇ_k, σ_k) − log N(x_{k+1}; μ_k, σ_k),   J = Σ_i log(1 − a_i²)
//! log π̂ = log N(x_0; 0, σ₀²) − W − J ≥ log π(a|s) in expectation;   entropy estimate = W + J
//! ```
//!
//! All `[R, N+1, d]` arrays are row-major with the state first.

use onpolicy::multiversion;
use onpolicy::simd::{softplus, tanh};

use crate::network::{Net, OUTPUT_CLIP, Time, Trunk};
use crate::schedule::PRIOR_STD;

const LOG_TAU: f32 = 1.837_877_1;
const INV_PRIOR_VAR: f32 = 1.0 / (PRIOR_STD * PRIOR_STD);

/// Everything of a forward pass that does not depend on the state.
pub(crate) struct Setup<'a> {
    pub net: &'a Net,
    pub p: &'a [f32],
    /// `[N, d]`
    pub eta: Vec<f32>,
    pub time: Time,
}

impl<'a> Setup<'a> {
    pub fn new(net: &'a Net, dt: &[f32], p: &'a [f32]) -> Self {
        let friction = &p[net.friction.clone()];
        let eta = dt.iter().flat_map(|dt| friction.iter().map(move |f| dt / softplus(*f))).collect();
        Setup { net, p, eta, time: net.time(p) }
    }

    pub fn eta_at(&self, k: usize) -> &[f32] {
        &self.eta[k * self.net.d..(k + 1) * self.net.d]
    }

    /// Adds what follows from the gradient `[N, d]` of η to the friction's part of `dp`.
    pub fn eta_backward(&self, deta: &[f32], dp: &mut [f32]) {
        for (i, f) in self.p[self.net.friction.clone()].iter().enumerate() {
            // dη/df = −η·σ(f)/softplus(f)
            let slope = -1.0 / ((1.0 + (-f).exp()) * softplus(*f));
            dp[self.net.friction.start + i] += (0..self.net.steps)
                .map(|k| deta[k * self.net.d + i] * self.eta[k * self.net.d + i] * slope)
                .sum::<f32>();
        }
    }

    /// First-layer pre-activation without x at step k: state part plus time part, `[rows, H]`.
    pub fn base(&self, state: &[f32], k: usize) -> Vec<f32> {
        let h = self.net.width;
        let time = &self.time.projected[k * h..(k + 1) * h];
        let mut base = state.to_vec();
        base.chunks_exact_mut(h).for_each(|row| row.iter_mut().zip(time).for_each(|(b, t)| *b += t));
        base
    }
}

/// Latents, controls and activations of one block along given paths, kept for the gradient.
pub(crate) type PathKept = (Vec<f32>, Vec<f32>, Trunk);

/// One block's chain, kept for its gradient.
pub(crate) struct Kept {
    /// `N+1` arrays `[R, d]`.
    x: Vec<Vec<f32>>,
    /// `N` arrays `[R, d]`, clamped.
    u: Vec<Vec<f32>>,
    trunk: Vec<Trunk>,
}

/// Runs a block of R states. `s`: `[R, O]`; `noise`: `[R, N+1, d]`, its first part the prior's draw.
/// `scale`: 1 for the stochastic chain, 0 for the noise-free one; `c`: factor on u.
pub(crate) fn run(setup: &Setup, s: &[f32], noise: &[f32], scale: f32, c: f32) -> Kept {
    let (net, d) = (setup.net, setup.net.d);
    let rows = s.len() / net.obs;
    let width = (net.steps + 1) * d;
    let state = net.state(setup.p, rows, s);
    let prior: Vec<f32> = (0..rows * d).map(|i| PRIOR_STD * noise[i / d * width + i % d]).collect();
    let mut kept = Kept { x: vec![prior], u: Vec::with_capacity(net.steps), trunk: Vec::with_capacity(net.steps) };
    for k in 0..net.steps {
        let x = &kept.x[k];
        let (mut u, mut trunk) = (vec![0.0; rows * d], Trunk::default());
        net.control(setup.p, rows, x, setup.base(&state, k), &mut trunk, &mut u);
        let mut next = vec![0.0; rows * d];
        let eta = setup.eta_at(k);
        for r in 0..rows {
            for i in 0..d {
                let e = r * d + i;
                u[e] = u[e].clamp(-OUTPUT_CLIP, OUTPUT_CLIP);
                let mean = x[e] + eta[i] * (c * u[e] - x[e] * INV_PRIOR_VAR);
                next[e] = mean + scale * (2.0 * eta[i]).sqrt() * noise[r * width + (k + 1) * d + i];
            }
        }
        kept.x.push(next);
        kept.u.push(u);
        kept.trunk.push(trunk);
    }
    kept
}

impl Kept {
    /// The chain's end, `[R, d]`.
    pub fn last(&self) -> &[f32] {
        &self.x[self.x.len() - 1]
    }

    /// `out`: `[R, d + 2]`: action, log π̂, entropy estimate.
    pub fn score(&self, setup: &Setup, noise: &[f32], out: &mut [f32]) {
        let d = setup.net.d;
        let width = (setup.net.steps + 1) * d;
        for (r, out) in out.chunks_exact_mut(d + 2).enumerate() {
            let (mut terminal, mut w, mut jacobian) = (0.0, 0.0, 0.0);
            for i in 0..d {
                let e0 = noise[r * width + i];
                terminal -= 0.5 * e0 * e0 + PRIOR_STD.ln() + 0.5 * LOG_TAU;
                for k in 0..setup.net.steps {
                    let (x, next, eta) = (self.x[k][r * d + i], self.x[k + 1][r * d + i], setup.eta_at(k)[i]);
                    let (eps, back) = (noise[r * width + (k + 1) * d + i], x - next * (1.0 - eta * INV_PRIOR_VAR));
                    w += 0.5 * eps * eps - back * back / (4.0 * eta);
                }
                let x = self.last()[r * d + i];
                out[i] = tanh(x);
                jacobian += 2.0 * (std::f32::consts::LN_2 - x - softplus(-2.0 * x));
            }
            out[d] = terminal - w - jacobian;
            out[d + 1] = w + jacobian;
        }
    }

    /// `action` `[R, d]`, `path` `[R, N+1, d]`, `mean` `[R, N, d]` and the log density of each step `[R, N]`.
    pub fn trace(
        &self,
        setup: &Setup,
        noise: &[f32],
        action: &mut [f32],
        path: &mut [f32],
        mean: &mut [f32],
        density: &mut [f32],
    ) {
        let (d, n) = (setup.net.d, setup.net.steps);
        for r in 0..action.len() / d {
            for i in 0..d {
                action[r * d + i] = tanh(self.last()[r * d + i]);
                for k in 0..=n {
                    path[(r * (n + 1) + k) * d + i] = self.x[k][r * d + i];
                }
                for k in 0..n {
                    let (x, eta) = (self.x[k][r * d + i], setup.eta_at(k)[i]);
                    mean[(r * n + k) * d + i] = x + eta * (self.u[k][r * d + i] - x * INV_PRIOR_VAR);
                    let eps = noise[(r * (n + 1) + k + 1) * d + i];
                    density[r * n + k] -= 0.5 * (eps * eps + (2.0 * eta).ln() + LOG_TAU);
                }
            }
        }
    }

    /// Gradient of [`Kept::score`]. `dout`: `[R, d+2]`; `dp`: `[P + N·H + N·d]`, the parameters' gradient followed by
    /// those of the time part and of η, added to; `dstate` of the state's own part is returned as `[R, H]`.
    pub fn score_backward(&self, setup: &Setup, s: &[f32], noise: &[f32], dout: &[f32], dp: &mut [f32]) -> Vec<f32> {
        let (net, d, n) = (setup.net, setup.net.d, setup.net.steps);
        let rows = s.len() / net.obs;
        let (dp, tail) = dp.split_at_mut(net.len);
        let (dtime, deta) = tail.split_at_mut(n * net.width);
        // weight of W and J together: log π̂ has −(W+J), the entropy estimate W+J
        let weight: Vec<f32> = dout.chunks_exact(d + 2).map(|g| g[d + 1] - g[d]).collect();
        let mut dx = vec![0.0; rows * d];
        for r in 0..rows {
            for i in 0..d {
                let a = tanh(self.last()[r * d + i]);
                dx[r * d + i] = dout[r * (d + 2) + i] * (1.0 - a * a) - 2.0 * a * weight[r];
            }
        }
        let mut dstate = vec![0.0; rows * net.width];
        for k in (0..n).rev() {
            let (mut du, mut direct) = (vec![0.0; rows * d], vec![0.0; rows * d]);
            let (x, next, u, eta) = (&self.x[k], &self.x[k + 1], &self.u[k], setup.eta_at(k));
            for r in 0..rows {
                for i in 0..d {
                    let e = r * d + i;
                    let (eta, g) = (eta[i], weight[r]);
                    let keep = 1.0 - eta * INV_PRIOR_VAR;
                    let back = x[e] - next[e] * keep;
                    let eps = noise[(r * (n + 1) + k + 1) * d + i];
                    let dnext = dx[e] + g * back * keep / (2.0 * eta);
                    deta[k * d + i] += g
                        * (back * back / (4.0 * eta * eta) - back * next[e] * INV_PRIOR_VAR / (2.0 * eta))
                        + dnext * (u[e] - x[e] * INV_PRIOR_VAR + eps / (2.0 * eta).sqrt());
                    du[e] = if u[e].abs() < OUTPUT_CLIP { dnext * eta } else { 0.0 };
                    direct[e] = dnext * keep - g * back / (2.0 * eta);
                }
            }
            let base = net.control_backward(setup.p, rows, x, &self.trunk[k], &mut du, Some(&mut dx), dp);
            dx.iter_mut().zip(&direct).for_each(|(a, b)| *a += b);
            accumulate(net.width, &base, &mut dstate, &mut dtime[k * net.width..(k + 1) * net.width]);
        }
        net.state_backward(rows, s, &dstate, dp);
        dstate
    }
}

multiversion! {
    /// Adds `base` `[R, H]` to `total` row by row and its sum over rows to `column`.
    fn accumulate(width: usize, base: &[f32], total: &mut [f32], column: &mut [f32]) {
        for (b, t) in base.chunks_exact(width).zip(total.chunks_exact_mut(width)) {
            for ((b, t), c) in b.iter().zip(t).zip(column.iter_mut()) {
                *t += b;
                *c += b;
            }
        }
    }
}

/// What to measure on a given path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Measure {
    /// log N(x_{k+1}; μ_k, σ_k).
    Density,
    /// Closed-form KL of step k from the reference means and step sizes.
    FullKl,
    /// Its part from the means alone: exact at equal frictions.
    MeanKl,
}

/// A path and, for divergences, the means `[R, N, d]` and η `[N, d]` of the policy that drew it.
pub(crate) struct Given<'a> {
    pub path: &'a [f32],
    pub mean: &'a [f32],
    pub eta: &'a [f32],
}

/// Measures every step of given paths, `out`: `[R, N]`. All steps go through the network at once.
pub(crate) fn measure(setup: &Setup, what: Measure, s: &[f32], given: &Given, out: &mut [f32]) -> PathKept {
    let (net, d, n, h) = (setup.net, setup.net.d, setup.net.steps, setup.net.width);
    let states = s.len() / net.obs;
    let state = net.state(setup.p, states, s);
    let mut base = Vec::with_capacity(states * n * h);
    let mut x = Vec::with_capacity(states * n * d);
    for r in 0..states {
        for k in 0..n {
            let time = &setup.time.projected[k * h..(k + 1) * h];
            base.extend(state[r * h..(r + 1) * h].iter().zip(time).map(|(s, t)| s + t));
            x.extend_from_slice(&given.path[(r * (n + 1) + k) * d..(r * (n + 1) + k + 1) * d]);
        }
    }
    let (mut u, mut trunk) = (vec![0.0; states * n * d], Trunk::default());
    net.control(setup.p, states * n, &x, base, &mut trunk, &mut u);
    u.iter_mut().for_each(|u| *u = u.clamp(-OUTPUT_CLIP, OUTPUT_CLIP));
    for r in 0..states {
        for k in 0..n {
            out[r * n + k] = (0..d).map(|i| term(setup, what, given, &x, &u, r, k, i).0).sum();
        }
    }
    (x, u, trunk)
}

/// One dimension of one step: its value and its derivatives with respect to μ and to σ² = 2η directly.
#[inline(always)]
fn term(
    setup: &Setup,
    what: Measure,
    given: &Given,
    x: &[f32],
    u: &[f32],
    r: usize,
    k: usize,
    i: usize,
) -> (f32, f32, f32) {
    let (d, n) = (setup.net.d, setup.net.steps);
    let e = (r * n + k) * d + i;
    let eta = setup.eta[k * d + i];
    let mean = x[e] + eta * (u[e] - x[e] * INV_PRIOR_VAR);
    let var = 2.0 * eta;
    match what {
        Measure::Density => {
            let off = given.path[(r * (n + 1) + k + 1) * d + i] - mean;
            let value = -0.5 * (off * off / var + var.ln() + LOG_TAU);
            (value, off / var, 0.5 * (off * off / (var * var) - 1.0 / var))
        }
        Measure::FullKl => {
            let (off, old) = (mean - given.mean[e], 2.0 * given.eta[k * d + i]);
            let value = 0.5 * ((old + off * off) / var - 1.0 + (var / old).ln());
            (value, off / var, 0.5 * (1.0 / var - (old + off * off) / (var * var)))
        }
        Measure::MeanKl => {
            let (off, scale) = (mean - given.mean[e], 4.0 * given.eta[k * d + i] + 1e-8);
            (off * off / scale, 2.0 * off / scale, 0.0)
        }
    }
}

/// Gradient of [`measure`] with respect to the parameters, laid out as in [`Kept::score_backward`].
pub(crate) fn measure_backward(
    setup: &Setup,
    what: Measure,
    s: &[f32],
    given: &Given,
    kept: &PathKept,
    dout: &[f32],
    dp: &mut [f32],
) {
    let (net, d, n, h) = (setup.net, setup.net.d, setup.net.steps, setup.net.width);
    let states = s.len() / net.obs;
    let (x, u, trunk) = kept;
    let (dp, tail) = dp.split_at_mut(net.len);
    let (dtime, deta) = tail.split_at_mut(n * h);
    let mut du = vec![0.0; states * n * d];
    for r in 0..states {
        for k in 0..n {
            for i in 0..d {
                let e = (r * n + k) * d + i;
                let (_, dmean, dvar) = term(setup, what, given, x, u, r, k, i);
                let g = dout[r * n + k];
                deta[k * d + i] += g * (dmean * (u[e] - x[e] * INV_PRIOR_VAR) + 2.0 * dvar);
                du[e] = if u[e].abs() < OUTPUT_CLIP { g * dmean * setup.eta[k * d + i] } else { 0.0 };
            }
        }
    }
    let base = net.control_backward(setup.p, states * n, x, trunk, &mut du, None, dp);
    let mut dstate = vec![0.0; states * h];
    for (r, total) in dstate.chunks_exact_mut(h).enumerate() {
        for k in 0..n {
            let row = (r * n + k) * h;
            accumulate(h, &base[row..row + h], total, &mut dtime[k * h..(k + 1) * h]);
        }
    }
    net.state_backward(states, s, &dstate, dp);
}
