//! Depth of two overlapping convex sets (van den Bergen 2001).
//!
//! A polytope inside the difference of the sets, around the origin, grows towards its surface: the facet nearest to the
//! origin is pushed out to the farthest point beyond it, until that is hardly farther than the facet. The depth is then
//! the facet's distance, and its foot of the origin gives a point in each set.
use super::gjk::{Nearest, STEPS, TOLERANCE};
use super::simplex::{coordinates, foot, triple};
use super::support::{Two, Vertex, mix};
use super::vec3::*;

/// Vertices: at most five to begin with, one more a step.
const CORNERS: usize = STEPS + 5;
/// Facets, those replaced included, as many as MuJoCo allows.
const FACETS: usize = 6 * STEPS;
/// Edges of one hole; it cannot have more than the polytope has vertices.
const EDGES: usize = CORNERS;

/// Where a facet is listed.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Place {
    /// At this index of the candidates.
    Candidate(usize),
    /// On the surface, but never the nearest.
    Surface,
    /// Replaced.
    Gone,
}

/// A triangle of the surface.
#[derive(Clone, Copy, Debug)]
struct Facet {
    corners: [usize; 3],
    /// The facet beyond each edge, from corner `k` to `k + 1`.
    beyond: [usize; 3],
    /// Foot of the origin on its plane, which is also its outward normal.
    foot: Vec3,
    /// `‖foot‖²`.
    dist2: f64,
    place: Place,
}

impl Facet {
    /// The edge that begins at vertex `v`.
    fn edge_from(&self, v: usize) -> usize {
        self.corners.iter().position(|&c| c == v).unwrap_or(2).min(2)
    }
}

/// The growing polytope.
struct Polytope {
    corners: [Vertex; CORNERS],
    corner_count: usize,
    facets: [Facet; FACETS],
    facet_count: usize,
    /// Facets that may be the nearest.
    candidates: [usize; FACETS],
    candidate_count: usize,
    /// Facet and edge around the hole that a new vertex makes.
    hole: [(usize, usize); EDGES],
    hole_count: usize,
    /// A point inside.
    centre: Vec3,
}

/// Depth, negative, and the deepest point in each set; none where no polytope around the origin can be made.
pub(super) fn depth(two: &Two, near: &Nearest) -> Option<(f64, [Vec3; 2], [Vertex; 3])> {
    let none = Facet { corners: [0; 3], beyond: [0; 3], foot: [0.0; 3], dist2: 0.0, place: Place::Gone };
    let mut p = Polytope {
        corners: [Vertex::default(); CORNERS],
        corner_count: 0,
        facets: [none; FACETS],
        facet_count: 0,
        candidates: [0; FACETS],
        candidate_count: 0,
        hole: [(0, 0); EDGES],
        hole_count: 0,
        centre: [0.0; 3],
    };
    let [v1, v2, v3, _] = near.simplex;
    let begun = match near.count {
        2 => p.around_segment(two, [v1, v2]),
        3 => p.around_triangle(two, [v1, v2, v3]),
        4 => p.around_tetrahedron(two, near.simplex),
        _ => false,
    };
    if !begun {
        return None;
    }
    let f = p.grow(two)?;
    let t = f.corners.map(|c| p.corners[c]);
    let w = coordinates(t.map(|v| v.d), f.foot);
    Some((-f.dist2.sqrt(), [mix(w, t.map(|v| v.a)), mix(w, t.map(|v| v.b))], t))
}

impl Polytope {
    fn insert(&mut self, v: Vertex) -> usize {
        self.corners[self.corner_count] = v;
        self.corner_count += 1;
        self.corner_count - 1
    }

    /// Inserts the farthest point along `dir`, whose length is `len`.
    fn extend(&mut self, two: &Two, dir: Vec3, len: f64) -> usize {
        let dir = if len > TINY { dir.map(|x| x / len) } else { [1.0, 0.0, 0.0] };
        self.insert(two.support(dir))
    }

    /// Adds a facet; returns its squared distance from the origin, 0 where it has no plane.
    fn attach(&mut self, corners: [usize; 3], beyond: [usize; 3]) -> f64 {
        let [p1, p2, p3] = corners.map(|c| self.corners[c].d);
        let f = &mut self.facets[self.facet_count];
        self.facet_count += 1;
        (f.corners, f.beyond) = (corners, beyond);
        let Some(mut o) = foot(p3, p2, p1) else { return 0.0 };
        if dot(o, sub(p1, self.centre)) < 0.0 {
            o = neg(o);
        }
        (f.foot, f.dist2, f.place) = (o, dot(o, o), Place::Surface);
        f.dist2
    }

    fn suggest(&mut self, facet: usize) {
        self.facets[facet].place = Place::Candidate(self.candidate_count);
        self.candidates[self.candidate_count] = facet;
        self.candidate_count += 1;
    }

    fn remove(&mut self, facet: usize) {
        if let Place::Candidate(k) = self.facets[facet].place {
            self.candidate_count -= 1;
            let moved = self.candidates[self.candidate_count];
            self.candidates[k] = moved;
            self.facets[moved].place = Place::Candidate(k);
        }
        self.facets[facet].place = Place::Gone;
    }

    /// Attaches facets until one holds the origin, whose corners it then returns.
    fn attach_all(&mut self, facets: &[([usize; 3], [usize; 3])]) -> Result<(), [usize; 3]> {
        for &(corners, beyond) in facets {
            if self.attach(corners, beyond) < TINY * TINY {
                return Err(corners);
            }
        }
        Ok(())
    }

    /// Begins anew around a facet that holds the origin.
    fn restart(&mut self, two: &Two, corners: [usize; 3]) -> bool {
        let t = corners.map(|c| self.corners[c]);
        (self.corner_count, self.facet_count, self.candidate_count) = (0, 0, 0);
        self.around_triangle(two, t)
    }

    fn suggest_all(&mut self) -> bool {
        for k in 0..self.facet_count {
            self.suggest(k);
        }
        true
    }

    /// Two tetrahedra over a triangle around the middle of the segment.
    fn around_segment(&mut self, two: &Two, s: [Vertex; 2]) -> bool {
        let [p, q] = s.map(|v| v.d);
        self.centre = scale(add(p, q), 0.5);
        let axis = sub(q, p);
        let mut least = 0;
        for k in 1..3 {
            if axis[k].abs() < axis[least].abs() {
                least = k;
            }
        }
        let mut e = [0.0; 3];
        e[least] = 1.0;
        let d1 = cross(e, axis);
        let third = third_of_turn(axis);
        let d2 = turn(&third, d1);
        let d3 = turn(&third, d2);
        let [a, b] = s.map(|v| self.insert(v));
        let [u, v, w] = [d1, d2, d3].map(|d| self.extend(two, d, norm(d)));
        let facets = [
            ([a, u, v], [1, 3, 2]),
            ([a, w, u], [2, 4, 0]),
            ([a, v, w], [0, 5, 1]),
            ([b, v, u], [5, 0, 4]),
            ([b, u, w], [3, 1, 5]),
            ([b, w, v], [4, 2, 3]),
        ];
        if let Err(corners) = self.attach_all(&facets) {
            return self.restart(two, corners);
        }
        // convex only if the segment passes through the triangle
        let [u, v, w] = [u, v, w].map(|k| sub(self.corners[k].d, p));
        let sides = [triple(u, v, axis), triple(v, w, axis), triple(w, u, axis)];
        (sides.iter().all(|&x| x >= 0.0) || sides.iter().all(|&x| x <= 0.0)) && self.suggest_all()
    }

    /// Two tetrahedra over the triangle.
    fn around_triangle(&mut self, two: &Two, t: [Vertex; 3]) -> bool {
        let d = t.map(|v| v.d);
        self.centre = scale(add(add(d[0], d[1]), d[2]), 1.0 / 3.0);
        let n = cross(sub(d[1], d[0]), sub(d[2], d[0]));
        let len = norm(n);
        if len < TINY {
            return false;
        }
        let [a, b, c] = t.map(|v| self.insert(v));
        let down = self.extend(two, neg(n), len);
        let up = self.extend(two, n, len);
        if on_triangle(d, self.corners[up].d) || on_triangle(d, self.corners[down].d) {
            return false;
        }
        let facets = [
            ([up, a, b], [1, 3, 2]),
            ([up, c, a], [2, 4, 0]),
            ([up, b, c], [0, 5, 1]),
            ([down, b, a], [5, 0, 4]),
            ([down, a, c], [3, 1, 5]),
            ([down, c, b], [4, 2, 3]),
        ];
        self.attach_all(&facets).is_ok() && self.suggest_all()
    }

    /// The tetrahedron itself.
    fn around_tetrahedron(&mut self, two: &Two, s: [Vertex; 4]) -> bool {
        let d = s.map(|v| v.d);
        self.centre = scale(add(add(add(d[0], d[1]), d[2]), d[3]), 0.25);
        let [a, b, c, e] = s.map(|v| self.insert(v));
        let facets = [([a, b, c], [1, 3, 2]), ([a, e, b], [2, 3, 0]), ([a, c, e], [0, 3, 1]), ([e, c, b], [2, 0, 1])];
        if let Err(corners) = self.attach_all(&facets) {
            return self.restart(two, corners);
        }
        let [p, q, r, s] = d;
        let around = same_side(p, q, r, s) && same_side(q, r, s, p) && same_side(r, s, p, q) && same_side(s, p, q, r);
        around && self.suggest_all()
    }

    /// Grows the polytope; returns the facet that holds the deepest point.
    fn grow(&mut self, two: &Two) -> Option<Facet> {
        // the depth is at least the nearest facet's distance and at most `upper`
        let (mut upper, mut upper2) = (f64::MAX, f64::MAX);
        let mut nearest: Option<usize> = None;
        for step in 0..STEPS {
            let before = nearest;
            let mut lower2 = f64::MAX;
            for &f in &self.candidates[..self.candidate_count] {
                if self.facets[f].dist2 < lower2 {
                    (nearest, lower2) = (Some(f), self.facets[f].dist2);
                }
            }
            if lower2 > upper2 || nearest.is_none() {
                nearest = before;
                break;
            }
            if lower2 <= 0.0 {
                break;
            }
            let f = nearest?;
            let lower = lower2.sqrt();
            let outward = self.facets[f].foot;
            let w = self.extend(two, outward, lower);
            let bound = dot(outward, self.corners[w].d) / lower;
            if bound < upper {
                (upper, upper2) = (bound, bound * bound);
            }
            if upper - lower < TOLERANCE {
                if step == 0 && upper < lower - 1e-10 {
                    return None;
                }
                break;
            }
            self.open(f, self.corners[w].d);
            if self.hole_count < 3 {
                return None;
            }
            if self.facet_count + self.hole_count > FACETS {
                break;
            }
            if !self.close(w, lower2, upper2) {
                return None;
            }
            if self.candidate_count == 0 {
                break;
            }
        }
        nearest.map(|f| self.facets[f])
    }

    /// Removes the facets seen from `w`, beginning with `f`, and lists the edges of the hole in order.
    fn open(&mut self, f: usize, w: Vec3) {
        self.remove(f);
        let Facet { corners, beyond, .. } = self.facets[f];
        for k in 0..3 {
            self.cross_edge(beyond[k], corners[(k + 1) % 3], w);
        }
    }

    /// Goes over the edge of facet `f` that begins at vertex `from`: removes the facet if it is seen from `w`, and those
    /// beyond it, or else adds the edge to the hole.
    fn cross_edge(&mut self, f: usize, from: usize, w: Vec3) {
        let Facet { corners, beyond, foot, dist2, place } = self.facets[f];
        if place == Place::Gone {
            return;
        }
        let edge = self.facets[f].edge_from(from);
        if dot(foot, w) - dist2 > TINY {
            self.remove(f);
            for k in [(edge + 1) % 3, (edge + 2) % 3] {
                self.cross_edge(beyond[k], corners[(k + 1) % 3], w);
            }
        } else if let Some(slot) = self.hole.get_mut(self.hole_count) {
            *slot = (f, edge);
            self.hole_count += 1;
        }
    }

    /// Closes the hole with facets to vertex `w`, of which those between the bounds may be the nearest; false where one
    /// has no plane.
    fn close(&mut self, w: usize, lower2: f64, upper2: f64) -> bool {
        let (first, n) = (self.facet_count, self.hole_count);
        self.hole_count = 0;
        for k in 0..n {
            let (f, edge) = self.hole[k];
            let outer = &mut self.facets[f];
            let (from, to) = (outer.corners[edge], outer.corners[(edge + 1) % 3]);
            outer.beyond[edge] = first + k;
            let dist2 = self.attach([w, to, from], [first + (k + n - 1) % n, f, first + (k + 1) % n]);
            if dist2 == 0.0 {
                return false;
            }
            if dist2 >= lower2 && dist2 <= upper2 {
                self.suggest(first + k);
            }
        }
        true
    }
}

/// Rotation by 120° about `axis`.
///
/// The sine has eleven digits, as in MuJoCo: more would change the search.
fn third_of_turn(axis: Vec3) -> Mat {
    const SIN: f64 = 0.86602540378;
    const COS: f64 = -0.5;
    let n = norm(axis);
    let [x, y, z] = axis.map(|a| a / n);
    let c = 1.0 - COS;
    [
        COS + x * x * c,
        x * y * c - z * SIN,
        x * z * c + y * SIN,
        y * x * c + z * SIN,
        COS + y * y * c,
        y * z * c - x * SIN,
        x * z * c - y * SIN,
        y * z * c + x * SIN,
        COS + z * z * c,
    ]
}

/// Whether the origin and `other` are strictly on the same side of the plane through `p`, `q`, `r`.
fn same_side(p: Vec3, q: Vec3, r: Vec3, other: Vec3) -> bool {
    let n = cross(sub(q, p), sub(r, p));
    let (a, b) = (dot(n, sub(other, p)), dot(n, neg(p)));
    (a > 0.0 && b > 0.0) || (a < 0.0 && b < 0.0)
}

/// Whether `p` is a point of the triangle.
fn on_triangle(t: [Vec3; 3], p: Vec3) -> bool {
    let w = coordinates(t, p);
    w.iter().all(|&x| x >= 0.0) && norm(sub(mix(w, t), p)) < TINY
}
