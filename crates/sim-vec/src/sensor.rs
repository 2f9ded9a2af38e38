//! Sensors: touch and subtree velocity.
use crate::constraint::tangents;
use crate::lane::{Kernel, Lane};
use crate::math::*;
use crate::model::{Model, SiteShape};
use crate::plan::Plan;
use crate::smooth::velocities;
use crate::state::{Multi, Point, Rows, Scratch};

/// Subtree velocities of the current pose and `qvel`.
///
/// ```text
/// v = Σ m_b (v_b + ω_b × (c_b − com)) / Σ m_b   over bodies b of the subtree
/// ```
pub(crate) struct Velocities<'a, L: Lane> {
    pub plan: &'a Plan<L>,
    pub qvel: &'a [L],
    pub x: &'a mut Scratch<L>,
}

impl<L: Lane> Kernel for Velocities<'_, L> {
    type Out = ();
    #[inline(always)]
    fn run(self) {
        let (plan, x) = (self.plan, self.x);
        if plan.subtrees.is_empty() {
            return;
        }
        velocities(plan, self.qvel, x);
        for sensor in &plan.subtrees {
            let mut sum = [L::zero(); 3];
            for (b, share) in &sensor.bodies {
                let (b, v) = (*b, &x.body.cvel[*b]);
                let off = sub3(x.body.xipos[b], x.body.com[plan.bodies[b].root]);
                let linear = add3([v[3], v[4], v[5]], cross([v[0], v[1], v[2]], off));
                sum = axpy3(sum, linear, L::up(*share));
            }
            x.sensor[sensor.start..sensor.start + 3].copy_from_slice(&sum);
        }
    }
}

/// Touch sensors from the contact forces in scratch: the sum of normal forces of contacts of the site's body whose
/// ray, from the contact point against the force on the body, meets the site's volume, as it does from inside.
///
/// Lane by lane in f64: only contacts that press on a sensor's body are looked at.
pub(crate) fn touch<L: Lane>(model: &Model, plan: &Plan<L>, x: &mut Scratch<L>) {
    for t in &plan.touch {
        let site = &model.sites[t.site];
        let mut sum = L::zero();
        for (c, p) in x.rows.multis[x.rows.first_contact..].iter().zip(&x.rows.points) {
            for lane in 0..L::W {
                if x.rows.d[c.row].get(lane) == 0.0 {
                    continue;
                }
                let pair = p.pair.get(lane) as usize;
                let Some(&(_, second)) = t.pairs.iter().find(|(id, _)| *id == pair) else { continue };
                let force = normal_force(plan, &x.rows, c, lane);
                if force <= 0.0 {
                    continue;
                }
                let get = |v: &V3<L>| v.map(|e| e.get(lane));
                let m = x.body.xmat[site.body].map(|e| e.get(lane));
                let origin = get(&x.body.xpos[site.body]);
                let sign = if second { -1.0 } else { 1.0 };
                let ray = get(&p.normal).map(|e| sign * e);
                let point = get(&p.pos);
                let local = |v: [f64; 3]| -> [f64; 3] {
                    std::array::from_fn(|k| m[k] * v[0] + m[3 + k] * v[1] + m[6 + k] * v[2])
                };
                let from: [f64; 3] = {
                    let d = local(std::array::from_fn(|k| point[k] - origin[k]));
                    std::array::from_fn(|k| d[k] - site.pos[k])
                };
                let (from, ray) = (unrotate(site.quat, from), unrotate(site.quat, local(ray)));
                if meets(site.shape, site.size, from, ray) {
                    sum.set(lane, sum.get(lane) + force);
                }
            }
        }
        x.sensor[t.start] = sum;
    }
}

/// Normal force of a contact in one lane: the sum over a pyramid's edges, or the first row's.
pub(crate) fn normal_force<L: Lane>(plan: &Plan<L>, rows: &Rows<L>, c: &Multi, lane: usize) -> f64 {
    let class = &plan.classes[c.class];
    let pushing = if class.elliptic { 1 } else { class.rows };
    rows.f[c.row..c.row + pushing].iter().map(|f| f.get(lane)).sum()
}

/// Contact frame in one lane, rows normal, first and second tangent.
pub(crate) fn frame<L: Lane>(p: &Point<L>, lane: usize) -> [f64; 9] {
    let (t1, t2) = tangents(p.normal, p.tangent);
    let r = [p.normal, t1, t2];
    std::array::from_fn(|k| r[k / 3][k % 3].get(lane))
}

/// Rotates by the inverse of a unit quaternion.
fn unrotate(q: [f64; 4], v: [f64; 3]) -> [f64; 3] {
    let u = [-q[1], -q[2], -q[3]];
    let x =
        |a: [f64; 3], b: [f64; 3]| [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]];
    let t = x(u, v).map(|e| 2.0 * e);
    let w = x(u, t);
    std::array::from_fn(|k| v[k] + q[0] * t[k] + w[k])
}

/// The ray `p + t v`, `t ≥ 0`, meets the surface of a shape at the origin, or starts inside it.
fn meets(shape: SiteShape, size: [f64; 3], p: [f64; 3], v: [f64; 3]) -> bool {
    let [r, h, _] = size;
    match shape {
        SiteShape::Sphere => ball(p, v, [0.0; 3], [1.0 / (r * r); 3]).iter().any(|t| *t >= 0.0),
        SiteShape::Ellipsoid => ball(p, v, [0.0; 3], size.map(|s| 1.0 / (s * s))).iter().any(|t| *t >= 0.0),
        SiteShape::Capsule => {
            let along = |t: f64| p[2] + t * v[2];
            // only the nearer crossing of the round side counts, as in MuJoCo
            let side = ball(p, v, [0.0; 3], [1.0 / (r * r), 1.0 / (r * r), 0.0]).into_iter().find(|t| *t >= 0.0);
            let cap = |z: f64| ball(p, v, [0.0, 0.0, z], [1.0 / (r * r); 3]).into_iter().filter(|t| *t >= 0.0);
            side.is_some_and(|t| along(t).abs() <= h)
                || cap(h).any(|t| along(t) >= h)
                || cap(-h).any(|t| along(t) <= -h)
        }
        SiteShape::Cylinder => {
            let side = ball(p, v, [0.0; 3], [1.0 / (r * r), 1.0 / (r * r), 0.0]).into_iter().find(|t| *t >= 0.0);
            let on_face = |z: f64| {
                let t = (z - p[2]) / v[2];
                let (a, b) = (p[0] + t * v[0], p[1] + t * v[1]);
                v[2].abs() > 1e-15 && t >= 0.0 && a * a + b * b <= r * r
            };
            side.is_some_and(|t| (p[2] + t * v[2]).abs() <= h) || on_face(h) || on_face(-h)
        }
        SiteShape::Box => (0..3).any(|i| {
            let (j, k) = ((i + 1) % 3, (i + 2) % 3);
            v[i].abs() > 1e-15
                && [-size[i], size[i]].into_iter().any(|face| {
                    let t = (face - p[i]) / v[i];
                    t >= 0.0 && (p[j] + t * v[j]).abs() <= size[j] && (p[k] + t * v[k]).abs() <= size[k]
                })
        }),
    }
}

/// Where a ray crosses `Σ s_k (x_k − c_k)² = 1`, nearer first; negative if it does not.
fn ball(p: [f64; 3], v: [f64; 3], c: [f64; 3], s: [f64; 3]) -> [f64; 2] {
    let d: [f64; 3] = std::array::from_fn(|k| p[k] - c[k]);
    let sum = |a: &[f64; 3], b: &[f64; 3]| (0..3).map(|k| s[k] * a[k] * b[k]).sum::<f64>();
    let (a, b, c) = (sum(&v, &v), sum(&v, &d), sum(&d, &d) - 1.0);
    let det = b * b - a * c;
    if det < 0.0 || a < 1e-15 {
        return [-1.0; 2];
    }
    let root = det.sqrt();
    [(-b - root) / a, (-b + root) / a]
}
