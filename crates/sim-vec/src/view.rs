//! What a task sees of one environment: plain f64, one lane.

use crate::model::{Id, Model};
use crate::tasks::Task;

/// One lane's state after forward kinematics, gathered from the engine. Tasks read it to observe and to reward.
#[derive(Clone, Debug)]
pub struct View {
    /// `[nq]`
    pub qpos: Vec<f64>,
    /// `[nv]`
    pub qvel: Vec<f64>,
    /// `[nu]` the control of the last step.
    pub ctrl: Vec<f64>,
    /// `[nbody]` body frame positions.
    pub xpos: Vec<[f64; 3]>,
    /// `[nbody]` body frame orientations, row-major.
    pub xmat: Vec<[f64; 9]>,
    /// `[nbody]` body centre of mass positions.
    pub xipos: Vec<[f64; 3]>,
    /// `[nsensordata]` sensor values; a sensor's begin at [`crate::model::Sensor::start`]. Those that need forces
    /// (touch, accelerometer, force, torque) are of the last forward evaluation, as MuJoCo's are.
    pub sensor: Vec<f64>,
    /// `[goal_dim]` the goal that [`crate::tasks::Task::start`] drew for this episode.
    pub goal: Vec<f64>,
}

impl View {
    /// Buffers of the right sizes for a model, filled with zeros; no goal.
    pub fn new(model: &Model) -> Self {
        View {
            qpos: vec![0.0; model.nq],
            qvel: vec![0.0; model.nv()],
            ctrl: vec![0.0; model.nu()],
            xpos: vec![[0.0; 3]; model.bodies.len()],
            xmat: vec![[0.0; 9]; model.bodies.len()],
            xipos: vec![[0.0; 3]; model.bodies.len()],
            sensor: vec![0.0; model.nsensordata()],
            goal: Vec::new(),
        }
    }

    /// Buffers of the right sizes for a task, filled with zeros.
    pub fn of(task: &dyn Task) -> Self {
        View { goal: vec![0.0; task.goal_dim()], ..View::new(task.model()) }
    }

    /// Global position of a point fixed to a body.
    pub fn point(&self, body: Id, local: [f64; 3]) -> [f64; 3] {
        let (m, p) = (&self.xmat[body], &self.xpos[body]);
        std::array::from_fn(|r| p[r] + m[3 * r] * local[0] + m[3 * r + 1] * local[1] + m[3 * r + 2] * local[2])
    }
}
