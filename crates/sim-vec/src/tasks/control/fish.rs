//! A fish in a dense medium.

use std::sync::Arc;

use super::{EPISODE_STEPS, distance, model, radius};
use crate::SimError;
use crate::model::{Id, JointKind, Model};
use crate::reward::{Falloff, tolerance};
use crate::rng::Rng;
use crate::tasks::{Task, body, geom, pack};
use crate::view::View;

/// Largest angle of a joint at the start, rad.
const START_ANGLE: f64 = 0.2;
/// Box of targets: half width in x and y, and range of z, m.
const TARGET_SIDE: f64 = 0.4;
const TARGET_HEIGHT: [f64; 2] = [0.1, 0.3];

/// Swim with the mouth to the target, upright if it can be had.
///
/// Goal, 3: the target's position. Observation, 24: joint angles (7), uprightness (1), the target seen from the mouth in
/// its frame (3), velocities (13). Reward: 7/8 for the mouth at the target, falling off smoothly outside, and 1/8 for
/// being upright. Start: any orientation, uniform on the sphere, joints within 0.2 rad, the target uniform in a box.
pub struct Fish {
    model: Arc<Model>,
    torso: Id,
    mouth: Id,
    /// Distance of the centres within which mouth and target overlap.
    reach: f64,
}

impl Fish {
    /// `fish-swim`. Errors if the model does not carry the task.
    pub fn swim() -> Result<Self, SimError> {
        let model = model("fish")?;
        let (mouth, target) = (geom(&model, "mouth")?, geom(&model, "target")?);
        let reach = radius(&model, mouth) + radius(&model, target);
        Ok(Fish { torso: body(&model, "torso")?, mouth, reach, model })
    }

    /// From the mouth to the target, in the mouth's frame.
    fn way(&self, view: &View) -> [f64; 3] {
        let mouth = &self.model.geoms[self.mouth];
        let (at, m) = (view.point(mouth.body, mouth.pos), &view.xmat[mouth.body]);
        let d: [f64; 3] = std::array::from_fn(|k| view.goal[k] - at[k]);
        let in_body = std::array::from_fn(|k| m[k] * d[0] + m[3 + k] * d[1] + m[6 + k] * d[2]);
        let [w, x, y, z] = mouth.quat;
        rotate([w, -x, -y, -z], in_body)
    }
}

impl Task for Fish {
    fn name(&self) -> &str {
        "fish-swim"
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
        24
    }
    fn goal_dim(&self) -> usize {
        3
    }
    fn start(&self, rng: &mut Rng, qpos: &mut [f64], _qvel: &mut [f64], goal: &mut [f64]) {
        let quat: [f64; 4] = std::array::from_fn(|_| rng.normal());
        let norm = quat.iter().map(|x| x * x).sum::<f64>().sqrt();
        for joint in &self.model.joints {
            if joint.kind == JointKind::Free {
                for (to, x) in qpos[joint.qpos + 3..joint.qpos + 7].iter_mut().zip(quat) {
                    *to = x / norm;
                }
            } else {
                qpos[joint.qpos] = rng.uniform(-START_ANGLE, START_ANGLE);
            }
        }
        let [low, high] = TARGET_HEIGHT;
        let mut side = || rng.uniform(-TARGET_SIDE, TARGET_SIDE);
        goal.copy_from_slice(&[side(), side(), 0.0]);
        goal[2] = rng.uniform(low, high);
    }
    fn observe(&self, view: &View, obs: &mut [f64]) {
        pack(obs, &[&view.qpos[7..], &[view.xmat[self.torso][8]], &self.way(view), &view.qvel]);
    }
    fn reward(&self, view: &View) -> f64 {
        let near =
            tolerance(distance(&self.way(view), &[0.0; 3]), [0.0, self.reach], Falloff::gaussian(2.0 * self.reach));
        let upright = 0.5 * (view.xmat[self.torso][8] + 1.0);
        (7.0 * near + upright) / 8.0
    }
}

/// `v` turned by a unit quaternion.
///
/// ```text
/// v + w t + u × t,   t = 2 u × v,   u the quaternion's vector part
/// ```
fn rotate([w, x, y, z]: [f64; 4], v: [f64; 3]) -> [f64; 3] {
    let cross = |a: [f64; 3]| [y * a[2] - z * a[1], z * a[0] - x * a[2], x * a[1] - y * a[0]];
    let t = cross(v).map(|e| 2.0 * e);
    let s = cross(t);
    std::array::from_fn(|k| v[k] + w * t[k] + s[k])
}
