//! `<motor>` and `<general>` as far as it is a motor.

use super::error::MjcfError;
use super::names::Names;
use super::settings::Settings;
use super::source::Attr;
use super::value::{Auto, Reader};
use crate::model::{Actuator, Dynamics, Joint, JointKind, Transmission};

/// What to write in place of other actuators.
pub(super) const INSTEAD: &str = "write a <motor>, and close the loop in the policy";

/// An actuator as written, over its class.
#[derive(Clone, Debug, Default)]
pub(super) struct ActuatorSpec {
    name: String,
    joint: Option<Attr>,
    gear: Option<f64>,
    gain: Option<f64>,
    limited: Auto,
    range: [f64; 2],
    force_limited: Auto,
    force_range: Option<Attr>,
}

impl ActuatorSpec {
    /// Takes what the element says over what is there.
    pub(super) fn read(&mut self, r: Reader) -> Result<(), MjcfError> {
        for a in &r.node.attrs {
            match a.name.as_str() {
                "name" => self.name = a.value.clone(),
                "joint" | "jointinparent" => self.joint = Some(a.clone()),
                "gear" => self.gear = Some(r.numbers(a, 1, 6)?[0]),
                "ctrllimited" => self.limited = r.auto(a)?,
                "ctrlrange" => self.range = r.vector(a)?,
                "forcelimited" => self.force_limited = r.auto(a)?,
                "forcerange" => {
                    let [low, high] = r.vector::<2>(a)?;
                    self.force_range = (low < high).then(|| a.clone());
                }
                "gaintype" => only(r, a, "fixed")?,
                "biastype" => only(r, a, "none")?,
                "dyntype" => only(r, a, "none")?,
                "gainprm" => self.gain = Some(r.numbers(a, 1, usize::MAX)?[0]),
                "tendon" | "slidersite" | "cranksite" | "site" | "refsite" | "body" => {
                    return Err(r.refuse(a, "drive a joint: write joint=\"…\""));
                }
                "armature" | "damping" | "delay" | "nsample" | "actdim" => {
                    if r.numbers(a, 1, usize::MAX)?.iter().any(|x| *x > 0.0) {
                        return Err(
                            r.refuse(a, "remove it; a joint has its own armature and damping, a control acts at once")
                        );
                    }
                }
                // no activation, no bias, no crank, no velocity limits, looks
                "class" | "group" | "user" | "cranklength" | "lengthrange" | "interp" | "actlimited" | "actrange"
                | "actearly" | "dynprm" | "biasprm" => {}
                _ => return Err(r.refuse(a, "remove it")),
            }
        }
        Ok(())
    }

    /// The actuator.
    pub(super) fn compile(
        &self,
        r: Reader,
        joints: &Names,
        all: &[Joint],
        s: &Settings,
    ) -> Result<Actuator, MjcfError> {
        let Some(joint) = &self.joint else {
            return Err(r.invalid("it drives nothing; write joint=\"…\""));
        };
        let id = joints.find(r, joint)?;
        if all[id].kind == JointKind::Free {
            return Err(r.wrong(joint, "a slide or hinge joint; a free one cannot be driven"));
        }
        if let Some(a) = self.force_range.as_ref().filter(|_| self.force_limited != Auto::False) {
            return Err(r.refuse(a, "limit the control with ctrlrange instead"));
        }
        let limited = self.limited.limited(self.range);
        if limited && self.range[0] >= self.range[1] {
            return Err(r.invalid("its control range is empty; write ctrlrange=\"low high\" with low < high"));
        }
        if !s.compiler.autolimits && self.limited == Auto::Unsaid && self.range != [0.0; 2] {
            return Err(r.invalid(
                "ctrlrange without ctrllimited while autolimits is off; write ctrllimited=\"true\" or \"false\"",
            ));
        }
        Ok(Actuator {
            name: self.name.clone(),
            target: Transmission::Joint(id),
            gear: self.gear.unwrap_or(1.0),
            gain: [self.gain.unwrap_or(1.0), 0.0, 0.0],
            bias: [0.0; 3],
            dynamics: Dynamics::None,
            ctrl_range: (limited && s.clamp_ctrl).then_some(self.range),
            force_range: None,
            act_range: None,
            act_early: false,
        })
    }
}

fn only(r: Reader, a: &Attr, word: &str) -> Result<(), MjcfError> {
    if a.value == word { Ok(()) } else { Err(r.refuse(a, INSTEAD)) }
}
