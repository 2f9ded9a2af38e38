//! Starts drawn before they are needed.
//!
//! A block of starts costs the same for one lane as for all, and lanes rarely end together. A start depends on nothing
//! but seed and number of the episode, so the rest of a block draws the next starts of the lanes that are next to end,
//! and keeps them.

use super::start::Fresh;
use super::{Block, Record};
use crate::engine::State;
use crate::lane::Lane;
use crate::lane_state::copy_lane;

/// Starts of a block's next episodes.
pub(super) struct Ahead<L> {
    state: State<L>,
    obs: Vec<f32>,
    goals: Vec<f64>,
    /// Lanes whose next start is there, as bits.
    pub(super) ready: u32,
}

impl<L: Lane> Ahead<L> {
    pub(super) fn new(state: State<L>, obs_dim: usize, goal_dim: usize) -> Self {
        Ahead { state, obs: vec![0.0; L::W * obs_dim], goals: vec![0.0; L::W * goal_dim], ready: 0 }
    }

    /// The lane's next start is there.
    pub(super) fn has(&self, lane: usize) -> bool {
        self.ready >> lane & 1 == 1
    }

    /// Forgets a lane's next start.
    pub(super) fn forget(&mut self, lane: usize) {
        self.ready &= !(1 << lane);
    }

    /// Keeps a drawn start for later.
    pub(super) fn keep(&mut self, lane: usize, group: &Fresh<L>, slot: usize, o: usize, g: usize) {
        copy_lane(&group.state, slot, &mut self.state, lane);
        self.obs[lane * o..(lane + 1) * o].copy_from_slice(&group.obs[slot * o..(slot + 1) * o]);
        self.goals[lane * g..(lane + 1) * g].copy_from_slice(&group.goals[slot * g..(slot + 1) * g]);
        self.ready |= 1 << lane;
    }

    /// Moves a kept start into its lane and writes its observation.
    pub(super) fn begin(&mut self, lane: usize, block: &mut Block<L>, obs: &mut [f32]) {
        let (o, g) = (obs.len(), self.goals.len() / L::W);
        copy_lane(&self.state, lane, &mut block.state, lane);
        block.goals[lane * g..(lane + 1) * g].copy_from_slice(&self.goals[lane * g..(lane + 1) * g]);
        obs.copy_from_slice(&self.obs[lane * o..(lane + 1) * o]);
        self.forget(lane);
    }
}

/// Which start is drawn for a lane: that of its record, or of the episode after it.
pub(super) fn next(record: Record) -> Record {
    Record { episode: record.episode + 1, clock: 0, ..record }
}
