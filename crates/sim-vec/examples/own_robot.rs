//! A robot of your own: MJCF text, four closures, 256 environments.
//!
//! ```sh
//! cargo run --release -p sim-vec --example own_robot
//! ```
//!
//! A two-wheeled robot has to stay upright and drive at one metre per second. A hand-written controller drives it
//! here; a learner would look at the same observations and write the same actions.

use std::sync::Arc;

use sim_vec::tasks::custom::CustomTask;
use sim_vec::tasks::{body, sensor};
use sim_vec::{SimError, SimVec, Status, VecEnv, mjcf};

/// SI units; angles in degrees, as MJCF has it. The wheels are 0.1 m in radius, the body's weight is 0.3 m above.
const ROBOT: &str = r#"
<mujoco model="balancer">
  <option timestep="0.004" integrator="implicitfast"/>
  <worldbody>
    <geom name="ground" type="plane" size="50 50 1"/>
    <body name="chassis" pos="0 0 0.1">
      <freejoint/>
      <geom type="capsule" fromto="0 0 0.05 0 0 0.45" size="0.05" mass="2"/>
      <site name="imu" pos="0 0 0.25"/>
      <body name="left" pos="0 0.12 0">
        <joint name="left" axis="0 1 0" damping="0.01" armature="0.002"/>
        <geom type="sphere" size="0.1" mass="0.3"/>
      </body>
      <body name="right" pos="0 -0.12 0">
        <joint name="right" axis="0 1 0" damping="0.01" armature="0.002"/>
        <geom type="sphere" size="0.1" mass="0.3"/>
      </body>
    </body>
  </worldbody>
  <actuator>
    <motor name="left" joint="left" gear="2" ctrlrange="-1 1"/>
    <motor name="right" joint="right" gear="2" ctrlrange="-1 1"/>
  </actuator>
  <sensor>
    <gyro name="gyro" site="imu"/>
    <velocimeter name="speed" site="imu"/>
  </sensor>
</mujoco>"#;

const LANES: usize = 256;
const EPISODE_STEPS: usize = 250;

fn main() -> Result<(), SimError> {
    let (mean, fallen) = drive()?;
    println!("mean return {mean:.1} of at most {EPISODE_STEPS} over {LANES} episodes; {fallen} fell");
    Ok(())
}

/// Drives one episode in every lane; their mean return and how many fell.
pub fn drive() -> Result<(f32, usize), SimError> {
    let model = Arc::new(mjcf::parse(ROBOT, "balancer.xml")?);
    // names are looked up once; closures then index
    let (chassis, gyro, speed) = (body(&model, "chassis")?, sensor(&model, "gyro")?, sensor(&model, "speed")?);

    let task = CustomTask::new("balancer-drive", model)
        .substeps(5) // 0.02 s between actions
        .episode_steps(EPISODE_STEPS)
        // lean (the x component of the body's z axis), its rate, forward speed, turning rate
        .observe(4, move |view, obs| {
            obs.copy_from_slice(&[
                view.xmat[chassis][2],
                view.sensor[gyro + 1],
                view.sensor[speed],
                view.sensor[gyro + 2],
            ])
        })
        // 1 at the wanted speed, less with the error
        .reward(move |view| (-(view.sensor[speed] - 1.0).powi(2)).exp())
        // leaning a little to either side; qpos is x y z, quaternion, wheels
        .start(|rng, qpos, _qvel| {
            let lean = rng.uniform(-0.1, 0.1);
            qpos[3..7].copy_from_slice(&[(0.5 * lean).cos(), 0.0, (0.5 * lean).sin(), 0.0]);
        })
        // fallen beyond 60°: the z axis of the body is less than half upwards
        .terminated(move |view| view.xmat[chassis][8] < 0.5);

    let mut env = SimVec::builder_of(Arc::new(task)).lanes(LANES).build()?;
    let spec = env.spec();
    let mut now = env.buffers();
    env.reset(&std::array::from_fn::<u64, LANES, _>(|lane| lane as u64), &mut now.obs);

    let mut action = vec![0.0; LANES * spec.act_dim];
    let (mut total, mut running, mut fallen) = (0.0, vec![true; LANES], 0);
    for _ in 0..EPISODE_STEPS {
        for (obs, action) in now.obs.chunks(spec.obs_dim).zip(action.chunks_mut(spec.act_dim)) {
            let [lean, rate, speed, turning] = [obs[0], obs[1], obs[2], obs[3]];
            // too slow: let it lean forward; leaning: drive under the weight
            let wanted = (0.15 * (1.0 - speed)).clamp(-0.15, 0.15);
            let drive = 4.0 * (lean - wanted) + 0.6 * rate;
            action.copy_from_slice(&[drive + 0.1 * turning, drive - 0.1 * turning]);
        }
        env.step(&action, now.out());
        for lane in 0..LANES {
            if running[lane] {
                total += now.reward[lane];
                running[lane] = now.status[lane] == Status::Running;
                fallen += usize::from(now.status[lane] == Status::Terminated);
            }
        }
    }
    Ok((total / LANES as f32, fallen))
}
