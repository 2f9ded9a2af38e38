//! Elliptic cones: cost, force and curvature of one contact's rows.
//!
//! Rows are `x₀` along the normal and `x₁ … ` along the tangents times their friction. With `μ = μ₁ / √impratio`,
//! `N = μ x₀` and `T = |(x₁, …)|`, all tangential weights are `D₀ / μ²` and the cost is
//!
//! ```text
//! top     N ≥ μ T       0
//! bottom  μ N + T ≤ 0   ½ Σ D_i x_i²
//! middle  otherwise     ½ D_m (N − μ T)²,   D_m = D₀ / (μ² (1 + μ²))
//! ```
//!
//! MuJoCo's documentation, "Computation", section on the primal problem.
use crate::lane::Lane;
use crate::plan::Plan;
use crate::state::Rows;

/// Where the residuals of a cone lie.
struct Zone<L: Lane> {
    bottom: L::M,
    middle: L::M,
    /// `N − μ T` and `T`, this one above zero.
    gap: L,
    t: L,
    /// `D_m`.
    weight: L,
}

#[inline(always)]
fn zone<L: Lane>(mu: L, d: L, n: L, t2: L) -> Zone<L> {
    let z = L::zero();
    let t = t2.max(z).sqrt();
    let bottom = mu.fma(n, t).le(z);
    let gap = mu.fnma(t, n);
    let middle = gap.lt(z) & !bottom;
    let weight = d / (mu * mu * mu.fma(mu, L::one()));
    Zone { bottom, middle, gap, t: t.max(L::splat(if L::SINGLE { 1e-30 } else { 1e-150 })), weight }
}

/// Sum of squares of all but the first.
#[inline(always)]
fn tangential<L: Lane>(x: &[L]) -> L {
    let mut sum = L::zero();
    for e in 1..x.len() {
        sum = x[e].fma(x[e], sum);
    }
    sum
}

/// Cost of all cones.
#[inline(always)]
pub(super) fn cost<L: Lane>(plan: &Plan<L>, rows: &Rows<L>) -> L {
    let (z, half) = (L::zero(), L::splat(0.5));
    let mut sum = z;
    for c in &rows.cones {
        let m = &rows.multis[c.multi];
        let n = plan.classes[m.class].condim;
        let (d, x) = (&rows.d[m.row..m.row + n], &rows.ja[m.row..m.row + n]);
        let s = zone(c.mu, d[0], c.mu * x[0], tangential(x));
        let mut quadratic = z;
        for e in 0..n {
            quadratic = (d[e] * x[e]).fma(x[e], quadratic);
        }
        let conic = s.weight * s.gap * s.gap;
        sum += half * L::sel(s.bottom, quadratic, L::sel(s.middle, conic, z));
    }
    sum
}

/// Forces of all cones' rows.
#[inline(always)]
pub(super) fn force<L: Lane>(plan: &Plan<L>, rows: &mut Rows<L>) {
    let z = L::zero();
    for i in 0..rows.cones.len() {
        let (mu, m) = (rows.cones[i].mu, rows.multis[rows.cones[i].multi]);
        let n = plan.classes[m.class].condim;
        let (d, x) = (&rows.d[m.row..m.row + n], &rows.ja[m.row..m.row + n]);
        let s = zone(mu, d[0], mu * x[0], tangential(x));
        let pull = -(s.weight * s.gap * mu);
        let f = &mut rows.f[m.row..m.row + n];
        f[0] = L::sel(s.bottom, -(d[0] * x[0]), L::sel(s.middle, pull, z));
        let slide = -(pull / s.t);
        for e in 1..n {
            f[e] = L::sel(s.bottom, -(d[e] * x[e]), L::sel(s.middle, slide * x[e], z));
        }
    }
}

/// Lower triangle of a cone's second derivative.
///
/// ```text
/// bottom  diag(D)
/// middle  D_m (μ² [1 −u; −u uuᵀ] − (N − μT) μ/T [0 0; 0 I − uuᵀ]),   u = (x₁, …)/T
/// ```
#[inline(always)]
pub(super) fn curvature<L: Lane, const D: usize>(mu: L, d: &[L], x: &[L]) -> [L; 21] {
    let z = L::zero();
    let s = zone(mu, d[0], mu * x[0], tangential(&x[..D]));
    let inverse = s.t.recip();
    let normal = s.weight * mu * mu;
    let round = -(s.weight * s.gap * mu * inverse);
    let mut w = [z; 21];
    let mut u = [z; D];
    for e in 1..D {
        u[e] = x[e] * inverse;
    }
    let mut at = 0;
    for e in 0..D {
        for f in 0..e + 1 {
            let middle = if e == 0 {
                normal
            } else if f == 0 {
                -(normal * u[e])
            } else {
                let uu = u[e] * u[f];
                let flat = if e == f { L::one() - uu } else { -uu };
                normal.fma(uu, round * flat)
            };
            let bottom = if e == f { d[e] } else { z };
            w[at] = L::sel(s.bottom, bottom, L::sel(s.middle, middle, z));
            at += 1;
        }
    }
    w
}

/// Computes what [`slope`] needs along the rows' changes.
#[inline(always)]
pub(super) fn prepare<L: Lane>(plan: &Plan<L>, rows: &mut Rows<L>) {
    for i in 0..rows.cones.len() {
        let m = rows.multis[rows.cones[i].multi];
        let n = plan.classes[m.class].condim;
        let range = m.row..m.row + n;
        let (d, x, v) = (&rows.d[range.clone()], &rows.ja[range.clone()], &rows.jv[range]);
        let (mut uv, mut vv) = (L::zero(), L::zero());
        let (mut q1, mut q2) = (d[0] * x[0] * v[0], d[0] * v[0] * v[0]);
        for e in 1..n {
            uv = x[e].fma(v[e], uv);
            vv = v[e].fma(v[e], vv);
            q1 = (d[e] * x[e]).fma(v[e], q1);
            q2 = (d[e] * v[e]).fma(v[e], q2);
        }
        let uu = tangential(x);
        rows.cones[i].along = [uu, uv, vv, q1, q2];
    }
}

/// Adds the cones' first and second derivatives by the step length at `alpha`.
#[inline(always)]
pub(super) fn slope<L: Lane>(rows: &Rows<L>, alpha: L, d1: &mut L, d2: &mut L) {
    let z = L::zero();
    for c in &rows.cones {
        let row = rows.multis[c.multi].row;
        let [uu, uv, vv, q1, q2] = c.along;
        let n0 = c.mu * rows.ja[row];
        let n1 = c.mu * rows.jv[row];
        let t2 = alpha.fma(alpha.fma(vv, uv + uv), uu);
        let s = zone(c.mu, rows.d[row], alpha.fma(n1, n0), t2);
        let inverse = s.t.recip();
        let t1 = alpha.fma(vv, uv) * inverse;
        let t2 = t1.fnma(t1, vv) * inverse;
        let gap1 = c.mu.fnma(t1, n1);
        let middle1 = s.weight * s.gap * gap1;
        let middle2 = s.weight * (gap1 * gap1 - s.gap * c.mu * t2);
        *d1 += L::sel(s.bottom, alpha.fma(q2, q1), L::sel(s.middle, middle1, z));
        *d2 += L::sel(s.bottom, q2, L::sel(s.middle, middle2, z));
    }
}

/// Lanes in which a move from `x` to `to` leaves or enters the curved part of the cone, or crosses it.
#[inline(always)]
pub(super) fn changed<L: Lane>(mu: L, d: L, x: &[L], to: &[L]) -> L::M {
    let a = zone(mu, d, mu * x[0], tangential(x));
    let b = zone(mu, d, mu * to[0], tangential(to));
    let differ = (a.bottom | b.bottom) & !(a.bottom & b.bottom);
    L::zero().lt(d) & (a.middle | b.middle | differ)
}
