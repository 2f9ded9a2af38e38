//! `<keyframe>`: named states.

use super::error::MjcfError;
use super::names::Names;
use super::rotation::normalize;
use super::source::{Node, Sources};
use super::value::Reader;
use crate::model::{JointKind, Keyframe, Model};

/// Reads all `<keyframe>` sections. What a key leaves out is that of the reference configuration. At least `least`.
pub(super) fn read(sources: &Sources, root: &Node, model: &Model, least: usize) -> Result<Vec<Keyframe>, MjcfError> {
    let mut names = Names::new("key");
    let mut keys: Vec<Keyframe> = Vec::new();
    let key = |name| Keyframe {
        name,
        qpos: model.qpos0.clone(),
        qvel: vec![0.0; model.nv()],
        act: vec![0.0; model.na()],
        ctrl: vec![0.0; model.nu()],
    };
    for node in root.children.iter().filter(|c| c.tag == "keyframe").flat_map(|c| &c.children) {
        let r = Reader { sources, node };
        let mut k = key(node.text("name").to_string());
        names.add(r, &k.name, keys.len())?;
        for (name, to) in [("qpos", &mut k.qpos), ("qvel", &mut k.qvel), ("act", &mut k.act), ("ctrl", &mut k.ctrl)] {
            if let Some(a) = node.attr(name).filter(|a| !a.value.trim().is_empty()) {
                *to = r.numbers(a, to.len(), to.len())?;
            }
        }
        poses(r, model)?;
        for joint in model.joints.iter().filter(|j| j.kind == JointKind::Free) {
            let at = joint.qpos + 3;
            if normalize(&mut k.qpos[at..at + 4]) == 0.0 {
                return Err(r.invalid("the quaternion of a free joint is zero; write 1 0 0 0 for none"));
            }
        }
        keys.push(k);
    }
    keys.resize_with(keys.len().max(least), || key(String::new()));
    Ok(keys)
}

/// Poses of mocap bodies are inputs that start where their bodies stand; a key cannot move them.
fn poses(r: Reader, model: &Model) -> Result<(), MjcfError> {
    let bodies = || model.bodies.iter().filter(|b| b.mocap.is_some());
    let places = ("mpos", bodies().flat_map(|b| b.pos).collect::<Vec<f64>>());
    let turns = ("mquat", bodies().flat_map(|b| b.quat).collect::<Vec<f64>>());
    for (name, own) in [places, turns] {
        if let Some(a) = r.node.attr(name).filter(|a| !a.value.trim().is_empty()) {
            let given = r.numbers(a, own.len(), own.len())?;
            if given.iter().zip(&own).any(|(x, y)| (x - y).abs() > 1e-9) {
                return Err(r.refuse(a, "remove it, and set the mocap bodies' poses from outside"));
            }
        }
    }
    Ok(())
}
