//! `<sensor>`: the kinds that tasks read; others measure without acting and are skipped.

use super::error::MjcfError;
use super::names::Names;
use super::source::{Node, Sources};
use super::value::Reader;
use crate::model::{Sensor, SensorKind};

/// Reads all `<sensor>` sections.
pub(super) fn read(
    sources: &Sources,
    root: &Node,
    bodies: &Names,
    sites: &Names,
    skipped: &mut Vec<String>,
) -> Result<Vec<Sensor>, MjcfError> {
    let mut names = Names::new("sensor");
    let mut all = Vec::new();
    let mut start = 0;
    for node in root.children.iter().filter(|c| c.tag == "sensor").flat_map(|c| &c.children) {
        let r = Reader { sources, node };
        let (kind, attribute, objects) = match node.tag.as_str() {
            "touch" => (SensorKind::Touch as fn(usize) -> SensorKind, "site", sites),
            "subtreelinvel" => (SensorKind::SubtreeLinVel as fn(usize) -> SensorKind, "body", bodies),
            other => {
                skipped.push(format!("{other} {}", node.text("name")));
                continue;
            }
        };
        for a in &node.attrs {
            match a.name.as_str() {
                "cutoff" | "delay" | "interval" | "nsample" => {
                    if r.numbers(a, 1, usize::MAX)?.iter().any(|x| *x != 0.0) {
                        return Err(r.refuse(a, "remove it: sensors read the present state as it is"));
                    }
                }
                // noise is a remark: MuJoCo does not apply it either
                "name" | "noise" | "user" | "interp" => {}
                other if other == attribute => {}
                _ => return Err(r.refuse(a, "remove it")),
            }
        }
        let object =
            node.attr(attribute).ok_or_else(|| r.invalid(format!("it measures nothing; write {attribute}=\"…\"")))?;
        let kind = kind(objects.find(r, object)?);
        let sensor = Sensor { name: node.text("name").into(), kind, start };
        start += kind.dim();
        names.add(r, &sensor.name, all.len())?;
        all.push(sensor);
    }
    Ok(all)
}
