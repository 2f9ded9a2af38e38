//! A sphere or a capsule with a box.
//!
//! The capsule is reduced to one or two of its balls: the one nearest to the box, and where the capsule lies along a
//! face or an edge also the farthest one that is still over it.
use super::vec3::*;
use super::{List, Pose, Touch};

/// Corner `k` of a box of half lengths `size`: bit `i` of `k` says on which side along axis `i`.
pub(super) fn corner(size: Vec3, k: usize) -> Vec3 {
    std::array::from_fn(|i| if k >> i & 1 == 1 { size[i] } else { -size[i] })
}

/// A ball of `radius` at `centre`; one whose centre is inside leaves through the nearest face.
pub(super) fn sphere(centre: Vec3, radius: f64, b: &Pose, size: Vec3, margin: f64, out: &mut List) {
    let local = unturn(&b.mat, sub(centre, b.pos));
    let clamped: Vec3 =
        std::array::from_fn(|i| if size[i] > 0.0 { local[i].max(-size[i]).min(size[i]) } else { local[i] });
    let (inward, gap) = unit(sub(clamped, local));
    if gap - radius > margin {
        return;
    }
    let (dist, pos, normal) = if gap <= TINY {
        let mut depth = (size[0] + size[1] + size[2]) * 2.0;
        let mut normal = [0.0; 3];
        for k in 0..6 {
            let (i, side) = (k / 2, if k % 2 == 1 { 1.0 } else { -1.0 });
            let d = (side * size[i] - local[i]).abs();
            if d < depth {
                depth = d;
                normal = [0.0; 3];
                normal[i] = -side;
            }
        }
        (-depth, along(local, normal, (radius - depth) / 2.0), normal)
    } else {
        (gap, add(scale(clamped, 0.5), scale(along(local, inward, radius), 0.5)), inward)
    };
    out.push(Touch::free(dist - radius, add(turn(&b.mat, pos), b.pos), turn(&b.mat, normal)));
}

/// What of the box is nearest to the capsule's segment.
enum Nearest {
    /// Nothing was nearer than the start value.
    Nothing,
    /// A face: the segment's end is over the face across this axis, or inside the box.
    Face { across: Option<usize> },
    /// The interior of an edge along an axis, at `x` in [−1, 1].
    Edge { along: usize, low: usize, x: f64 },
    /// A corner, numbered as in [`corner`].
    Corner(usize),
}

/// A capsule of `radius`, `half` in the box's frame.
struct Segment {
    centre: Vec3,
    axis: Vec3,
    /// `half` axes long: the segment is `centre + t arm`, `t` in [−1, 1].
    arm: Vec3,
    half: f64,
}

impl Segment {
    /// Bit `i`: the arm points up along axis `i`.
    fn octant(&self) -> usize {
        (0..3).filter(|&i| self.arm[i] > 0.0).map(|i| 1 << i).sum()
    }
}

/// Up to two balls of the capsule against the box.
pub(super) fn capsule(c: &Pose, radius: f64, half: f64, b: &Pose, size: Vec3, margin: f64, out: &mut List) {
    let axis = unturn(&b.mat, c.axis());
    let s = Segment { centre: unturn(&b.mat, sub(c.pos, b.pos)), axis, arm: scale(axis, half), half };
    // compared with squared distances, so that a capsule much longer than 1 m away may find nothing, as in MuJoCo
    let far = margin + 2.0 * (radius + half + size[0] + size[1] + size[2]);
    let (nearest, t) = nearest(&s, size, far);
    let second = match nearest {
        Nearest::Nothing => return,
        Nearest::Face { across } => across.map(|f| over_face(&s, size, f, t)),
        Nearest::Edge { along, low, x } => over_edge(&s, size, along, low, x, t),
        Nearest::Corner(k) => over_corner(&s, size, k, t),
    };
    let mut at = |t: f64| {
        let centre = add(turn(&b.mat, along(s.centre, s.arm, t)), b.pos);
        sphere(centre, radius, b, size, margin, out);
    };
    at(t);
    if let Some(step) = second {
        at(step + t);
    }
}

/// The nearest feature of the box and where on the segment it is nearest.
fn nearest(s: &Segment, size: Vec3, far: f64) -> (Nearest, f64) {
    let (mut best, mut found, mut at) = (far, Nearest::Nothing, 0.0);

    // ends that are over at most one face
    for t in [-1.0, 1.0] {
        let end = along(s.centre, s.arm, t);
        let (mut clamped, mut outside, mut across) = (end, 0, None);
        for i in 0..3 {
            if end[i] < -size[i] || end[i] > size[i] {
                clamped[i] = if end[i] < 0.0 { -size[i] } else { size[i] };
                outside += 1;
                across = Some(i);
            }
        }
        if outside > 1 {
            continue;
        }
        let gap = sub(clamped, end);
        let gap2 = dot(gap, gap);
        if gap2 < best {
            (best, at, found) = (gap2, t, Nearest::Face { across });
        }
    }

    // nearest points of the segment and each of the twelve edges
    for j in 0..3 {
        for low in (0..8).filter(|k| k >> j & 1 == 0) {
            let mut middle = corner(size, low);
            middle[j] = 0.0;
            let from = sub(middle, s.centre);
            let Some(Meeting { x, t, end }) = meet(s, from, size[j], j) else { continue };
            let mut gap = along(from, s.arm, -t);
            gap[j] += size[j] * x;
            let gap2 = dot(gap, gap);
            // a hair less, or an axis parallel to the box would choose by rounding
            if gap2 < best - TINY {
                (best, at) = (gap2, t);
                found = match end {
                    End::Low => Nearest::Corner(low),
                    End::High => Nearest::Corner(low + (1 << j)),
                    End::Neither => Nearest::Edge { along: j, low, x },
                };
            }
        }
    }
    (found, at)
}

/// To which end of the box's edge a solution was clipped.
enum End {
    Low,
    High,
    Neither,
}

/// Nearest points of an edge, at `x`, and the segment, at `t`, both in [−1, 1].
struct Meeting {
    x: f64,
    t: f64,
    /// Of `x`; of its first clip where a second one moved it off the end again.
    end: End,
}

/// Nearest points of the segment and the edge `from + x size e_j` (seen from the segment's centre); none if parallel.
fn meet(s: &Segment, from: Vec3, size: f64, j: usize) -> Option<Meeting> {
    let (m11, m12, m22) = (size * size, -size * s.arm[j], s.half * s.half);
    let (u, v) = (-size * from[j], dot(s.arm, from));
    let det = m11 * m22 - m12 * m12;
    if det.abs() < TINY {
        return None;
    }
    let inv = 1.0 / det;
    let (mut x, mut t) = ((m22 * u - m12 * v) * inv, (m11 * v - m12 * u) * inv);
    let mut end = End::Neither;
    let mut clip = |x: f64| {
        if x > 1.0 {
            end = End::High;
            1.0
        } else if x < -1.0 {
            end = End::Low;
            -1.0
        } else {
            x
        }
    };
    let free = x;
    x = clip(x);
    if free.abs() > 1.0 {
        t = (v - m12 * x) * (1.0 / m22);
    }
    if t.abs() > 1.0 {
        t = t.signum();
        x = clip((u - m12 * t) * (1.0 / m11));
    }
    Some(Meeting { x, t, end })
}

/// The axis of a one-bit mask, and the two that follow it in cyclic order.
fn cycle(bit: usize) -> [usize; 3] {
    let i = bit.trailing_zeros() as usize;
    [i, (i + 1) % 3, (i + 2) % 3]
}

/// The step from `t` to the far ball of a capsule whose end at `t` is over the face across axis `face`.
fn over_face(s: &Segment, size: Vec3, face: usize, t: f64) -> f64 {
    let end = along(s.centre, s.arm, t);
    let mut step: f64 = 2.0;
    for i in (0..3).filter(|&i| i != face) {
        for side in [size[i], -size[i]] {
            let reach = (side - end[i]) / s.arm[i] * -t;
            if reach > 0.0 && reach < step {
                step = reach;
            }
        }
    }
    step * -t
}

/// The least of `step` and the steps in which the arm crosses the whole box along the given axes; a NaN is passed over.
fn within(step: f64, s: &Segment, size: Vec3, axes: &[usize]) -> f64 {
    axes.iter().fold(step, |step, &i| less(2.0 * size[i] / s.arm[i].abs(), step))
}

fn less(a: f64, b: f64) -> f64 {
    if a < b { a } else { b }
}

/// The step from `t`, nearest to corner `k`, to a ball along an edge or a face; none if the capsule points at the corner.
fn over_corner(s: &Segment, size: Vec3, k: usize, t: f64) -> Option<f64> {
    let (bit, sign) = match s.octant() ^ k {
        0 | 7 => return None,
        m @ (1 | 2 | 4) => (m, 1.0),
        m => (7 - m, -1.0),
    };
    let [i, j, k] = cycle(bit);
    Some(if s.axis[i] * s.axis[i] > 0.5 {
        within(1.0 - sign * t, s, size, &[i]) * sign
    } else {
        within(1.0 + sign * t, s, size, &[j, k]) * -sign
    })
}

/// The step from `t`, nearest to `x` on the edge of axis `i`, to the far ball over the face with which the capsule makes
/// the smaller angle; none if the capsule points at the edge.
fn over_edge(s: &Segment, size: Vec3, i: usize, low: usize, x: f64, t: f64) -> Option<f64> {
    let octant = s.octant();
    let bits = (octant ^ low) & (7 - (1 << i));
    if bits.count_ones() != 1 {
        return None;
    }
    let [_, j, k] = cycle(1 << i);
    let flat = if s.axis[j].abs() > s.axis[k].abs() { j } else { k };
    let ahead = bits >> flat & 1 == 1;
    let sign = if ahead { 1.0 } else { -1.0 };
    let step = within(1.0 - sign * t, s, size, &[flat]);
    let rest = if (octant >> i & 1 == 1) == ahead { 1.0 - x } else { 1.0 + x };
    Some(less(size[i] * rest / s.arm[i].abs(), step) * sign)
}
