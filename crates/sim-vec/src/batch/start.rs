//! Starts of episodes, drawn for a block of lanes at a time.

use super::{Record, Shared, Worker};
use crate::engine::State;
use crate::lane::Lane;
use crate::lane_state::{MAX_VALUE, copy_lane};
use crate::rng::Rng;

/// Draws until a start is accepted, at most. A task whose starts are refused this often gets the last one.
const MAX_DRAWS: usize = 1000;

/// A block of lanes on their way into new episodes.
pub(super) struct Fresh<L> {
    /// Accepted starts, by slot.
    pub(super) state: State<L>,
    /// `[W, O]` their first observations.
    pub(super) obs: Vec<f32>,
    /// `[W, G]` what their episodes are about.
    pub(super) goals: Vec<f64>,
    /// Whose starts they are, by slot; at most `W`.
    records: Vec<Record>,
}

impl<L: Lane> Fresh<L> {
    pub(super) fn new(state: State<L>, obs_dim: usize, goal_dim: usize) -> Self {
        Fresh {
            state,
            obs: vec![0.0; L::W * obs_dim],
            goals: vec![0.0; L::W * goal_dim],
            records: Vec::with_capacity(L::W),
        }
    }

    /// Says for whom the next [`Fresh::draw`] draws.
    pub(super) fn take(&mut self, records: impl Iterator<Item = Record>) {
        self.records.clear();
        self.records.extend(records);
    }

    /// Draws a start for every slot. A slot draws on from its own random numbers until the task accepts.
    pub(super) fn draw(&mut self, shared: &Shared<L>, worker: &mut Worker<L>) {
        let (task, engine, o, g) = (&shared.task, &shared.engine, shared.obs_dim, shared.goal_dim);
        worker.rngs.clear();
        worker.rngs.extend(self.records.iter().map(|r| Rng::episode(r.seed, r.episode)));
        let mut pending: u32 = (1u32 << self.records.len()) - 1;
        for attempt in 1..=MAX_DRAWS {
            self.propose(shared, worker, pending);
            if task.settle_steps() > 0 {
                engine.step(&mut worker.trial, &mut worker.scratch, task.settle_steps());
            }
            engine.forward(&mut worker.trial, &mut worker.scratch);
            let tried = pending;
            for slot in (0..self.records.len()).filter(|s| tried >> s & 1 == 1) {
                let obs = &mut self.obs[slot * o..(slot + 1) * o];
                engine.view(&worker.trial, &worker.scratch, slot, &mut worker.view);
                worker.view.goal.copy_from_slice(&self.goals[slot * g..(slot + 1) * g]);
                let finite = shared.judge(worker, obs).is_some();
                if finite && (attempt == MAX_DRAWS || task.accepts(engine.contacts(&worker.scratch, slot))) {
                    copy_lane(&worker.trial, slot, &mut self.state, slot);
                    pending &= !(1 << slot);
                }
            }
            if pending == 0 {
                return;
            }
        }
        // Never seen: no draw gave finite numbers. The lane rests at the reference configuration and will be
        // counted as non-finite if its dynamics are.
        let rest = engine.state();
        for slot in (0..self.records.len()).filter(|s| pending >> s & 1 == 1) {
            copy_lane(&rest, slot, &mut self.state, slot);
            self.obs[slot * o..(slot + 1) * o].fill(0.0);
        }
    }

    /// Draws into the worker's trial block: pending slots their own start, all others a copy of one of those, so that
    /// they take the same path through contacts and solver.
    fn propose(&mut self, shared: &Shared<L>, worker: &mut Worker<L>, pending: u32) {
        let Worker { trial, qpos, qvel, rngs, .. } = worker;
        let vary = shared.vary;
        let (model, g) = (shared.task.model(), shared.goal_dim);
        trial.act.fill(L::splat(0.0));
        trial.ctrl.fill(L::splat(0.0));
        trial.warm.fill(L::splat(0.0));
        let mut filled = false;
        for slot in (0..self.records.len()).filter(|s| pending >> s & 1 == 1) {
            qpos.copy_from_slice(&model.qpos0);
            qvel.fill(0.0);
            let goal = &mut self.goals[slot * g..(slot + 1) * g];
            goal.fill(0.0);
            shared.task.start(&mut rngs[slot], qpos, qvel, goal);
            for (to, &x) in trial.qpos.iter_mut().zip(qpos.iter()).chain(trial.qvel.iter_mut().zip(qvel.iter())) {
                // a start beyond all bounds is refused below rather than simulated
                let x = if x.abs() < MAX_VALUE { x } else { f64::NAN };
                if filled { to.set(slot, x) } else { *to = L::splat(x) }
            }
            if let Some(ranges) = vary {
                let to = &mut trial.vary;
                ranges.draw(
                    model,
                    self.records[slot],
                    |i, x| {
                        if filled { to[i].set(slot, x) } else { to[i] = L::splat(x) }
                    },
                );
            }
            filled = true;
        }
    }
}
