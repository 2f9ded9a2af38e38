//! Why an MJCF file was not taken: always where, what, and what to write instead.

use std::fmt;

/// A position in a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// File as it was named to the loader, or the origin given to [`parse`](super::parse).
    pub file: String,
    /// From 1.
    pub line: usize,
    /// In characters, from 1.
    pub column: usize,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}", self.file, self.line, self.column)
    }
}

/// An MJCF file that cannot be simulated. Messages read `file:line:column: <element> …; what to write instead`.
#[derive(Debug, thiserror::Error)]
pub enum MjcfError {
    /// The file itself could not be read.
    #[error("cannot read MJCF file {file}: {reason}; check the path and its permissions")]
    Read {
        /// Path.
        file: String,
        /// Reason of the operating system.
        reason: std::io::Error,
    },
    /// Not XML.
    #[error("{place}: not well-formed XML: {what}")]
    Xml {
        /// Where.
        place: Box<Place>,
        /// What the XML reader says.
        what: String,
    },
    /// An `<include>` that cannot be followed.
    #[error("{place}: <include> of {file}: {what}")]
    Include {
        /// The `<include>`.
        place: Box<Place>,
        /// The file it names.
        file: String,
        /// Why not.
        what: String,
    },
    /// An element or attribute that MJCF does not have at this place.
    #[error("{place}: <{within}> has no {kind} `{name}`{}", nearest(nearest_name))]
    Unknown {
        /// Where.
        place: Box<Place>,
        /// Element it stands in.
        within: String,
        /// "attribute" or "element".
        kind: &'static str,
        /// As written.
        name: String,
        /// The most similar valid name.
        nearest_name: Option<String>,
    },
    /// An attribute whose text is not what it should be.
    #[error("{place}: {element} {attribute}=\"{value}\": expected {expected}")]
    Value {
        /// Where.
        place: Box<Place>,
        /// Element, with its name if it has one.
        element: String,
        /// Attribute.
        attribute: String,
        /// As written, shortened.
        value: String,
        /// What would be taken.
        expected: String,
    },
    /// A valid feature of MJCF that would change the motion and is not simulated here.
    #[error("{place}: {element}: {what} is not simulated; {instead}")]
    Unsupported {
        /// Where.
        place: Box<Place>,
        /// Element, with its name if it has one.
        element: String,
        /// Feature.
        what: String,
        /// What to write instead.
        instead: String,
    },
    /// A name that nothing has, or that two things have.
    #[error("{place}: {element}: {what}")]
    Name {
        /// Where.
        place: Box<Place>,
        /// Element, with its name if it has one.
        element: String,
        /// Which name and what is wrong with it.
        what: String,
    },
    /// Well-formed, but no mechanism: contradictions, missing or negative masses, empty ranges.
    #[error("{place}: {element}: {what}")]
    Invalid {
        /// Where.
        place: Box<Place>,
        /// Element, with its name if it has one.
        element: String,
        /// What is wrong and how to mend it.
        what: String,
    },
}

fn nearest(name: &Option<String>) -> String {
    name.as_ref().map_or_else(|| "; remove it".into(), |n| format!("; did you mean `{n}`?"))
}
