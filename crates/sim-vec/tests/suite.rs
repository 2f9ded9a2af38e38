//! The tasks equal dm_control's: observations, rewards, control steps, starts. Golden data: `golden/make_suite.py`.

use std::sync::Arc;

use rollouts::VecEnv;
use serde_json::Value;
use sim_vec::dispatch::{Isa, Precision};
use sim_vec::engine::Engine;
use sim_vec::lane::{F64x1, Lane};
use sim_vec::observe::Observer;
use sim_vec::registry::{self, Suite, TaskStatus};
use sim_vec::tasks::Task;
use sim_vec::view::View;
use sim_vec::{SimOptions, sim_vec};

fn golden() -> Value {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden/suite.json");
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

fn numbers(v: &Value) -> Vec<f64> {
    v.as_array().unwrap().iter().map(|x| x.as_f64().unwrap()).collect()
}

/// Every exact task with the golden data of its domain, or its own where the domain's tasks have different models.
fn tasks(golden: &Value) -> Vec<(&'static str, &Value)> {
    let entry = |name: &str| {
        let mut entries = golden.as_object().unwrap().values();
        entries.find(|e| e["resets"].get(name).is_some()).unwrap_or_else(|| panic!("no golden data of {name}"))
    };
    let exact = registry::tasks().iter().filter(|t| t.suite == Suite::Control && t.status == TaskStatus::Exact);
    let all: Vec<_> = exact.map(|t| (t.name, entry(t.name))).collect();
    assert_eq!(all.len(), 23);
    all
}

fn close(got: &[f64], want: &[f64], bound: f64, what: &str) {
    assert_eq!(got.len(), want.len(), "{what}");
    let scale = want.iter().fold(1.0f64, |m, x| m.max(x.abs()));
    for (i, (g, w)) in got.iter().zip(want).enumerate() {
        assert!((g - w).abs() <= bound * scale, "{what}[{i}]: {g}, dm_control has {w}");
    }
}

#[test]
fn observations_and_rewards_at_given_states_are_dm_control_s() {
    let golden = golden();
    for (name, domain) in tasks(&golden) {
        let mut observer = Observer::new(name).unwrap();
        for (i, s) in domain["states"].as_array().unwrap().iter().enumerate() {
            let out = {
                let [qpos, qvel, ctrl, target] = ["qpos", "qvel", "ctrl", "target"].map(|k| numbers(&s[k]));
                let goal = if observer.goal_dim() > 0 { target } else { Vec::new() };
                observer.observe(&qpos, &qvel, &ctrl, &goal).unwrap()
            };
            close(&out.observation, &numbers(&s["observation"]), 1e-11, &format!("{name} state {i}"));
            let want = s["reward"][name].as_f64().unwrap();
            assert!((out.reward - want).abs() < 1e-11, "{name} state {i}: reward {}, not {want}", out.reward);
        }
    }
}

#[test]
fn rewards_are_not_all_alike_in_the_golden_states() {
    let golden = golden();
    for (name, domain) in tasks(&golden) {
        let rewards: Vec<f64> =
            domain["states"].as_array().unwrap().iter().map(|s| s["reward"][name].as_f64().unwrap()).collect();
        assert!(rewards.iter().any(|r| *r > 1e-3), "{name}: the golden states prove nothing about its reward");
    }
}

#[test]
fn playing_controls_gives_dm_control_s_episode() {
    let golden = golden();
    for (name, domain) in tasks(&golden) {
        let task: Arc<dyn Task> = registry::build(name).unwrap();
        let engine = Engine::<F64x1>::new(task.model().clone()).unwrap();
        let (mut s, mut x, mut view) = (engine.state(), engine.scratch(), View::of(&*task));
        let play = &domain["play"];
        let set = |to: &mut [F64x1], v: &Value| to.iter_mut().zip(numbers(v)).for_each(|(t, v)| t.set(0, v));
        set(&mut s.qpos, &play["qpos"]);
        set(&mut s.qvel, &play["qvel"]);
        let goal = numbers(&play["target"]);
        if task.goal_dim() > 0 {
            view.goal.copy_from_slice(&goal);
        }
        engine.forward(&mut s, &mut x);
        let mut obs = vec![0.0; task.obs_dim()];
        for (t, step) in play["steps"].as_array().unwrap().iter().enumerate() {
            set(&mut s.ctrl, &step["ctrl"]);
            engine.step(&mut s, &mut x, task.substeps());
            engine.kinematics(&s, &mut x);
            engine.view(&s, &x, 0, &mut view);
            task.observe(&view, &mut obs);
            // dm_control runs MuJoCo at its default solver tolerance, and contacts amplify what is left
            close(&obs, &numbers(&step["observation"]), 1e-5, &format!("{name} step {t}"));
            let want = step["reward"][name].as_f64().unwrap();
            assert!((task.reward(&view) - want).abs() < 1e-5, "{name} step {t}: {} {want}", task.reward(&view));
        }
    }
}

/// Means within six standard errors, deviations within a quarter, extremes within what 400 draws show.
#[test]
fn starts_have_dm_control_s_distribution() {
    const LANES: usize = 1024;
    let golden = golden();
    for (name, domain) in tasks(&golden) {
        let options = SimOptions { precision: Precision::F64, isa: Some(Isa::detect()), ..SimOptions::new(LANES) };
        let mut env = sim_vec(name, options).unwrap();
        let o = env.spec().obs_dim;
        let mut obs = vec![0.0; LANES * o];
        env.reset(&(0..LANES as u64).collect::<Vec<_>>(), &mut obs);
        let want = &domain["resets"][name];
        let n = want["n"].as_f64().unwrap();
        let [mean, std, min, max] = ["mean", "std", "min", "max"].map(|k| numbers(&want[k]));
        for k in 0..o {
            let column = || obs[k..].iter().step_by(o).map(|x| f64::from(*x));
            let m = column().sum::<f64>() / LANES as f64;
            let d = (column().map(|x| (x - m).powi(2)).sum::<f64>() / LANES as f64).sqrt();
            let at = format!("{name} observation {k}");
            assert!(
                (m - mean[k]).abs() <= 6.0 * std[k] * (1.0 / n + 1.0 / LANES as f64).sqrt() + 1e-6,
                "{at}: mean {m}, not {}",
                mean[k]
            );
            assert!((d - std[k]).abs() <= 0.25 * std[k] + 1e-6, "{at}: deviation {d}, not {}", std[k]);
            let slack = 0.5 * (max[k] - min[k]) + 1e-6;
            assert!(
                column().all(|x| x > min[k] - slack && x < max[k] + slack),
                "{at} outside [{}, {}]",
                min[k],
                max[k]
            );
        }
    }
}
