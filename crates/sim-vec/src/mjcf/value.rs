//! Attribute text to numbers, words and switches, with errors that say what was expected.

use super::error::MjcfError;
use super::rotation::Orientation;
use super::settings::Settings;
use super::source::{Attr, Node, Sources, shorten};

/// MJCF's `true`, `false` and `auto`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Auto {
    True,
    False,
    #[default]
    Unsaid,
}

impl Auto {
    /// The range, if it limits: because this says so, or says nothing and the range is given.
    ///
    /// Errors where it limits and is empty, or is given and left to `autolimits`, which is off. `what` begins the
    /// attributes' names: they are `{what}limited` and `{what}range`.
    pub(super) fn range(
        self,
        r: Reader,
        what: &str,
        range: [f64; 2],
        s: &Settings,
    ) -> Result<Option<[f64; 2]>, MjcfError> {
        if self == Auto::Unsaid && !s.compiler.autolimits && range != [0.0; 2] {
            return Err(r.invalid(format!(
                "{what}range without {what}limited while autolimits is off; write {what}limited=\"true\" or \"false\""
            )));
        }
        let limited = self == Auto::True || self == Auto::Unsaid && range[0] < range[1];
        if limited && range[0] >= range[1] {
            return Err(r.invalid(format!("its {what}range is empty; write {what}range=\"low high\" with low < high")));
        }
        Ok(limited.then_some(range))
    }
}

/// Reads attributes of one element.
#[derive(Clone, Copy)]
pub(super) struct Reader<'a> {
    pub(super) sources: &'a Sources,
    pub(super) node: &'a Node,
}

impl<'a> Reader<'a> {
    /// The text is not what it should be.
    pub(super) fn wrong(&self, a: &Attr, expected: impl Into<String>) -> MjcfError {
        MjcfError::Value {
            place: self.sources.place(a.at),
            element: self.node.label(),
            attribute: a.name.clone(),
            value: shorten(&a.value),
            expected: expected.into(),
        }
    }

    /// The attribute would change the motion and is not simulated.
    pub(super) fn refuse(&self, a: &Attr, instead: impl Into<String>) -> MjcfError {
        MjcfError::Unsupported {
            place: self.sources.place(a.at),
            element: self.node.label(),
            what: format!("{}=\"{}\"", a.name, shorten(&a.value)),
            instead: instead.into(),
        }
    }

    /// The element would change the motion and is not simulated.
    pub(super) fn refuse_element(&self, instead: impl Into<String>) -> MjcfError {
        MjcfError::Unsupported {
            place: self.sources.place(self.node.at),
            element: self.node.label(),
            what: "it".into(),
            instead: instead.into(),
        }
    }

    /// The element is no part of a mechanism.
    pub(super) fn invalid(&self, what: impl Into<String>) -> MjcfError {
        let place = self.sources.place(self.node.at);
        MjcfError::Invalid { place, element: self.node.label(), what: what.into() }
    }

    /// Between `least` and `most` numbers.
    pub(super) fn numbers(&self, a: &Attr, least: usize, most: usize) -> Result<Vec<f64>, MjcfError> {
        let expected = || match (least, most) {
            (1, 1) => "a number".to_string(),
            (_, usize::MAX) => "numbers".to_string(),
            (l, m) if l == m => format!("{l} numbers"),
            (l, m) => format!("{l} to {m} numbers"),
        };
        let parse = |t: &str| t.parse::<f64>().ok().filter(|x| x.is_finite());
        let numbers: Option<Vec<f64>> = a.value.split_ascii_whitespace().map(parse).collect();
        let numbers = numbers.ok_or_else(|| self.wrong(a, format!("{}, all finite", expected())))?;
        if numbers.len() < least || numbers.len() > most {
            return Err(self.wrong(a, format!("{}, got {}", expected(), numbers.len())));
        }
        Ok(numbers)
    }

    /// Exactly `N` numbers.
    pub(super) fn vector<const N: usize>(&self, a: &Attr) -> Result<[f64; N], MjcfError> {
        let v = self.numbers(a, N, N)?;
        Ok(std::array::from_fn(|i| v[i]))
    }

    /// One to `N` numbers, over the first entries of `to`; the others keep their values.
    pub(super) fn prefix<const N: usize>(&self, a: &Attr, to: &mut [f64; N]) -> Result<(), MjcfError> {
        let v = self.numbers(a, 1, N)?;
        to[..v.len()].copy_from_slice(&v);
        Ok(())
    }

    pub(super) fn number(&self, a: &Attr) -> Result<f64, MjcfError> {
        Ok(self.numbers(a, 1, 1)?[0])
    }

    /// A number that is not negative.
    pub(super) fn magnitude(&self, a: &Attr) -> Result<f64, MjcfError> {
        let x = self.number(a)?;
        if x < 0.0 { Err(self.wrong(a, "a number of at least 0")) } else { Ok(x) }
    }

    pub(super) fn integer(&self, a: &Attr) -> Result<i32, MjcfError> {
        a.value.trim().parse().map_err(|_| self.wrong(a, "an integer"))
    }

    /// An integer of at least 0.
    pub(super) fn count(&self, a: &Attr) -> Result<usize, MjcfError> {
        usize::try_from(self.integer(a)?).map_err(|_| self.wrong(a, "an integer of at least 0"))
    }

    /// One of some words.
    pub(super) fn word<T: Copy>(&self, a: &Attr, words: &[(&str, T)]) -> Result<T, MjcfError> {
        words.iter().find(|w| w.0 == a.value).map(|w| w.1).ok_or_else(|| {
            let list: Vec<String> = words.iter().map(|w| format!("`{}`", w.0)).collect();
            self.wrong(a, list.join(" or "))
        })
    }

    pub(super) fn boolean(&self, a: &Attr) -> Result<bool, MjcfError> {
        self.word(a, &[("true", true), ("false", false)])
    }

    pub(super) fn auto(&self, a: &Attr) -> Result<Auto, MjcfError> {
        self.word(a, &[("true", Auto::True), ("false", Auto::False), ("auto", Auto::Unsaid)])
    }

    pub(super) fn enabled(&self, a: &Attr) -> Result<bool, MjcfError> {
        self.word(a, &[("enable", true), ("disable", false)])
    }

    /// An orientation attribute; `None` if the attribute is not one.
    pub(super) fn orientation(&self, a: &Attr) -> Result<Option<Orientation>, MjcfError> {
        Ok(Some(match a.name.as_str() {
            "quat" => Orientation::Quat(self.vector(a)?),
            "axisangle" => Orientation::AxisAngle(self.vector(a)?),
            "xyaxes" => Orientation::XyAxes(self.vector(a)?),
            "zaxis" => Orientation::ZAxis(self.vector(a)?),
            "euler" => Orientation::Euler(self.vector(a)?),
            _ => return Ok(None),
        }))
    }
}

/// The attributes by which an element gives its orientation; more than one contradict each other.
pub(super) fn orientation_attrs(node: &Node) -> Vec<&Attr> {
    let names = ["quat", "axisangle", "xyaxes", "zaxis", "euler"];
    node.attrs.iter().filter(|a| names.contains(&a.name.as_str())).collect()
}
