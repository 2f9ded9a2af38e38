//! What a task says about one given state.

use std::sync::Arc;

use crate::SimError;
use crate::engine::{Engine, Scratch, State};
use crate::lane::{F64x1, Lane};
use crate::registry;
use crate::tasks::Task;
use crate::view::View;

/// Observation and reward of a task at states given from outside, in f64.
pub struct Observer {
    task: Arc<dyn Task>,
    engine: Engine<F64x1>,
    state: State<F64x1>,
    scratch: Scratch<F64x1>,
    view: View,
}

/// What a task reports about a state.
#[derive(Clone, Debug, PartialEq)]
pub struct Observation {
    /// `[obs_dim]`
    pub observation: Vec<f64>,
    /// Reward of being there with that control.
    pub reward: f64,
}

impl Observer {
    /// Loads a task by name. Errors as [`registry::build`].
    pub fn new(task: &str) -> Result<Self, SimError> {
        Self::of(registry::build(task)?)
    }

    /// Takes a task of your own.
    pub fn of(task: Arc<dyn Task>) -> Result<Self, SimError> {
        let engine = Engine::new(task.model().clone())?;
        let (state, scratch, view) = (engine.state(), engine.scratch(), View::of(&*task));
        Ok(Observer { task, engine, state, scratch, view })
    }

    /// Numbers that [`Observer::observe`] needs as the goal.
    pub fn goal_dim(&self) -> usize {
        self.view.goal.len()
    }

    /// Sets the state (`qpos`: `[nq]`, `qvel`: `[nv]`, `ctrl`: `[nu]`) and the goal (`[goal_dim]`), evaluates the
    /// dynamics from a cold start and asks the task. No step is taken. Errors: [`SimError::Length`].
    pub fn observe(&mut self, qpos: &[f64], qvel: &[f64], ctrl: &[f64], goal: &[f64]) -> Result<Observation, SimError> {
        let s = &mut self.state;
        for (what, to, from) in [("qpos", &mut s.qpos, qpos), ("qvel", &mut s.qvel, qvel), ("ctrl", &mut s.ctrl, ctrl)]
        {
            same_length(&*self.task, what, to.len(), from.len())?;
            to.iter_mut().zip(from).for_each(|(to, &x)| to.set(0, x));
        }
        same_length(&*self.task, "the goal", self.view.goal.len(), goal.len())?;
        s.warm.fill(F64x1::splat(0.0));
        self.engine.forward(&mut self.state, &mut self.scratch);
        self.engine.view(&self.state, &self.scratch, 0, &mut self.view);
        self.view.goal.copy_from_slice(goal);
        let mut observation = vec![0.0; self.task.obs_dim()];
        self.task.observe(&self.view, &mut observation);
        Ok(Observation { observation, reward: self.task.reward(&self.view) })
    }
}

fn same_length(task: &dyn Task, what: &'static str, expected: usize, got: usize) -> Result<(), SimError> {
    if expected == got { Ok(()) } else { Err(SimError::Length { task: task.name().into(), what, expected, got }) }
}
