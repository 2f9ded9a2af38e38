//! A planar two-legged walker.

use std::sync::Arc;

use super::{EPISODE_STEPS, model, randomize};
use crate::SimError;
use crate::model::{Id, Model};
use crate::reward::{Falloff, tolerance};
use crate::rng::Rng;
use crate::tasks::{Task, body, sensor};
use crate::view::View;

/// Height of the torso that counts as standing, m.
const STAND_HEIGHT: f64 = 1.2;
/// Speeds that earn the full reward, m/s.
const WALK_SPEED: f64 = 1.0;
const RUN_SPEED: f64 = 8.0;

/// Stand, walk or run.
///
/// Observation, 24: x and z components of each body's x axis as seen in the plane (`R₁₁, R₁₃`), height of the torso,
/// velocities. Reward: (3 standing + upright)/4, times (5 speed + 1)/6 where a speed is wanted.
/// Start: joints uniform within their limits, any pitch, at the reference height.
pub struct Walker {
    name: &'static str,
    model: Arc<Model>,
    torso: Id,
    velocity: Id,
    speed: f64,
}

impl Walker {
    /// `walker-stand`. Errors if the model does not carry the task.
    pub fn stand() -> Result<Self, SimError> {
        Self::new("walker-stand", 0.0)
    }

    /// `walker-walk`, 1 m/s. Errors if the model does not carry the task.
    pub fn walk() -> Result<Self, SimError> {
        Self::new("walker-walk", WALK_SPEED)
    }

    /// `walker-run`, 8 m/s. Errors if the model does not carry the task.
    pub fn run() -> Result<Self, SimError> {
        Self::new("walker-run", RUN_SPEED)
    }

    fn new(name: &'static str, speed: f64) -> Result<Self, SimError> {
        let model = model("walker")?;
        let (torso, velocity) = (body(&model, "torso")?, sensor(&model, "torso_subtreelinvel")?);
        Ok(Walker { name, model, torso, velocity, speed })
    }
}

impl Task for Walker {
    fn name(&self) -> &str {
        self.name
    }
    fn model(&self) -> &Arc<Model> {
        &self.model
    }
    fn substeps(&self) -> usize {
        10
    }
    fn episode_steps(&self) -> usize {
        EPISODE_STEPS
    }
    fn obs_dim(&self) -> usize {
        2 * (self.model.bodies.len() - 1) + 1 + self.model.nv()
    }
    fn start(&self, rng: &mut Rng, qpos: &mut [f64], _qvel: &mut [f64], _goal: &mut [f64]) {
        randomize::joints(&self.model, rng, qpos);
    }
    fn observe(&self, view: &View, obs: &mut [f64]) {
        let (orientations, rest) = obs.split_at_mut(2 * (view.xmat.len() - 1));
        for (to, m) in orientations.chunks_exact_mut(2).zip(&view.xmat[1..]) {
            to.copy_from_slice(&[m[0], m[2]]);
        }
        rest[0] = view.xpos[self.torso][2];
        rest[1..].copy_from_slice(&view.qvel);
    }
    fn reward(&self, view: &View) -> f64 {
        let height = view.xpos[self.torso][2];
        let standing = tolerance(height, [STAND_HEIGHT, f64::INFINITY], Falloff::gaussian(STAND_HEIGHT / 2.0));
        let upright = (1.0 + view.xmat[self.torso][8]) / 2.0;
        let stand = (3.0 * standing + upright) / 4.0;
        if self.speed == 0.0 {
            return stand;
        }
        let falloff = Falloff::Linear { margin: self.speed / 2.0, value: 0.5 };
        let moving = tolerance(view.sensor[self.velocity], [self.speed, f64::INFINITY], falloff);
        stand * (5.0 * moving + 1.0) / 6.0
    }
}
