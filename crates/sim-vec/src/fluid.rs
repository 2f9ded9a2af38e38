//! Forces of the medium on bodies, and compensation of their weight.
//!
//! A body without ellipsoids is a box with its moments of inertia. With `ω`, `v` the velocities of its centre of mass
//! in the frame of principal axes, relative to the medium:
//!
//! ```text
//! f = −3π d μ v − ½ ρ (b_j b_k) |v_i| v_i,   τ = −π d³ μ ω − ρ b_i (b_j⁴ + b_k⁴) |ω_i| ω_i / 64,   d = mean side
//! ```
//!
//! A geom as an ellipsoid has added mass, Magnus and Kutta lift, drag and viscous resistance; formulas at
//! [`ellipsoid`]. MuJoCo's documentation, "Fluid forces".
use crate::lane::{Lane, up3, up4};
use crate::math::*;
use crate::plan::Plan;
use crate::plan::medium::{DragShape, Ellipsoid};
use crate::state::{Bodies, Smooth, Vary};

/// Adds the forces of the medium to `passive`. Needs the bodies' velocities.
#[inline(always)]
pub(crate) fn drag<L: Lane>(plan: &Plan<L>, x: &mut Bodies<L>, y: &mut Smooth<L>) {
    if plan.drags.is_empty() {
        return;
    }
    x.wrench.fill([L::zero(); 6]);
    let wind: V3<L> = up3(&plan.wind);
    for drag in &plan.drags {
        let body = drag.body;
        let com = x.com[plan.bodies[body].root];
        let (pos, mat) = match &drag.shape {
            DragShape::Box { .. } => {
                let mat = match &plan.bodies[body].iquat {
                    None => x.xmat[body],
                    Some(q) => quat_mat(quat_mul(x.xquat[body], up4(q))),
                };
                (x.xipos[body], mat)
            }
            DragShape::Ellipsoid(e) => {
                let pos = add3(mulmv(&x.xmat[body], up3(&e.pos)), x.xpos[body]);
                (pos, quat_mat(quat_mul(x.xquat[body], up4(&e.quat))))
            }
        };
        let v = &x.cvel[body];
        let turn = [v[0], v[1], v[2]];
        let move_ = sub3(add3([v[3], v[4], v[5]], cross(turn, sub3(pos, com))), wind);
        let (w, v) = (multmv(&mat, turn), multmv(&mat, move_));
        let (torque, force) = match &drag.shape {
            DragShape::Box { turn, move_, turn2, move2 } => {
                let (mut torque, mut force) = ([L::zero(); 3], [L::zero(); 3]);
                for k in 0..3 {
                    torque[k] = -(L::up(turn2[k]).fma(w[k].abs(), L::up(*turn)) * w[k]);
                    force[k] = -(L::up(move2[k]).fma(v[k].abs(), L::up(*move_)) * v[k]);
                }
                (torque, force)
            }
            DragShape::Ellipsoid(e) => ellipsoid(e, w, v),
        };
        let (torque, force) = (mulmv(&mat, torque), mulmv(&mat, force));
        push(&mut x.wrench[body], sub3(pos, com), torque, force);
    }
    spread(plan, x, y, false);
}

/// Adds compensated weight to `passive`, or to `driven` where a joint counts it as actuator force.
#[inline(always)]
pub(crate) fn buoyancy<L: Lane>(plan: &Plan<L>, vary: Option<Vary<L>>, x: &mut Bodies<L>, y: &mut Smooth<L>) {
    if plan.buoys.is_empty() {
        return;
    }
    x.wrench.fill([L::zero(); 6]);
    for buoy in &plan.buoys {
        let off = sub3(x.xipos[buoy.body], x.com[plan.bodies[buoy.body].root]);
        let mut force: V3<L> = up3(&buoy.force);
        if let Some(v) = &vary {
            force = scale3(force, v.mass[buoy.body] * v.gravity);
        }
        push(&mut x.wrench[buoy.body], off, [L::zero(); 3], force);
    }
    spread(plan, x, y, true);
}

/// Adds a torque and a force at `off` from the tree's centre of mass.
#[inline(always)]
fn push<L: Lane>(to: &mut V6<L>, off: V3<L>, torque: V3<L>, force: V3<L>) {
    let t = add3(torque, cross(off, force));
    for k in 0..3 {
        to[k] += t[k];
        to[3 + k] += force[k];
    }
}

/// Sums wrenches towards the roots and adds what each dof feels.
#[inline(always)]
fn spread<L: Lane>(plan: &Plan<L>, x: &mut Bodies<L>, y: &mut Smooth<L>, weight: bool) {
    for b in (1..plan.bodies.len()).rev() {
        let p = plan.bodies[b].parent;
        if p > 0 {
            let c = x.wrench[b];
            for k in 0..6 {
                x.wrench[p][k] += c[k];
            }
        }
    }
    for i in 0..plan.blocks.count {
        for k in 0..3 {
            let force = dot6(&y.cdof[i][k], &x.wrench[plan.row_body[i][k]]);
            if weight && plan.gravcomp_actuated.contains(&(3 * i + k)) {
                y.driven[i][k] += force;
            } else {
                y.passive[i][k] += force;
            }
        }
    }
}

/// Torque and force on an ellipsoid with semi-axes `a`, `b`, `c` in its own frame.
///
/// ```text
/// added mass   f += p × ω,  τ += p × v + L × ω,      p = ρ m_v v, L = ρ I_v ω
/// Magnus       f += c_M ρ V ω × v
/// Kutta        f += (c_K ρ cos α A n × v) × v,       n = (b²c² v_x, c²a² v_y, a²b² v_z)
/// drag         f −= (μ k + ρ |v| (c_b A + c_s (A_max − A))) v
///              τ −= (μ k' + ρ |D ω|) ω
/// A = π √(Σ (bc)⁴ v_x² / Σ (bc)² v_x²),   cos α = Σ (bc)² v_x² / (|v| Σ (bc)⁴ v_x²)
/// ```
#[inline(always)]
fn ellipsoid<L: Lane>(e: &Ellipsoid<L>, w: V3<L>, v: V3<L>) -> (V3<L>, V3<L>) {
    let tiny = L::splat(1e-15);
    let size: V3<L> = up3(&e.size);
    let (p, l) = (mul3(up3(&e.mass), v), mul3(up3(&e.inertia), w));
    let mut force = cross(p, w);
    let mut torque = add3(cross(p, v), cross(l, w));
    force = axpy3(force, cross(w, v), L::up(e.magnus));
    let side = [size[1] * size[2], size[2] * size[0], size[0] * size[1]];
    let side2 = mul3(side, side);
    let n = mul3(side2, v);
    let (num, denom) = (dot3(n, v), dot3(n, n));
    let speed = dot3(v, v).sqrt();
    let area = L::splat(std::f64::consts::PI) * (denom / num.max(tiny)).sqrt();
    let cosine = num / (speed * denom).max(tiny);
    let circulation = scale3(cross(n, v), L::up(e.kutta) * cosine * area);
    force = add3(force, cross(circulation, v));
    let blunt = L::up(e.slender).fma(L::up(e.area) - area, L::up(e.blunt) * area);
    force = axpy3(force, v, -speed.fma(blunt, L::up(e.move_)));
    let moment = mul3(up3(&e.turn2), w);
    torque = axpy3(torque, w, -(L::up(e.turn) + dot3(moment, moment).sqrt()));
    (torque, force)
}
