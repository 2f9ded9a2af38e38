//! What a user may build on: bits that follow from seeds alone, and lanes that do not know of one another.

use rayon::ThreadPoolBuilder;
use sim_vec::{Field, Precision, SimVec, Status, StepBuffers, VecEnv};

/// Tasks with contacts, limits and a free joint; 37 lanes are some blocks and a part of one at every width.
const TASKS: [&str; 3] = ["hopper-hop", "humanoid-run", "cartpole-swingup"];
const LANES: usize = 37;

fn build(task: &str, precision: Precision) -> SimVec {
    SimVec::builder(task).lanes(LANES).precision(precision).stagger(true).build().unwrap()
}

fn reset(env: &mut SimVec) -> StepBuffers {
    let mut now = env.buffers();
    env.reset(&(0..LANES as u64).map(|n| 100 + n).collect::<Vec<_>>(), &mut now.obs);
    now
}

fn step(env: &mut SimVec, now: &mut StepBuffers, t: usize) {
    let n = LANES * env.spec().act_dim;
    let action: Vec<f32> = (0..n).map(|i| (0.7 * i as f32 + 1.3 * t as f32).sin()).collect();
    env.step(&action, now.out());
}

/// All that a step says of a lane, as integers.
fn row(now: &StepBuffers, lane: usize) -> Vec<u32> {
    let o = now.obs.len() / LANES;
    let rows = [&now.obs, &now.last_obs].into_iter().flat_map(|v| &v[lane * o..(lane + 1) * o]);
    rows.chain([&now.reward[lane]]).map(|x| x.to_bits()).chain([now.status[lane] as u32]).collect()
}

fn rows(now: &StepBuffers) -> Vec<Vec<u32>> {
    (0..LANES).map(|n| row(now, n)).collect()
}

#[test]
fn equal_seeds_give_equal_bits_on_one_two_and_three_threads() {
    for (task, precision) in TASKS.into_iter().zip([Precision::F32, Precision::F32, Precision::F64]) {
        let run = |threads: usize| {
            ThreadPoolBuilder::new().num_threads(threads).build().unwrap().install(|| {
                let mut env = build(task, precision);
                let mut now = reset(&mut env);
                let mut all = rows(&now);
                for t in 0..30 {
                    step(&mut env, &mut now, t);
                    all.extend(rows(&now));
                }
                all
            })
        };
        let one = run(1);
        assert!(one == run(2) && one == run(3), "{task}");
    }
}

#[test]
fn a_lane_full_of_nan_ends_alone_and_no_other_lane_notices() {
    for task in TASKS {
        for precision in [Precision::F32, Precision::F64] {
            let (mut well, mut ill) = (build(task, precision), build(task, precision));
            let (mut a, mut b) = (reset(&mut well), reset(&mut ill));
            let struck = [0, 5, 36];
            for t in 0..20 {
                if t % 5 == 3 {
                    for (field, value) in [(Field::Qpos, f64::NAN), (Field::Qvel, f64::INFINITY)] {
                        let dim = if field == Field::Qpos { ill.model().nq } else { ill.model().nv() };
                        let mut values = vec![0.0; LANES * dim];
                        ill.read(field, &mut values).unwrap();
                        struck.iter().for_each(|&n| values[n * dim..(n + 1) * dim].fill(value));
                        ill.write(field, &values).unwrap();
                    }
                }
                step(&mut well, &mut a, t);
                step(&mut ill, &mut b, t);
                for lane in (0..LANES).filter(|n| !struck.contains(n)) {
                    assert!(row(&a, lane) == row(&b, lane), "{task} {precision:?} step {t} lane {lane}");
                }
                if t % 5 == 3 {
                    assert!(struck.iter().all(|&n| b.status[n] == Status::Terminated && b.reward[n] == 0.0));
                }
                assert!(b.obs.iter().chain(&b.last_obs).chain(&b.reward).all(|x| x.is_finite()));
            }
            assert_eq!(ill.non_finite_lanes(), 4 * struck.len() as u64);
            assert_eq!(well.non_finite_lanes(), 0);
        }
    }
}

#[test]
fn a_snapshot_in_the_middle_of_episodes_goes_on_to_the_same_bits() {
    for (task, precision) in TASKS.into_iter().zip([Precision::F32, Precision::F64, Precision::F32]) {
        let mut env = build(task, precision);
        let mut now = reset(&mut env);
        (0..13).for_each(|t| step(&mut env, &mut now, t));
        let snapshot = env.snapshot();
        let (mut other, mut then) = (build(task, precision), now.clone());
        other.restore(&snapshot).unwrap();
        for t in 13..40 {
            step(&mut env, &mut now, t);
            step(&mut other, &mut then, t);
            assert!(rows(&now) == rows(&then), "{task} step {t}");
        }
        // back in time, in the same batch
        env.restore(&snapshot).unwrap();
        (13..40).for_each(|t| step(&mut env, &mut now, t));
        assert!(rows(&now) == rows(&then), "{task}");
    }
}

#[test]
fn a_partial_reset_starts_its_lanes_from_their_seeds_and_leaves_all_others() {
    for (task, precision) in TASKS.into_iter().zip([Precision::F32, Precision::F32, Precision::F64]) {
        let (mut env, mut other) = (build(task, precision), build(task, precision));
        let (mut now, mut then) = (reset(&mut env), reset(&mut other));
        for t in 0..10 {
            step(&mut env, &mut now, t);
            step(&mut other, &mut then, t);
        }
        // lane 9 is listed twice: the last seed counts
        env.reset_lanes(&[(9, 1), (36, 8), (2, 9), (9, 7)], &mut now.obs).unwrap();
        let anew = [(9, 7), (36, 8), (2, 9)];
        let mut seeds = vec![0; LANES];
        anew.iter().for_each(|&(n, seed)| seeds[n] = seed);
        let mut fresh = build(task, precision);
        let mut first = fresh.buffers();
        fresh.reset(&seeds, &mut first.obs);
        let o = env.spec().obs_dim;
        for lane in 0..LANES {
            let want = if anew.iter().any(|a| a.0 == lane) { &first } else { &then };
            assert_eq!(now.obs[lane * o..(lane + 1) * o], want.obs[lane * o..(lane + 1) * o], "{task} lane {lane}");
        }
        for t in 10..30 {
            step(&mut env, &mut now, t);
            step(&mut other, &mut then, t);
            step(&mut fresh, &mut first, t);
            for lane in 0..LANES {
                let want = if anew.iter().any(|a| a.0 == lane) { &first } else { &then };
                assert!(row(&now, lane) == row(want, lane), "{task} step {t} lane {lane}");
            }
        }
        let held = env.snapshot();
        env.reset_lanes(&[], &mut now.obs).unwrap();
        assert!(env.snapshot() == held, "no lane listed, nothing done");
    }
}
