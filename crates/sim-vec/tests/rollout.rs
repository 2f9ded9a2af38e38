//! Control sequences by the thousand: each as if it were alone, whatever happens next to it.

use std::sync::Arc;

use sim_vec::model::Model;
use sim_vec::models::builtin;
use sim_vec::rng::Rng;
use sim_vec::rollout::{LaneState, Rollout, RolloutOptions, RolloutOut};
use sim_vec::{Field, Precision, SimError, SimVec, VecEnv, mjcf};

const STEPS: usize = 12;

fn model(name: &str) -> Arc<Model> {
    Arc::new(mjcf::parse(builtin(name).unwrap(), name).unwrap())
}

fn random(n: usize, seed: u64) -> Vec<f64> {
    let mut rng = Rng::episode(seed, 0);
    (0..n).map(|_| rng.uniform(-1.0, 1.0)).collect()
}

/// Hoppers near the ground in as many states as asked for, none like another.
fn starts(model: &Model, n: usize) -> Vec<LaneState> {
    (0..n)
        .map(|i| {
            let mut start = LaneState::of(model);
            start.qvel.copy_from_slice(&random(model.nv(), 1000 + i as u64));
            start
        })
        .collect()
}

struct Result {
    states: Vec<f64>,
    sensors: Vec<f64>,
    lived: Vec<usize>,
}

impl Result {
    /// States and sensors of a sequence, as integers.
    fn bits(&self, n: usize) -> Vec<u64> {
        let row = |v: &[f64]| {
            let w = v.len() / self.lived.len();
            v[n * w..(n + 1) * w].iter().map(|x| x.to_bits()).collect::<Vec<_>>()
        };
        [row(&self.states), row(&self.sensors)].concat()
    }
}

fn run(rollout: &mut Rollout, starts: &[LaneState], n: usize, controls: &[f64]) -> Result {
    let sensors = rollout.model().nsensordata();
    let mut r = Result {
        states: vec![7.0; n * STEPS * rollout.state_dim()],
        sensors: vec![7.0; n * STEPS * sensors],
        lived: vec![99; n],
    };
    let out = RolloutOut { states: &mut r.states, sensors: Some(&mut r.sensors), lived: &mut r.lived };
    rollout.run(starts, STEPS, controls, out).unwrap();
    r
}

#[test]
fn neither_order_nor_company_nor_threads_change_a_sequence() {
    let model = model("hopper");
    let (n, nu) = (45, model.nu());
    let (starts, controls) = (starts(&model, n), random(n * STEPS * nu, 1));
    for precision in [Precision::F32, Precision::F64] {
        let options = |threads: usize| RolloutOptions {
            precision,
            pool: Some(sim_vec::threads::pool(threads).unwrap()),
            ..RolloutOptions::new(4)
        };
        let mut one = Rollout::new(model.clone(), options(1)).unwrap();
        let all = run(&mut one, &starts, n, &controls);
        assert!(all.lived.iter().all(|&l| l == STEPS));
        let mut three = Rollout::new(model.clone(), options(3)).unwrap();
        let again = run(&mut three, &starts, n, &controls);
        assert!((0..n).all(|i| all.bits(i) == again.bits(i)), "{precision:?}: threads");
        // backwards
        let reversed: Vec<LaneState> = starts.iter().rev().cloned().collect();
        let turned: Vec<f64> = controls.chunks(STEPS * nu).rev().flatten().copied().collect();
        let back = run(&mut three, &reversed, n, &turned);
        assert!((0..n).all(|i| all.bits(i) == back.bits(n - 1 - i)), "{precision:?}: order");
        // one by one
        for i in 0..n {
            let row = &controls[i * STEPS * nu..(i + 1) * STEPS * nu];
            let alone = run(&mut one, &starts[i..=i], 1, row);
            assert!(all.bits(i) == alone.bits(0), "{precision:?}: sequence {i} alone");
        }
    }
}

#[test]
fn all_sequences_may_begin_at_one_state() {
    let model = model("cheetah");
    let (n, start) = (20, &starts(&model, 1)[0]);
    let controls = random(n * STEPS * model.nu(), 2);
    let mut rollout = Rollout::new(model, RolloutOptions::new(1)).unwrap();
    let shared = run(&mut rollout, std::slice::from_ref(start), n, &controls);
    let each = run(&mut rollout, &vec![start.clone(); n], n, &controls);
    assert!((0..n).all(|i| shared.bits(i) == each.bits(i)));
}

#[test]
fn a_diverged_sequence_is_reported_and_disturbs_no_other() {
    let model = model("hopper");
    let (n, nu) = (37, model.nu());
    for precision in [Precision::F32, Precision::F64] {
        let mut rollout = Rollout::new(model.clone(), RolloutOptions { precision, ..RolloutOptions::new(2) }).unwrap();
        let (mut starts, mut controls) = (starts(&model, n), random(n * STEPS * nu, 3));
        let well = run(&mut rollout, &starts, n, &controls);
        starts[4].qpos[1] = f64::NAN;
        starts[20].qvel[0] = 1e12;
        controls[(36 * STEPS + 5) * nu] = f64::INFINITY;
        let ill = run(&mut rollout, &starts, n, &controls);
        for i in 0..n {
            let lived = match i {
                4 | 20 => 0,
                36 => 5,
                _ => STEPS,
            };
            assert_eq!(ill.lived[i], lived, "{precision:?} sequence {i}");
            if lived == STEPS {
                assert!(well.bits(i) == ill.bits(i), "{precision:?} sequence {i}");
                continue;
            }
            let row = rollout.state_dim();
            let states = &ill.states[i * STEPS * row..(i + 1) * STEPS * row];
            let same = &well.states[i * STEPS * row..][..lived * row];
            assert_eq!(&states[..lived * row], same, "what came before counts");
            assert!(states[lived * row..].iter().all(|x| x.is_nan()), "{precision:?} sequence {i}");
        }
    }
}

/// The state of a lane is all there is: planning from it foresees what the lane will do.
#[test]
fn a_rollout_from_a_lane_is_what_the_lane_does_next() {
    for precision in [Precision::F32, Precision::F64] {
        let mut env = SimVec::builder("cheetah-run").lanes(3).precision(precision).build().unwrap();
        let mut now = env.buffers();
        env.reset(&[5, 6, 7], &mut now.obs);
        (0..20).for_each(|_| env.step(&[0.8; 18], now.out()));
        let options = RolloutOptions { precision, ..RolloutOptions::new(1) };
        let mut rollout = Rollout::new(env.model().clone(), options).unwrap();
        let actions = random(STEPS * 6, 4).iter().map(|&a| a as f32).collect::<Vec<_>>();
        let controls: Vec<f64> = actions.iter().map(|&a| a as f64).collect();
        let foreseen = run(&mut rollout, &[env.state_of(1).unwrap()], 1, &controls);
        let (nq, nv) = (env.model().nq, env.model().nv());
        let (mut qpos, mut qvel) = (vec![0.0; 3 * nq], vec![0.0; 3 * nv]);
        for (t, state) in foreseen.states.chunks(nq + nv).enumerate() {
            env.step(&actions[t * 6..(t + 1) * 6].repeat(3), now.out());
            env.read(Field::Qpos, &mut qpos).unwrap();
            env.read(Field::Qvel, &mut qvel).unwrap();
            assert_eq!(state[..nq], qpos[nq..2 * nq], "{precision:?} step {t}");
            assert_eq!(state[nq..], qvel[nv..2 * nv], "{precision:?} step {t}");
        }
    }
}

#[test]
fn factors_of_a_start_change_its_mechanism_and_no_other() {
    let model = model("hopper");
    let n = 6;
    let (mut starts, controls) = (starts(&model, n), random(n * STEPS * model.nu(), 5));
    let mut rollout = Rollout::new(model.clone(), RolloutOptions::new(2)).unwrap();
    let plain = run(&mut rollout, &starts, n, &controls);
    starts[2].factors = vec![1.0; model.bodies.len() + model.nv() + model.nu() + 2];
    starts[3].factors = vec![1.2; model.bodies.len() + model.nv() + model.nu() + 2];
    let varied = run(&mut rollout, &starts, n, &controls);
    for i in 0..n {
        assert_eq!(plain.bits(i) == varied.bits(i), i != 3, "sequence {i}");
    }
    starts[0].factors = vec![1.0];
    let mut lived = [0; 6];
    let mut states = vec![0.0; n * STEPS * rollout.state_dim()];
    let out = RolloutOut { states: &mut states, sensors: None, lived: &mut lived };
    assert!(rollout.run(&starts, STEPS, &controls, out).is_err());
}

#[test]
fn what_does_not_fit_is_an_error_that_says_what_would() {
    let model = model("cartpole");
    let mut rollout = Rollout::new(model.clone(), RolloutOptions::new(1)).unwrap();
    let start = LaneState::of(&model);
    let (mut states, mut lived) = (vec![0.0; 5 * 3 * 4], [0; 5]);
    let mut attempt = |starts: &[LaneState], controls: usize, states: &mut [f64]| {
        let out = RolloutOut { states, sensors: None, lived: &mut lived };
        rollout.run(starts, 3, &vec![0.0; controls], out).map_err(|e| e.to_string())
    };
    assert_eq!(attempt(std::slice::from_ref(&start), 15, &mut states), Ok(()));
    let error = attempt(std::slice::from_ref(&start), 14, &mut states);
    assert_eq!(error, Err("controls has 14 numbers, the model needs 15".into()));
    assert!(attempt(&[], 15, &mut states).is_err());
    assert!(attempt(&vec![start.clone(); 4], 15, &mut states).is_err());
    assert!(attempt(std::slice::from_ref(&start), 15, &mut states[1..]).is_err());
    let long = LaneState { qvel: vec![0.0; 3], ..start };
    assert_eq!(attempt(&[long], 15, &mut states), Err("qvel has 3 numbers, the model needs 2".into()));
    assert!(matches!(
        Rollout::new(model, RolloutOptions::new(0)),
        Err(SimError::Nothing { what: "physics steps", .. })
    ));
}

#[test]
fn nothing_asked_for_is_nothing_done() {
    let model = model("cartpole");
    let mut rollout = Rollout::new(model.clone(), RolloutOptions::new(1)).unwrap();
    let out = RolloutOut { states: &mut [], sensors: None, lived: &mut [] };
    rollout.run(&[LaneState::of(&model)], 10, &[], out).unwrap();
}
