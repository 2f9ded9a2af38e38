//! `H = M + Jᵀ D J` over active rows.
//!
//! Built once per solve from `M`; later iterations only add the change of rows that became active or inactive in a
//! lane that is not done, and of cones, whose weight changes all the time.
use super::cone;
use crate::lane::{Lane, Mask};
use crate::linalg::Pattern;
use crate::math::Mat3;
use crate::plan::Plan;
use crate::plan::blocks::{MAX_BLOCKS, tri};
use crate::plan::pairs::ClassBlock;
use crate::state::{Rows, Scratch};

/// The pattern of H's factors: the tree, cliques of the rows between limbs, and the fill they cause.
#[inline(always)]
pub(super) fn pattern<L: Lane>(plan: &Plan<L>, rows: &Rows<L>, out: &mut Pattern) {
    let n = plan.blocks.count;
    let mut mask = [0u64; MAX_BLOCKS];
    mask[..n].copy_from_slice(&plan.blocks.mask);
    let mut last = usize::MAX;
    for m in &rows.multis {
        let class = &plan.classes[m.class];
        if class.fixed || m.class == last {
            continue;
        }
        last = m.class;
        let mut left = 0u64;
        for b in &class.blocks {
            mask[b.block as usize] |= left;
            left |= 1 << b.block;
        }
    }
    out.columns.clear();
    for i in (0..n).rev() {
        let start = out.columns.len() as u32;
        let (mut rest, mut left) = (mask[i], 0u64);
        while rest != 0 {
            let j = rest.trailing_zeros() as usize;
            rest &= rest - 1;
            out.columns.push(j as u16);
            mask[j] |= left;
            left |= 1 << j;
        }
        out.rows[i] = (start, out.columns.len() as u32);
    }
}

/// Brings H up to the active set of the lanes that are not `done` and copies it to where it will be factored.
#[inline(always)]
pub(super) fn update<L: Lane>(plan: &Plan<L>, x: &mut Scratch<L>, done: L::M, first: bool) {
    let Scratch { smooth, rows, newton, .. } = x;
    let h = &mut newton.hessian;
    let n = plan.blocks.count;
    if first {
        for i in 0..n {
            let r = tri(i);
            let tree = plan.blocks.mask[i];
            for &c in newton.pattern.row(i) {
                let at = r + c as usize;
                h[at] = if tree >> c & 1 == 1 { smooth.mass[at] } else { [L::zero(); 9] };
            }
            h[r + i] = smooth.mass[r + i];
        }
    }
    weights(rows, done);
    for s in &rows.singles {
        let (b, k) = (s.padded / 3, s.padded % 3);
        h[tri(b) + b][4 * k] += rows.jv[s.row];
    }
    let mut next_cone = 0;
    for (i, m) in rows.multis.iter().enumerate() {
        let class = &plan.classes[m.class];
        let (jac, change) = (&rows.jac[m.jac..], &rows.jv[m.row..m.row + class.rows]);
        if class.elliptic {
            let c = &mut rows.cones[next_cone];
            debug_assert_eq!(c.multi, i);
            next_cone += 1;
            let (d, ja) = (&rows.d[m.row..], &rows.ja[m.row..]);
            match class.condim {
                3 => conic::<L, 3>(&class.blocks, jac, c.mu, d, ja, &mut c.w, done, h),
                4 => conic::<L, 4>(&class.blocks, jac, c.mu, d, ja, &mut c.w, done, h),
                _ => conic::<L, 6>(&class.blocks, jac, c.mu, d, ja, &mut c.w, done, h),
            }
        } else {
            match class.condim {
                1 => frictionless(&class.blocks, jac, change[0], h),
                3 => pyramid::<L, 3>(&class.blocks, jac, change, h),
                4 => pyramid::<L, 4>(&class.blocks, jac, change, h),
                _ => pyramid::<L, 6>(&class.blocks, jac, change, h),
            }
        }
    }
    for i in 0..n {
        let r = tri(i);
        for &c in newton.pattern.row(i) {
            newton.factor[r + c as usize] = h[r + c as usize];
        }
        newton.factor[r + i] = h[r + i];
    }
}

/// Sets the rows' weights in H and leaves the changes in `jv`, which is free at this point.
#[inline(always)]
fn weights<L: Lane>(rows: &mut Rows<L>, done: L::M) {
    let z = L::zero();
    let [equality, friction, one_sided] = rows.ends;
    let n = one_sided;
    let (d, ja, w, change) = (&rows.d[..n], &rows.ja[..n], &mut rows.w[..n], &mut rows.jv[..n]);
    for i in 0..n {
        let active = if i < equality {
            d[i]
        } else if i < friction {
            L::sel((d[i] * ja[i]).abs().lt(rows.loss[i - equality]), d[i], z)
        } else {
            L::sel(ja[i].lt(z), d[i], z)
        };
        change[i] = L::sel(done, z, active - w[i]);
        w[i] = L::sel(done, w[i], active);
    }
}

/// Adds `w jᵀj` of one row.
#[inline(always)]
fn frictionless<L: Lane>(blocks: &[ClassBlock<L>], jac: &[L], w: L, h: &mut [Mat3<L>]) {
    if !L::zero().lt(w.abs()).any() {
        return;
    }
    let jac = jac.as_chunks::<3>().0;
    for x in 0..blocks.len() {
        let row = &mut h[tri(blocks[x].block as usize)..];
        let j = &jac[x];
        let a = [w * j[0], w * j[1], w * j[2]];
        for y in 0..x + 1 {
            let q = &mut row[blocks[y].block as usize];
            let j = &jac[y];
            for e in 0..3 {
                for f in 0..3 {
                    q[3 * e + f] = a[e].fma(j[f], q[3 * e + f]);
                }
            }
        }
    }
}

/// `Jᵀ W J` with the weight that the edges of a pyramid make of their changes: only its first row and its diagonal.
#[inline(always)]
fn pyramid<L: Lane, const D: usize>(blocks: &[ClassBlock<L>], jac: &[L], w: &[L], h: &mut [Mat3<L>]) {
    let z = L::zero();
    let mut any = L::M::none();
    for e in 0..2 * D - 2 {
        any = any | z.lt(w[e].abs());
    }
    if !any.any() {
        return;
    }
    let (mut sum, mut cross, mut own) = (z, [z; D], [z; D]);
    for e in 1..D {
        own[e] = w[2 * e - 2] + w[2 * e - 1];
        cross[e] = w[2 * e - 2] - w[2 * e - 1];
        sum += own[e];
    }
    let jac = jac.as_chunks::<D>().0.as_chunks::<3>().0;
    for x in 0..blocks.len() {
        let j = &jac[x];
        let mut a = [[z; D]; 3];
        for k in 0..3 {
            a[k][0] = sum * j[k][0];
            for e in 1..D {
                a[k][0] = cross[e].fma(j[k][e], a[k][0]);
                a[k][e] = cross[e].fma(j[k][0], own[e] * j[k][e]);
            }
        }
        add::<L, D>(&a, x, blocks, jac, h);
    }
}

/// Adds `aᵀ J` to the blocks of a row of H.
#[inline(always)]
fn add<L: Lane, const D: usize>(
    a: &[[L; D]; 3],
    x: usize,
    blocks: &[ClassBlock<L>],
    jac: &[[[L; D]; 3]],
    h: &mut [Mat3<L>],
) {
    let row = &mut h[tri(blocks[x].block as usize)..];
    for y in 0..x + 1 {
        let q = &mut row[blocks[y].block as usize];
        let j = &jac[y];
        for e in 0..3 {
            for f in 0..3 {
                let mut s = q[3 * e + f];
                for r in 0..D {
                    s = a[e][r].fma(j[f][r], s);
                }
                q[3 * e + f] = s;
            }
        }
    }
}

/// Brings `Jᵀ W J` of a cone up to its present curvature.
#[inline(always)]
#[allow(clippy::too_many_arguments)]
fn conic<L: Lane, const D: usize>(
    blocks: &[ClassBlock<L>],
    jac: &[L],
    mu: L,
    d: &[L],
    ja: &[L],
    old: &mut [L; 21],
    done: L::M,
    h: &mut [Mat3<L>],
) {
    let z = L::zero();
    let new = cone::curvature::<L, D>(mu, d, ja);
    let mut change = [[z; D]; D];
    let mut any = L::M::none();
    let mut at = 0;
    for e in 0..D {
        for f in 0..e + 1 {
            let c = L::sel(done, z, new[at] - old[at]);
            any = any | z.lt(c.abs());
            old[at] = L::sel(done, old[at], new[at]);
            change[e][f] = c;
            change[f][e] = c;
            at += 1;
        }
    }
    if !any.any() {
        return;
    }
    let jac = jac.as_chunks::<D>().0.as_chunks::<3>().0;
    for x in 0..blocks.len() {
        let j = &jac[x];
        let mut a = [[z; D]; 3];
        for k in 0..3 {
            for e in 0..D {
                for f in 0..D {
                    a[k][e] = change[e][f].fma(j[k][f], a[k][e]);
                }
            }
        }
        add::<L, D>(&a, x, blocks, jac, h);
    }
}
