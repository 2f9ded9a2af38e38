//! Point of a simplex nearest to the origin, in barycentric coordinates, by signed volumes (Montanari, Petrinic and
//! Barbieri 2017).
//!
//! The coordinates are ratios of volumes that the origin's projection makes with the simplex's facets; where one has
//! the wrong sign, the facets seen from the origin are tried and the nearest wins.
use super::support::mix;
use super::vec3::*;

/// Both positive or both negative.
fn agree(a: f64, b: f64) -> bool {
    (a > 0.0 && b > 0.0) || (a < 0.0 && b < 0.0)
}

/// `u · (v × w)`.
pub(super) fn triple(u: Vec3, v: Vec3, w: Vec3) -> f64 {
    dot(u, cross(v, w))
}

/// Coordinates of the nearest point of a segment.
///
/// A projection outside gives the second point.
pub(super) fn of_segment(p: Vec3, q: Vec3) -> [f64; 2] {
    let d = sub(q, p);
    let foot = along(q, d, -(dot(q, d) / dot(d, d)));
    // the coordinate along which the segment is longest
    let mut axis = 0;
    for k in 1..3 {
        if (p[k] - q[k]).abs() >= (p[axis] - q[axis]).abs() {
            axis = k;
        }
    }
    let whole = p[axis] - q[axis];
    let (a, b) = (foot[axis] - q[axis], p[axis] - foot[axis]);
    if agree(whole, a) && agree(whole, b) { [a / whole, b / whole] } else { [0.0, 1.0] }
}

/// Twice the signed areas, in the coordinate plane in which the triangle is largest: of the triangle, and of those that
/// point `p` makes with the edges opposite to each corner.
fn areas(t: [Vec3; 3], p: Vec3) -> (f64, [f64; 3]) {
    let minor = |y: usize, z: usize| {
        let [a, b, c] = t;
        b[y] * c[z] - b[z] * c[y] - a[y] * c[z] + a[z] * c[y] + a[y] * b[z] - a[z] * b[y]
    };
    let (m0, m1, m2) = (minor(1, 2), minor(0, 2), minor(0, 1));
    let (whole, x, y) = if m0.abs() >= m1.abs() && m0.abs() >= m2.abs() {
        (m0, 1, 2)
    } else if m1.abs() >= m2.abs() {
        (m1, 0, 2)
    } else {
        (m2, 0, 1)
    };
    let part = |u: Vec3, v: Vec3| p[x] * u[y] + p[y] * v[x] + u[x] * v[y] - p[x] * v[y] - p[y] * u[x] - v[x] * u[y];
    (whole, [part(t[1], t[2]), part(t[2], t[0]), part(t[0], t[1])])
}

/// Barycentric coordinates of a point of the triangle's plane.
pub(super) fn coordinates(t: [Vec3; 3], p: Vec3) -> [f64; 3] {
    let (whole, parts) = areas(t, p);
    parts.map(|a| a / whole)
}

/// Foot of the origin on the plane through three points; none where these are on a line.
///
/// ```text
/// n = e × f,   foot = n (n·p) / (n·n)
/// ```
///
/// with the pair of edges for which this is well conditioned.
pub(super) fn foot(p1: Vec3, p2: Vec3, p3: Vec3) -> Option<Vec3> {
    let (e21, e31, e32) = (sub(p2, p1), sub(p3, p1), sub(p3, p2));
    for (n, p, last) in [(cross(e32, e21), p2, false), (cross(e21, e31), p1, false), (cross(e31, e32), p3, true)] {
        let (height, n2) = (dot(n, p), dot(n, n));
        if n2 == 0.0 && !last {
            return None;
        }
        if last || (height != 0.0 && n2 > TINY) {
            return Some(scale(n, height / n2));
        }
    }
    None
}

/// Coordinates of the nearest point of a triangle.
pub(super) fn of_triangle(p1: Vec3, p2: Vec3, p3: Vec3) -> [f64; 3] {
    let Some(o) = foot(p1, p2, p3) else {
        let [a, b] = of_segment(p1, p2);
        return [a, b, 0.0];
    };
    let (whole, parts) = areas([p1, p2, p3], o);
    let inside = parts.map(|a| agree(whole, a));
    if inside == [true; 3] {
        return parts.map(|a| a / whole);
    }
    let mut best = (f64::MAX, [0.0; 3]);
    let t = [p1, p2, p3];
    for k in 0..3 {
        if inside[k] {
            continue;
        }
        let (i, j) = [(1, 2), (0, 2), (0, 1)][k];
        let w = of_segment(t[i], t[j]);
        let x = mix(w, [t[i], t[j]]);
        let d2 = dot(x, x);
        if d2 < best.0 || k == 0 {
            best = (d2, [0.0; 3]);
            (best.1[i], best.1[j]) = (w[0], w[1]);
        }
    }
    best.1
}

/// Coordinates of the nearest point of a tetrahedron; all four positive where the origin is inside.
pub(super) fn of_tetrahedron(t: [Vec3; 4]) -> [f64; 4] {
    let [p1, p2, p3, p4] = t;
    let parts = [-triple(p2, p3, p4), triple(p1, p3, p4), -triple(p1, p2, p4), triple(p1, p2, p3)];
    let whole = parts[0] + parts[1] + parts[2] + parts[3];
    let inside = parts.map(|v| agree(whole, v));
    if inside == [true; 4] {
        return parts.map(|v| v / whole);
    }
    let mut best = (f64::MAX, [0.0; 4]);
    for k in 0..4 {
        if inside[k] {
            continue;
        }
        let [i, j, l] = [[1, 2, 3], [0, 2, 3], [0, 1, 3], [0, 1, 2]][k];
        let w = of_triangle(t[i], t[j], t[l]);
        let x = mix(w, [t[i], t[j], t[l]]);
        let d2 = dot(x, x);
        if d2 < best.0 || k == 0 {
            best = (d2, [0.0; 4]);
            (best.1[i], best.1[j], best.1[l]) = (w[0], w[1], w[2]);
        }
    }
    best.1
}
