//! Vectors, quaternions and spatial algebra in lanes.
//!
//! Quaternions are `[w, x, y, z]`. Matrices are row-major. Spatial motions and forces are 6-vectors, rotational part
//! first, about the centre of mass of the kinematic tree. A rigid-body inertia about that point is 10 numbers:
//!
//! ```text
//! [Ixx, Iyy, Izz, Ixy, Ixz, Iyz, m dx, m dy, m dz, m],   d = body's centre of mass − tree's
//! ```
use crate::lane::{Lane, Mask};

pub(crate) type V3<L> = [L; 3];
pub(crate) type Quat<L> = [L; 4];
pub(crate) type Mat3<L> = [L; 9];
pub(crate) type V6<L> = [L; 6];
pub(crate) type Inertia<L> = [L; 10];

#[inline(always)]
pub(crate) fn add3<L: Lane>(a: V3<L>, b: V3<L>) -> V3<L> {
    [a[0] + b[0], a[1] + b[1], a[2] + b[2]]
}

#[inline(always)]
pub(crate) fn sub3<L: Lane>(a: V3<L>, b: V3<L>) -> V3<L> {
    [a[0] - b[0], a[1] - b[1], a[2] - b[2]]
}

#[inline(always)]
pub(crate) fn scale3<L: Lane>(a: V3<L>, s: L) -> V3<L> {
    [a[0] * s, a[1] * s, a[2] * s]
}

/// `a + b s`.
#[inline(always)]
pub(crate) fn axpy3<L: Lane>(a: V3<L>, b: V3<L>, s: L) -> V3<L> {
    [b[0].fma(s, a[0]), b[1].fma(s, a[1]), b[2].fma(s, a[2])]
}

#[inline(always)]
pub(crate) fn dot3<L: Lane>(a: V3<L>, b: V3<L>) -> L {
    a[2].fma(b[2], a[1].fma(b[1], a[0] * b[0]))
}

#[inline(always)]
pub(crate) fn cross<L: Lane>(a: V3<L>, b: V3<L>) -> V3<L> {
    [b[1].fnma(a[2], a[1] * b[2]), b[2].fnma(a[0], a[2] * b[0]), b[0].fnma(a[1], a[0] * b[1])]
}

#[inline(always)]
pub(crate) fn select3<L: Lane>(m: L::M, a: V3<L>, b: V3<L>) -> V3<L> {
    [L::sel(m, a[0], b[0]), L::sel(m, a[1], b[1]), L::sel(m, a[2], b[2])]
}

/// Unit vector and length; `(1, 0, 0)` where the length is below 1e-15, as MuJoCo does.
#[inline(always)]
pub(crate) fn normalize3<L: Lane>(a: V3<L>) -> (V3<L>, L) {
    let len = dot3(a, a).sqrt();
    let tiny = len.lt(L::splat(1e-15));
    let inv = L::sel(tiny, L::one(), len).recip();
    let unit = scale3(a, inv);
    if !tiny.any() {
        return (unit, len);
    }
    (select3(tiny, [L::one(), L::zero(), L::zero()], unit), len)
}

/// Matrix times vector.
#[inline(always)]
pub(crate) fn mulmv<L: Lane>(m: &Mat3<L>, v: V3<L>) -> V3<L> {
    [dot3([m[0], m[1], m[2]], v), dot3([m[3], m[4], m[5]], v), dot3([m[6], m[7], m[8]], v)]
}

/// Transposed matrix times vector.
#[inline(always)]
pub(crate) fn multmv<L: Lane>(m: &Mat3<L>, v: V3<L>) -> V3<L> {
    [dot3([m[0], m[3], m[6]], v), dot3([m[1], m[4], m[7]], v), dot3([m[2], m[5], m[8]], v)]
}

/// Element by element.
#[inline(always)]
pub(crate) fn mul3<L: Lane>(a: V3<L>, b: V3<L>) -> V3<L> {
    [a[0] * b[0], a[1] * b[1], a[2] * b[2]]
}

/// Hamilton product.
#[inline(always)]
pub(crate) fn quat_mul<L: Lane>(a: Quat<L>, b: Quat<L>) -> Quat<L> {
    [
        a[3].fnma(b[3], a[2].fnma(b[2], a[1].fnma(b[1], a[0] * b[0]))),
        a[3].fnma(b[2], a[2].fma(b[3], a[1].fma(b[0], a[0] * b[1]))),
        a[3].fma(b[1], a[2].fma(b[0], a[1].fnma(b[3], a[0] * b[2]))),
        a[3].fma(b[0], a[2].fnma(b[1], a[1].fma(b[2], a[0] * b[3]))),
    ]
}

/// Rotation matrix of a unit quaternion.
#[inline(always)]
pub(crate) fn quat_mat<L: Lane>(q: Quat<L>) -> Mat3<L> {
    let two = L::splat(2.0);
    let (q00, q11, q22, q33) = (q[0] * q[0], q[1] * q[1], q[2] * q[2], q[3] * q[3]);
    let (q01, q02, q03) = (q[0] * q[1], q[0] * q[2], q[0] * q[3]);
    let (q12, q13, q23) = (q[1] * q[2], q[1] * q[3], q[2] * q[3]);
    [
        q00 + q11 - q22 - q33,
        two * (q12 - q03),
        two * (q13 + q02),
        two * (q12 + q03),
        q00 - q11 + q22 - q33,
        two * (q23 - q01),
        two * (q13 - q02),
        two * (q23 + q01),
        q00 - q11 - q22 + q33,
    ]
}

/// Rotates a vector: `v + 2 w (u×v) + 2 u×(u×v)`.
#[inline(always)]
pub(crate) fn quat_rot<L: Lane>(q: Quat<L>, v: V3<L>) -> V3<L> {
    let u = [q[1], q[2], q[3]];
    let t = cross(u, v);
    let t = add3(t, t);
    add3(axpy3(v, t, q[0]), cross(u, t))
}

/// Unit quaternion; the identity where the norm is below 1e-15, as MuJoCo does.
#[inline(always)]
pub(crate) fn quat_normalize<L: Lane>(q: Quat<L>) -> Quat<L> {
    let n = q[3].fma(q[3], q[2].fma(q[2], q[1].fma(q[1], q[0] * q[0]))).sqrt();
    let tiny = n.lt(L::splat(1e-15));
    let i = L::sel(tiny, L::one(), n).recip();
    let r = [q[0] * i, q[1] * i, q[2] * i, q[3] * i];
    if !tiny.any() {
        return r;
    }
    let z = L::zero();
    [L::sel(tiny, L::one(), r[0]), L::sel(tiny, z, r[1]), L::sel(tiny, z, r[2]), L::sel(tiny, z, r[3])]
}

#[inline(always)]
pub(crate) fn dot6<L: Lane>(a: &V6<L>, b: &V6<L>) -> L {
    a[5].fma(b[5], a[4].fma(b[4], a[3].fma(b[3], a[2].fma(b[2], a[1].fma(b[1], a[0] * b[0])))))
}

/// `y += a s`.
#[inline(always)]
pub(crate) fn axpy6<L: Lane>(y: &mut V6<L>, a: &V6<L>, s: L) {
    for k in 0..6 {
        y[k] = a[k].fma(s, y[k]);
    }
}

/// Inertia times motion: a spatial momentum.
#[inline(always)]
pub(crate) fn inertia_mul<L: Lane>(i: &Inertia<L>, v: &V6<L>) -> V6<L> {
    [
        i[7].fma(v[5], i[8].fnma(v[4], i[4].fma(v[2], i[3].fma(v[1], i[0] * v[0])))),
        i[6].fnma(v[5], i[8].fma(v[3], i[5].fma(v[2], i[1].fma(v[1], i[3] * v[0])))),
        i[6].fma(v[4], i[7].fnma(v[3], i[2].fma(v[2], i[5].fma(v[1], i[4] * v[0])))),
        i[9].fma(v[3], i[7].fnma(v[2], i[8] * v[1])),
        i[9].fma(v[4], i[8].fnma(v[0], i[6] * v[2])),
        i[9].fma(v[5], i[6].fnma(v[1], i[7] * v[0])),
    ]
}

/// Spatial cross product of motions, `w × v`.
#[inline(always)]
pub(crate) fn cross_motion<L: Lane>(w: &V6<L>, v: &V6<L>) -> V6<L> {
    let a = cross([w[0], w[1], w[2]], [v[0], v[1], v[2]]);
    let b = cross([w[0], w[1], w[2]], [v[3], v[4], v[5]]);
    let c = cross([w[3], w[4], w[5]], [v[0], v[1], v[2]]);
    [a[0], a[1], a[2], b[0] + c[0], b[1] + c[1], b[2] + c[2]]
}

/// Spatial cross product of motion and force, `w ×* f`.
#[inline(always)]
pub(crate) fn cross_force<L: Lane>(w: &V6<L>, f: &V6<L>) -> V6<L> {
    let a = cross([w[0], w[1], w[2]], [f[0], f[1], f[2]]);
    let b = cross([w[3], w[4], w[5]], [f[3], f[4], f[5]]);
    let c = cross([w[0], w[1], w[2]], [f[3], f[4], f[5]]);
    [a[0] + b[0], a[1] + b[1], a[2] + b[2], c[0], c[1], c[2]]
}

/// Inverse of a symmetric positive definite 3×3 matrix, of which the lower triangle is read, through LDLᵀ.
/// Returns the lower triangle `[xx, yx, yy, zx, zy, zz]`.
#[inline(always)]
pub(crate) fn inv3<L: Lane>(a: &Mat3<L>) -> [L; 6] {
    let d0 = a[0].recip();
    let l10 = a[3] * d0;
    let l20 = a[6] * d0;
    let d1 = l10.fnma(a[3], a[4]).recip();
    let t = l20.fnma(a[3], a[7]);
    let l21 = t * d1;
    let d2 = l21.fnma(t, l20.fnma(a[6], a[8])).recip();
    // inverse = L⁻ᵀ D⁻¹ L⁻¹ with L⁻¹ = [1; m10 1; m20 m21 1]
    let m10 = -l10;
    let m20 = l10.fma(l21, -l20);
    let m21 = -l21;
    let z2 = m20 * d2;
    let z1 = m21 * d2;
    [z2.fma(m20, (m10 * d1).fma(m10, d0)), z1.fma(m20, m10 * d1), z1.fma(m21, d1), z2, z1, d2]
}

/// Symmetric 3×3 matrix (lower triangle) times vector.
#[inline(always)]
pub(crate) fn sym3_mul<L: Lane>(i: &[L; 6], v: V3<L>) -> V3<L> {
    [
        i[3].fma(v[2], i[1].fma(v[1], i[0] * v[0])),
        i[4].fma(v[2], i[2].fma(v[1], i[1] * v[0])),
        i[5].fma(v[2], i[4].fma(v[1], i[3] * v[0])),
    ]
}
