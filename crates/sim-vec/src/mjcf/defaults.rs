//! `<default>`: named sets of attribute values, nested; a class starts from its parent's values.

use std::collections::BTreeMap;

use super::actuator::ActuatorSpec;
use super::equality::EqualitySpec;
use super::error::MjcfError;
use super::geom::GeomSpec;
use super::joint::JointSpec;
use super::pair::PairSpec;
use super::schema::{is_actuator, is_simulated, nearest};
use super::site::SiteSpec;
use super::source::{Attr, Node, Sources};
use super::tendon::TendonSpec;
use super::value::Reader;

/// The values elements of one class start from.
#[derive(Clone, Debug, Default)]
pub(super) struct Class {
    pub(super) joint: JointSpec,
    pub(super) geom: GeomSpec,
    pub(super) site: SiteSpec,
    pub(super) actuator: ActuatorSpec,
    pub(super) pair: PairSpec,
    pub(super) equality: EqualitySpec,
    pub(super) tendon: TendonSpec,
}

/// All classes; 0 is `main`.
pub(super) struct Classes {
    all: Vec<Class>,
    names: BTreeMap<String, usize>,
}

impl Classes {
    /// Reads the `<default>` sections of a file.
    pub(super) fn read(sources: &Sources, root: &Node) -> Result<Self, MjcfError> {
        let mut classes = Classes { all: vec![Class::default()], names: BTreeMap::from([("main".to_string(), 0)]) };
        for node in root.children.iter().filter(|c| c.tag == "default") {
            let r = Reader { sources, node };
            if let Some(a) = node.attr("class").filter(|a| !a.value.is_empty() && a.value != "main") {
                return Err(r.wrong(a, "`main`, or a <default> around this one: the outermost class has no other name"));
            }
            classes.section(r, 0)?;
        }
        Ok(classes)
    }

    /// The class of that id.
    pub(super) fn get(&self, id: usize) -> &Class {
        &self.all[id]
    }

    /// The class an attribute names.
    pub(super) fn find(&self, r: Reader, a: &Attr) -> Result<usize, MjcfError> {
        self.names.get(&a.value).copied().ok_or_else(|| {
            let hint = nearest(&a.value, self.names.keys().map(String::as_str));
            let hint = hint.map_or("add a <default class=…>".into(), |n| format!("did you mean `{n}`?"));
            let what = format!("no default class is named `{}`; {hint}", a.value);
            MjcfError::Name { place: r.sources.place(a.at), element: r.node.label(), what }
        })
    }

    fn section(&mut self, r: Reader, id: usize) -> Result<(), MjcfError> {
        let sources = r.sources;
        for node in &r.node.children {
            let r = Reader { sources, node };
            let class = &mut self.all[id];
            match node.tag.as_str() {
                "joint" => class.joint.read(r)?,
                "geom" => class.geom.read(r)?,
                "site" => class.site.read(r)?,
                "pair" => class.pair.read(r)?,
                "equality" => class.equality.read(r)?,
                "tendon" => class.tendon.read(r)?,
                tag if is_simulated(tag) => class.actuator.read(r)?,
                tag if is_actuator(tag) => class.actuator.foreign(r),
                // only looks
                _ => {}
            }
        }
        for node in r.node.children.iter().filter(|c| c.tag == "default") {
            let r = Reader { sources, node };
            let name = node.text("class").to_string();
            if name.is_empty() {
                return Err(r.invalid("a nested <default> needs a name; write class=\"…\""));
            }
            let nested = self.all.len();
            if self.names.insert(name.clone(), nested).is_some() {
                let what = format!("class `{name}` exists already; choose another name");
                return Err(MjcfError::Name { place: sources.place(node.at), element: node.label(), what });
            }
            let mut inner = self.all[id].clone();
            inner.actuator = self.all[id].actuator.nested();
            self.all.push(inner);
            self.section(r, nested)?;
        }
        Ok(())
    }
}
