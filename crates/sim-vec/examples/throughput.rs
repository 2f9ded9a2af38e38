//! Physics steps per second of one core: random controls, contacts on, states that a random policy visits.
//!
//! ```sh
//! cargo run --release -p sim-vec --example throughput -- model=humanoid [precision=f32] [isa=avx512] [envs=64]
//!     [steps=400] [hold=5] [rounds=5] [same=off] [stages=off] [iterations=100] [constraint=on] [contact=on]
//! ```
//!
//! `model` is one that ships, or `xml` and `states` name files: a model, and `{"states": [{"qpos": …, "qvel": …}]}`.
//! `hold` is the number of steps a control is kept. Each environment runs from its state with a zero warm start.
//! With `same=on` all lanes of a block hold the same environment, so that no lane waits for another; there is a block
//! for each environment then. With `stages=on` some more rounds say what share of the time each stage takes.
//! Without words it reads requests from standard input (see `request`).
//!
//! The answer is a line of JSON. `rates` are steps per second in each round, by the thread's CPU time on Linux,
//! elsewhere by wall time.
mod request;

use request::{Failure, Request, control};
use serde_json::{Value, json};
use sim_vec::dispatch::{LaneVisitor, with_lane};
use sim_vec::engine::{Engine, Scratch, Stage, State};
use sim_vec::lane::Lane;
use sim_vec::mjcf;
use sim_vec::model::Model;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Instant;

const KEYS: [&str; 14] = [
    "model",
    "xml",
    "states",
    "precision",
    "isa",
    "envs",
    "steps",
    "hold",
    "rounds",
    "same",
    "stages",
    "iterations",
    "constraint",
    "contact",
];

/// Rounds that stages are timed in, at least.
const STAGE_ROUNDS: usize = 7;

/// A model with states to start from.
#[derive(Clone)]
struct Start {
    model: Model,
    states: Vec<[Vec<f64>; 2]>,
}

struct Settings {
    envs: usize,
    steps: usize,
    hold: usize,
    rounds: usize,
    same: bool,
    stages: bool,
}

fn main() -> ExitCode {
    let mut cache: Option<([PathBuf; 2], Start)> = None;
    request::serve(&KEYS, |r| {
        let (isa, precision) = r.lanes()?;
        let on = |key: &str, default: &str| r.word(key).unwrap_or(default) == "on";
        let o = Settings {
            envs: r.number("envs", 64)?.max(1),
            steps: r.number("steps", 400)?.max(1),
            hold: r.number("hold", 5)?.max(1),
            rounds: r.number("rounds", 5)?.max(1),
            same: on("same", "off"),
            stages: on("stages", "off"),
        };
        let files = files(r)?;
        if cache.as_ref().is_none_or(|(f, _)| *f != files) {
            cache = Some((files.clone(), read(&files)?));
        }
        let mut start = cache.as_ref().expect("just read").1.clone();
        let opt = &mut start.model.opt;
        opt.iterations = r.number("iterations", opt.iterations)?;
        opt.constraint &= on("constraint", "on");
        opt.contact &= on("contact", "on");
        let mut out = with_lane(isa, precision, Measure { start, settings: &o })?;
        out["isa"] = json!(isa.to_string());
        out["precision"] = json!(format!("{precision:?}").to_lowercase());
        Ok(out)
    })
}

/// Where the model and the states are.
fn files(r: &Request) -> Result<[PathBuf; 2], Failure> {
    let here = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    match (r.word("model"), r.word("xml"), r.word("states")) {
        (Some(name), None, None) => {
            Ok([here.join(format!("models/{name}.xml")), here.join(format!("tests/golden/physics_{name}.json"))])
        }
        (None, Some(xml), Some(states)) => Ok([xml.into(), states.into()]),
        _ => Err("give model=NAME, or xml=FILE and states=FILE".into()),
    }
}

fn read([xml, states]: &[PathBuf; 2]) -> Result<Start, Failure> {
    let model = mjcf::load(xml)?;
    let text = std::fs::read_to_string(states).map_err(|e| format!("{}: {e}", states.display()))?;
    let value: Value = serde_json::from_str(&text).map_err(|e| format!("{}: {e}", states.display()))?;
    let bad = || Failure::from(format!("{}: needs states with qpos and qvel of the model's lengths", states.display()));
    let numbers = |v: &Value, length: usize| {
        let all: Option<Vec<f64>> = v.as_array().and_then(|a| a.iter().map(Value::as_f64).collect());
        all.filter(|v| v.len() == length).ok_or_else(bad)
    };
    let list = value["states"].as_array().filter(|s| !s.is_empty()).ok_or_else(bad)?;
    let one = |s: &Value| Ok([numbers(&s["qpos"], model.nq)?, numbers(&s["qvel"], model.nv())?]);
    let states = list.iter().map(one).collect::<Result<_, Failure>>()?;
    Ok(Start { model, states })
}

/// What the samples of a round, one per control, add up to.
#[derive(Default)]
struct Sums {
    samples: usize,
    contacts: usize,
    /// Over blocks, of the slowest lane.
    worst: usize,
    /// Over lanes.
    iterations: usize,
}

impl Sums {
    fn add<L: Lane>(&mut self, engine: &Engine<L>, x: &Scratch<L>) {
        self.samples += 1;
        self.worst += engine.iterations(x);
        for lane in 0..L::W {
            self.contacts += engine.contacts(x, lane);
            self.iterations += engine.lane_iterations(x, lane);
        }
    }
}

/// Takes a block some steps further.
type Advance<'a, L> = dyn FnMut(&mut State<L>, &mut Scratch<L>, usize) + 'a;

struct Measure<'a> {
    start: Start,
    settings: &'a Settings,
}

impl LaneVisitor for Measure<'_> {
    type Out = Result<Value, Failure>;

    fn visit<L: Lane>(self) -> Self::Out {
        let (o, from) = (self.settings, &self.start.states);
        let engine = Engine::<L>::new(Arc::new(self.start.model))?;
        let mut x = engine.scratch();
        let blocks = if o.same { o.envs } else { o.envs.div_ceil(L::W) };
        let env = |block: usize, lane: usize| if o.same { block } else { block * L::W + lane };
        let mut starts = Vec::new();
        for block in 0..blocks {
            let mut s = engine.state();
            for lane in 0..L::W {
                let [qpos, qvel] = &from[env(block, lane) % from.len()];
                s.qpos.iter_mut().zip(qpos).for_each(|(q, &n)| q.set(lane, n));
                s.qvel.iter_mut().zip(qvel).for_each(|(q, &n)| q.set(lane, n));
            }
            starts.push(s);
        }
        let run = |x: &mut Scratch<L>, advance: &mut Advance<'_, L>| {
            let (mut states, mut sums) = (starts.clone(), Sums::default());
            let begin = cpu_seconds();
            for (block, s) in states.iter_mut().enumerate() {
                for step in (0..o.steps).step_by(o.hold) {
                    for u in 0..s.ctrl.len() {
                        for lane in 0..L::W {
                            s.ctrl[u].set(lane, control(env(block, lane), step / o.hold, u));
                        }
                    }
                    advance(s, x, o.hold.min(o.steps - step));
                    sums.add(&engine, x);
                }
            }
            let seconds = cpu_seconds() - begin;
            let finite = states.iter().all(|s| (0..L::W).all(|l| s.qpos[0].get(l).is_finite()));
            if finite { Ok((seconds, sums)) } else { Err(Failure::from("a lane is not finite")) }
        };
        let done = (blocks * L::W * o.steps) as f64;
        let (mut rates, mut last) = (Vec::new(), Sums::default());
        for _ in 0..o.rounds {
            let (seconds, sums) = run(&mut x, &mut |s, x, n| engine.step(s, x, n))?;
            rates.push(done / seconds);
            last = sums;
        }
        let lanes = (last.samples * L::W) as f64;
        let mut out = json!({
            "rates": rates,
            "lanes": L::W,
            "contacts": last.contacts as f64 / lanes,
            "iterations": last.iterations as f64 / lanes,
            "worst_iterations": last.worst as f64 / last.samples as f64,
        });
        if o.stages {
            // wall time, finer and cheaper; the least of some rounds, for what else runs on the core
            let mut times = [f64::INFINITY; Stage::ALL.len()];
            for _ in 0..o.rounds.max(STAGE_ROUNDS) {
                let (mut sums, mut then) = ([0.0; Stage::ALL.len()], Instant::now());
                run(&mut x, &mut |s, x, n| {
                    then = Instant::now();
                    engine.step_marked(s, x, n, |stage| {
                        let now = Instant::now();
                        sums[stage as usize] += (now - then).as_secs_f64();
                        then = now;
                    });
                })?;
                times.iter_mut().zip(sums).for_each(|(t, s)| *t = t.min(s));
            }
            let sum: f64 = times.iter().sum();
            for stage in Stage::ALL {
                out["stages"][format!("{stage:?}").to_lowercase()] = json!(times[stage as usize] / sum);
            }
        }
        Ok(out)
    }
}

/// CPU time of this thread. The scheduler's own account in `/proc` moves only with its ticks, of some milliseconds.
#[cfg(target_os = "linux")]
fn cpu_seconds() -> f64 {
    let t = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    t.tv_sec as f64 + t.tv_nsec as f64 * 1e-9
}

/// Wall time.
#[cfg(not(target_os = "linux"))]
fn cpu_seconds() -> f64 {
    static START: std::sync::OnceLock<Instant> = std::sync::OnceLock::new();
    START.get_or_init(Instant::now).elapsed().as_secs_f64()
}
