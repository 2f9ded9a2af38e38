//! Sensors of poses and velocities. Those of forces are in [`crate::load`].
use crate::constraint::tangents;
use crate::drive::transmission;
use crate::lane::{Kernel, Lane, up3, up4};
use crate::math::*;
use crate::model::Model;
use crate::plan::Plan;
use crate::plan::measure::{Measure, Mount, Subtree};
use crate::ray;
use crate::smooth::velocities;
use crate::state::{Multi, Point, Rows, Scratch, State};
use crate::tendon;

/// Sensors of the current pose and `qvel`.
pub(crate) struct Sensors<'a, L: Lane> {
    pub model: &'a Model,
    pub plan: &'a Plan<L>,
    pub s: &'a State<L>,
    pub x: &'a mut Scratch<L>,
}

impl<L: Lane> Kernel for Sensors<'_, L> {
    type Out = ();
    #[inline(always)]
    fn run(self) {
        let Sensors { model, plan, s, x } = self;
        if plan.measures.state.is_empty() {
            return;
        }
        if plan.measures.velocities {
            velocities(plan, &s.qvel, x);
            tendon::rates(plan, &x.smooth.qvel, &mut x.tendon);
        }
        for (start, measure) in &plan.measures.state {
            let (mut out, mut n) = ([L::zero(); 4], 3);
            match measure {
                Measure::JointPos(q) => (out[0], n) = (s.qpos[*q], 1),
                Measure::JointVel(d) => (out[0], n) = (s.qvel[*d], 1),
                Measure::TendonPos(t) => (out[0], n) = (x.tendon.length[*t], 1),
                Measure::TendonVel(t) => (out[0], n) = (x.tendon.rate[*t], 1),
                Measure::ActuatorPos(t, gear) => {
                    (out[0], n) = (transmission(*t, L::up(*gear), s, &x.tendon, &x.smooth).0, 1)
                }
                Measure::ActuatorVel(t, gear) => {
                    (out[0], n) = (transmission(*t, L::up(*gear), s, &x.tendon, &x.smooth).1, 1)
                }
                Measure::Rangefinder { site } => (out[0], n) = (ray::nearest(model, x, *site), 1),
                Measure::FrameQuat(m, reference) => {
                    out = turn(x, m);
                    n = 4;
                    if let Some(r) = reference {
                        let [w, i, j, k] = turn(x, r);
                        out = quat_mul([w, -i, -j, -k], out);
                    }
                }
                other => out[..3].copy_from_slice(&vector(plan, x, other)),
            }
            x.sensor[*start..start + n].copy_from_slice(&out[..n]);
        }
    }
}

/// Sensors of three values.
#[inline(always)]
fn vector<L: Lane>(plan: &Plan<L>, x: &Scratch<L>, measure: &Measure<L>) -> V3<L> {
    match measure {
        Measure::Velocimeter(m) => multmv(&quat_mat(turn(x, m)), velocity(plan, x, m)),
        Measure::Gyro(m) => multmv(&quat_mat(turn(x, m)), spin(x, m)),
        Measure::FrameLinVel(m) => velocity(plan, x, m),
        Measure::FrameAngVel(m) => spin(x, m),
        Measure::FramePos(m, reference) => match reference {
            None => place(x, m),
            Some(r) => multmv(&quat_mat(turn(x, r)), sub3(place(x, m), place(x, r))),
        },
        Measure::FrameAxis(m, k, reference) => {
            let f = quat_mat(turn(x, m));
            let axis = [f[*k], f[3 + k], f[6 + k]];
            match reference {
                None => axis,
                Some(r) => multmv(&quat_mat(turn(x, r)), axis),
            }
        }
        Measure::SubtreeCom(t) => centre(x, t),
        Measure::SubtreeLinVel(t) => drift(plan, x, t),
        Measure::SubtreeAngMom(t) => momentum(plan, x, t),
        _ => [L::zero(); 3],
    }
}

/// Global orientation of a mount.
#[inline(always)]
pub(crate) fn turn<L: Lane>(x: &Scratch<L>, m: &Mount<L>) -> Quat<L> {
    match &m.quat {
        None => x.body.xquat[m.body],
        Some(q) => quat_mul(x.body.xquat[m.body], up4(q)),
    }
}

/// Global position of a mount.
#[inline(always)]
pub(crate) fn place<L: Lane>(x: &Scratch<L>, m: &Mount<L>) -> V3<L> {
    add3(mulmv(&x.body.xmat[m.body], up3(&m.pos)), x.body.xpos[m.body])
}

#[inline(always)]
pub(crate) fn spin<L: Lane>(x: &Scratch<L>, m: &Mount<L>) -> V3<L> {
    let v = &x.body.cvel[m.body];
    [v[0], v[1], v[2]]
}

/// Global velocity of a mount, `v + ω × (p − com)`.
#[inline(always)]
pub(crate) fn velocity<L: Lane>(plan: &Plan<L>, x: &Scratch<L>, m: &Mount<L>) -> V3<L> {
    at(&x.body.cvel[m.body], sub3(place(x, m), x.body.com[plan.bodies[m.body].root]))
}

/// Linear part of a spatial motion at an offset.
#[inline(always)]
fn at<L: Lane>(v: &V6<L>, off: V3<L>) -> V3<L> {
    add3([v[3], v[4], v[5]], cross([v[0], v[1], v[2]], off))
}

/// `Σ m_b c_b / Σ m_b`.
#[inline(always)]
fn centre<L: Lane>(x: &Scratch<L>, t: &Subtree<L>) -> V3<L> {
    let mut sum = [L::zero(); 3];
    for (b, share) in &t.0 {
        sum = axpy3(sum, x.body.xipos[*b], L::up(*share));
    }
    sum
}

/// Velocity of a body's centre of mass.
#[inline(always)]
fn of_body<L: Lane>(plan: &Plan<L>, x: &Scratch<L>, b: usize) -> V3<L> {
    at(&x.body.cvel[b], sub3(x.body.xipos[b], x.body.com[plan.bodies[b].root]))
}

/// `Σ m_b v_b / Σ m_b`.
#[inline(always)]
fn drift<L: Lane>(plan: &Plan<L>, x: &Scratch<L>, t: &Subtree<L>) -> V3<L> {
    let mut sum = [L::zero(); 3];
    for (b, share) in &t.0 {
        sum = axpy3(sum, of_body(plan, x, *b), L::up(*share));
    }
    sum
}

/// `Σ I_b ω_b + m_b (c_b − C) × (v_b − V)`, with `C`, `V` position and velocity of the subtree's centre of mass.
#[inline(always)]
fn momentum<L: Lane>(plan: &Plan<L>, x: &Scratch<L>, t: &Subtree<L>) -> V3<L> {
    let (c, v) = (centre(x, t), drift(plan, x, t));
    let mut sum = [L::zero(); 3];
    for (b, _) in &t.0 {
        let body = &plan.bodies[*b];
        let mat = match &body.iquat {
            None => x.body.xmat[*b],
            Some(q) => quat_mat(quat_mul(x.body.xquat[*b], up4(q))),
        };
        let w = &x.body.cvel[*b];
        let local = multmv(&mat, [w[0], w[1], w[2]]);
        sum = add3(sum, mulmv(&mat, mul3(up3(&body.inertia), local)));
        let arm = scale3(sub3(x.body.xipos[*b], c), L::up(body.mass));
        sum = add3(sum, cross(arm, sub3(of_body(plan, x, *b), v)));
    }
    sum
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
