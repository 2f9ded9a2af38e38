//! Refuses models that contradict themselves, so that kernels may index without doubt.
use crate::engine_error::EngineError;
use crate::model::{Integrator, Joint, JointKind, Model, Path, Sensor, SensorKind, Transmission};

/// Checks indices, lengths and the depth-first order; then what is well-formed but not supported.
pub(super) fn check(model: &Model) -> Result<(), EngineError> {
    let fail = |what: String| Err(EngineError::Inconsistent { model: model.name.clone(), what });
    let (nbody, njoint, nv, nq) = (model.bodies.len(), model.joints.len(), model.nv(), model.nq);
    if nbody == 0 {
        return fail("it has no world body".into());
    }
    if model.qpos0.len() != nq || model.qpos_spring.len() != nq {
        return fail(format!("qpos0 or qpos_spring do not have {nq} numbers"));
    }
    let (mut joint, mut dof, mut qpos) = (0, 0, 0);
    for (i, b) in model.bodies.iter().enumerate() {
        let rooted = if i == 0 {
            b.joints.is_empty()
        } else {
            b.parent < i && b.root == if b.parent == 0 { i } else { model.bodies[b.parent].root }
        };
        if !rooted || b.joints.start != joint && !b.joints.is_empty() || b.joints.end > njoint {
            return fail(format!("body `{}` is not in depth-first order with its parent, root and joints", b.name));
        }
        let first = dof;
        for j in b.joints.clone() {
            let jt = &model.joints[j];
            let (n, m) = if jt.kind == JointKind::Free { (6, 7) } else { (1, 1) };
            if jt.body != i || jt.dof != dof || jt.qpos != qpos || dof + n > nv || qpos + m > nq {
                return fail(format!("joint `{}` does not own the dofs and positions it names", jt.name));
            }
            if jt.kind == JointKind::Free && (b.joints.len() != 1 || b.parent != 0) {
                return fail(format!("free joint `{}` is not alone on a child of the world", jt.name));
            }
            joint += 1;
            dof += n;
            qpos += m;
        }
        if b.dofs != (first..dof) && !(b.dofs.is_empty() && first == dof) {
            return fail(format!("body `{}` does not own the dofs of its joints", b.name));
        }
    }
    if joint != njoint || dof != nv || qpos != nq {
        return fail("there are joints, dofs or positions that no body owns".into());
    }
    let mut last: Vec<Option<usize>> = vec![None; nbody];
    for (i, b) in model.bodies.iter().enumerate().skip(1) {
        let mut before = last[b.parent];
        for d in b.dofs.clone() {
            if model.dofs[d].body != i || model.dofs[d].parent != before || model.dofs[d].joint >= njoint {
                return fail(format!("dof {d} of body `{}` has another body, joint or parent", b.name));
            }
            before = Some(d);
        }
        last[i] = before;
    }
    if model.geoms.iter().any(|g| g.body >= nbody) || model.sites.iter().any(|s| s.body >= nbody) {
        return fail("a geom or site is on a body that does not exist".into());
    }
    if model.pairs.iter().any(|p| p.geoms.iter().any(|&g| g >= model.geoms.len())) {
        return fail("a contact pair names a geom that does not exist".into());
    }
    let mut start = 0;
    for s in &model.sensors {
        let known = super::measure::exists(model, s.kind);
        if !known || s.start != start {
            return fail(format!("sensor `{}` reads an object that does not exist or begins elsewhere", s.name));
        }
        start += s.kind.dim();
    }
    let driven = |t: Transmission| match t {
        Transmission::Joint(j) => j < njoint,
        Transmission::Tendon(t) => t < model.tendons.len(),
    };
    if model.actuators.iter().any(|a| !driven(a.target)) {
        return fail("an actuator drives what does not exist".into());
    }
    supported(model)
}

fn supported(model: &Model) -> Result<(), EngineError> {
    for j in model.joints.iter().filter(|j| j.kind == JointKind::Free) {
        if j.stiffness != 0.0 {
            return Err(EngineError::FreeSpring { joint: j.name.clone() });
        }
        if j.range.is_some() {
            return Err(EngineError::FreeJoint { what: "a limit".into(), joint: j.name.clone() });
        }
    }
    let spatial = model.tendons.iter().any(|t| matches!(t.path, Path::Spatial(_)));
    let between = |s: &&Sensor| matches!(s.kind, SensorKind::Force(_) | SensorKind::Torque(_));
    if let Some(s) = model.sensors.iter().filter(|_| spatial).find(between) {
        return Err(EngineError::Tension { sensor: s.name.clone() });
    }
    if model.opt.integrator == Integrator::ImplicitFast {
        let alone = |j: &&Joint| j.kind == JointKind::Free && model.dofs.iter().all(|d| d.parent != Some(j.dof + 5));
        let what = if model.opt.density > 0.0 || model.opt.viscosity > 0.0 {
            Some("a medium".to_string())
        } else {
            let body = |j: &Joint| format!("body `{}`, which is free and alone,", model.bodies[j.body].name);
            model.joints.iter().find(alone).map(body)
        };
        if let Some(what) = what {
            return Err(EngineError::ImplicitFast { what });
        }
    }
    for a in &model.actuators {
        let Transmission::Joint(j) = a.target else { continue };
        let joint = &model.joints[j];
        if joint.kind == JointKind::Free {
            return Err(EngineError::FreeJoint { what: format!("actuator `{}`", a.name), joint: joint.name.clone() });
        }
    }
    Ok(())
}
