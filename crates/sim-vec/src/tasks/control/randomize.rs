//! Random joint configurations.

use std::f64::consts::PI;

use crate::model::{JointKind, Model};
use crate::rng::Rng;

/// Draws every joint's position, in joint order.
///
/// Limited joints are uniform within their range, unlimited hinges uniform in `[−π, π)`. Unlimited slides and a
/// free joint's position keep their value. A free joint's quaternion is four uniforms on `[0, 1)`, normalised: not
/// uniform on the sphere, but what the reference draws and results elsewhere were obtained with.
pub(crate) fn joints(model: &Model, rng: &mut Rng, qpos: &mut [f64]) {
    for joint in &model.joints {
        match (joint.kind, joint.range) {
            (JointKind::Hinge | JointKind::Slide, Some([low, high])) => qpos[joint.qpos] = rng.uniform(low, high),
            (JointKind::Hinge, None) => qpos[joint.qpos] = rng.uniform(-PI, PI),
            (JointKind::Slide, None) => {}
            (JointKind::Free, _) => {
                let quat: [f64; 4] = std::array::from_fn(|_| rng.unit());
                let norm = quat.iter().map(|x| x * x).sum::<f64>().sqrt();
                // all four zero has probability 2⁻²¹²; the reference configuration is a fine answer to it
                if norm > 0.0 {
                    for (to, x) in qpos[joint.qpos + 3..joint.qpos + 7].iter_mut().zip(quat) {
                        *to = x / norm;
                    }
                }
            }
        }
    }
}
