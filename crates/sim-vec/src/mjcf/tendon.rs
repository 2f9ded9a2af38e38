//! `<tendon>`: fixed combinations of joints, and paths over sites and pulleys.

use super::error::MjcfError;
use super::joint::SOFTNESS;
use super::names::Names;
use super::settings::Settings;
use super::source::{Attr, Node};
use super::value::{Auto, Reader};
use crate::model::{Id, Joint, JointKind, Path, Segment, Softness, Tendon};

/// A tendon as written, over its class.
#[derive(Clone, Debug)]
pub(super) struct TendonSpec {
    name: String,
    limited: Auto,
    range: [f64; 2],
    margin: f64,
    limit: Softness,
    stiffness: f64,
    damping: f64,
    rest: [f64; 2],
    friction_loss: f64,
    friction: Softness,
    force_limited: Auto,
    force_range: Option<Attr>,
    /// Other values that would change the motion, by attribute.
    refused: Vec<(Attr, &'static str)>,
}

impl Default for TendonSpec {
    fn default() -> Self {
        TendonSpec {
            name: String::new(),
            limited: Auto::Unsaid,
            range: [0.0; 2],
            margin: 0.0,
            limit: SOFTNESS,
            stiffness: 0.0,
            damping: 0.0,
            rest: [-1.0; 2],
            friction_loss: 0.0,
            friction: SOFTNESS,
            force_limited: Auto::Unsaid,
            force_range: None,
            refused: Vec::new(),
        }
    }
}

impl TendonSpec {
    /// Takes what the element says over what is there.
    pub(super) fn read(&mut self, r: Reader) -> Result<(), MjcfError> {
        for a in &r.node.attrs {
            match a.name.as_str() {
                "name" => self.name = a.value.clone(),
                "limited" => self.limited = r.auto(a)?,
                "range" => self.range = r.vector(a)?,
                "margin" => self.margin = r.number(a)?,
                "solreflimit" => r.prefix(a, &mut self.limit.solref)?,
                "solimplimit" => r.prefix(a, &mut self.limit.solimp)?,
                "solreffriction" => r.prefix(a, &mut self.friction.solref)?,
                "solimpfriction" => r.prefix(a, &mut self.friction.solimp)?,
                "frictionloss" => self.friction_loss = r.magnitude(a)?,
                "stiffness" => self.stiffness = self.linear(r, a, "give one stiffness: springs are linear")?,
                "damping" => self.damping = self.linear(r, a, "give one damping: dampers are linear")?,
                "springlength" => {
                    let lengths = r.numbers(a, 1, 2)?;
                    self.rest = [lengths[0], lengths[lengths.len() - 1]];
                }
                "armature" => {
                    let given = r.number(a)? != 0.0;
                    self.refuse_if(a, given, "give the joints it pulls an armature");
                }
                "actuatorfrclimited" => self.force_limited = r.auto(a)?,
                "actuatorfrcrange" => {
                    let [low, high] = r.vector::<2>(a)?;
                    self.force_range = (low < high).then(|| a.clone());
                }
                // looks and user data
                "class" | "group" | "width" | "material" | "rgba" | "user" => {}
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
    fn linear(&mut self, r: Reader, a: &Attr, instead: &'static str) -> Result<f64, MjcfError> {
        let c = r.numbers(a, 1, 3)?;
        self.refuse_if(a, c[1..].iter().any(|&x| x != 0.0), instead);
        Ok(c[0])
    }

    /// The tendon; its length and inverse inertia at `qpos0`, and rest lengths left to the model, are filled in later.
    pub(super) fn compile(self, r: Reader, on: &Anchors, s: &Settings) -> Result<Tendon, MjcfError> {
        if let Some((a, instead)) = self.refused.first() {
            return Err(r.refuse(a, *instead));
        }
        if let Some(a) = self.force_range.as_ref().filter(|_| self.force_limited != Auto::False) {
            return Err(r.refuse(a, "limit the actuators with forcerange instead"));
        }
        let path = if r.node.tag == "fixed" { on.fixed(r)? } else { on.spatial(r)? };
        let range = self.limited.range(r, "", self.range, s)?;
        if self.rest[0] > self.rest[1] {
            return Err(r.invalid("its springlength is empty; write springlength=\"low high\" with low ≤ high"));
        }
        Ok(Tendon {
            name: self.name,
            path,
            range,
            margin: self.margin,
            limit: self.limit,
            stiffness: if s.spring { self.stiffness } else { 0.0 },
            damping: if s.damper { self.damping } else { 0.0 },
            rest: self.rest,
            friction_loss: if s.friction_loss { self.friction_loss } else { 0.0 },
            friction: self.friction,
            length0: 0.0,
            invweight0: 0.0,
        })
    }
}

/// What tendons run over.
pub(super) struct Anchors<'a> {
    pub(super) joint_names: &'a Names,
    pub(super) joints: &'a [Joint],
    pub(super) site_names: &'a Names,
}

impl Anchors<'_> {
    fn fixed(&self, r: Reader) -> Result<Path, MjcfError> {
        let mut terms: Vec<(Id, f64)> = Vec::new();
        for node in &r.node.children {
            let r = Reader { sources: r.sources, node };
            let a = required(r, "joint")?;
            let id = self.joint_names.find(r, a)?;
            if self.joints[id].kind == JointKind::Free {
                return Err(r.wrong(a, "a slide or hinge joint; a free one has no single position"));
            }
            if terms.iter().any(|t| t.0 == id) {
                return Err(r.wrong(a, "a joint that the tendon has not yet; add up the coefficients"));
            }
            terms.push((id, r.number(required(r, "coef")?)?));
        }
        if terms.is_empty() {
            return Err(r.invalid("it has no path; write <joint joint=\"…\" coef=\"…\"/> into it"));
        }
        Ok(Path::Fixed(terms))
    }

    fn spatial(&self, r: Reader) -> Result<Path, MjcfError> {
        let mut segments = Vec::new();
        let mut divisor = 1.0;
        // the site before, and whether a segment ends or begins there
        let mut last: Option<(Id, bool, &Node)> = None;
        let lonely = |last: Option<(Id, bool, &Node)>| match last {
            Some((_, false, node)) => {
                let r = Reader { sources: r.sources, node };
                Err(r.invalid("no segment begins or ends here; write another <site> next to it"))
            }
            _ => Ok(()),
        };
        for node in &r.node.children {
            let r = Reader { sources: r.sources, node };
            match node.tag.as_str() {
                "site" => {
                    let a = required(r, "site")?;
                    let id = self.site_names.find(r, a)?;
                    if let Some((before, ..)) = last {
                        if before == id {
                            return Err(r.wrong(a, "another site than the one before; a segment needs two"));
                        }
                        segments.push(Segment { sites: [before, id], divisor });
                    }
                    last = Some((id, last.is_some(), node));
                }
                "pulley" => {
                    if last.is_none() && (!segments.is_empty() || divisor != 1.0) {
                        return Err(r.invalid("a pulley follows a pulley; write sites between them"));
                    }
                    lonely(last)?;
                    last = None;
                    let a = required(r, "divisor")?;
                    divisor = r.number(a)?;
                    if divisor <= 0.0 {
                        return Err(r.wrong(a, "a number above 0"));
                    }
                }
                _ => {
                    return Err(r.refuse_element(
                        "remove it: tendons run straight from site to site; put a <site> on the geom's surface instead",
                    ));
                }
            }
        }
        lonely(last)?;
        if last.is_none() || segments.is_empty() {
            return Err(r.invalid("its path needs two sites at the end; write <site site=\"…\"/> into it"));
        }
        Ok(Path::Spatial(segments))
    }
}

fn required<'a>(r: Reader<'a>, name: &str) -> Result<&'a Attr, MjcfError> {
    r.node.attr(name).ok_or_else(|| r.invalid(format!("it lacks {name}; write {name}=\"…\"")))
}
