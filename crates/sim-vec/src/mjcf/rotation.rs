//! Rotations in plain f64, by the formulas the MJCF reference fixes for its orientation attributes.

pub(super) type Vec3 = [f64; 3];
pub(super) type Quat = [f64; 4];
/// Row-major.
pub(super) type Mat3 = [f64; 9];

/// Below this a vector has no direction; MuJoCo's compiler uses the same.
pub(super) const EPS: f64 = 1e-14;
const IDENTITY: Quat = [1.0, 0.0, 0.0, 0.0];

pub(super) fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(x, y)| x * y).sum()
}

pub(super) fn cross(a: Vec3, b: Vec3) -> Vec3 {
    [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]]
}

pub(super) fn add(a: Vec3, b: Vec3) -> Vec3 {
    [a[0] + b[0], a[1] + b[1], a[2] + b[2]]
}

pub(super) fn sub(a: Vec3, b: Vec3) -> Vec3 {
    [a[0] - b[0], a[1] - b[1], a[2] - b[2]]
}

/// Scales to unit length in place and returns the length before; 0, unchanged, if the square is below [`EPS`].
pub(super) fn normalize(v: &mut [f64]) -> f64 {
    let square = dot(v, v);
    if square.is_nan() || square < EPS {
        return 0.0;
    }
    let norm = square.sqrt();
    if (norm - 1.0).abs() > EPS {
        v.iter_mut().for_each(|x| *x /= norm);
    }
    norm
}

/// Hamilton product, normalised.
pub(super) fn mul(a: Quat, b: Quat) -> Quat {
    let mut q = [
        a[0] * b[0] - a[1] * b[1] - a[2] * b[2] - a[3] * b[3],
        a[0] * b[1] + a[1] * b[0] + a[2] * b[3] - a[3] * b[2],
        a[0] * b[2] - a[1] * b[3] + a[2] * b[0] + a[3] * b[1],
        a[0] * b[3] + a[1] * b[2] - a[2] * b[1] + a[3] * b[0],
    ];
    normalize(&mut q);
    q
}

/// Rotation matrix of a unit quaternion.
pub(super) fn matrix(q: Quat) -> Mat3 {
    let [w, x, y, z] = q;
    [
        w * w + x * x - y * y - z * z,
        2.0 * (x * y - w * z),
        2.0 * (x * z + w * y),
        2.0 * (x * y + w * z),
        w * w - x * x + y * y - z * z,
        2.0 * (y * z - w * x),
        2.0 * (x * z - w * y),
        2.0 * (y * z + w * x),
        w * w - x * x - y * y + z * z,
    ]
}

pub(super) fn apply(m: &Mat3, v: Vec3) -> Vec3 {
    [dot(&m[0..3], &v), dot(&m[3..6], &v), dot(&m[6..9], &v)]
}

pub(super) fn rotate(q: Quat, v: Vec3) -> Vec3 {
    apply(&matrix(q), v)
}

/// `a b`.
pub(super) fn product(a: &Mat3, b: &Mat3) -> Mat3 {
    std::array::from_fn(|i| (0..3).map(|k| a[i / 3 * 3 + k] * b[k * 3 + i % 3]).sum())
}

pub(super) fn transpose(a: &Mat3) -> Mat3 {
    std::array::from_fn(|i| a[i % 3 * 3 + i / 3])
}

/// A child's pose given in a frame, in the frame's parent.
pub(super) fn compose(frame: (Vec3, Quat), pos: Vec3, quat: Quat) -> (Vec3, Quat) {
    (add(frame.0, rotate(frame.1, pos)), mul(frame.1, quat))
}

/// The shortest rotation from z to a unit vector; half a turn about x if it is −z.
pub(super) fn from_z(to: Vec3) -> Quat {
    let mut axis = cross([0.0, 0.0, 1.0], to);
    let sine = normalize(&mut axis);
    if sine < 1e-10 {
        axis = [1.0, 0.0, 0.0];
    }
    let (s, c) = (sine.atan2(to[2]) / 2.0).sin_cos();
    [c, axis[0] * s, axis[1] * s, axis[2] * s]
}

/// Rotation about a unit axis.
pub(super) fn about(axis: Vec3, angle: f64) -> Quat {
    let (s, c) = (angle / 2.0).sin_cos();
    [c, axis[0] * s, axis[1] * s, axis[2] * s]
}

/// The quaternion whose matrix has these unit columns. The largest component is computed first, for accuracy.
pub(super) fn from_columns(x: Vec3, y: Vec3, z: Vec3) -> Quat {
    let mut q = if x[0] + y[1] + z[2] > 0.0 {
        let w = 0.5 * (1.0 + x[0] + y[1] + z[2]).sqrt();
        [w, 0.25 * (y[2] - z[1]) / w, 0.25 * (z[0] - x[2]) / w, 0.25 * (x[1] - y[0]) / w]
    } else if x[0] > y[1] && x[0] > z[2] {
        let i = 0.5 * (1.0 + x[0] - y[1] - z[2]).sqrt();
        [0.25 * (y[2] - z[1]) / i, i, 0.25 * (y[0] + x[1]) / i, 0.25 * (z[0] + x[2]) / i]
    } else if y[1] > z[2] {
        let j = 0.5 * (1.0 - x[0] + y[1] - z[2]).sqrt();
        [0.25 * (z[0] - x[2]) / j, 0.25 * (y[0] + x[1]) / j, j, 0.25 * (z[1] + y[2]) / j]
    } else {
        let k = 0.5 * (1.0 - x[0] - y[1] + z[2]).sqrt();
        [0.25 * (x[1] - y[0]) / k, 0.25 * (z[0] + x[2]) / k, 0.25 * (z[1] + y[2]) / k, k]
    };
    normalize(&mut q);
    q
}

/// An orientation as one of MJCF's five attributes gives it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Orientation {
    Quat(Quat),
    /// Axis and angle, in the file's angle unit.
    AxisAngle([f64; 4]),
    /// x axis, and y axis up to its component along x.
    XyAxes([f64; 6]),
    ZAxis(Vec3),
    /// Three angles in the file's angle unit, about the axes of `eulerseq`.
    Euler(Vec3),
}

impl Orientation {
    /// Unit quaternion. `degree`: angles are in degrees; `sequence`: `eulerseq`, small letters turn about the moving
    /// axes, capitals about the fixed ones. Errors with what is wrong, for zero vectors.
    pub(super) fn resolve(self, degree: bool, sequence: [u8; 3]) -> Result<Quat, &'static str> {
        let radians = |a: f64| if degree { a / 180.0 * std::f64::consts::PI } else { a };
        match self {
            Orientation::Quat(mut q) => {
                if q == [0.0; 4] {
                    return Err("a quaternion that is not zero");
                }
                normalize(&mut q);
                Ok(q)
            }
            Orientation::AxisAngle([x, y, z, angle]) => {
                let mut axis = [x, y, z];
                if normalize(&mut axis) < EPS {
                    return Err("an axis that is not zero");
                }
                Ok(about(axis, radians(angle)))
            }
            Orientation::XyAxes(a) => {
                let mut x = [a[0], a[1], a[2]];
                if normalize(&mut x) < EPS {
                    return Err("an x axis that is not zero");
                }
                let along = dot(&x, &a[3..6]);
                let mut y: Vec3 = std::array::from_fn(|k| a[3 + k] - x[k] * along);
                if normalize(&mut y) < EPS {
                    return Err("a y axis that is not zero and not along x");
                }
                let mut z = cross(x, y);
                normalize(&mut z);
                Ok(from_columns(x, y, z))
            }
            Orientation::ZAxis(mut z) => {
                if normalize(&mut z) < EPS {
                    return Err("a z axis that is not zero");
                }
                Ok(from_z(z))
            }
            Orientation::Euler(angles) => {
                let mut q = IDENTITY;
                for (angle, letter) in angles.into_iter().zip(sequence) {
                    let axis = match letter.to_ascii_lowercase() {
                        b'x' => [1.0, 0.0, 0.0],
                        b'y' => [0.0, 1.0, 0.0],
                        _ => [0.0, 0.0, 1.0],
                    };
                    let turn = about(axis, radians(angle));
                    q = if letter.is_ascii_lowercase() { mul(q, turn) } else { mul(turn, q) };
                }
                Ok(q)
            }
        }
    }
}
