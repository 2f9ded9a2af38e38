//! Settings of a batch of environments, one call each.

use std::sync::Arc;

use rayon::ThreadPool;

use crate::batch::{Batch, BatchOptions, Lanes, Ranges};
use crate::dispatch::{Isa, LaneVisitor, Precision, with_lane};
use crate::lane::Lane;
use crate::tasks::Task;
use crate::threads::{pool, within};
use crate::{SimError, SimVec, registry};

/// Builds a [`SimVec`]; see [`SimVec::builder`]. What is not set stays as its method says.
#[must_use = "nothing is simulated before `build`"]
pub struct SimBuilder {
    task: Result<Arc<dyn Task>, SimError>,
    lanes: usize,
    precision: Precision,
    isa: Option<Isa>,
    threads: Threads,
    step: Option<Step>,
    episode_steps: Option<usize>,
    stagger: bool,
    vary: Option<Ranges>,
}

enum Threads {
    Calling,
    Own(usize),
    Shared(Arc<ThreadPool>),
}

enum Step {
    Substeps(usize),
    Seconds(f64),
}

impl SimBuilder {
    pub(crate) fn new(task: Result<Arc<dyn Task>, SimError>) -> Self {
        SimBuilder {
            task,
            lanes: 1,
            precision: Precision::F32,
            isa: None,
            threads: Threads::Calling,
            step: None,
            episode_steps: None,
            stagger: false,
            vary: None,
        }
    }

    pub(crate) fn named(task: &str) -> Self {
        Self::new(registry::build(task))
    }

    /// Environments, N. Default: 1. Best a multiple of the lane width (16 with AVX-512 in f32): the rest is idle.
    pub fn lanes(mut self, lanes: usize) -> Self {
        self.lanes = lanes;
        self
    }

    /// f32, the default, is twice as fast; f64 is the parity mode.
    pub fn precision(mut self, precision: Precision) -> Self {
        self.precision = precision;
        self
    }

    /// Instruction set. Default: what `PHALANX_ISA` names, or else the widest this machine has.
    pub fn isa(mut self, isa: Isa) -> Self {
        self.isa = Some(isa);
        self
    }

    /// Runs in a pool of so many threads of its own; with one, in the thread that calls. Default: in the rayon pool that calls, the global one from
    /// outside a pool. No bit depends on it.
    pub fn threads(mut self, threads: usize) -> Self {
        self.threads = Threads::Own(threads);
        self
    }

    /// Runs in this pool, which others may use as well; [`crate::threads::pool`] makes one.
    pub fn pool(mut self, pool: Arc<ThreadPool>) -> Self {
        self.threads = Threads::Shared(pool);
        self
    }

    /// Physics steps in a control step. Default: the task's.
    pub fn substeps(mut self, substeps: usize) -> Self {
        self.step = Some(Step::Substeps(substeps));
        self
    }

    /// Control step in seconds, a multiple of the model's time step. Default: the task's.
    pub fn control_step(mut self, seconds: f64) -> Self {
        self.step = Some(Step::Seconds(seconds));
        self
    }

    /// Control steps after which an episode is truncated. Default: the task's.
    pub fn episode_steps(mut self, steps: usize) -> Self {
        self.episode_steps = Some(steps);
        self
    }

    /// Begins each lane's first episode after a reset at a random phase of its clock, so that later on the lanes are
    /// not all truncated in the same step. The states themselves start as usual; only the first episode is shorter.
    /// Default: no.
    pub fn stagger(mut self, stagger: bool) -> Self {
        self.stagger = stagger;
        self
    }

    /// Draws factors on masses, damping, actuator strength, friction and gravity anew for every lane and episode.
    /// Default: every lane is as the model says.
    pub fn vary(mut self, ranges: Ranges) -> Self {
        self.vary = Some(ranges);
        self
    }

    /// Takes memory for all lanes and threads and, if asked, starts the threads.
    ///
    /// Errors: [`SimError::UnknownTask`] with the nearest names, [`SimError::Planned`]; [`SimError::Engine`] if the
    /// engine cannot take the model or the machine lacks the instruction set; [`SimError::Nothing`] if there are no
    /// lanes, observations, actuators, physics steps or episode steps; [`SimError::ControlStep`]; [`SimError::Range`];
    /// [`SimError::Threads`].
    pub fn build(self) -> Result<SimVec, SimError> {
        let task = self.task?;
        let substeps = match self.step {
            None => task.substeps(),
            Some(Step::Substeps(n)) => n,
            Some(Step::Seconds(s)) => substeps(&*task, s)?,
        };
        let options = BatchOptions {
            lanes: self.lanes,
            stagger: self.stagger,
            substeps,
            episode_steps: self.episode_steps.unwrap_or(task.episode_steps()),
            vary: self.vary,
            serial: matches!(self.threads, Threads::Own(1)),
        };
        let pool = match self.threads {
            Threads::Calling => None,
            Threads::Own(1) => None,
            Threads::Own(n) => Some(pool(n)?),
            Threads::Shared(pool) => Some(pool),
        };
        let (isa, precision) = (Isa::choose(self.isa)?, self.precision);
        let inner = within(pool.as_deref(), || with_lane(isa, precision, Build(task, options)))?;
        Ok(SimVec { inner, pool, isa, precision })
    }
}

struct Build(Arc<dyn Task>, BatchOptions);

impl LaneVisitor for Build {
    type Out = Result<Box<dyn Lanes>, SimError>;
    fn visit<L: Lane>(self) -> Self::Out {
        Ok(Box::new(Batch::<L>::new(self.0, self.1)?))
    }
}

/// Physics steps in `seconds`, which must be a whole number of them to a millionth of one.
fn substeps(task: &dyn Task, seconds: f64) -> Result<usize, SimError> {
    let timestep = task.model().opt.timestep;
    let steps = seconds / timestep;
    if steps >= 0.5 && steps < u32::MAX as f64 && (steps - steps.round()).abs() < 1e-6 {
        return Ok(steps.round() as usize);
    }
    Err(SimError::ControlStep { task: task.name().into(), seconds, timestep })
}
