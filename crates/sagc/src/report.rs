//! What a sizer is told of a finished step.

/// What one generation step looked like, before any filtering of groups.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct GroupReport<'a> {
    /// Members per group, G.
    pub group_size: usize,
    /// `[groups * G]`, members of a group next to each other, in tokens or in seconds. A truncated rollout counts with
    /// the length it had.
    pub length: &'a [f32],
    /// `[groups * G]`: rollouts that were cut at the longest allowed length; empty if nobody knows.
    pub truncated: &'a [bool],
    /// Seconds the whole step took, where they are to count.
    pub seconds: Option<f64>,
}

impl<'a> GroupReport<'a> {
    /// Lengths alone.
    pub fn new(group_size: usize, length: &'a [f32]) -> Self {
        GroupReport { group_size, length, truncated: &[], seconds: None }
    }

    /// With the rollouts that were cut. `truncated`: `[groups * G]`, or empty if nobody knows.
    ///
    /// Panics if it is of another length than the lengths.
    pub fn with_truncated(self, truncated: &'a [bool]) -> Self {
        assert!(truncated.is_empty() || truncated.len() == self.length.len(), "one flag per rollout");
        GroupReport { truncated, ..self }
    }

    /// With the seconds that the step took.
    pub fn with_seconds(self, seconds: f64) -> Self {
        GroupReport { seconds: Some(seconds), ..self }
    }

    /// Whether it says anything: there is a complete group, and the lengths of complete groups are finite and at least 0.
    pub fn is_usable(&self) -> bool {
        let groups = self.length.len().checked_div(self.group_size).unwrap_or(0);
        groups > 0 && self.length[..groups * self.group_size].iter().all(|l| l.is_finite() && *l >= 0.0)
    }

    /// Share of the rollouts that were cut; `None` if nobody knows.
    pub fn clipped(&self) -> Option<f64> {
        let n = self.truncated.len();
        (n > 0).then(|| self.truncated.iter().filter(|t| **t).count() as f64 / n as f64)
    }
}
