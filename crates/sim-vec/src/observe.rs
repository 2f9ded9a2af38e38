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
        let (state, scratch, view) = (engine.state(), engine.scratch(), View::new(task.model()));
        Ok(Observer { task, engine, state, scratch, view })
    }

    /// Sets the state (`qpos`: `[nq]`, `qvel`: `[nv]`, `ctrl`: `[nu]`), evaluates the dynamics from a cold start and
    /// asks the task. No step is taken. Errors: [`SimError::Length`].
    pub fn observe(&mut self, qpos: &[f64], qvel: &[f64], ctrl: &[f64]) -> Result<Observation, SimError> {
        let s = &mut self.state;
        for (what, to, from) in [("qpos", &mut s.qpos, qpos), ("qvel", &mut s.qvel, qvel), ("ctrl", &mut s.ctrl, ctrl)]
        {
            if to.len() != from.len() {
                let (task, expected, got) = (self.task.name().to_string(), to.len(), from.len());
                return Err(SimError::Length { task, what, expected, got });
            }
            to.iter_mut().zip(from).for_each(|(to, &x)| to.set(0, x));
        }
        s.warm.fill(F64x1::splat(0.0));
        self.engine.forward(&mut self.state, &mut self.scratch);
        self.engine.view(&self.state, &self.scratch, 0, &mut self.view);
        let mut observation = vec![0.0; self.task.obs_dim()];
        self.task.observe(&self.view, &mut observation);
        Ok(Observation { observation, reward: self.task.reward(&self.view) })
    }
}
