//! What the control suite does not use agrees with MuJoCo too: equalities, torsion and rolling, activations, buoyancy,
//! implicitfast, ellipsoids in the medium, and every kind of sensor. Golden data: `golden/make_features.py`.

use std::sync::Arc;

use serde_json::Value;
use sim_vec::engine::Engine;
use sim_vec::lane::{F64x1, Lane};
use sim_vec::mjcf;
use sim_vec::view::View;

fn numbers(v: &Value) -> Vec<f64> {
    v.as_array().unwrap().iter().map(|x| x.as_f64().unwrap()).collect()
}

fn fill(to: &mut [F64x1], from: &Value) {
    to.iter_mut().zip(numbers(from)).for_each(|(t, x)| *t = F64x1::splat(x));
}

/// Within `bound` of the largest number, or of 1.
fn close(got: &[f64], want: &[f64], bound: f64, what: &str) {
    assert_eq!(got.len(), want.len(), "{what}");
    let scale = want.iter().fold(1.0f64, |m, x| m.max(x.abs()));
    for (i, (g, w)) in got.iter().zip(want).enumerate() {
        assert!((g - w).abs() <= bound * scale, "{what}[{i}]: {g}, MuJoCo has {w}");
    }
}

fn compare(name: &str, bound: f64) {
    let here = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden");
    let golden: Value =
        serde_json::from_str(&std::fs::read_to_string(format!("{here}/features.json")).unwrap()).unwrap();
    let mut model = mjcf::load(format!("{here}/features/{name}.xml")).unwrap();
    model.opt.tolerance = 1e-14;
    let engine = Engine::<F64x1>::new(Arc::new(model)).unwrap();
    let (mut s, mut x, mut view) = (engine.state(), engine.scratch(), View::new(engine.model()));
    let values = |v: &[F64x1]| v.iter().map(|e| e.get(0)).collect::<Vec<_>>();
    for (i, want) in golden[name].as_array().unwrap().iter().enumerate() {
        fill(&mut s.qpos, &want["qpos"]);
        fill(&mut s.qvel, &want["qvel"]);
        fill(&mut s.act, &want["act"]);
        fill(&mut s.ctrl, &want["ctrl"]);
        s.warm.fill(F64x1::splat(0.0));
        engine.forward(&mut s, &mut x);
        let mut qacc = vec![0.0; engine.model().nv()];
        engine.qacc(&x, 0, &mut qacc);
        close(&qacc, &numbers(&want["qacc"]), bound, &format!("{name} state {i} qacc"));
        engine.view(&s, &x, 0, &mut view);
        close(&view.sensor, &numbers(&want["sensor"]), bound, &format!("{name} state {i} sensors"));
        engine.step(&mut s, &mut x, 1);
        close(&values(&s.qvel), &numbers(&want["next_qvel"]), bound, &format!("{name} state {i} qvel"));
        close(&values(&s.act), &numbers(&want["next_act"]), bound, &format!("{name} state {i} act"));
    }
}

#[test]
fn a_scene_of_everything_and_its_sensors_agree_with_mujoco() {
    compare("scene", 1e-9);
}

/// Two Newton solves on a curved cone differ in more digits than on a pyramid.
#[test]
fn the_scene_with_elliptic_cones_agrees_with_mujoco() {
    compare("cones", 1e-7);
}

#[test]
fn velocity_implicit_steps_agree_with_mujoco() {
    compare("fast", 1e-9);
}

#[test]
fn ellipsoids_and_boxes_in_a_windy_medium_agree_with_mujoco() {
    compare("medium", 1e-9);
}
