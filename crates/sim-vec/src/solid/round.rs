//! Spheres and capsules with each other, and a sphere with a cylinder.
use super::vec3::*;
use super::{List, Pose, Touch};

/// A ball and the z axis that decides the normal where two centres coincide.
#[derive(Clone, Copy)]
struct Ball {
    centre: Vec3,
    radius: f64,
    axis: Vec3,
}

/// Two balls.
fn balls(a: Ball, b: Ball, margin: f64, out: &mut List) {
    let gap = sub(a.centre, b.centre);
    let gap2 = dot(gap, gap);
    let reach = margin + a.radius + b.radius;
    if gap2 > reach * reach {
        return;
    }
    let dist = gap2.sqrt() - a.radius - b.radius;
    let (mut normal, len) = unit(sub(b.centre, a.centre));
    if len < TINY {
        normal = unit(cross(a.axis, b.axis)).0;
    }
    out.push(Touch::free(dist, add(scale(normal, a.radius + dist / 2.0), a.centre), normal));
}

/// Two spheres of radii `r1`, `r2`.
pub(super) fn spheres(a: &Pose, r1: f64, b: &Pose, r2: f64, margin: f64, out: &mut List) {
    let at = |p: &Pose, radius| Ball { centre: p.pos, radius, axis: p.axis() };
    balls(at(a, r1), at(b, r2), margin, out);
}

/// A sphere of radius `r` and the nearest ball of a capsule.
pub(super) fn sphere_capsule(s: &Pose, r: f64, c: &Pose, radius: f64, half: f64, margin: f64, out: &mut List) {
    let axis = c.axis();
    let x = dot(axis, sub(s.pos, c.pos)).max(-half).min(half);
    let nearest = Ball { centre: add(scale(axis, x), c.pos), radius, axis };
    balls(Ball { centre: s.pos, radius: r, axis: s.axis() }, nearest, margin, out);
}

/// A sphere of radius `r` and a cylinder: against its side, its cap or its rim.
///
/// A centre inside the cylinder leaves by the nearer of side and cap.
pub(super) fn sphere_cylinder(s: &Pose, r: f64, c: &Pose, radius: f64, half: f64, margin: f64, out: &mut List) {
    let axis = c.axis();
    let ball = Ball { centre: s.pos, radius: r, axis: s.axis() };
    let from = sub(s.pos, c.pos);
    let x = dot(axis, from);
    let on_axis = scale(axis, x);
    let across = sub(from, on_axis);
    let across2 = dot(across, across);

    let (mut side, mut cap) = (x.abs() < half, across2 < radius * radius);
    if side && cap {
        let by_cap = half - x.abs() < radius - across2.sqrt();
        (side, cap) = (!by_cap, by_cap);
    }
    if side {
        balls(ball, Ball { centre: add(on_axis, c.pos), radius, axis }, margin, out);
    } else if cap {
        let up = x > 0.0;
        let (normal, pos) = if up { (axis, along(c.pos, axis, half)) } else { (neg(axis), along(c.pos, axis, -half)) };
        let height = dot(sub(s.pos, pos), normal);
        if height <= margin + r {
            let dist = height - r;
            out.push(Touch::free(dist, add(s.pos, scale(normal, -dist / 2.0 - r)), neg(normal)));
        }
    } else {
        let rim = scale(across, radius / across2.sqrt());
        let centre = add(add(scale(axis, if x > 0.0 { half } else { -half }), rim), c.pos);
        balls(ball, Ball { centre, radius: 0.0, axis }, margin, out);
    }
}

/// Two capsules of `[radius, half]`: balls at the nearest points of the segments; of parallel ones, at both ends of their overlap.
///
/// With `x₁`, `x₂` in [−1, 1] along the half axes `h₁`, `h₂` and `d = p₁ − p₂`, the nearest points solve
///
/// ```text
/// [ h₁·h₁  −h₁·h₂ ] [x₁]   [ −h₁·d ]
/// [ −h₁·h₂  h₂·h₂ ] [x₂] = [  h₂·d ]
/// ```
pub(super) fn capsules(a: &Pose, s1: [f64; 2], b: &Pose, s2: [f64; 2], margin: f64, out: &mut List) {
    let (h1, h2) = (scale(a.axis(), s1[1]), scale(b.axis(), s2[1]));
    let d = sub(a.pos, b.pos);
    let (m11, m12, m22) = (dot(h1, h1), -dot(h1, h2), dot(h2, h2));
    let (u, v) = (-dot(h1, d), dot(h2, d));
    let det = m11 * m22 - m12 * m12;
    let clip = |x: f64| x.clamp(-1.0, 1.0);
    let mut at = |x1: f64, x2: f64| {
        let first = Ball { centre: add(scale(h1, x1), a.pos), radius: s1[0], axis: a.axis() };
        balls(first, Ball { centre: add(scale(h2, x2), b.pos), radius: s2[0], axis: b.axis() }, margin, out);
    };

    if det.abs() >= TINY {
        let mut x1 = (m22 * u - m12 * v) / det;
        let mut x2 = (m11 * v - m12 * u) / det;
        if x1.abs() > 1.0 {
            x1 = x1.signum();
            x2 = (v - m12 * x1) / m22;
        }
        if x2.abs() > 1.0 {
            x2 = x2.signum();
            x1 = clip((u - m12 * x2) / m11);
        }
        at(x1, x2);
        return;
    }
    // the part of the first segment that the second one lies beside
    let ends = [(u - m12) / m11, (u + m12) / m11];
    for x1 in [clip(ends[0].min(ends[1])), clip(ends[0].max(ends[1]))] {
        at(x1, clip((v - m12 * x1) / m22));
    }
}
