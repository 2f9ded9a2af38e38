//! Reading and setting lanes from outside, between steps.

use std::sync::Arc;

use rayon::prelude::*;
use rollouts::VecEnv;

use super::{Batch, Block, Shared, Worker, worker};
use crate::SimError;
use crate::engine::State;
use crate::lane::Lane;
use crate::lane_state::{Field, LaneState};
use crate::model::Model;

/// A batch of any lane width; [`crate::SimVec`] says what the methods do.
pub(crate) trait Lanes: VecEnv + Send {
    fn model(&self) -> &Arc<Model>;
    fn read(&self, field: Field, out: &mut [f64]) -> Result<(), SimError>;
    fn write(&mut self, field: Field, values: &[f64]) -> Result<(), SimError>;
    fn state_of(&self, lane: usize) -> Result<LaneState, SimError>;
    fn set_state_of(&mut self, lane: usize, state: &LaneState) -> Result<(), SimError>;
    fn observe(&mut self, obs: &mut [f32]) -> Result<(), SimError>;
    fn reset_lanes(&mut self, lanes: &[(usize, u64)], obs: &mut [f32]) -> Result<(), SimError>;
}

impl<L: Lane> Lanes for Batch<L> {
    fn model(&self) -> &Arc<Model> {
        self.shared.engine.model()
    }

    fn read(&self, field: Field, out: &mut [f64]) -> Result<(), SimError> {
        let dim = self.dim(field);
        self.fits(name(field), self.lanes * dim, out.len())?;
        if field == Field::Goal {
            self.blocks.iter().zip(out.chunks_mut(L::W * dim.max(1))).for_each(|(b, to)| to.copy_from_slice(&b.goals));
            return Ok(());
        }
        for lane in 0..if dim == 0 { 0 } else { self.lanes } {
            let from = part(&self.blocks[lane / L::W].state, field);
            let row = &mut out[lane * dim..(lane + 1) * dim];
            row.iter_mut().zip(from).for_each(|(to, x)| *to = x.get(lane % L::W));
        }
        Ok(())
    }

    fn write(&mut self, field: Field, values: &[f64]) -> Result<(), SimError> {
        let dim = self.dim(field);
        self.fits(name(field), self.lanes * dim, values.len())?;
        if field == Field::Goal {
            let rows = values.chunks(L::W * dim.max(1));
            self.blocks.iter_mut().zip(rows).for_each(|(b, from)| b.goals.copy_from_slice(from));
            return Ok(());
        }
        for lane in 0..if dim == 0 { 0 } else { self.lanes } {
            let to = part_mut(&mut self.blocks[lane / L::W].state, field);
            let row = &values[lane * dim..(lane + 1) * dim];
            to.iter_mut().zip(row).for_each(|(to, &x)| to.set(lane % L::W, x));
        }
        Ok(())
    }

    fn state_of(&self, lane: usize) -> Result<LaneState, SimError> {
        self.exists(lane)?;
        Ok(LaneState::gather(&self.blocks[lane / L::W].state, lane % L::W))
    }

    fn set_state_of(&mut self, lane: usize, state: &LaneState) -> Result<(), SimError> {
        self.exists(lane)?;
        let block = &mut self.blocks[lane / L::W];
        if let Some((what, expected, got)) = state.misfit(&block.state) {
            return self.fits(what, expected, got);
        }
        state.scatter(&mut block.state, lane % L::W);
        Ok(())
    }

    fn observe(&mut self, obs: &mut [f32]) -> Result<(), SimError> {
        self.fits("obs", self.held.len(), obs.len())?;
        self.staff();
        let (shared, workers, rows) = (&self.shared, &self.workers, L::W * self.shared.obs_dim);
        (self.blocks.par_iter_mut(), obs.par_chunks_mut(rows), self.held.par_chunks_mut(rows))
            .into_par_iter()
            .with_min_len(shared.least)
            .for_each(|(block, obs, held)| shared.look(block, &mut worker(workers), obs, held));
        Ok(())
    }

    fn reset_lanes(&mut self, lanes: &[(usize, u64)], obs: &mut [f32]) -> Result<(), SimError> {
        self.fits("obs", self.held.len(), obs.len())?;
        lanes.iter().try_for_each(|&(lane, _)| self.exists(lane))?;
        self.staff();
        self.blocks.iter_mut().for_each(|b| b.ended = 0);
        self.queue.clear();
        for &(n, seed) in lanes {
            let (block, lane) = (&mut self.blocks[n / L::W], n % L::W);
            block.records[lane] = self.shared.begin(seed);
            self.ahead[n / L::W].forget(lane);
            if block.ended >> lane & 1 == 0 {
                block.ended |= 1 << lane;
                self.queue.push(n as u32);
            }
        }
        self.queue.sort_unstable();
        self.start(obs);
        Ok(())
    }
}

impl<L: Lane> Batch<L> {
    /// Numbers of a field in one lane.
    fn dim(&self, field: Field) -> usize {
        if field == Field::Goal { self.shared.goal_dim } else { part(&self.blocks[0].state, field).len() }
    }

    fn exists(&self, lane: usize) -> Result<(), SimError> {
        if lane < self.lanes { Ok(()) } else { Err(SimError::Lane { lane, lanes: self.lanes }) }
    }

    fn fits(&self, what: &'static str, expected: usize, got: usize) -> Result<(), SimError> {
        if expected == got {
            return Ok(());
        }
        Err(SimError::Length { task: self.shared.task.name().into(), what, expected, got })
    }
}

impl<L: Lane> Shared<L> {
    /// Observes a block at its present state. `obs`, `held`: `[lanes in use, O]`.
    fn look(&self, block: &mut Block<L>, worker: &mut Worker<L>, obs: &mut [f32], held: &mut [f32]) {
        self.engine.forward(&mut block.state, &mut worker.scratch);
        let (o, g) = (self.obs_dim, self.goal_dim);
        for (lane, (obs, held)) in obs.chunks_exact_mut(o).zip(held.chunks_exact_mut(o)).enumerate() {
            self.engine.view(&block.state, &worker.scratch, lane, &mut worker.view);
            worker.view.goal.copy_from_slice(&block.goals[lane * g..(lane + 1) * g]);
            match self.judge(worker, obs) {
                Some(_) => held.copy_from_slice(obs),
                None => obs.copy_from_slice(held),
            }
        }
    }
}

fn name(field: Field) -> &'static str {
    match field {
        Field::Qpos => "qpos of all lanes",
        Field::Qvel => "qvel of all lanes",
        Field::Act => "act of all lanes",
        Field::Ctrl => "ctrl of all lanes",
        Field::Mocap => "mocap of all lanes",
        Field::Warm => "warm of all lanes",
        Field::Goal => "goals of all lanes",
    }
}

/// Goals are not in the block's state.
fn part<L>(s: &State<L>, field: Field) -> &[L] {
    match field {
        Field::Qpos => &s.qpos,
        Field::Qvel => &s.qvel,
        Field::Act => &s.act,
        Field::Ctrl => &s.ctrl,
        Field::Mocap => &s.mocap,
        Field::Warm => &s.warm,
        Field::Goal => &[],
    }
}

fn part_mut<L>(s: &mut State<L>, field: Field) -> &mut [L] {
    match field {
        Field::Qpos => &mut s.qpos,
        Field::Qvel => &mut s.qvel,
        Field::Act => &mut s.act,
        Field::Ctrl => &mut s.ctrl,
        Field::Mocap => &mut s.mocap,
        Field::Warm => &mut s.warm,
        Field::Goal => &mut [],
    }
}
