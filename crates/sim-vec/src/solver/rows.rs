//! Products with the constraint Jacobian, row by row.
use crate::constraint::edges;
use crate::lane::{Lane, Mask};
use crate::math::V3;
use crate::plan::Plan;
use crate::plan::pairs::Class;
use crate::state::Rows;

/// Normal and scaled tangential rows of a condim 3 contact times `x`.
#[inline(always)]
fn times3<L: Lane>(class: &Class<L>, jac: &[[L; 3]], x: &[V3<L>]) -> [L; 3] {
    let z = L::zero();
    let mut v = [z; 3];
    for (block, j) in class.blocks.iter().zip(jac.as_chunks::<3>().0) {
        let y = &x[block.block as usize];
        for r in 0..3 {
            v[r] = j[2][r].fma(y[2], j[1][r].fma(y[1], j[0][r].fma(y[0], v[r])));
        }
    }
    v
}

/// Normal row of a condim 1 contact times `x`.
#[inline(always)]
fn times1<L: Lane>(class: &Class<L>, jac: &[[L; 3]], x: &[V3<L>]) -> L {
    let mut v = L::zero();
    for (block, j) in class.blocks.iter().zip(jac) {
        let y = &x[block.block as usize];
        v = j[2].fma(y[2], j[1].fma(y[1], j[0].fma(y[0], v)));
    }
    v
}

/// Sets every row's residual `J x − a_ref` and returns the rows' cost there.
#[inline(always)]
pub(super) fn residuals<L: Lane>(plan: &Plan<L>, rows: &mut Rows<L>, x: &[V3<L>]) -> L {
    let (z, half) = (L::zero(), L::splat(0.5));
    let mut cost = z;
    let flat = x.as_flattened();
    for row in &mut rows.limits {
        row.ja = row.sign * flat[row.padded] - row.aref;
        let n = row.ja.min(z);
        cost = (row.d * half * n).fma(n, cost);
    }
    let Rows { contacts, jac, .. } = rows;
    for c in contacts {
        let class = &plan.pairs.classes[c.class];
        let jac = &jac[c.jac..];
        if class.condim == 1 {
            c.ja[0] = times1(class, jac, x) - c.aref[0];
            let n = c.ja[0].min(z);
            cost = (c.d * half * n).fma(n, cost);
        } else {
            let e = edges(times3(class, jac, x));
            for k in 0..4 {
                c.ja[k] = e[k] - c.aref[k];
                let n = c.ja[k].min(z);
                cost = (c.d * half * n).fma(n, cost);
            }
        }
    }
    cost
}

/// Sets every row's change `J x` along a direction.
#[inline(always)]
pub(super) fn changes<L: Lane>(plan: &Plan<L>, rows: &mut Rows<L>, x: &[V3<L>]) {
    let flat = x.as_flattened();
    for row in &mut rows.limits {
        row.jv = row.sign * flat[row.padded];
    }
    let Rows { contacts, jac, .. } = rows;
    for c in contacts {
        let class = &plan.pairs.classes[c.class];
        let jac = &jac[c.jac..];
        if class.condim == 1 {
            c.jv[0] = times1(class, jac, x);
        } else {
            c.jv = edges(times3(class, jac, x));
        }
    }
}

/// Lanes without any row.
#[inline(always)]
pub(super) fn rowless<L: Lane>(rows: &Rows<L>) -> L::M {
    let z = L::zero();
    let mut some = L::M::none();
    for row in &rows.limits {
        some = some | z.lt(row.d);
    }
    for c in &rows.contacts {
        some = some | z.lt(c.d);
    }
    !some
}

/// Constraint forces `−Jᵀ D min(0, J a − a_ref)` over dofs.
#[inline(always)]
pub(super) fn force<L: Lane>(plan: &Plan<L>, rows: &Rows<L>, out: &mut [V3<L>]) {
    let z = L::zero();
    out.fill([z; 3]);
    let flat = out.as_flattened_mut();
    for row in &rows.limits {
        let f = row.d * row.ja.min(z);
        let o = &mut flat[row.padded];
        *o = f.fnma(row.sign, *o);
    }
    for c in &rows.contacts {
        let class = &plan.pairs.classes[c.class];
        let jac = &rows.jac[c.jac..];
        if class.condim == 1 {
            let f = -(c.d * c.ja[0].min(z));
            for (block, j) in class.blocks.iter().zip(jac) {
                let o = &mut out[block.block as usize];
                for k in 0..3 {
                    o[k] = j[k].fma(f, o[k]);
                }
            }
        } else {
            let d = -c.d;
            let f = [d * c.ja[0].min(z), d * c.ja[1].min(z), d * c.ja[2].min(z), d * c.ja[3].min(z)];
            let (n, t1, t2) = (f[0] + f[1] + f[2] + f[3], f[0] - f[1], f[2] - f[3]);
            for (block, j) in class.blocks.iter().zip(jac.as_chunks::<3>().0) {
                let o = &mut out[block.block as usize];
                for k in 0..3 {
                    o[k] = j[k][2].fma(t2, j[k][1].fma(t1, j[k][0].fma(n, o[k])));
                }
            }
        }
    }
}
