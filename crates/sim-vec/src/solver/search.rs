//! Exact line search on the piecewise quadratic.
use super::{dot, rows};
use crate::lane::{Lane, Mask};
use crate::linalg;
use crate::plan::Plan;
use crate::state::{Rows, Scratch};

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
        slopes(&x.rows, alpha, &mut d1, &mut d2);
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
    let Rows { d, ja, jv, loss, ends, cones, multis, .. } = &mut x.rows;
    let [equality, friction, one_sided] = *ends;
    for c in &*cones {
        let m = &multis[c.multi];
        let dim = plan.classes[m.class].condim;
        let mut to = [z; 6];
        for e in 0..dim {
            to[e] = alpha.fma(jv[m.row + e], ja[m.row + e]);
        }
        changed = changed | super::cone::changed(c.mu, d[m.row], &ja[m.row..m.row + dim], &to[..dim]);
    }
    let n = d.len();
    let (d, ja, jv) = (&d[..n], &mut ja[..n], &jv[..n]);
    for i in 0..n {
        let to = alpha.fma(jv[i], ja[i]);
        if i >= friction && i < one_sided {
            let (a, b) = (ja[i].lt(z), to.lt(z));
            changed = changed | (z.lt(d[i]) & (a | b) & !(a & b));
        } else if i >= equality && i < friction {
            let bound = loss[i - equality] / d[i];
            changed = changed | z.lt((sliding(ja[i], bound) - sliding(to, bound)).abs());
        }
        ja[i] = to;
    }
    changed
}

/// −1, 0 or 1: beyond the bounds of dry friction's quadratic part, or within.
#[inline(always)]
fn sliding<L: Lane>(x: L, bound: L) -> L {
    L::sel(bound.lt(x), L::one(), L::sel(x.lt(-bound), -L::one(), L::zero()))
}

/// Adds the rows' first and second derivatives by the step length at `alpha`.
#[inline(always)]
fn slopes<L: Lane>(rows: &Rows<L>, alpha: L, d1: &mut L, d2: &mut L) {
    let z = L::zero();
    let [equality, friction, one_sided] = rows.ends;
    let n = one_sided;
    let (d, ja, jv) = (&rows.d[..n], &rows.ja[..n], &rows.jv[..n]);
    for i in 0..equality {
        let w = d[i] * jv[i];
        *d1 = w.fma(alpha.fma(jv[i], ja[i]), *d1);
        *d2 = w.fma(jv[i], *d2);
    }
    for i in equality..friction {
        let loss = rows.loss[i - equality];
        let pull = d[i] * alpha.fma(jv[i], ja[i]);
        *d1 = (-loss).max(loss.min(pull)).fma(jv[i], *d1);
        *d2 = L::sel(pull.abs().lt(loss), d[i] * jv[i], z).fma(jv[i], *d2);
    }
    for i in friction..one_sided {
        let at = alpha.fma(jv[i], ja[i]);
        let w = L::sel(at.lt(z), d[i] * jv[i], z);
        *d1 = w.fma(at, *d1);
        *d2 = w.fma(jv[i], *d2);
    }
    if !rows.cones.is_empty() {
        super::cone::slope(rows, alpha, d1, d2);
    }
}
