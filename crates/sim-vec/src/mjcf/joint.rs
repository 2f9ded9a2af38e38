//! `<joint>` and `<freejoint>`.

use super::error::MjcfError;
use super::rotation::{EPS, Quat, Vec3, compose, normalize, rotate};
use super::settings::Settings;
use super::source::{Attr, Spot};
use super::value::{Auto, Reader};
use crate::model::{Dof, Id, Joint, JointKind, Softness};

/// Softness of limits and contacts where nothing else is said.
pub(super) const SOFTNESS: Softness = Softness { solref: [0.02, 1.0], solimp: [0.9, 0.95, 0.001, 0.5, 2.0] };

/// A joint as written, over its class.
#[derive(Clone, Debug)]
pub(super) struct JointSpec {
    pub(super) name: String,
    pub(super) at: Spot,
    pub(super) kind: Kind,
    pos: Vec3,
    axis: Vec3,
    limited: Auto,
    range: [f64; 2],
    margin: f64,
    softness: Softness,
    stiffness: f64,
    /// Time constant and damping ratio from which stiffness and damping follow.
    spring_damper: [f64; 2],
    reference: f64,
    spring_reference: f64,
    armature: f64,
    damping: f64,
    friction_loss: f64,
    friction: Softness,
    /// Limits of the sum of actuator forces.
    force_limited: Auto,
    force_range: [f64; 2],
    gravcomp_actuated: bool,
    /// A free body's frame is moved to its centre of mass.
    pub(super) align: Auto,
    /// Other values that would change the motion, by attribute.
    refused: Vec<(Attr, &'static str)>,
}

/// Kinds of joint that MJCF knows.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Kind {
    Hinge,
    Slide,
    Ball,
    Free,
}

impl Default for JointSpec {
    fn default() -> Self {
        JointSpec {
            name: String::new(),
            at: Spot::default(),
            kind: Kind::Hinge,
            pos: [0.0; 3],
            axis: [0.0, 0.0, 1.0],
            limited: Auto::Unsaid,
            range: [0.0; 2],
            margin: 0.0,
            softness: SOFTNESS,
            stiffness: 0.0,
            spring_damper: [0.0; 2],
            reference: 0.0,
            spring_reference: 0.0,
            armature: 0.0,
            damping: 0.0,
            friction_loss: 0.0,
            friction: SOFTNESS,
            force_limited: Auto::Unsaid,
            force_range: [0.0; 2],
            gravcomp_actuated: false,
            align: Auto::Unsaid,
            refused: Vec::new(),
        }
    }
}

/// A joint, its dofs (without parents and inverse weights), its reference position and its spring's.
pub(super) struct Compiled {
    pub(super) joint: Joint,
    pub(super) dofs: Vec<Dof>,
    pub(super) reference: f64,
    pub(super) spring_reference: f64,
    /// Time constant and damping ratio, if stiffness and damping are to follow from them.
    pub(super) spring_damper: Option<[f64; 2]>,
}

impl JointSpec {
    /// The joint of a `<freejoint>`, which takes nothing from classes.
    pub(super) fn free(r: Reader) -> Result<Self, MjcfError> {
        let mut spec = JointSpec { kind: Kind::Free, at: r.node.at, ..JointSpec::default() };
        for a in &r.node.attrs {
            match a.name.as_str() {
                "name" => spec.name = a.value.clone(),
                "align" => spec.align = r.auto(a)?,
                _ => {}
            }
        }
        Ok(spec)
    }

    /// Takes what the element says over what is there.
    pub(super) fn read(&mut self, r: Reader) -> Result<(), MjcfError> {
        self.at = r.node.at;
        for a in &r.node.attrs {
            match a.name.as_str() {
                "name" => self.name = a.value.clone(),
                "type" => {
                    let words =
                        [("hinge", Kind::Hinge), ("slide", Kind::Slide), ("ball", Kind::Ball), ("free", Kind::Free)];
                    self.kind = r.word(a, &words)?;
                }
                "pos" => self.pos = r.vector(a)?,
                "axis" => self.axis = r.vector(a)?,
                "limited" => self.limited = r.auto(a)?,
                "range" => self.range = r.vector(a)?,
                "margin" => self.margin = r.number(a)?,
                "solreflimit" => r.prefix(a, &mut self.softness.solref)?,
                "solimplimit" => r.prefix(a, &mut self.softness.solimp)?,
                "stiffness" => self.stiffness = self.linear(r, a, "spring")?,
                "damping" => self.damping = self.linear(r, a, "damper")?,
                "springdamper" => self.spring_damper = r.vector(a)?,
                "ref" => self.reference = r.number(a)?,
                "springref" => self.spring_reference = r.number(a)?,
                "armature" => self.armature = r.magnitude(a)?,
                "frictionloss" => self.friction_loss = r.magnitude(a)?,
                "solreffriction" => r.prefix(a, &mut self.friction.solref)?,
                "solimpfriction" => r.prefix(a, &mut self.friction.solimp)?,
                "actuatorfrclimited" => self.force_limited = r.auto(a)?,
                "actuatorfrcrange" => self.force_range = r.vector(a)?,
                "actuatorgravcomp" => self.gravcomp_actuated = r.boolean(a)?,
                // looks and user data
                "class" | "group" | "user" => {}
                _ => return Err(r.refuse(a, "remove it")),
            }
        }
        Ok(())
    }

    fn refuse_if(&mut self, a: &Attr, refuse: bool, instead: &'static str) {
        self.refused.retain(|r| r.0.name != a.name);
        if refuse {
            self.refused.push((a.clone(), instead));
        }
    }

    /// The first coefficient of a polynomial whose others must be zero.
    fn linear(&mut self, r: Reader, a: &Attr, what: &str) -> Result<f64, MjcfError> {
        let c = r.numbers(a, 1, 3)?;
        let instead = if what == "spring" {
            "give one stiffness: springs are linear"
        } else {
            "give one damping: dampers are linear"
        };
        self.refuse_if(a, c[1..].iter().any(|&x| x != 0.0), instead);
        Ok(c[0])
    }

    /// The joint of body `body`, within the `<frame>`s around it. Ids of positions and dofs are left at 0.
    pub(super) fn compile(
        &self,
        r: Reader,
        body: Id,
        frame: (Vec3, Quat),
        s: &Settings,
    ) -> Result<Compiled, MjcfError> {
        if let Some((a, instead)) = self.refused.first() {
            return Err(r.refuse(a, *instead));
        }
        let kind = match self.kind {
            Kind::Hinge => JointKind::Hinge,
            Kind::Slide => JointKind::Slide,
            Kind::Free => JointKind::Free,
            Kind::Ball => {
                return Err(r.refuse_element(
                    "write three <joint type=\"hinge\"> with perpendicular axes instead of a ball joint",
                ));
            }
        };
        let free = kind == JointKind::Free;
        let radians = s.compiler.degree && kind == JointKind::Hinge;
        let angle = |x: f64| if radians { x * (std::f64::consts::PI / 180.0) } else { x };
        let (range, force_range) = if free {
            (None, None)
        } else {
            (
                self.limited.range(r, "", self.range, s)?.map(|x| x.map(angle)),
                self.force_limited.range(r, "actuatorfrc", self.force_range, s)?,
            )
        };
        if self.gravcomp_actuated && !s.actuation {
            return Err(r.invalid(
                "its gravity compensation is actuator force, and actuation is disabled; write actuatorgravcomp=\"false\"",
            ));
        }
        let (mut axis, pos) = match kind {
            JointKind::Free => ([0.0, 0.0, 1.0], [0.0; 3]),
            _ => (rotate(frame.1, self.axis), compose(frame, self.pos, [1.0, 0.0, 0.0, 0.0]).0),
        };
        if normalize(&mut axis) < EPS {
            return Err(r.invalid("the axis has no direction; write axis=\"x y z\" other than zero"));
        }
        let [time, ratio] = self.spring_damper;
        if (time != 0.0 || ratio != 0.0) && !(time > 0.0 && ratio > 0.0) {
            return Err(r.invalid("springdamper needs a positive time constant and damping ratio"));
        }
        let joint = Joint {
            name: self.name.clone(),
            kind,
            body,
            qpos: 0,
            dof: 0,
            pos,
            axis,
            stiffness: if s.spring { self.stiffness } else { 0.0 },
            range,
            margin: self.margin,
            limit: self.softness,
            force_range: force_range.filter(|_| s.actuation),
            gravcomp_actuated: self.gravcomp_actuated,
        };
        let damping = if s.damper { self.damping } else { 0.0 };
        let dof = Dof {
            body,
            joint: 0,
            parent: None,
            armature: self.armature,
            damping,
            invweight0: 0.0,
            friction_loss: if s.friction_loss { self.friction_loss } else { 0.0 },
            friction: self.friction,
        };
        Ok(Compiled {
            joint,
            dofs: vec![dof; if free { 6 } else { 1 }],
            reference: angle(self.reference),
            spring_reference: angle(self.spring_reference),
            spring_damper: (time > 0.0).then_some([time, ratio]),
        })
    }
}
