//! Physics steps per second of one core: random controls, contacts on, states that a random policy visits.
//!
//! ```sh
//! cargo run --release -p sim-vec --example throughput -- [models=cheetah,humanoid] [precision=f32] [isa=avx512]
//!     [envs=64] [steps=400] [hold=5] [rounds=5] [iterations=100] [constraint=on] [contact=on]
//! ```
//!
//! `hold` is the number of steps a control is kept. Time is the thread's CPU time where the system reports it
//! (Linux), else wall time; the fastest round counts, the spread of the rounds is printed.
#[path = "../tests/golden/load.rs"]
#[allow(dead_code)]
mod load;

use load::{Golden, numbers};
use sim_vec::dispatch::{Isa, LaneVisitor, Precision, with_lane};
use sim_vec::engine::{Engine, State};
use sim_vec::lane::Lane;
use sim_vec::mjcf;
use sim_vec::models::builtin;
use std::sync::Arc;
use std::time::Instant;

struct Settings {
    envs: usize,
    steps: usize,
    hold: usize,
    rounds: usize,
}

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let get = |key: &str, default: &str| {
        let found = args.iter().find_map(|a| a.strip_prefix(&format!("{key}=")));
        found.unwrap_or(default).to_string()
    };
    let number = |key: &str, default: &str| get(key, default).parse::<usize>().expect("a number");
    let isa = match get("isa", "") {
        word if word.is_empty() => Isa::choose(None).expect("PHALANX_ISA"),
        word => Isa::choose(Some(word.parse().expect("isa"))).expect("isa"),
    };
    let precision = if get("precision", "f32") == "f64" { Precision::F64 } else { Precision::F32 };
    let settings = Settings {
        envs: number("envs", "64"),
        steps: number("steps", "400"),
        hold: number("hold", "5"),
        rounds: number("rounds", "5"),
    };
    for name in get("models", "cheetah,humanoid").split(',') {
        let mut golden = load::load(name);
        golden.model = mjcf::parse(builtin(name).expect("a model that ships"), name).expect("it compiles");
        let opt = &mut golden.model.opt;
        opt.iterations = number("iterations", &opt.iterations.to_string());
        opt.constraint &= get("constraint", "on") == "on";
        opt.contact &= get("contact", "on") == "on";
        println!("{name} {isa} {precision:?}: {}", with_lane(isa, precision, Measure { golden, settings: &settings }));
    }
}

struct Measure<'a> {
    golden: Golden,
    settings: &'a Settings,
}

impl LaneVisitor for Measure<'_> {
    type Out = String;

    fn visit<L: Lane>(self) -> String {
        let o = self.settings;
        let engine = Engine::<L>::new(Arc::new(self.golden.model.clone())).expect("a supported model");
        let mut x = engine.scratch();
        let mut starts: Vec<State<L>> = Vec::new();
        for block in 0..o.envs.div_ceil(L::W) {
            let mut s = engine.state();
            for lane in 0..L::W {
                let v = &self.golden.states[(block * L::W + lane) % self.golden.states.len()];
                s.qpos.iter_mut().zip(numbers(&v["qpos"])).for_each(|(q, n)| q.set(lane, n));
                s.qvel.iter_mut().zip(numbers(&v["qvel"])).for_each(|(q, n)| q.set(lane, n));
            }
            starts.push(s);
        }
        let done = (starts.len() * L::W * o.steps) as f64;
        let (mut rates, mut contacts, mut iterations) = (Vec::new(), 0, 0);
        for _ in 0..o.rounds {
            let mut states = starts.clone();
            (contacts, iterations) = (0, 0);
            let begin = cpu_seconds();
            for (block, s) in states.iter_mut().enumerate() {
                for step in (0..o.steps).step_by(o.hold) {
                    for u in 0..s.ctrl.len() {
                        for lane in 0..L::W {
                            s.ctrl[u].set(lane, control(block * L::W + lane, step / o.hold, u));
                        }
                    }
                    engine.step(s, &mut x, o.hold.min(o.steps - step));
                    contacts += (0..L::W).map(|lane| engine.contacts(&x, lane)).sum::<usize>();
                    iterations += engine.iterations(&x);
                }
            }
            rates.push(done / (cpu_seconds() - begin));
            assert!(states.iter().all(|s| (0..L::W).all(|l| s.qpos[0].get(l).is_finite())), "a lane is not finite");
        }
        let sampled = (starts.len() * o.steps.div_ceil(o.hold)) as f64;
        rates.sort_by(f64::total_cmp);
        format!(
            "{:.0} steps/s per core ({:.3} us; rounds {:.0} to {:.0}), {:.2} contacts per env, {:.2} iterations per block",
            rates[rates.len() - 1],
            1e6 / rates[rates.len() - 1],
            rates[0],
            rates[rates.len() - 1],
            contacts as f64 / sampled / L::W as f64,
            iterations as f64 / sampled
        )
    }
}

/// Uniform in [−1, 1) from a hash of environment, step and actuator; `benches/peers` uses the same.
fn control(env: usize, step: usize, actuator: usize) -> f64 {
    let mut h = (env as u32).wrapping_mul(0x9E37_79B1)
        ^ (step as u32).wrapping_mul(0x85EB_CA77)
        ^ (actuator as u32).wrapping_mul(0xC2B2_AE3D);
    h ^= h >> 15;
    h = h.wrapping_mul(0x2C1B_3C6D);
    h ^= h >> 12;
    h = h.wrapping_mul(0x297A_2D39);
    h ^= h >> 15;
    (h >> 8) as f64 / 8_388_608.0 - 1.0
}

/// CPU time of this thread, or wall time where there is no `/proc/thread-self/schedstat`.
fn cpu_seconds() -> f64 {
    static START: std::sync::OnceLock<Instant> = std::sync::OnceLock::new();
    let start = START.get_or_init(Instant::now);
    let stat = std::fs::read_to_string("/proc/thread-self/schedstat").ok();
    let nanoseconds = stat.and_then(|s| s.split(' ').next().and_then(|n| n.parse::<f64>().ok()));
    nanoseconds.map_or_else(|| start.elapsed().as_secs_f64(), |n| n * 1e-9)
}
