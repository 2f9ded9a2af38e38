//! Laws of mechanics, in f64: energy, momentum, and no preferred place or direction.

use std::sync::Arc;

use sim_vec::engine::{Engine, Scratch, State};
use sim_vec::inspect::Stages;
use sim_vec::lane::{F64x1, Lane};
use sim_vec::mjcf;
use sim_vec::view::View;

type V3 = [f64; 3];

struct World {
    engine: Engine<F64x1>,
    s: State<F64x1>,
    x: Scratch<F64x1>,
}

impl World {
    fn new(xml: &str, timestep: f64) -> Self {
        let mut model = mjcf::parse(xml, "law.xml").unwrap();
        model.opt.timestep = timestep;
        model.opt.tolerance = 1e-15;
        let engine = Engine::new(Arc::new(model)).unwrap();
        World { s: engine.state(), x: engine.scratch(), engine }
    }

    fn set(to: &mut [F64x1], from: &[f64]) {
        assert_eq!(to.len(), from.len());
        to.iter_mut().zip(from).for_each(|(to, &x)| *to = F64x1::splat(x));
    }

    /// Evaluates the present state; velocities, the mass matrix and the view.
    fn look(&mut self) -> (Vec<f64>, Vec<f64>, View) {
        self.engine.forward(&mut self.s, &mut self.x);
        let mut view = View::new(self.engine.model());
        self.engine.view(&self.s, &self.x, 0, &mut view);
        let v = self.s.qvel.iter().map(|v| v.get(0)).collect();
        (v, Stages::of(&self.engine, &self.x, 0).mass, view)
    }

    /// Kinetic and potential energy, J: `½ vᵀ M v − Σ m g·c`.
    fn energy(&mut self) -> f64 {
        let (v, mass, view) = self.look();
        let p = times(&mass, &v);
        let model = self.engine.model();
        let potential = model.bodies.iter().zip(&view.xipos).map(|(b, c)| -b.mass * dot(&model.opt.gravity, c));
        0.5 * dot(&v, &p) + potential.sum::<f64>()
    }

    /// Linear momentum and angular momentum about the origin of a free-floating tree: the first rows of `M v`, the
    /// angular ones turned from the root's frame and moved to the origin.
    fn momentum(&mut self) -> [V3; 2] {
        let (v, mass, view) = self.look();
        let p = times(&mass, &v);
        let (linear, local) = ([p[0], p[1], p[2]], [p[3], p[4], p[5]]);
        let (m, at) = (&view.xmat[1], &view.xpos[1]);
        let spin: V3 = std::array::from_fn(|r| dot(&m[3 * r..3 * r + 3], &local));
        let orbit = cross(at, &linear);
        [linear, std::array::from_fn(|k| spin[k] + orbit[k])]
    }
}

fn times(m: &[f64], v: &[f64]) -> Vec<f64> {
    m.chunks(v.len()).map(|row| dot(row, v)).collect()
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(x, y)| x * y).sum()
}

fn cross(a: &V3, b: &V3) -> V3 {
    [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]]
}

fn distance(a: &V3, b: &V3) -> f64 {
    (0..3).map(|k| (a[k] - b[k]).powi(2)).sum::<f64>().sqrt()
}

/// Three links about skew axes, no friction, no contact.
const CHAIN: &str = r#"<mujoco><option integrator="RK4"><flag contact="disable"/></option><worldbody>
    <body><joint axis="0 1 0"/><geom type="capsule" fromto="0 0 0 0 0 -.5" size=".04" mass="1"/>
      <body pos="0 0 -.5"><joint axis="1 0 0"/><geom type="capsule" fromto="0 0 0 0 0 -.4" size=".04" mass=".7"/>
        <body pos="0 0 -.4"><joint axis=".6 .8 0"/><geom type="capsule" fromto="0 0 0 .3 0 0" size=".03" mass=".5"/>
        </body></body></body></worldbody></mujoco>"#;

/// Largest deviation of the energy within two seconds.
fn energy_drift(timestep: f64) -> f64 {
    let mut w = World::new(CHAIN, timestep);
    World::set(&mut w.s.qpos, &[1.2, -0.7, 0.4]);
    World::set(&mut w.s.qvel, &[0.5, 1.0, -2.0]);
    let (first, steps) = (w.energy(), (2.0 / timestep).round() as usize);
    (0..steps).fold(0.0, |worst, _| {
        w.engine.step(&mut w.s, &mut w.x, 1);
        f64::max(worst, (w.energy() - first).abs())
    })
}

#[test]
fn a_free_swinging_chain_keeps_its_energy_to_fourth_order_in_the_step() {
    // of some 10 J; a fourth-order scheme divides the drift by 16 when the step is halved
    let drift = [0.008, 0.004, 0.002].map(energy_drift);
    println!("energy drift, J: {drift:?}");
    assert!(drift[0] < 1e-3 && drift[2] < 5e-6, "{drift:?}");
    for pair in drift.windows(2) {
        let ratio = pair[0] / pair[1];
        assert!(ratio > 13.0, "halving the step divides the drift by {ratio}: {drift:?}");
    }
}

/// A torso with two arms of two joints each, driven from within, far from everything.
const FLOATER: &str = r#"<mujoco><option integrator="RK4" gravity="0 0 0"/><worldbody>
    <body name="torso" pos=".3 -.2 1"><freejoint/><geom type="box" size=".2 .1 .15" mass="3" contype="0" conaffinity="0"/>
      <body pos=".2 0 0"><joint name="a" axis="0 1 0" damping=".1"/>
        <geom type="capsule" fromto="0 0 0 .3 0 0" size=".04" mass=".8" contype="0" conaffinity="0"/>
        <body pos=".3 0 0"><joint name="b" axis="0 0 1" stiffness="2"/>
          <geom type="capsule" fromto="0 0 0 .3 0 .1" size=".03" mass=".5" contype="0" conaffinity="0"/></body></body>
      <body pos="-.2 0 0"><joint name="c" axis="1 0 0"/>
        <geom type="capsule" fromto="0 0 0 0 .3 0" size=".04" mass=".8" contype="0" conaffinity="0"/></body>
    </body></worldbody>
    <actuator><motor joint="a"/><motor joint="b"/><motor joint="c"/></actuator>
    <sensor><subtreelinvel body="torso"/><subtreeangmom body="torso"/><subtreecom body="torso"/></sensor></mujoco>"#;

fn floater(timestep: f64) -> World {
    let mut w = World::new(FLOATER, timestep);
    World::set(&mut w.s.qvel, &[0.4, -0.3, 0.2, 0.5, -1.0, 0.7, 1.0, -0.5, 0.8]);
    w
}

/// Largest deviations of linear and angular momentum within two seconds under motors that swing the arms about.
fn momentum_drift(timestep: f64) -> [f64; 2] {
    let mut w = floater(timestep);
    let (first, steps) = (w.momentum(), (2.0 / timestep).round() as usize);
    let mut worst = [0.0f64; 2];
    for step in 0..steps {
        let t = step as f64 * timestep;
        World::set(&mut w.s.ctrl, &[0.5 * (3.0 * t).sin(), 0.3 * (5.0 * t).cos(), -0.4 * (4.0 * t).sin()]);
        w.engine.step(&mut w.s, &mut w.x, 1);
        let now = w.momentum();
        (0..2).for_each(|k| worst[k] = worst[k].max(distance(&now[k], &first[k])));
    }
    worst
}

#[test]
fn a_free_floating_tree_driven_from_within_keeps_its_momentum() {
    // of some 2.6 kg m/s and 1 kg m²/s. Orientations are advanced by the mean of four angular velocities, as in MuJoCo,
    // which is of second order: halving the step divides the drift by 4
    let drift = [0.004, 0.002, 0.001].map(momentum_drift);
    println!("momentum drift, kg m/s and kg m²/s: {drift:?}");
    assert!(drift[2][0] < 5e-6 && drift[2][1] < 5e-6, "{drift:?}");
    for pair in drift.windows(2) {
        for k in 0..2 {
            let ratio = pair[0][k] / pair[1][k];
            assert!(ratio > 3.8, "halving the step divides the drift by {ratio}: {drift:?}");
        }
    }
}

/// Two links in a plane, where orientations are plain angles.
const PLANAR: &str = r#"<mujoco><option integrator="RK4" gravity="0 0 0"><flag contact="disable"/></option><worldbody>
    <body><joint type="slide" axis="1 0 0"/><joint type="slide" axis="0 0 1"/><joint axis="0 1 0"/>
      <geom type="capsule" fromto="0 0 0 .4 0 0" size=".05" mass="2"/>
      <body pos=".4 0 0"><joint name="a" axis="0 1 0" damping=".1"/>
        <geom type="capsule" fromto="0 0 0 .3 0 .1" size=".04" mass=".8"/></body></body></worldbody>
    <actuator><motor joint="a"/></actuator></mujoco>"#;

/// Largest deviation of `(Pₓ, P_z, L_y)` within two seconds, with `L` about the origin.
fn planar_drift(timestep: f64) -> f64 {
    let mut w = World::new(PLANAR, timestep);
    World::set(&mut w.s.qvel, &[0.4, -0.3, 1.0, -4.0]);
    let momentum = |w: &mut World| {
        let (v, mass, view) = w.look();
        let p = times(&mass, &v);
        [p[0], p[1], p[2] + view.xpos[1][2] * p[0] - view.xpos[1][0] * p[1]]
    };
    let (first, steps) = (momentum(&mut w), (2.0 / timestep).round() as usize);
    (0..steps).fold(0.0, |worst, step| {
        World::set(&mut w.s.ctrl, &[0.5 * (3.0 * step as f64 * timestep).sin()]);
        w.engine.step(&mut w.s, &mut w.x, 1);
        f64::max(worst, distance(&momentum(&mut w), &first))
    })
}

#[test]
fn a_planar_tree_driven_from_within_keeps_its_momentum_to_fourth_order_in_the_step() {
    let drift = [0.016, 0.008, 0.004].map(planar_drift);
    println!("planar momentum drift: {drift:?}");
    assert!(drift[2] < 1e-7, "{drift:?}");
    for pair in drift.windows(2) {
        let ratio = pair[0] / pair[1];
        assert!(ratio > 13.0, "halving the step divides the drift by {ratio}: {drift:?}");
    }
}

#[test]
fn sensors_of_a_subtree_agree_with_the_rows_of_the_mass_matrix() {
    let mut w = floater(0.002);
    let mass: f64 = w.engine.model().bodies.iter().map(|b| b.mass).sum();
    for _ in 0..20 {
        w.engine.step(&mut w.s, &mut w.x, 10);
        let [linear, angular] = w.momentum();
        let felt = w.look().2.sensor;
        let p: V3 = std::array::from_fn(|k| mass * felt[k]);
        let orbit = cross(&[felt[6], felt[7], felt[8]], &p);
        let l: V3 = std::array::from_fn(|k| felt[3 + k] + orbit[k]);
        assert!(distance(&p, &linear) < 1e-12 && distance(&l, &angular) < 1e-12, "{p:?} {linear:?} {l:?} {angular:?}");
    }
}

/// A torso with a leg that falls on a slope of its world and tumbles. `@G` is gravity, `@P` and `@Q` the ground.
const TUMBLER: &str = r#"<mujoco><option cone="elliptic" gravity="@G"/><worldbody>
    <geom type="plane" size="1 1 1" pos="@P" quat="@Q" friction=".6"/>
    <body><freejoint/><geom type="sphere" size=".1" mass="1" friction=".6"/>
      <body pos=".1 0 0"><joint name="hip" axis="0 1 0" damping=".05"/>
        <geom type="capsule" fromto="0 0 0 .2 .1 0" size=".04" mass=".3" friction=".6"/></body></body>
    </worldbody><actuator><motor joint="hip"/></actuator></mujoco>"#;

type Quat = [f64; 4];

fn quat_mul(a: Quat, b: Quat) -> Quat {
    [
        a[0] * b[0] - a[1] * b[1] - a[2] * b[2] - a[3] * b[3],
        a[0] * b[1] + a[1] * b[0] + a[2] * b[3] - a[3] * b[2],
        a[0] * b[2] - a[1] * b[3] + a[2] * b[0] + a[3] * b[1],
        a[0] * b[3] + a[1] * b[2] - a[2] * b[1] + a[3] * b[0],
    ]
}

fn turn(q: Quat, v: V3) -> V3 {
    let r = quat_mul(quat_mul(q, [0.0, v[0], v[1], v[2]]), [q[0], -q[1], -q[2], -q[3]]);
    [r[1], r[2], r[3]]
}

fn words(v: &[f64]) -> String {
    v.iter().map(|x| format!("{x:e}")).collect::<Vec<_>>().join(" ")
}

/// The tumbler's fall in a world turned by `q` and then moved by `t`; positions of the free joint, turned and moved
/// back, the hip's angle, and the contacts met on the way.
fn fall(q: Quat, t: V3) -> (Vec<(V3, Quat, f64)>, usize) {
    let xml =
        TUMBLER.replace("@G", &words(&turn(q, [0.5, -0.3, -9.81]))).replace("@P", &words(&t)).replace("@Q", &words(&q));
    let mut w = World::new(&xml, 0.002);
    let (p, u) = (turn(q, [0.1, 0.2, 0.3]), quat_mul(q, [0.8, 0.0, 0.6, 0.0]));
    let at: V3 = std::array::from_fn(|k| p[k] + t[k]);
    let v = turn(q, [0.7, -0.4, 0.2]);
    World::set(&mut w.s.qpos, &[&at[..], &u, &[0.3]].concat());
    World::set(&mut w.s.qvel, &[&v[..], &[1.0, -2.0, 0.5, 0.4]].concat());
    let (mut path, mut contacts) = (Vec::new(), 0);
    for step in 0..300 {
        World::set(&mut w.s.ctrl, &[0.3 * (0.05 * step as f64).sin()]);
        w.engine.step(&mut w.s, &mut w.x, 1);
        contacts += w.engine.contacts(&w.x, 0);
        let q7: [f64; 8] = std::array::from_fn(|k| w.s.qpos[k].get(0));
        let back = [q[0], -q[1], -q[2], -q[3]];
        let p = turn(back, [q7[0] - t[0], q7[1] - t[1], q7[2] - t[2]]);
        path.push((p, quat_mul(back, [q7[3], q7[4], q7[5], q7[6]]), q7[7]));
    }
    (path, contacts)
}

#[test]
fn a_world_turned_and_moved_with_its_gravity_has_the_same_motion_turned_and_moved() {
    let (here, contacts) = fall([1.0, 0.0, 0.0, 0.0], [0.0; 3]);
    assert!(contacts > 100, "it must touch the ground: {contacts}");
    let (s, c) = (0.5f64.sin(), 0.5f64.cos());
    let worlds = [
        ([1.0, 0.0, 0.0, 0.0], [3.0, -2.0, 5.0]),
        ([c, s, 0.0, 0.0], [0.0; 3]),
        ([0.5, -0.5, 0.5, 0.5], [0.0; 3]),
        ([c, 0.36 * s, -0.48 * s, 0.8 * s], [-1.0, 2.0, 0.5]),
    ];
    let mut worst = 0.0f64;
    for (q, t) in worlds {
        let (there, _) = fall(q, t);
        for (a, b) in here.iter().zip(&there) {
            let same: f64 = (0..4).map(|k| a.1[k] * b.1[k]).sum();
            worst = worst.max(distance(&a.0, &b.0)).max(1.0 - same.abs()).max((a.2 - b.2).abs());
        }
    }
    println!("largest difference of a turned and moved world: {worst:e}");
    // rounding of 1e-16 grows by contacts; a wrong frame anywhere gives differences of order one
    assert!(worst < 1e-7, "{worst:e}");
}
