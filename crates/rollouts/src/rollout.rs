//! The waist of the workspace: what a source of experience hands to a trainer.

use crate::Status;

/// Experience of one on-policy phase: `steps` decisions in each of `lanes`. Row = `step * lanes + lane`.
///
/// `O` holds observations and `T` the policy's traces; simulators and trainers choose the tensor type,
/// this crate does not.
#[derive(Clone, Debug)]
pub struct Rollout<O, T> {
    /// Decisions per lane, T. A text is one decision.
    pub steps: usize,
    /// Lanes, N.
    pub lanes: usize,
    /// `[T*N, O]` observations acted on.
    pub obs: O,
    /// `[T*N, O]` observations that followed, before any reset; `None` where nothing can follow.
    pub next_obs: Option<O>,
    /// `[T*N, …]` whatever the policy needs to score its decisions again.
    pub trace: T,
    /// `[T*N, A]` actions as the environment received them, row-major; empty for text.
    pub action: Vec<f32>,
    /// `[T*N, F]` log density of each factor of a decision when it was drawn, nats, 0 where a row has no such factor;
    /// empty where the source did not keep it.
    pub log_prob: Vec<f32>,
    /// `[T*N]` rewards.
    pub reward: Vec<f32>,
    /// `[T*N]` what each step did.
    pub status: Vec<Status>,
    /// `[N]` group of each lane: lanes of one group started alike (one prompt, one start state).
    pub group: Vec<u32>,
    /// `[N]` how long each lane went on, in the source's own unit: environment steps, or tokens with the end token.
    pub length: Vec<u32>,
}

impl<O, T> Rollout<O, T> {
    /// Rows, `steps * lanes`.
    pub fn rows(&self) -> usize {
        self.steps * self.lanes
    }
}
