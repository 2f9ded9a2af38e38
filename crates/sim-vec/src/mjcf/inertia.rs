//! Mass, centre and principal axes of bodies.

use super::error::MjcfError;
use super::geom::{Compiled, orient};
use super::rotation::{EPS, Mat3, Quat, Vec3, compose, dot, matrix, mul, product, sub, transpose};
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
                let (moments, quat) = principal([xx, xy, xz, xy, yy, yz, xz, yz, zz]);
                if moments[2] < EPS {
                    return Err(r.wrong(a, "a tensor with positive moments: xx yy zz xy xz yz"));
                }
                (moments, quat)
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

/// Eigenvalues of a symmetric matrix, largest first, and the rotation to its eigenvectors.
///
/// Jacobi rotations of the largest element off the diagonal, by the smaller angle, and quarter turns to sort: frames
/// of free bodies may be aligned to the axes, so their order and signs are MuJoCo's.
fn principal(a: Mat3) -> ([f64; 3], Quat) {
    let size = a.iter().fold(0.0f64, |m, x| m.max(x.abs()));
    let mut quat: Quat = [1.0, 0.0, 0.0, 0.0];
    let mut moments = [a[0], a[4], a[8]];
    for _ in 0..64 {
        let v = matrix(quat);
        let d = product(&product(&transpose(&v), &a), &v);
        moments = [d[0], d[4], d[8]];
        let [xy, xz, yz] = [d[1], d[2], d[5]].map(f64::abs);
        let (p, q, axis) = if xy > xz && xy > yz {
            (0, 1, 2)
        } else if xz > yz {
            (0, 2, 1)
        } else {
            (1, 2, 0)
        };
        let off = d[3 * p + q];
        if off.abs() <= 1e-17 * size {
            break;
        }
        // tangent of the angle: the smaller root of t² + 2τt − 1
        let tau = (d[4 * q] - d[4 * p]) / (2.0 * off);
        let angle = (1.0 / (tau.abs() + (1.0 + tau * tau).sqrt())).atan();
        // the turn from p to q is a negative one about y
        let sign = if (tau >= 0.0) == (axis == 1) { 1.0 } else { -1.0 };
        let (sine, cosine) = (sign * angle / 2.0).sin_cos();
        let mut turn = [cosine, 0.0, 0.0, 0.0];
        turn[axis + 1] = sine;
        quat = mul(quat, turn);
    }
    for i in [0, 1, 0] {
        if moments[i] + 1e-12 < moments[i + 1] {
            moments.swap(i, i + 1);
            let mut turn = [std::f64::consts::FRAC_1_SQRT_2, 0.0, 0.0, 0.0];
            turn[(i + 2) % 3 + 1] = turn[0];
            quat = mul(quat, turn);
        }
    }
    (moments, quat)
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
            assert!(moments[0] + 1e-12 >= moments[1] && moments[1] + 1e-12 >= moments[2], "{moments:?}");
            for (x, y) in turned(quat, moments).iter().zip(a) {
                assert!((x - y).abs() < 1e-14, "{x} {y}");
            }
        }
    }
}
