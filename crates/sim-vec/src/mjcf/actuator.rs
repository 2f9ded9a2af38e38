//! `<actuator>`: the general one and its shortcuts as far as their gains are affine.

use super::error::MjcfError;
use super::names::Names;
use super::settings::Settings;
use super::source::Attr;
use super::value::{Auto, Reader};
use crate::model::{Actuator, Dynamics, Joint, JointKind, Tendon, Transmission};

/// What to write in place of other actuators.
pub(super) const INSTEAD: &str = "write a <motor>, <position>, <velocity>, <intvelocity>, <damper>, <cylinder>, or a <general> with affine gain and bias";

/// Form of a gain or bias.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Law {
    None,
    Fixed,
    Affine,
}

/// Form of the activation's dynamics.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Follow {
    None,
    Integrator,
    Filter,
    FilterExact,
}

/// What makes its force.
#[derive(Clone, Debug)]
struct Params {
    /// The tag that said so.
    tag: String,
    gain_law: Law,
    bias_law: Law,
    follow: Follow,
    gain: [f64; 10],
    bias: [f64; 10],
    dynamics: [f64; 10],
}

impl Default for Params {
    fn default() -> Self {
        let one = std::array::from_fn(|i| f64::from(u8::from(i == 0)));
        Params {
            tag: GENERAL.into(),
            gain_law: Law::Fixed,
            bias_law: Law::None,
            follow: Follow::None,
            gain: one,
            bias: [0.0; 10],
            dynamics: one,
        }
    }
}

impl Params {
    /// A shortcut starts from what the same shortcut said, or a `<general>` with the same form of gain.
    fn suits(&self, tag: &str) -> bool {
        let law = if tag == "damper" { Law::Affine } else { Law::Fixed };
        self.tag == tag || self.tag == GENERAL && self.gain_law == law
    }
}

const GENERAL: &str = "general";

/// What it is said to drive.
#[derive(Clone, Debug)]
enum Target {
    Joint(Attr),
    JointInParent(Attr),
    Tendon(Attr),
}

/// An actuator as written, over its class.
#[derive(Clone, Debug)]
pub(super) struct ActuatorSpec {
    name: String,
    target: Option<Target>,
    gear: f64,
    params: Params,
    /// Those of the classes around, innermost first.
    outer: Vec<Params>,
    ctrl_limited: Auto,
    ctrl_range: [f64; 2],
    force_limited: Auto,
    force_range: [f64; 2],
    act_limited: Auto,
    act_range: [f64; 2],
    act_early: bool,
    /// Number of activations, if given.
    act_dim: Option<i32>,
    /// Share of the target's range that the control, or the activation, may have.
    inherit_range: f64,
    /// Kind of unsupported actuator its class takes values from.
    foreign: Option<String>,
    /// Other values that would change the motion, by attribute.
    refused: Vec<(Attr, &'static str)>,
}

impl Default for ActuatorSpec {
    fn default() -> Self {
        ActuatorSpec {
            name: String::new(),
            target: None,
            gear: 1.0,
            params: Params::default(),
            outer: Vec::new(),
            ctrl_limited: Auto::Unsaid,
            ctrl_range: [0.0; 2],
            force_limited: Auto::Unsaid,
            force_range: [0.0; 2],
            act_limited: Auto::Unsaid,
            act_range: [0.0; 2],
            act_early: false,
            act_dim: None,
            inherit_range: 0.0,
            foreign: None,
            refused: Vec::new(),
        }
    }
}

/// An actuator whose damping may still be a ratio.
pub(super) struct Compiled {
    pub(super) actuator: Actuator,
    /// Of a critically damped one, if a ratio is given: its `b₂` follows from the inertia it moves.
    pub(super) damp_ratio: Option<f64>,
}

impl ActuatorSpec {
    /// A class's values when it names an actuator that is not simulated.
    pub(super) fn foreign(&mut self, r: Reader) {
        self.foreign = Some(r.node.tag.clone());
    }

    /// The values a class within this one starts from.
    pub(super) fn nested(&self) -> Self {
        let mut inner = self.clone();
        inner.outer.insert(0, self.params.clone());
        inner
    }

    /// Takes what the element says over what is there.
    pub(super) fn read(&mut self, r: Reader) -> Result<(), MjcfError> {
        let tag = r.node.tag.as_str();
        if tag != GENERAL && !self.params.suits(tag) {
            self.params = self.outer.iter().find(|p| p.suits(tag)).cloned().unwrap_or_default();
        }
        self.params.tag = tag.into();
        for a in &r.node.attrs {
            match a.name.as_str() {
                "name" => self.name = a.value.clone(),
                "gear" => self.gear = r.numbers(a, 1, 6)?[0],
                "ctrllimited" => self.ctrl_limited = r.auto(a)?,
                "ctrlrange" => self.ctrl_range = r.vector(a)?,
                "forcelimited" => self.force_limited = r.auto(a)?,
                "forcerange" => self.force_range = r.vector(a)?,
                "actlimited" => self.act_limited = r.auto(a)?,
                "actrange" => self.act_range = r.vector(a)?,
                "actearly" => self.act_early = r.boolean(a)?,
                "actdim" => self.act_dim = Some(r.integer(a)?).filter(|n| *n >= 0),
                "inheritrange" => self.inherit_range = r.number(a)?,
                "gaintype" => self.params.gain_law = law(r, a, "fixed", Law::Fixed)?,
                "biastype" => self.params.bias_law = law(r, a, "none", Law::None)?,
                "dyntype" => {
                    let words = [
                        ("none", Follow::None),
                        ("integrator", Follow::Integrator),
                        ("filter", Follow::Filter),
                        ("filterexact", Follow::FilterExact),
                    ];
                    let known = words.iter().any(|w| w.0 == a.value);
                    if !known && ["muscle", "dcmotor", "pid", "user"].contains(&a.value.as_str()) {
                        return Err(
                            r.refuse(a, "write dyntype=\"none\", \"integrator\", \"filter\" or \"filterexact\"")
                        );
                    }
                    self.params.follow = r.word(a, &words)?;
                }
                "gainprm" => r.prefix(a, &mut self.params.gain)?,
                "biasprm" => r.prefix(a, &mut self.params.bias)?,
                "dynprm" => r.prefix(a, &mut self.params.dynamics)?,
                "joint" | "jointinparent" | "tendon" => {}
                "slidersite" | "cranksite" | "site" | "refsite" | "body" => {
                    return Err(r.refuse(a, "drive a joint or a tendon: write joint=\"…\" or tendon=\"…\""));
                }
                "armature" => self.refuse_if(r, a, "remove it; a joint has its own armature")?,
                "damping" => self.refuse_if(r, a, "remove it; a joint has its own damping")?,
                "delay" | "nsample" => self.refuse_if(r, a, "remove it; a control acts at once")?,
                "input" => return Err(r.refuse(a, "remove it; the control is one number")),
                // of the shortcuts below
                "kp" | "kv" | "dampratio" | "timeconst" | "area" | "diameter" | "bias" => {}
                // looks, user data, and what only other kinds use
                "class" | "group" | "user" | "cranklength" | "lengthrange" | "interp" | "velrange" | "ffrange" => {}
                _ => return Err(r.refuse(a, "remove it")),
            }
        }
        // the last of these counts, whatever their order
        for (name, target) in [
            ("joint", Target::Joint as fn(Attr) -> Target),
            ("jointinparent", Target::JointInParent),
            ("tendon", Target::Tendon),
        ] {
            if let Some(a) = r.node.attr(name) {
                self.target = Some(target(a.clone()));
            }
        }
        match tag {
            "motor" => self.laws(Law::Fixed, Law::None, Follow::None, [Some(1.0), None, None]),
            "position" => self.position(r)?,
            "intvelocity" => {
                self.position(r)?;
                self.params.follow = Follow::Integrator;
                if self.inherit_range > 0.0 && self.act_range != [0.0; 2] {
                    return Err(r.invalid("actrange and inheritrange contradict each other; remove one of them"));
                }
            }
            "velocity" => {
                let kv = number(r, "kv")?.unwrap_or(self.params.gain[0]);
                self.params.bias = [0.0; 10];
                self.params.bias[2] = -kv;
                self.laws(Law::Fixed, Law::Affine, Follow::None, [Some(kv), None, None]);
            }
            "damper" => {
                let inherited = if self.params.gain_law == Law::Affine { -self.params.gain[2] } else { 0.0 };
                let kv = magnitude(r, "kv")?.unwrap_or(inherited);
                if kv < 0.0 {
                    return Err(r.invalid("its class has a gain that drives; write kv=\"…\" of at least 0"));
                }
                self.params.gain = [0.0; 10];
                self.ctrl_limited = Auto::True;
                self.laws(Law::Affine, Law::None, Follow::None, [None, None, Some(-kv)]);
                if self.ctrl_range.iter().any(|x| *x < 0.0) {
                    return Err(r.invalid("a damper's control scales its damping; write ctrlrange=\"0 …\""));
                }
            }
            "cylinder" => {
                self.params.dynamics[0] = number(r, "timeconst")?.unwrap_or(self.params.dynamics[0]);
                if let Some(a) = r.node.attr("bias") {
                    self.params.bias[..3].copy_from_slice(&r.vector::<3>(a)?);
                }
                let area = number(r, "area")?.unwrap_or(self.params.gain[0]);
                let round = |d: f64| std::f64::consts::PI / 4.0 * d * d;
                let area = number(r, "diameter")?.filter(|d| *d >= 0.0).map_or(area, round);
                self.laws(Law::Fixed, Law::Affine, Follow::Filter, [Some(area), None, None]);
            }
            _ => {}
        }
        Ok(())
    }

    /// A servo: `f = kp (u − l) − kv l̇`.
    fn position(&mut self, r: Reader) -> Result<(), MjcfError> {
        let kp = number(r, "kp")?.unwrap_or(self.params.gain[0]);
        let (kv, ratio) = (magnitude(r, "kv")?, magnitude(r, "dampratio")?);
        match (kv, ratio) {
            (Some(_), Some(_)) => {
                return Err(r.invalid("kv and dampratio contradict each other; remove one of them"));
            }
            (Some(kv), None) => self.params.bias[2] = -kv,
            // positive until the inertia is known
            (None, Some(ratio)) => self.params.bias[2] = ratio,
            (None, None) => {}
        }
        (self.params.bias[0], self.params.bias[1]) = (0.0, -kp);
        let mut follow = self.params.follow;
        if let Some(time) = magnitude(r, "timeconst")? {
            self.params.dynamics[0] = time;
            follow = if time == 0.0 { Follow::None } else { Follow::FilterExact };
        }
        if self.inherit_range > 0.0 && self.ctrl_range != [0.0; 2] {
            return Err(r.invalid("ctrlrange and inheritrange contradict each other; remove one of them"));
        }
        self.laws(Law::Fixed, Law::Affine, follow, [Some(kp), None, None]);
        Ok(())
    }

    fn laws(&mut self, gain: Law, bias: Law, follow: Follow, values: [Option<f64>; 3]) {
        let p = &mut self.params;
        (p.gain_law, p.bias_law, p.follow) = (gain, bias, follow);
        for (to, from) in p.gain.iter_mut().zip(values) {
            *to = from.unwrap_or(*to);
        }
    }

    fn refuse_if(&mut self, r: Reader, a: &Attr, instead: &'static str) -> Result<(), MjcfError> {
        let given = r.numbers(a, 1, 3)?.iter().any(|x| *x != 0.0);
        self.refused.retain(|r| r.0.name != a.name);
        if given {
            self.refused.push((a.clone(), instead));
        }
        Ok(())
    }

    /// The actuator.
    pub(super) fn compile(mut self, r: Reader, on: &Targets, s: &Settings) -> Result<Compiled, MjcfError> {
        if let Some(tag) = &self.foreign {
            return Err(r.invalid(format!(
                "its class has a <{tag}>, which is not simulated; give it a class without, or remove <{tag}> from the class"
            )));
        }
        if let Some((a, instead)) = self.refused.first() {
            return Err(r.refuse(a, *instead));
        }
        let p = &self.params;
        let target = on.find(r, self.target.as_ref())?;
        let servo = p.gain_law == Law::Fixed && p.bias_law == Law::Affine && p.gain[0] == -p.bias[1];
        if servo && self.inherit_range > 0.0 {
            let range = on.share(r, self.target.as_ref(), target, self.inherit_range)?;
            match p.follow {
                Follow::None | Follow::FilterExact => self.ctrl_range = range,
                Follow::Integrator => self.act_range = range,
                Follow::Filter => {
                    return Err(r.invalid("inheritrange has no meaning with dyntype=\"filter\"; write ctrlrange"));
                }
            }
        }
        let force_range = self.force_limited.range(r, "force", self.force_range, s)?;
        let ctrl_range = self.ctrl_limited.range(r, "ctrl", self.ctrl_range, s)?;
        let act_range = self.act_limited.range(r, "act", self.act_range, s)?;
        if act_range.is_some() && p.follow == Follow::None {
            return Err(r.invalid("it has no activation to limit; remove actrange, or write dyntype"));
        }
        if self.act_dim.is_some_and(|n| n != i32::from(p.follow != Follow::None)) {
            return Err(r.invalid("actdim is 1 with a dyntype and 0 without; remove it"));
        }
        let pick = |law: Law, v: &[f64; 10]| match law {
            Law::None => [0.0; 3],
            Law::Fixed => [v[0], 0.0, 0.0],
            Law::Affine => [v[0], v[1], v[2]],
        };
        let (mut gain, mut bias) = (pick(p.gain_law, &p.gain), pick(p.bias_law, &p.bias));
        // a positive velocity bias of a servo is a damping ratio
        let damp_ratio =
            Some(p.bias[2]).filter(|ratio| *ratio > 0.0 && p.gain[0] == -p.bias[1] && p.bias_law == Law::Affine);
        if !s.actuation {
            if p.follow != Follow::None {
                return Err(
                    r.invalid("its activation stands still where actuation is disabled; remove the actuator instead")
                );
            }
            (gain, bias) = ([0.0; 3], [0.0; 3]);
        }
        // MuJoCo's least time constant
        let time = p.dynamics[0].max(1e-15);
        Ok(Compiled {
            actuator: Actuator {
                name: self.name,
                target,
                gear: self.gear,
                gain,
                bias,
                dynamics: match p.follow {
                    Follow::None => Dynamics::None,
                    Follow::Integrator => Dynamics::Integrator,
                    Follow::Filter => Dynamics::Filter { time },
                    Follow::FilterExact => Dynamics::FilterExact { time },
                },
                ctrl_range: ctrl_range.filter(|_| s.clamp_ctrl),
                force_range: force_range.filter(|_| s.actuation),
                act_range,
                act_early: self.act_early,
            },
            damp_ratio: damp_ratio.filter(|_| s.actuation),
        })
    }
}

/// Everything an actuator can drive.
pub(super) struct Targets<'a> {
    pub(super) joint_names: &'a Names,
    pub(super) joints: &'a [Joint],
    pub(super) tendon_names: &'a Names,
    pub(super) tendons: &'a [Tendon],
}

impl Targets<'_> {
    fn find(&self, r: Reader, target: Option<&Target>) -> Result<Transmission, MjcfError> {
        match target {
            None => Err(r.invalid("it drives nothing; write joint=\"…\" or tendon=\"…\"")),
            Some(Target::Tendon(a)) => Ok(Transmission::Tendon(self.tendon_names.find(r, a)?)),
            Some(Target::Joint(a) | Target::JointInParent(a)) => {
                let id = self.joint_names.find(r, a)?;
                if self.joints[id].kind == JointKind::Free {
                    return Err(r.wrong(a, "a slide or hinge joint; a free one cannot be driven"));
                }
                Ok(Transmission::Joint(id))
            }
        }
    }

    /// The middle `share` of the target's range.
    fn share(
        &self,
        r: Reader,
        written: Option<&Target>,
        target: Transmission,
        share: f64,
    ) -> Result<[f64; 2], MjcfError> {
        if matches!(written, Some(Target::JointInParent(_))) {
            return Err(r.invalid("inheritrange needs joint=\"…\" in place of jointinparent"));
        }
        let range = match target {
            Transmission::Joint(id) => self.joints[id].range,
            Transmission::Tendon(id) => self.tendons[id].range,
        };
        let [low, high] =
            range.ok_or_else(|| r.invalid("inheritrange needs a limited target; give the target a range"))?;
        let (mean, radius) = (0.5 * (high + low), 0.5 * (high - low) * share);
        Ok([mean - radius, mean + radius])
    }
}

/// `gaintype` or `biastype`; `plain` is the word for `law`.
fn law(r: Reader, a: &Attr, plain: &str, law: Law) -> Result<Law, MjcfError> {
    match a.value.as_str() {
        "affine" => Ok(Law::Affine),
        word if word == plain => Ok(law),
        "muscle" | "user" | "dcmotor" | "so3" | "pid" => {
            Err(r.refuse(a, format!("write {}=\"{plain}\" or \"affine\"", a.name)))
        }
        _ => Err(r.wrong(a, format!("`{plain}` or `affine`"))),
    }
}

fn number(r: Reader, name: &str) -> Result<Option<f64>, MjcfError> {
    r.node.attr(name).map(|a| r.number(a)).transpose()
}

fn magnitude(r: Reader, name: &str) -> Result<Option<f64>, MjcfError> {
    r.node.attr(name).map(|a| r.magnitude(a)).transpose()
}
