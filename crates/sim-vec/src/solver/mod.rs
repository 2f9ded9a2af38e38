//! Newton's method for the constrained acceleration.
//!
//! MuJoCo's primal problem over accelerations `a`, convex and, without elliptic cones, piecewise quadratic:
//!
//! ```text
//! min ½ (a − a_s)ᵀ M (a − a_s) + Σ s_i(J_i a − a_ref,i),   s_i = ½ D_i min(0, x)² for limits and contacts
//! ```
//!
//! The other costs: [`rows`] has equalities and dry friction, [`cone`] elliptic contacts.
//!
//! Start: the cheaper of the last acceleration and `a_s`. Each iteration factors `H = M + Jᵀ D J` over active rows,
//! then searches the line exactly. All lanes iterate together; a lane that is done is frozen, so that what it
//! computes never depends on the others. A lane is done when
//!
//! * no row is active for it at all: then `a = a_s`;
//! * its gradient, or the decrease a Newton step promises or delivered, is below the tolerance;
//! * a full Newton step left its active set unchanged: the exact minimum of the quadratic it is on;
//! * it has become NaN.
mod cone;
mod hessian;
mod rows;
mod search;

use crate::lane::{Kernel, Lane, Mask};
use crate::linalg::{self, Factor};
use crate::math::V3;
use crate::plan::Plan;
use crate::state::Scratch;

/// Solves for `qacc`, leaving `M qacc` and the rows' residuals in scratch.
pub(crate) struct Solve<'a, L: Lane> {
    pub plan: &'a Plan<L>,
    pub x: &'a mut Scratch<L>,
}

impl<L: Lane> Kernel for Solve<'_, L> {
    type Out = ();
    #[inline(always)]
    fn run(self) {
        let (plan, x) = (self.plan, self.x);
        if x.rows.d.is_empty() {
            x.smooth.qacc.copy_from_slice(&x.smooth.qacc_smooth);
            x.smooth.total.copy_from_slice(&x.smooth.force);
            (x.newton.iterations, x.newton.taken) = (0, L::zero());
            return;
        }
        let mut done = start(plan, x);
        hessian::pattern(plan, &x.rows, &mut x.newton.pattern);
        let settings = &plan.solver;
        let (mut iteration, mut taken) = (0, L::zero());
        loop {
            rows::force(plan, &mut x.rows, &mut x.newton.force);
            let g2 = gradient(x);
            // the negation also catches NaN
            done = done | !L::up(settings.gradient2).le(g2);
            if iteration >= settings.iterations || !(!done).any() {
                break;
            }
            hessian::update(plan, x, done, iteration == 0);
            let n = &mut x.newton;
            L::enter(Factor { a: &mut n.factor, dinv: &mut n.dinv, pattern: &n.pattern });
            linalg::solve(&n.factor, &n.dinv, &n.pattern, &mut n.search);
            let slope = dot(&n.grad, &n.search);
            done = done | !L::up(settings.decrement).le(-slope);
            if !(!done).any() {
                break;
            }
            let (alpha, full) = search::line(plan, x, done, slope);
            let changed = search::advance(plan, x, alpha, full);
            taken += L::sel(done, L::zero(), L::one());
            done = done | !changed | (-(slope * alpha)).lt(L::up(settings.decrement));
            iteration += 1;
        }
        (x.newton.iterations, x.newton.taken) = (iteration, taken);
    }
}

/// Picks the starting point and computes residuals and `M a` there. Returns the lanes that have no rows.
#[inline(always)]
fn start<L: Lane>(plan: &Plan<L>, x: &mut Scratch<L>) -> L::M {
    let y = &mut x.smooth;
    let smooth = rows::residuals(plan, &mut x.rows, &y.qacc_smooth);
    let mut warm = rows::residuals(plan, &mut x.rows, &y.warm);
    linalg::multiply(&y.mass, &plan.tree, &y.warm, &mut y.total);
    let mut gauss = L::zero();
    for i in 0..y.warm.len() {
        for k in 0..3 {
            let f = y.total[i][k] - y.force[i][k];
            gauss = f.fma(y.warm[i][k] - y.qacc_smooth[i][k], gauss);
        }
    }
    warm = L::splat(0.5).fma(gauss, warm);
    let rowless = rows::rowless(&x.rows);
    let take_warm = warm.lt(smooth) & !rowless;
    for i in 0..y.warm.len() {
        for k in 0..3 {
            y.qacc[i][k] = L::sel(take_warm, y.warm[i][k], y.qacc_smooth[i][k]);
        }
    }
    linalg::multiply(&y.mass, &plan.tree, &y.qacc, &mut y.total);
    for i in 0..y.warm.len() {
        for k in 0..3 {
            // exact, as it would be if no neighbour had rows
            y.total[i][k] = L::sel(rowless, y.force[i][k], y.total[i][k]);
        }
    }
    rows::residuals(plan, &mut x.rows, &y.qacc);
    rowless
}

/// `grad = M a − f_smooth − f_constraint`, `search = −grad`; returns its squared norm.
#[inline(always)]
fn gradient<L: Lane>(x: &mut Scratch<L>) -> L {
    let (y, n) = (&x.smooth, &mut x.newton);
    let mut g2 = L::zero();
    for i in 0..y.total.len() {
        for k in 0..3 {
            let g = y.total[i][k] - y.force[i][k] - n.force[i][k];
            n.grad[i][k] = g;
            n.search[i][k] = -g;
            g2 = g.fma(g, g2);
        }
    }
    g2
}

/// Dot product over dofs.
#[inline(always)]
fn dot<L: Lane>(a: &[V3<L>], b: &[V3<L>]) -> L {
    let mut s = L::zero();
    for (a, b) in a.iter().zip(b) {
        for k in 0..3 {
            s = a[k].fma(b[k], s);
        }
    }
    s
}
