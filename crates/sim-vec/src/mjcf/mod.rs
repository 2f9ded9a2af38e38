//! MJCF, MuJoCo's model format, to a compiled [`Model`].
//!
//! Everything that MuJoCo 3.17 accepts is either taken, or has no influence on the motion and is skipped (see
//! [`Model::skipped`]), or is refused with its place and what to write instead. Nothing that would change the motion
//! is dropped silently.
//!
//! It stands on an XML reader and not on the `mjcf-rs` crate, which (0.36) reads neither `solref` and `solimp` nor
//! integrator, solver settings and flags, skips what it does not know without a word, and names no line in its errors.
//!
//! ```
//! let model = sim_vec::mjcf::parse(
//!     r#"<mujoco><worldbody><body><joint axis="0 1 0"/><geom size="0.1" pos="0 0 -1"/></body></worldbody></mujoco>"#,
//!     "pendulum.xml",
//! )?;
//! assert_eq!(model.nv(), 1);
//! let error = sim_vec::mjcf::parse("<mujoco>\n<worldbody><geom sise='1'/></worldbody></mujoco>", "a.xml").unwrap_err();
//! assert_eq!(error.to_string(), "a.xml:2:18: <geom> has no attribute `sise`; did you mean `size`?");
//! # Ok::<(), sim_vec::mjcf::MjcfError>(())
//! ```

mod actuator;
mod defaults;
mod error;
mod geom;
mod inertia;
mod joint;
mod names;
mod pair;
mod rotation;
mod schema;
mod sensor;
mod settings;
mod shape;
mod site;
mod source;
mod tree;
mod value;
mod weights;

use std::path::Path;

pub use error::{MjcfError, Place};

use crate::model::{Actuator, Id, Keyframe, Model};
use defaults::Classes;
use names::Names;
use pair::{PairSpec, Touching};
use settings::Settings;
use source::{Node, Sources};
use tree::Tree;
use value::Reader;

/// Reads and compiles a file. Includes are looked for next to it.
///
/// Errors: [`MjcfError`], always with the place.
pub fn load(path: impl AsRef<Path>) -> Result<Model, MjcfError> {
    let path = path.as_ref();
    let file = path.display().to_string();
    let text = std::fs::read_to_string(path).map_err(|reason| MjcfError::Read { file: file.clone(), reason })?;
    compile(&file, text, path.parent().unwrap_or(Path::new("")))
}

/// Compiles MJCF text. `origin` names it in errors; includes are looked for in the working directory.
///
/// Errors: [`MjcfError`], always with the place.
pub fn parse(text: &str, origin: &str) -> Result<Model, MjcfError> {
    compile(origin, text.to_string(), Path::new(""))
}

fn compile(name: &str, text: String, dir: &Path) -> Result<Model, MjcfError> {
    let mut sources = Sources::default();
    let root = sources.document(name, text, dir)?;
    let r = Reader { sources: &sources, node: &root };
    if root.tag != "mujoco" {
        return Err(r.invalid("the outermost element of MJCF is <mujoco>; other formats are not read"));
    }
    schema::check(&sources, "", &root)?;
    let mut skipped = Vec::new();
    for node in &root.children {
        let r = Reader { sources: &sources, node };
        match node.tag.as_str() {
            "visual" | "asset" | "custom" => skipped.push(node.tag.clone()),
            "tendon" | "equality" | "deformable" | "extension" if !node.children.is_empty() => {
                return Err(r.refuse_element("remove the section: there are rigid trees with joints only"));
            }
            _ => {}
        }
    }
    let settings = Settings::read(&sources, &root, &mut skipped)?;
    let classes = Classes::read(&sources, &root)?;
    let mut tree = Tree::read(&root, &sources, &settings, &classes)?;
    inertia::scale(&mut tree.inertias, settings.compiler.total_mass);
    for (body, i) in tree.bodies.iter_mut().zip(&tree.inertias) {
        (body.mass, body.ipos, body.iquat, body.inertia) = (i.mass, i.pos, i.quat, i.moments);
        body.subtree_mass = i.mass;
    }
    for b in (1..tree.bodies.len()).rev() {
        let (parent, mass) = (tree.bodies[b].parent, tree.bodies[b].subtree_mass);
        tree.bodies[parent].subtree_mass += mass;
    }
    let pairs = Touching {
        sources: &sources,
        settings: &settings,
        bodies: &tree.bodies,
        geoms: &tree.geoms,
        nodes: &tree.geom_nodes,
        geom_names: &tree.geom_names,
        body_names: &tree.body_names,
    }
    .pairs(&root, |r| Ok(class_of(r, &classes)?.map_or_else(PairSpec::default, |c| classes.get(c).pair.clone())))?;
    let actuators = actuators(&sources, &root, &settings, &classes, &tree)?;
    let sensors = sensor::read(&sources, &root, &tree.body_names, &tree.site_names, &mut skipped)?;
    let keyframes = keyframes(&sources, &root, &tree, settings.keyframes)?;

    let body_nodes = std::mem::take(&mut tree.body_nodes);
    let spring_dampers = std::mem::take(&mut tree.spring_dampers);
    skipped.append(&mut tree.skipped);
    let mut model = Model {
        name: root.attr("model").map_or("MuJoCo Model", |a| &a.value).to_string(),
        opt: settings.opt.clone(),
        nq: tree.qpos0.len(),
        bodies: tree.bodies,
        joints: tree.joints,
        dofs: tree.dofs,
        geoms: tree.geoms.into_iter().map(|g| g.geom).collect(),
        sites: tree.sites,
        pairs,
        tendons: Vec::new(),
        equalities: Vec::new(),
        actuators,
        sensors,
        qpos0: tree.qpos0,
        qpos_spring: tree.qpos_spring,
        keyframes,
        mean_inertia: 1.0,
        skipped,
    };
    let mean = weights::set(&mut model).map_err(|body| {
        Reader { sources: &sources, node: body_nodes[body] }.invalid(
            "it moves and has no inertia, or two of its joints move it alike; give it geoms with mass, an <inertial>, \
                 or its joints an armature",
        )
    })?;
    model.mean_inertia = settings.mean_inertia.unwrap_or(mean);
    for (joint, [time, ratio]) in spring_dampers {
        let dof = &mut model.dofs[model.joints[joint].dof];
        let inertia = 1.0 / dof.invweight0;
        if settings.spring {
            model.joints[joint].stiffness = inertia / (time * ratio).powi(2);
        }
        if settings.damper {
            dof.damping = 2.0 * inertia / time;
        }
    }
    Ok(model)
}

/// The class an element outside bodies names.
fn class_of(r: Reader, classes: &Classes) -> Result<Option<usize>, MjcfError> {
    r.node.attr("class").map(|a| classes.find(r, a)).transpose().map(|c| Some(c.unwrap_or(0)))
}

fn sections<'a>(root: &'a Node, tag: &'static str) -> impl Iterator<Item = &'a Node> {
    root.children.iter().filter(move |c| c.tag == tag).flat_map(|c| &c.children)
}

fn actuators(
    sources: &Sources,
    root: &Node,
    settings: &Settings,
    classes: &Classes,
    tree: &Tree,
) -> Result<Vec<Actuator>, MjcfError> {
    let mut names = Names::new("actuator");
    let mut all: Vec<Actuator> = Vec::new();
    for node in sections(root, "actuator") {
        let r = Reader { sources, node };
        if !matches!(node.tag.as_str(), "motor" | "general") {
            return Err(r.refuse_element(actuator::INSTEAD));
        }
        let mut spec = classes.get(class_of(r, classes)?.unwrap_or(0)).actuator.clone();
        spec.read(r)?;
        let one = spec.compile(r, &tree.joint_names, &tree.joints, settings)?;
        names.add(r, &one.name, all.len())?;
        all.push(one);
    }
    Ok(all)
}

/// Named configurations; missing ones are the reference configuration.
fn keyframes(sources: &Sources, root: &Node, tree: &Tree, least: usize) -> Result<Vec<Keyframe>, MjcfError> {
    let mut names = Names::new("key");
    let mut keys: Vec<Keyframe> = Vec::new();
    let nq = tree.qpos0.len();
    let key = |name, qpos| Keyframe { name, qpos, qvel: vec![0.0; tree.dofs.len()], act: Vec::new(), ctrl: Vec::new() };
    for node in sections(root, "keyframe") {
        let r = Reader { sources, node };
        let name = node.text("name").to_string();
        names.add(r, &name, keys.len())?;
        let mut qpos = tree.qpos0.clone();
        if let Some(a) = node.attr("qpos") {
            qpos = r.numbers(a, nq, nq)?;
        }
        for joint in tree.joints.iter().filter(|j| j.kind == crate::model::JointKind::Free) {
            let at: Id = joint.qpos + 3;
            if rotation::normalize(&mut qpos[at..at + 4]) == 0.0 {
                return Err(r.invalid("the quaternion of a free joint is zero; write 1 0 0 0 for none"));
            }
        }
        keys.push(key(name, qpos));
    }
    keys.resize_with(keys.len().max(least), || key(String::new(), tree.qpos0.clone()));
    Ok(keys)
}
