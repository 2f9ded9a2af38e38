//! The trainer contract and the outer loop.

use rollouts::{Recorder, Rollout, Scalars};

use crate::policy::Policy;

/// Why an update was refused.
#[derive(Debug, thiserror::Error)]
pub enum TrainError {
    /// A tensor operation failed.
    #[error(transparent)]
    Tensor(#[from] candle_core::Error),
    /// The rollout's episodes go on but it has no following observations.
    #[error("the rollout has unfinished episodes and no `next_obs` to bootstrap from")]
    NoBootstrap,
    /// The group size asked for does not divide the number of rollouts.
    #[error("groups of {group_size} do not divide {rollouts} rollouts; let every size that may be chosen divide them")]
    GroupSize {
        /// Members of a group.
        group_size: usize,
        /// Rollouts of an update.
        rollouts: usize,
    },
    /// A loss or gradient is not finite. It was noticed before it reached a parameter.
    #[error("{what} is not finite at update {update}; lower the learning rate or resume from the last checkpoint")]
    NotFinite {
        /// Which quantity.
        what: &'static str,
        /// Update counted from 0.
        update: u64,
    },
}

/// Improves a policy from its own experience.
pub trait Trainer<P: Policy> {
    /// What one update tells.
    type Report: Scalars;
    /// Members the next rollout should hold per group; 1 means ungrouped.
    fn group_size(&self) -> usize {
        1
    }
    /// One on-policy phase. Takes the rollout by value: on-policy data is spent once.
    fn update(&mut self, policy: &mut P, rollout: Rollout<P::Obs, P::Trace>) -> Result<Self::Report, TrainError>;
}

/// The whole outer loop: collect, update, record.
pub fn fit<P: Policy, T: Trainer<P>>(
    policy: &mut P,
    trainer: &mut T,
    recorder: &mut dyn Recorder,
    updates: u64,
    mut collect: impl FnMut(&P, usize) -> candle_core::Result<Rollout<P::Obs, P::Trace>>,
) -> Result<(), TrainError> {
    for update in 0..updates {
        let rollout = collect(policy, trainer.group_size())?;
        let report = trainer.update(policy, rollout)?;
        recorder.record(update, &report);
    }
    Ok(())
}
