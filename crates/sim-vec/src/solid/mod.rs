//! Narrow phase of all pairs of solids, one pair at a time in f64, with MuJoCo's numbers.
//!
//! [`touch`] takes two posed solids and writes their contacts in MuJoCo's order. Pairs with a closed form have a
//! function each: [`plane`], [`round`], [`boxes`], [`box_box`]. The others go through [`convex`]: the nearest points of
//! two convex sets by [`gjk`], the depth of overlapping ones by [`epa`], more than one point by [`manifold`].
//! Nothing is allocated.
mod box_box;
mod boxes;
mod convex;
mod epa;
mod gjk;
mod manifold;
mod plane;
mod round;
mod simplex;
mod support;
#[cfg(test)]
mod tests;
mod vec3;

use vec3::{Vec3, column};

/// Most contacts that one pair can have: a box's face clipped by another's.
pub(crate) const MOST: usize = 8;

/// A shape about its own origin; lengths in metres.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Solid {
    /// The half-space below the local xy plane.
    Plane,
    Sphere {
        radius: f64,
    },
    /// A segment of the local z axis from `-half` to `half`, thickened by `radius`.
    Capsule {
        radius: f64,
        half: f64,
    },
    /// Semi-axes.
    Ellipsoid {
        size: [f64; 3],
    },
    /// A disc of `radius`, from `-half` to `half` along the local z axis.
    Cylinder {
        radius: f64,
        half: f64,
    },
    /// Half lengths of the edges.
    Box {
        size: [f64; 3],
    },
}

/// Where a solid is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Pose {
    pub pos: [f64; 3],
    /// Row-major; column `k` is the local axis `k` in the world.
    pub mat: [f64; 9],
}

impl Pose {
    fn axis(&self) -> Vec3 {
        column(&self.mat, 2)
    }
}

/// A contact.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Touch {
    /// Distance of the surfaces in metres, negative in penetration.
    pub dist: f64,
    /// Midway between the surfaces.
    pub pos: [f64; 3],
    /// Unit vector from the first solid to the second.
    pub normal: [f64; 3],
    /// Wanted direction of the frame's second axis; zero where the frame is free to choose.
    pub tangent: [f64; 3],
}

impl Touch {
    /// A contact whose frame is free.
    fn free(dist: f64, pos: Vec3, normal: Vec3) -> Self {
        Touch { dist, pos, normal, tangent: [0.0; 3] }
    }
}

/// Contacts of one pair as they are found.
struct List<'a> {
    count: usize,
    out: &'a mut [Touch; MOST],
}

impl List<'_> {
    /// Adds a contact; one beyond [`MOST`] is dropped.
    fn push(&mut self, t: Touch) {
        if let Some(slot) = self.out.get_mut(self.count) {
            *slot = t;
            self.count += 1;
        }
    }
}

/// Contacts of `a` and `b` into `out`; returns how many.
///
/// A contact is reported up to a distance of `margin` (the sum of the geoms' margins and gaps); whether it pushes is
/// for the caller to decide. The kinds must be in MuJoCo's order: plane, sphere, capsule, ellipsoid, cylinder, box;
/// a pair in another order has no contacts.
pub(crate) fn touch(a: (&Solid, &Pose), b: (&Solid, &Pose), margin: f64, out: &mut [Touch; MOST]) -> usize {
    let mut list = List { count: 0, out };
    let l = &mut list;
    let (p, q) = (a.1, b.1);
    use Solid::*;
    match (*a.0, *b.0) {
        (Plane, Sphere { radius }) => plane::sphere(p, q.pos, radius, margin, l),
        (Plane, Capsule { radius, half }) => plane::capsule(p, q, radius, half, margin, l),
        (Plane, Ellipsoid { size }) => plane::ellipsoid(p, q, size, margin, l),
        (Plane, Cylinder { radius, half }) => plane::cylinder(p, q, radius, half, margin, l),
        (Plane, Box { size }) => plane::cuboid(p, q, size, margin, l),
        (Sphere { radius: r }, Sphere { radius }) => round::spheres(p, r, q, radius, margin, l),
        (Sphere { radius: r }, Capsule { radius, half }) => round::sphere_capsule(p, r, q, radius, half, margin, l),
        (Sphere { radius: r }, Cylinder { radius, half }) => round::sphere_cylinder(p, r, q, radius, half, margin, l),
        (Sphere { radius }, Box { size }) => boxes::sphere(p.pos, radius, q, size, margin, l),
        (Capsule { radius: r, half: h }, Capsule { radius, half }) => {
            round::capsules(p, [r, h], q, [radius, half], margin, l);
        }
        (Capsule { radius, half }, Box { size }) => boxes::capsule(p, radius, half, q, size, margin, l),
        (Box { size: s }, Box { size }) => box_box::boxes(p, s, q, size, margin, l),
        (Sphere { .. } | Capsule { .. } | Ellipsoid { .. }, Ellipsoid { .. })
        | (Capsule { .. } | Ellipsoid { .. } | Cylinder { .. }, Cylinder { .. })
        | (Ellipsoid { .. } | Cylinder { .. }, Box { .. }) => convex::convex(a, b, margin, l),
        _ => {}
    }
    list.count
}
