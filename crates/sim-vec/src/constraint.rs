//! Constraint rows: equalities, dry friction, limits and contacts, with MuJoCo's softness.
//!
//! ```text
//! a_ref = −b J v − k d(r) r,   D = 1/R,   r = violation (distance − margin, or x₁ − p(x₂); 0 for friction)
//! ```
//!
//! A row exists if any lane needs it; `D = 0` where a lane does not. The Jacobian of a contact has a row for the normal
//! and, times their friction, for the tangents, the spin and the rolling directions. A pyramid's constraint rows are its
//! edges `n ± μ_k t_k`, formed on the fly, which share one `D`; a cone's are the rows themselves.
use crate::collide::{Candidate, Found, narrow};
use crate::lane::{Kernel, Lane, Mask, up3, up4};
use crate::math::*;
use crate::plan::pairs::{Class, PairPlan};
use crate::plan::wires::{Object, Side};
use crate::plan::{Limit, Plan};
use crate::state::{Bodies, Cone, Multi, Point, Rows, Scratch, Single, Slot, Smooth, State, Tendons};

/// Fills the rows for positions `qpos` and the velocities in scratch.
pub(crate) struct Constraints<'a, L: Lane> {
    pub plan: &'a Plan<L>,
    pub s: &'a State<L>,
    pub x: &'a mut Scratch<L>,
}

impl<L: Lane> Kernel for Constraints<'_, L> {
    type Out = ();
    #[inline(always)]
    fn run(self) {
        let (plan, qpos) = (self.plan, &self.s.qpos);
        let Scratch { body, smooth, rows, tendon, .. } = self.x;
        rows.clear();
        equalities(plan, qpos, tendon, smooth, rows);
        rows.ends[0] = rows.d.len();
        friction(plan, tendon, smooth, rows);
        rows.ends[1] = rows.d.len();
        limits(plan, qpos, tendon, smooth, rows);
        rows.first_contact = rows.multis.len();
        rows.ends[2] = rows.d.len();
        if !plan.pairs.list.is_empty() {
            let mut friction = None;
            if let Some(v) = self.s.variation() {
                friction = Some(v.friction);
            }
            contacts(plan, friction, body, smooth, rows);
        }
    }
}

/// Rows `J = J₁ − p'(x₂) J₂`.
#[inline(always)]
fn equalities<L: Lane>(plan: &Plan<L>, qpos: &[L], t: &Tendons<L>, y: &Smooth<L>, rows: &mut Rows<L>) {
    let z = L::zero();
    for e in &plan.equalities {
        let class = &plan.classes[e.class];
        let jac = rows.jac.len();
        for _ in 0..3 * class.blocks.len() {
            rows.jac.push(z);
        }
        let (mut r, mut v) = side(plan, &e.first, L::one(), qpos, t, y, &mut rows.jac[jac..]);
        r -= L::up(e.poly[0]);
        if let Some(second) = &e.second {
            let x = value(second, qpos, t) - L::up(second.at0);
            let [_, c1, c2, c3, c4] = e.poly;
            let value = x * x.fma(x.fma(x.fma(L::up(c4), L::up(c3)), L::up(c2)), L::up(c1));
            let slope = x.fma(
                x.fma(x * L::splat(4.0) * L::up(c4) + L::splat(3.0) * L::up(c3), L::splat(2.0) * L::up(c2)),
                L::up(c1),
            );
            r -= value;
            v += side(plan, second, -slope, qpos, t, y, &mut rows.jac[jac..]).1;
        }
        let d = e.soft.impedance(r);
        let aref = -(L::up(e.soft.b) * v + L::up(e.soft.k) * d * r);
        let row = rows.push(e.soft.weight(d), aref);
        rows.multis.push(Multi { class: e.class, jac, row });
    }
}

/// A joint's position or a tendon's length.
#[inline(always)]
fn value<L: Lane>(side: &Side<L>, qpos: &[L], t: &Tendons<L>) -> L {
    match side.object {
        Object::Joint { qpos: q, .. } => qpos[q],
        Object::Tendon(i) => t.length[i],
    }
}

/// Adds a side's Jacobian times `scale`; returns its value off the reference, and its rate times `scale`.
#[inline(always)]
fn side<L: Lane>(
    plan: &Plan<L>,
    side: &Side<L>,
    scale: L,
    qpos: &[L],
    t: &Tendons<L>,
    y: &Smooth<L>,
    jac: &mut [L],
) -> (L, L) {
    let x = value(side, qpos, t) - L::up(side.at0);
    match side.object {
        Object::Joint { row, .. } => {
            let at = 3 * side.places[0] + row;
            jac[at] += scale;
            (x, scale * y.qvel[side.block][row])
        }
        Object::Tendon(i) => {
            let from = plan.tendons[i].jac;
            for (k, &place) in side.places.iter().enumerate() {
                let j = t.jac[from + k];
                for e in 0..3 {
                    jac[3 * place + e] = j[e].fma(scale, jac[3 * place + e]);
                }
            }
            (x, scale * t.rate[i])
        }
    }
}

/// Rows that resist motion with at most the loss.
#[inline(always)]
fn friction<L: Lane>(plan: &Plan<L>, t: &Tendons<L>, y: &Smooth<L>, rows: &mut Rows<L>) {
    let one = L::one();
    for f in &plan.friction {
        let v = y.qvel.as_flattened()[f.padded];
        let row = rows.push(L::up(f.dry.weight), -(L::up(f.dry.b) * v));
        rows.loss.push(L::up(f.dry.loss));
        rows.singles.push(Single { padded: f.padded, sign: one, row });
    }
    for (i, tendon) in plan.tendons.iter().enumerate() {
        if let Some(dry) = &tendon.friction {
            rows.loss.push(L::up(dry.loss));
            tendon_row(plan, i, one, L::up(dry.weight), -(L::up(dry.b) * t.rate[i]), t, rows);
        }
    }
}

/// A row along `sign` times a tendon's Jacobian.
#[inline(always)]
fn tendon_row<L: Lane>(plan: &Plan<L>, i: usize, sign: L, d: L, aref: L, t: &Tendons<L>, rows: &mut Rows<L>) {
    let tendon = &plan.tendons[i];
    let jac = rows.jac.len();
    for k in 0..plan.classes[tendon.class].blocks.len() {
        let j = t.jac[tendon.jac + k];
        for e in 0..3 {
            rows.jac.push(j[e] * sign);
        }
    }
    let row = rows.push(d, aref);
    rows.multis.push(Multi { class: tendon.class, jac, row });
}

#[inline(always)]
fn limits<L: Lane>(plan: &Plan<L>, qpos: &[L], t: &Tendons<L>, y: &Smooth<L>, rows: &mut Rows<L>) {
    let qvel = y.qvel.as_flattened();
    for l in &plan.limits {
        let mut bounds = Bounds::of(&l.limit, qpos[l.qpos], qvel[l.padded]);
        while let Some((sign, d, aref)) = bounds.next() {
            let row = rows.push(d, aref);
            rows.singles.push(Single { padded: l.padded, sign, row });
        }
    }
    for (i, tendon) in plan.tendons.iter().enumerate() {
        if let Some(limit) = &tendon.limit {
            let mut bounds = Bounds::of(limit, t.length[i], t.rate[i]);
            while let Some((sign, d, aref)) = bounds.next() {
                tendon_row(plan, i, sign, d, aref, t, rows);
            }
        }
    }
}

/// The sides of a limit that some lane violates.
struct Bounds<'a, L: Lane> {
    limit: &'a Limit<L>,
    /// Signs and violations.
    sides: [(L, L); 2],
    rate: L,
    next: usize,
}

impl<'a, L: Lane> Bounds<'a, L> {
    #[inline(always)]
    fn of(limit: &'a Limit<L>, x: L, rate: L) -> Self {
        let one = L::one();
        let low = x - L::up(limit.range[0]);
        let high = L::up(limit.range[1]) - x;
        let margin = L::up(limit.margin);
        let sides = if limit.narrow {
            [(one, low - margin), (-one, high - margin)]
        } else {
            let sign = L::sel(low.lt(high), one, -one);
            [(sign, low.min(high) - margin), (one, one)]
        };
        Bounds { limit, sides, rate, next: 0 }
    }

    /// Sign, weight and reference acceleration of the next violated side.
    #[inline(always)]
    fn next(&mut self) -> Option<(L, L, L)> {
        let z = L::zero();
        while self.next < 2 {
            let (sign, r) = self.sides[self.next];
            self.next += 1;
            let active = r.lt(z);
            if active.any() {
                let soft = &self.limit.soft;
                let d = soft.impedance(r);
                let aref = -(L::up(soft.b) * (sign * self.rate) + L::up(soft.k) * d * r);
                return Some((sign, L::sel(active, soft.weight(d), z), aref));
            }
        }
        None
    }
}

#[inline(always)]
fn contacts<L: Lane>(plan: &Plan<L>, friction: Option<L>, x: &mut Bodies<L>, y: &Smooth<L>, rows: &mut Rows<L>) {
    for g in &plan.geoms {
        let m = &x.xmat[g.body];
        x.gpos[g.id] = add3(mulmv(m, up3(&g.pos)), x.xpos[g.body]);
        x.gaxis[g.id] = mulmv(m, up3(&g.axis));
        if let Some(q) = &g.quat {
            x.gmat[g.id] = quat_mat(quat_mul(x.xquat[g.body], up4(q)));
        }
    }
    let mut found = Found::new();
    let mut class = usize::MAX;
    // contacts so far in the class, by lane
    let mut count = L::zero();
    rows.slots.clear();
    for p in &plan.pairs.list {
        narrow(p, x, &mut found);
        for c in &found.list[..found.count] {
            if p.class != class {
                flush(plan, class, x, y, rows);
                class = p.class;
                count = L::zero();
            }
            insert(p, c, &plan.classes[class], friction, &mut count, &mut rows.slots);
        }
    }
    flush(plan, class, x, y, rows);
}

/// Puts a contact into each lane's next free slot of the class.
#[inline(always)]
fn insert<L: Lane>(
    p: &PairPlan<L>,
    c: &Candidate<L>,
    class: &Class<L>,
    friction: Option<L>,
    count: &mut L,
    slots: &mut Vec<Slot<L>>,
) {
    let condim = class.condim;
    let r = c.dist - L::up(p.include);
    let impedance = p.soft.impedance(r);
    let mut weight = p.soft.weight(impedance);
    let mut mu = [L::up(p.mu[0]), L::up(p.mu[1]), L::up(p.mu[2]), L::up(p.mu[3]), L::up(p.mu[4])];
    if let Some(factor) = friction {
        if condim > 1 && !class.elliptic {
            // the edges' weight is 1 / (2 μ² (1 + μ²)) times what does not depend on friction
            let (old, new) = (mu[0] * mu[0], mu[0] * mu[0] * factor * factor);
            weight *= old * (L::one() + old) / (new * (L::one() + new));
        }
        for m in &mut mu {
            *m *= factor;
        }
    }
    let new = Slot {
        point: Point { pair: L::splat(p.id as f64), dist: c.dist, pos: c.pos, normal: c.normal, tangent: c.tangent },
        d: L::zero(),
        pull: L::up(p.soft.k) * impedance * r,
        b: L::up(p.soft.b),
        mu,
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
                for e in 0..condim - 1 {
                    s.mu[e] = L::sel(here, new.mu[e], s.mu[e]);
                }
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
fn flush<L: Lane>(plan: &Plan<L>, id: usize, x: &Bodies<L>, y: &Smooth<L>, rows: &mut Rows<L>) {
    if rows.slots.is_empty() {
        return;
    }
    let class = &plan.classes[id];
    match class.condim {
        1 => flush_slots::<L, 1>(plan, class, id, x, y, rows),
        3 => flush_slots::<L, 3>(plan, class, id, x, y, rows),
        4 => flush_slots::<L, 4>(plan, class, id, x, y, rows),
        _ => flush_slots::<L, 6>(plan, class, id, x, y, rows),
    }
    rows.slots.clear();
}

#[inline(always)]
fn flush_slots<L: Lane, const D: usize>(
    plan: &Plan<L>,
    class: &Class<L>,
    id: usize,
    x: &Bodies<L>,
    y: &Smooth<L>,
    rows: &mut Rows<L>,
) {
    let z = L::zero();
    for s in 0..rows.slots.len() {
        let slot = rows.slots[s];
        let normal = slot.point.normal;
        let jac = rows.jac.len();
        let (mut root, mut off) = (u16::MAX, [z; 3]);
        let mut v = [z; D];
        let (mut t1, mut t2) = ([z; 3], [z; 3]);
        if D > 1 {
            (t1, t2) = tangents(normal, slot.point.tangent);
        }
        for block in &class.blocks {
            if block.root != root {
                root = block.root;
                off = sub3(slot.point.pos, x.com[root as usize]);
            }
            let i = block.block as usize;
            for k in 0..3 {
                let c = &y.cdof[i][k];
                let qd = y.qvel[i][k];
                let first = L::up(block.place[0][k]).lt(slot.depth[0]);
                let second = L::up(block.place[1][k]).lt(slot.depth[1]);
                let sign = L::sel(second, L::one(), z) - L::sel(first, L::one(), z);
                let turn = [c[0], c[1], c[2]];
                let j = scale3(add3([c[3], c[4], c[5]], cross(turn, off)), sign);
                let mut row = [z; D];
                row[0] = dot3(j, normal);
                if D > 2 {
                    row[1] = dot3(j, t1) * slot.mu[0];
                    row[2] = dot3(j, t2) * slot.mu[1];
                }
                if D > 3 {
                    let turn = scale3(turn, sign);
                    row[3] = dot3(turn, normal) * slot.mu[2];
                    if D > 4 {
                        row[4] = dot3(turn, t1) * slot.mu[3];
                        row[5] = dot3(turn, t2) * slot.mu[4];
                    }
                }
                for e in 0..D {
                    v[e] = row[e].fma(qd, v[e]);
                    rows.jac.push(row[e]);
                }
            }
        }
        rows.points.push(slot.point);
        let row = rows.d.len();
        if D == 1 || !class.elliptic {
            rows.push(slot.d, -slot.b.fma(if D == 1 { v[0] } else { v[0] + v[1] }, slot.pull));
            if D > 1 {
                rows.push(slot.d, -slot.b.fma(v[0] - v[1], slot.pull));
            }
            for e in 2..D {
                rows.push(slot.d, -slot.b.fma(v[0] + v[e], slot.pull));
                rows.push(slot.d, -slot.b.fma(v[0] - v[e], slot.pull));
            }
            rows.ends[2] = rows.d.len();
        } else {
            let mu = slot.mu[0] * L::up(plan.cone);
            rows.push(slot.d, -slot.b.fma(v[0], slot.pull));
            let d = slot.d / (mu * mu);
            for e in 1..D {
                rows.push(d, -(slot.b * v[e]));
            }
            rows.cones.push(Cone { multi: rows.multis.len(), mu, w: [z; 21], along: [z; 5] });
        }
        rows.multis.push(Multi { class: id, jac, row });
    }
}
