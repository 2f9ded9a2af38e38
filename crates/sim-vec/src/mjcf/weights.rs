//! What the reference configuration says: inverse weights of dofs, bodies and tendons, tendon lengths, inertias.

use super::inertia::turned;
use super::rotation::{Quat, Vec3, about, add, apply, compose, cross, matrix, mul, normalize, rotate, sub};
use crate::model::{Id, JointKind, Model, Path, Transmission};

/// A point's velocity per unit of one dof: linear and angular, in the world.
#[derive(Clone, Copy)]
struct Column {
    linear: Vec3,
    angular: Vec3,
}

/// Inertia in the reference configuration.
pub(super) struct Reference {
    /// Mean diagonal of the mass matrix.
    pub(super) mean: f64,
    /// Lower triangle L of the mass matrix L·Lᵀ.
    factor: Vec<f64>,
    /// `[ntendon][nv]` derivatives of tendon lengths.
    tendons: Vec<Vec<f64>>,
}

impl Reference {
    /// The inertia that a transmission feels: `1 / (J·M⁻¹·Jᵀ)` with J the derivative of its length; 0 if nothing moves it.
    pub(super) fn felt(&self, model: &Model, target: Transmission, gear: f64) -> f64 {
        let j: Vec<f64> = match target {
            Transmission::Joint(id) => {
                (0..model.nv()).map(|i| if i == model.joints[id].dof { gear } else { 0.0 }).collect()
            }
            Transmission::Tendon(id) => self.tendons[id].iter().map(|j| gear * j).collect(),
        };
        let inverse = weight(&self.factor, j);
        if inverse > 1e-15 { 1.0 / inverse } else { 0.0 }
    }
}

/// Fills in `invweight0` of bodies, dofs and tendons and lengths of tendons at `qpos0`, and returns the inertias there:
///
/// ```text
/// M = Σ_b (m_b·J_vᵀJ_v + J_ωᵀ·I_b·J_ω) + diag(armature)
/// dof:    (M⁻¹)_ii, averaged over the three translations and the three rotations of a free joint
/// body:   mean diagonal of J·M⁻¹·Jᵀ at its centre of mass, translation and rotation apart; 0 if it cannot move
/// tendon: J·M⁻¹·Jᵀ
/// ```
///
/// Bodies on slides alone are an exception, see [`slides_only`].
///
/// Errors with a body whose motion has no inertia.
pub(super) fn set(model: &mut Model) -> Result<Reference, Id> {
    let nv = model.nv();
    let poses = poses(model, &model.qpos0);
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
    let tendons: Vec<Vec<f64>> = model.tendons.iter().map(|t| derivative(model, &poses, &t.path)).collect();
    for (i, j) in tendons.iter().enumerate() {
        let length0 = length(model, &poses, &model.qpos0, &model.tendons[i].path);
        let tendon = &mut model.tendons[i];
        (tendon.length0, tendon.invweight0) = (length0, weight(&l, j.clone()));
    }
    Ok(Reference { mean, factor: l, tendons })
}

/// Lengths at `qpos_spring` for springs of tendons that have none of their own (−1).
pub(super) fn rest(model: &mut Model) {
    let poses = poses(model, &model.qpos_spring);
    for i in 0..model.tendons.len() {
        if model.tendons[i].rest == [-1.0; 2] {
            model.tendons[i].rest = [length(model, &poses, &model.qpos_spring, &model.tendons[i].path); 2];
        }
    }
}

fn site(model: &Model, poses: &[(Vec3, Quat)], id: Id) -> Vec3 {
    let site = &model.sites[id];
    let (pos, quat) = poses[site.body];
    add(pos, rotate(quat, site.pos))
}

fn length(model: &Model, poses: &[(Vec3, Quat)], qpos: &[f64], path: &Path) -> f64 {
    match path {
        Path::Fixed(terms) => terms.iter().map(|(joint, coef)| coef * qpos[model.joints[*joint].qpos]).sum(),
        Path::Spatial(segments) => segments
            .iter()
            .map(|s| {
                let [a, b] = s.sites.map(|id| site(model, poses, id));
                dot(sub(b, a), sub(b, a)).sqrt() / s.divisor
            })
            .sum(),
    }
}

/// Of a tendon's length, by dof.
fn derivative(model: &Model, poses: &[(Vec3, Quat)], path: &Path) -> Vec<f64> {
    let mut j = vec![0.0; model.nv()];
    match path {
        Path::Fixed(terms) => terms.iter().for_each(|(joint, coef)| j[model.joints[*joint].dof] += coef),
        Path::Spatial(segments) => {
            for s in segments {
                let ends = s.sites.map(|id| site(model, poses, id));
                let mut along = sub(ends[1], ends[0]);
                if normalize(&mut along) == 0.0 {
                    along = [1.0, 0.0, 0.0];
                }
                for (k, sign) in [(0, -1.0), (1, 1.0)] {
                    let columns = jacobian(model, poses, model.sites[s.sites[k]].body, ends[k]);
                    for (to, column) in j.iter_mut().zip(columns) {
                        *to += column.map_or(0.0, |c| sign * dot(along, c.linear) / s.divisor);
                    }
                }
            }
        }
    }
    j
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

/// Body frames in the world. Joints displace by how far they are from `qpos0`.
fn poses(model: &Model, qpos: &[f64]) -> Vec<(Vec3, Quat)> {
    let mut poses: Vec<(Vec3, Quat)> = Vec::with_capacity(model.bodies.len());
    for (b, body) in model.bodies.iter().enumerate() {
        let own = (body.pos, body.quat);
        let mut pose = if b == 0 { own } else { compose(poses[body.parent], own.0, own.1) };
        for joint in &model.joints[body.joints.clone()] {
            let moved = qpos[joint.qpos] - model.qpos0[joint.qpos];
            match joint.kind {
                JointKind::Free => {
                    let q: [f64; 7] = std::array::from_fn(|k| qpos[joint.qpos + k]);
                    pose = ([q[0], q[1], q[2]], [q[3], q[4], q[5], q[6]]);
                }
                JointKind::Slide => pose.0 = add(pose.0, rotate(pose.1, joint.axis.map(|x| x * moved))),
                JointKind::Hinge if moved != 0.0 => {
                    let anchor = add(pose.0, rotate(pose.1, joint.pos));
                    let quat = mul(pose.1, about(joint.axis, moved));
                    pose = (sub(anchor, rotate(quat, joint.pos)), quat);
                }
                JointKind::Hinge => {}
            }
        }
        poses.push(pose);
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
