//! A humanoid with 21 actuated joints.

use std::sync::Arc;

use super::{EPISODE_STEPS, model, randomize};
use crate::SimError;
use crate::model::{Id, Model};
use crate::reward::{Falloff, tolerance};
use crate::rng::Rng;
use crate::tasks::{Task, body, pack, sensor};
use crate::view::View;

/// Height of the head that counts as standing, m.
const STAND_HEIGHT: f64 = 1.4;
/// Speeds that earn the full reward, m/s.
const WALK_SPEED: f64 = 1.0;
const RUN_SPEED: f64 = 10.0;

/// Stand, walk or run.
///
/// Observation, 67: joint angles (21), height of the head, positions of left hand, left foot, right hand, right foot
/// in the torso's frame (12), the vertical in the torso's frame (3), velocity of the centre of mass (3),
/// velocities (27). Reward: standing · upright · little control, times standing still or (5 speed + 1)/6.
/// Start: joints uniform within their limits, any orientation, drawn again until nothing touches.
pub struct Humanoid {
    name: &'static str,
    model: Arc<Model>,
    torso: Id,
    head: Id,
    extremities: [Id; 4],
    velocity: Id,
    speed: f64,
}

impl Humanoid {
    /// `humanoid-stand`. Errors if the model does not carry the task.
    pub fn stand() -> Result<Self, SimError> {
        Self::new("humanoid-stand", 0.0)
    }

    /// `humanoid-walk`, 1 m/s in any direction. Errors if the model does not carry the task.
    pub fn walk() -> Result<Self, SimError> {
        Self::new("humanoid-walk", WALK_SPEED)
    }

    /// `humanoid-run`, 10 m/s in any direction. Errors if the model does not carry the task.
    pub fn run() -> Result<Self, SimError> {
        Self::new("humanoid-run", RUN_SPEED)
    }

    fn new(name: &'static str, speed: f64) -> Result<Self, SimError> {
        let model = model("humanoid")?;
        Ok(Humanoid {
            name,
            torso: body(&model, "torso")?,
            head: body(&model, "head")?,
            extremities: [
                body(&model, "left_hand")?,
                body(&model, "left_foot")?,
                body(&model, "right_hand")?,
                body(&model, "right_foot")?,
            ],
            velocity: sensor(&model, "torso_subtreelinvel")?,
            model,
            speed,
        })
    }
}

impl Task for Humanoid {
    fn name(&self) -> &str {
        self.name
    }
    fn model(&self) -> &Arc<Model> {
        &self.model
    }
    fn substeps(&self) -> usize {
        5
    }
    fn episode_steps(&self) -> usize {
        EPISODE_STEPS
    }
    fn obs_dim(&self) -> usize {
        67
    }
    fn start(&self, rng: &mut Rng, qpos: &mut [f64], _qvel: &mut [f64], _goal: &mut [f64]) {
        randomize::joints(&self.model, rng, qpos);
    }
    fn accepts(&self, contacts: usize) -> bool {
        contacts == 0
    }
    fn observe(&self, view: &View, obs: &mut [f64]) {
        let (m, p) = (&view.xmat[self.torso], &view.xpos[self.torso]);
        let mut limbs = [0.0; 12];
        for (to, &limb) in limbs.chunks_exact_mut(3).zip(&self.extremities) {
            let d: [f64; 3] = std::array::from_fn(|k| view.xpos[limb][k] - p[k]);
            for (c, x) in to.iter_mut().enumerate() {
                *x = d[0] * m[c] + d[1] * m[3 + c] + d[2] * m[6 + c];
            }
        }
        let head = [view.xpos[self.head][2]];
        let velocity = &view.sensor[self.velocity..self.velocity + 3];
        pack(obs, &[&view.qpos[7..], &head, &limbs, &m[6..9], velocity, &view.qvel]);
    }
    fn reward(&self, view: &View) -> f64 {
        let head = view.xpos[self.head][2];
        let standing = tolerance(head, [STAND_HEIGHT, f64::INFINITY], Falloff::gaussian(STAND_HEIGHT / 4.0));
        let falloff = Falloff::Linear { margin: 1.9, value: 0.0 };
        let upright = tolerance(view.xmat[self.torso][8], [0.9, f64::INFINITY], falloff);
        let stand = standing * upright * super::little_control(view);
        let (vx, vy) = (view.sensor[self.velocity], view.sensor[self.velocity + 1]);
        if self.speed == 0.0 {
            let still = |v| tolerance(v, [0.0, 0.0], Falloff::gaussian(2.0));
            return stand * (still(vx) + still(vy)) / 2.0;
        }
        let falloff = Falloff::Linear { margin: self.speed, value: 0.0 };
        let moving = tolerance((vx * vx + vy * vy).sqrt(), [self.speed, f64::INFINITY], falloff);
        stand * (5.0 * moving + 1.0) / 6.0
    }
}
