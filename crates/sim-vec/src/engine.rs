//! The engine: a model, its plan, and the order of the stages of a step.
//!
//! ```
//! use sim_vec::{engine::Engine, lane::{F32x1, Lane}, mjcf, view::View};
//! use std::sync::Arc;
//! let pendulum = r#"<mujoco><worldbody><body><joint axis="0 1 0"/><geom size="0.1" pos="0 0 -1"/></body></worldbody></mujoco>"#;
//! let model = mjcf::parse(pendulum, "pendulum.xml")?;
//! let engine = Engine::<F32x1>::new(Arc::new(model))?;
//! let (mut state, mut scratch) = (engine.state(), engine.scratch());
//! state.qpos[0].set(0, 0.5); // radians, in lane 0
//! engine.step(&mut state, &mut scratch, 10);
//! engine.kinematics(&state, &mut scratch);
//! let mut view = View::new(engine.model());
//! engine.view(&state, &scratch, 0, &mut view);
//! assert!(view.qpos[0] < 0.5); // it falls
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
use crate::constraint::Constraints;
use crate::engine_error::EngineError;
use crate::integrate::{Euler, Implicit, RungeKutta};
use crate::lane::Lane;
use crate::load::loads;
use crate::math::V3;
use crate::model::{Integrator, Model};
use crate::plan::Plan;
use crate::sensor::Sensors;
use crate::smooth::{Dynamics, Pose};
use crate::solver::Solve;
use crate::state::pad;
pub use crate::state::{Scratch, State, Vary};
use crate::view::View;
use std::sync::Arc;

/// Parts of a step, in their order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// Poses of bodies, joints and geoms.
    Pose,
    /// Mass matrix, its factors, and all forces but those of constraints.
    Dynamics,
    /// Collision, limits and the rows they make.
    Constraints,
    /// Newton's method.
    Solve,
    /// The next positions and velocities, and touch sensors.
    Integrate,
}

impl Stage {
    /// All, in their order.
    pub const ALL: [Stage; 5] = [Stage::Pose, Stage::Dynamics, Stage::Constraints, Stage::Solve, Stage::Integrate];
}

/// Steps blocks of `L::W` environments of one model. Shared by threads; each needs its own [`Scratch`].
#[derive(Debug)]
pub struct Engine<L: Lane> {
    model: Arc<Model>,
    plan: Plan<L>,
}

impl<L: Lane> Engine<L> {
    /// Plans `model`.
    ///
    /// Errors: the machine lacks the lane type's instruction set, or the model contradicts itself or needs what the
    /// engine does not support.
    pub fn new(model: Arc<Model>) -> Result<Self, EngineError> {
        if !L::available() {
            return Err(EngineError::Instructions { isa: L::ISA });
        }
        let plan = Plan::new(&model)?;
        Ok(Engine { model, plan })
    }

    /// The model it was made for.
    pub fn model(&self) -> &Arc<Model> {
        &self.model
    }

    /// The reference configuration at rest, with zero control and warm start, in all lanes.
    pub fn state(&self) -> State<L> {
        State::new(&self.model)
    }

    /// Working memory for one thread.
    pub fn scratch(&self) -> Scratch<L> {
        Scratch::new(&self.model, &self.plan)
    }

    /// Advances by `substeps` time steps under constant control. Touch sensors are those of the last step's (first)
    /// forward evaluation, as in MuJoCo. Allocates nothing. A lane that is not finite stays so and disturbs no other.
    pub fn step(&self, s: &mut State<L>, x: &mut Scratch<L>, substeps: usize) {
        self.step_marked(s, x, substeps, |_| ());
    }

    /// [`Engine::step`], which says after each stage that it is done, for those who keep the time.
    pub fn step_marked(&self, s: &mut State<L>, x: &mut Scratch<L>, substeps: usize, mut mark: impl FnMut(Stage)) {
        let h = self.model.opt.timestep;
        for k in 0..substeps {
            self.evaluate(s, x, &mut mark);
            if k + 1 == substeps {
                loads(&self.model, &self.plan, s, x);
            }
            match self.model.opt.integrator {
                Integrator::Euler | Integrator::ImplicitFast => {
                    let implicit = match self.model.opt.integrator {
                        Integrator::ImplicitFast => Implicit::All,
                        _ if self.model.opt.euler_damp && self.plan.damped => Implicit::Joints,
                        _ => Implicit::None,
                    };
                    L::enter(Euler { plan: &self.plan, s, x, h, implicit });
                }
                Integrator::Rk4 => {
                    for stage in 0..4 {
                        if stage > 0 {
                            self.evaluate(s, x, &mut mark);
                        }
                        L::enter(RungeKutta { plan: &self.plan, s, x, h, stage });
                    }
                }
            }
            mark(Stage::Integrate);
        }
    }

    /// Computes everything up to accelerations and sensors at `s`, which stays as it is.
    pub fn forward(&self, s: &mut State<L>, x: &mut Scratch<L>) {
        self.evaluate(s, x, &mut |_| ());
        loads(&self.model, &self.plan, s, x);
        L::enter(Sensors { model: &self.model, plan: &self.plan, s, x });
    }

    /// Poses and subtree velocities at `s`. Touch sensors, contacts and accelerations remain those of the last
    /// forward evaluation.
    pub fn kinematics(&self, s: &State<L>, x: &mut Scratch<L>) {
        L::enter(Pose { plan: &self.plan, s, x });
        L::enter(Sensors { model: &self.model, plan: &self.plan, s, x });
    }

    /// Gathers one lane for a task, after [`Engine::kinematics`] or [`Engine::forward`].
    pub fn view(&self, s: &State<L>, x: &Scratch<L>, lane: usize, out: &mut View) {
        gather(&s.qpos, lane, &mut out.qpos);
        gather(&s.qvel, lane, &mut out.qvel);
        gather(&s.ctrl, lane, &mut out.ctrl);
        gather_arrays(&x.body.xpos, lane, &mut out.xpos);
        gather_arrays(&x.body.xmat, lane, &mut out.xmat);
        gather_arrays(&x.body.xipos, lane, &mut out.xipos);
        gather(&x.sensor, lane, &mut out.sensor);
    }

    /// Sensors of the last [`Engine::kinematics`] or [`Engine::forward`]. `out`: `[nsensordata]`.
    pub fn sensors(&self, x: &Scratch<L>, lane: usize, out: &mut [f64]) {
        gather(&x.sensor, lane, out);
    }

    /// Acceleration of the last forward evaluation. `out`: `[nv]`.
    pub fn qacc(&self, x: &Scratch<L>, lane: usize, out: &mut [f64]) {
        self.dofs(&x.smooth.qacc, lane, out);
    }

    /// Contacts that push in the last forward evaluation: distance below margin − gap.
    pub fn contacts(&self, x: &Scratch<L>, lane: usize) -> usize {
        let rows = &x.rows;
        rows.multis[rows.first_contact..].iter().filter(|m| rows.d[m.row].get(lane) != 0.0).count()
    }

    /// Iterations of the last solve; all lanes of a block iterate until the slowest is done.
    pub fn iterations(&self, x: &Scratch<L>) -> usize {
        x.newton.iterations
    }

    /// Iterations that one lane took in the last solve before it was done.
    pub fn lane_iterations(&self, x: &Scratch<L>, lane: usize) -> usize {
        x.newton.taken.get(lane) as usize
    }

    pub(crate) fn plan(&self) -> &Plan<L> {
        &self.plan
    }

    /// One lane of a padded vector, in the model's order.
    pub(crate) fn dofs(&self, v: &[V3<L>], lane: usize, out: &mut [f64]) {
        let v = v.as_flattened();
        for (o, &p) in out.iter_mut().zip(&self.plan.blocks.padded) {
            *o = v[p].get(lane);
        }
    }

    /// The forward evaluation without sensors.
    fn evaluate(&self, s: &State<L>, x: &mut Scratch<L>, mark: &mut impl FnMut(Stage)) {
        let plan = &self.plan;
        L::enter(Pose { plan, s, x });
        mark(Stage::Pose);
        L::enter(Dynamics { plan, s, x });
        mark(Stage::Dynamics);
        L::enter(Constraints { plan, s, x });
        mark(Stage::Constraints);
        pad(plan, &s.warm, &mut x.smooth.warm);
        L::enter(Solve { plan, x });
        mark(Stage::Solve);
    }
}

fn gather<L: Lane>(from: &[L], lane: usize, to: &mut [f64]) {
    for (t, f) in to.iter_mut().zip(from) {
        *t = f.get(lane);
    }
}

fn gather_arrays<L: Lane, const N: usize>(from: &[[L; N]], lane: usize, to: &mut [[f64; N]]) {
    for (t, f) in to.iter_mut().zip(from) {
        for k in 0..N {
            t[k] = f[k].get(lane);
        }
    }
}
