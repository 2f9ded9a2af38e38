//! Names of one kind of element.

use std::collections::BTreeMap;

use super::error::MjcfError;
use super::schema::nearest;
use super::source::Attr;
use super::value::Reader;
use crate::model::Id;

/// Where each name points.
pub(super) struct Names {
    kind: &'static str,
    ids: BTreeMap<String, Id>,
}

impl Names {
    pub(super) fn new(kind: &'static str) -> Self {
        Names { kind, ids: BTreeMap::new() }
    }

    /// Gives the element its name, if it has one.
    pub(super) fn add(&mut self, r: Reader, name: &str, id: Id) -> Result<(), MjcfError> {
        if !name.is_empty() && self.ids.insert(name.to_string(), id).is_some() {
            return Err(self.error(r, format!("{} `{name}` exists already; choose another name", self.kind)));
        }
        Ok(())
    }

    /// What an attribute names.
    pub(super) fn find(&self, r: Reader, a: &Attr) -> Result<Id, MjcfError> {
        self.ids.get(&a.value).copied().ok_or_else(|| {
            let hint = nearest(&a.value, self.ids.keys().map(String::as_str));
            let hint = hint.map_or("name one that exists".into(), |n| format!("did you mean `{n}`?"));
            self.error(r, format!("no {} is named `{}`; {hint}", self.kind, a.value))
        })
    }

    fn error(&self, r: Reader, what: String) -> MjcfError {
        MjcfError::Name { place: r.sources.place(r.node.at), element: r.node.label(), what }
    }
}
