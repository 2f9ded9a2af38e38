//! Many control sequences through one model at once: the inner loop of predictive control and system identification.
//!
//! ```
//! use std::sync::Arc;
//! use sim_vec::{mjcf, models::builtin};
//! use sim_vec::rollout::{LaneState, Rollout, RolloutOptions, RolloutOut};
//!
//! let model = Arc::new(mjcf::parse(builtin("cartpole").unwrap(), "cartpole.xml")?);
//! let mut rollout = Rollout::new(model.clone(), RolloutOptions::new(2))?; // every control is held for 2 steps
//! let (n, steps) = (100, 25);
//! let controls: Vec<f64> = (0..n * steps).map(|i| if i / steps % 2 == 0 { 1.0 } else { -1.0 }).collect();
//! let mut states = vec![0.0; n * steps * rollout.state_dim()];
//! let mut lived = vec![0; n];
//! let out = RolloutOut { states: &mut states, sensors: None, lived: &mut lived };
//! rollout.run(&[LaneState::of(&model)], steps, &controls, out)?;
//! assert!(lived.iter().all(|&l| l == steps));
//! let end = |n: usize| states[((n + 1) * steps - 1) * rollout.state_dim()]; // the cart's position
//! assert!(end(0) > 0.1 && end(1) == -end(0));
//! # Ok::<(), sim_vec::SimError>(())
//! ```

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rayon::ThreadPool;
use rayon::prelude::*;

use crate::SimError;
use crate::dispatch::{Isa, LaneVisitor, Precision, with_lane};
use crate::engine::{Engine, Scratch, State};
use crate::engine_error::EngineError;
use crate::lane::Lane;
pub use crate::lane_state::LaneState;
use crate::lane_state::{MAX_VALUE, copy_lane, fields};
use crate::model::Model;
use crate::threads::within;

/// How to simulate sequences. All fields may be set freely.
#[derive(Clone, Debug)]
pub struct RolloutOptions {
    /// Physics steps for which each control is held.
    pub hold: usize,
    /// f32 is twice as fast, f64 the parity mode.
    pub precision: Precision,
    /// Instruction set; `None` takes what `PHALANX_ISA` names or else the widest this machine has.
    pub isa: Option<Isa>,
    /// Where to run; `None` takes the rayon pool that calls. [`crate::threads::pool`] makes one.
    pub pool: Option<Arc<ThreadPool>>,
}

impl RolloutOptions {
    /// In f32, on the widest instruction set, in the pool that calls.
    pub fn new(hold: usize) -> Self {
        RolloutOptions { hold, precision: Precision::F32, isa: None, pool: None }
    }
}

/// Caller-owned buffers for `n` sequences of `T` controls.
pub struct RolloutOut<'a> {
    /// `[n, T, nq + nv + na]` positions, velocities and activations after each control; NaN from where the sequence
    /// diverged.
    pub states: &'a mut [f64],
    /// `[n, T, nsensordata]` sensors after each control, or `None` to save their cost. Those of forces are of the last
    /// physics step's beginning, as MuJoCo's are. NaN from where the sequence diverged.
    pub sensors: Option<&'a mut [f64]>,
    /// `[n]` controls after which the state was still finite: `T` unless the sequence diverged.
    pub lived: &'a mut [usize],
}

/// Simulates control sequences in lanes and over threads.
///
/// Each sequence gives the bits that [`Engine::step`] gives for it alone at the same lane width: they depend neither
/// on other sequences nor on its place among them nor on the number of threads.
pub struct Rollout {
    inner: Box<dyn Sequences>,
    model: Arc<Model>,
    pool: Option<Arc<ThreadPool>>,
    isa: Isa,
}

impl Rollout {
    /// Prepares a model.
    ///
    /// Errors: [`SimError::Engine`] if the engine cannot take the model or the machine lacks the instruction set,
    /// [`SimError::Nothing`] if the model has no joint or a control is held for no step.
    pub fn new(model: Arc<Model>, options: RolloutOptions) -> Result<Self, SimError> {
        let RolloutOptions { hold, precision, isa, pool } = options;
        for (n, what) in [(model.nq, "joints"), (hold, "physics steps")] {
            if n == 0 {
                return Err(SimError::Nothing { task: model.name.clone(), what });
            }
        }
        let isa = Isa::choose(isa)?;
        let inner = with_lane(isa, precision, Build(model.clone(), hold))?;
        Ok(Rollout { inner, model, pool, isa })
    }

    /// The mechanism.
    pub fn model(&self) -> &Arc<Model> {
        &self.model
    }

    /// The instruction set it runs on.
    pub fn isa(&self) -> Isa {
        self.isa
    }

    /// Numbers in a row of [`RolloutOut::states`]: `nq + nv + na`.
    pub fn state_dim(&self) -> usize {
        self.model.nq + self.model.nv() + self.model.na()
    }

    /// Takes `n` sequences of `steps` controls, `[n, steps, nu]`, each from its own start or all from one. `n` is the
    /// length of [`RolloutOut::lived`]. Controls are in the actuators' units and clamped to their ranges; one that is
    /// not finite counts as divergence. A sequence that diverged (a number beyond 10¹⁰ or none at all) disturbs no
    /// other. The start's controls are not used.
    ///
    /// Allocates nothing when called within a pool that is no larger than the one before.
    ///
    /// Errors: [`EngineError::Length`] for the first slice that does not fit; then nothing is written.
    pub fn run(
        &mut self,
        starts: &[LaneState],
        steps: usize,
        controls: &[f64],
        out: RolloutOut<'_>,
    ) -> Result<(), SimError> {
        let n = out.lived.len();
        let (dim, sensors, nu) = (self.state_dim(), self.model.nsensordata(), self.model.nu());
        let fits = |what, expected: usize, got: usize| {
            if expected == got { Ok(()) } else { Err(EngineError::Length { what, expected, got }) }
        };
        if starts.len() != 1 {
            fits("starts", n, starts.len())?;
        }
        fits("controls", n * steps * nu, controls.len())?;
        fits("states", n * steps * dim, out.states.len())?;
        if let Some(s) = &out.sensors {
            fits("sensors", n * steps * sensors, s.len())?;
        }
        for start in starts {
            self.inner.check(start)?;
        }
        if n > 0 && steps > 0 {
            let inner = &mut self.inner;
            within(self.pool.as_deref(), || inner.run(starts, steps, controls, out));
        } else {
            out.lived.fill(0);
        }
        Ok(())
    }
}

/// Sequences in lanes of any width.
trait Sequences: Send {
    fn check(&self, start: &LaneState) -> Result<(), EngineError>;
    fn run(&mut self, starts: &[LaneState], steps: usize, controls: &[f64], out: RolloutOut<'_>);
}

struct Build(Arc<Model>, usize);

impl LaneVisitor for Build {
    type Out = Result<Box<dyn Sequences>, EngineError>;
    fn visit<L: Lane>(self) -> Self::Out {
        let engine = Engine::<L>::new(self.0)?;
        Ok(Box::new(Bundle { rest: engine.state(), engine, hold: self.1, workers: Vec::new() }))
    }
}

struct Bundle<L: Lane> {
    engine: Engine<L>,
    hold: usize,
    /// Where lanes wait whose sequence is over.
    rest: State<L>,
    workers: Vec<Mutex<Worker<L>>>,
}

/// What one thread works with.
struct Worker<L: Lane> {
    state: State<L>,
    scratch: Scratch<L>,
}

/// What one block of sequences starts from and fills.
struct Block<'a> {
    /// Number of its first sequence.
    first: usize,
    states: &'a mut [f64],
    /// Empty if nobody asks for them.
    sensors: &'a mut [f64],
    lived: &'a mut [usize],
}

impl<L: Lane> Sequences for Bundle<L> {
    fn check(&self, start: &LaneState) -> Result<(), EngineError> {
        let factors = State::<L>::factors(self.engine.model());
        if let Some((what, expected, got)) = start.misfit(&self.rest)
            && (what, got) != ("factors", factors)
        {
            return Err(EngineError::Length { what, expected, got });
        }
        Ok(())
    }

    fn run(&mut self, starts: &[LaneState], steps: usize, controls: &[f64], out: RolloutOut<'_>) {
        self.staff();
        let Bundle { engine, hold, rest, workers } = &*self;
        let model = engine.model();
        let run = Run {
            engine,
            rest,
            hold: *hold,
            starts,
            steps,
            controls,
            factors: if starts.iter().any(|s| !s.factors.is_empty()) { State::<L>::factors(model) } else { 0 },
        };
        let row = model.nq + model.nv() + model.na();
        let RolloutOut { states, sensors, lived } = out;
        let blocks = (states.par_chunks_mut(L::W * steps * row), lived.par_chunks_mut(L::W));
        match sensors.filter(|s| !s.is_empty()) {
            Some(sensors) => {
                let sensors = sensors.par_chunks_mut(L::W * steps * model.nsensordata());
                (blocks.0, sensors, blocks.1).into_par_iter().enumerate().for_each(|(b, (states, sensors, lived))| {
                    run.block(&mut worker(workers), Block { first: b * L::W, states, sensors, lived })
                });
            }
            None => blocks.into_par_iter().enumerate().for_each(|(b, (states, lived))| {
                run.block(&mut worker(workers), Block { first: b * L::W, states, sensors: &mut [], lived })
            }),
        }
    }
}

impl<L: Lane> Bundle<L> {
    /// One worker per thread of the pool that is calling. Allocates only when the pool has grown.
    fn staff(&mut self) {
        while self.workers.len() < rayon::current_num_threads() {
            let mut state = self.engine.state();
            state.vary.reserve(State::<L>::factors(self.engine.model()));
            self.workers.push(Mutex::new(Worker { state, scratch: self.engine.scratch() }));
        }
    }
}

/// The calling thread's own worker; nobody else asks for it.
fn worker<L: Lane>(workers: &[Mutex<Worker<L>>]) -> MutexGuard<'_, Worker<L>> {
    workers[rayon::current_thread_index().unwrap_or(0)].lock().unwrap_or_else(PoisonError::into_inner)
}

/// What all threads read.
struct Run<'a, L: Lane> {
    engine: &'a Engine<L>,
    rest: &'a State<L>,
    hold: usize,
    starts: &'a [LaneState],
    steps: usize,
    controls: &'a [f64],
    /// Factors per lane; 0 if all mechanisms are the model's.
    factors: usize,
}

impl<L: Lane> Run<'_, L> {
    /// Takes up to `L::W` sequences to their ends. Lanes to spare repeat the last one, so that they take the same
    /// path through contacts and solver.
    fn block(&self, worker: &mut Worker<L>, out: Block<'_>) {
        let Worker { state: s, scratch: x } = worker;
        let Block { first, states, sensors, lived } = out;
        let (used, steps, nu) = (lived.len(), self.steps, s.ctrl.len());
        let (row, sense) = (states.len() / (used * steps), sensors.len() / (used * steps));
        s.vary.clear();
        s.vary.resize(self.factors, L::one());
        for lane in 0..L::W {
            let n = first + lane.min(used - 1);
            self.starts[if self.starts.len() == 1 { 0 } else { n }].scatter(s, lane);
        }
        lived.fill(0);
        let mut over = 0u32;
        for t in 0..steps {
            for lane in 0..L::W {
                let at = ((first + lane.min(used - 1)) * steps + t) * nu;
                let controls = &self.controls[at..at + nu];
                if over >> lane & 1 == 0 && !controls.iter().all(|c| c.is_finite()) {
                    over |= 1 << lane;
                    copy_lane(self.rest, 0, s, lane);
                }
                let going = over >> lane & 1 == 0;
                s.ctrl.iter_mut().zip(controls).for_each(|(to, &c)| to.set(lane, if going { c } else { 0.0 }));
            }
            self.engine.step(s, x, self.hold);
            if sense > 0 {
                self.engine.kinematics(s, x);
            }
            for lane in 0..L::W {
                if over >> lane & 1 == 0 && !sound(s, lane) {
                    over |= 1 << lane;
                    // a lane that is not finite would keep the solver of its whole block at work
                    copy_lane(self.rest, 0, s, lane);
                }
            }
            for lane in 0..used {
                let at = lane * steps + t;
                let (to, felt) = (&mut states[at * row..(at + 1) * row], &mut sensors[at * sense..(at + 1) * sense]);
                if over >> lane & 1 == 1 {
                    to.fill(f64::NAN);
                    felt.fill(f64::NAN);
                    continue;
                }
                lived[lane] = t + 1;
                let [qpos, qvel, act, ..] = fields(s);
                to.iter_mut().zip([qpos, qvel, act].into_iter().flatten()).for_each(|(to, v)| *to = v.get(lane));
                self.engine.sensors(x, lane, felt);
            }
        }
    }
}

/// All numbers are there and within bounds.
fn sound<L: Lane>(s: &State<L>, lane: usize) -> bool {
    [&s.qpos, &s.qvel, &s.act].into_iter().flatten().all(|v| v.get(lane).abs() < MAX_VALUE)
}

#[cfg(test)]
mod tests;
