//! How completions end.

/// How a completion ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// With an end token, which counts as part of it.
    Stopped,
    /// At the longest allowed length.
    Truncated,
}
