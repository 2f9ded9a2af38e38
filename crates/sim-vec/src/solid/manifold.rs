//! More than one contact of two convex solids that meet with flat or straight features.
//!
//! The corners at which the search for the nearest points ended say which faces and edges of each solid may be in
//! contact. Two opposing faces, or an edge along a face, are clipped to each other; each corner of what remains is a
//! contact. A cylinder's cap stands as a polygon of sixteen corners, its side as a line, as a capsule's.
use super::boxes::corner;
use super::vec3::*;
use super::{List, Pose, Solid, Touch};

/// Cosine of the largest angle of two faces' normals that still face each other.
const FACING: f64 = 0.996;
/// Sine of the largest angle of an edge to a face that it still lies on.
const FLAT: f64 = 0.0888;
/// Corners of a cylinder's cap.
const ROUND: usize = 16;
/// Corners of two clipped faces, with some for rounding.
const ROOM: usize = 2 * ROUND + 8;
/// Most contacts of two faces.
const QUAD: usize = 4;

/// A solid and where the search for the nearest points ended on it.
#[derive(Clone, Copy)]
pub(super) struct Site<'a> {
    pub solid: &'a Solid,
    pub pose: &'a Pose,
    pub corners: [Vec3; 3],
}

/// A polygon, or an edge if it has two corners.
#[derive(Clone, Copy)]
struct Polygon {
    count: usize,
    points: [Vec3; ROOM],
}

/// Faces by outward normal, and edges by direction and other end; a few of each.
struct Few<T> {
    count: usize,
    items: [T; 3],
}

impl<T: Copy> Few<T> {
    fn none(x: T) -> Self {
        Few { count: 0, items: [x; 3] }
    }

    fn one(x: T) -> Self {
        Few { count: 1, items: [x; 3] }
    }

    fn push(&mut self, x: T) {
        if let Some(slot) = self.items.get_mut(self.count) {
            *slot = x;
            self.count += 1;
        }
    }

    fn iter(&self) -> impl Iterator<Item = &T> {
        self.items[..self.count].iter()
    }
}

/// A face: outward normal, axis and side.
type Face = (Vec3, usize, bool);

/// Contacts of the features at which two solids meet, with `normal` from the first to the second; none where there are
/// no such features, so that the contact at the nearest points stands.
pub(super) fn features(a: Site, b: Site, normal: Vec3, margin: f64, out: &mut List) -> bool {
    let (a, b) = (a.distinct(), b.distinct());
    let (faces_a, faces_b) = (a.faces(normal), b.faces(neg(normal)));
    let facing = faces_a.iter().find_map(|f| faces_b.iter().find(|g| dot(f.0, g.0) < -FACING).map(|g| (*f, *g)));
    if let Some((f, g)) = facing {
        let face = a.polygon(f);
        let polygon = clipped(b.polygon(g), &face, f.0, margin);
        return contacts(&polygon, face.points[0], f.0, neg(g.0), Keep::Foot, out);
    }
    if let Some((edge, g)) = lying(&a.edges(normal), &faces_b) {
        let face = b.polygon(g);
        let polygon = clipped(edge, &face, g.0, margin);
        return contacts(&polygon, face.points[0], g.0, neg(g.0), Keep::First, out);
    }
    let Some((edge, f)) = lying(&b.edges(neg(normal)), &faces_a) else { return false };
    let face = a.polygon(f);
    let polygon = clipped(edge, &face, f.0, margin);
    contacts(&polygon, face.points[0], f.0, f.0, Keep::Foot, out)
}

/// The first edge that lies on one of the faces.
fn lying(edges: &Few<[Vec3; 2]>, faces: &Few<Face>) -> Option<(Polygon, Face)> {
    faces.iter().find_map(|f| {
        let edge = edges.iter().find(|[p, q]| dot(unit(sub(*q, *p)).0, f.0).abs() < FLAT)?;
        Some((Polygon::new(edge), *f))
    })
}

/// Which solid the corners of a polygon are on.
enum Keep {
    /// On the first, so that the second is `dist` along the normal.
    First,
    /// On the second; its foot on the face is on the first.
    Foot,
}

/// Contacts at the corners of a polygon, at their heights over a face with a point and a `face_normal`.
fn contacts(polygon: &Polygon, point: Vec3, face_normal: Vec3, normal: Vec3, keep: Keep, out: &mut List) -> bool {
    out.count = if polygon.count > 0 { 0 } else { out.count };
    for &p in polygon.points() {
        let height = dot(sub(p, point), face_normal);
        let (first, dist) = match keep {
            Keep::First => (p, height),
            Keep::Foot => (along(p, face_normal, -height), height * dot(face_normal, normal)),
        };
        out.push(Touch::free(dist, along(first, normal, 0.5 * dist), unit(normal).0));
    }
    polygon.count > 0
}

/// A site with the number of distinct corners.
struct Ranked<'a> {
    site: Site<'a>,
    /// The corner that each of the three is, as its sides: bit `i` is set on the upper side of axis `i`.
    index: [usize; 3],
    corners: [Vec3; 3],
    /// One, two or three distinct corners.
    rank: usize,
}

impl<'a> Site<'a> {
    fn distinct(self) -> Ranked<'a> {
        let bits = match self.solid {
            Solid::Box { .. } => 7,
            _ => 4,
        };
        let mut index = self.corners.map(|c| {
            let l = unturn(&self.pose.mat, sub(c, self.pose.pos));
            (0..3).filter(|&i| l[i] > 0.0).map(|i| 1 << i).sum::<usize>() & bits
        });
        let mut corners = self.corners;
        let rank = if index[0] == index[1] {
            if index[0] == index[2] {
                1
            } else {
                index[1] = index[2];
                corners[1] = corners[2];
                2
            }
        } else if index[2] == index[0] || index[2] == index[1] {
            2
        } else {
            3
        };
        Ranked { site: self, index, corners, rank }
    }
}

impl Ranked<'_> {
    fn face(&self, axis: usize, up: bool) -> Face {
        let n = column(&self.site.pose.mat, axis);
        (if up { n } else { neg(n) }, axis, up)
    }

    /// Faces that all the corners are on.
    fn faces(&self, dir: Vec3) -> Few<Face> {
        let mut found = Few::none(self.face(2, true));
        let shared = |axis: usize| {
            let bits = self.index.map(|k| k >> axis & 1);
            bits[..self.rank].iter().all(|&b| b == bits[0]).then_some(bits[0] == 1)
        };
        match self.site.solid {
            Solid::Box { .. } => {
                for axis in 0..3 {
                    if let Some(up) = shared(axis) {
                        found.push(self.face(axis, up));
                    }
                }
                if found.count == 4 - self.rank {
                    return found;
                }
                // a diagonal: the face along the normal, if any
                let local = unturn(&self.site.pose.mat, dir);
                let local = scale(local, 1.0 / norm(local));
                for axis in 0..3 {
                    for up in [true, false] {
                        if (if up { local[axis] } else { -local[axis] }) > FACING {
                            return Few::one(self.face(axis, up));
                        }
                    }
                }
                Few::none(found.items[0])
            }
            Solid::Cylinder { .. } => {
                if let Some(up) = shared(2) {
                    found.push(self.face(2, up));
                }
                found
            }
            _ => found,
        }
    }

    /// Edges from the first corner.
    fn edges(&self, dir: Vec3) -> Few<[Vec3; 2]> {
        let pose = self.site.pose;
        let world = |l: Vec3| add(turn(&pose.mat, l), pose.pos);
        let start = self.corners[0];
        match *self.site.solid {
            Solid::Box { size } => {
                if self.rank == 2 {
                    return Few::one([start, self.corners[1]]);
                }
                let mut found = Few::none([start; 2]);
                for axis in 0..3 {
                    found.push([start, world(corner(size, self.index[0] ^ 1 << axis))]);
                }
                found
            }
            Solid::Cylinder { radius, half } => {
                let l = unturn(&pose.mat, sub(start, pose.pos));
                let len = (l[0] * l[0] + l[1] * l[1]).sqrt();
                let (x, y) = (l[0] / len * radius, l[1] / len * radius);
                let z = if l[2] > 0.0 { half } else { -half };
                // the corner itself, unless a layer moved it off the side
                let on_side = (len - radius).abs() < 1e-9 * radius;
                let start = if on_side { start } else { world([x, y, z]) };
                Few::one([start, along(start, pose.axis(), -2.0 * z)])
            }
            Solid::Capsule { radius, half } => {
                let axis = pose.axis();
                let out = scale(along(dir, axis, -dot(dir, axis)), radius);
                Few::one([-half, half].map(|z| add(along(pose.pos, axis, z), out)))
            }
            _ => Few::none([start; 2]),
        }
    }

    /// Corners of a face, clockwise seen from outside.
    fn polygon(&self, (_, axis, up): Face) -> Polygon {
        let pose = self.site.pose;
        let world = |l: Vec3| add(turn(&pose.mat, l), pose.pos);
        match *self.site.solid {
            Solid::Box { size } => {
                // sides along the three axes of the corners of the six faces
                const CORNERS: [[usize; 4]; 6] =
                    [[7, 3, 1, 5], [2, 6, 4, 0], [2, 3, 7, 6], [4, 5, 1, 0], [6, 7, 5, 4], [3, 2, 0, 1]];
                Polygon::new(&CORNERS[2 * axis + usize::from(!up)].map(|k| world(corner(size, k))))
            }
            Solid::Cylinder { radius, half } => Polygon::new(&std::array::from_fn::<_, ROUND, _>(|k| {
                let angle = std::f64::consts::TAU * k as f64 / ROUND as f64;
                let (sin, cos) = angle.sin_cos();
                let (z, y) = if up { (half, -sin) } else { (-half, sin) };
                world([radius * cos, radius * y, z])
            })),
            _ => Polygon::new(&[]),
        }
    }
}

impl Polygon {
    fn new(points: &[Vec3]) -> Self {
        let mut p = Polygon { count: 0, points: [[0.0; 3]; ROOM] };
        points.iter().for_each(|&x| p.push(x));
        p
    }

    fn points(&self) -> &[Vec3] {
        &self.points[..self.count]
    }

    fn push(&mut self, p: Vec3) {
        if let Some(slot) = self.points.get_mut(self.count) {
            *slot = p;
            self.count += 1;
        }
    }

    /// Keeps the part on the inner side of the line from `p` to `q` of a face with `normal`.
    fn clip(&self, p: Vec3, q: Vec3, normal: Vec3) -> Self {
        let inward = unit(cross(sub(q, p), sub(add(p, normal), p))).0;
        let offset = dot(inward, p);
        let inside = |x: Vec3| dot(sub(x, p), inward) > -TINY;
        let mut kept = Polygon::new(&[]);
        for i in 0..self.count {
            let (x, y) = (self.points[i], self.points[(i + 1) % self.count]);
            let (from, to) = (inside(x), inside(y));
            if from != to {
                let slope = dot(inward, sub(y, x));
                let t = (offset - dot(inward, x)) / slope;
                if slope != 0.0 && (0.0..=1.0).contains(&t) {
                    kept.push(along(x, sub(y, x), t));
                }
            }
            if to {
                kept.push(y);
            }
        }
        kept
    }
}

/// What of `subject` is over `face` and not above it by more than the margin, reduced to at most four corners; of an
/// edge, to its two ends.
fn clipped(subject: Polygon, face: &Polygon, normal: Vec3, margin: f64) -> Polygon {
    let edge = subject.count == 2;
    let mut rest = subject;
    for i in 0..face.count {
        rest = rest.clip(face.points[i], face.points[(i + 1) % face.count], normal);
    }
    let mut low = Polygon::new(&[]);
    for &p in rest.points() {
        if dot(sub(p, face.points[0]), normal) <= margin {
            low.push(p);
        }
    }
    if low.count > QUAD {
        return largest_quad(&low);
    }
    if edge && low.count > 2 {
        let (mut best, mut ends) = (0.0, [low.points[0], low.points[1]]);
        for i in 0..low.count {
            for j in i + 1..low.count {
                let d = sub(low.points[j], low.points[i]);
                if dot(d, d) > best {
                    (best, ends) = (dot(d, d), [low.points[i], low.points[j]]);
                }
            }
        }
        return Polygon::new(&ends);
    }
    low
}

/// Area of a quadrilateral, from two triangles.
fn area(a: Vec3, b: Vec3, c: Vec3, d: Vec3) -> f64 {
    0.5 * (norm(cross(sub(b, a), sub(c, a))) + norm(cross(sub(c, a), sub(d, a))))
}

/// Four corners of a convex polygon that enclose much of it, found by moving them around it in turn as long as the
/// area grows.
fn largest_quad(polygon: &Polygon) -> Polygon {
    let n = polygon.count;
    let of =
        |[a, b, c, d]: [usize; 4]| area(polygon.points[a], polygon.points[b], polygon.points[c], polygon.points[d]);
    let next = |k: usize| (k + 1) % n;
    let mut q = [0, 1, 2, 3];
    let (mut best, mut most) = (q, of(q));
    while q[0] < n {
        // the fourth corner, and after each of its moves the third and the second
        let mut advance = |q: &mut [usize; 4], k: usize| {
            let mut moved = *q;
            moved[k] = next(moved[k]);
            let grown = of(moved);
            let grows = grown > most;
            if grows {
                (most, *q, best) = (grown, moved, moved);
            }
            grows
        };
        while advance(&mut q, 3) {
            while advance(&mut q, 2) {}
            while advance(&mut q, 1) {}
        }
        for k in 1..4 {
            if q[k] != q[k - 1] {
                break;
            }
            q[k] = next(q[k]);
        }
        q[0] += 1;
    }
    Polygon::new(&best.map(|k| polygon.points[k]))
}
