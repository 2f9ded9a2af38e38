//! A task of your own, made of closures.
//!
//! ```
//! use std::sync::Arc;
//! use sim_vec::{SimVec, VecEnv, mjcf, tasks::custom::CustomTask};
//!
//! let xml = r#"<mujoco><worldbody><body><joint axis="0 1 0"/><geom size="0.1" pos="0 0 -1"/></body></worldbody>
//!     <actuator><motor joint="swing" ctrlrange="-2 2"/></actuator></mujoco>"#
//!     .replace("<joint ", r#"<joint name="swing" "#);
//! let task = CustomTask::new("swing", Arc::new(mjcf::parse(&xml, "swing.xml")?))
//!     .substeps(5)
//!     .observe(3, |view, obs| obs.copy_from_slice(&[view.qpos[0].sin(), view.qpos[0].cos(), view.qvel[0]]))
//!     .reward(|view| -view.qpos[0].cos())
//!     .start(|rng, qpos, _qvel| qpos[0] = rng.uniform(-0.1, 0.1));
//! let mut env = SimVec::builder_of(Arc::new(task)).lanes(8).build()?;
//! let mut now = env.buffers();
//! env.reset(&[1, 2, 3, 4, 5, 6, 7, 8], &mut now.obs);
//! env.step(&[1.0; 8], now.out());
//! assert!(now.reward.iter().all(|r| *r < -0.9)); // still hanging
//! # Ok::<(), sim_vec::SimError>(())
//! ```

use std::sync::Arc;

use crate::SimError;
use crate::lane_state::LaneState;
use crate::model::Model;
use crate::rng::Rng;
use crate::tasks::Task;
use crate::view::View;

type Observe = Box<dyn Fn(&View, &mut [f64]) + Send + Sync>;
type Start = Box<dyn Fn(&mut Rng, &mut [f64], &mut [f64]) + Send + Sync>;
type Goal = Box<dyn Fn(&mut Rng, &mut [f64]) + Send + Sync>;
type Number = Box<dyn Fn(&View) -> f64 + Send + Sync>;
type Question = Box<dyn Fn(&View) -> bool + Send + Sync>;

/// A task on a model; see the [module](self). What is not set stays as its method says.
///
/// Closures must be pure: equal inputs give equal outputs, on any thread. They may not hand work to rayon.
pub struct CustomTask {
    name: String,
    model: Arc<Model>,
    substeps: usize,
    episode_steps: usize,
    settle_steps: usize,
    obs_dim: usize,
    observe: Observe,
    reward: Number,
    base: LaneState,
    start: Start,
    goal_dim: usize,
    goal: Goal,
    terminated: Question,
}

impl CustomTask {
    /// A task that only runs the model. `name` is for messages and snapshots.
    pub fn new(name: impl Into<String>, model: Arc<Model>) -> Self {
        let (nq, nv) = (model.nq, model.nv());
        CustomTask {
            name: name.into(),
            substeps: 1,
            episode_steps: 1000,
            settle_steps: 0,
            obs_dim: nq + nv,
            observe: Box::new(move |view, obs| {
                obs[..nq].copy_from_slice(&view.qpos);
                obs[nq..].copy_from_slice(&view.qvel);
            }),
            reward: Box::new(|_| 0.0),
            base: LaneState::of(&model),
            start: Box::new(|_, _, _| ()),
            goal_dim: 0,
            goal: Box::new(|_, _| ()),
            terminated: Box::new(|_| false),
            model,
        }
    }

    /// Physics steps in a control step. Default: 1.
    pub fn substeps(mut self, substeps: usize) -> Self {
        self.substeps = substeps;
        self
    }

    /// Control steps after which an episode is truncated. Default: 1000.
    pub fn episode_steps(mut self, steps: usize) -> Self {
        self.episode_steps = steps;
        self
    }

    /// Physics steps taken without control between the start and the first observation. Default: 0.
    pub fn settle_steps(mut self, steps: usize) -> Self {
        self.settle_steps = steps;
        self
    }

    /// Writes an observation of `dim` numbers. Default: `qpos`, then `qvel`.
    pub fn observe(mut self, dim: usize, observe: impl Fn(&View, &mut [f64]) + Send + Sync + 'static) -> Self {
        (self.obs_dim, self.observe) = (dim, Box::new(observe));
        self
    }

    /// Reward of being in a state with the control that led to it. Default: 0.
    pub fn reward(mut self, reward: impl Fn(&View) -> f64 + Send + Sync + 'static) -> Self {
        self.reward = Box::new(reward);
        self
    }

    /// Positions and velocities that starts begin from: a named state of the file. Its activations and controls are
    /// not taken. Default: the reference configuration at rest. Errors: [`SimError::MissingElement`].
    pub fn keyframe(mut self, name: &str) -> Result<Self, SimError> {
        self.base = LaneState::keyframe(&self.model, name)?;
        Ok(self)
    }

    /// Draws the state an episode starts from; `qpos: [nq]` and `qvel: [nv]` hold the reference configuration, or the
    /// keyframe. Default: leaves them.
    pub fn start(mut self, start: impl Fn(&mut Rng, &mut [f64], &mut [f64]) + Send + Sync + 'static) -> Self {
        self.start = Box::new(start);
        self
    }

    /// Draws what an episode is about, such as a target's position: `dim` numbers that stay in
    /// [`View::goal`] until it ends. They hold zeros and are drawn after the start. Default: none.
    pub fn goal(mut self, dim: usize, goal: impl Fn(&mut Rng, &mut [f64]) + Send + Sync + 'static) -> Self {
        (self.goal_dim, self.goal) = (dim, Box::new(goal));
        self
    }

    /// Whether the task ends the episode in this state. Default: never.
    pub fn terminated(mut self, terminated: impl Fn(&View) -> bool + Send + Sync + 'static) -> Self {
        self.terminated = Box::new(terminated);
        self
    }
}

impl Task for CustomTask {
    fn name(&self) -> &str {
        &self.name
    }
    fn model(&self) -> &Arc<Model> {
        &self.model
    }
    fn substeps(&self) -> usize {
        self.substeps
    }
    fn episode_steps(&self) -> usize {
        self.episode_steps
    }
    fn obs_dim(&self) -> usize {
        self.obs_dim
    }
    fn goal_dim(&self) -> usize {
        self.goal_dim
    }
    fn start(&self, rng: &mut Rng, qpos: &mut [f64], qvel: &mut [f64], goal: &mut [f64]) {
        qpos.copy_from_slice(&self.base.qpos);
        qvel.copy_from_slice(&self.base.qvel);
        (self.start)(rng, qpos, qvel);
        (self.goal)(rng, goal)
    }
    fn settle_steps(&self) -> usize {
        self.settle_steps
    }
    fn observe(&self, view: &View, obs: &mut [f64]) {
        (self.observe)(view, obs)
    }
    fn reward(&self, view: &View) -> f64 {
        (self.reward)(view)
    }
    fn terminated(&self, view: &View) -> bool {
        (self.terminated)(view)
    }
}
