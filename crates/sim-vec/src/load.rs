//! Sensors of forces and accelerations, after a forward evaluation.
use crate::lane::{Kernel, Lane};
use crate::math::*;
use crate::model::{Id, Model};
use crate::plan::Plan;
use crate::plan::measure::{Load, Mount};
use crate::ray::meets_site;
use crate::sensor::{frame, normal_force, place, spin, turn, velocity};
use crate::smooth::accelerations;
use crate::state::{Scratch, State};

/// Computes all sensors that read forces.
pub(crate) fn loads<L: Lane>(model: &Model, plan: &Plan<L>, s: &State<L>, x: &mut Scratch<L>) {
    if plan.measures.load.is_empty() {
        return;
    }
    if plan.measures.accelerations {
        contact_wrenches(model, plan, s, x);
        L::enter(Between { plan, x });
    }
    for (start, load) in &plan.measures.load {
        match load {
            Load::Touch { site, pairs } => x.sensor[*start] = touch(model, plan, x, *site, pairs),
            Load::Actuator(u) => x.sensor[*start] = x.drive.force[*u],
            _ => {}
        }
    }
}

/// The sum of normal forces of contacts of the site's body whose ray, from the contact point against the force on the
/// body, meets the site's volume, as it does from inside.
///
/// Lane by lane in f64: only contacts that press on a sensor's body are looked at.
fn touch<L: Lane>(model: &Model, plan: &Plan<L>, x: &Scratch<L>, site: Id, pairs: &[(usize, bool)]) -> L {
    let site = &model.sites[site];
    let mut sum = L::zero();
    for (c, p) in x.rows.multis[x.rows.first_contact..].iter().zip(&x.rows.points) {
        for lane in 0..L::W {
            if x.rows.d[c.row].get(lane) == 0.0 {
                continue;
            }
            let pair = p.pair.get(lane) as usize;
            let Some(&(_, second)) = pairs.iter().find(|(id, _)| *id == pair) else { continue };
            let force = normal_force(plan, &x.rows, c, lane);
            if force <= 0.0 {
                continue;
            }
            let sign = if second { -1.0 } else { 1.0 };
            let (from, along) = (p.pos.map(|e| e.get(lane)), p.normal.map(|e| sign * e.get(lane)));
            if meets_site(x, site, from, along, lane) {
                sum.set(lane, sum.get(lane) + force);
            }
        }
    }
    sum
}

/// Sets `wrench` to the contact forces on each body, about the centre of mass of its tree.
fn contact_wrenches<L: Lane>(model: &Model, plan: &Plan<L>, s: &State<L>, x: &mut Scratch<L>) {
    let factor = s.variation().map(|v| v.friction);
    x.body.wrench.fill([L::zero(); 6]);
    let rows = &x.rows;
    for (c, p) in rows.multis[rows.first_contact..].iter().zip(&rows.points) {
        let class = &plan.classes[c.class];
        for lane in 0..L::W {
            if rows.d[c.row].get(lane) == 0.0 {
                continue;
            }
            let pair = p.pair.get(lane) as usize;
            let bodies = model.pairs[pair].geoms.map(|g| model.geoms[g].body);
            let f = |k: usize| rows.f[c.row + k].get(lane);
            // force along the rows of the contact's Jacobian
            let mut row = [0.0; 6];
            if class.condim == 1 {
                row[0] = f(0);
            } else if class.elliptic {
                (0..class.condim).for_each(|e| row[e] = f(e));
            } else {
                row[0] = (0..class.rows).map(f).sum();
                (1..class.condim).for_each(|e| row[e] = f(2 * e - 2) - f(2 * e - 1));
            }
            let friction = model.pairs[pair].friction;
            for e in 1..class.condim {
                row[e] *= friction[e - 1].max(1e-5) * factor.map_or(1.0, |f| f.get(lane));
            }
            let r = frame(p, lane);
            let global =
                |a: [f64; 3]| -> [f64; 3] { std::array::from_fn(|k| r[k] * a[0] + r[3 + k] * a[1] + r[6 + k] * a[2]) };
            let (force, twist) = (global([row[0], row[1], row[2]]), global([row[3], row[4], row[5]]));
            for (side, body) in bodies.into_iter().enumerate().filter(|(_, b)| *b > 0) {
                let sign = if side == 1 { 1.0 } else { -1.0 };
                let com = x.body.com[plan.bodies[body].root].map(|e| e.get(lane));
                let d: [f64; 3] = std::array::from_fn(|k| p.pos[k].get(lane) - com[k]);
                let w = &mut x.body.wrench[body];
                for k in 0..3 {
                    let (i, j) = ((k + 1) % 3, (k + 2) % 3);
                    let torque = d[i] * force[j] - d[j] * force[i] + twist[k];
                    w[k].set(lane, w[k].get(lane) + sign * torque);
                    w[3 + k].set(lane, w[3 + k].get(lane) + sign * force[k]);
                }
            }
        }
    }
}

/// Accelerations of bodies and the forces between them, then the sensors that read these.
///
/// ```text
/// accelerometer  R ᵀ (a + ω × v), with −g for the world's acceleration
/// force, torque  what the body's parent exerts on it: Σ over its subtree of I a + v ×* I v − contacts
/// ```
struct Between<'a, L: Lane> {
    plan: &'a Plan<L>,
    x: &'a mut Scratch<L>,
}

impl<L: Lane> Kernel for Between<'_, L> {
    type Out = ();
    #[inline(always)]
    fn run(self) {
        let (plan, x) = (self.plan, self.x);
        accelerations(plan, &mut x.body, &x.smooth);
        for (start, load) in &plan.measures.load {
            let out = match load {
                Load::Accelerometer(m) => {
                    let a = &x.body.cacc[m.body];
                    let off = sub3(place(x, m), x.body.com[plan.bodies[m.body].root]);
                    let linear = add3([a[3], a[4], a[5]], cross([a[0], a[1], a[2]], off));
                    local(x, m, add3(linear, cross(spin(x, m), velocity(plan, x, m))))
                }
                Load::Force(m) => {
                    let f = &x.body.cfrc[m.body];
                    local(x, m, [f[3], f[4], f[5]])
                }
                Load::Torque(m) => {
                    let f = &x.body.cfrc[m.body];
                    let off = sub3(place(x, m), x.body.com[plan.bodies[m.body].root]);
                    local(x, m, sub3([f[0], f[1], f[2]], cross(off, [f[3], f[4], f[5]])))
                }
                _ => continue,
            };
            x.sensor[*start..start + 3].copy_from_slice(&out);
        }
    }
}

#[inline(always)]
fn local<L: Lane>(x: &Scratch<L>, m: &Mount<L>, v: V3<L>) -> V3<L> {
    multmv(&quat_mat(turn(x, m)), v)
}
