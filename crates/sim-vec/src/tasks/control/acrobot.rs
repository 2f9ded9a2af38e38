//! Two links and a motor between them.

use std::f64::consts::PI;
use std::sync::Arc;

use super::{EPISODE_STEPS, distance, model};
use crate::SimError;
use crate::model::{Id, Model};
use crate::reward::{Falloff, tolerance};
use crate::rng::Rng;
use crate::tasks::{Task, body, pack, site};
use crate::view::View;

/// Distance from the target's surface at which the smooth reward has fallen to 0.1, m.
const MARGIN: f64 = 1.0;

/// Swing the tip up to the target above and keep it there.
///
/// Observation, 6: sines, then cosines of the links' angles from the vertical, their velocities. Reward: 1 with the
/// tip within the target, outside it falls off smoothly, or to 0 at once (sparse).
/// Start: both angles uniform, at rest.
pub struct Acrobot {
    model: Arc<Model>,
    links: [Id; 2],
    tip: Id,
    target: Id,
    sparse: bool,
}

impl Acrobot {
    /// `acrobot-swingup` and `acrobot-swingup-sparse`. Errors if the model does not carry the task.
    pub fn swingup(sparse: bool) -> Result<Self, SimError> {
        let model = model("acrobot")?;
        Ok(Acrobot {
            links: [body(&model, "upper_arm")?, body(&model, "lower_arm")?],
            tip: site(&model, "tip")?,
            target: site(&model, "target")?,
            model,
            sparse,
        })
    }
}

impl Task for Acrobot {
    fn name(&self) -> &str {
        if self.sparse { "acrobot-swingup-sparse" } else { "acrobot-swingup" }
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
    fn start(&self, rng: &mut Rng, qpos: &mut [f64], _qvel: &mut [f64], _goal: &mut [f64]) {
        for q in qpos {
            *q = rng.uniform(-PI, PI);
        }
    }
    fn observe(&self, view: &View, obs: &mut [f64]) {
        let entry = |k: usize| self.links.map(|link| view.xmat[link][k]);
        pack(obs, &[&entry(2), &entry(8), &view.qvel]);
    }
    fn reward(&self, view: &View) -> f64 {
        let [tip, target] = [self.tip, self.target].map(|s| &self.model.sites[s]);
        let away = distance(&view.point(tip.body, tip.pos), &view.point(target.body, target.pos));
        let falloff = if self.sparse { Falloff::Cliff } else { Falloff::gaussian(MARGIN) };
        tolerance(away, [0.0, target.size[0]], falloff)
    }
}
