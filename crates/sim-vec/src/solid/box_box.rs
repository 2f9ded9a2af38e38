//! Two boxes: the axis of least overlap, then the contacts along it.
//!
//! Of the fifteen axes that can separate two boxes (three face normals each, nine products of edges) the one with the
//! greatest separation decides. A face normal gives the part of the other box's opposing face that lies over the face,
//! up to eight points; a product of edges gives one point between these edges.
use super::vec3::*;
use super::{List, MOST, Pose, Touch};

/// Rounding slack of a separation, per metre of half lengths.
const SLACK: f64 = 1e-13;
/// Squared sine of the angle of two edges below which their product has no direction.
const PARALLEL: f64 = 1e-16;
/// Below this a component of the axis does not say on which side of the box its edge is.
const EITHER_SIDE: f64 = 1e-9;
/// Squared distance of two points, per squared size of the face, below which they are one.
const SAME: f64 = 1e-14;
/// By which part of its own size a product of edges must beat a face, because a face gives more points.
const FACE_FIRST: f64 = 1e-6;

/// Two boxes, the second one seen from the first.
struct Two {
    size: [Vec3; 2],
    /// Column `j`: axis `j` of the second box in the first one's frame.
    rel: Mat,
    /// Centre of the second in the first one's frame.
    second: Vec3,
    /// Centre of the first in the second one's frame.
    first: Vec3,
}

/// Which axis separates most.
#[derive(Clone, Copy)]
enum Axis {
    /// Axis `.1` of box `.0`.
    Face(usize, usize),
    /// Axis `.0` of the first box times axis `.1` of the second.
    Edges(usize, usize),
}

/// Contacts of two boxes of half lengths `s1`, `s2`.
pub(super) fn boxes(a: &Pose, s1: Vec3, b: &Pose, s2: Vec3, margin: f64, out: &mut List) {
    let two = Two {
        size: [s1, s2],
        rel: product(&transpose(&a.mat), &b.mat),
        second: unturn(&a.mat, sub(b.pos, a.pos)),
        first: unturn(&b.mat, sub(a.pos, b.pos)),
    };
    let limit = margin + SLACK * (s1[0] + s1[1] + s1[2] + s2[0] + s2[1] + s2[2]);
    match two.widest(limit) {
        None => {}
        Some(Axis::Edges(i, j)) => {
            let (dist, mid, normal) = two.edges(i, j);
            if dist <= limit {
                out.push(Touch::free(dist, add(turn(&a.mat, mid), a.pos), turn(&a.mat, normal)));
            }
        }
        Some(Axis::Face(owner, axis)) => two.face(owner, axis, if owner == 0 { a } else { b }, margin, out),
    }
}

impl Two {
    /// The axis of greatest separation; none if one separates by more than `limit`.
    fn widest(&self, limit: f64) -> Option<Axis> {
        let [s1, s2] = self.size;
        let r = &self.rel;
        let mut best = (-1e10, Axis::Face(0, 0));
        for i in 0..3 {
            let reach = r[3 * i].abs() * s2[0] + r[3 * i + 1].abs() * s2[1] + r[3 * i + 2].abs() * s2[2];
            let apart = self.second[i].abs() - s1[i] - reach;
            if apart > limit {
                return None;
            }
            if apart > best.0 {
                best = (apart, Axis::Face(0, i));
            }
        }
        for j in 0..3 {
            let reach = r[j].abs() * s1[0] + r[3 + j].abs() * s1[1] + r[6 + j].abs() * s1[2];
            let apart = self.first[j].abs() - s2[j] - reach;
            if apart > limit {
                return None;
            }
            if apart > best.0 {
                best = (apart, Axis::Face(1, j));
            }
        }
        let face = best;
        for i in 0..3 {
            for j in 0..3 {
                let (i1, i2, j1, j2) = ((i + 1) % 3, (i + 2) % 3, (j + 1) % 3, (j + 2) % 3);
                let (x, y) = (-r[3 * i2 + j], r[3 * i1 + j]);
                let len2 = x * x + y * y;
                if len2 < PARALLEL {
                    continue;
                }
                let inv = 1.0 / len2.sqrt();
                let (x, y) = (x * inv, y * inv);
                let reach1 = s1[i1] * x.abs() + s1[i2] * y.abs();
                let on1 = x * r[3 * i1 + j1] + y * r[3 * i2 + j1];
                let on2 = x * r[3 * i1 + j2] + y * r[3 * i2 + j2];
                let reach2 = s2[j1] * on1.abs() + s2[j2] * on2.abs();
                let apart = (x * self.second[i1] + y * self.second[i2]).abs() - reach1 - reach2;
                if apart > limit {
                    return None;
                }
                if apart - FACE_FIRST * apart.abs() > best.0 && apart > face.0 {
                    best = (apart, Axis::Edges(i, j));
                }
            }
        }
        // the face instead of edges whose product is nearly its normal, unless these are better by a twentieth
        if let Axis::Edges(i, j) = best.1 {
            let n = self.product(i, j);
            let aligned = match face.1 {
                Axis::Face(0, k) => n[k].abs(),
                Axis::Face(_, k) | Axis::Edges(_, k) => dot(n, column(r, k)).abs(),
            };
            if aligned > 0.99 && best.0 < face.0 + 0.05 * face.0.abs() + TINY {
                best = face;
            }
        }
        Some(best.1)
    }

    /// Unit vector along axis `i` of the first box times axis `j` of the second, in the first one's frame.
    fn product(&self, i: usize, j: usize) -> Vec3 {
        let (i1, i2) = ((i + 1) % 3, (i + 2) % 3);
        let mut n = [0.0; 3];
        n[i1] = -self.rel[3 * i2 + j];
        n[i2] = self.rel[3 * i1 + j];
        unit(n).0
    }

    /// Distance along the product of two edges, the point midway between them and the normal, in the first one's frame.
    fn edges(&self, i: usize, j: usize) -> (f64, Vec3, Vec3) {
        let [s1, s2] = self.size;
        let mut n = self.product(i, j);
        if dot(n, self.second) < 0.0 {
            n = neg(n);
        }
        let n2 = unturn(&self.rel, n);
        let (or1, or2) = (either(n, i), either(n2, j));
        let along2 = column(&self.rel, j);
        let cos = along2[i];
        let sin2 = 1.0 - cos * cos;

        let mut best = (1e10, [0.0; 3], [0.0; 3]);
        for flip1 in 0..1 + usize::from(or1.is_some()) {
            for flip2 in 0..1 + usize::from(or2.is_some()) {
                let c1 = middle(n, s1, i, or1.filter(|_| flip1 == 1));
                let c2 =
                    add(turn(&self.rel, middle(negated_sides(n2), s2, j, or2.filter(|_| flip2 == 1))), self.second);
                let gap = sub(c2, c1);
                let (on1, on2) = (gap[i], dot(along2, gap));
                let s = if sin2 < TINY { 0.0 } else { (on1 - cos * on2) / sin2 };
                let s = clip(s, s1[i]);
                let t = clip(cos * s - on2, s2[j]);
                let s = clip(on1 + cos * t, s1[i]);
                let mut p1 = c1;
                p1[i] += s;
                let p2 = along(c2, along2, t);
                let gap = sub(p2, p1);
                let gap2 = dot(gap, gap);
                if gap2 < best.0 {
                    best = (gap2, p1, p2);
                }
            }
        }
        let (_, p1, p2) = best;
        (dot(sub(p2, p1), n), scale(add(p1, p2), 0.5), n)
    }

    /// The other box's face that most opposes face `a` of box `owner`, clipped to this, as contacts.
    fn face(&self, owner: usize, a: usize, pose: &Pose, margin: f64, out: &mut List) {
        let (own, other) = (self.size[owner], self.size[1 - owner]);
        let (rel, centre) = if owner == 0 { (self.rel, self.second) } else { (transpose(&self.rel), self.first) };
        let side = if centre[a] >= 0.0 { 1.0 } else { -1.0 };

        // the opposing face and the two axes within it
        let mut b = 0;
        for k in 1..3 {
            if rel[3 * a + k].abs() > rel[3 * a + b].abs() {
                b = k;
            }
        }
        let facing = if side * rel[3 * a + b] > 0.0 { -1.0 } else { 1.0 };
        let (bu, bv) = ((b + 1) % 3, (b + 2) % 3);
        // coordinates over the owner's face: two within it, the third its height above it
        let (ax, ay) = ((a + 1) % 3, (a + 2) % 3);
        let over = |v: Vec3| [v[ax], v[ay], side * v[a]];
        let mut mid = over(std::array::from_fn(|c| centre[c] + facing * other[b] * rel[3 * c + b]));
        mid[2] -= own[a];
        let u = over(std::array::from_fn(|c| other[bu] * rel[3 * c + bu]));
        let v = over(std::array::from_fn(|c| other[bv] * rel[3 * c + bv]));

        let mut polygon = Polygon { count: 0, points: [[0.0; 3]; ROOM] };
        for (su, sv) in [(1.0, 1.0), (-1.0, 1.0), (-1.0, -1.0), (1.0, -1.0)] {
            polygon.push(std::array::from_fn(|c| mid[c] + su * u[c] + sv * v[c]));
        }
        for (c, sign, bound) in [(0, 1.0, own[ax]), (0, -1.0, own[ax]), (1, 1.0, own[ay]), (1, -1.0, own[ay])] {
            polygon.clip(c, sign, bound);
        }

        let normal = scale(column(&pose.mat, a), if owner == 0 { side } else { -side });
        let same = SAME * (own[ax] * own[ax] + own[ay] * own[ay]);
        let mut kept = Polygon { count: 0, points: [[0.0; 3]; ROOM] };
        for &p in &polygon.points[..polygon.count] {
            let near = |q: &Vec3| (q[0] - p[0]) * (q[0] - p[0]) + (q[1] - p[1]) * (q[1] - p[1]) < same;
            if p[2] > margin || kept.points[..kept.count].iter().any(near) {
                continue;
            }
            kept.push(p);
            let mut local = [0.0; 3];
            (local[ax], local[ay], local[a]) = (p[0], p[1], side * (own[a] + 0.5 * p[2]));
            out.push(Touch::free(p[2], add(turn(&pose.mat, local), pose.pos), normal));
        }
    }
}

/// The axis other than `i` along which `n` does not say which edge supports it, if any.
fn either(n: Vec3, i: usize) -> Option<usize> {
    [(i + 1) % 3, (i + 2) % 3].into_iter().find(|&k| n[k].abs() < EITHER_SIDE)
}

/// A vector whose components are ≥ 0 exactly where those of `n` are negative.
fn negated_sides(n: Vec3) -> Vec3 {
    n.map(|x| if x >= 0.0 { -1.0 } else { 1.0 })
}

/// Middle of the edge along axis `i` on the side of `n`; `flip` changes the side along one axis.
fn middle(n: Vec3, size: Vec3, i: usize, flip: Option<usize>) -> Vec3 {
    std::array::from_fn(|k| {
        let s = if n[k] >= 0.0 { size[k] } else { -size[k] };
        match () {
            _ if k == i => 0.0,
            _ if flip == Some(k) => -s,
            _ => s,
        }
    })
}

/// Into [−bound, bound].
fn clip(x: f64, bound: f64) -> f64 {
    x.max(-bound).min(bound)
}

/// A quadrilateral cut by four lines has at most eight corners; rounding may add some.
const ROOM: usize = MOST + 4;

/// A convex polygon in coordinates over a face.
struct Polygon {
    count: usize,
    points: [Vec3; ROOM],
}

impl Polygon {
    fn push(&mut self, p: Vec3) {
        if let Some(slot) = self.points.get_mut(self.count) {
            *slot = p;
            self.count += 1;
        }
    }

    /// Keeps the part with `sign · p[c] ≤ bound` (Sutherland and Hodgman 1974).
    fn clip(&mut self, c: usize, sign: f64, bound: f64) {
        let beyond = |p: Vec3| sign * p[c] - bound;
        let mut kept = Polygon { count: 0, points: [[0.0; 3]; ROOM] };
        for k in 0..self.count {
            let (p, q) = (self.points[k], self.points[(k + 1) % self.count]);
            let (dp, dq) = (beyond(p), beyond(q));
            if dp <= 0.0 {
                kept.push(p);
            }
            if (dp < 0.0 && dq > 0.0) || (dp > 0.0 && dq < 0.0) {
                kept.push(along(p, sub(q, p), dp / (dp - dq)));
            }
        }
        *self = kept;
    }
}
