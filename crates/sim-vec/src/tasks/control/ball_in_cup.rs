//! A ball on a string and a cup to catch it.

use std::sync::Arc;

use super::{EPISODE_STEPS, model, radius};
use crate::SimError;
use crate::model::{Id, Model};
use crate::rng::Rng;
use crate::tasks::{Task, body, geom, joint, pack, site};
use crate::view::View;

/// Where the ball starts: horizontal and vertical joint, m.
const START_X: [f64; 2] = [-0.2, 0.2];
const START_Z: [f64; 2] = [0.2, 0.5];

/// Swing the ball up and catch it.
///
/// Observation, 8: positions of cup (2) and ball (2), their velocities. Reward: 1 while all of the ball is in the
/// cup, else 0. Start: the cup at rest, the ball uniform in a box around it, drawn again until nothing touches.
pub struct BallInCup {
    model: Arc<Model>,
    ball: Id,
    target: Id,
    /// Half width and half height within which the ball's centre is in the cup.
    within: [f64; 2],
    joints: [Id; 2],
}

impl BallInCup {
    /// `ball-in-cup-catch`. Errors if the model does not carry the task.
    pub fn catch() -> Result<Self, SimError> {
        let model = model("ball_in_cup")?;
        let target = site(&model, "target")?;
        let radius = radius(&model, geom(&model, "ball")?);
        let [half_width, _, half_height] = model.sites[target].size;
        Ok(BallInCup {
            ball: body(&model, "ball")?,
            target,
            within: [half_width - radius, half_height - radius],
            joints: [joint(&model, "ball_x")?.qpos, joint(&model, "ball_z")?.qpos],
            model,
        })
    }
}

impl Task for BallInCup {
    fn name(&self) -> &str {
        "ball-in-cup-catch"
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
        8
    }
    fn start(&self, rng: &mut Rng, qpos: &mut [f64], _qvel: &mut [f64], _goal: &mut [f64]) {
        for (&joint, [low, high]) in self.joints.iter().zip([START_X, START_Z]) {
            qpos[joint] = rng.uniform(low, high);
        }
    }
    fn accepts(&self, contacts: usize) -> bool {
        contacts == 0
    }
    fn observe(&self, view: &View, obs: &mut [f64]) {
        pack(obs, &[&view.qpos, &view.qvel]);
    }
    fn reward(&self, view: &View) -> f64 {
        let target = &self.model.sites[self.target];
        let (target, ball) = (view.point(target.body, target.pos), view.xpos[self.ball]);
        let inside = (target[0] - ball[0]).abs() < self.within[0] && (target[2] - ball[2]).abs() < self.within[1];
        f64::from(u8::from(inside))
    }
}
