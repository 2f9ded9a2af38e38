//! `<equality>`: relations between two joints or two tendons.

use super::error::MjcfError;
use super::joint::SOFTNESS;
use super::names::Names;
use super::source::Attr;
use super::value::Reader;
use crate::model::{Equality, EqualityKind, Id, Joint, JointKind, Softness};

/// An equality as written, over its class.
#[derive(Clone, Debug)]
pub(super) struct EqualitySpec {
    name: String,
    active: bool,
    softness: Softness,
}

impl Default for EqualitySpec {
    fn default() -> Self {
        EqualitySpec { name: String::new(), active: true, softness: SOFTNESS }
    }
}

impl EqualitySpec {
    /// Takes what the element says over what is there.
    pub(super) fn read(&mut self, r: Reader) -> Result<(), MjcfError> {
        for a in &r.node.attrs {
            match a.name.as_str() {
                "name" => self.name = a.value.clone(),
                "active" => self.active = r.boolean(a)?,
                "solref" => r.prefix(a, &mut self.softness.solref)?,
                "solimp" => r.prefix(a, &mut self.softness.solimp)?,
                _ => {}
            }
        }
        Ok(())
    }

    /// The equality, if it is active.
    pub(super) fn compile(
        self,
        r: Reader,
        joint_names: &Names,
        joints: &[Joint],
        tendon_names: &Names,
    ) -> Result<Option<Equality>, MjcfError> {
        let kind = match r.node.tag.as_str() {
            "joint" => {
                let (first, second, poly) = pair(r, ["joint1", "joint2"], joint_names)?;
                for (id, a) in [Some(first), second].into_iter().flatten() {
                    if joints[id].kind == JointKind::Free {
                        return Err(r.wrong(a, "a slide or hinge joint; a free one has no single position"));
                    }
                }
                EqualityKind::Joint { first: first.0, second: second.map(|s| s.0), poly }
            }
            "tendon" => {
                let (first, second, poly) = pair(r, ["tendon1", "tendon2"], tendon_names)?;
                EqualityKind::Tendon { first: first.0, second: second.map(|s| s.0), poly }
            }
            // whatever it relates, it does not now
            _ if !self.active => return Ok(None),
            "connect" | "weld" => {
                return Err(r.refuse_element(
                    "nest the bodies and give them the joints that are left, or write active=\"false\"",
                ));
            }
            _ => return Err(r.refuse_element("remove it: there are no flexes")),
        };
        Ok(self.active.then_some(Equality { name: self.name, kind, softness: self.softness }))
    }
}

type Named<'a> = (Id, &'a Attr);

fn pair<'a>(
    r: Reader<'a>,
    attributes: [&str; 2],
    names: &Names,
) -> Result<(Named<'a>, Option<Named<'a>>, [f64; 5]), MjcfError> {
    let find = |name: &str| r.node.attr(name).map(|a| names.find(r, a).map(|id| (id, a))).transpose();
    let lacks = || r.invalid(format!("it relates nothing; write {}=\"…\"", attributes[0]));
    let first = find(attributes[0])?.ok_or_else(lacks)?;
    let second = find(attributes[1])?;
    if let Some((_, a)) = second.filter(|s| s.0 == first.0) {
        return Err(r.wrong(a, "another one than the first"));
    }
    let mut poly = [0.0, 1.0, 0.0, 0.0, 0.0];
    if let Some(a) = r.node.attr("polycoef") {
        r.prefix(a, &mut poly)?;
    }
    Ok((first, second, poly))
}
