//! Support points: the farthest point of a convex set in a direction, for [`gjk`](super::gjk) and [`epa`](super::epa).
use super::vec3::*;
use super::{Pose, Solid};

/// A convex set: a core, thickened by a layer.
#[derive(Clone, Copy)]
pub(super) struct Hull {
    pub core: Solid,
    /// A sphere or a capsule stands for its centre or its segment.
    pub thin: bool,
    pub pose: Pose,
    /// Thickness of the layer.
    pub layer: f64,
}

impl Hull {
    /// Farthest point along the unit vector `dir`.
    fn support(&self, dir: Vec3) -> Vec3 {
        let point = self.core_support(dir);
        if self.layer > 0.0 { along(point, dir, self.layer) } else { point }
    }

    fn core_support(&self, dir: Vec3) -> Vec3 {
        let Pose { pos, mat } = &self.pose;
        let side = |x: f64, size: f64| if x >= 0.0 { size } else { -size };
        let local = match self.core {
            Solid::Sphere { .. } | Solid::Plane if self.thin => return *pos,
            Solid::Sphere { radius } => return add(scale(dir, radius), *pos),
            Solid::Capsule { half, .. } if self.thin => {
                let axis = self.pose.axis();
                return add(scale(axis, side(dot(axis, dir), half)), *pos);
            }
            Solid::Plane => return *pos,
            Solid::Capsule { radius, half } => {
                let u = unturn(mat, dir);
                [u[0] * radius, u[1] * radius, u[2] * radius + side(u[2], half)]
            }
            Solid::Ellipsoid { size } => {
                let u = unturn(mat, dir);
                let v = [u[0] * size[0], u[1] * size[1], u[2] * size[2]];
                let len2 = dot(v, v);
                if len2 < TINY * TINY {
                    return add(scale(column(mat, 0), size[0]), *pos);
                }
                let inv = 1.0 / len2.sqrt();
                [v[0] * (inv * size[0]), v[1] * (inv * size[1]), v[2] * (inv * size[2])]
            }
            Solid::Cylinder { radius, half } => {
                let u = unturn(mat, dir);
                let len2 = u[0] * u[0] + u[1] * u[1];
                let s = if len2 >= TINY * TINY { radius / len2.sqrt() } else { 0.0 };
                [s * u[0], s * u[1], side(u[2], half)]
            }
            Solid::Box { size } => {
                let u = unturn(mat, dir);
                std::array::from_fn(|i| side(u[i], size[i]))
            }
        };
        add(turn(mat, local), *pos)
    }
}

/// A point of the difference of two sets, and the points of which it is the difference.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Vertex {
    /// `a − b`.
    pub d: Vec3,
    pub a: Vec3,
    pub b: Vec3,
}

/// Two sets; their difference `{a − b}` contains the origin exactly where they overlap.
pub(super) struct Two {
    pub a: Hull,
    pub b: Hull,
}

impl Two {
    /// Farthest point of the difference along the unit vector `dir`.
    pub fn support(&self, dir: Vec3) -> Vertex {
        let (a, b) = (self.a.support(dir), self.b.support(neg(dir)));
        Vertex { d: sub(a, b), a, b }
    }
}

/// `Σ λ_i p_i`.
pub(super) fn mix<const N: usize>(weights: [f64; N], points: [Vec3; N]) -> Vec3 {
    std::array::from_fn(|c| {
        let mut sum = weights[0] * points[0][c];
        for i in 1..N {
            sum += weights[i] * points[i][c];
        }
        sum
    })
}
