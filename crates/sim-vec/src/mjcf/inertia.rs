//! Mass, centre and principal axes of bodies.

use super::error::MjcfError;
use super::geom::{Compiled, orient};
use super::rotation::{Mat3, Quat, Vec3, compose, dot, matrix, product, sub, transpose};
use super::settings::{Compiler, Settings};
use super::value::Reader;

/// A rigid body's inertia in the body's frame.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Inertia {
    pub(super) mass: f64,
    pub(super) pos: Vec3,
    pub(super) quat: Quat,
    pub(super) moments: [f64; 3],
}

impl Inertia {
    pub(super) const NONE: Inertia =
        Inertia { mass: 0.0, pos: [0.0; 3], quat: [1.0, 0.0, 0.0, 0.0], moments: [0.0; 3] };

    /// Of geoms, if any has mass. One alone lends its frame; several are summed and brought to principal axes, largest
    /// moment first.
    pub(super) fn of(geoms: &[&Compiled]) -> Option<Inertia> {
        let heavy: Vec<&Compiled> = geoms.iter().copied().filter(|g| g.mass > 1e-15).collect();
        Some(match heavy[..] {
            [] => return None,
            [g] => Inertia { mass: g.mass, pos: g.geom.pos, quat: g.geom.quat, moments: g.inertia },
            _ => {
                let mass: f64 = heavy.iter().map(|g| g.mass).sum();
                let centre: Vec3 =
                    std::array::from_fn(|k| heavy.iter().map(|g| g.mass * g.geom.pos[k]).sum::<f64>() / mass);
                let mut tensor = [0.0; 9];
                for g in heavy {
                    let d = sub(g.geom.pos, centre);
                    let own = turned(g.geom.quat, g.inertia);
                    for (i, t) in tensor.iter_mut().enumerate() {
                        let (row, column) = (i / 3, i % 3);
                        let diagonal = if row == column { dot(&d, &d) } else { 0.0 };
                        *t += own[i] + g.mass * (diagonal - d[row] * d[column]);
                    }
                }
                let (moments, quat) = principal(tensor);
                Inertia { mass, pos: centre, quat, moments }
            }
        })
    }

    /// Reads `<inertial>`, within the `<frame>`s around it.
    pub(super) fn read(r: Reader, frame: (Vec3, Quat), s: &Settings) -> Result<Inertia, MjcfError> {
        let (mut mass, mut pos, mut moments, mut full) = (None, [0.0; 3], None, None);
        let mut orientation = None;
        for a in &r.node.attrs {
            if let Some(o) = r.orientation(a)? {
                orientation = Some((a.clone(), o));
                continue;
            }
            match a.name.as_str() {
                "pos" => pos = r.vector(a)?,
                "mass" => mass = Some(r.magnitude(a)?),
                "diaginertia" => moments = Some(r.vector::<3>(a)?),
                "fullinertia" => full = Some((a, r.vector::<6>(a)?)),
                _ => return Err(r.refuse(a, "remove it")),
            }
        }
        let quat = orient(r, &orientation, s)?;
        let (moments, inner) = match (moments, full) {
            (Some(moments), None) => (moments, quat),
            (None, Some((a, [xx, yy, zz, xy, xz, yz]))) => {
                if orientation.is_some() {
                    return Err(r.wrong(a, "no orientation next to it: a full tensor has one of its own"));
                }
                principal([xx, xy, xz, xy, yy, yz, xz, yz, zz])
            }
            (Some(_), Some((a, _))) => return Err(r.wrong(a, "nothing next to diaginertia; remove one of them")),
            (None, None) => ([0.0; 3], quat),
        };
        let mass = mass.ok_or_else(|| r.invalid("it has no mass; write mass=\"…\""))?;
        if moments.iter().any(|m| *m < 0.0) {
            return Err(r.invalid("a moment of inertia is negative; mend diaginertia or fullinertia"));
        }
        let (pos, quat) = compose(frame, pos, inner);
        Ok(Inertia { mass, pos, quat, moments })
    }

    /// Least values, and moments no body can have. `r`: the body.
    pub(super) fn bounded(mut self, r: Reader, c: &Compiler) -> Result<Inertia, MjcfError> {
        self.mass = self.mass.max(c.bound_mass);
        self.moments = self.moments.map(|m| m.max(c.bound_inertia));
        let [a, b, d] = self.moments;
        let slack = 1e-9 * (a + b + d);
        if a + b + slack < d || a + d + slack < b || b + d + slack < a {
            if !c.balance_inertia {
                return Err(r.invalid(format!(
                    "its moments {a}, {b} and {d} are those of no body: each is at most the sum of the other two; mend \
                     them, or write <compiler balanceinertia=\"true\"/>"
                )));
            }
            self.moments = [(a + b + d) / 3.0; 3];
        }
        Ok(self)
    }
}

/// R·diag(moments)·Rᵀ
pub(super) fn turned(quat: Quat, moments: [f64; 3]) -> Mat3 {
    let r = matrix(quat);
    let scaled: Mat3 = std::array::from_fn(|i| r[i] * moments[i % 3]);
    product(&scaled, &transpose(&r))
}

/// Eigenvalues of a symmetric matrix, largest first, and the rotation to its eigenvectors: cyclic Jacobi rotations.
fn principal(mut a: Mat3) -> ([f64; 3], Quat) {
    let mut v: Mat3 = [1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0];
    let size = a.iter().fold(0.0f64, |m, x| m.max(x.abs()));
    for sweep in 0..64 {
        let (p, q) = [(0, 1), (0, 2), (1, 2)][sweep % 3];
        let off = a[3 * p + q];
        if off.abs() > 1e-17 * size {
            // the angle that brings the element to 0
            let theta = 0.5 * (2.0 * off).atan2(a[4 * q] - a[4 * p]);
            let (s, c) = theta.sin_cos();
            let mut turn: Mat3 = [1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0];
            (turn[4 * p], turn[4 * q], turn[3 * p + q], turn[3 * q + p]) = (c, c, s, -s);
            a = product(&transpose(&turn), &product(&a, &turn));
            v = product(&v, &turn);
        }
    }
    let mut order = [0, 1, 2];
    order.sort_by(|&i, &j| a[4 * j].total_cmp(&a[4 * i]));
    let column = |k: usize| [v[k], v[3 + k], v[6 + k]];
    let (x, y) = (column(order[0]), column(order[1]));
    let z = super::rotation::cross(x, y);
    (order.map(|k| a[4 * k]), super::rotation::from_columns(x, y, z))
}

/// Scales all bodies to the model's total mass.
pub(super) fn scale(all: &mut [Inertia], total: f64) {
    let sum: f64 = all.iter().map(|i| i.mass).sum();
    if total > 0.0 && sum > 0.0 {
        for i in all {
            i.mass *= total / sum;
            i.moments = i.moments.map(|m| m * total / sum);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn principal_axes_rebuild_the_tensor_with_the_largest_moment_first() {
        for a in [
            [2.0, 0.3, -0.2, 0.3, 1.0, 0.1, -0.2, 0.1, 3.0],
            [1.0, 0.0, 0.0, 0.0, 5.0, 0.0, 0.0, 0.0, 2.0],
            [1.0, 1e-9, 0.0, 1e-9, 1.0, 0.0, 0.0, 0.0, 1.0],
        ] {
            let (moments, quat) = principal(a);
            assert!(moments[0] >= moments[1] && moments[1] >= moments[2], "{moments:?}");
            for (x, y) in turned(quat, moments).iter().zip(a) {
                assert!((x - y).abs() < 1e-14, "{x} {y}");
            }
        }
    }
}
