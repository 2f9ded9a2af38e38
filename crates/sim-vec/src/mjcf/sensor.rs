//! `<sensor>`: the kinds that are simulated; others measure without acting and are skipped.

use super::error::MjcfError;
use super::names::Names;
use super::source::{Attr, Node, Sources};
use super::value::Reader;
use crate::model::{Frame, Id, Joint, JointKind, Sensor, SensorKind};

/// Everything a sensor can measure.
pub(super) struct Objects<'a> {
    pub(super) bodies: &'a Names,
    pub(super) geoms: &'a Names,
    pub(super) sites: &'a Names,
    pub(super) joints: &'a Names,
    pub(super) all_joints: &'a [Joint],
    pub(super) tendons: &'a Names,
    pub(super) actuators: &'a Names,
}

/// Reads all `<sensor>` sections.
pub(super) fn read(
    sources: &Sources,
    root: &Node,
    objects: &Objects,
    skipped: &mut Vec<String>,
) -> Result<Vec<Sensor>, MjcfError> {
    let mut names = Names::new("sensor");
    let mut all = Vec::new();
    let mut start = 0;
    for node in root.children.iter().filter(|c| c.tag == "sensor").flat_map(|c| &c.children) {
        let r = Reader { sources, node };
        let Some(kind) = objects.kind(r)? else {
            skipped.push(format!("{} {}", node.tag, node.text("name")));
            continue;
        };
        for a in &node.attrs {
            if matches!(a.name.as_str(), "cutoff" | "delay" | "interval" | "nsample")
                && r.numbers(a, 1, usize::MAX)?.iter().any(|x| *x != 0.0)
            {
                return Err(r.refuse(a, "remove it: sensors read the present state as it is"));
            }
        }
        let sensor = Sensor { name: node.text("name").into(), kind, start };
        start += kind.dim();
        names.add(r, &sensor.name, all.len())?;
        all.push(sensor);
    }
    Ok(all)
}

impl Objects<'_> {
    /// What a sensor measures; nothing if that is not simulated.
    fn kind(&self, r: Reader) -> Result<Option<SensorKind>, MjcfError> {
        use SensorKind::*;
        let of = |names: &Names, attribute: &str, kind: fn(Id) -> SensorKind| {
            Ok(Some(kind(names.find(r, required(r, attribute)?)?)))
        };
        let frame = |kind: fn(Frame) -> SensorKind| Ok(self.frame(r, "objtype", "objname")?.map(kind));
        let seen = |kind: &dyn Fn(Frame, Option<Frame>) -> SensorKind| {
            let (object, from) = (self.frame(r, "objtype", "objname")?, r.node.attr("reftype"));
            let from = match (from, r.node.attr("refname")) {
                (None, None) => Some(None),
                _ => self.frame(r, "reftype", "refname")?.map(Some),
            };
            Ok(object.zip(from).map(|(object, from)| kind(object, from)))
        };
        match r.node.tag.as_str() {
            "touch" => of(self.sites, "site", Touch),
            "accelerometer" => of(self.sites, "site", Accelerometer),
            "velocimeter" => of(self.sites, "site", Velocimeter),
            "gyro" => of(self.sites, "site", Gyro),
            "force" => of(self.sites, "site", Force),
            "torque" => of(self.sites, "site", Torque),
            "rangefinder" if r.node.attr("site").is_some() && matches!(r.node.text("data").trim(), "" | "dist") => {
                of(self.sites, "site", Rangefinder)
            }
            "jointpos" => Ok(Some(JointPos(self.scalar(r)?))),
            "jointvel" => Ok(Some(JointVel(self.scalar(r)?))),
            "tendonpos" => of(self.tendons, "tendon", TendonPos),
            "tendonvel" => of(self.tendons, "tendon", TendonVel),
            "actuatorpos" => of(self.actuators, "actuator", ActuatorPos),
            "actuatorvel" => of(self.actuators, "actuator", ActuatorVel),
            "actuatorfrc" => of(self.actuators, "actuator", ActuatorForce),
            "framepos" => seen(&FramePos),
            "framequat" => seen(&FrameQuat),
            "framexaxis" => seen(&|object, from| FrameAxis(object, 0, from)),
            "frameyaxis" => seen(&|object, from| FrameAxis(object, 1, from)),
            "framezaxis" => seen(&|object, from| FrameAxis(object, 2, from)),
            // velocities are simulated in the world's frame only
            "framelinvel" | "frameangvel" if r.node.attr("reftype").is_some() || r.node.attr("refname").is_some() => {
                Ok(None)
            }
            "framelinvel" => frame(FrameLinVel),
            "frameangvel" => frame(FrameAngVel),
            "subtreecom" => of(self.bodies, "body", SubtreeCom),
            "subtreelinvel" => of(self.bodies, "body", SubtreeLinVel),
            "subtreeangmom" => of(self.bodies, "body", SubtreeAngMom),
            _ => Ok(None),
        }
    }

    fn scalar(&self, r: Reader) -> Result<Id, MjcfError> {
        let a = required(r, "joint")?;
        let id = self.joints.find(r, a)?;
        if self.all_joints[id].kind == JointKind::Free {
            return Err(r.wrong(a, "a slide or hinge joint; write <framepos> for a free body"));
        }
        Ok(id)
    }

    /// The frame that two attributes name; none if it is a camera's.
    fn frame(&self, r: Reader, kind: &str, name: &str) -> Result<Option<Frame>, MjcfError> {
        let (kind, name) = (required(r, kind)?, required(r, name)?);
        Ok(match kind.value.as_str() {
            "body" => Some(Frame::Inertial(self.bodies.find(r, name)?)),
            "xbody" => Some(Frame::Body(self.bodies.find(r, name)?)),
            "geom" => Some(Frame::Geom(self.geoms.find(r, name)?)),
            "site" => Some(Frame::Site(self.sites.find(r, name)?)),
            "camera" => None,
            _ => return Err(r.wrong(kind, "`body`, `xbody`, `geom` or `site`")),
        })
    }
}

fn required<'a>(r: Reader<'a>, attribute: &str) -> Result<&'a Attr, MjcfError> {
    r.node.attr(attribute).ok_or_else(|| r.invalid(format!("it measures nothing; write {attribute}=\"…\"")))
}
