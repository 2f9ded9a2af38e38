//! Time integration: semi-implicit Euler with implicit damping, velocity-implicit Euler, and Runge–Kutta.
use crate::drive::advance;
use crate::lane::{Kernel, Lane, Mask, sincos};
use crate::linalg::{self, Factor};
use crate::math::*;
use crate::model::JointKind;
use crate::plan::Plan;
use crate::plan::blocks::tri;
use crate::plan::drive::Target;
use crate::state::{Drives, Scratch, State, Tendons, unpad};

/// Advances the state from the forces and accelerations in scratch by `h` seconds.
///
/// ```text
/// implicit:  (M + h B) a' = M a = all forces;   v += h a'
/// fast:      (M − h ∂f/∂v) a' = M a,  ∂f/∂v = −B − Σ b JᵀJ of tendons + Σ ∂f/∂l̇ JᵀJ of actuators;   v += h a'
/// explicit:  v += h a
/// then       q ⊕= h v,  w += h ẇ
/// ```
///
/// `M a` stands for the sum of forces, to which it is equal at the solver's optimum: so a solve cut short after few
/// iterations still integrates the acceleration it found. The acceleration is kept for the next warm start.
pub(crate) struct Euler<'a, L: Lane> {
    pub plan: &'a Plan<L>,
    pub s: &'a mut State<L>,
    pub x: &'a mut Scratch<L>,
    pub h: f64,
    pub implicit: Implicit,
}

/// Which forces are taken at the end of the step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Implicit {
    None,
    /// Dampers of joints.
    Joints,
    /// Dampers of joints and tendons, and actuators.
    All,
}

impl<L: Lane> Kernel for Euler<'_, L> {
    type Out = ();
    #[inline(always)]
    fn run(self) {
        let (plan, s) = (self.plan, self.s);
        let Scratch { smooth: y, tendon, drive: drives, .. } = self.x;
        let h = L::splat(self.h);
        unpad(plan, &y.qacc, &mut s.warm);
        let mut acc = &y.qacc;
        for drive in &plan.drives {
            if let Some(a) = &drive.act {
                s.act[a.index] = advance(a, s.act[a.index], drives.act_dot[a.index]);
            }
        }
        if self.implicit != Implicit::None {
            linalg::copy_with_diagonal(&y.mass, &plan.tree, &plan.damping, h, &mut y.factor);
            if let Some(v) = s.variation() {
                for (i, &p) in plan.blocks.padded.iter().enumerate() {
                    let more = L::up(plan.damping[p / 3][p % 3]) * (v.damping[i] - L::one());
                    let b = p / 3;
                    y.factor[tri(b) + b][4 * (p % 3)] += more * h;
                }
            }
            if self.implicit == Implicit::All {
                slopes(plan, tendon, drives, h, &mut y.factor);
            }
            L::enter(Factor { a: &mut y.factor, dinv: &mut y.dinv, pattern: &plan.tree });
            linalg::solve(&y.factor, &y.dinv, &plan.tree, &mut y.total);
            acc = &y.total;
        }
        let acc = acc.as_flattened();
        for (i, &p) in plan.blocks.padded.iter().enumerate() {
            s.qvel[i] = acc[p].fma(h, s.qvel[i]);
        }
        positions(plan, &s.qvel, h, &mut s.qpos);
    }
}

/// Adds `−h ∂f/∂v` of tendons and actuators, as far as it lies in the pattern of the mass matrix: what couples two
/// branches is left explicit, as in MuJoCo.
#[inline(always)]
fn slopes<L: Lane>(plan: &Plan<L>, t: &Tendons<L>, drive: &Drives<L>, h: L, a: &mut [Mat3<L>]) {
    for i in 0..plan.tendons.len() {
        if plan.tendons[i].passive {
            outer(plan, t, i, L::up(plan.tendons[i].damping) * h, a);
        }
    }
    for (u, d) in plan.drives.iter().enumerate() {
        if !d.affine {
            continue;
        }
        let gear = L::up(d.gear);
        let w = -(drive.slope[u] * gear * gear * h);
        match d.target {
            Target::Joint { padded, .. } => {
                let (b, k) = (padded / 3, padded % 3);
                a[tri(b) + b][4 * k] += w;
            }
            Target::Tendon(i) => outer(plan, t, i, w, a),
        }
    }
}

/// Adds `w JᵀJ` of a tendon within the pattern of the mass matrix.
#[inline(always)]
fn outer<L: Lane>(plan: &Plan<L>, t: &Tendons<L>, i: usize, w: L, a: &mut [Mat3<L>]) {
    if !L::zero().lt(w.abs()).any() {
        return;
    }
    let blocks = &plan.classes[plan.tendons[i].class].blocks;
    for x in 0..blocks.len() {
        let row = blocks[x].block as usize;
        let j = scale3(t.jac[plan.tendons[i].jac + x], w);
        for y in 0..x + 1 {
            let column = blocks[y].block as usize;
            if column == row || plan.blocks.mask[row] >> column & 1 == 1 {
                let k = t.jac[plan.tendons[i].jac + y];
                let q = &mut a[tri(row) + column];
                for e in 0..3 {
                    for f in 0..3 {
                        q[3 * e + f] = j[e].fma(k[f], q[3 * e + f]);
                    }
                }
            }
        }
    }
}

/// `qpos ⊕= h v`: quaternions turn by the local angular velocity.
#[inline(always)]
pub(crate) fn positions<L: Lane>(plan: &Plan<L>, v: &[L], h: L, qpos: &mut [L]) {
    for j in &plan.joints {
        let v = &v[j.dof..];
        let q = &mut qpos[j.qpos..];
        if j.kind != JointKind::Free {
            q[0] = v[0].fma(h, q[0]);
            continue;
        }
        for e in 0..3 {
            q[e] = v[e].fma(h, q[e]);
        }
        let w = [v[3], v[4], v[5]];
        let (axis, speed) = normalize3(w);
        let (s, c) = sincos(speed * h * L::splat(0.5));
        let old = quat_normalize([q[3], q[4], q[5], q[6]]);
        let new = quat_mul(old, [c, axis[0] * s, axis[1] * s, axis[2] * s]);
        q[3..7].copy_from_slice(&new);
    }
}

/// One stage of the classic fourth-order scheme, after a forward evaluation at the stage's state.
///
/// ```text
/// k_i = (v_i, a_i) and ẇ_i,   x_{i+1} = x_0 ⊕ h c_i k_i,   c = ½, ½, 1
/// x = x_0 ⊕ h (k_0 + 2 k_1 + 2 k_2 + k_3) / 6
/// ```
///
/// The warm start stays that of the step's beginning until the last stage, whose acceleration replaces it.
pub(crate) struct RungeKutta<'a, L: Lane> {
    pub plan: &'a Plan<L>,
    pub s: &'a mut State<L>,
    pub x: &'a mut Scratch<L>,
    pub h: f64,
    pub stage: usize,
}

impl<L: Lane> Kernel for RungeKutta<'_, L> {
    type Out = ();
    #[inline(always)]
    fn run(self) {
        let RungeKutta { plan, s, x, h, stage } = self;
        let (acc, r) = (x.smooth.qacc.as_flattened(), &mut x.runge);
        if stage == 0 {
            r.qpos.copy_from_slice(&s.qpos);
            r.qvel.copy_from_slice(&s.qvel);
            r.sum_vel.fill(L::zero());
            r.sum_acc.fill(L::zero());
            r.act.copy_from_slice(&s.act);
            r.sum_act.fill(L::zero());
        }
        let weight = L::splat([1.0 / 6.0, 1.0 / 3.0, 1.0 / 3.0, 1.0 / 6.0][stage]);
        let last = stage == 3;
        let step = L::splat(if last { h } else { [0.5, 0.5, 1.0][stage] * h });
        for (i, &p) in plan.blocks.padded.iter().enumerate() {
            r.sum_vel[i] = s.qvel[i].fma(weight, r.sum_vel[i]);
            r.sum_acc[i] = acc[p].fma(weight, r.sum_acc[i]);
            r.last_qvel[i] = s.qvel[i];
            let a = if last { r.sum_acc[i] } else { acc[p] };
            s.qvel[i] = a.fma(step, r.qvel[i]);
        }
        for drive in &plan.drives {
            let Some(a) = &drive.act else { continue };
            let (i, dot) = (a.index, x.drive.act_dot[a.index]);
            r.sum_act[i] = dot.fma(weight, r.sum_act[i]);
            s.act[i] = if last { advance(a, r.act[i], r.sum_act[i]) } else { dot.fma(step, r.act[i]) };
        }
        s.qpos.copy_from_slice(&r.qpos);
        positions(plan, if last { &r.sum_vel } else { &r.last_qvel }, step, &mut s.qpos);
        if last {
            unpad(plan, &x.smooth.qacc, &mut s.warm);
        }
    }
}
