//! Narrow phase of planes, spheres and capsules, as MuJoCo's primitive functions do it.
//!
//! Each function adds to [`Found`] the contacts that exist in some lane; `active` says in which. The normal points
//! from the first geom to the second, the position is midway between the surfaces, `dist` is negative in penetration.
use crate::lane::{Lane, Mask};
use crate::math::*;
use crate::plan::pairs::{Kind, PairPlan};
use crate::solid::{MOST, Pose, Solid, Touch, touch};
use crate::state::Bodies;

/// A contact found in some lanes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Candidate<L: Lane> {
    /// Lanes in which it exists and pushes.
    pub active: L::M,
    pub dist: L,
    pub pos: V3<L>,
    pub normal: V3<L>,
    pub tangent: V3<L>,
}

/// Contacts of one pair.
pub(crate) struct Found<L: Lane> {
    /// How many of `list` are set.
    pub count: usize,
    pub list: [Candidate<L>; MOST],
}

impl<L: Lane> Found<L> {
    /// Nothing yet.
    #[inline(always)]
    pub fn new() -> Self {
        let z = L::zero();
        let none = Candidate { active: L::M::none(), dist: z, pos: [z; 3], normal: [z; 3], tangent: [z; 3] };
        Found { count: 0, list: [none; MOST] }
    }

    #[inline(always)]
    fn push(&mut self, c: Candidate<L>) {
        if c.active.any() {
            self.list[self.count] = c;
            self.count += 1;
        }
    }
}

/// Contacts of pair `p`, into `found`.
#[inline(always)]
pub(crate) fn narrow<L: Lane>(p: &PairPlan<L>, x: &Bodies<L>, found: &mut Found<L>) {
    found.count = 0;
    let [g1, g2] = p.geoms;
    let (p1, p2) = (x.gpos[g1], x.gpos[g2]);
    match p.kind {
        Kind::PlaneSphere => plane_point(p, p1, x.gaxis[g1], p2, [L::zero(); 3], found),
        Kind::PlaneCapsule => plane_capsule(p, p1, x.gaxis[g1], p2, x.gaxis[g2], found),
        _ => {
            let d = sub3(p1, p2);
            let near = match p.kind {
                Kind::Solid([Solid::Plane, _]) => (-dot3(d, x.gaxis[g1])).lt(L::up(p.reach2).sqrt()),
                _ => dot3(d, d).lt(L::up(p.reach2)),
            };
            if !near.any() {
                return;
            }
            let ends = Ends { p1, p2, a1: x.gaxis[g1], a2: x.gaxis[g2], near };
            match p.kind {
                Kind::Solid(solids) => scattered(p, &solids, &ends, x, found),
                Kind::SphereSphere => {
                    let c = spheres(p, &ends, p1, p2);
                    found.push(limit(p, c));
                }
                Kind::SphereCapsule => {
                    let half = L::up(p.half[1]);
                    let t = (-half).max(dot3(ends.a2, d)).min(half);
                    let c = spheres(p, &ends, p1, axpy3(p2, ends.a2, t));
                    found.push(limit(p, c));
                }
                _ => capsules(p, &ends, found),
            }
        }
    }
}

/// Centres and z axes of two round geoms.
struct Ends<L: Lane> {
    p1: V3<L>,
    p2: V3<L>,
    a1: V3<L>,
    a2: V3<L>,
    near: L::M,
}

/// Plane and sphere of the pair's second radius at `centre`.
#[inline(always)]
fn plane_point<L: Lane>(
    p: &PairPlan<L>,
    origin: V3<L>,
    normal: V3<L>,
    centre: V3<L>,
    tangent: V3<L>,
    found: &mut Found<L>,
) {
    let r = L::up(p.radius[1]);
    let dist = dot3(sub3(centre, origin), normal) - r;
    let active = dist.lt(L::up(p.include));
    if active.any() {
        let pos = axpy3(centre, normal, -(dist * L::splat(0.5) + r));
        found.push(Candidate { active, dist, pos, normal, tangent });
    }
}

/// A contact at each end of the capsule, the frame aligned with its axis.
#[inline(always)]
fn plane_capsule<L: Lane>(
    p: &PairPlan<L>,
    origin: V3<L>,
    normal: V3<L>,
    centre: V3<L>,
    axis: V3<L>,
    found: &mut Found<L>,
) {
    let half = L::up(p.half[1]);
    let rise = dot3(axis, normal) * half;
    let lowest = dot3(sub3(centre, origin), normal) - rise.abs() - L::up(p.radius[1]);
    // a hair early, so that the rounding of this bound never hides a contact
    if !lowest.lt(L::up(p.include) + half * L::splat(1e-5)).any() {
        return;
    }
    plane_point(p, origin, normal, axpy3(centre, axis, half), axis, found);
    plane_point(p, origin, normal, axpy3(centre, axis, -half), axis, found);
}

/// Two spheres of the pair's radii at `c1`, `c2`; `active` where their distance is within the margin.
#[inline(always)]
fn spheres<L: Lane>(p: &PairPlan<L>, ends: &Ends<L>, c1: V3<L>, c2: V3<L>) -> Candidate<L> {
    let (r1, r2) = (L::up(p.radius[0]), L::up(p.radius[1]));
    let (mut normal, len) = normalize3(sub3(c2, c1));
    let dist = len - r1 - r2;
    let together = len.lt(L::splat(1e-15));
    if together.any() {
        normal = select3(together, normalize3(cross(ends.a1, ends.a2)).0, normal);
    }
    let pos = axpy3(c1, normal, r1 + dist * L::splat(0.5));
    Candidate { active: ends.near & dist.le(L::up(p.margin)), dist, pos, normal, tangent: [L::zero(); 3] }
}

/// Pairs of solids that have no lanes: each near lane by itself, in f64. A lane's k-th contact is candidate k.
#[inline(always)]
fn scattered<L: Lane>(p: &PairPlan<L>, solids: &[Solid; 2], ends: &Ends<L>, x: &Bodies<L>, found: &mut Found<L>) {
    let near = ends.near.bits();
    let (include, margin) = (L::up(p.include).get(0), L::up(p.margin).get(0));
    let mut active = [L::zero(); MOST];
    let mut most = 0;
    for lane in (0..L::W).filter(|l| near >> l & 1 == 1) {
        let poses = [0, 1].map(|g| pose(x, p.geoms[g], lane));
        let mut out = [Touch::default(); MOST];
        let n = touch((&solids[0], &poses[0]), (&solids[1], &poses[1]), margin, &mut out);
        let mut kept = 0;
        for t in out[..n].iter().filter(|t| t.dist < include) {
            let c = &mut found.list[kept];
            active[kept].set(lane, 1.0);
            c.dist.set(lane, t.dist);
            for k in 0..3 {
                c.pos[k].set(lane, t.pos[k]);
                c.normal[k].set(lane, t.normal[k]);
                c.tangent[k].set(lane, t.tangent[k]);
            }
            kept += 1;
        }
        most = most.max(kept);
    }
    for k in 0..most {
        found.list[k].active = L::splat(0.5).lt(active[k]);
    }
    found.count = most;
}

/// A geom's pose in one lane.
fn pose<L: Lane>(x: &Bodies<L>, geom: usize, lane: usize) -> Pose {
    Pose { pos: x.gpos[geom].map(|e| e.get(lane)), mat: x.gmat[geom].map(|e| e.get(lane)) }
}

/// Keeps only lanes in which the contact pushes.
#[inline(always)]
fn limit<L: Lane>(p: &PairPlan<L>, mut c: Candidate<L>) -> Candidate<L> {
    c.active = c.active & c.dist.lt(L::up(p.include));
    c
}

/// Spheres at the nearest points of two segments; where these are parallel, at both ends of their common part.
#[inline(always)]
fn capsules<L: Lane>(p: &PairPlan<L>, ends: &Ends<L>, found: &mut Found<L>) {
    let one = L::one();
    let (h1, h2) = (scale3(ends.a1, L::up(p.half[0])), scale3(ends.a2, L::up(p.half[1])));
    let d = sub3(ends.p1, ends.p2);
    let ma = dot3(h1, h1);
    let mb = -dot3(h1, h2);
    let mc = dot3(h2, h2);
    let u = -dot3(h1, d);
    let v = dot3(h2, d);
    let det = ma * mc - mb * mb;
    let threshold = if L::SINGLE { L::splat(1e-15).max(L::splat(1e-6) * ma * mc) } else { L::splat(1e-15) };
    let parallel = det.abs().lt(threshold);
    let inv = one / L::sel(parallel, one, det);
    let (inv_a, inv_c) = (one / ma, one / mc);

    let free1 = (mc * u - mb * v) * inv;
    let x1 = clip(free1);
    let outside = one.lt(free1.abs());
    let mut x2 = L::sel(outside, (v - mb * x1) * inv_c, (ma * v - mb * u) * inv);
    if L::SINGLE {
        // the nearest point for this x1: insensitive to a poor determinant
        x2 = (v - mb * x1) * inv_c;
    }
    let over = one.lt(x2.abs());
    x2 = clip(x2);
    let mut x1 = L::sel(over, clip((u - mb * x2) * inv_a), x1);

    if !(parallel & ends.near).any() {
        let c = spheres(p, ends, axpy3(ends.p1, h1, x1), axpy3(ends.p2, h2, x2));
        found.push(limit(p, c));
        return;
    }
    // where parallel: the ends of the part of the first segment that the second one lies beside
    let (e, f) = ((u - mb) * inv_a, (u + mb) * inv_a);
    let (low, high) = (clip(e.min(f)), clip(e.max(f)));
    x1 = L::sel(parallel, low, x1);
    x2 = L::sel(parallel, clip((v - mb * low) * inv_c), x2);
    let c = spheres(p, ends, axpy3(ends.p1, h1, x1), axpy3(ends.p2, h2, x2));
    found.push(limit(p, c));
    let x2 = clip((v - mb * high) * inv_c);
    let mut c = spheres(p, ends, axpy3(ends.p1, h1, high), axpy3(ends.p2, h2, x2));
    c.active = c.active & parallel;
    found.push(limit(p, c));
}

/// Into [−1, 1].
#[inline(always)]
fn clip<L: Lane>(x: L) -> L {
    (-L::one()).max(x).min(L::one())
}
