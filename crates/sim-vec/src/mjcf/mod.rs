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
mod equality;
mod error;
mod geom;
mod inertia;
mod joint;
mod key;
mod names;
mod pair;
mod rotation;
mod schema;
mod sensor;
mod settings;
mod shape;
mod site;
mod source;
mod tendon;
mod tree;
mod value;
mod weights;

use std::path::Path;

pub use error::{MjcfError, Place};

use crate::model::{Actuator, Equality, Id, Model, Tendon};
use actuator::Targets;
use defaults::Classes;
use names::Names;
use pair::{PairSpec, Touching};
use settings::Settings;
use source::{Node, Sources};
use tendon::Anchors;
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
            "deformable" | "extension" if !node.children.is_empty() => {
                return Err(r.refuse_element("remove the section: there are rigid bodies only"));
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
    let attached = Attached::read(&sources, &root, &settings, &classes, &tree)?;
    let objects = sensor::Objects {
        bodies: &tree.body_names,
        geoms: &tree.geom_names,
        sites: &tree.site_names,
        joints: &tree.joint_names,
        all_joints: &tree.joints,
        tendons: &attached.tendon_names,
        actuators: &attached.actuator_names,
    };
    let sensors = sensor::read(&sources, &root, &objects, &mut skipped)?;

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
        tendons: attached.tendons,
        equalities: attached.equalities,
        actuators: attached.actuators,
        sensors,
        qpos0: tree.qpos0,
        qpos_spring: tree.qpos_spring,
        keyframes: Vec::new(),
        mean_inertia: 1.0,
        skipped,
    };
    let reference = weights::set(&mut model).map_err(|body| {
        Reader { sources: &sources, node: body_nodes[body] }.invalid(
            "it moves and has no inertia, or two of its joints move it alike; give it geoms with mass, an <inertial>, \
                 or its joints an armature",
        )
    })?;
    weights::rest(&mut model);
    model.mean_inertia = settings.mean_inertia.unwrap_or(reference.mean);
    for (actuator, ratio) in attached.damp_ratios {
        let a = &model.actuators[actuator];
        let critical = 2.0 * (a.gain[0] * reference.felt(&model, a.target, a.gear)).max(0.0).sqrt();
        model.actuators[actuator].bias[2] = -ratio * critical;
    }
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
    model.keyframes = key::read(&sources, &root, &model, settings.keyframes)?;
    Ok(model)
}

/// The class an element outside bodies names.
fn class_of(r: Reader, classes: &Classes) -> Result<Option<usize>, MjcfError> {
    r.node.attr("class").map(|a| classes.find(r, a)).transpose().map(|c| Some(c.unwrap_or(0)))
}

fn sections<'a>(root: &'a Node, tag: &'static str) -> impl Iterator<Item = &'a Node> {
    root.children.iter().filter(move |c| c.tag == tag).flat_map(|c| &c.children)
}

/// What stands on the tree.
struct Attached {
    tendons: Vec<Tendon>,
    tendon_names: Names,
    equalities: Vec<Equality>,
    actuators: Vec<Actuator>,
    actuator_names: Names,
    /// Actuators whose damping follows from a ratio.
    damp_ratios: Vec<(Id, f64)>,
}

impl Attached {
    /// Reads the sections `<tendon>`, `<equality>` and `<actuator>`.
    fn read(
        sources: &Sources,
        root: &Node,
        settings: &Settings,
        classes: &Classes,
        tree: &Tree,
    ) -> Result<Self, MjcfError> {
        let class = |r: Reader| Ok::<_, MjcfError>(classes.get(class_of(r, classes)?.unwrap_or(0)));
        let (mut tendons, mut tendon_names) = (Vec::new(), Names::new("tendon"));
        let anchors = Anchors { joint_names: &tree.joint_names, joints: &tree.joints, site_names: &tree.site_names };
        for node in sections(root, "tendon") {
            let r = Reader { sources, node };
            let mut spec = class(r)?.tendon.clone();
            spec.read(r)?;
            let one = spec.compile(r, &anchors, settings)?;
            tendon_names.add(r, &one.name, tendons.len())?;
            tendons.push(one);
        }
        let mut equalities: Vec<Equality> = Vec::new();
        let mut equality_names = Names::new("equality");
        for node in sections(root, "equality").filter(|_| settings.equality) {
            let r = Reader { sources, node };
            let mut spec = class(r)?.equality.clone();
            spec.read(r)?;
            if let Some(one) = spec.compile(r, &tree.joint_names, &tree.joints, &tendon_names)? {
                equality_names.add(r, &one.name, equalities.len())?;
                equalities.push(one);
            }
        }
        let (mut actuators, mut actuator_names, mut damp_ratios) = (Vec::new(), Names::new("actuator"), Vec::new());
        let targets = Targets {
            joint_names: &tree.joint_names,
            joints: &tree.joints,
            tendon_names: &tendon_names,
            tendons: &tendons,
        };
        for node in sections(root, "actuator") {
            let r = Reader { sources, node };
            if !schema::is_simulated(&node.tag) {
                return Err(r.refuse_element(actuator::INSTEAD));
            }
            let mut spec = class(r)?.actuator.clone();
            spec.read(r)?;
            let one = spec.compile(r, &targets, settings)?;
            actuator_names.add(r, &one.actuator.name, actuators.len())?;
            damp_ratios.extend(one.damp_ratio.map(|ratio| (actuators.len(), ratio)));
            actuators.push(one.actuator);
        }
        Ok(Attached { tendons, tendon_names, equalities, actuators, actuator_names, damp_ratios })
    }
}
