//! A planar arm of two links.

use std::sync::Arc;

use super::{EPISODE_STEPS, distance, model, radius, randomize};
use crate::SimError;
use crate::model::{Id, Model};
use crate::reward::{Falloff, tolerance};
use crate::rng::Rng;
use crate::tasks::{Task, geom, pack};
use crate::view::View;

/// Radii of the target, m.
const LARGE: f64 = 0.05;
const SMALL: f64 = 0.015;
/// Distances of the target from the shoulder, m.
const RING: [f64; 2] = [0.05, 0.2];

/// Put the fingertip on the target.
///
/// Goal, 2: the target's position. Observation, 6: joint angles, the target seen from the finger, joint velocities.
/// Reward: 1 while fingertip and target overlap in the plane, else 0.
/// Start: joints uniform (within their limits if they have any); the target uniform in angle and in distance.
pub struct Reacher {
    model: Arc<Model>,
    finger: Id,
    /// Distance of the centres within which fingertip and target overlap.
    reach: f64,
    hard: bool,
}

impl Reacher {
    /// `reacher-easy`, a target of 5 cm. Errors if the model does not carry the task.
    pub fn easy() -> Result<Self, SimError> {
        Self::new(false, LARGE)
    }

    /// `reacher-hard`, a target of 1.5 cm. Errors if the model does not carry the task.
    pub fn hard() -> Result<Self, SimError> {
        Self::new(true, SMALL)
    }

    fn new(hard: bool, target: f64) -> Result<Self, SimError> {
        let model = model("reacher")?;
        let finger = geom(&model, "finger")?;
        Ok(Reacher { finger, reach: target + radius(&model, finger), model, hard })
    }

    /// From the finger to the target.
    fn way(&self, view: &View) -> [f64; 2] {
        let finger = &self.model.geoms[self.finger];
        let at = view.point(finger.body, finger.pos);
        [view.goal[0] - at[0], view.goal[1] - at[1]]
    }
}

impl Task for Reacher {
    fn name(&self) -> &str {
        if self.hard { "reacher-hard" } else { "reacher-easy" }
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
        6
    }
    fn goal_dim(&self) -> usize {
        2
    }
    fn start(&self, rng: &mut Rng, qpos: &mut [f64], _qvel: &mut [f64], goal: &mut [f64]) {
        randomize::joints(&self.model, rng, qpos);
        let (sin, cos) = rng.uniform(0.0, std::f64::consts::TAU).sin_cos();
        let away = rng.uniform(RING[0], RING[1]);
        goal.copy_from_slice(&[away * sin, away * cos]);
    }
    fn observe(&self, view: &View, obs: &mut [f64]) {
        pack(obs, &[&view.qpos, &self.way(view), &view.qvel]);
    }
    fn reward(&self, view: &View) -> f64 {
        tolerance(distance(&self.way(view), &[0.0; 2]), [0.0, self.reach], Falloff::Cliff)
    }
}
