//! Vectorised environments: the contract between a simulator and whoever collects from it.

use std::fmt;

/// What an environment lane did in the last step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// The episode goes on.
    Running,
    /// The task ended the episode: nothing follows, a value target must not bootstrap.
    Terminated,
    /// A time limit cut the episode: the state was ordinary, a value target bootstraps from
    /// [`StepOut::last_obs`].
    Truncated,
    /// The lane has finished and waits; the row carries nothing.
    Idle,
}

/// Sizes and clock of a [`VecEnv`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct EnvSpec {
    /// Environments stepped together, N.
    pub lanes: usize,
    /// Length of one observation, O.
    pub obs_dim: usize,
    /// Length of one action, A.
    pub act_dim: usize,
    /// Control step in seconds.
    pub dt_s: f64,
    /// Steps after which an episode is truncated.
    pub episode_steps: usize,
}

/// Caller-owned buffers that one step fills. Rows are lanes.
pub struct StepOut<'a> {
    /// `[N, O]` observation to act on next; of the new episode where one just ended.
    pub obs: &'a mut [f32],
    /// `[N]` reward of this step.
    pub reward: &'a mut [f32],
    /// `[N]` what happened.
    pub status: &'a mut [Status],
    /// `[N, O]` observation that this step led to, before any reset: the one to bootstrap from.
    pub last_obs: &'a mut [f32],
}

/// The buffers of a [`StepOut`], owned: one set serves every step.
///
/// ```
/// # use rollouts::{EnvSpec, StepBuffers};
/// let spec = EnvSpec { lanes: 2, obs_dim: 3, act_dim: 1, dt_s: 0.1, episode_steps: 4 };
/// let mut now = StepBuffers::new(spec);
/// assert_eq!((now.obs.len(), now.out().reward.len()), (6, 2));
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct StepBuffers {
    /// `[N, O]`; see [`StepOut::obs`].
    pub obs: Vec<f32>,
    /// `[N]`; see [`StepOut::reward`].
    pub reward: Vec<f32>,
    /// `[N]`; see [`StepOut::status`].
    pub status: Vec<Status>,
    /// `[N, O]`; see [`StepOut::last_obs`].
    pub last_obs: Vec<f32>,
}

impl StepBuffers {
    /// Zeros, and every lane [`Status::Running`].
    pub fn new(spec: EnvSpec) -> Self {
        let rows = vec![0.0; spec.lanes * spec.obs_dim];
        StepBuffers {
            obs: rows.clone(),
            reward: vec![0.0; spec.lanes],
            status: vec![Status::Running; spec.lanes],
            last_obs: rows,
        }
    }

    /// What [`VecEnv::step`] fills.
    pub fn out(&mut self) -> StepOut<'_> {
        let StepBuffers { obs, reward, status, last_obs } = self;
        StepOut { obs, reward, status, last_obs }
    }
}

/// A snapshot does not fit the environment that should take it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SnapshotError(
    /// What was expected and what was found.
    pub String,
);

impl fmt::Display for SnapshotError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "environment snapshot does not fit: {}", self.0)
    }
}

impl std::error::Error for SnapshotError {}

/// N environments that step together. [`crate::conformance::check_vec_env`] tests the promises.
///
/// * Equal seeds give bitwise equal starts; a lane's later episodes follow from its seed.
/// * Lanes are independent: what one does, or a non-finite number in it, never reaches another.
/// * The thread count changes no bit.
/// * Auto-reset within the step: an ended lane already holds its next episode's first observation in
///   `obs` when `step` returns, and the true final observation in `last_obs`.
/// * A lane whose state turns non-finite is [`Status::Terminated`] with reward 0, reset and counted.
/// * `step` does not allocate.
pub trait VecEnv {
    /// Sizes and clock.
    fn spec(&self) -> EnvSpec;

    /// Starts a new episode in every lane. `seeds`: `[N]`; `obs`: `[N, O]`.
    ///
    /// Panics if a slice has the wrong length.
    fn reset(&mut self, seeds: &[u64], obs: &mut [f32]);

    /// One control step. `action`: `[N, A]`, clamped to `[-1, 1]`; a non-finite action counts as 0.
    ///
    /// Panics if a slice has the wrong length.
    fn step(&mut self, action: &[f32], out: StepOut<'_>);

    /// Lanes that turned non-finite since construction.
    fn non_finite_lanes(&self) -> u64;

    /// The complete state: restoring it and stepping repeats the original bit for bit.
    fn snapshot(&self) -> Vec<u8>;

    /// Takes over a state made by [`VecEnv::snapshot`] of an equal environment. On error nothing changed.
    fn restore(&mut self, snapshot: &[u8]) -> Result<(), SnapshotError>;
}
