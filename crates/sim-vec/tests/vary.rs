//! Lanes that differ from the model: MuJoCo's accelerations, and factors that follow from seed and episode alone.

use std::sync::Arc;

use serde_json::Value;
use sim_vec::engine::{Engine, State};
use sim_vec::lane::{F64x1, Lane};
use sim_vec::{Field, Precision, Ranges, SimError, SimVec, VecEnv, mjcf, models};

fn numbers(v: &Value) -> Vec<f64> {
    v.as_array().unwrap().iter().map(|x| x.as_f64().unwrap()).collect()
}

fn fill(to: &mut [F64x1], from: &Value) {
    to.iter_mut().zip(numbers(from)).for_each(|(t, x)| *t = F64x1::splat(x));
}

#[test]
fn factors_act_as_changes_of_a_compiled_model_do_in_mujoco() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden/vary.json");
    let golden: Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    for (name, g) in golden.as_object().unwrap() {
        let mut model = mjcf::parse(models::builtin(name).unwrap(), name).unwrap();
        model.opt.tolerance = 1e-14;
        let engine = Engine::<F64x1>::new(Arc::new(model)).unwrap();
        let (mut s, mut x) = (engine.state(), engine.scratch());
        s.vary = numbers(&g["factors"]).into_iter().map(F64x1::splat).collect();
        assert_eq!(s.vary.len(), State::<F64x1>::factors(engine.model()));
        for (i, want) in g["states"].as_array().unwrap().iter().enumerate() {
            fill(&mut s.qpos, &want["qpos"]);
            fill(&mut s.qvel, &want["qvel"]);
            fill(&mut s.ctrl, &want["ctrl"]);
            s.warm.fill(F64x1::splat(0.0));
            engine.forward(&mut s, &mut x);
            let mut qacc = vec![0.0; engine.model().nv()];
            engine.qacc(&x, 0, &mut qacc);
            close(&qacc, &numbers(&want["qacc"]), &format!("{name} state {i} qacc"));
            engine.step(&mut s, &mut x, 1);
            let qvel: Vec<f64> = s.qvel.iter().map(|v| v.get(0)).collect();
            close(&qvel, &numbers(&want["next_qvel"]), &format!("{name} state {i} qvel"));
        }
    }
}

fn close(got: &[f64], want: &[f64], what: &str) {
    let norm = |v: &mut dyn Iterator<Item = f64>| v.map(|x| x * x).sum::<f64>().sqrt();
    let error = norm(&mut got.iter().zip(want).map(|(g, w)| g - w)) / norm(&mut want.iter().copied()).max(1e-6);
    assert!(error < 1e-9, "{what}: {error}");
}

const RANGES: Ranges =
    Ranges { mass: [0.7, 1.3], damping: [0.5, 2.0], strength: [0.8, 1.2], friction: [0.5, 1.0], gravity: [0.9, 1.1] };

fn run(vary: Option<Ranges>, lanes: usize, threads: usize, seeds: &[u64]) -> Vec<f64> {
    let mut b = SimVec::builder("hopper-hop").lanes(lanes).precision(Precision::F64).threads(threads).episode_steps(7);
    if let Some(v) = vary {
        b = b.vary(v);
    }
    let mut env = b.build().unwrap();
    let mut now = env.buffers();
    env.reset(seeds, &mut now.obs);
    for step in 0..20 {
        let action: Vec<f32> = (0..lanes * 4).map(|i| ((i % 4 + step) as f32).sin()).collect();
        env.step(&action, now.out());
    }
    let mut qpos = vec![0.0; lanes * env.model().nq];
    env.read(Field::Qpos, &mut qpos).unwrap();
    qpos
}

#[test]
fn a_lane_s_factors_follow_from_its_seed_whatever_its_neighbours_and_threads() {
    let seeds: Vec<u64> = (0..21).map(|i| 100 + i % 7).collect();
    let all = run(Some(RANGES), 21, 2, &seeds);
    let n = all.len() / 21;
    for lane in 7..21 {
        assert_eq!(all[lane * n..(lane + 1) * n], all[(lane % 7) * n..(lane % 7 + 1) * n], "lane {lane}");
    }
    for lane in 0..7 {
        assert_eq!(run(Some(RANGES), 1, 1, &seeds[lane..=lane]), all[lane * n..(lane + 1) * n], "lane {lane} alone");
    }
    assert_ne!(all, run(None, 21, 1, &seeds), "factors change the motion");
}

#[test]
fn factors_of_one_leave_every_bit() {
    let seeds: Vec<u64> = (0..5).collect();
    assert_eq!(run(Some(Ranges::NONE), 5, 1, &seeds), run(None, 5, 1, &seeds));
}

#[test]
fn intervals_without_meaning_are_refused_by_name() {
    for (ranges, message) in [
        (
            Ranges { mass: [0.0, 1.0], ..RANGES },
            "mass cannot vary between 0 and 1; give factors [low, high] with low ≤ high, around 1",
        ),
        (
            Ranges { friction: [2.0, 1.0], ..RANGES },
            "friction cannot vary between 2 and 1; give factors [low, high] with low ≤ high, around 1",
        ),
        (
            Ranges { gravity: [1.0, f64::INFINITY], ..RANGES },
            "gravity cannot vary between 1 and inf; give factors [low, high] with low ≤ high, around 1",
        ),
    ] {
        let error = SimVec::builder("hopper-hop").vary(ranges).build().err().unwrap();
        assert!(matches!(error, SimError::Range { .. }));
        assert_eq!(error.to_string(), message);
    }
}
