//! Convex solids without a closed form: one contact at the nearest or the deepest points.
use super::epa;
use super::gjk::{self, Nearest, TOLERANCE};
use super::manifold::{Site, features};
use super::support::{Hull, Two, Vertex};
use super::vec3::*;
use super::{List, Pose, Solid, Touch};

/// Contacts of two convex solids.
pub(super) fn convex(a: (&Solid, &Pose), b: (&Solid, &Pose), margin: f64, out: &mut List) {
    let Some((first, corners)) = single(a, b, margin) else { return };
    out.push(first);
    let [ca, cb] = [corners.map(|v| v.a), corners.map(|v| v.b)];
    let a = Site { solid: a.0, pose: a.1, corners: ca };
    let b = Site { solid: b.0, pose: b.1, corners: cb };
    features(a, b, first.normal, margin, out);
}

/// The contact at the nearest or the deepest points of two solids, each thickened by half the margin.
///
/// First without the margin, and spheres and capsules as points and segments: where these cores are apart, their
/// distance needs no polytope.
fn single(a: (&Solid, &Pose), b: (&Solid, &Pose), margin: f64) -> Option<(Touch, [Vertex; 3])> {
    let core = |(s, p): (&Solid, &Pose)| {
        let (thin, radius) = match *s {
            Solid::Sphere { radius } | Solid::Capsule { radius, .. } => (true, radius),
            _ => (false, 0.0),
        };
        (Hull { core: *s, thin, pose: *p, layer: 0.0 }, radius + 0.5 * margin)
    };
    let ((core_a, ra), (core_b, rb)) = (core(a), core(b));
    if ra + rb > 0.0 {
        let near = gjk::nearest(&Two { a: core_a, b: core_b }, ra + rb);
        if near.dist > TOLERANCE {
            let [x, y] = near.on;
            let n = unit(sub(y, x)).0;
            let t = contact(near.dist - (ra + rb), [along(x, n, ra), along(y, n, -rb)], margin)?;
            let corners = std::array::from_fn(|k| near.simplex[k.min(near.count.max(1) - 1)]);
            return Some((t, corners));
        }
    }
    let full = |(s, p): (&Solid, &Pose)| Hull { core: *s, thin: false, pose: *p, layer: 0.5 * margin };
    let two = Two { a: full(a), b: full(b) };
    let near: Nearest = gjk::nearest(&two, 0.0);
    if near.dist > TOLERANCE || near.count < 2 || near.apart {
        return None;
    }
    let (depth, on, t) = epa::depth(&two, &near)?;
    Some((contact(depth, on, margin)?, t))
}

/// A contact of two thickened solids that overlap by `-dist`.
fn contact(dist: f64, [x, y]: [Vec3; 2], margin: f64) -> Option<Touch> {
    (dist < 0.0).then(|| Touch::free(margin + dist, scale(add(x, y), 0.5), unit(sub(x, y)).0))
}
