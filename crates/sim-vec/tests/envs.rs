//! What every batch of environments promises, on every instruction set of this machine.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::sync::Arc;

use rollouts::conformance::check_vec_env;
use rollouts::{EnvSpec, Status, StepOut, VecEnv};
use sim_vec::dispatch::{Isa, Precision};
use sim_vec::mjcf;
use sim_vec::model::Model;
use sim_vec::rng::Rng;
use sim_vec::tasks::Task;
use sim_vec::view::View;
use sim_vec::{SimOptions, SimVec, sim_vec};

/// Counts the allocations of the thread that asks.
struct Counting;

thread_local! {
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
}

// SAFETY: every call is passed on to the system's allocator unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let _ = ALLOCATIONS.try_with(|n| n.set(n.get() + 1));
        // SAFETY: as above.
        unsafe { System.alloc(layout) }
    }
    unsafe fn dealloc(&self, p: *mut u8, layout: Layout) {
        // SAFETY: as above.
        unsafe { System.dealloc(p, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

struct Buffers {
    obs: Vec<f32>,
    reward: Vec<f32>,
    status: Vec<Status>,
    last_obs: Vec<f32>,
}

impl Buffers {
    fn new(s: EnvSpec) -> Self {
        Buffers {
            obs: vec![0.0; s.lanes * s.obs_dim],
            reward: vec![0.0; s.lanes],
            status: vec![Status::Running; s.lanes],
            last_obs: vec![0.0; s.lanes * s.obs_dim],
        }
    }

    fn reset(&mut self, env: &mut SimVec) {
        env.reset(&(0..env.spec().lanes as u64).collect::<Vec<_>>(), &mut self.obs);
    }

    fn step(&mut self, env: &mut SimVec, action: &[f32]) {
        let Buffers { obs, reward, status, last_obs } = self;
        env.step(action, StepOut { obs, reward, status, last_obs });
    }

    fn bits(&self) -> Vec<u32> {
        self.obs.iter().chain(&self.reward).chain(&self.last_obs).map(|x| x.to_bits()).collect()
    }
}

fn wave(s: EnvSpec, t: usize) -> Vec<f32> {
    (0..s.lanes * s.act_dim).map(|i| (0.7 * i as f32 + 1.3 * t as f32).sin()).collect()
}

fn sets() -> Vec<(Isa, Precision)> {
    let isas = [Isa::Avx512, Isa::Avx2, Isa::Portable].into_iter().filter(|i| i.available());
    isas.flat_map(|i| [(i, Precision::F32), (i, Precision::F64)]).collect()
}

fn pool(threads: usize) -> rayon::ThreadPool {
    rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap()
}

#[test]
fn every_domain_conforms_on_every_instruction_set() {
    for (isa, precision) in sets() {
        for task in ["cartpole-swingup", "hopper-hop", "reacher-easy", "finger-turn-hard"] {
            // a lane block and a part of one; the stagger makes episodes end within a few steps
            let options = SimOptions { precision, stagger: true, isa: Some(isa), lanes: 19 };
            check_vec_env(|| sim_vec(task, options).unwrap(), 40);
        }
    }
    for task in ["pendulum-swingup", "acrobot-swingup", "ball-in-cup-catch", "fish-swim", "cheetah-run", "walker-walk"]
    {
        let options = SimOptions { stagger: true, ..SimOptions::new(35) };
        check_vec_env(|| sim_vec(task, options).unwrap(), 40);
    }
    let options = SimOptions { stagger: true, ..SimOptions::new(17) };
    check_vec_env(|| sim_vec("humanoid-run", options).unwrap(), 40);
}

#[test]
fn thread_count_changes_no_bit() {
    for task in ["hopper-hop", "cheetah-run"] {
        let run = |threads: usize| {
            pool(threads).install(|| {
                let mut env = sim_vec(task, SimOptions { stagger: true, ..SimOptions::new(100) }).unwrap();
                let mut b = Buffers::new(env.spec());
                b.reset(&mut env);
                let mut bits = b.bits();
                for t in 0..40 {
                    let action = wave(env.spec(), t);
                    b.step(&mut env, &action);
                    bits.extend(b.bits());
                }
                bits
            })
        };
        assert!(run(1) == run(3), "{task}");
    }
}

#[test]
fn a_restored_batch_goes_on_to_the_same_bits_whatever_the_lane_width() {
    for task in ["hopper-hop", "finger-turn-easy", "fish-swim"] {
        restore_and_go_on(task);
    }
}

fn restore_and_go_on(task: &str) {
    let make = |isa| sim_vec(task, SimOptions { stagger: true, isa: Some(isa), ..SimOptions::new(37) }).unwrap();
    let mut env = make(Isa::detect());
    let mut b = Buffers::new(env.spec());
    b.reset(&mut env);
    for t in 0..30 {
        let action = wave(env.spec(), t);
        b.step(&mut env, &action);
    }
    let snapshot = env.snapshot();
    let mut other = make(Isa::detect());
    other.restore(&snapshot).unwrap();
    assert!(other.snapshot() == snapshot);
    let mut c = Buffers::new(env.spec());
    for t in 30..60 {
        let action = wave(env.spec(), t);
        b.step(&mut env, &action);
        c.step(&mut other, &action);
        assert!(b.bits() == c.bits(), "{task} step {t}");
    }
    // another width takes it as well; its last bits may differ
    make(Isa::Portable).restore(&snapshot).unwrap();
}

#[test]
fn snapshots_of_something_else_are_refused_and_change_nothing() {
    let mut env = sim_vec("hopper-hop", SimOptions::new(8)).unwrap();
    let mut b = Buffers::new(env.spec());
    b.reset(&mut env);
    let own = env.snapshot();
    for (task, lanes, precision) in
        [("hopper-stand", 8, Precision::F32), ("hopper-hop", 9, Precision::F32), ("hopper-hop", 8, Precision::F64)]
    {
        let other = sim_vec(task, SimOptions { precision, ..SimOptions::new(lanes) }).unwrap().snapshot();
        assert!(env.restore(&other).is_err(), "{task} {lanes} {precision:?}");
    }
    for cut in [0, 5, 40, own.len() - 1] {
        assert!(env.restore(&own[..cut]).is_err(), "cut at {cut}");
    }
    assert!(env.snapshot() == own);
}

#[test]
fn a_step_allocates_nothing() {
    // in a pool of one thread everything happens on the thread that counts
    for task in ["walker-run", "ball-in-cup-catch", "finger-turn-easy", "fish-swim", "reacher-hard"] {
        pool(1).install(|| step_without_allocating(task));
    }
}

fn step_without_allocating(task: &str) {
    let mut env = sim_vec(task, SimOptions { stagger: true, ..SimOptions::new(64) }).unwrap();
    let mut b = Buffers::new(env.spec());
    b.reset(&mut env);
    let actions: Vec<Vec<f32>> = (0..200).map(|t| wave(env.spec(), t)).collect();
    b.step(&mut env, &actions[0]);
    let before = ALLOCATIONS.get();
    let mut ended = 0;
    for action in &actions {
        b.step(&mut env, action);
        ended += b.status.iter().filter(|s| **s != Status::Running).count();
    }
    assert!(ended > 0, "episodes of {task} must end on the way");
    assert_eq!(ALLOCATIONS.get() - before, 0, "{task}");
}

/// The target that `finger-turn` observes stands still in space, at entries 9 and 10.
#[test]
fn a_goal_lasts_for_an_episode_and_is_a_lane_s_own() {
    let mut env = sim_vec("finger-turn-hard", SimOptions { stagger: true, ..SimOptions::new(40) }).unwrap();
    let (o, mut b) = (env.spec().obs_dim, Buffers::new(env.spec()));
    b.reset(&mut env);
    let goals = |obs: &[f32]| -> Vec<[f32; 2]> { obs.chunks(o).map(|row| [row[9], row[10]]).collect() };
    let mut before = goals(&b.obs);
    let mut distinct: Vec<_> = before.iter().map(|g| g.map(f32::to_bits)).collect();
    distinct.sort_unstable();
    distinct.dedup();
    assert_eq!(distinct.len(), 40);
    let mut ended = 0;
    for t in 0..100 {
        let action = wave(env.spec(), t);
        b.step(&mut env, &action);
        let (last, now) = (goals(&b.last_obs), goals(&b.obs));
        for lane in 0..40 {
            assert_eq!(last[lane], before[lane], "step {t} lane {lane}");
            assert_eq!(now[lane] == before[lane], b.status[lane] == Status::Running, "step {t} lane {lane}");
            ended += usize::from(b.status[lane] != Status::Running);
        }
        before = now;
    }
    assert!(ended > 0, "episodes must end on the way");
}

/// A point on a rail that is pushed to infinity by one control value.
struct Fragile(Arc<Model>);

impl Fragile {
    fn task() -> Arc<dyn Task> {
        let xml = r#"<mujoco><option timestep="0.01"/><worldbody><body><joint name="x" type="slide" axis="1 0 0"/>
            <geom size="0.1"/></body></worldbody>
            <actuator><motor joint="x" gear="1e25" ctrlrange="-1 1"/></actuator></mujoco>"#;
        Arc::new(Fragile(Arc::new(mjcf::parse(xml, "rail.xml").unwrap())))
    }
}

impl Task for Fragile {
    fn name(&self) -> &str {
        "fragile"
    }
    fn model(&self) -> &Arc<Model> {
        &self.0
    }
    fn substeps(&self) -> usize {
        1
    }
    fn episode_steps(&self) -> usize {
        1000
    }
    fn obs_dim(&self) -> usize {
        2
    }
    fn start(&self, rng: &mut Rng, qpos: &mut [f64], _: &mut [f64], _: &mut [f64]) {
        qpos[0] = rng.uniform(-1.0, 1.0);
    }
    fn observe(&self, view: &View, obs: &mut [f64]) {
        obs.copy_from_slice(&[view.qpos[0], view.qvel[0]]);
    }
    fn reward(&self, _: &View) -> f64 {
        1.0
    }
}

#[test]
fn a_lane_that_turns_non_finite_ends_alone_and_is_counted() {
    for (isa, precision) in sets() {
        let mut env = SimVec::builder_of(Fragile::task()).lanes(20).precision(precision).isa(isa).build().unwrap();
        let mut b = Buffers::new(env.spec());
        b.reset(&mut env);
        let start = b.obs.clone();
        let mut action = vec![0.0; 20];
        action[3] = 1.0;
        b.step(&mut env, &action);
        for lane in 0..20 {
            let row = 2 * lane..2 * lane + 2;
            if lane == 3 {
                assert_eq!((b.status[lane], b.reward[lane]), (Status::Terminated, 0.0), "{isa} {precision:?}");
                assert_eq!(b.last_obs[row.clone()], start[row.clone()], "the last finite observation");
                assert_ne!(b.obs[row.clone()], start[row], "a fresh start");
            } else {
                assert_eq!((b.status[lane], b.reward[lane]), (Status::Running, 1.0), "{isa} {precision:?} lane {lane}");
                assert_eq!(b.obs[row.clone()], start[row], "a lane at rest stays");
            }
        }
        assert!(b.obs.iter().chain(&b.last_obs).all(|x| x.is_finite()));
        assert_eq!(env.non_finite_lanes(), 1);
    }
}

/// Noise and full swings alternate: what an untrained policy does, and the hardest a trained one can.
#[test]
fn no_task_turns_non_finite_under_random_and_bang_bang_actions() {
    for info in sim_vec::registry::tasks().iter().filter(|t| t.status == sim_vec::registry::TaskStatus::Exact) {
        let mut env = sim_vec(info.name, SimOptions { stagger: true, ..SimOptions::new(128) }).unwrap();
        let spec = env.spec();
        let mut b = Buffers::new(spec);
        b.reset(&mut env);
        let mut rng = Rng::episode(7, 0);
        for t in 0..400 {
            let bang = t / 50 % 2 == 1;
            let action: Vec<f32> = (0..spec.lanes * spec.act_dim)
                .map(|_| rng.uniform(-1.0, 1.0) as f32)
                .map(|a| if bang { a.signum() } else { a })
                .collect();
            b.step(&mut env, &action);
            assert!(b.obs.iter().chain(&b.reward).all(|x| x.is_finite()), "{} step {t}", info.name);
            assert!(b.reward.iter().all(|r| (0.0..=1.0).contains(r)), "{} step {t}: {:?}", info.name, b.reward);
        }
        assert_eq!(env.non_finite_lanes(), 0, "{}", info.name);
    }
}

#[test]
fn actions_beyond_the_range_or_not_finite_are_tamed() {
    let mut env = sim_vec("cheetah-run", SimOptions::new(16)).unwrap();
    let mut b = Buffers::new(env.spec());
    b.reset(&mut env);
    let n = 16 * env.spec().act_dim;
    let snapshot = env.snapshot();
    b.step(&mut env, &vec![1.0; n]);
    let full = b.bits();
    env.restore(&snapshot).unwrap();
    b.step(&mut env, &vec![1e30; n]);
    assert!(b.bits() == full);
    env.restore(&snapshot).unwrap();
    b.step(&mut env, &vec![0.0; n]);
    let none = b.bits();
    env.restore(&snapshot).unwrap();
    b.step(&mut env, &vec![f32::NAN; n]);
    assert!(b.bits() == none);
}
