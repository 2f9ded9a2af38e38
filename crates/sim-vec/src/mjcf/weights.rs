//! What the reference configuration says: inverse weights of dofs and bodies, the mean inertia.

use super::inertia::turned;
use super::rotation::{Quat, Vec3, add, apply, compose, cross, matrix, rotate, sub};
use crate::model::{Id, JointKind, Model};

/// A point's velocity per unit of one dof: linear and angular, in the world.
#[derive(Clone, Copy)]
struct Column {
    linear: Vec3,
    angular: Vec3,
}

/// Fills in `invweight0` of bodies and dofs and returns the mean diagonal of the mass matrix at `qpos0`:
///
/// ```text
/// M = Σ_b (m_b·J_vᵀJ_v + J_ωᵀ·I_b·J_ω) + diag(armature)
/// dof:  (M⁻¹)_ii, averaged over the three translations and the three rotations of a free joint
/// body: mean diagonal of J·M⁻¹·Jᵀ at its centre of mass, translation and rotation apart; 0 if it cannot move
/// ```
///
/// Bodies on slides alone are an exception, see [`slides_only`].
///
/// Errors with a body whose motion has no inertia.
pub(super) fn set(model: &mut Model) -> Result<f64, Id> {
    let nv = model.nv();
    let poses = poses(model);
    let bodies = model.bodies.len();
    let jacobians: Vec<Vec<Option<Column>>> = (0..bodies)
        .map(|b| {
            let centre = add(poses[b].0, rotate(poses[b].1, model.bodies[b].ipos));
            jacobian(model, &poses, b, centre)
        })
        .collect();
    let mut m = vec![0.0; nv * nv];
    for (b, columns) in jacobians.iter().enumerate() {
        let body = &model.bodies[b];
        let tensor = turned(compose(poses[b], [0.0; 3], body.iquat).1, body.inertia);
        for (i, ci) in columns.iter().enumerate() {
            let Some(ci) = ci else { continue };
            let turned = apply(&tensor, ci.angular);
            for (j, cj) in columns.iter().enumerate() {
                let Some(cj) = cj else { continue };
                m[i * nv + j] += body.mass * dot(ci.linear, cj.linear) + dot(turned, cj.angular);
            }
        }
    }
    for (i, d) in model.dofs.iter().enumerate() {
        m[i * nv + i] += d.armature;
    }
    let mean = if nv == 0 { 1.0 } else { (0..nv).map(|i| m[i * nv + i]).sum::<f64>() / nv as f64 };
    let l = cholesky(m, nv).map_err(|dof| model.dofs[dof].body)?;

    let unit = |i: usize| {
        let mut e = vec![0.0; nv];
        e[i] = 1.0;
        e
    };
    let diagonal: Vec<f64> = (0..nv).map(|i| weight(&l, unit(i))).collect();
    for joint in &model.joints {
        let d = joint.dof;
        match joint.kind {
            JointKind::Free => {
                for half in [d, d + 3] {
                    let mean = diagonal[half..half + 3].iter().sum::<f64>() / 3.0;
                    model.dofs[half..half + 3].iter_mut().for_each(|dof| dof.invweight0 = mean);
                }
            }
            _ => model.dofs[d].invweight0 = diagonal[d],
        }
    }
    for (b, columns) in jacobians.iter().enumerate() {
        let row = |part: fn(&Column) -> Vec3, k: usize| -> Vec<f64> {
            columns.iter().map(|c| c.as_ref().map_or(0.0, |c| part(c)[k])).collect()
        };
        let mean = |part: fn(&Column) -> Vec3| (0..3).map(|k| weight(&l, row(part, k))).sum::<f64>() / 3.0;
        model.bodies[b].invweight0 = [mean(|c| c.linear), mean(|c| c.angular)];
    }
    // MuJoCo takes these at their mass, whatever the direction and the armature
    for b in 1..bodies {
        if slides_only(model, b) {
            let weight = 1.0 / model.bodies[b].mass;
            model.bodies[b].invweight0 = [weight, 0.0];
            model.dofs[model.bodies[b].dofs.clone()].iter_mut().for_each(|d| d.invweight0 = weight);
        }
    }
    Ok(mean)
}

/// A body on nothing but slides along its own axes, with its inertia in its frame, fixed to the world otherwise and
/// carrying no other body.
fn slides_only(model: &Model, b: Id) -> bool {
    let body = &model.bodies[b];
    let joints = &model.joints[body.joints.clone()];
    let aligned = |axis: Vec3| axis.iter().filter(|x| **x != 0.0).count() == 1;
    !joints.is_empty()
        && joints.iter().all(|j| j.kind == JointKind::Slide && j.pos == [0.0; 3] && aligned(j.axis))
        && body.ipos == [0.0; 3]
        && body.iquat == [1.0, 0.0, 0.0, 0.0]
        && model.bodies[body.parent].weld == 0
        && model.bodies.iter().skip(1).all(|c| c.parent != b)
}

/// Body frames in the world at `qpos0`, where joints displace nothing.
fn poses(model: &Model) -> Vec<(Vec3, Quat)> {
    let mut poses: Vec<(Vec3, Quat)> = Vec::with_capacity(model.bodies.len());
    for (b, body) in model.bodies.iter().enumerate() {
        let own = (body.pos, body.quat);
        poses.push(if b == 0 { own } else { compose(poses[body.parent], own.0, own.1) });
    }
    poses
}

/// Velocity of a point fixed to a body per dof; `None` for dofs that do not move the body.
fn jacobian(model: &Model, poses: &[(Vec3, Quat)], body: Id, point: Vec3) -> Vec<Option<Column>> {
    let mut columns = vec![None; model.nv()];
    let mut b = body;
    while b != 0 {
        let (pos, quat) = poses[b];
        let about = |axis: Vec3, anchor: Vec3| Column { linear: cross(axis, sub(point, anchor)), angular: axis };
        let along = |axis: Vec3| Column { linear: axis, angular: [0.0; 3] };
        for joint in &model.joints[model.bodies[b].joints.clone()] {
            let axis = rotate(quat, joint.axis);
            match joint.kind {
                JointKind::Slide => columns[joint.dof] = Some(along(axis)),
                JointKind::Hinge => columns[joint.dof] = Some(about(axis, add(pos, rotate(quat, joint.pos)))),
                JointKind::Free => {
                    let turn = matrix(quat);
                    for k in 0..3 {
                        let unit: Vec3 = std::array::from_fn(|i| f64::from(u8::from(i == k)));
                        columns[joint.dof + k] = Some(along(unit));
                        columns[joint.dof + 3 + k] = Some(about([turn[k], turn[3 + k], turn[6 + k]], pos));
                    }
                }
            }
        }
        b = model.bodies[b].parent;
    }
    columns
}

fn dot(a: Vec3, b: Vec3) -> f64 {
    super::rotation::dot(&a, &b)
}

/// Lower triangle L of M = L·Lᵀ. Errors with the first row that has no positive pivot.
fn cholesky(mut m: Vec<f64>, n: usize) -> Result<Vec<f64>, usize> {
    for i in 0..n {
        let scale = m[i * n + i];
        for j in 0..=i {
            let sum: f64 = (0..j).map(|k| m[i * n + k] * m[j * n + k]).sum();
            let rest = m[i * n + j] - sum;
            m[i * n + j] = if i == j {
                // what is left of a pivot by cancellation alone is no inertia
                if !(rest > 1e-14 * scale && rest > 1e-15) {
                    return Err(i);
                }
                rest.sqrt()
            } else {
                rest / m[j * n + j]
            };
        }
    }
    Ok(m)
}

/// jᵀ·M⁻¹·j = |L⁻¹·j|²
fn weight(l: &[f64], mut j: Vec<f64>) -> f64 {
    let n = j.len();
    for i in 0..n {
        let sum: f64 = (0..i).map(|k| l[i * n + k] * j[k]).sum();
        j[i] = (j[i] - sum) / l[i * n + i];
    }
    j.iter().map(|x| x * x).sum()
}
