//! A pole hinged to a cart on a rail.

use std::f64::consts::PI;
use std::sync::Arc;

use super::{EPISODE_STEPS, model};
use crate::SimError;
use crate::model::{Id, Model};
use crate::reward::{Falloff, tolerance};
use crate::rng::Rng;
use crate::tasks::{Task, body, pack};
use crate::view::View;

/// Keep the pole upright, from near the vertical (balance) or from hanging down (swing-up).
///
/// Observation, 5: cart position, cosine and sine of the pole's angle, velocities of cart and pole.
/// Smooth reward: upright · little control · slow pole · centred cart. Sparse reward: 1 while the cart is within
/// 0.25 m of the middle and the cosine at least 0.995.
pub struct Cartpole {
    name: &'static str,
    model: Arc<Model>,
    pole: Id,
    swingup: bool,
    sparse: bool,
}

impl Cartpole {
    /// `cartpole-balance` and `cartpole-balance-sparse`. Errors if the model does not carry the task.
    pub fn balance(sparse: bool) -> Result<Self, SimError> {
        Self::new(if sparse { "cartpole-balance-sparse" } else { "cartpole-balance" }, false, sparse)
    }

    /// `cartpole-swingup` and `cartpole-swingup-sparse`. Errors if the model does not carry the task.
    pub fn swingup(sparse: bool) -> Result<Self, SimError> {
        Self::new(if sparse { "cartpole-swingup-sparse" } else { "cartpole-swingup" }, true, sparse)
    }

    fn new(name: &'static str, swingup: bool, sparse: bool) -> Result<Self, SimError> {
        let model = model("cartpole")?;
        Ok(Cartpole { name, pole: body(&model, "pole_1")?, model, swingup, sparse })
    }
}

impl Task for Cartpole {
    fn name(&self) -> &str {
        self.name
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
        5
    }
    fn start(&self, rng: &mut Rng, qpos: &mut [f64], qvel: &mut [f64], _goal: &mut [f64]) {
        if self.swingup {
            qpos[0] = 0.01 * rng.normal();
            qpos[1] = PI + 0.01 * rng.normal();
        } else {
            qpos[0] = rng.uniform(-0.1, 0.1);
            qpos[1] = rng.uniform(-0.034, 0.034);
        }
        for v in qvel {
            *v = 0.01 * rng.normal();
        }
    }
    fn observe(&self, view: &View, obs: &mut [f64]) {
        let m = &view.xmat[self.pole];
        pack(obs, &[&[view.qpos[0], m[8], m[2]], &view.qvel]);
    }
    fn reward(&self, view: &View) -> f64 {
        let (cart, cosine) = (view.qpos[0], view.xmat[self.pole][8]);
        if self.sparse {
            return tolerance(cart, [-0.25, 0.25], Falloff::Cliff) * tolerance(cosine, [0.995, 1.0], Falloff::Cliff);
        }
        let upright = (cosine + 1.0) / 2.0;
        let centred = (1.0 + tolerance(cart, [0.0, 0.0], Falloff::gaussian(2.0))) / 2.0;
        let quiet = tolerance(view.ctrl[0], [0.0, 0.0], Falloff::Quadratic { margin: 1.0, value: 0.0 });
        let slow = (1.0 + tolerance(view.qvel[1], [0.0, 0.0], Falloff::gaussian(5.0))) / 2.0;
        upright * ((4.0 + quiet) / 5.0) * slow * centred
    }
}
