//! Unconstrained dynamics: kinematics, mass matrix, bias forces, springs and dampers of joints.
//!
//! Spatial quantities are about the centre of mass of each kinematic tree, as in MuJoCo, which keeps f32 accurate far
//! from the origin. Order: [`Pose`], then [`Dynamics`], which ends with `qacc_smooth`.
use crate::lane::{Kernel, Lane, sincos, up3, up4};
use crate::linalg::{self, Factor};
use crate::math::*;
use crate::model::JointKind;
use crate::plan::Plan;
use crate::plan::blocks::tri;
use crate::state::{Bodies, Scratch, Smooth, State, Vary, pad};
use crate::{drive, fluid, tendon};

/// Body frames, joint axes, tree centres of mass, body inertias and dof motions from `qpos`.
pub(crate) struct Pose<'a, L: Lane> {
    pub plan: &'a Plan<L>,
    pub s: &'a State<L>,
    pub x: &'a mut Scratch<L>,
}

impl<L: Lane> Kernel for Pose<'_, L> {
    type Out = ();
    #[inline(always)]
    fn run(self) {
        let Pose { plan, s, x } = self;
        frames(plan, &s.qpos, &s.mocap, &mut x.body);
        centre(plan, &mut x.body);
        inertias(plan, s.variation(), &mut x.body);
        motions(plan, &x.body, &mut x.smooth.cdof);
        tendon::lengths(plan, &s.qpos, &x.body, &x.smooth, &mut x.tendon);
    }
}

#[inline(always)]
fn frames<L: Lane>(plan: &Plan<L>, qpos: &[L], mocap: &[L], x: &mut Bodies<L>) {
    for b in 1..plan.bodies.len() {
        let body = &plan.bodies[b];
        let (mut pos, mut quat);
        let first = body.joints.start;
        if body.joints.len() == 1 && plan.joints[first].kind == JointKind::Free {
            let q = &qpos[plan.joints[first].qpos..][..7];
            pos = [q[0], q[1], q[2]];
            quat = quat_normalize([q[3], q[4], q[5], q[6]]);
            x.anchor[first] = pos;
        } else if let Some(m) = body.mocap {
            let q = &mocap[7 * m..][..7];
            pos = [q[0], q[1], q[2]];
            quat = quat_normalize([q[3], q[4], q[5], q[6]]);
        } else {
            pos = add3(mulmv(&x.xmat[body.parent], up3(&body.pos)), x.xpos[body.parent]);
            quat = x.xquat[body.parent];
            if let Some(q) = &body.quat {
                quat = quat_mul(quat, up4(q));
            }
            for j in body.joints.clone() {
                let joint = &plan.joints[j];
                let angle = qpos[joint.qpos] - L::up(joint.qpos0);
                let local: V3<L> = up3(&joint.axis);
                let axis = quat_rot(quat, local);
                let arm: Option<V3<L>> = match &joint.pos {
                    Some(p) => Some(up3(p)),
                    None => None,
                };
                let mut anchor = pos;
                if let Some(a) = arm {
                    anchor = add3(quat_rot(quat, a), pos);
                }
                x.axis[j] = axis;
                x.anchor[j] = anchor;
                if joint.kind == JointKind::Slide {
                    pos = axpy3(pos, axis, angle);
                } else {
                    let (s, c) = sincos(angle * L::splat(0.5));
                    quat = quat_mul(quat, [c, local[0] * s, local[1] * s, local[2] * s]);
                    if let Some(a) = arm {
                        pos = sub3(anchor, quat_rot(quat, a));
                    }
                }
            }
            if !body.joints.is_empty() {
                quat = quat_normalize(quat);
            }
        }
        let mat = quat_mat(quat);
        x.xpos[b] = pos;
        x.xquat[b] = quat;
        x.xmat[b] = mat;
        x.xipos[b] = add3(mulmv(&mat, up3(&body.ipos)), pos);
    }
}

#[inline(always)]
fn centre<L: Lane>(plan: &Plan<L>, x: &mut Bodies<L>) {
    for b in 1..plan.bodies.len() {
        let root = plan.bodies[b].root;
        let sofar = if root == b { [L::zero(); 3] } else { x.com[root] };
        x.com[root] = axpy3(sofar, x.xipos[b], L::up(plan.bodies[b].share));
    }
}

/// Body inertias about the tree's centre of mass.
#[inline(always)]
fn inertias<L: Lane>(plan: &Plan<L>, vary: Option<Vary<L>>, x: &mut Bodies<L>) {
    for b in 1..plan.bodies.len() {
        let body = &plan.bodies[b];
        let d = sub3(x.xipos[b], x.com[body.root]);
        let mut mass = L::up(body.mass);
        let mut i: V3<L> = up3(&body.inertia);
        if let Some(v) = &vary {
            mass *= v.mass[b];
            i = scale3(i, v.mass[b]);
        }
        let m = match &body.iquat {
            None => x.xmat[b],
            Some(q) => quat_mat(quat_mul(x.xquat[b], up4(q))),
        };
        // rotated principal moments: rows scaled by I, times transpose
        let (r0, r1, r2) = ([m[0], m[1], m[2]], [m[3], m[4], m[5]], [m[6], m[7], m[8]]);
        let s0 = [r0[0] * i[0], r0[1] * i[1], r0[2] * i[2]];
        let s1 = [r1[0] * i[0], r1[1] * i[1], r1[2] * i[2]];
        let s2 = [r2[0] * i[0], r2[1] * i[1], r2[2] * i[2]];
        let md = scale3(d, mass);
        x.inertia[b] = [
            dot3(s0, r0) + md[1].fma(d[1], md[2] * d[2]),
            dot3(s1, r1) + md[0].fma(d[0], md[2] * d[2]),
            dot3(s2, r2) + md[0].fma(d[0], md[1] * d[1]),
            md[0].fnma(d[1], dot3(s0, r1)),
            md[0].fnma(d[2], dot3(s0, r2)),
            md[1].fnma(d[2], dot3(s1, r2)),
            md[0],
            md[1],
            md[2],
            mass,
        ];
    }
}

/// The spatial motion of each dof about the tree's centre of mass.
#[inline(always)]
fn motions<L: Lane>(plan: &Plan<L>, x: &Bodies<L>, cdof: &mut [[V6<L>; 3]]) {
    let cdof = cdof.as_flattened_mut();
    let z = L::zero();
    for b in 1..plan.bodies.len() {
        let body = &plan.bodies[b];
        for j in body.joints.clone() {
            let joint = &plan.joints[j];
            let off = sub3(x.com[body.root], x.anchor[j]);
            match joint.kind {
                JointKind::Slide => {
                    let a = x.axis[j];
                    cdof[joint.padded[0]] = [z, z, z, a[0], a[1], a[2]];
                }
                JointKind::Hinge => {
                    let a = x.axis[j];
                    let l = cross(a, off);
                    cdof[joint.padded[0]] = [a[0], a[1], a[2], l[0], l[1], l[2]];
                }
                JointKind::Free => {
                    for k in 0..3 {
                        let mut v = [z; 6];
                        v[3 + k] = L::one();
                        cdof[joint.padded[k]] = v;
                        let m = &x.xmat[b];
                        let a = [m[k], m[3 + k], m[6 + k]];
                        let l = cross(a, off);
                        cdof[joint.padded[3 + k]] = [a[0], a[1], a[2], l[0], l[1], l[2]];
                    }
                }
            }
        }
    }
}

/// Mass matrix and its factors, forces, and the acceleration without constraints.
pub(crate) struct Dynamics<'a, L: Lane> {
    pub plan: &'a Plan<L>,
    pub s: &'a State<L>,
    pub x: &'a mut Scratch<L>,
}

impl<L: Lane> Kernel for Dynamics<'_, L> {
    type Out = ();
    #[inline(always)]
    fn run(self) {
        let (plan, s) = (self.plan, self.s);
        let Scratch { body, smooth, tendon, drive, .. } = self.x;
        mass(plan, body, smooth);
        L::enter(Factor { a: &mut smooth.factor, dinv: &mut smooth.dinv, pattern: &plan.tree });
        pad(plan, &s.qvel, &mut smooth.qvel);
        let vary = s.variation();
        bias(plan, vary, body, smooth);
        tendon::rates(plan, &smooth.qvel, tendon);
        passive(plan, s, smooth);
        tendon::passive(plan, tendon, &mut smooth.passive);
        fluid::drag(plan, body, smooth);
        drive::act(plan, s, tendon, smooth, drive);
        fluid::buoyancy(plan, vary, body, smooth);
        drive::bound(plan, smooth);
        for i in 0..plan.blocks.count {
            smooth.force[i] = add3(sub3(smooth.passive[i], smooth.bias[i]), smooth.driven[i]);
        }
        smooth.qacc_smooth.copy_from_slice(&smooth.force);
        linalg::solve(&smooth.factor, &smooth.dinv, &plan.tree, &mut smooth.qacc_smooth);
    }
}

/// Composite rigid bodies: `M[i,j] = cdof_j · (I_composite(i) cdof_i)` for `j` an ancestor of `i`, plus armature.
#[inline(always)]
fn mass<L: Lane>(plan: &Plan<L>, x: &mut Bodies<L>, y: &mut Smooth<L>) {
    x.composite.copy_from_slice(&x.inertia);
    for b in (1..plan.bodies.len()).rev() {
        let p = plan.bodies[b].parent;
        if p > 0 {
            let c = x.composite[b];
            let t = &mut x.composite[p];
            for k in 0..10 {
                t[k] += c[k];
            }
        }
    }
    let z = L::zero();
    for i in 0..plan.blocks.count {
        let body = &plan.row_body[i];
        let [c0, c1, c2] = &y.cdof[i];
        let f0 = inertia_mul(&x.composite[body[0]], c0);
        let f1 = inertia_mul(&x.composite[body[1]], c1);
        let f2 = inertia_mul(&x.composite[body[2]], c2);
        let arm: V3<L> = up3(&plan.armature[i]);
        let r = tri(i);
        let diagonal = [
            dot6(c0, &f0) + arm[0],
            z,
            z,
            dot6(c0, &f1),
            dot6(c1, &f1) + arm[1],
            z,
            dot6(c0, &f2),
            dot6(c1, &f2),
            dot6(c2, &f2) + arm[2],
        ];
        y.mass[r + i] = diagonal;
        y.factor[r + i] = diagonal;
        for &c in plan.tree.row(i) {
            let c = c as usize;
            let [g0, g1, g2] = &y.cdof[c];
            let block = [
                dot6(g0, &f0),
                dot6(g1, &f0),
                dot6(g2, &f0),
                dot6(g0, &f1),
                dot6(g1, &f1),
                dot6(g2, &f1),
                dot6(g0, &f2),
                dot6(g1, &f2),
                dot6(g2, &f2),
            ];
            y.mass[r + c] = block;
            y.factor[r + c] = block;
        }
    }
}

/// Adds a joint's motion to a body's velocity and, if asked for, the velocity-dependent part to its acceleration.
#[inline(always)]
fn through_joint<L: Lane>(
    kind: JointKind,
    padded: &[usize; 6],
    cdof: &[V6<L>],
    qvel: &[L],
    v: &mut V6<L>,
    mut a: Option<&mut V6<L>>,
) {
    if kind == JointKind::Free {
        for k in 0..3 {
            v[3 + k] += qvel[padded[k]];
        }
        let before = *v;
        for k in 3..6 {
            let (c, q) = (&cdof[padded[k]], qvel[padded[k]]);
            if let Some(a) = a.as_deref_mut() {
                axpy6(a, &cross_motion(&before, c), q);
            }
            axpy6(v, c, q);
        }
    } else {
        let (c, q) = (&cdof[padded[0]], qvel[padded[0]]);
        if let Some(a) = a {
            axpy6(a, &cross_motion(v, c), q);
        }
        axpy6(v, c, q);
    }
}

/// Recursive Newton–Euler with zero joint acceleration: Coriolis, centrifugal and gravity forces.
#[inline(always)]
fn bias<L: Lane>(plan: &Plan<L>, vary: Option<Vary<L>>, x: &mut Bodies<L>, y: &mut Smooth<L>) {
    let z = L::zero();
    let mut g: V3<L> = up3(&plan.gravity);
    if let Some(v) = &vary {
        g = scale3(g, v.gravity);
    }
    x.cacc[0] = [z, z, z, -g[0], -g[1], -g[2]];
    let (cdof, qvel) = (y.cdof.as_flattened(), y.qvel.as_flattened());
    for b in 1..plan.bodies.len() {
        let body = &plan.bodies[b];
        let mut v = x.cvel[body.parent];
        let mut a = x.cacc[body.parent];
        for j in body.joints.clone() {
            let joint = &plan.joints[j];
            through_joint(joint.kind, &joint.padded, cdof, qvel, &mut v, Some(&mut a));
        }
        x.cvel[b] = v;
        x.cacc[b] = a;
        let momentum = inertia_mul(&x.inertia[b], &v);
        let force = inertia_mul(&x.inertia[b], &a);
        let turning = cross_force(&v, &momentum);
        let mut f = [z; 6];
        for k in 0..6 {
            f[k] = force[k] + turning[k];
        }
        x.cfrc[b] = f;
    }
    for b in (1..plan.bodies.len()).rev() {
        let p = plan.bodies[b].parent;
        if p > 0 {
            let c = x.cfrc[b];
            let t = &mut x.cfrc[p];
            for k in 0..6 {
                t[k] += c[k];
            }
        }
    }
    for i in 0..plan.blocks.count {
        let (body, c) = (&plan.row_body[i], &y.cdof[i]);
        for k in 0..3 {
            y.bias[i][k] = dot6(&c[k], &x.cfrc[body[k]]);
        }
    }
}

/// Springs and dampers.
#[inline(always)]
fn passive<L: Lane>(plan: &Plan<L>, s: &State<L>, y: &mut Smooth<L>) {
    for i in 0..plan.blocks.count {
        for k in 0..3 {
            y.passive[i][k] = L::zero() - L::up(plan.damping[i][k]) * y.qvel[i][k];
        }
    }
    if let Some(v) = s.variation() {
        for (i, &p) in plan.blocks.padded.iter().enumerate() {
            let more = L::up(plan.damping[p / 3][p % 3]) * (v.damping[i] - L::one());
            y.passive[p / 3][p % 3] -= more * s.qvel[i];
        }
    }
    let passive = y.passive.as_flattened_mut();
    for spring in &plan.springs {
        let p = &mut passive[spring.padded];
        *p = L::up(spring.stiffness).fnma(s.qpos[spring.qpos] - L::up(spring.rest), *p);
    }
}

/// Body accelerations under `qacc`, and the forces between bodies, given the contacts' wrenches, for sensors.
#[inline(always)]
pub(crate) fn accelerations<L: Lane>(plan: &Plan<L>, x: &mut Bodies<L>, y: &Smooth<L>) {
    let (cdof, qvel, qacc) = (y.cdof.as_flattened(), y.qvel.as_flattened(), y.qacc.as_flattened());
    for b in 1..plan.bodies.len() {
        let body = &plan.bodies[b];
        let mut v = x.cvel[body.parent];
        let mut a = x.cacc[body.parent];
        for j in body.joints.clone() {
            let joint = &plan.joints[j];
            through_joint(joint.kind, &joint.padded, cdof, qvel, &mut v, Some(&mut a));
            let dofs = if joint.kind == JointKind::Free { 6 } else { 1 };
            for k in 0..dofs {
                let p = joint.padded[k];
                axpy6(&mut a, &cdof[p], qacc[p]);
            }
        }
        x.cacc[b] = a;
        let momentum = inertia_mul(&x.inertia[b], &v);
        let force = inertia_mul(&x.inertia[b], &a);
        let turning = cross_force(&v, &momentum);
        for k in 0..6 {
            x.cfrc[b][k] = force[k] + turning[k] - x.wrench[b][k];
        }
    }
    for b in (1..plan.bodies.len()).rev() {
        let p = plan.bodies[b].parent;
        if p > 0 {
            let c = x.cfrc[b];
            for k in 0..6 {
                x.cfrc[p][k] += c[k];
            }
        }
    }
}

/// Body velocities alone, for sensors.
#[inline(always)]
pub(crate) fn velocities<L: Lane>(plan: &Plan<L>, qvel: &[L], x: &mut Scratch<L>) {
    pad(plan, qvel, &mut x.smooth.qvel);
    let (cdof, qvel) = (x.smooth.cdof.as_flattened(), x.smooth.qvel.as_flattened());
    for b in 1..plan.bodies.len() {
        let body = &plan.bodies[b];
        let mut v = x.body.cvel[body.parent];
        for j in body.joints.clone() {
            let joint = &plan.joints[j];
            through_joint(joint.kind, &joint.padded, cdof, qvel, &mut v, None);
        }
        x.body.cvel[b] = v;
    }
}
