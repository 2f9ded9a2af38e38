//! `H = M + Jᵀ D J` over active rows.
//!
//! Built once per solve from `M`; later iterations only add the change of rows that became active or inactive in a
//! lane that is not done.
use crate::lane::{Lane, Mask};
use crate::linalg::Pattern;
use crate::math::Mat3;
use crate::plan::Plan;
use crate::plan::blocks::{MAX_BLOCKS, tri};
use crate::plan::pairs::ClassBlock;
use crate::state::{Contact, Rows, Scratch};

/// The pattern of H's factors: the tree, cliques of the contacts between limbs, and the fill they cause.
#[inline(always)]
pub(super) fn pattern<L: Lane>(plan: &Plan<L>, rows: &Rows<L>, out: &mut Pattern) {
    let n = plan.blocks.count;
    let mut mask = [0u64; MAX_BLOCKS];
    mask[..n].copy_from_slice(&plan.blocks.mask);
    let mut last = usize::MAX;
    for c in &rows.contacts {
        let class = &plan.pairs.classes[c.class];
        if class.fixed || c.class == last {
            continue;
        }
        last = c.class;
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
    let z = L::zero();
    for row in &mut rows.limits {
        let w = L::sel(row.ja.lt(z), row.d, z);
        let change = L::sel(done, z, w - row.w);
        row.w = L::sel(done, row.w, w);
        let (b, k) = (row.padded / 3, row.padded % 3);
        h[tri(b) + b][4 * k] += change;
    }
    for c in &mut rows.contacts {
        let class = &plan.pairs.classes[c.class];
        let jac = &rows.jac[c.jac..];
        if class.condim == 1 {
            frictionless(&class.blocks, jac, c, done, h);
        } else {
            pyramid(&class.blocks, jac.as_chunks::<3>().0, c, done, h);
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

#[inline(always)]
fn frictionless<L: Lane>(blocks: &[ClassBlock<L>], jac: &[[L; 3]], c: &mut Contact<L>, done: L::M, h: &mut [Mat3<L>]) {
    let z = L::zero();
    let w = L::sel(c.ja[0].lt(z), c.d, z);
    let change = L::sel(done, z, w - c.w[0]);
    if !z.lt(change.abs()).any() {
        return;
    }
    c.w[0] = L::sel(done, c.w[0], w);
    for x in 0..blocks.len() {
        let row = &mut h[tri(blocks[x].block as usize)..];
        let j = &jac[x];
        let a = [change * j[0], change * j[1], change * j[2]];
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

/// `J_cᵀ W J_c` with the 3×3 weight that the four edges make of their changes.
#[inline(always)]
fn pyramid<L: Lane>(blocks: &[ClassBlock<L>], jac: &[[[L; 3]; 3]], c: &mut Contact<L>, done: L::M, h: &mut [Mat3<L>]) {
    let z = L::zero();
    let mut w = [z; 4];
    let mut any = L::M::none();
    for e in 0..4 {
        let now = L::sel(c.ja[e].lt(z), c.d, z);
        w[e] = L::sel(done, z, now - c.w[e]);
        any = any | z.lt(w[e].abs());
    }
    if !any.any() {
        return;
    }
    for e in 0..4 {
        c.w[e] += w[e];
    }
    let (nn, n1, n2) = (w[0] + w[1] + w[2] + w[3], w[0] - w[1], w[2] - w[3]);
    let (s11, s22) = (w[0] + w[1], w[2] + w[3]);
    for x in 0..blocks.len() {
        let j = &jac[x];
        let mut a = [[z; 3]; 3];
        for k in 0..3 {
            a[k][0] = nn.fma(j[k][0], n1.fma(j[k][1], n2 * j[k][2]));
            a[k][1] = n1.fma(j[k][0], s11 * j[k][1]);
            a[k][2] = n2.fma(j[k][0], s22 * j[k][2]);
        }
        let row = &mut h[tri(blocks[x].block as usize)..];
        for y in 0..x + 1 {
            let q = &mut row[blocks[y].block as usize];
            let j = &jac[y];
            for e in 0..3 {
                for f in 0..3 {
                    let s = a[e][0].fma(j[f][0], q[3 * e + f]);
                    q[3 * e + f] = a[e][2].fma(j[f][2], a[e][1].fma(j[f][1], s));
                }
            }
        }
    }
}
