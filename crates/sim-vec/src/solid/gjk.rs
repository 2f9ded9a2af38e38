//! Nearest points of two convex sets (Gilbert, Johnson and Keerthi 1988).
//!
//! The difference of the sets is approached from inside: at each step the simplex of up to four of its points is
//! extended by the farthest one towards the origin and reduced to the part that holds the nearest point `x`. With the
//! new point `s`, the distance is between `x·s/‖x‖` and `‖x‖`, and the error of `‖x‖²` is at most `x·(x − s)`.
use super::simplex::{of_segment, of_tetrahedron, of_triangle};
use super::support::{Two, Vertex};
use super::vec3::*;

/// MuJoCo's default `ccd_iterations`.
pub(super) const STEPS: usize = 35;
/// MuJoCo's default `ccd_tolerance`, in metres.
pub(super) const TOLERANCE: f64 = 1e-6;

/// Where the search ended.
#[derive(Clone, Copy, Debug)]
pub(super) struct Nearest {
    /// Of the sets; 0 where they overlap, `f64::MAX` where they are only known to be apart.
    pub dist: f64,
    /// A plane between the sets was found.
    pub apart: bool,
    /// The nearest points, in each set.
    pub on: [Vec3; 2],
    pub simplex: [Vertex; 4],
    /// How many of `simplex` count.
    pub count: usize,
}

/// What a tetrahedron that walks towards the origin found.
enum Walk {
    Inside,
    Apart,
    /// The origin is on the plane of a facet, or there were too many steps.
    Unclear,
}

/// Nearest points; `cutoff` is the distance beyond which sets need not be told apart.
///
/// At zero only overlap is asked for: any plane between the sets ends the search.
pub(super) fn nearest(two: &Two, cutoff: f64) -> Nearest {
    let measure = cutoff > 0.0;
    let mut walk = !measure;
    let mut near = Nearest {
        dist: f64::MAX,
        apart: false,
        on: [two.a.pose.pos, two.b.pose.pos],
        simplex: [Vertex::default(); 4],
        count: 0,
    };
    let mut weights = [0.0; 4];
    let mut n = 0;
    let mut x = sub(near.on[0], near.on[1]);
    let (mut len, mut last) = (norm(x), 0.0f64);
    let towards = |x: Vec3, len: f64| two.support(neg(scale(x, 1.0 / len)));

    let mut step = 0;
    while step < STEPS {
        if len < TOLERANCE || (last - len).abs() < TINY {
            break;
        }
        near.simplex[n] = towards(x, len);
        let s = near.simplex[n].d;
        if dot(x, sub(x, s)) < 0.5 * (TOLERANCE * TOLERANCE) {
            break;
        }
        let lower = dot(x, s);
        if lower > 0.0 && (!measure || lower >= cutoff * len) {
            return Nearest { apart: true, count: 0, ..near };
        }
        if n == 3 && walk {
            let mut simplex = near.simplex;
            match contains_origin(two, &mut simplex, &mut step) {
                Walk::Inside => return Nearest { dist: 0.0, simplex, count: 4, ..near },
                Walk::Apart => return Nearest { apart: true, count: 0, ..near },
                Walk::Unclear => walk = false,
            }
        }
        let d = near.simplex.map(|v| v.d);
        weights = [0.0; 4];
        match n {
            0 => weights[0] = 1.0,
            1 => weights[..2].copy_from_slice(&of_segment(d[0], d[1])),
            2 => weights[..3].copy_from_slice(&of_triangle(d[0], d[1], d[2])),
            _ => weights = of_tetrahedron(d),
        }
        n = 0;
        for i in 0..4 {
            if weights[i] != 0.0 {
                near.simplex[n] = near.simplex[i];
                weights[n] = weights[i];
                n += 1;
            }
        }
        if n == 0 {
            return Nearest { apart: true, count: 0, ..near };
        }
        x = blend(&weights, &near.simplex[..n], |v| v.d);
        (last, len) = (len, norm(x));
        if n == 4 {
            break;
        }
        step += 1;
    }
    if n > 0 {
        near.on = [blend(&weights, &near.simplex[..n], |v| v.a), blend(&weights, &near.simplex[..n], |v| v.b)];
    }
    near.apart = dot(x, towards(x, len).d) > 0.0;
    near.count = n;
    near.dist = if n == 4 && !near.apart { 0.0 } else { len };
    near
}

/// Weighted sum of one of the points of each vertex.
fn blend(weights: &[f64; 4], simplex: &[Vertex], point: impl Fn(&Vertex) -> Vec3) -> Vec3 {
    let mut sum = [0.0; 3];
    for (i, v) in simplex.iter().enumerate() {
        let p = point(v);
        for c in 0..3 {
            sum[c] = if i == 0 { weights[i] * p[c] } else { sum[c] + weights[i] * p[c] };
        }
    }
    sum
}

/// Walks a tetrahedron towards the origin: the vertex opposite to the facet that the origin is farthest beyond is
/// replaced by the farthest point beyond that facet.
fn contains_origin(two: &Two, simplex: &mut [Vertex; 4], step: &mut usize) -> Walk {
    // facets as seen from outside; a swap after each replacement keeps the orientation
    const FACETS: [[usize; 3]; 4] = [[2, 1, 3], [0, 2, 3], [1, 0, 3], [0, 1, 2]];
    while *step < STEPS {
        let mut height = [f64::MAX; 4];
        let mut normal = [[0.0; 3]; 4];
        for (k, [i, j, l]) in FACETS.into_iter().enumerate() {
            let corner = simplex[i].d;
            let n = cross(sub(simplex[l].d, corner), sub(simplex[j].d, corner));
            let n2 = dot(n, n);
            if n2 > TINY * TINY && n2 < 1e20 {
                normal[k] = scale(n, 1.0 / n2.sqrt());
                height[k] = dot(normal[k], corner);
            }
        }
        if height.contains(&0.0) {
            return Walk::Unclear;
        }
        let i = if height[0] < height[1] { 0 } else { 1 };
        let j = if height[2] < height[3] { 2 } else { 3 };
        let worst = if height[i] < height[j] { i } else { j };
        if height[worst] > 0.0 {
            return Walk::Inside;
        }
        simplex[worst] = two.support(normal[worst]);
        if dot(normal[worst], simplex[worst].d) < 0.0 {
            return Walk::Apart;
        }
        simplex.swap((worst + 1) & 3, (worst + 2) & 3);
        *step += 1;
    }
    Walk::Unclear
}
