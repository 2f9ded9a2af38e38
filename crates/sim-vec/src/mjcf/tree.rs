//! `<worldbody>`: bodies with their joints, geoms and sites, frames resolved.

use super::defaults::Classes;
use super::error::MjcfError;
use super::geom::{self, orient};
use super::inertia::Inertia;
use super::joint::{self, JointSpec, Kind};
use super::names::Names;
use super::rotation::{Quat, Vec3, compose, rotate};
use super::settings::Settings;
use super::shape::Primitive;
use super::source::{Node, Sources};
use super::value::{Auto, Reader};
use crate::model::{Body, Dof, Id, Joint, JointKind, Site};

/// A rigid pose in some frame.
type Pose = (Vec3, Quat);
const HERE: Pose = ([0.0; 3], [1.0, 0.0, 0.0, 0.0]);

/// Everything that stands in bodies, in depth-first order.
pub(super) struct Tree<'a> {
    pub(super) bodies: Vec<Body>,
    pub(super) inertias: Vec<Inertia>,
    pub(super) joints: Vec<Joint>,
    pub(super) dofs: Vec<Dof>,
    /// Time constants and damping ratios of joints whose springs follow from them.
    pub(super) spring_dampers: Vec<(Id, [f64; 2])>,
    pub(super) geoms: Vec<geom::Compiled>,
    pub(super) geom_nodes: Vec<&'a Node>,
    pub(super) body_nodes: Vec<&'a Node>,
    pub(super) sites: Vec<Site>,
    pub(super) qpos0: Vec<f64>,
    pub(super) qpos_spring: Vec<f64>,
    pub(super) body_names: Names,
    pub(super) joint_names: Names,
    pub(super) geom_names: Names,
    pub(super) site_names: Names,
    pub(super) skipped: Vec<String>,
    mocaps: usize,
    sources: &'a Sources,
    settings: &'a Settings,
    classes: &'a Classes,
}

/// An element of a body with the frame it stands in and the class it falls back to.
struct Element<'a> {
    node: &'a Node,
    frame: Pose,
    class: usize,
}

impl<'a> Tree<'a> {
    /// Reads all `<worldbody>` sections.
    pub(super) fn read(
        root: &'a Node,
        sources: &'a Sources,
        settings: &'a Settings,
        classes: &'a Classes,
    ) -> Result<Self, MjcfError> {
        let mut tree = Tree {
            bodies: Vec::new(),
            inertias: Vec::new(),
            joints: Vec::new(),
            dofs: Vec::new(),
            spring_dampers: Vec::new(),
            geoms: Vec::new(),
            geom_nodes: Vec::new(),
            body_nodes: Vec::new(),
            sites: Vec::new(),
            qpos0: Vec::new(),
            qpos_spring: Vec::new(),
            body_names: Names::new("body"),
            joint_names: Names::new("joint"),
            geom_names: Names::new("geom"),
            site_names: Names::new("site"),
            skipped: Vec::new(),
            mocaps: 0,
            sources,
            settings,
            classes,
        };
        let mut elements = Vec::new();
        for world in root.children.iter().filter(|c| c.tag == "worldbody") {
            tree.body_names = Names::new("body");
            tree.flatten(world, HERE, 0, &mut elements)?;
        }
        tree.body_names.add(Reader { sources, node: root }, "world", 0)?;
        tree.push_body("world", 0, HERE, root);
        tree.inertias.push(Inertia::NONE);
        tree.attach(0, &elements)?;
        tree.children(0, &elements)?;
        Ok(tree)
    }

    fn push_body(&mut self, name: &str, parent: Id, pose: Pose, node: &'a Node) -> Id {
        let id = self.bodies.len();
        self.body_nodes.push(node);
        self.bodies.push(Body {
            name: name.into(),
            parent,
            root: if parent == 0 { id } else { self.bodies[parent].root },
            weld: 0,
            pos: pose.0,
            quat: pose.1,
            ipos: [0.0; 3],
            iquat: [1.0, 0.0, 0.0, 0.0],
            mass: 0.0,
            inertia: [0.0; 3],
            subtree_mass: 0.0,
            invweight0: [0.0; 2],
            joints: 0..0,
            dofs: 0..0,
            gravcomp: 0.0,
            mocap: None,
        });
        id
    }

    /// The elements of a body, `<frame>`s resolved.
    fn flatten(&self, node: &'a Node, frame: Pose, class: usize, to: &mut Vec<Element<'a>>) -> Result<(), MjcfError> {
        for child in &node.children {
            let r = Reader { sources: self.sources, node: child };
            if child.tag == "frame" {
                let inner = compose(frame, pos(r)?, self.orientation(r)?);
                self.flatten(child, inner, self.child_class(r, class)?, to)?;
            } else {
                to.push(Element { node: child, frame, class });
            }
        }
        Ok(())
    }

    fn orientation(&self, r: Reader) -> Result<Quat, MjcfError> {
        let mut given = None;
        for a in &r.node.attrs {
            if let Some(o) = r.orientation(a)? {
                given = Some((a.clone(), o));
            }
        }
        orient(r, &given, self.settings)
    }

    fn child_class(&self, r: Reader, outer: usize) -> Result<usize, MjcfError> {
        r.node.attr("childclass").map_or(Ok(outer), |a| self.classes.find(r, a))
    }

    /// The class an element starts from: its own, or the one around it.
    fn class(&self, r: Reader, outer: usize) -> Result<usize, MjcfError> {
        r.node.attr("class").map_or(Ok(outer), |a| self.classes.find(r, a))
    }

    /// Joints, inertia, geoms and sites of a body.
    fn attach(&mut self, body: Id, elements: &[Element<'a>]) -> Result<(), MjcfError> {
        let (first_joint, first_dof) = (self.joints.len(), self.dofs.len());
        let (first_geom, first_site) = (self.geoms.len(), self.sites.len());
        let explicit = elements.iter().any(|e| e.node.tag == "inertial");
        let weighed = body > 0
            && match self.settings.compiler.inertia_from_geom {
                Auto::True => true,
                Auto::Unsaid => !explicit,
                Auto::False => false,
            };
        let mut inertial = None;
        let mut align = false;
        for e in elements {
            let r = Reader { sources: self.sources, node: e.node };
            match e.node.tag.as_str() {
                "joint" | "freejoint" => align = self.joint(r, body, e)?,
                "inertial" => {
                    if body == 0 {
                        return Err(r.invalid("the world has no inertia; move it into a <body>"));
                    }
                    if inertial.is_some() {
                        return Err(r.invalid("the body has another <inertial>; keep one"));
                    }
                    inertial = Some(Inertia::read(r, e.frame, self.settings)?);
                }
                "geom" => {
                    let mut spec = self.classes.get(self.class(r, e.class)?).geom.clone();
                    spec.read(r)?;
                    let compiled = spec.compile(r, body, e.frame, weighed, self.settings)?;
                    self.geom_names.add(r, &compiled.geom.name, self.geoms.len())?;
                    self.geoms.push(compiled);
                    self.geom_nodes.push(e.node);
                }
                "site" => {
                    let mut spec = self.classes.get(self.class(r, e.class)?).site.clone();
                    spec.read(r)?;
                    let site = spec.compile(r, body, e.frame, self.settings)?;
                    self.site_names.add(r, &site.name, self.sites.len())?;
                    self.sites.push(site);
                }
                "camera" | "light" => self.skipped.push(format!("{} {}", e.node.tag, e.node.text("name"))),
                "body" => {}
                "replicate" => return Err(r.refuse_element("write the copies out")),
                "attach" => return Err(r.refuse_element("write <include file=\"…\"/>, or the bodies themselves")),
                _ => return Err(r.refuse_element("remove it: only rigid bodies are")),
            }
        }
        self.bodies[body].joints = first_joint..self.joints.len();
        self.bodies[body].dofs = first_dof..self.dofs.len();
        if body == 0 {
            return Ok(());
        }
        let moves = self.joints.len() > first_joint || self.bodies[body].mocap.is_some();
        self.bodies[body].weld = if moves { body } else { self.bodies[self.bodies[body].parent].weld };
        self.check_fixed(body, first_geom)?;
        let r = Reader { sources: self.sources, node: self.body_nodes[body] };
        let own: Vec<&geom::Compiled> = self.geoms[first_geom..].iter().collect();
        // what has no mass has no centre; MuJoCo then puts it where the body stands in its parent
        let none = Inertia { pos: pos(r)?, quat: self.orientation(r)?, ..Inertia::NONE };
        let inertia = if weighed { Inertia::of(&own) } else { inertial };
        let mut inertia = inertia.unwrap_or(none).bounded(r, &self.settings.compiler)?;
        if align && self.joints.len() == first_joint + 1 && elements.iter().all(|e| e.node.tag != "body") {
            self.align(body, first_geom, first_site, &mut inertia);
        }
        self.inertias.push(inertia);
        Ok(())
    }

    /// Planes are infinite: they stand still, or move as an input says.
    fn check_fixed(&self, body: Id, first_geom: Id) -> Result<(), MjcfError> {
        let weld = self.bodies[body].weld;
        let plane = self.geoms[first_geom..].iter().position(|g| g.kind == Primitive::Plane);
        match plane {
            Some(i) if weld != 0 && self.bodies[weld].mocap.is_none() => {
                let r = Reader { sources: self.sources, node: self.geom_nodes[first_geom + i] };
                Err(r.invalid("a plane is fixed to the world; move it into <worldbody>"))
            }
            _ => Ok(()),
        }
    }

    /// Moves a free body's frame to its centre of mass and principal axes; what it carries stays where it is.
    fn align(&mut self, body: Id, first_geom: Id, first_site: Id, inertia: &mut Inertia) {
        let b = &mut self.bodies[body];
        (b.pos, b.quat) = compose((b.pos, b.quat), inertia.pos, inertia.quat);
        let back = inverse((inertia.pos, inertia.quat));
        for g in &mut self.geoms[first_geom..] {
            (g.geom.pos, g.geom.quat) = compose(back, g.geom.pos, g.geom.quat);
        }
        for s in &mut self.sites[first_site..] {
            (s.pos, s.quat) = compose(back, s.pos, s.quat);
        }
        (inertia.pos, inertia.quat) = HERE;
        let pose: Vec<f64> = b.pos.iter().chain(&b.quat).copied().collect();
        for q in [&mut self.qpos0, &mut self.qpos_spring] {
            let first = q.len() - pose.len();
            q[first..].copy_from_slice(&pose);
        }
    }

    /// Says whether the joint lets its body's frame be moved to the centre of mass.
    fn joint(&mut self, r: Reader<'a>, body: Id, e: &Element) -> Result<bool, MjcfError> {
        let spec = if e.node.tag == "freejoint" {
            JointSpec::free(r)?
        } else {
            let mut spec = self.classes.get(self.class(r, e.class)?).joint.clone();
            spec.read(r)?;
            spec
        };
        if body == 0 {
            return Err(r.invalid("the world does not move; move the joint into a <body>"));
        }
        let alone = self.joints.last().is_none_or(|j| j.body != body);
        let free_before = !alone && self.joints.iter().any(|j| j.body == body && j.kind == JointKind::Free);
        if spec.kind == Kind::Free && (self.bodies[body].parent != 0 || !alone) || free_before {
            return Err(r.invalid("a free joint is the only joint of a child of the world; remove the other joints"));
        }
        let compiled: joint::Compiled = spec.compile(r, body, e.frame, self.settings)?;
        let (id, dof, qpos) = (self.joints.len(), self.dofs.len(), self.qpos0.len());
        self.joint_names.add(r, &compiled.joint.name, id)?;
        if let Some(given) = compiled.spring_damper {
            self.spring_dampers.push((id, given));
        }
        if compiled.joint.kind == JointKind::Free {
            let b = &self.bodies[body];
            let pose: Vec<f64> = b.pos.iter().chain(&b.quat).copied().collect();
            self.qpos0.extend(&pose);
            self.qpos_spring.extend(&pose);
        } else {
            self.qpos0.push(compiled.reference);
            self.qpos_spring.push(compiled.spring_reference);
        }
        for d in compiled.dofs {
            let at = self.dofs.len();
            let parent = if at > dof || self.dofs.last().is_some_and(|l| l.body == body) {
                Some(at - 1)
            } else {
                self.last_dof(self.bodies[body].parent)
            };
            self.dofs.push(Dof { joint: id, parent, ..d });
        }
        let free = compiled.joint.kind == JointKind::Free;
        self.joints.push(Joint { qpos, dof, ..compiled.joint });
        Ok(free
            && match spec.align {
                Auto::True => true,
                Auto::False => false,
                Auto::Unsaid => self.settings.compiler.align_free,
            })
    }

    /// Last dof on the path from the root to a body.
    fn last_dof(&self, mut body: Id) -> Option<Id> {
        while body != 0 {
            if !self.bodies[body].dofs.is_empty() {
                return Some(self.bodies[body].dofs.end - 1);
            }
            body = self.bodies[body].parent;
        }
        None
    }

    /// The bodies within a body.
    fn children(&mut self, parent: Id, elements: &[Element<'a>]) -> Result<(), MjcfError> {
        for e in elements.iter().filter(|e| e.node.tag == "body") {
            let r = Reader { sources: self.sources, node: e.node };
            let pose = compose(e.frame, pos(r)?, self.orientation(r)?);
            let name = e.node.text("name");
            self.body_names.add(r, name, self.bodies.len())?;
            let body = self.push_body(name, parent, pose, e.node);
            if let Some(a) = e.node.attr("gravcomp") {
                self.bodies[body].gravcomp = r.number(a)?;
            }
            let mocap = e.node.attr("mocap").map(|a| Ok(r.boolean(a)?.then_some(a))).transpose()?.flatten();
            if let Some(a) = mocap {
                if parent != 0 {
                    return Err(r.wrong(a, "`false`: only children of the world are moved by an input"));
                }
                self.bodies[body].mocap = Some(self.mocaps);
                self.mocaps += 1;
            }
            let mut own = Vec::new();
            self.flatten(e.node, HERE, self.child_class(r, e.class)?, &mut own)?;
            self.attach(body, &own)?;
            if self.bodies[body].mocap.is_some() && !self.bodies[body].joints.is_empty() {
                return Err(r.invalid("a body is moved by an input or by joints; remove mocap or the joints"));
            }
            self.children(body, &own)?;
        }
        Ok(())
    }
}

/// The pose that undoes a pose.
fn inverse((pos, [w, x, y, z]): Pose) -> Pose {
    let back = [w, -x, -y, -z];
    (rotate(back, pos).map(|p| -p), back)
}

fn pos(r: Reader) -> Result<Vec3, MjcfError> {
    r.node.attr("pos").map_or(Ok([0.0; 3]), |a| r.vector(a))
}
