//! Thousands of environments of one task: blocks of lanes, spread over threads.
//!
//! A block of `L::W` lanes is the unit of work: one thread takes it through all physics steps of a control step,
//! its observations and its rewards, while its scratch memory is in cache. Lanes whose episode ended are then
//! gathered into fresh blocks, so that drawing and settling a start costs a lane's share of a block and not a whole
//! one. No lane's numbers depend on its position, its neighbours or the thread that happened to run it.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rayon::prelude::*;
use rollouts::{EnvSpec, SnapshotError, Status, StepOut, VecEnv};

use crate::SimError;
use crate::engine::{Engine, Scratch, State};
use crate::lane::Lane;
use crate::lane_state::MAX_VALUE;
use crate::rng::Rng;
use crate::tasks::Task;
use crate::view::View;

mod access;
mod ahead;
mod snapshot;
mod start;
mod vary;

pub(crate) use access::Lanes;
use ahead::Ahead;
use start::Fresh;
pub use vary::Ranges;
use vary::varied;

/// Episode number whose random stream gives a lane's initial phase.
const PHASE_STREAM: u64 = u64::MAX;

/// Sizes and clock of a batch. All fields may be set freely.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BatchOptions {
    /// Environments, N.
    pub lanes: usize,
    /// The first episode after a reset begins at a random phase, so that lanes are not truncated all at once.
    pub stagger: bool,
    /// Physics steps in a control step.
    pub substeps: usize,
    /// Control steps after which an episode is truncated.
    pub episode_steps: usize,
    /// How lanes differ from the model, if they do.
    pub vary: Option<Ranges>,
    /// All work is done by the thread that calls, without a pool and what handing work to one costs.
    pub serial: bool,
}

impl BatchOptions {
    /// `lanes` environments in step with one another, with the task's clock.
    pub fn new(task: &dyn Task, lanes: usize) -> Self {
        BatchOptions {
            lanes,
            stagger: false,
            substeps: task.substeps(),
            episode_steps: task.episode_steps(),
            vary: None,
            serial: false,
        }
    }
}

/// Where a lane is in its life.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Record {
    /// Fixes all its episodes.
    seed: u64,
    /// Episodes begun since the seed was given, minus one.
    episode: u64,
    /// Control steps taken in this episode.
    clock: u32,
}

/// `L::W` environments (the last block may use fewer).
struct Block<L> {
    state: State<L>,
    /// One per lane in use.
    records: Vec<Record>,
    /// `[lanes in use, G]` what their episodes are about.
    goals: Vec<f64>,
    /// Lanes whose episode ended in the current step, as bits.
    ended: u32,
    /// Lanes that turned non-finite in the current step.
    bad: u64,
}

/// What one thread works with.
struct Worker<L: Lane> {
    scratch: Scratch<L>,
    view: View,
    /// `[O]`
    obs: Vec<f64>,
    /// Starts being tried out.
    trial: State<L>,
    qpos: Vec<f64>,
    qvel: Vec<f64>,
    rngs: Vec<Rng>,
}

/// What all threads read.
struct Shared<L: Lane> {
    task: Arc<dyn Task>,
    engine: Engine<L>,
    /// `[A]` middle and half width of each control's range.
    range: Vec<[f64; 2]>,
    obs_dim: usize,
    goal_dim: usize,
    substeps: usize,
    steps: u32,
    stagger: bool,
    vary: Option<Ranges>,
    /// Least number of blocks that a thread takes at once.
    least: usize,
}

/// All environments of a task in lanes of type `L`. Implements [`VecEnv`]; see [`crate::SimVec`] for the front.
pub struct Batch<L: Lane> {
    shared: Shared<L>,
    lanes: usize,
    blocks: Vec<Block<L>>,
    fresh: Vec<Fresh<L>>,
    /// By block.
    ahead: Vec<Ahead<L>>,
    workers: Vec<Mutex<Worker<L>>>,
    /// Lanes that start an episode in this call.
    queue: Vec<u32>,
    /// Lanes for which a start is drawn in this call: those that need it now, then those that will.
    drawn: Vec<u32>,
    /// `[N, O]` last finite observation of each lane.
    held: Vec<f32>,
    non_finite: u64,
}

impl<L: Lane> Batch<L> {
    /// Environments of a task. Errors: [`SimError::Engine`], or [`SimError::Nothing`] if there are no lanes,
    /// observations, actions or steps.
    pub fn new(task: Arc<dyn Task>, options: BatchOptions) -> Result<Self, SimError> {
        let BatchOptions { lanes, stagger, substeps, episode_steps, vary, serial } = options;
        let model = task.model().clone();
        let (obs_dim, act_dim, goal_dim) = (task.obs_dim(), model.nu(), task.goal_dim());
        let counts = [
            (lanes, "lanes"),
            (obs_dim, "observations"),
            (act_dim, "actuators"),
            (substeps, "physics steps"),
            (episode_steps, "episode steps"),
        ];
        if let Some((_, what)) = counts.into_iter().find(|&(n, _)| n == 0) {
            return Err(SimError::Nothing { task: task.name().into(), what });
        }
        vary.map_or(Ok(()), |v| v.check())?;
        let engine = Engine::<L>::new(model.clone())?;
        let state = || varied(engine.state(), &model, vary);
        let range = model.actuators.iter().map(|a| match a.ctrl_range {
            Some([low, high]) => [0.5 * (low + high), 0.5 * (high - low)],
            None => [0.0, 1.0],
        });
        let blocks = (0..lanes.div_ceil(L::W)).map(|b| {
            let used = L::W.min(lanes - b * L::W);
            Block {
                state: state(),
                records: vec![Record::default(); used],
                goals: vec![0.0; used * goal_dim],
                ended: 0,
                bad: 0,
            }
        });
        let blocks: Vec<_> = blocks.collect();
        let fresh = (0..blocks.len()).map(|_| Fresh::new(state(), obs_dim, goal_dim)).collect();
        let ahead = (0..blocks.len()).map(|_| Ahead::new(state(), obs_dim, goal_dim)).collect();
        let mut batch = Batch {
            lanes,
            blocks,
            fresh,
            ahead,
            workers: Vec::new(),
            queue: Vec::with_capacity(lanes),
            drawn: Vec::with_capacity(lanes),
            held: vec![0.0; lanes * obs_dim],
            non_finite: 0,
            shared: Shared {
                range: range.collect(),
                obs_dim,
                goal_dim,
                substeps,
                steps: episode_steps.min(u32::MAX as usize) as u32,
                stagger,
                vary,
                least: if serial { usize::MAX } else { 1 },
                engine,
                task,
            },
        };
        batch.staff();
        Ok(batch)
    }

    /// One worker per thread of the pool that is calling. Allocates only when the pool has grown.
    fn staff(&mut self) {
        let Shared { task, engine, obs_dim, vary, .. } = &self.shared;
        while self.workers.len() < rayon::current_num_threads() {
            self.workers.push(Mutex::new(Worker {
                scratch: engine.scratch(),
                view: View::of(&**task),
                obs: vec![0.0; *obs_dim],
                trial: varied(engine.state(), task.model(), *vary),
                qpos: vec![0.0; task.model().nq],
                qvel: vec![0.0; task.model().nv()],
                rngs: Vec::with_capacity(L::W),
            }));
        }
    }

    /// Starts an episode in every lane of the queue and writes its first observation. `obs`: `[N, O]`.
    fn start(&mut self, obs: &mut [f32]) {
        let Batch { shared, blocks, fresh, ahead, workers, queue, drawn, held, .. } = self;
        let (o, g) = (shared.obs_dim, shared.goal_dim);
        drawn.clear();
        for &n in queue.iter() {
            let (block, lane) = (n as usize / L::W, n as usize % L::W);
            if ahead[block].has(lane) {
                let row = n as usize * o..(n as usize + 1) * o;
                ahead[block].begin(lane, &mut blocks[block], &mut obs[row.clone()]);
                held[row.clone()].copy_from_slice(&obs[row]);
            } else {
                drawn.push(n);
            }
        }
        let now = drawn.len();
        if now == 0 {
            return;
        }
        let threads = if shared.least > 1 { 1 } else { rayon::current_num_threads() };
        foresee(blocks, ahead, queue, drawn, L::W * threads);
        for (group, lanes) in fresh.iter_mut().zip(drawn.chunks(L::W)) {
            group.take(lanes.iter().map(|&n| {
                let record = blocks[n as usize / L::W].records[n as usize % L::W];
                if queue.binary_search(&n).is_ok() { record } else { ahead::next(record) }
            }));
        }
        let groups = drawn.len().div_ceil(L::W);
        fresh[..groups]
            .par_iter_mut()
            .with_min_len(shared.least)
            .for_each(|group| group.draw(shared, &mut worker(workers)));
        for (i, &n) in drawn.iter().enumerate() {
            let (n, group, from) = (n as usize, &fresh[i / L::W], i % L::W);
            let (block, lane) = (n / L::W, n % L::W);
            ahead[block].keep(lane, group, from, o, g);
            if i < now {
                let row = n * o..(n + 1) * o;
                ahead[block].begin(lane, &mut blocks[block], &mut obs[row.clone()]);
                held[row.clone()].copy_from_slice(&obs[row]);
            }
        }
    }
}

/// Fills `drawn` up to a multiple of `size`, a group for every thread, with lanes whose next start is not there yet,
/// the ones nearest to their end first.
fn foresee<L: Lane>(blocks: &[Block<L>], ahead: &[Ahead<L>], queue: &[u32], drawn: &mut Vec<u32>, size: usize) {
    let now = drawn.len();
    let room = now.next_multiple_of(size) - now;
    if room == 0 {
        return;
    }
    for (b, block) in blocks.iter().enumerate() {
        for lane in (0..block.records.len()).filter(|&lane| !ahead[b].has(lane)) {
            let n = (b * L::W + lane) as u32;
            if queue.binary_search(&n).is_err() {
                drawn.push(n);
            }
        }
    }
    let later = &mut drawn[now..];
    if later.len() > room {
        let clock = |n: &u32| blocks[*n as usize / L::W].records[*n as usize % L::W].clock;
        later.select_nth_unstable_by_key(room, |n| (std::cmp::Reverse(clock(n)), *n));
        drawn.truncate(now + room);
    }
}

/// The calling thread's own worker. Nobody else asks for it: indices are unique within a pool and work items never
/// yield to the pool while they hold it.
fn worker<L: Lane>(workers: &[Mutex<Worker<L>>]) -> MutexGuard<'_, Worker<L>> {
    workers[rayon::current_thread_index().unwrap_or(0)].lock().unwrap_or_else(PoisonError::into_inner)
}

/// The rows of one block in the caller's buffers.
struct Rows<'a> {
    action: &'a [f32],
    obs: &'a mut [f32],
    reward: &'a mut [f32],
    status: &'a mut [Status],
    last_obs: &'a mut [f32],
    held: &'a mut [f32],
}

impl<L: Lane> Shared<L> {
    /// A lane that has just been given its seed.
    fn begin(&self, seed: u64) -> Record {
        let phase = || Rng::episode(seed, PHASE_STREAM).bits() % self.steps as u64;
        Record { seed, episode: 0, clock: if self.stagger { phase() as u32 } else { 0 } }
    }

    /// One control step of a block, up to but without the start of new episodes.
    fn advance(&self, block: &mut Block<L>, worker: &mut Worker<L>, rows: Rows<'_>) {
        let (o, g, acts) = (self.obs_dim, self.goal_dim, self.range.len());
        for (lane, action) in rows.action.chunks_exact(acts).enumerate() {
            for (k, (&a, &[middle, half])) in action.iter().zip(&self.range).enumerate() {
                let a = if a.is_finite() { a.clamp(-1.0, 1.0) as f64 } else { 0.0 };
                block.state.ctrl[k].set(lane, middle + half * a);
            }
        }
        self.engine.step(&mut block.state, &mut worker.scratch, self.substeps);
        self.engine.kinematics(&block.state, &mut worker.scratch);
        (block.ended, block.bad) = (0, 0);
        for lane in 0..block.records.len() {
            let row = lane * o..(lane + 1) * o;
            let (last, held) = (&mut rows.last_obs[row.clone()], &mut rows.held[row.clone()]);
            self.engine.view(&block.state, &worker.scratch, lane, &mut worker.view);
            worker.view.goal.copy_from_slice(&block.goals[lane * g..(lane + 1) * g]);
            let clock = &mut block.records[lane].clock;
            *clock += 1;
            (rows.reward[lane], rows.status[lane]) = match self.judge(worker, last) {
                Some((reward, true)) => (reward, Status::Terminated),
                Some((reward, false)) if *clock >= self.steps => (reward, Status::Truncated),
                Some((reward, false)) => (reward, Status::Running),
                None => {
                    block.bad += 1;
                    last.copy_from_slice(held);
                    (0.0, Status::Terminated)
                }
            };
            if rows.status[lane] == Status::Running {
                held.copy_from_slice(last);
                rows.obs[row].copy_from_slice(last);
            } else {
                block.ended |= 1 << lane;
            }
        }
    }

    /// Observation (written to `obs`), reward and termination of the worker's view; `None` if anything is not finite.
    fn judge(&self, worker: &mut Worker<L>, obs: &mut [f32]) -> Option<(f32, bool)> {
        let Worker { view, obs: wide, .. } = worker;
        if !view.qpos.iter().chain(&view.qvel).all(|x| x.abs() < MAX_VALUE) {
            return None;
        }
        self.task.observe(view, wide);
        let reward = self.task.reward(view) as f32;
        let mut finite = reward.is_finite();
        for (to, &x) in obs.iter_mut().zip(wide.iter()) {
            *to = x as f32;
            finite &= to.is_finite();
        }
        finite.then(|| (reward, self.task.terminated(view)))
    }
}

impl<L: Lane> VecEnv for Batch<L> {
    fn spec(&self) -> EnvSpec {
        let Shared { task, range, obs_dim, substeps, steps, .. } = &self.shared;
        EnvSpec {
            lanes: self.lanes,
            obs_dim: *obs_dim,
            act_dim: range.len(),
            dt_s: task.model().opt.timestep * *substeps as f64,
            episode_steps: *steps as usize,
        }
    }

    fn reset(&mut self, seeds: &[u64], obs: &mut [f32]) {
        assert_eq!(seeds.len(), self.lanes, "one seed per lane");
        assert_eq!(obs.len(), self.held.len(), "observations are [lanes, obs_dim]");
        self.staff();
        self.ahead.iter_mut().for_each(|a| a.ready = 0);
        for (block, seeds) in self.blocks.iter_mut().zip(seeds.chunks(L::W)) {
            for (record, &seed) in block.records.iter_mut().zip(seeds) {
                *record = self.shared.begin(seed);
            }
        }
        self.queue.clear();
        self.queue.extend(0..self.lanes as u32);
        self.start(obs);
    }

    fn step(&mut self, action: &[f32], out: StepOut<'_>) {
        let EnvSpec { lanes, obs_dim, act_dim, .. } = self.spec();
        assert_eq!(action.len(), lanes * act_dim, "actions are [lanes, act_dim]");
        assert_eq!(out.obs.len(), lanes * obs_dim, "observations are [lanes, obs_dim]");
        assert_eq!(out.last_obs.len(), lanes * obs_dim, "last observations are [lanes, obs_dim]");
        assert_eq!((out.reward.len(), out.status.len()), (lanes, lanes), "rewards and statuses are [lanes]");
        self.staff();
        let (shared, workers) = (&self.shared, &self.workers);
        (
            self.blocks.par_iter_mut(),
            action.par_chunks(L::W * act_dim),
            out.obs.par_chunks_mut(L::W * obs_dim),
            out.reward.par_chunks_mut(L::W),
            out.status.par_chunks_mut(L::W),
            out.last_obs.par_chunks_mut(L::W * obs_dim),
            self.held.par_chunks_mut(L::W * obs_dim),
        )
            .into_par_iter()
            .with_min_len(shared.least)
            .for_each(|(block, action, obs, reward, status, last_obs, held)| {
                let rows = Rows { action, obs, reward, status, last_obs, held };
                shared.advance(block, &mut worker(workers), rows);
            });
        self.queue.clear();
        for (b, block) in self.blocks.iter_mut().enumerate() {
            self.non_finite += block.bad;
            for (lane, record) in block.records.iter_mut().enumerate().filter(|(lane, _)| block.ended >> lane & 1 == 1)
            {
                *record = ahead::next(*record);
                self.queue.push((b * L::W + lane) as u32);
            }
        }
        if !self.queue.is_empty() {
            self.start(out.obs);
        }
    }

    fn non_finite_lanes(&self) -> u64 {
        self.non_finite
    }

    fn snapshot(&self) -> Vec<u8> {
        self.write_snapshot()
    }

    fn restore(&mut self, snapshot: &[u8]) -> Result<(), SnapshotError> {
        self.read_snapshot(snapshot)
    }
}
