//! A pole on a motor too weak to lift it in one go.

use std::f64::consts::PI;
use std::sync::Arc;

use super::{EPISODE_STEPS, model};
use crate::SimError;
use crate::model::{Id, Model};
use crate::reward::{Falloff, tolerance};
use crate::rng::Rng;
use crate::tasks::{Task, body, pack};
use crate::view::View;

/// Largest angle from the vertical that counts as upright, degrees.
const UPRIGHT_DEG: f64 = 8.0;

/// Swing the pole up and keep it there.
///
/// Observation, 3: cosine and sine of the pole's angle, angular velocity. Reward: 1 within 8° of the vertical,
/// else 0. Start: uniform angle, at rest.
pub struct Pendulum {
    model: Arc<Model>,
    pole: Id,
}

impl Pendulum {
    /// `pendulum-swingup`. Errors if the model does not carry the task.
    pub fn swingup() -> Result<Self, SimError> {
        let model = model("pendulum")?;
        Ok(Pendulum { pole: body(&model, "pole")?, model })
    }
}

impl Task for Pendulum {
    fn name(&self) -> &str {
        "pendulum-swingup"
    }
    fn model(&self) -> &Arc<Model> {
        &self.model
    }
    fn substeps(&self) -> usize {
        1
    }
    fn episode_steps(&self) -> usize {
        EPISODE_STEPS
    }
    fn obs_dim(&self) -> usize {
        3
    }
    fn start(&self, rng: &mut Rng, qpos: &mut [f64], _qvel: &mut [f64], _goal: &mut [f64]) {
        qpos[0] = rng.uniform(-PI, PI);
    }
    fn observe(&self, view: &View, obs: &mut [f64]) {
        let m = &view.xmat[self.pole];
        pack(obs, &[&[m[8], m[2]], &view.qvel]);
    }
    fn reward(&self, view: &View) -> f64 {
        tolerance(view.xmat[self.pole][8], [UPRIGHT_DEG.to_radians().cos(), 1.0], Falloff::Cliff)
    }
}
