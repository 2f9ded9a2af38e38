//! Contacts of a plane, whose normal is its z axis.
use super::vec3::*;
use super::{List, Pose, Touch};

/// Height of a point above the plane.
fn height(plane: &Pose, point: Vec3) -> f64 {
    dot(sub(point, plane.pos), plane.axis())
}

/// Sphere of `radius` at `centre`.
pub(super) fn sphere(plane: &Pose, centre: Vec3, radius: f64, margin: f64, out: &mut List) {
    aligned_sphere(plane, centre, radius, [0.0; 3], margin, out);
}

/// As [`sphere`], with the frame's tangent given.
fn aligned_sphere(plane: &Pose, centre: Vec3, radius: f64, tangent: Vec3, margin: f64, out: &mut List) {
    let normal = plane.axis();
    let h = height(plane, centre);
    if h > margin + radius {
        return;
    }
    let dist = h - radius;
    out.push(Touch { dist, pos: add(centre, scale(normal, -dist / 2.0 - radius)), normal, tangent });
}

/// The spheres at both ends of the capsule, upper end of its axis first; frames aligned with the axis.
pub(super) fn capsule(plane: &Pose, c: &Pose, radius: f64, half: f64, margin: f64, out: &mut List) {
    let axis = c.axis();
    let arm = scale(axis, half);
    aligned_sphere(plane, add(c.pos, arm), radius, axis, margin, out);
    aligned_sphere(plane, sub(c.pos, arm), radius, axis, margin, out);
}

/// The lowest point of an ellipsoid of semi-axes `size`.
///
/// ```text
/// u = −Rᵀn,   x = s∘(s∘u)/‖s∘u‖
/// ```
pub(super) fn ellipsoid(plane: &Pose, e: &Pose, size: Vec3, margin: f64, out: &mut List) {
    let normal = plane.axis();
    let down = unturn(&e.mat, neg(normal));
    let (on_sphere, _) = unit([down[0] * size[0], down[1] * size[1], down[2] * size[2]]);
    let lowest = add(turn(&e.mat, [on_sphere[0] * size[0], on_sphere[1] * size[1], on_sphere[2] * size[2]]), e.pos);
    let dist = height(plane, lowest);
    if dist <= margin {
        out.push(Touch::free(dist, along(lowest, normal, -0.5 * dist), normal));
    }
}

/// Up to four points of a cylinder: the lowest of the near rim, the lowest of the far rim, then two more of the near
/// rim that make an equilateral triangle with the first.
pub(super) fn cylinder(plane: &Pose, c: &Pose, radius: f64, half: f64, margin: f64, out: &mut List) {
    let normal = plane.axis();
    // the axis pointing down, and how far down it points
    let mut axis = c.axis();
    let mut fall = dot(normal, axis);
    if fall > 0.0 {
        axis = scale(axis, -1.0);
        fall = -fall;
    }
    let centre = height(plane, c.pos);

    // from the disc's centre to its lowest point; along the local x axis where the disc lies flat
    let steepest = sub(scale(axis, fall), normal);
    let len2 = dot(steepest, steepest);
    let spoke =
        if len2 >= TINY * TINY { scale(steepest, radius / len2.sqrt()) } else { scale(column(&c.mat, 0), radius) };
    let dip = dot(spoke, normal);
    let arm = scale(axis, half);
    fall *= half;

    let dist = centre + fall + dip;
    if dist > margin {
        return;
    }
    out.push(Touch::free(dist, along(add(add(c.pos, spoke), arm), normal, -dist * 0.5), normal));

    let dist = centre - fall + dip;
    if dist <= margin {
        out.push(Touch::free(dist, along(sub(add(c.pos, spoke), arm), normal, -dist * 0.5), normal));
    }

    let dist = centre + fall + -dip * 0.5;
    if dist <= margin {
        let side = scale(unit(cross(spoke, arm)).0, radius * 3f64.sqrt() / 2.0);
        for start in [add(c.pos, side), sub(c.pos, side)] {
            let rim = along(add(start, arm), spoke, -0.5);
            out.push(Touch::free(dist, along(rim, normal, -dist * 0.5), normal));
        }
    }
}

/// The first four corners of a box that are within the margin and below its centre.
pub(super) fn cuboid(plane: &Pose, b: &Pose, size: Vec3, margin: f64, out: &mut List) {
    let normal = plane.axis();
    let centre = height(plane, b.pos);
    for k in 0..8 {
        let corner = turn(&b.mat, super::boxes::corner(size, k));
        let rise = dot(normal, corner);
        if centre + rise > margin || rise > 0.0 {
            continue;
        }
        let dist = centre + rise;
        out.push(Touch::free(dist, add(add(corner, b.pos), scale(normal, -dist / 2.0)), normal));
        if out.count == 4 {
            return;
        }
    }
}
