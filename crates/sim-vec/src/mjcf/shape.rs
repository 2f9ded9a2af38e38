//! Sizes of primitive shapes, what they hold, and how heavy that is.

use std::f64::consts::PI;

use super::error::MjcfError;
use super::rotation::{Quat, Vec3, from_z, normalize};
use super::source::Attr;
use super::value::Reader;

/// A geom type that MJCF knows, in MuJoCo's order, which is the order of geoms in pairs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Primitive {
    Plane,
    Hfield,
    Sphere,
    Capsule,
    Ellipsoid,
    Cylinder,
    Box,
    Mesh,
    Sdf,
}

impl Primitive {
    /// Its shape is not in the MJCF file but in another one.
    pub(super) fn external(self) -> bool {
        matches!(self, Primitive::Hfield | Primitive::Mesh | Primitive::Sdf)
    }

    /// Sizes it needs.
    pub(super) fn sizes(self) -> usize {
        match self {
            Primitive::Sphere => 1,
            Primitive::Capsule | Primitive::Cylinder => 2,
            Primitive::Ellipsoid | Primitive::Box | Primitive::Plane => 3,
            Primitive::Hfield | Primitive::Mesh | Primitive::Sdf => 0,
        }
    }

    /// m³
    fn volume(self, [a, b, c]: [f64; 3]) -> f64 {
        match self {
            Primitive::Plane | Primitive::Hfield | Primitive::Mesh | Primitive::Sdf => 0.0,
            Primitive::Sphere => 4.0 / 3.0 * PI * a.powi(3),
            Primitive::Capsule => PI * (a * a * 2.0 * b + 4.0 / 3.0 * a.powi(3)),
            Primitive::Ellipsoid => 4.0 / 3.0 * PI * a * b * c,
            Primitive::Cylinder => PI * a * a * 2.0 * b,
            Primitive::Box => 8.0 * a * b * c,
        }
    }

    /// Moments about the axes through the centre, per kilogram.
    fn moments(self, [a, b, c]: [f64; 3]) -> [f64; 3] {
        let round = |across: f64, along: f64| [across, across, along];
        match self {
            Primitive::Plane | Primitive::Hfield | Primitive::Mesh | Primitive::Sdf => [0.0; 3],
            Primitive::Sphere => [0.4 * a * a; 3],
            // a cylinder of height h and two half spheres, whose own centres lie 3r/8 beyond its ends
            Primitive::Capsule => {
                let (r, h) = (a, 2.0 * b);
                let ball = 4.0 * r / (4.0 * r + 3.0 * h);
                let rod = 1.0 - ball;
                let own = 0.4 * ball * r * r;
                let across = rod * (3.0 * r * r + h * h) / 12.0 + own + ball * h * (3.0 * r + 2.0 * h) / 8.0;
                round(across, rod * r * r / 2.0 + own)
            }
            Primitive::Ellipsoid => [b * b + c * c, a * a + c * c, a * a + b * b].map(|x| x / 5.0),
            Primitive::Cylinder => round((3.0 * a * a + 4.0 * b * b) / 12.0, a * a / 2.0),
            Primitive::Box => [b * b + c * c, a * a + c * c, a * a + b * b].map(|x| x / 3.0),
        }
    }

    /// Mass, kg, and moments, kg·m², given the mass or else the density.
    pub(super) fn weigh(self, size: [f64; 3], mass: Option<f64>, density: f64) -> (f64, [f64; 3]) {
        let mass = mass.unwrap_or(density * self.volume(size));
        (mass, self.moments(size).map(|m| m * mass))
    }

    /// Radius of the ball around the centre that holds it; 0 for planes.
    pub(super) fn bound(self, [a, b, c]: [f64; 3]) -> f64 {
        match self {
            Primitive::Plane | Primitive::Hfield | Primitive::Mesh | Primitive::Sdf => 0.0,
            Primitive::Sphere => a,
            Primitive::Capsule => a + b,
            Primitive::Ellipsoid => a.max(b).max(c),
            Primitive::Cylinder => a.hypot(b),
            Primitive::Box => (a * a + b * b + c * c).sqrt(),
        }
    }
}

/// Pose and size of a shape stretched between two points: its axis points from the second to the first.
pub(super) struct Stretched {
    pub(super) pos: Vec3,
    pub(super) quat: Quat,
    pub(super) half: f64,
}

/// Reads `fromto`.
pub(super) fn stretch(r: Reader, a: &Attr, line: [f64; 6]) -> Result<Stretched, MjcfError> {
    let [x, y, z, u, v, w] = line;
    let mut along = [x - u, y - v, z - w];
    let length = normalize(&mut along);
    if length == 0.0 {
        return Err(r.wrong(a, "two different points"));
    }
    Ok(Stretched { pos: [(x + u) / 2.0, (y + v) / 2.0, (z + w) / 2.0], quat: from_z(along), half: length / 2.0 })
}
