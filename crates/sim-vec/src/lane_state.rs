//! The complete state of one environment, in f64: what rollouts start from and what a lane can be set to.

use crate::SimError;
use crate::engine::State;
use crate::lane::Lane;
use crate::model::Model;

/// Magnitude from which a state counts as diverged (MuJoCo's `mjMAXVAL`).
pub(crate) const MAX_VALUE: f64 = 1e10;

/// A part of the state that all lanes can be asked for or given at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Field {
    /// `[nq]` positions; free joints: xyz, then the quaternion, w first.
    Qpos,
    /// `[nv]` velocities; free joints: linear global, angular local.
    Qvel,
    /// `[na]` activations.
    Act,
    /// `[nu]` controls, in the actuators' units. A step replaces them by its actions.
    Ctrl,
    /// `[nmocap · 7]` positions and orientations of mocap bodies.
    Mocap,
    /// `[nv]` acceleration the solver starts from.
    Warm,
    /// `[goal_dim]` what the episode is about, as [`crate::tasks::Task::start`] drew it.
    Goal,
}

/// One environment's mechanism. Continuing from it repeats the original bit for bit at the same precision and lane width.
///
/// An environment in f32 gives numbers that f32 holds exactly; one that is set rounds what it is given.
#[derive(Clone, Debug, PartialEq)]
pub struct LaneState {
    /// `[nq]` positions.
    pub qpos: Vec<f64>,
    /// `[nv]` velocities.
    pub qvel: Vec<f64>,
    /// `[na]` activations.
    pub act: Vec<f64>,
    /// `[nu]` controls of the last step.
    pub ctrl: Vec<f64>,
    /// `[nmocap · 7]` positions and orientations of mocap bodies.
    pub mocap: Vec<f64>,
    /// `[nv]` acceleration the solver starts from: that of the last step.
    pub warm: Vec<f64>,
    /// Factors by which the mechanism differs from the model (see [`crate::engine::Vary`]); empty if it does not.
    pub factors: Vec<f64>,
}

impl LaneState {
    /// The reference configuration at rest.
    pub fn of(model: &Model) -> Self {
        LaneState {
            qpos: model.qpos0.clone(),
            qvel: vec![0.0; model.nv()],
            act: vec![0.0; model.na()],
            ctrl: vec![0.0; model.nu()],
            mocap: model.mocap0().collect(),
            warm: vec![0.0; model.nv()],
            factors: Vec::new(),
        }
    }

    /// A state that the file names. Errors: [`SimError::MissingElement`].
    pub fn keyframe(model: &Model, name: &str) -> Result<Self, SimError> {
        let key = model.keyframes.iter().find(|k| k.name == name).ok_or_else(|| SimError::MissingElement {
            model: model.name.clone(),
            element: "keyframe",
            name: name.into(),
        })?;
        Ok(LaneState {
            qpos: key.qpos.clone(),
            qvel: key.qvel.clone(),
            act: key.act.clone(),
            ctrl: key.ctrl.clone(),
            ..LaneState::of(model)
        })
    }

    /// One lane of a block.
    pub(crate) fn gather<L: Lane>(state: &State<L>, lane: usize) -> Self {
        let [qpos, qvel, act, ctrl, mocap, warm, factors] =
            fields(state).map(|f| f.iter().map(|x| x.get(lane)).collect());
        LaneState { qpos, qvel, act, ctrl, mocap, warm, factors }
    }

    /// Sets one lane of a block. What has another length than the block is cut: see [`LaneState::misfit`].
    pub(crate) fn scatter<L: Lane>(&self, state: &mut State<L>, lane: usize) {
        for (to, (_, from)) in fields_mut(state).into_iter().zip(self.named()) {
            to.iter_mut().zip(from).for_each(|(to, &x)| to.set(lane, x));
        }
    }

    /// The first field whose length is not that of a block: name, expected, got.
    pub(crate) fn misfit<L>(&self, state: &State<L>) -> Option<(&'static str, usize, usize)> {
        let pairs = fields(state).into_iter().zip(self.named());
        pairs.map(|(to, (what, from))| (what, to.len(), from.len())).find(|(_, expected, got)| expected != got)
    }

    /// In the order of [`fields`].
    fn named(&self) -> [(&'static str, &Vec<f64>); 7] {
        [
            ("qpos", &self.qpos),
            ("qvel", &self.qvel),
            ("act", &self.act),
            ("ctrl", &self.ctrl),
            ("mocap", &self.mocap),
            ("warm", &self.warm),
            ("factors", &self.factors),
        ]
    }
}

/// Everything that persists of a block.
pub(crate) fn fields<L>(s: &State<L>) -> [&Vec<L>; 7] {
    [&s.qpos, &s.qvel, &s.act, &s.ctrl, &s.mocap, &s.warm, &s.vary]
}

/// Everything that persists of a block, in the same order.
pub(crate) fn fields_mut<L>(s: &mut State<L>) -> [&mut Vec<L>; 7] {
    [&mut s.qpos, &mut s.qvel, &mut s.act, &mut s.ctrl, &mut s.mocap, &mut s.warm, &mut s.vary]
}

/// Copies one environment.
pub(crate) fn copy_lane<L: Lane>(from: &State<L>, i: usize, to: &mut State<L>, j: usize) {
    for (from, to) in fields(from).into_iter().zip(fields_mut(to)) {
        for (x, y) in from.iter().zip(to) {
            y.set(j, x.get(i));
        }
    }
}
