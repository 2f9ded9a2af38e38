//! XML text to a tree of elements that know where they stand, includes replaced by what they include.

use std::path::{Path, PathBuf};

use super::error::{MjcfError, Place};

/// Elements may nest this deep; keeps recursion bounded on hostile input.
const MAX_DEPTH: usize = 200;

/// Byte offset in one of the files.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Spot {
    file: usize,
    offset: usize,
}

/// An attribute as written.
#[derive(Clone, Debug)]
pub(super) struct Attr {
    pub(super) name: String,
    pub(super) value: String,
    pub(super) at: Spot,
}

/// An element with its attributes and child elements, in document order.
#[derive(Clone, Debug)]
pub(super) struct Node {
    pub(super) tag: String,
    pub(super) at: Spot,
    pub(super) attrs: Vec<Attr>,
    pub(super) children: Vec<Node>,
}

impl Node {
    /// The attribute of that name.
    pub(super) fn attr(&self, name: &str) -> Option<&Attr> {
        self.attrs.iter().find(|a| a.name == name)
    }

    /// Value of the attribute of that name, or nothing.
    pub(super) fn text(&self, name: &str) -> &str {
        self.attr(name).map_or("", |a| &a.value)
    }

    /// `<geom name="x">`, or `<geom>` without a name.
    pub(super) fn label(&self) -> String {
        match self.attr("name") {
            Some(n) => format!("<{} name=\"{}\">", self.tag, shorten(&n.value)),
            None => format!("<{}>", self.tag),
        }
    }
}

/// The first characters of a value, for messages.
pub(super) fn shorten(text: &str) -> String {
    let mut s: String = text.chars().take(40).collect();
    if s.len() < text.len() {
        s.push('…');
    }
    s
}

/// The files read so far, to turn spots into lines.
#[derive(Default)]
pub(super) struct Sources {
    files: Vec<(String, String)>,
}

impl Sources {
    /// Line and column of a spot.
    pub(super) fn place(&self, at: Spot) -> Box<Place> {
        let (file, text) = &self.files[at.file];
        let before = text.get(..at.offset).unwrap_or(text);
        let line = before.matches('\n').count() + 1;
        let column = before.rsplit('\n').next().unwrap_or("").chars().count() + 1;
        Box::new(Place { file: file.clone(), line, column })
    }

    /// Reads a document and everything it includes. `dir` is where relative includes are looked for first.
    pub(super) fn document(&mut self, name: &str, text: String, dir: &Path) -> Result<Node, MjcfError> {
        let mut trail = vec![canonical(Path::new(name))];
        let mut seen = trail.clone();
        self.read(name, text, dir, dir, &mut trail, &mut seen, 0)
    }

    fn read(
        &mut self,
        name: &str,
        text: String,
        main_dir: &Path,
        own_dir: &Path,
        trail: &mut Vec<PathBuf>,
        seen: &mut Vec<PathBuf>,
        depth: usize,
    ) -> Result<Node, MjcfError> {
        let file = self.files.len();
        self.files.push((name.to_string(), text.clone()));
        let document = roxmltree::Document::parse(&text).map_err(|e| {
            let pos = e.pos();
            let place = Place { file: name.to_string(), line: pos.row as usize, column: pos.col as usize };
            MjcfError::Xml { place: Box::new(place), what: e.to_string() }
        })?;
        let dirs = [main_dir, own_dir];
        self.convert(document.root_element(), file, &dirs, trail, seen, depth)
    }

    fn convert(
        &mut self,
        xml: roxmltree::Node,
        file: usize,
        dirs: &[&Path; 2],
        trail: &mut Vec<PathBuf>,
        seen: &mut Vec<PathBuf>,
        depth: usize,
    ) -> Result<Node, MjcfError> {
        let spot = |offset| Spot { file, offset };
        let attrs = xml.attributes().map(|a| Attr {
            name: a.name().to_string(),
            value: a.value().to_string(),
            at: spot(a.range().start),
        });
        let mut node = Node {
            tag: xml.tag_name().name().to_string(),
            at: spot(xml.range().start),
            attrs: attrs.collect(),
            children: Vec::new(),
        };
        if depth > MAX_DEPTH {
            let what = format!("elements nest deeper than {MAX_DEPTH}; flatten the model");
            return Err(MjcfError::Invalid { place: self.place(node.at), element: node.label(), what });
        }
        for child in xml.children() {
            // a stray `>` is in files in use; letters and digits were meant to be something
            let meant = |t: &&str| child.is_text() && t.contains(char::is_alphanumeric);
            if let Some(text) = child.text().filter(meant) {
                let blank = text.len() - text.trim_start().len();
                let place = self.place(spot(child.range().start + blank));
                let what = format!("text `{}` means nothing in MJCF; make it a comment", shorten(text.trim()));
                return Err(MjcfError::Invalid { place, element: node.label(), what });
            }
            if !child.is_element() {
                continue;
            }
            let part = self.convert(child, file, dirs, trail, seen, depth + 1)?;
            if part.tag == "include" {
                node.children.extend(self.include(&part, dirs, trail, seen, depth)?);
            } else {
                node.children.push(part);
            }
        }
        Ok(node)
    }

    /// The children of the included file's root element.
    fn include(
        &mut self,
        at: &Node,
        dirs: &[&Path; 2],
        trail: &mut Vec<PathBuf>,
        seen: &mut Vec<PathBuf>,
        depth: usize,
    ) -> Result<Vec<Node>, MjcfError> {
        if let Some(bad) = at.attrs.iter().find(|a| a.name != "file") {
            return Err(MjcfError::Unknown {
                place: self.place(bad.at),
                within: "include".into(),
                kind: "attribute",
                name: bad.name.clone(),
                nearest_name: Some("file".into()),
            });
        }
        let name = at.text("file").to_string();
        let fail = |s: &Self, what: String| MjcfError::Include { place: s.place(at.at), file: name.clone(), what };
        if name.is_empty() || !at.children.is_empty() {
            return Err(fail(self, "write <include file=\"…\"/> without children".into()));
        }
        let found = dirs.iter().map(|d| d.join(&name)).find(|p| p.is_file());
        let Some(path) = found else {
            return Err(fail(self, format!("no such file in {}; check the path", dirs[0].display())));
        };
        let id = canonical(&path);
        if trail.contains(&id) {
            return Err(fail(self, "the file includes itself; remove the cycle".into()));
        }
        if seen.contains(&id) {
            return Err(fail(self, "the file was included before; include it once".into()));
        }
        let text = std::fs::read_to_string(&path).map_err(|e| fail(self, format!("{e}; check the file")))?;
        let own_dir = path.parent().unwrap_or(Path::new("")).to_path_buf();
        seen.push(id.clone());
        trail.push(id);
        let root = self.read(&path.display().to_string(), text, dirs[0], &own_dir, trail, seen, depth)?;
        trail.pop();
        Ok(root.children)
    }
}

fn canonical(path: &Path) -> PathBuf {
    path.canonicalize().unwrap_or_else(|_| path.to_path_buf())
}
