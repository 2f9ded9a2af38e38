//! Products with the constraint Jacobian, costs and forces.
use super::cone;
use crate::lane::{Lane, Mask};
use crate::math::V3;
use crate::plan::Plan;
use crate::plan::pairs::Class;
use crate::state::Rows;

/// The D rows of a multi's Jacobian times `x`.
#[inline(always)]
fn times<L: Lane, const D: usize>(class: &Class<L>, jac: &[L], x: &[V3<L>]) -> [L; D] {
    let mut v = [L::zero(); D];
    let jac = jac.as_chunks::<D>().0.as_chunks::<3>().0;
    for (block, j) in class.blocks.iter().zip(jac) {
        let y = &x[block.block as usize];
        for r in 0..D {
            v[r] = j[2][r].fma(y[2], j[1][r].fma(y[1], j[0][r].fma(y[0], v[r])));
        }
    }
    v
}

/// Writes `J x` of a multi's constraint rows: the rows themselves, or the edges of a pyramid.
#[inline(always)]
fn apply<L: Lane, const D: usize>(class: &Class<L>, jac: &[L], x: &[V3<L>], out: &mut [L]) {
    let v = times::<L, D>(class, jac, x);
    if D == 1 || class.elliptic {
        out[..D].copy_from_slice(&v);
    } else {
        for e in 1..D {
            out[2 * e - 2] = v[0] + v[e];
            out[2 * e - 1] = v[0] - v[e];
        }
    }
}

/// Writes `J x` of all rows.
#[inline(always)]
fn product<L: Lane>(plan: &Plan<L>, rows: &Rows<L>, x: &[V3<L>], out: &mut [L]) {
    let flat = x.as_flattened();
    for s in &rows.singles {
        out[s.row] = s.sign * flat[s.padded];
    }
    for m in &rows.multis {
        let class = &plan.classes[m.class];
        let jac = &rows.jac[m.jac..];
        let out = &mut out[m.row..m.row + class.rows];
        match class.condim {
            1 => apply::<L, 1>(class, jac, x, out),
            3 => apply::<L, 3>(class, jac, x, out),
            4 => apply::<L, 4>(class, jac, x, out),
            _ => apply::<L, 6>(class, jac, x, out),
        }
    }
}

/// Sets every row's residual `J x − a_ref` and returns the rows' cost there.
#[inline(always)]
pub(super) fn residuals<L: Lane>(plan: &Plan<L>, rows: &mut Rows<L>, x: &[V3<L>]) -> L {
    let mut ja = std::mem::take(&mut rows.ja);
    product(plan, rows, x, &mut ja);
    for i in 0..ja.len() {
        ja[i] -= rows.aref[i];
    }
    rows.ja = ja;
    cost(plan, rows)
}

/// Sets every row's change `J x` along a direction, and the cones' coefficients along it.
#[inline(always)]
pub(super) fn changes<L: Lane>(plan: &Plan<L>, rows: &mut Rows<L>, x: &[V3<L>]) {
    let mut jv = std::mem::take(&mut rows.jv);
    product(plan, rows, x, &mut jv);
    rows.jv = jv;
    cone::prepare(plan, rows);
}

/// Cost of all rows at their residuals.
///
/// ```text
/// equality  ½ D x²
/// friction  ½ D x² while D |x| ≤ loss, then loss |x| − ½ loss² / D
/// one-sided ½ D min(0, x)²
/// ```
#[inline(always)]
fn cost<L: Lane>(plan: &Plan<L>, rows: &Rows<L>) -> L {
    let (z, half) = (L::zero(), L::splat(0.5));
    let mut sum = z;
    let [equality, friction, one_sided] = rows.ends;
    let (d, ja) = (&rows.d[..one_sided], &rows.ja[..one_sided]);
    for i in 0..equality {
        sum = (d[i] * half * ja[i]).fma(ja[i], sum);
    }
    for i in equality..friction {
        let loss = rows.loss[i - equality];
        // Huber's function: the quadratic part, and the straight part beyond it
        let x = ja[i].abs();
        let near = x.min(loss / d[i]);
        sum += (d[i] * half * near).fma(near, loss * (x - near));
    }
    for i in friction..one_sided {
        let n = ja[i].min(z);
        sum = (d[i] * half * n).fma(n, sum);
    }
    if rows.cones.is_empty() { sum } else { sum + cone::cost(plan, rows) }
}

/// Lanes without any row.
#[inline(always)]
pub(super) fn rowless<L: Lane>(rows: &Rows<L>) -> L::M {
    let z = L::zero();
    let mut some = L::M::none();
    for i in 0..rows.d.len() {
        some = some | z.lt(rows.d[i]);
    }
    !some
}

/// Adds `Jᵀ f` of a multi.
#[inline(always)]
fn spread<L: Lane, const D: usize>(class: &Class<L>, jac: &[L], f: &[L], out: &mut [V3<L>]) {
    let mut g = [L::zero(); D];
    if D == 1 || class.elliptic {
        g.copy_from_slice(&f[..D]);
    } else {
        for e in 1..D {
            g[0] += f[2 * e - 2] + f[2 * e - 1];
            g[e] = f[2 * e - 2] - f[2 * e - 1];
        }
    }
    let jac = jac.as_chunks::<D>().0.as_chunks::<3>().0;
    for (block, j) in class.blocks.iter().zip(jac) {
        let o = &mut out[block.block as usize];
        for k in 0..3 {
            for e in 0..D {
                o[k] = j[k][e].fma(g[e], o[k]);
            }
        }
    }
}

/// Sets the rows' forces, minus the derivatives of their cost, and writes `Jᵀ f` over dofs.
#[inline(always)]
pub(super) fn force<L: Lane>(plan: &Plan<L>, rows: &mut Rows<L>, out: &mut [V3<L>]) {
    let z = L::zero();
    let [equality, friction, one_sided] = rows.ends;
    {
        let n = rows.d.len();
        let (d, ja, f) = (&rows.d[..n], &rows.ja[..n], &mut rows.f[..n]);
        for i in 0..equality {
            f[i] = -(d[i] * ja[i]);
        }
        for i in equality..friction {
            let loss = rows.loss[i - equality];
            f[i] = (-loss).max(loss.min(-(d[i] * ja[i])));
        }
        for i in friction..one_sided {
            f[i] = -(d[i] * ja[i].min(z));
        }
    }
    if !rows.cones.is_empty() {
        cone::force(plan, rows);
    }
    out.fill([z; 3]);
    let flat = out.as_flattened_mut();
    for s in &rows.singles {
        let o = &mut flat[s.padded];
        *o = rows.f[s.row].fma(s.sign, *o);
    }
    for m in &rows.multis {
        let class = &plan.classes[m.class];
        let (jac, f) = (&rows.jac[m.jac..], &rows.f[m.row..m.row + class.rows]);
        match class.condim {
            1 => spread::<L, 1>(class, jac, f, out),
            3 => spread::<L, 3>(class, jac, f, out),
            4 => spread::<L, 4>(class, jac, f, out),
            _ => spread::<L, 6>(class, jac, f, out),
        }
    }
}
