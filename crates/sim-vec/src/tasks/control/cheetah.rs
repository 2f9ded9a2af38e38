//! A planar runner.

use std::sync::Arc;

use super::{EPISODE_STEPS, model};
use crate::SimError;
use crate::engine::Engine;
use crate::lane::{F64x1, Lane};
use crate::model::{Id, JointKind, Model};
use crate::reward::{Falloff, tolerance};
use crate::rng::Rng;
use crate::tasks::{Task, pack, sensor};
use crate::view::View;

/// Speed that earns the full reward, m/s.
const RUN_SPEED: f64 = 10.0;
/// Physics steps that a drawn posture is left to fall and come to rest.
const SETTLE_STEPS: usize = 200;

/// Run forward.
///
/// Observation, 17: positions but the horizontal one, velocities. Reward: forward speed of the centre of mass over
/// 10 m/s, at most 1. Start: joints uniform within their limits, then 200 physics steps without control.
pub struct Cheetah {
    model: Arc<Model>,
    velocity: Id,
    /// `[nq]` and `[nv]`: what one physics step does to the reference configuration.
    first_move: Vec<f64>,
    first_velocity: Vec<f64>,
}

impl Cheetah {
    /// `cheetah-run`. Errors if the model does not carry the task.
    pub fn run() -> Result<Self, SimError> {
        let model = model("cheetah")?;
        debug_assert!(model.joints.iter().all(|j| j.kind != JointKind::Free));
        // The reference draws the posture after it has evaluated the dynamics, so that its first settling step
        // moves the drawn posture with the accelerations of the reference configuration. They are constants.
        let engine = Engine::<F64x1>::new(model.clone())?;
        let (mut state, mut scratch) = (engine.state(), engine.scratch());
        engine.step(&mut state, &mut scratch, 1);
        let first_move = model.qpos0.iter().zip(&state.qpos).map(|(before, after)| after.get(0) - before).collect();
        let first_velocity = state.qvel.iter().map(|v| v.get(0)).collect();
        Ok(Cheetah { velocity: sensor(&model, "torso_subtreelinvel")?, model, first_move, first_velocity })
    }
}

impl Cheetah {
    /// Takes the first settling step of a drawn posture at rest.
    fn release(&self, qpos: &mut [f64], qvel: &mut [f64]) {
        for (q, d) in qpos.iter_mut().zip(&self.first_move) {
            *q += d;
        }
        qvel.copy_from_slice(&self.first_velocity);
    }
}

impl Task for Cheetah {
    fn name(&self) -> &str {
        "cheetah-run"
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
        17
    }
    fn start(&self, rng: &mut Rng, qpos: &mut [f64], qvel: &mut [f64], _goal: &mut [f64]) {
        for joint in &self.model.joints {
            if let Some([low, high]) = joint.range {
                qpos[joint.qpos] = rng.uniform(low, high);
            }
        }
        self.release(qpos, qvel);
    }
    fn settle_steps(&self) -> usize {
        SETTLE_STEPS - 1
    }
    fn observe(&self, view: &View, obs: &mut [f64]) {
        pack(obs, &[&view.qpos[1..], &view.qvel]);
    }
    fn reward(&self, view: &View) -> f64 {
        let falloff = Falloff::Linear { margin: RUN_SPEED, value: 0.0 };
        tolerance(view.sensor[self.velocity], [RUN_SPEED, f64::INFINITY], falloff)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_drawn_posture_settles_where_the_reference_says() {
        let golden: serde_json::Value = serde_json::from_str(include_str!("../../../tests/golden/suite.json")).unwrap();
        let numbers = |v: &serde_json::Value| -> Vec<f64> { serde_json::from_value(v.clone()).unwrap() };
        let task = Cheetah::run().unwrap();
        let engine = Engine::<F64x1>::new(task.model.clone()).unwrap();
        for case in golden["cheetah"]["settle"].as_array().unwrap() {
            let (mut qpos, mut qvel) = (numbers(&case["qpos"]), vec![0.0; task.model.nv()]);
            task.release(&mut qpos, &mut qvel);
            let (mut state, mut scratch) = (engine.state(), engine.scratch());
            for (to, x) in state.qpos.iter_mut().zip(qpos).chain(state.qvel.iter_mut().zip(qvel)) {
                to.set(0, x);
            }
            engine.step(&mut state, &mut scratch, task.settle_steps());
            // 200 steps of falling and sliding: solver tolerances of 1e-8 grow a little
            for (x, want) in state.qpos.iter().zip(numbers(&case["settled_qpos"])) {
                assert!((x.get(0) - want).abs() < 1e-5, "{} {want}", x.get(0));
            }
            for (x, want) in state.qvel.iter().zip(numbers(&case["settled_qvel"])) {
                assert!((x.get(0) - want).abs() < 1e-4, "{} {want}", x.get(0));
            }
        }
    }
}
