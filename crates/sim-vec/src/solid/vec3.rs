//! Vectors of three doubles and row-major 3×3 matrices.
//!
//! Sums run from left to right and nothing is fused, so that a comparison falls on the side on which MuJoCo's falls.

/// Below this a length counts as zero.
pub(crate) const TINY: f64 = 1e-15;

pub(crate) type Vec3 = [f64; 3];
pub(crate) type Mat = [f64; 9];

pub(crate) fn add(a: Vec3, b: Vec3) -> Vec3 {
    [a[0] + b[0], a[1] + b[1], a[2] + b[2]]
}

pub(crate) fn sub(a: Vec3, b: Vec3) -> Vec3 {
    [a[0] - b[0], a[1] - b[1], a[2] - b[2]]
}

pub(crate) fn scale(a: Vec3, s: f64) -> Vec3 {
    [a[0] * s, a[1] * s, a[2] * s]
}

pub(crate) fn neg(a: Vec3) -> Vec3 {
    [-a[0], -a[1], -a[2]]
}

/// `a + s b`.
pub(crate) fn along(a: Vec3, b: Vec3, s: f64) -> Vec3 {
    [a[0] + b[0] * s, a[1] + b[1] * s, a[2] + b[2] * s]
}

pub(crate) fn dot(a: Vec3, b: Vec3) -> f64 {
    a[0] * b[0] + a[1] * b[1] + a[2] * b[2]
}

pub(crate) fn cross(a: Vec3, b: Vec3) -> Vec3 {
    [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]]
}

pub(crate) fn norm(a: Vec3) -> f64 {
    dot(a, a).sqrt()
}

/// Unit vector and length; `(1, 0, 0)` where the length is below [`TINY`].
pub(crate) fn unit(a: Vec3) -> (Vec3, f64) {
    let len = norm(a);
    if len < TINY { ([1.0, 0.0, 0.0], len) } else { (scale(a, 1.0 / len), len) }
}

/// `m v`.
pub(crate) fn turn(m: &Mat, v: Vec3) -> Vec3 {
    [
        m[0] * v[0] + m[1] * v[1] + m[2] * v[2],
        m[3] * v[0] + m[4] * v[1] + m[5] * v[2],
        m[6] * v[0] + m[7] * v[1] + m[8] * v[2],
    ]
}

/// `mᵀ v`.
pub(crate) fn unturn(m: &Mat, v: Vec3) -> Vec3 {
    [
        m[0] * v[0] + m[3] * v[1] + m[6] * v[2],
        m[1] * v[0] + m[4] * v[1] + m[7] * v[2],
        m[2] * v[0] + m[5] * v[1] + m[8] * v[2],
    ]
}

/// `a b`.
pub(crate) fn product(a: &Mat, b: &Mat) -> Mat {
    std::array::from_fn(|k| {
        let (r, c) = (k / 3 * 3, k % 3);
        a[r] * b[c] + a[r + 1] * b[c + 3] + a[r + 2] * b[c + 6]
    })
}

pub(crate) fn transpose(m: &Mat) -> Mat {
    std::array::from_fn(|k| m[k % 3 * 3 + k / 3])
}

/// Column `k` of `m`: axis `k` of the frame.
pub(crate) fn column(m: &Mat, k: usize) -> Vec3 {
    [m[k], m[k + 3], m[k + 6]]
}
