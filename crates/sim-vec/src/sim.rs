//! The front of the crate: a task's name in, thousands of environments out.

use std::sync::Arc;

use rollouts::{EnvSpec, SnapshotError, StepOut, VecEnv};

use crate::SimError;
use crate::batch::Batch;
use crate::dispatch::{Isa, LaneVisitor, Precision, with_lane};
use crate::lane::Lane;
use crate::registry;
use crate::tasks::Task;

/// How to simulate. All fields may be set freely.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SimOptions {
    /// Environments, N.
    pub lanes: usize,
    /// f32 is twice as fast, f64 the parity mode.
    pub precision: Precision,
    /// Begin each lane's first episode after a reset at a random phase of its clock, so that later on the lanes are
    /// not all truncated in the same step. The states themselves start as usual; only the first episode is shorter.
    pub stagger: bool,
    /// Instruction set; `None` takes what `PHALANX_ISA` names or else the widest this machine has.
    pub isa: Option<Isa>,
}

impl SimOptions {
    /// `lanes` environments in f32, in step with one another, on the widest instruction set.
    pub fn new(lanes: usize) -> Self {
        SimOptions { lanes, precision: Precision::F32, stagger: false, isa: None }
    }
}

/// N environments of one task on N lanes. See [`VecEnv`] for what it promises.
///
/// Work is spread over the rayon pool that calls (the global one from outside a pool). `step` does not allocate when
/// called within a pool that is no larger than the one before; rayon itself may when called from outside one.
pub struct SimVec {
    inner: Box<dyn VecEnv + Send>,
    isa: Isa,
    precision: Precision,
}

/// Simulates a task of the registry.
///
/// Errors: [`SimError::UnknownTask`] with the nearest names, [`SimError::Planned`], and those of [`sim_vec_of`].
pub fn sim_vec(task: &str, options: SimOptions) -> Result<SimVec, SimError> {
    sim_vec_of(registry::build(task)?, options)
}

/// Simulates a task of your own.
///
/// Errors: [`SimError::Engine`] if the engine cannot take the model or the machine lacks the instruction set,
/// [`SimError::Nothing`] if there are no lanes, observations or actuators.
pub fn sim_vec_of(task: Arc<dyn Task>, options: SimOptions) -> Result<SimVec, SimError> {
    struct Build(Arc<dyn Task>, SimOptions);
    impl LaneVisitor for Build {
        type Out = Result<Box<dyn VecEnv + Send>, SimError>;
        fn visit<L: Lane>(self) -> Self::Out {
            Ok(Box::new(Batch::<L>::new(self.0, self.1.lanes, self.1.stagger)?))
        }
    }
    let isa = Isa::choose(options.isa)?;
    let inner = with_lane(isa, options.precision, Build(task, options))?;
    Ok(SimVec { inner, isa, precision: options.precision })
}

impl SimVec {
    /// The instruction set it runs on.
    pub fn isa(&self) -> Isa {
        self.isa
    }

    /// The precision it runs in.
    pub fn precision(&self) -> Precision {
        self.precision
    }
}

impl VecEnv for SimVec {
    fn spec(&self) -> EnvSpec {
        self.inner.spec()
    }
    fn reset(&mut self, seeds: &[u64], obs: &mut [f32]) {
        self.inner.reset(seeds, obs)
    }
    fn step(&mut self, action: &[f32], out: StepOut<'_>) {
        self.inner.step(action, out)
    }
    fn non_finite_lanes(&self) -> u64 {
        self.inner.non_finite_lanes()
    }
    fn snapshot(&self) -> Vec<u8> {
        self.inner.snapshot()
    }
    fn restore(&mut self, snapshot: &[u8]) -> Result<(), SnapshotError> {
        self.inner.restore(snapshot)
    }
}
