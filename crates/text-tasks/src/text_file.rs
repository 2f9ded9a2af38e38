//! A user's own prompts and answers.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use rollouts::TextTask;
use serde::Deserialize;

/// What makes a completion right.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Match {
    /// The completion is the answer, but for white space around it.
    Exact,
    /// The last number in the completion is the answer's, digit for digit of its value: 7, 7.0 and 07 are equal, and
    /// commas between groups of three digits count for nothing.
    Numeric,
}

/// Prompts and answers from a JSONL file: one object `{"prompt": "…", "answer": "…"}` a line. Empty lines count for
/// nothing, and so do further keys.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TextFile {
    lines: Vec<Line>,
    how: Match,
}

#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
struct Line {
    prompt: String,
    answer: String,
}

/// A file that makes no task.
#[derive(Debug, thiserror::Error)]
pub enum TextFileError {
    /// It could not be read.
    #[error("{path}: {reason}", path = path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The system's reason.
        reason: std::io::Error,
    },
    /// A line is no prompt with an answer.
    #[error("{path}:{line}: {reason}; write one object a line, as {{\"prompt\": \"2+2=\", \"answer\": \"4\"}}", path = path.display())]
    Line {
        /// The file.
        path: PathBuf,
        /// Counted from 1.
        line: usize,
        /// What is wrong.
        reason: String,
    },
    /// There is nothing in it.
    #[error("{path} has no prompts; write one object a line, as {{\"prompt\": \"2+2=\", \"answer\": \"4\"}}", path = path.display())]
    Empty {
        /// The file.
        path: PathBuf,
    },
}

impl TextFile {
    /// Reads a file.
    ///
    /// Errors: [`TextFileError`] names file, line and what to write.
    pub fn read(path: &Path, how: Match) -> Result<Self, TextFileError> {
        let text = fs::read_to_string(path).map_err(|reason| TextFileError::Io { path: path.into(), reason })?;
        TextFile::parse(&text, how, path)
    }

    /// Reads a text; `path` stands in messages.
    ///
    /// Errors: as [`TextFile::read`].
    pub fn parse(text: &str, how: Match, path: &Path) -> Result<Self, TextFileError> {
        let mut lines = Vec::new();
        for (at, line) in text.lines().enumerate().filter(|(_, l)| !l.trim().is_empty()) {
            let wrong = |reason: String| TextFileError::Line { path: path.into(), line: at + 1, reason };
            let line: Line = serde_json::from_str(line).map_err(|e| wrong(e.to_string()))?;
            if line.prompt.is_empty() {
                return Err(wrong("its prompt is empty".into()));
            }
            if how == Match::Numeric && last_number(&line.answer).is_none() {
                return Err(wrong(format!("its answer {:?} holds no number", line.answer)));
            }
            lines.push(line);
        }
        if lines.is_empty() {
            return Err(TextFileError::Empty { path: path.into() });
        }
        Ok(TextFile { lines, how })
    }

    /// Every character of its prompts and answers, in order.
    pub fn alphabet(&self) -> String {
        let texts = self.lines.iter().flat_map(|l| [&l.prompt, &l.answer]);
        texts.flat_map(|t| t.chars()).collect::<BTreeSet<char>>().into_iter().collect()
    }

    fn line(&self, index: u64) -> &Line {
        &self.lines[(index % self.lines.len() as u64) as usize]
    }
}

impl TextTask for TextFile {
    fn prompt(&self, index: u64) -> String {
        self.line(index).prompt.clone()
    }

    fn score(&self, index: u64, completion: &str) -> f32 {
        let answer = &self.line(index).answer;
        let right = match self.how {
            Match::Exact => completion.trim() == answer.trim(),
            Match::Numeric => last_number(completion).is_some_and(|n| Some(n) == last_number(answer)),
        };
        f32::from(u8::from(right))
    }

    fn len(&self) -> Option<u64> {
        Some(self.lines.len() as u64)
    }

    fn solution(&self, index: u64, _variant: u64) -> Option<String> {
        Some(self.line(index).answer.clone())
    }
}

/// The last number of a text in one writing: sign, digits without leading zeros, decimals without trailing ones.
fn last_number(text: &str) -> Option<String> {
    let bytes = text.as_bytes();
    let end = bytes.iter().rposition(u8::is_ascii_digit)? + 1;
    let mut start = end - 1;
    while start > 0 && (bytes[start - 1].is_ascii_digit() || separates(bytes, start - 1)) {
        start -= 1;
    }
    // of 1.2.3 the last number is 2.3
    let all: String = text[start..end].chars().filter(|c| *c != ',').collect();
    let mut points: Vec<&str> = all.split('.').collect();
    let decimals = if points.len() > 1 { points.pop().unwrap_or("") } else { "" };
    let whole = points.last().copied().unwrap_or("").trim_start_matches('0');
    let decimals = decimals.trim_end_matches('0');
    let whole = if whole.is_empty() { "0" } else { whole };
    // a minus belongs to the number unless something is subtracted from
    let minus = start > 0 && bytes[start - 1] == b'-' && (start == 1 || !bytes[start - 2].is_ascii_alphanumeric());
    let sign = if minus && (whole != "0" || !decimals.is_empty()) { "-" } else { "" };
    Some(if decimals.is_empty() { format!("{sign}{whole}") } else { format!("{sign}{whole}.{decimals}") })
}

/// A point between digits, or a comma before exactly three of them.
fn separates(bytes: &[u8], at: usize) -> bool {
    let digit = |i: usize| bytes.get(i).is_some_and(u8::is_ascii_digit);
    let inside = at > 0 && digit(at - 1) && digit(at + 1);
    match bytes[at] {
        b'.' => inside,
        b',' => inside && digit(at + 2) && digit(at + 3) && !digit(at + 4),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rollouts::conformance::check_text_task;

    fn parse(text: &str, how: Match) -> Result<TextFile, String> {
        TextFile::parse(text, how, Path::new("own.jsonl")).map_err(|e| e.to_string())
    }

    #[test]
    fn the_last_number_has_one_writing() {
        for (text, want) in [
            ("the answer is 42.", "42"),
            ("#### 1,234", "1234"),
            ("\\boxed{-7.50}", "-7.5"),
            ("007", "7"),
            ("0.0", "0"),
            ("-0", "0"),
            ("10-3=7", "7"),
            ("10-3", "3"),
            ("x = -3", "-3"),
            ("1,23", "23"),
            ("1,2345", "2345"),
            ("3.14", "3.14"),
            ("v1.2.3", "2.3"),
        ] {
            assert_eq!(last_number(text).as_deref(), Some(want), "{text}");
        }
        for text in ["", "none", "-", ",."] {
            assert_eq!(last_number(text), None, "{text}");
        }
    }

    #[test]
    fn answers_match_exactly_or_by_their_last_number() {
        let file =
            "{\"prompt\": \"2+2=\", \"answer\": \"4\"}\n\n{\"prompt\": \"2+2=\", \"answer\": \"5\", \"why\": 1}\n";
        let task = parse(file, Match::Exact).unwrap();
        assert_eq!(task.len(), Some(2));
        // equal prompts stay two
        assert_eq!((task.score(0, " 4\n"), task.score(1, "4"), task.score(0, "it is 4")), (1.0, 0.0, 0.0));
        let task = parse(file, Match::Numeric).unwrap();
        assert_eq!((task.score(0, "it is 4.0"), task.score(0, "44"), task.score(0, "")), (1.0, 0.0, 0.0));
        assert_eq!(task.alphabet(), "+245=");
        check_text_task(&task, "some text 4");
    }

    #[test]
    fn a_line_that_is_no_prompt_is_named_with_what_to_write() {
        for (text, how, hint) in [
            ("", Match::Exact, "no prompts"),
            ("{\"prompt\": \"a\", \"answer\": \"b\"}\nnonsense", Match::Exact, "own.jsonl:2:"),
            ("{\"prompt\": \"a\"}", Match::Exact, "answer"),
            ("{\"prompt\": \"\", \"answer\": \"b\"}", Match::Exact, "prompt is empty"),
            ("{\"prompt\": \"a\", \"answer\": 4}", Match::Exact, "string"),
            ("{\"prompt\": \"a\", \"answer\": \"b\"}", Match::Numeric, "no number"),
        ] {
            let error = parse(text, how).unwrap_err();
            assert!(error.contains(hint) && error.contains("\"prompt\""), "{text}: {error}");
        }
        assert!(TextFile::read(Path::new("nowhere.jsonl"), Match::Exact).unwrap_err().to_string().contains("nowhere"));
    }
}
