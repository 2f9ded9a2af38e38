//! States as one line of text: kind and version, then words.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt::Display;
use core::str::FromStr;

/// A saved state that does not fit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StateError(
    /// What was expected and what was found.
    pub String,
);

impl Display for StateError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "saved state of a group sizer does not fit: {}", self.0)
    }
}

impl core::error::Error for StateError {}

/// Writes a state.
pub(crate) struct Line(String);

impl Line {
    /// `header`: kind and version, as `sagc/1`.
    pub fn new(header: &str) -> Self {
        Line(header.into())
    }

    pub fn word(&mut self, word: impl Display) -> &mut Self {
        self.0 += &format!(" {word}");
        self
    }

    /// `{:?}` writes the shortest digits that read back as the same bits.
    pub fn floats(&mut self, x: &[f64]) -> &mut Self {
        x.iter().for_each(|x| self.0 += &format!(" {x:?}"));
        self
    }

    /// A float, or `-` for none.
    pub fn maybe(&mut self, x: Option<f64>) -> &mut Self {
        match x {
            Some(x) => self.floats(&[x]),
            None => self.word("-"),
        }
    }

    pub fn finish(self) -> String {
        self.0
    }
}

/// Reads a state, word by word.
pub(crate) struct Words<'a> {
    header: &'static str,
    words: core::str::Split<'a, char>,
}

impl<'a> Words<'a> {
    /// Errors: `saved` begins with something other than `header`.
    pub fn open(header: &'static str, saved: &'a str) -> Result<Self, StateError> {
        let mut words = saved.split(' ');
        match words.next() {
            Some(first) if first == header => Ok(Words { header, words }),
            _ => Err(StateError(format!("expected one line beginning with `{header} `, found `{}`", start(saved)))),
        }
    }

    fn wrong(&self, what: &str, found: &str) -> StateError {
        StateError(format!("expected {what} in a `{}` line, found `{}`", self.header, start(found)))
    }

    pub fn text(&mut self, what: &str) -> Result<&'a str, StateError> {
        self.words.next().ok_or_else(|| self.wrong(what, "its end"))
    }

    /// Any word that `fits`.
    pub fn word<T: FromStr>(&mut self, what: &str, fits: impl Fn(&T) -> bool) -> Result<T, StateError> {
        let word = self.text(what)?;
        word.parse().ok().filter(fits).ok_or_else(|| self.wrong(what, word))
    }

    /// The word that equal settings write.
    pub fn exactly(&mut self, what: &str, want: &str) -> Result<(), StateError> {
        let word = self.text(what)?;
        if word == want { Ok(()) } else { Err(self.wrong(&format!("{what} `{want}`"), word)) }
    }

    /// A finite number, at least 0.
    pub fn amount(&mut self, what: &str) -> Result<f64, StateError> {
        self.word(what, |x: &f64| x.is_finite() && *x >= 0.0)
    }

    pub fn amounts(&mut self, what: &str, n: usize) -> Result<Vec<f64>, StateError> {
        (0..n).map(|_| self.amount(what)).collect()
    }

    /// As [`Self::amount`], or `-` for none.
    pub fn maybe(&mut self, what: &str) -> Result<Option<f64>, StateError> {
        let word = self.text(what)?;
        if word == "-" {
            return Ok(None);
        }
        match word.parse() {
            Ok(x) if f64::is_finite(x) && x >= 0.0 => Ok(Some(x)),
            _ => Err(self.wrong(&format!("{what} or `-`"), word)),
        }
    }

    pub fn end(mut self) -> Result<(), StateError> {
        match self.words.next() {
            None => Ok(()),
            Some(word) => Err(self.wrong("nothing more", word)),
        }
    }
}

/// Sizes as one word, `4,8,16`.
pub(crate) fn list(sizes: &[usize]) -> String {
    sizes.iter().map(ToString::to_string).collect::<Vec<_>>().join(",")
}

/// The beginning of a text, short enough for a message.
fn start(text: &str) -> String {
    let mut short: String = text.chars().take(40).collect();
    if short.len() < text.len() {
        short.push('…');
    }
    short
}
