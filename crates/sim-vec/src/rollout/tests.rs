//! Against the engine, one sequence at a time.

use super::*;
use crate::mjcf;
use crate::models::builtin;
use crate::rng::Rng;

/// Steps one sequence alone, in lane 0 of its block, and returns what [`RolloutOut::states`] and
/// [`RolloutOut::sensors`] should hold.
struct Alone<'a> {
    model: Arc<Model>,
    start: &'a LaneState,
    controls: &'a [f64],
    hold: usize,
}

impl LaneVisitor for Alone<'_> {
    type Out = (Vec<f64>, Vec<f64>);
    fn visit<L: Lane>(self) -> Self::Out {
        let engine = Engine::<L>::new(self.model.clone()).unwrap();
        let (mut s, mut x) = (engine.state(), engine.scratch());
        (0..L::W).for_each(|lane| self.start.scatter(&mut s, lane));
        let (mut states, mut sensors) = (Vec::new(), Vec::new());
        for controls in self.controls.chunks(self.model.nu()) {
            s.ctrl.iter_mut().zip(controls).for_each(|(to, &c)| *to = L::splat(c));
            engine.step(&mut s, &mut x, self.hold);
            engine.kinematics(&s, &mut x);
            states.extend(s.qpos.iter().chain(&s.qvel).chain(&s.act).map(|v| v.get(0)));
            let mut felt = vec![0.0; self.model.nsensordata()];
            engine.sensors(&x, 0, &mut felt);
            sensors.extend(felt);
        }
        (states, sensors)
    }
}

#[test]
fn every_sequence_has_the_bits_of_the_engine_stepping_it_alone() {
    let sets = Isa::ALL.into_iter().filter(|i| i.available());
    for (isa, precision) in sets.flat_map(|i| [(i, Precision::F32), (i, Precision::F64)]) {
        for name in ["hopper", "humanoid", "cartpole"] {
            let model = Arc::new(mjcf::parse(builtin(name).unwrap(), name).unwrap());
            let (n, steps, hold, nu) = (19, 6, 3, model.nu());
            let mut rng = Rng::episode(3, 0);
            let controls: Vec<f64> = (0..n * steps * nu).map(|_| rng.uniform(-1.5, 1.5)).collect();
            let starts: Vec<LaneState> = (0..n)
                .map(|_| {
                    let mut start = LaneState::of(&model);
                    start.qvel.iter_mut().chain(&mut start.warm).for_each(|v| *v = rng.uniform(-1.0, 1.0));
                    start
                })
                .collect();
            let options = RolloutOptions { precision, isa: Some(isa), ..RolloutOptions::new(hold) };
            let mut rollout = Rollout::new(model.clone(), options).unwrap();
            let mut states = vec![0.0; n * steps * rollout.state_dim()];
            let mut sensors = vec![0.0; n * steps * model.nsensordata()];
            let mut lived = vec![0; n];
            let out = RolloutOut { states: &mut states, sensors: Some(&mut sensors), lived: &mut lived };
            rollout.run(&starts, steps, &controls, out).unwrap();
            assert!(lived.iter().all(|&l| l == steps));
            for i in 0..n {
                let controls = &controls[i * steps * nu..(i + 1) * steps * nu];
                let alone = Alone { model: model.clone(), start: &starts[i], controls, hold };
                let (want, felt) = with_lane(isa, precision, alone);
                let at = |v: &[f64]| i * v.len()..(i + 1) * v.len();
                assert!(states[at(&want)] == want, "{name} {isa} {precision:?} sequence {i}");
                assert!(sensors[at(&felt)] == felt, "{name} {isa} {precision:?} sensors of sequence {i}");
            }
        }
    }
}
