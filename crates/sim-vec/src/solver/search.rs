//! Exact line search on the piecewise quadratic.
use super::{dot, rows};
use crate::lane::{Lane, Mask};
use crate::linalg;
use crate::plan::Plan;
use crate::state::Scratch;

/// Step lengths along `search` that zero the derivative of the cost, and the lanes in which the full step 1 did.
///
/// Newton's method on the derivative, kept inside a bracket. `slope` is the derivative at zero. Lanes that are
/// `done` get a zero search direction and step.
#[inline(always)]
pub(super) fn line<L: Lane>(plan: &Plan<L>, x: &mut Scratch<L>, done: L::M, slope: L) -> (L, L::M) {
    let (z, one) = (L::zero(), L::one());
    let n = &mut x.newton;
    for v in n.search.as_flattened_mut() {
        *v = L::sel(done, z, *v);
    }
    linalg::multiply(&x.smooth.mass, &plan.tree, &n.search, &mut n.m_search);
    rows::changes(plan, &mut x.rows, &n.search);
    let (mut q1, mut q2) = (z, z);
    for i in 0..n.search.len() {
        for k in 0..3 {
            q1 = n.search[i][k].fma(x.smooth.total[i][k] - x.smooth.force[i][k], q1);
            q2 = n.search[i][k].fma(n.m_search[i][k], q2);
        }
    }
    let settings = &plan.solver;
    let length = dot(&n.search, &n.search).sqrt();
    let enough = (L::up(settings.ls_slope) * slope.abs()).max(L::up(settings.ls_step) * length);
    let (mut low, mut high) = (z, L::splat(1e9));
    let mut bracketed = L::M::none();
    let mut alpha = one;
    let mut settled = done;
    let mut full = L::M::none();
    for k in 0..settings.ls_iterations {
        let (mut d1, mut d2) = (alpha.fma(q2, q1), q2);
        for r in &x.rows.limits {
            let at = alpha.fma(r.jv, r.ja);
            let w = L::sel(at.lt(z), r.d * r.jv, z);
            d1 = w.fma(at, d1);
            d2 = w.fma(r.jv, d2);
        }
        for c in &x.rows.contacts {
            let edges = if plan.pairs.classes[c.class].condim == 1 { 1 } else { 4 };
            for e in 0..edges {
                let at = alpha.fma(c.jv[e], c.ja[e]);
                let w = L::sel(at.lt(z), c.d * c.jv[e], z);
                d1 = w.fma(at, d1);
                d2 = w.fma(c.jv[e], d2);
            }
        }
        settled = settled | d1.abs().le(enough);
        if k == 0 {
            full = settled;
        }
        if !(!settled).any() {
            break;
        }
        let past = z.lt(d1);
        high = L::sel(past, alpha, high);
        low = L::sel(past, low, alpha);
        bracketed = bracketed | past;
        let newton = alpha - d1 / d2;
        let inside = low.lt(newton) & newton.lt(high);
        let bisect = L::sel(bracketed, L::splat(0.5) * (low + high), L::splat(2.0) * alpha);
        alpha = L::sel(settled, alpha, L::sel(inside, newton, bisect));
    }
    (L::sel(done, z, alpha), full)
}

/// Moves `qacc`, `M qacc` and the residuals; returns the lanes whose active set changed or whose step was not `full`.
#[inline(always)]
pub(super) fn advance<L: Lane>(plan: &Plan<L>, x: &mut Scratch<L>, alpha: L, full: L::M) -> L::M {
    let z = L::zero();
    let (y, n) = (&mut x.smooth, &x.newton);
    for i in 0..y.qacc.len() {
        for k in 0..3 {
            y.qacc[i][k] = alpha.fma(n.search[i][k], y.qacc[i][k]);
            y.total[i][k] = alpha.fma(n.m_search[i][k], y.total[i][k]);
        }
    }
    let mut changed = !full;
    for r in &mut x.rows.limits {
        let to = alpha.fma(r.jv, r.ja);
        let (a, b) = (r.ja.lt(z), to.lt(z));
        changed = changed | (z.lt(r.d) & (a | b) & !(a & b));
        r.ja = to;
    }
    for c in &mut x.rows.contacts {
        let live = z.lt(c.d);
        let edges = if plan.pairs.classes[c.class].condim == 1 { 1 } else { 4 };
        for e in 0..edges {
            let to = alpha.fma(c.jv[e], c.ja[e]);
            let (a, b) = (c.ja[e].lt(z), to.lt(z));
            changed = changed | (live & (a | b) & !(a & b));
            c.ja[e] = to;
        }
    }
    changed
}
