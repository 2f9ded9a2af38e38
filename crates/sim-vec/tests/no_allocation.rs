//! Steps and rollouts within a pool allocate nothing on any thread. Alone in its binary: it replaces the allocator.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use sim_vec::rollout::{LaneState, Rollout, RolloutOptions, RolloutOut};
use sim_vec::tasks::custom::CustomTask;
use sim_vec::{Field, SimVec, Status, VecEnv, mjcf};

/// Counts allocations of the threads that work, while it is told to. The test harness has a thread of its own.
struct Counting;

thread_local! {
    static WORKS: Cell<bool> = const { Cell::new(false) };
}

static ARMED: AtomicBool = AtomicBool::new(false);
static ALLOCATIONS: AtomicU64 = AtomicU64::new(0);

// SAFETY: every call is passed on to the system's allocator unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if ARMED.load(Ordering::Relaxed) && WORKS.try_with(Cell::get).unwrap_or(false) {
            ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
        }
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

fn allocations(work: impl FnOnce()) -> u64 {
    ALLOCATIONS.store(0, Ordering::SeqCst);
    ARMED.store(true, Ordering::SeqCst);
    work();
    ARMED.store(false, Ordering::SeqCst);
    ALLOCATIONS.load(Ordering::SeqCst)
}

/// A beetle that stumbles over loose things: contacts of all shapes, elliptic cones, limits, dry friction, tendons,
/// actuators of several kinds and sensors of everything.
const BEETLE: &str = r#"<mujoco model="beetle">
  <option timestep="0.004" cone="elliptic"/>
  <worldbody>
    <geom name="ground" type="plane" size="5 5 .1"/>
    <body name="shell" pos="0 0 .4">
      <freejoint/>
      <geom type="box" size=".15 .1 .05" mass="2"/>
      <site name="imu" size=".02"/>
      <body name="thigh" pos=".15 0 0">
        <joint name="hip" axis="0 1 0" range="-60 60" damping=".1"/>
        <geom type="capsule" fromto="0 0 0 .2 0 0" size=".03" mass=".3"/>
        <body name="shin" pos=".2 0 0">
          <joint name="knee" axis="0 1 0" range="-90 90" frictionloss=".05"/>
          <geom type="capsule" fromto="0 0 0 0 0 -.3" size=".03" mass=".2"/>
          <site name="tip" pos="0 0 -.3" size=".05"/>
        </body>
      </body>
    </body>
    <body pos=".5 .1 .2"><freejoint/><geom type="sphere" size=".1" mass=".5" condim="6"/></body>
    <body pos="-.4 0 .2"><freejoint/><geom type="box" size=".1 .08 .06" mass=".5"/></body>
    <body pos="0 .5 .2"><freejoint/><geom type="cylinder" size=".1 .08" mass=".5"/></body>
    <body pos="0 -.5 .2"><freejoint/><geom type="ellipsoid" size=".1 .08 .06" mass=".5" condim="4"/></body>
  </worldbody>
  <tendon>
    <fixed name="gear" limited="true" range="-1 1"><joint joint="hip" coef="1"/><joint joint="knee" coef="-.5"/></fixed>
    <spatial name="band" stiffness="20" damping=".2"><site site="imu"/><site site="tip"/></spatial>
  </tendon>
  <actuator>
    <motor joint="hip" gear="20" ctrlrange="-1 1"/>
    <position joint="knee" kp="5" ctrlrange="-1 1"/>
    <motor tendon="gear" gear="2" ctrlrange="-1 1"/>
  </actuator>
  <sensor>
    <touch site="tip"/> <accelerometer site="imu"/> <gyro site="imu"/> <velocimeter site="imu"/>
    <rangefinder site="tip"/> <jointpos joint="hip"/>
    <tendonpos tendon="band"/> <tendonvel tendon="gear"/> <framepos objtype="site" objname="tip"/>
    <framequat objtype="body" objname="shell"/> <subtreecom body="shell"/> <subtreeangmom body="shell"/>
  </sensor>
</mujoco>"#;

fn beetle() -> SimVec {
    let model = Arc::new(mjcf::parse(BEETLE, "beetle.xml").unwrap());
    let sensors = model.nsensordata();
    let task = CustomTask::new("beetle", model)
        .substeps(2)
        .observe(sensors, |view, obs| obs.copy_from_slice(&view.sensor))
        .reward(|view| view.sensor[0])
        .start(|rng, qpos, qvel| {
            qpos[2] += rng.uniform(0.0, 0.2);
            qvel.iter_mut().for_each(|v| *v = rng.uniform(-1.0, 1.0));
        });
    SimVec::builder_of(Arc::new(task)).lanes(70).episode_steps(40).stagger(true).build().unwrap()
}

fn steps_allocate_nothing(mut env: SimVec, name: &str) {
    let spec = env.spec();
    let mut now = env.buffers();
    let seeds: Vec<u64> = (0..spec.lanes as u64).collect();
    let mut qvel = vec![0.0; spec.lanes * env.model().nv()];
    env.reset(&seeds, &mut now.obs);
    let actions: Vec<Vec<f32>> = (0..60)
        .map(|t| (0..spec.lanes * spec.act_dim).map(|i| (0.7 * i as f32 + 1.3 * t as f32).sin()).collect())
        .collect();
    env.step(&actions[0], now.out());
    let (mut ended, mut rewarded) = (0, 0);
    let count = allocations(|| {
        for action in &actions {
            env.step(action, now.out());
            rewarded += now.reward.iter().filter(|r| **r > 0.0).count();
            ended += now.status.iter().filter(|s| **s != Status::Running).count();
        }
        // nor does looking and setting in between
        env.read(Field::Qvel, &mut qvel).unwrap();
        env.write(Field::Qvel, &qvel).unwrap();
        env.observe(&mut now.obs).unwrap();
        env.reset_lanes(&[(0, 5), (69, 6)], &mut now.obs).unwrap();
    });
    assert!(ended > 0, "{name}: episodes must end on the way");
    assert!(rewarded > 0, "{name}: the beetle's foot must touch something");
    assert_eq!(env.non_finite_lanes(), 0, "{name}");
    assert_eq!(count, 0, "{name}");
}

fn rollouts_allocate_nothing() {
    let model = Arc::new(mjcf::parse(BEETLE, "beetle.xml").unwrap());
    let mut rollout = Rollout::new(model.clone(), RolloutOptions::new(2)).unwrap();
    let (n, steps) = (50, 10);
    let mut start = LaneState::of(&model);
    let controls: Vec<f64> = (0..n * steps * model.nu()).map(|i| (0.3 * i as f64).sin()).collect();
    let mut states = vec![0.0; n * steps * rollout.state_dim()];
    let mut sensors = vec![0.0; n * steps * model.nsensordata()];
    let mut lived = vec![0; n];
    let mut go = |start: &LaneState| {
        let out = RolloutOut { states: &mut states, sensors: Some(&mut sensors), lived: &mut lived };
        rollout.run(std::slice::from_ref(start), steps, &controls, out).unwrap();
        assert!(lived.iter().all(|&l| l == steps));
    };
    go(&start);
    assert_eq!(allocations(|| go(&start)), 0, "rollout");
    start.factors = vec![1.1; model.bodies.len() + model.nv() + model.nu() + 2];
    assert_eq!(allocations(|| go(&start)), 0, "rollout with factors");
}

#[test]
fn steps_and_rollouts_within_a_pool_allocate_nothing_on_any_thread() {
    WORKS.set(true);
    assert!(allocations(|| drop(std::hint::black_box(vec![1]))) > 0, "the counter counts");
    for threads in [1, 3] {
        rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap().install(|| {
            // a thread that is still starting takes memory for itself; one that has answered is there
            rayon::broadcast(|_| WORKS.set(true));
            steps_allocate_nothing(beetle(), "beetle");
            let walker = SimVec::builder("walker-run").lanes(70).episode_steps(40).stagger(true);
            steps_allocate_nothing(walker.build().unwrap(), "walker");
            rollouts_allocate_nothing();
            // it takes some again when it ends, which may be while the next pool is at work
            rayon::broadcast(|_| WORKS.set(false));
        });
    }
}
