//! Constraint rows: joint limits and contacts, with MuJoCo's softness.
//!
//! ```text
//! a_ref = −b J v − k d(r) r,   D = 1/R,   r = distance − margin
//! ```
//!
//! A row exists if any lane needs it; `D = 0` where a lane does not. Contacts with friction are pyramids: four edges
//! `n ± μ t₁`, `n ± μ t₂` that share one `D`; only `n, μ t₁, μ t₂` are stored, edges are formed on the fly.
use crate::collide::{Candidate, Found, narrow};
use crate::lane::{Kernel, Lane, Mask, up3};
use crate::math::*;
use crate::plan::Plan;
use crate::plan::pairs::{Class, PairPlan};
use crate::state::{Bodies, Contact, LimitRow, Point, Rows, Scratch, Slot, Smooth};

/// Fills the rows for positions `qpos` and the velocities in scratch.
pub(crate) struct Constraints<'a, L: Lane> {
    pub plan: &'a Plan<L>,
    pub qpos: &'a [L],
    pub x: &'a mut Scratch<L>,
}

impl<L: Lane> Kernel for Constraints<'_, L> {
    type Out = ();
    #[inline(always)]
    fn run(self) {
        let Scratch { body, smooth, rows, .. } = self.x;
        rows.limits.clear();
        rows.contacts.clear();
        rows.points.clear();
        rows.jac.clear();
        limits(self.plan, self.qpos, smooth, rows);
        if !self.plan.pairs.list.is_empty() {
            contacts(self.plan, body, smooth, rows);
        }
    }
}

#[inline(always)]
fn limits<L: Lane>(plan: &Plan<L>, qpos: &[L], y: &Smooth<L>, rows: &mut Rows<L>) {
    let one = L::one();
    let qvel = y.qvel.as_flattened();
    for limit in &plan.limits {
        let q = qpos[limit.qpos];
        let low = q - L::up(limit.range[0]);
        let high = L::up(limit.range[1]) - q;
        let margin = L::up(limit.margin);
        let v = qvel[limit.padded];
        if limit.narrow {
            limit_row(limit.padded, &limit.soft, one, low - margin, v, rows);
            limit_row(limit.padded, &limit.soft, -one, high - margin, v, rows);
        } else {
            let sign = L::sel(low.lt(high), one, -one);
            limit_row(limit.padded, &limit.soft, sign, low.min(high) - margin, v, rows);
        }
    }
}

/// A row for `sign · qvel` at violation `r`, if any lane is violated.
#[inline(always)]
fn limit_row<L: Lane>(padded: usize, soft: &crate::plan::Soft<L>, sign: L, r: L, v: L, rows: &mut Rows<L>) {
    let z = L::zero();
    let active = r.lt(z);
    if active.any() {
        let d = soft.impedance(r);
        let aref = -(L::up(soft.b) * (sign * v) + L::up(soft.k) * d * r);
        let d = L::sel(active, soft.weight(d), z);
        rows.limits.push(LimitRow { padded, sign, d, aref, ja: z, jv: z, w: z });
    }
}

#[inline(always)]
fn contacts<L: Lane>(plan: &Plan<L>, x: &mut Bodies<L>, y: &Smooth<L>, rows: &mut Rows<L>) {
    for g in &plan.geoms {
        let m = &x.xmat[g.body];
        x.gpos[g.id] = add3(mulmv(m, up3(&g.pos)), x.xpos[g.body]);
        x.gaxis[g.id] = mulmv(m, up3(&g.axis));
    }
    let mut found = Found::new();
    let mut class = 0;
    // contacts so far in the class, by lane
    let mut count = L::zero();
    rows.slots.clear();
    for p in &plan.pairs.list {
        narrow(p, x, &mut found);
        for c in &found.list[..found.count] {
            if p.class != class {
                flush(&plan.pairs.classes[class], class, x, y, rows);
                class = p.class;
                count = L::zero();
            }
            insert(p, c, &mut count, &mut rows.slots);
        }
    }
    flush(&plan.pairs.classes[class], class, x, y, rows);
}

/// Puts a contact into each lane's next free slot of the class.
#[inline(always)]
fn insert<L: Lane>(p: &PairPlan<L>, c: &Candidate<L>, count: &mut L, slots: &mut Vec<Slot<L>>) {
    let r = c.dist - L::up(p.include);
    let impedance = p.soft.impedance(r);
    let weight = p.soft.weight(impedance);
    let new = Slot {
        point: Point { pair: L::splat(p.id as f64), dist: c.dist, pos: c.pos, normal: c.normal, tangent: c.tangent },
        d: L::zero(),
        pull: L::up(p.soft.k) * impedance * r,
        b: L::up(p.soft.b),
        mu: L::up(p.mu),
        depth: [L::up(p.depth[0]), L::up(p.depth[1])],
    };
    let mut left = c.active;
    let mut k = 0;
    while left.any() {
        let here = left & count.lt(L::splat(k as f64 + 0.5));
        if here.any() {
            if k == slots.len() {
                slots.push(new);
                slots[k].d = L::sel(here, weight, L::zero());
            } else {
                let s = &mut slots[k];
                s.d = L::sel(here, weight, s.d);
                s.pull = L::sel(here, new.pull, s.pull);
                s.b = L::sel(here, new.b, s.b);
                s.mu = L::sel(here, new.mu, s.mu);
                s.depth[0] = L::sel(here, new.depth[0], s.depth[0]);
                s.depth[1] = L::sel(here, new.depth[1], s.depth[1]);
                s.point.pair = L::sel(here, new.point.pair, s.point.pair);
                s.point.dist = L::sel(here, c.dist, s.point.dist);
                s.point.pos = select3(here, c.pos, s.point.pos);
                s.point.normal = select3(here, c.normal, s.point.normal);
                s.point.tangent = select3(here, c.tangent, s.point.tangent);
            }
            left = left & !here;
        }
        k += 1;
    }
    *count = L::sel(c.active, *count + L::one(), *count);
}

/// Tangents of a contact frame: the hint made orthogonal to the normal, or y, or z where the normal is along y.
#[inline(always)]
pub(crate) fn tangents<L: Lane>(normal: V3<L>, hint: V3<L>) -> (V3<L>, V3<L>) {
    let (z, one) = (L::zero(), L::one());
    let free = dot3(hint, hint).lt(L::splat(0.25));
    let y = normal[1].abs().lt(L::splat(0.5));
    let axis = [z, L::sel(y, one, z), L::sel(y, z, one)];
    let t = select3(free, axis, hint);
    let (t1, _) = normalize3(axpy3(t, normal, -dot3(normal, t)));
    (t1, cross(normal, t1))
}

/// Makes rows of the class's slots: Jacobians and reference accelerations.
#[inline(always)]
fn flush<L: Lane>(class: &Class<L>, id: usize, x: &Bodies<L>, y: &Smooth<L>, rows: &mut Rows<L>) {
    let z = L::zero();
    for s in 0..rows.slots.len() {
        let slot = rows.slots[s];
        let normal = slot.point.normal;
        let start = rows.jac.len();
        let (mut root, mut off) = (u16::MAX, [z; 3]);
        let mut v = [z; 3];
        let (mut t1, mut t2) = ([z; 3], [z; 3]);
        if class.condim > 1 {
            (t1, t2) = tangents(normal, slot.point.tangent);
            t1 = scale3(t1, slot.mu);
            t2 = scale3(t2, slot.mu);
        }
        for block in &class.blocks {
            if block.root != root {
                root = block.root;
                off = sub3(slot.point.pos, x.com[root as usize]);
            }
            let i = block.block as usize;
            let mut n = [z; 3];
            for k in 0..3 {
                let c = &y.cdof[i][k];
                let qd = y.qvel[i][k];
                let first = L::up(block.place[0][k]).lt(slot.depth[0]);
                let second = L::up(block.place[1][k]).lt(slot.depth[1]);
                let sign = L::sel(second, L::one(), z) - L::sel(first, L::one(), z);
                let j = scale3(add3([c[3], c[4], c[5]], cross([c[0], c[1], c[2]], off)), sign);
                n[k] = dot3(j, normal);
                v[0] = n[k].fma(qd, v[0]);
                if class.condim > 1 {
                    let (j1, j2) = (dot3(j, t1), dot3(j, t2));
                    v[1] = j1.fma(qd, v[1]);
                    v[2] = j2.fma(qd, v[2]);
                    rows.jac.push([n[k], j1, j2]);
                }
            }
            if class.condim == 1 {
                rows.jac.push(n);
            }
        }
        let mut aref = [z; 4];
        let e = if class.condim == 1 { [v[0], z, z, z] } else { edges(v) };
        for k in 0..4 {
            aref[k] = -slot.b.fma(e[k], slot.pull);
        }
        rows.points.push(slot.point);
        rows.contacts.push(Contact { class: id, jac: start, d: slot.d, aref, ja: [z; 4], jv: [z; 4], w: [z; 4] });
    }
    rows.slots.clear();
}

/// The four edges of a pyramid from normal and scaled tangents.
#[inline(always)]
pub(crate) fn edges<L: Lane>(v: [L; 3]) -> [L; 4] {
    [v[0] + v[1], v[0] - v[1], v[0] + v[2], v[0] - v[2]]
}
