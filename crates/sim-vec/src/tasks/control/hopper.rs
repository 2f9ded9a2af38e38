//! A planar one-legged hopper.

use std::sync::Arc;

use super::{EPISODE_STEPS, model, randomize};
use crate::SimError;
use crate::model::{Id, Model};
use crate::reward::{Falloff, tolerance};
use crate::rng::Rng;
use crate::tasks::{Task, body, pack, sensor};
use crate::view::View;

/// Height of the torso over the foot that counts as standing, m.
const STAND_HEIGHT: [f64; 2] = [0.6, 2.0];
/// Speed that earns the full reward, m/s.
const HOP_SPEED: f64 = 2.0;

/// Stand upright, or hop forward.
///
/// Observation, 15: positions but the horizontal one, velocities, `ln(1 + force)` of toe and heel.
/// Reward: standing (1 or 0) times little control (stand) or forward speed (hop).
/// Start: joints uniform within their limits, any pitch, at the reference height.
pub struct Hopper {
    model: Arc<Model>,
    torso: Id,
    foot: Id,
    velocity: Id,
    touch: [Id; 2],
    hop: bool,
}

impl Hopper {
    /// `hopper-stand`. Errors if the model does not carry the task.
    pub fn stand() -> Result<Self, SimError> {
        Self::new(false)
    }

    /// `hopper-hop`. Errors if the model does not carry the task.
    pub fn hop() -> Result<Self, SimError> {
        Self::new(true)
    }

    fn new(hop: bool) -> Result<Self, SimError> {
        let model = model("hopper")?;
        Ok(Hopper {
            torso: body(&model, "torso")?,
            foot: body(&model, "foot")?,
            velocity: sensor(&model, "torso_subtreelinvel")?,
            touch: [sensor(&model, "touch_toe")?, sensor(&model, "touch_heel")?],
            model,
            hop,
        })
    }
}

impl Task for Hopper {
    fn name(&self) -> &str {
        if self.hop { "hopper-hop" } else { "hopper-stand" }
    }
    fn model(&self) -> &Arc<Model> {
        &self.model
    }
    fn substeps(&self) -> usize {
        4
    }
    fn episode_steps(&self) -> usize {
        EPISODE_STEPS
    }
    fn obs_dim(&self) -> usize {
        15
    }
    fn start(&self, rng: &mut Rng, qpos: &mut [f64], _qvel: &mut [f64], _goal: &mut [f64]) {
        randomize::joints(&self.model, rng, qpos);
    }
    fn observe(&self, view: &View, obs: &mut [f64]) {
        let touch = self.touch.map(|t| view.sensor[t].ln_1p());
        pack(obs, &[&view.qpos[1..], &view.qvel, &touch]);
    }
    fn reward(&self, view: &View) -> f64 {
        let height = view.xipos[self.torso][2] - view.xipos[self.foot][2];
        let standing = tolerance(height, STAND_HEIGHT, Falloff::Cliff);
        if self.hop {
            let falloff = Falloff::Linear { margin: HOP_SPEED / 2.0, value: 0.5 };
            standing * tolerance(view.sensor[self.velocity], [HOP_SPEED, f64::INFINITY], falloff)
        } else {
            standing * super::little_control(view)
        }
    }
}
