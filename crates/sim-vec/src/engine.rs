//! The engine: a model, its plan, and the order of the stages of a step.
//!
//! ```
//! use sim_vec::{engine::Engine, lane::F32x1, model::*, view::View};
//! use std::sync::Arc;
//! # let at = |name: &str, parent| Body {
//! #     name: name.into(), parent, root: usize::from(name != "world"), weld: usize::from(name != "world"),
//! #     pos: [0.0; 3], quat: [1.0, 0.0, 0.0, 0.0], ipos: [0.0, 0.0, -1.0], iquat: [1.0, 0.0, 0.0, 0.0],
//! #     mass: if parent == 0 && name != "world" { 1.0 } else { 0.0 }, inertia: [1e-3; 3], subtree_mass: 1.0,
//! #     invweight0: [1.0; 2], joints: 0..usize::from(name != "world"), dofs: 0..usize::from(name != "world"),
//! # };
//! # let softness = Softness { solref: [0.02, 1.0], solimp: [0.9, 0.95, 0.001, 0.5, 2.0] };
//! # let opt = Options {
//! #     timestep: 0.01, gravity: [0.0, 0.0, -9.81], integrator: Integrator::Euler, iterations: 100, tolerance: 1e-8,
//! #     ls_iterations: 50, ls_tolerance: 0.01, euler_damp: true, contact: true, limit: true, constraint: true,
//! # };
//! # let model = Model {
//! #     name: "pendulum".into(), opt, nq: 1, bodies: vec![at("world", 0), at("pole", 0)],
//! #     joints: vec![Joint {
//! #         name: "hinge".into(), kind: JointKind::Hinge, body: 1, qpos: 0, dof: 0, pos: [0.0; 3],
//! #         axis: [0.0, 1.0, 0.0], stiffness: 0.0, range: None, margin: 0.0, limit: softness,
//! #     }],
//! #     dofs: vec![Dof { body: 1, joint: 0, parent: None, armature: 0.0, damping: 0.1, invweight0: 1.0 }],
//! #     geoms: vec![], sites: vec![], pairs: vec![], actuators: vec![], sensors: vec![], qpos0: vec![0.0],
//! #     qpos_spring: vec![0.0], keyframes: vec![], mean_inertia: 1.0, skipped: vec![],
//! # };
//! let engine = Engine::<F32x1>::new(Arc::new(model))?;
//! let (mut state, mut scratch) = (engine.state(), engine.scratch());
//! state.qpos[0].set(0, 0.5); // radians, in lane 0
//! engine.step(&mut state, &mut scratch, 10);
//! engine.kinematics(&state, &mut scratch);
//! let mut view = View::new(engine.model());
//! engine.view(&state, &scratch, 0, &mut view);
//! assert!(view.qpos[0] < 0.5); // it falls
//! # use sim_vec::lane::Lane;
//! # Ok::<(), sim_vec::engine_error::EngineError>(())
//! ```
use crate::constraint::Constraints;
use crate::engine_error::EngineError;
use crate::integrate::{Euler, RungeKutta};
use crate::lane::Lane;
use crate::math::V3;
use crate::model::{Integrator, Model};
use crate::plan::Plan;
use crate::sensor::{Velocities, touch};
use crate::smooth::{Dynamics, Pose};
use crate::solver::Solve;
use crate::state::pad;
pub use crate::state::{Scratch, State};
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
                touch(&self.model, &self.plan, x);
            }
            match self.model.opt.integrator {
                Integrator::Euler => {
                    let implicit = self.model.opt.euler_damp && self.plan.damped;
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
        touch(&self.model, &self.plan, x);
        L::enter(Velocities { plan: &self.plan, qvel: &s.qvel, x });
    }

    /// Poses and subtree velocities at `s`. Touch sensors, contacts and accelerations remain those of the last
    /// forward evaluation.
    pub fn kinematics(&self, s: &State<L>, x: &mut Scratch<L>) {
        L::enter(Pose { plan: &self.plan, qpos: &s.qpos, x });
        L::enter(Velocities { plan: &self.plan, qvel: &s.qvel, x });
    }

    /// Gathers one lane for a task, after [`Engine::kinematics`] or [`Engine::forward`].
    pub fn view(&self, s: &State<L>, x: &Scratch<L>, lane: usize, out: &mut View) {
        gather(&s.qpos, lane, &mut out.qpos);
        gather(&s.qvel, lane, &mut out.qvel);
        gather(&s.ctrl, lane, &mut out.ctrl);
        gather_arrays(&x.body.xpos, lane, &mut out.xpos);
        gather_arrays(&x.body.xmat, lane, &mut out.xmat);
        gather_arrays(&x.body.xipos, lane, &mut out.xipos);
        gather_arrays(&x.sensor, lane, &mut out.sensor);
    }

    /// Acceleration of the last forward evaluation. `out`: `[nv]`.
    pub fn qacc(&self, x: &Scratch<L>, lane: usize, out: &mut [f64]) {
        self.dofs(&x.smooth.qacc, lane, out);
    }

    /// Contacts that push in the last forward evaluation: distance below margin − gap.
    pub fn contacts(&self, x: &Scratch<L>, lane: usize) -> usize {
        x.rows.contacts.iter().filter(|c| c.d.get(lane) != 0.0).count()
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
        L::enter(Pose { plan, qpos: &s.qpos, x });
        mark(Stage::Pose);
        L::enter(Dynamics { plan, s, x });
        mark(Stage::Dynamics);
        L::enter(Constraints { plan, qpos: &s.qpos, x });
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
