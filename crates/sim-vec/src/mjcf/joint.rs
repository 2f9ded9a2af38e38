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
    /// Joint friction, refused unless its flag is off.
    friction: Option<Attr>,
    /// Limits of the actuators' joint force, refused.
    force_limited: Auto,
    force_range: Option<Attr>,
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
            friction: None,
            force_limited: Auto::Unsaid,
            force_range: None,
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
                "align" => {
                    if r.auto(a)? == Auto::True {
                        return Err(r.refuse(a, "write align=\"false\" and give the body the frame you want"));
                    }
                }
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
                "frictionloss" => self.friction = Some(a.clone()).filter(|_| r.number(a).is_ok_and(|x| x != 0.0)),
                "actuatorfrclimited" => self.force_limited = r.auto(a)?,
                "actuatorfrcrange" => {
                    let [low, high] = r.vector::<2>(a)?;
                    self.force_range = (low < high).then(|| a.clone());
                }
                "actuatorgravcomp" => self.refuse_if(a, r.boolean(a)?, "remove it: nothing compensates gravity here"),
                // group and user data; friction's softness acts only with frictionloss
                "class" | "group" | "user" | "solreffriction" | "solimpfriction" => {}
                _ => return Err(r.refuse(a, "remove it")),
            }
            if a.name == "frictionloss" {
                r.number(a)?;
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
        if let Some(a) = self.friction.as_ref().filter(|_| s.friction_loss && s.opt.constraint) {
            return Err(r.refuse(a, "write frictionloss=\"0\"; damping is simulated"));
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
        if let Some(a) = self.force_range.as_ref().filter(|_| !free && self.force_limited != Auto::False) {
            return Err(r.refuse(a, "limit the controls with ctrlrange instead"));
        }
        let given = self.range != [0.0; 2];
        if !free && !s.compiler.autolimits && self.limited == Auto::Unsaid && given {
            return Err(r.invalid("range without limited while autolimits is off; write limited=\"true\" or \"false\""));
        }
        let radians = s.compiler.degree && kind == JointKind::Hinge;
        let angle = |x: f64| if radians { x * (std::f64::consts::PI / 180.0) } else { x };
        let limited = !free && self.limited.limited(self.range);
        if limited && self.range[0] >= self.range[1] {
            return Err(r.invalid("the range of a limited joint is empty; write range=\"low high\" with low < high"));
        }
        let range = limited.then(|| self.range.map(angle));
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
            force_range: None,
            gravcomp_actuated: false,
        };
        let damping = if s.damper { self.damping } else { 0.0 };
        let dof = Dof {
            body,
            joint: 0,
            parent: None,
            armature: self.armature,
            damping,
            invweight0: 0.0,
            friction_loss: 0.0,
            friction: SOFTNESS,
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
