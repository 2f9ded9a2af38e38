//! Tasks: where episodes start, what is observed and what is rewarded.

use std::sync::Arc;

use crate::SimError;
use crate::model::{Id, Joint, Model};
use crate::rng::Rng;
use crate::view::View;

pub mod control;
pub mod custom;

/// A task on a model. Everything here is about one environment, in f64; [`crate::batch`] runs thousands of them.
///
/// An own task on an own MJCF file needs no more than this trait and [`crate::SimVec::builder_of`];
/// [`custom::CustomTask`] makes one of closures. Methods must be pure: equal inputs give equal outputs, on any thread.
/// They may not hand work to rayon, which might come back with another block of lanes while this one is open.
pub trait Task: Send + Sync {
    /// Name, for messages and snapshots.
    fn name(&self) -> &str;

    /// The mechanism.
    fn model(&self) -> &Arc<Model>;

    /// Physics steps in a control step.
    fn substeps(&self) -> usize;

    /// Control steps after which an episode is truncated.
    fn episode_steps(&self) -> usize;

    /// Length of an observation.
    fn obs_dim(&self) -> usize;

    /// Length of the goal an episode is about, such as a target's position; 0 if every episode is about the same.
    fn goal_dim(&self) -> usize {
        0
    }

    /// Draws the state an episode starts from and its goal, `[goal_dim]`, which stays as it is until the episode ends.
    /// `qpos` holds the model's reference configuration, `qvel` and `goal` zeros.
    fn start(&self, rng: &mut Rng, qpos: &mut [f64], qvel: &mut [f64], goal: &mut [f64]);

    /// Physics steps taken without control after [`Task::start`], before the first observation.
    fn settle_steps(&self) -> usize {
        0
    }

    /// Whether a drawn state may start an episode, given the contacts in it; otherwise another one is drawn.
    fn accepts(&self, contacts: usize) -> bool {
        let _ = contacts;
        true
    }

    /// Writes the observation. `obs`: `[obs_dim]`.
    fn observe(&self, view: &View, obs: &mut [f64]);

    /// Reward of being in this state with the control that led to it.
    fn reward(&self, view: &View) -> f64;

    /// Whether the task ends the episode in this state.
    fn terminated(&self, view: &View) -> bool {
        let _ = view;
        false
    }
}

/// Index of a named body, for task constructors.
pub fn body(model: &Model, name: &str) -> Result<Id, SimError> {
    model.body(name).ok_or_else(|| missing(model, "body", name))
}

/// Where the values of a named sensor begin in [`View::sensor`], for task constructors.
pub fn sensor(model: &Model, name: &str) -> Result<Id, SimError> {
    model.sensors.iter().find(|s| s.name == name).map(|s| s.start).ok_or_else(|| missing(model, "sensor", name))
}

/// Index of a named geom, for task constructors.
pub fn geom(model: &Model, name: &str) -> Result<Id, SimError> {
    model.geom(name).ok_or_else(|| missing(model, "geom", name))
}

/// Index of a named site, for task constructors.
pub fn site(model: &Model, name: &str) -> Result<Id, SimError> {
    model.site(name).ok_or_else(|| missing(model, "site", name))
}

/// A named joint, for task constructors.
pub fn joint<'m>(model: &'m Model, name: &str) -> Result<&'m Joint, SimError> {
    model.joint(name).ok_or_else(|| missing(model, "joint", name))
}

fn missing(model: &Model, element: &'static str, name: &str) -> SimError {
    SimError::MissingElement { model: model.name.clone(), element, name: name.into() }
}

/// Copies `parts` one after another into `obs`, which they must fill exactly.
pub(crate) fn pack(obs: &mut [f64], parts: &[&[f64]]) {
    let mut at = 0;
    for part in parts {
        obs[at..at + part.len()].copy_from_slice(part);
        at += part.len();
    }
    assert_eq!(at, obs.len(), "the parts of an observation fill it");
}
