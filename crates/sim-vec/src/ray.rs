//! Rays against shapes, one lane at a time in f64.
use crate::lane::Lane;
use crate::model::{Id, Model, Shape, Site, SiteShape};
use crate::state::Scratch;

/// Distance along a site's z axis to the nearest visible geom of another body, in each lane; −1 if there is none.
pub(crate) fn nearest<L: Lane>(model: &Model, x: &Scratch<L>, site: Id) -> L {
    let site = &model.sites[site];
    let mut out = L::zero();
    for lane in 0..L::W {
        let (pos, axes) = pose(x, site.body, site.pos, site.quat, lane);
        let along = [axes[2], axes[5], axes[8]];
        let mut best = f64::INFINITY;
        for g in model.geoms.iter().filter(|g| g.body != site.body && g.rgba[3] != 0.0) {
            let (origin, axes) = pose(x, g.body, g.pos, g.quat, lane);
            let (p, v) = (local(&axes, sub(pos, origin)), local(&axes, along));
            best = meets_geom(g.shape, p, v).map_or(best, |t| best.min(t));
        }
        out.set(lane, if best.is_finite() { best } else { -1.0 });
    }
    out
}

/// A ray, given globally, meets a site's surface or starts inside it.
pub(crate) fn meets_site<L: Lane>(x: &Scratch<L>, site: &Site, from: [f64; 3], along: [f64; 3], lane: usize) -> bool {
    let (origin, axes) = pose(x, site.body, site.pos, site.quat, lane);
    let (p, v) = (local(&axes, sub(from, origin)), local(&axes, along));
    let [r, h, _] = site.size;
    match site.shape {
        SiteShape::Sphere => ellipsoid([r; 3], p, v),
        SiteShape::Capsule => capsule(r, h, p, v),
        SiteShape::Ellipsoid => ellipsoid(site.size, p, v),
        SiteShape::Cylinder => cylinder(r, h, p, v),
        SiteShape::Box => cuboid(site.size, p, v),
    }
    .is_some()
}

/// Global position and axes (row-major) of a frame fixed to a body.
fn pose<L: Lane>(x: &Scratch<L>, body: Id, pos: [f64; 3], quat: [f64; 4], lane: usize) -> ([f64; 3], [f64; 9]) {
    let m = x.body.xmat[body].map(|e| e.get(lane));
    let o = x.body.xpos[body].map(|e| e.get(lane));
    let q = matrix(quat);
    let axes = std::array::from_fn(|i| (0..3).map(|k| m[3 * (i / 3) + k] * q[3 * k + i % 3]).sum());
    (std::array::from_fn(|i| o[i] + (0..3).map(|k| m[3 * i + k] * pos[k]).sum::<f64>()), axes)
}

fn matrix([w, x, y, z]: [f64; 4]) -> [f64; 9] {
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

fn local(axes: &[f64; 9], v: [f64; 3]) -> [f64; 3] {
    std::array::from_fn(|k| axes[k] * v[0] + axes[3 + k] * v[1] + axes[6 + k] * v[2])
}

fn sub(a: [f64; 3], b: [f64; 3]) -> [f64; 3] {
    std::array::from_fn(|k| a[k] - b[k])
}

/// Distance along the ray `p + t v` to a geom in its own frame.
fn meets_geom(shape: Shape, p: [f64; 3], v: [f64; 3]) -> Option<f64> {
    match shape {
        // seen from above only
        Shape::Plane => (v[2] <= -1e-15).then(|| -p[2] / v[2]).filter(|t| *t >= 0.0),
        Shape::Sphere { radius } => ellipsoid([radius; 3], p, v),
        Shape::Capsule { radius, half } => capsule(radius, half, p, v),
        Shape::Ellipsoid { size } => ellipsoid(size, p, v),
        Shape::Cylinder { radius, half } => cylinder(radius, half, p, v),
        Shape::Box { size } => cuboid(size, p, v),
        Shape::Visual { .. } => None,
    }
}

fn least(a: Option<f64>, b: Option<f64>) -> Option<f64> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (a, b) => a.or(b),
    }
}

fn ellipsoid(size: [f64; 3], p: [f64; 3], v: [f64; 3]) -> Option<f64> {
    ahead(quadric(p, v, [0.0; 3], size.map(|s| 1.0 / (s * s))))
}

/// The first crossing that is not behind.
fn ahead(t: [f64; 2]) -> Option<f64> {
    t.into_iter().find(|t| *t >= 0.0)
}

fn capsule(r: f64, h: f64, p: [f64; 3], v: [f64; 3]) -> Option<f64> {
    let along = |t: f64| p[2] + t * v[2];
    // only the nearer crossing of the round side counts, as in MuJoCo
    let side = round(r, p, v).filter(|t| along(*t).abs() <= h);
    let cap = |z: f64| quadric(p, v, [0.0, 0.0, z], [1.0 / (r * r); 3]).into_iter().filter(|t| *t >= 0.0);
    let top = cap(h).filter(|t| along(*t) >= h).reduce(f64::min);
    let bottom = cap(-h).filter(|t| along(*t) <= -h).reduce(f64::min);
    least(side, least(top, bottom))
}

/// An endless cylinder's round side.
fn round(r: f64, p: [f64; 3], v: [f64; 3]) -> Option<f64> {
    ahead(quadric(p, v, [0.0; 3], [1.0 / (r * r), 1.0 / (r * r), 0.0]))
}

fn cylinder(r: f64, h: f64, p: [f64; 3], v: [f64; 3]) -> Option<f64> {
    let side = round(r, p, v).filter(|t| (p[2] + t * v[2]).abs() <= h);
    let face = |z: f64| {
        let t = (z - p[2]) / v[2];
        let (a, b) = (p[0] + t * v[0], p[1] + t * v[1]);
        (v[2].abs() > 1e-15 && t >= 0.0 && a * a + b * b <= r * r).then_some(t)
    };
    least(side, least(face(h), face(-h)))
}

fn cuboid(size: [f64; 3], p: [f64; 3], v: [f64; 3]) -> Option<f64> {
    let mut best = None;
    for i in (0..3).filter(|i| v[*i].abs() > 1e-15) {
        let (j, k) = ((i + 1) % 3, (i + 2) % 3);
        for face in [-size[i], size[i]] {
            let t = (face - p[i]) / v[i];
            let inside = |e: usize| (p[e] + t * v[e]).abs() <= size[e];
            if t >= 0.0 && inside(j) && inside(k) {
                best = least(best, Some(t));
            }
        }
    }
    best
}

/// Where a ray crosses `Σ s_k (x_k − c_k)² = 1`, nearer first; negative if it does not.
fn quadric(p: [f64; 3], v: [f64; 3], c: [f64; 3], s: [f64; 3]) -> [f64; 2] {
    let d = sub(p, c);
    let sum = |a: &[f64; 3], b: &[f64; 3]| (0..3).map(|k| s[k] * a[k] * b[k]).sum::<f64>();
    let (a, b, c) = (sum(&v, &v), sum(&v, &d), sum(&d, &d) - 1.0);
    let det = b * b - a * c;
    if det < 0.0 || a < 1e-15 {
        return [-1.0; 2];
    }
    let root = det.sqrt();
    [(-b - root) / a, (-b + root) / a]
}
