//! Settings of the builder, tasks made of closures, and lanes that are read and set from outside.

use std::sync::Arc;

use sim_vec::rng::Rng;
use sim_vec::tasks::Task;
use sim_vec::tasks::custom::CustomTask;
use sim_vec::{Field, Isa, LaneState, Precision, SimError, SimVec, Status, StepBuffers, VecEnv, mjcf};

const ARM: &str = r#"<mujoco model="arm"><option timestep="0.005"/>
    <worldbody><body name="upper"><joint name="shoulder" axis="0 1 0"/><geom type="capsule" fromto="0 0 0 0 0 -1" size="0.05"/>
      <body name="lower" pos="0 0 -1"><joint name="elbow" axis="0 1 0" damping="0.1"/>
        <geom type="capsule" fromto="0 0 0 0 0 -0.5" size="0.04"/></body></body></worldbody>
    <actuator><motor joint="shoulder" gear="20" ctrlrange="-1 1"/><motor joint="elbow" gear="5" ctrlrange="-2 2"/></actuator>
    <keyframe><key name="raised" qpos="1.5 -0.5" qvel="0 0.25"/></keyframe></mujoco>"#;

fn arm() -> CustomTask {
    CustomTask::new("arm", Arc::new(mjcf::parse(ARM, "arm.xml").unwrap()))
}

fn reset(env: &mut SimVec) -> StepBuffers {
    let mut now = env.buffers();
    env.reset(&(0..env.spec().lanes as u64).collect::<Vec<_>>(), &mut now.obs);
    now
}

fn wave(env: &SimVec, t: usize) -> Vec<f32> {
    let s = env.spec();
    (0..s.lanes * s.act_dim).map(|i| (0.7 * i as f32 + 1.3 * t as f32).sin()).collect()
}

fn bits(now: &StepBuffers) -> Vec<u32> {
    now.obs.iter().chain(&now.reward).chain(&now.last_obs).map(|x| x.to_bits()).collect()
}

#[test]
fn the_builder_sets_precision_instructions_lanes_and_clock() {
    let build = || SimVec::builder("cheetah-run").lanes(5);
    let env = build().precision(Precision::F64).isa(Isa::Portable).build().unwrap();
    assert_eq!((env.precision(), env.isa()), (Precision::F64, Isa::Portable));
    assert_eq!((env.spec().lanes, env.spec().dt_s), (5, 0.01));
    let env = build().substeps(3).episode_steps(7).build().unwrap();
    assert_eq!((env.spec().dt_s, env.spec().episode_steps), (0.03, 7));
    let env = build().control_step(0.05).build().unwrap();
    assert!((env.spec().dt_s - 0.05).abs() < 1e-15);
}

#[test]
fn a_longer_control_step_is_several_short_ones_under_one_action() {
    let mut long = SimVec::builder("cartpole-swingup").lanes(3).control_step(0.04).build().unwrap();
    let mut short = SimVec::builder("cartpole-swingup").lanes(3).build().unwrap();
    let (mut a, mut b) = (reset(&mut long), reset(&mut short));
    let action = [0.5, -1.0, 0.25];
    long.step(&action, a.out());
    for _ in 0..4 {
        short.step(&action, b.out());
    }
    assert!(a.obs == b.obs);
}

#[test]
fn settings_that_cannot_be_are_refused_with_what_would_do() {
    let build = || SimVec::builder("cheetah-run").lanes(4);
    let message = |b: sim_vec::SimBuilder| b.build().err().expect("an error").to_string();
    assert_eq!(
        message(build().control_step(0.013)),
        "a control step of 0.013 s is not a multiple of the 0.01 s step of task `cheetah-run`'s model"
    );
    for seconds in [0.0, -0.01, f64::NAN, f64::INFINITY, 1e-9] {
        assert!(matches!(build().control_step(seconds).build(), Err(SimError::ControlStep { .. })), "{seconds}");
    }
    assert!(message(build().substeps(0)).contains("zero physics steps"));
    assert!(message(build().episode_steps(0)).contains("zero episode steps"));
    assert!(message(build().lanes(0)).contains("zero lanes"));
    assert!(message(build().threads(0)).contains("at least one is needed"));
    assert!(message(SimVec::builder("cheetah-rum")).contains("`cheetah-run`"));
    assert!(matches!(arm().keyframe("lowered"), Err(SimError::MissingElement { element: "keyframe", .. })));
}

#[test]
fn a_pool_of_ones_own_or_shared_changes_no_bit() {
    let shared = sim_vec::threads::pool(2).unwrap();
    let run = |builder: sim_vec::SimBuilder| {
        let mut env = builder.lanes(70).stagger(true).build().unwrap();
        let mut now = reset(&mut env);
        let mut all = bits(&now);
        for t in 0..20 {
            let action = wave(&env, t);
            env.step(&action, now.out());
            all.extend(bits(&now));
        }
        all
    };
    let build = || SimVec::builder("hopper-hop");
    let calling = run(build());
    assert!(calling == run(build().threads(1)));
    assert!(calling == run(build().threads(3)));
    assert!(calling == run(build().pool(shared.clone())));
    assert!(calling == run(build().pool(shared)), "a pool serves one after another");
}

#[test]
fn a_task_of_closures_is_started_observed_rewarded_and_ended_by_them() {
    let task = arm()
        .substeps(4)
        .episode_steps(50)
        .observe(3, |view, obs| obs.copy_from_slice(&[view.qpos[0], view.qvel[1], view.xpos[2][0]]))
        .reward(|view| 10.0 - view.ctrl[0])
        .start(|rng, qpos, qvel| (qpos[0], qvel[1]) = (rng.uniform(0.5, 1.0), -2.0))
        .terminated(|view| view.qpos[0] > 1.2);
    let mut env = SimVec::builder_of(Arc::new(task)).lanes(2).build().unwrap();
    assert!((env.spec().dt_s - 0.02).abs() < 1e-15);
    assert_eq!((env.spec().obs_dim, env.spec().act_dim, env.spec().episode_steps), (3, 2, 50));
    let mut now = reset(&mut env);
    for lane in now.obs.chunks(3) {
        assert!((0.5..1.0).contains(&lane[0]) && lane[1] == -2.0);
        assert!((lane[2] + lane[0].sin()).abs() < 1e-6, "the forearm begins at the elbow");
    }
    let mut ended = false;
    for _ in 0..50 {
        env.step(&[0.0, 0.0, -1.0, 0.0], now.out());
        assert_eq!(now.reward, [10.0, 11.0]);
        for (status, last) in now.status.iter().zip(now.last_obs.chunks(3)) {
            assert_eq!(*status == Status::Terminated, last[0] > 1.2);
            ended |= *status == Status::Terminated;
        }
        if ended {
            break;
        }
    }
    env.reset(&[0, 1], &mut now.obs);
    env.write(Field::Qpos, &[1.3, 0.0, 0.0, 0.0]).unwrap();
    env.step(&[0.0; 4], now.out());
    assert_eq!(now.status, [Status::Terminated, Status::Running]);
}

#[test]
fn goals_are_drawn_seen_read_and_written() {
    let task = arm()
        .goal(2, |rng, goal| goal.fill_with(|| rng.uniform(1.0, 2.0)))
        .observe(2, |view, obs| obs.copy_from_slice(&view.goal))
        .reward(|view| view.goal[0]);
    let mut env = SimVec::builder_of(Arc::new(task)).lanes(17).episode_steps(2).build().unwrap();
    let mut now = reset(&mut env);
    let mut goals = vec![0.0; 34];
    env.read(Field::Goal, &mut goals).unwrap();
    let seen = |goals: &[f64]| goals.iter().map(|&x| x as f32).collect::<Vec<_>>();
    assert!(goals.iter().all(|g| (1.0..2.0).contains(g)) && goals[0] != goals[2]);
    assert_eq!(now.obs, seen(&goals));
    goals.iter_mut().for_each(|g| *g += 1.0);
    env.write(Field::Goal, &goals).unwrap();
    env.observe(&mut now.obs).unwrap();
    assert_eq!(now.obs, seen(&goals));
    env.step(&[0.0; 34], now.out());
    assert!(now.reward.iter().zip(goals.chunks(2)).all(|(r, g)| *r == g[0] as f32));
    env.step(&[0.0; 34], now.out());
    assert_eq!(now.last_obs, seen(&goals));
    assert!(now.obs.iter().all(|g| (1.0..2.0).contains(g)), "the next episode is about something else");
}

#[test]
fn without_closures_a_task_observes_its_state_and_starts_at_its_keyframe() {
    let mut env = SimVec::builder_of(Arc::new(arm())).lanes(2).build().unwrap();
    assert_eq!(reset(&mut env).obs, [0.0; 8]);
    let mut env = SimVec::builder_of(Arc::new(arm().keyframe("raised").unwrap())).lanes(2).build().unwrap();
    assert_eq!(reset(&mut env).obs, [1.5, -0.5, 0.0, 0.25, 1.5, -0.5, 0.0, 0.25]);
    let noisy = arm().keyframe("raised").unwrap().start(|_, qpos, _| qpos[0] += 0.5);
    let noisy: &dyn Task = &noisy;
    assert_eq!((noisy.obs_dim(), noisy.substeps(), noisy.episode_steps()), (4, 1, 1000));
    let (mut qpos, mut qvel) = ([0.0; 2], [0.0; 2]);
    noisy.start(&mut Rng::episode(0, 0), &mut qpos, &mut qvel, &mut []);
    assert_eq!((qpos, qvel), ([2.0, -0.5], [0.0, 0.25]));
}

#[test]
fn what_is_written_is_read_back_and_observed() {
    let mut env = SimVec::builder_of(Arc::new(arm())).lanes(19).precision(Precision::F64).build().unwrap();
    let mut now = reset(&mut env);
    let numbers = |seed: f64| (0..38).map(|i| (seed + i as f64).sin()).collect::<Vec<_>>();
    let (qpos, qvel) = (numbers(1.0), numbers(2.0));
    env.write(Field::Qpos, &qpos).unwrap();
    env.write(Field::Qvel, &qvel).unwrap();
    for (field, want) in [(Field::Qpos, &qpos), (Field::Qvel, &qvel)] {
        let mut got = vec![0.0; 38];
        env.read(field, &mut got).unwrap();
        assert!(got == *want);
    }
    env.observe(&mut now.obs).unwrap();
    for (lane, obs) in now.obs.chunks(4).enumerate() {
        let row = 2 * lane..2 * lane + 2;
        let want: Vec<f32> = qpos[row.clone()].iter().chain(&qvel[row]).map(|&x| x as f32).collect();
        assert_eq!(obs, want);
    }
    env.read(Field::Act, &mut []).unwrap();
    env.write(Field::Mocap, &[]).unwrap();
}

#[test]
fn observing_changes_no_state() {
    let mut env = SimVec::builder("hopper-hop").lanes(21).build().unwrap();
    let mut now = reset(&mut env);
    for t in 0..10 {
        let action = wave(&env, t);
        env.step(&action, now.out());
    }
    let before: Vec<LaneState> = (0..21).map(|n| env.state_of(n).unwrap()).collect();
    env.observe(&mut now.obs).unwrap();
    for (n, state) in before.iter().enumerate() {
        assert_eq!(*state, env.state_of(n).unwrap());
    }
}

#[test]
fn a_lane_that_takes_anothers_state_moves_as_it_does() {
    for precision in [Precision::F32, Precision::F64] {
        let mut env = SimVec::builder("walker-walk").lanes(18).precision(precision).build().unwrap();
        let mut now = reset(&mut env);
        for t in 0..30 {
            let action = wave(&env, t);
            env.step(&action, now.out());
        }
        let state = env.state_of(3).unwrap();
        env.set_state_of(17, &state).unwrap();
        for t in 0..30 {
            let mut action = wave(&env, t);
            action.copy_within(3 * 6..4 * 6, 17 * 6);
            env.step(&action, now.out());
            let row = |n: usize| now.obs[n * 24..(n + 1) * 24].to_vec();
            assert_eq!(row(3), row(17), "{precision:?} step {t}");
        }
        assert_eq!(env.state_of(3).unwrap(), env.state_of(17).unwrap());
    }
}

#[test]
fn wrong_lengths_and_lanes_are_errors_and_change_nothing() {
    let mut env = SimVec::builder_of(Arc::new(arm())).lanes(3).build().unwrap();
    let mut now = reset(&mut env);
    let before = env.snapshot();
    let error = env.write(Field::Qpos, &[0.5; 5]).unwrap_err().to_string();
    assert_eq!(error, "qpos of all lanes has 5 numbers, task `arm` needs 6");
    assert!(matches!(env.read(Field::Ctrl, &mut [0.0; 7]), Err(SimError::Length { expected: 6, got: 7, .. })));
    assert!(matches!(env.write(Field::Act, &[0.0]), Err(SimError::Length { expected: 0, got: 1, .. })));
    assert_eq!(env.state_of(3).unwrap_err().to_string(), "there is no lane 3; this batch has 3, counted from 0");
    let mut state = env.state_of(0).unwrap();
    assert!(matches!(env.set_state_of(9, &state), Err(SimError::Lane { lane: 9, lanes: 3 })));
    state.qpos.fill(0.5);
    state.warm.push(0.0);
    assert!(matches!(env.set_state_of(1, &state), Err(SimError::Length { what: "warm", expected: 2, got: 3, .. })));
    assert!(matches!(env.observe(&mut now.obs[1..]), Err(SimError::Length { expected: 12, got: 11, .. })));
    assert!(matches!(env.reset_lanes(&[(0, 7), (3, 7)], &mut now.obs), Err(SimError::Lane { lane: 3, .. })));
    assert!(matches!(env.reset_lanes(&[(0, 7)], &mut now.obs[1..]), Err(SimError::Length { .. })));
    assert!(env.snapshot() == before);
}
