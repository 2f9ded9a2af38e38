//! The engine against MuJoCo, stage by stage, for every instruction set of this machine.
//!
//! f64 lanes must agree to rounding; f32 lanes to what f32 allows. Golden files: `golden/make_physics.py`.
#[path = "golden/load.rs"]
mod load;

use load::{Golden, NAMES, numbers};
use serde_json::Value;
use sim_vec::dispatch::{Isa, LaneVisitor, Precision, with_lane};
use sim_vec::engine::{Engine, Scratch, State};
use sim_vec::inspect::Stages;
use sim_vec::lane::Lane;
use sim_vec::view::View;
use std::sync::Arc;

/// Largest relative error of each stage.
struct Check {
    label: String,
    smooth: f64,
    solved: f64,
    worst: f64,
}

impl Check {
    /// `|got − want| / max(floor, |want|)` in the 2-norm is below `bound`.
    fn close(&mut self, what: &str, got: &[f64], want: &Value, bound: f64) {
        let want = numbers(want);
        assert_eq!(got.len(), want.len(), "{} {what}: length", self.label);
        let norm = |v: &mut dyn Iterator<Item = f64>| v.map(|x| x * x).sum::<f64>().sqrt();
        let error = norm(&mut got.iter().zip(&want).map(|(a, b)| a - b)) / norm(&mut want.iter().copied()).max(1e-3);
        assert!(error <= bound, "{} {what}: error {error:e} above {bound:e}\n got {got:?}\nwant {want:?}", self.label);
        self.worst = self.worst.max(error);
    }
}

struct Compare<'a> {
    golden: &'a Golden,
    isa: Isa,
}

impl LaneVisitor for Compare<'_> {
    type Out = f64;

    fn visit<L: Lane>(self) -> f64 {
        let g = self.golden;
        let engine = Engine::<L>::new(Arc::new(g.model.clone())).unwrap();
        let (mut s, mut x) = (engine.state(), engine.scratch());
        let mut worst = 0.0f64;
        for block in 0..g.states.len().div_ceil(L::W) {
            let of = |lane: usize| (block * L::W + lane) % g.states.len();
            for lane in 0..L::W {
                set(&mut s, lane, &g.states[of(lane)]);
            }
            engine.forward(&mut s, &mut x);
            let mut checks: Vec<Check> = (0..L::W)
                .map(|lane| Check {
                    label: format!("{} {} f{} state {}", g.name, self.isa, if L::SINGLE { 32 } else { 64 }, of(lane)),
                    smooth: if L::SINGLE { 2e-5 } else { 2e-13 },
                    solved: if L::SINGLE { 4e-4 } else { 2e-11 },
                    worst: 0.0,
                })
                .collect();
            for lane in 0..L::W {
                stages(&engine, &s, &x, lane, &g.states[of(lane)], &mut checks[lane]);
            }
            engine.step(&mut s, &mut x, 1);
            for (lane, c) in checks.iter_mut().enumerate() {
                after(&s, lane, &g.states[of(lane)], "next", c, c.solved);
            }
            engine.step(&mut s, &mut x, 4);
            for (lane, c) in checks.iter_mut().enumerate() {
                after(&s, lane, &g.states[of(lane)], "fifth", c, 10.0 * c.solved);
                worst = worst.max(c.worst);
            }
        }
        worst
    }
}

fn set<L: Lane>(s: &mut State<L>, lane: usize, v: &Value) {
    for (to, key) in [(&mut s.qpos, "qpos"), (&mut s.qvel, "qvel"), (&mut s.ctrl, "ctrl")] {
        for (t, n) in to.iter_mut().zip(numbers(&v[key])) {
            t.set(lane, n);
        }
    }
    s.warm.iter_mut().for_each(|w| w.set(lane, 0.0));
}

fn stages<L: Lane>(engine: &Engine<L>, s: &State<L>, x: &Scratch<L>, lane: usize, want: &Value, c: &mut Check) {
    let mut view = View::new(engine.model());
    engine.view(s, x, lane, &mut view);
    let st = Stages::of(engine, x, lane);
    let (smooth, solved) = (c.smooth, c.solved);
    if !want["mass"].is_null() {
        let nv = engine.model().nv();
        let lower: Vec<f64> =
            (0..nv).flat_map(|i| (0..=i).map(move |j| (i, j))).map(|(i, j)| st.mass[i * nv + j]).collect();
        c.close("xpos", view.xpos.as_flattened(), &want["xpos"], smooth);
        c.close("xmat", view.xmat.as_flattened(), &want["xmat"], smooth);
        c.close("xipos", view.xipos.as_flattened(), &want["xipos"], smooth);
        for com in want["tree_com"].as_array().unwrap() {
            let body = com[0].as_u64().unwrap() as usize;
            if engine.model().bodies[body].subtree_mass > 0.0 {
                c.close("tree com", &st.tree_com[body], &com.as_array().unwrap()[1..].into(), smooth);
            }
        }
        c.close("mass", &lower, &want["mass"], smooth);
        c.close("bias", &st.bias, &want["bias"], smooth);
        c.close("passive", &st.passive, &want["passive"], smooth);
    }
    c.close("qacc_smooth", &st.qacc_smooth, &want["qacc_smooth"], smooth);
    let mut got: Vec<Vec<f64>> =
        st.contacts.iter().map(|k| [&[k.pair as f64, k.dist][..], &k.pos, &k.frame].concat()).collect();
    let mut known: Vec<Vec<f64>> = want["contacts"].as_array().unwrap().iter().map(numbers).collect();
    assert_eq!(got.len(), known.len(), "{}: contacts", c.label);
    assert_eq!(engine.contacts(x, lane), known.len(), "{}: contact count", c.label);
    let order = |a: &Vec<f64>, b: &Vec<f64>| a[0].total_cmp(&b[0]).then(a[2].total_cmp(&b[2]));
    got.sort_by(order);
    known.sort_by(order);
    for (got, known) in got.iter().zip(known) {
        c.close("contact", got, &known.into(), 10.0 * smooth);
    }
    assert_eq!(st.rows, want["nefc"].as_u64().unwrap() as usize, "{}: rows", c.label);
    c.close("qacc", &st.qacc, &want["qacc"], solved);
    let mut rest = &view.sensor[..];
    for want in want["sensors"].as_array().unwrap() {
        let (got, after) = rest.split_at(numbers(want).len());
        c.close("sensor", got, want, 10.0 * solved);
        rest = after;
    }
}

fn after<L: Lane>(s: &State<L>, lane: usize, want: &Value, when: &str, c: &mut Check, bound: f64) {
    for (from, key) in [(&s.qpos, "qpos"), (&s.qvel, "qvel")] {
        let got: Vec<f64> = from.iter().map(|e| e.get(lane)).collect();
        c.close(&format!("{when} {key}"), &got, &want[format!("{when}_{key}")], bound);
    }
}

fn agrees(name: &str, precision: Precision) {
    assert!(NAMES.contains(&name));
    let golden = load::load(name);
    for isa in Isa::ALL.into_iter().filter(|i| i.available()) {
        let worst = with_lane(isa, precision, Compare { golden: &golden, isa });
        println!("{name} {isa} {precision:?}: largest error {worst:.1e}");
    }
}

macro_rules! agreement {
    ($($test64:ident, $test32:ident: $name:literal;)*) => {$(
        #[test]
        fn $test64() {
            agrees($name, Precision::F64);
        }
        #[test]
        fn $test32() {
            agrees($name, Precision::F32);
        }
    )*};
}
agreement! {
    pendulum_agrees_with_mujoco_to_rounding_in_f64, pendulum_agrees_with_mujoco_in_f32: "pendulum";
    cartpole_agrees_with_mujoco_to_rounding_in_f64, cartpole_agrees_with_mujoco_in_f32: "cartpole";
    cheetah_agrees_with_mujoco_to_rounding_in_f64, cheetah_agrees_with_mujoco_in_f32: "cheetah";
    hopper_agrees_with_mujoco_to_rounding_in_f64, hopper_agrees_with_mujoco_in_f32: "hopper";
    walker_agrees_with_mujoco_to_rounding_in_f64, walker_agrees_with_mujoco_in_f32: "walker";
    humanoid_agrees_with_mujoco_to_rounding_in_f64, humanoid_agrees_with_mujoco_in_f32: "humanoid";
}
