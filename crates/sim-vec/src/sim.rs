//! The front of the crate: a task's name in, thousands of environments out.

use std::sync::Arc;

use rayon::ThreadPool;
use rollouts::{EnvSpec, SnapshotError, StepBuffers, StepOut, VecEnv};

use crate::SimError;
use crate::batch::Lanes;
use crate::builder::SimBuilder;
use crate::dispatch::{Isa, Precision};
use crate::lane_state::{Field, LaneState};
use crate::model::Model;
use crate::tasks::Task;
use crate::threads::within;

/// How to simulate, for those who keep settings as data; [`SimVec::builder`] knows more of them. All fields may be set
/// freely.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SimOptions {
    /// Environments, N.
    pub lanes: usize,
    /// f32 is twice as fast, f64 the parity mode.
    pub precision: Precision,
    /// See [`SimBuilder::stagger`].
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

/// Simulates a task of the registry in the pool that calls. Errors: those of [`SimBuilder::build`].
pub fn sim_vec(task: &str, options: SimOptions) -> Result<SimVec, SimError> {
    let SimOptions { lanes, precision, stagger, isa } = options;
    let builder = SimVec::builder(task).lanes(lanes).precision(precision).stagger(stagger);
    match isa {
        Some(isa) => builder.isa(isa).build(),
        None => builder.build(),
    }
}

/// N environments of one task on N lanes. See [`VecEnv`] for what it promises.
///
/// `reset`, `step`, `observe` and `reset_lanes` spread their work over the pool it was built with or, without one, the
/// rayon pool that calls (the global one from outside a pool). `step` does not allocate when called within a pool that
/// is no larger than the one before; called from outside the pool, rayon allocates a little now and then to hand the
/// work over.
pub struct SimVec {
    pub(crate) inner: Box<dyn Lanes>,
    pub(crate) pool: Option<Arc<ThreadPool>>,
    pub(crate) isa: Isa,
    pub(crate) precision: Precision,
}

impl SimVec {
    /// Environments of a task of the registry. An unknown name is an error of [`SimBuilder::build`].
    pub fn builder(task: &str) -> SimBuilder {
        SimBuilder::named(task)
    }

    /// Environments of a task of your own; [`crate::tasks::custom::CustomTask`] makes one of closures.
    pub fn builder_of(task: Arc<dyn Task>) -> SimBuilder {
        SimBuilder::new(Ok(task))
    }

    /// The instruction set it runs on.
    pub fn isa(&self) -> Isa {
        self.isa
    }

    /// The precision it runs in.
    pub fn precision(&self) -> Precision {
        self.precision
    }

    /// The mechanism.
    pub fn model(&self) -> &Arc<Model> {
        self.inner.model()
    }

    /// Buffers of the right sizes for [`VecEnv::reset`] and [`VecEnv::step`].
    pub fn buffers(&self) -> StepBuffers {
        StepBuffers::new(self.spec())
    }

    /// Copies a field of all lanes to `out`: `[N, length of the field]`. Errors: [`SimError::Length`].
    pub fn read(&self, field: Field, out: &mut [f64]) -> Result<(), SimError> {
        self.inner.read(field, out)
    }

    /// Sets a field of all lanes: `[N, length of the field]`. Numbers are taken as they are: quaternions are
    /// normalised when they are used, and a lane that is not finite ends in the next step, alone. Clocks, seeds and
    /// observations stay; [`SimVec::observe`] looks again. Errors: [`SimError::Length`], then nothing changed.
    pub fn write(&mut self, field: Field, values: &[f64]) -> Result<(), SimError> {
        self.inner.write(field, values)
    }

    /// The complete state of one lane. Errors: [`SimError::Lane`].
    pub fn state_of(&self, lane: usize) -> Result<LaneState, SimError> {
        self.inner.state_of(lane)
    }

    /// Sets the complete state of one lane; see [`SimVec::write`]. Errors: [`SimError::Lane`], and
    /// [`SimError::Length`] for the first field that does not fit; then nothing changed.
    pub fn set_state_of(&mut self, lane: usize, state: &LaneState) -> Result<(), SimError> {
        self.inner.set_state_of(lane, state)
    }

    /// Observes all lanes where they are, without a step. `obs`: `[N, O]`. Everything, forces of contacts included,
    /// is evaluated at the present state, while after a step sensors of forces still hold what that step began with.
    /// A lane that is not finite keeps its last finite observation. Errors: [`SimError::Length`].
    pub fn observe(&mut self, obs: &mut [f32]) -> Result<(), SimError> {
        let SimVec { inner, pool, .. } = self;
        within(pool.as_deref(), || inner.observe(obs))
    }

    /// Starts the listed lanes anew from their seeds and writes their rows of `obs`: `[N, O]`. All other lanes and
    /// rows stay bit for bit. A lane that is listed twice takes its last seed.
    ///
    /// Errors: [`SimError::Lane`], [`SimError::Length`]; then nothing changed.
    pub fn reset_lanes(&mut self, lanes: &[(usize, u64)], obs: &mut [f32]) -> Result<(), SimError> {
        let SimVec { inner, pool, .. } = self;
        within(pool.as_deref(), || inner.reset_lanes(lanes, obs))
    }
}

impl VecEnv for SimVec {
    fn spec(&self) -> EnvSpec {
        self.inner.spec()
    }
    fn reset(&mut self, seeds: &[u64], obs: &mut [f32]) {
        let SimVec { inner, pool, .. } = self;
        within(pool.as_deref(), || inner.reset(seeds, obs))
    }
    fn step(&mut self, action: &[f32], out: StepOut<'_>) {
        let SimVec { inner, pool, .. } = self;
        within(pool.as_deref(), || inner.step(action, out))
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
