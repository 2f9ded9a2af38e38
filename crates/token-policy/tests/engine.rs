//! What the engine promises, on a model without weights: its logits are a hash of the slot's own tokens.

use std::cell::Cell;
use std::rc::Rc;

use candle_core::Result;
use token_policy::{
    Batching, Choice, Ending, EngineConfig, EngineError, Generation, Generator, Order, Request, generate,
};

const V: usize = 7;

struct Hashed {
    slots: Vec<Vec<u32>>,
    capacity: usize,
    /// Rows of every call to `step`.
    calls: Vec<usize>,
    prefills: usize,
    now: Rc<Cell<f64>>,
    broken: bool,
}

impl Hashed {
    fn new(slots: usize) -> Self {
        Hashed {
            slots: vec![vec![]; slots],
            capacity: 200,
            calls: vec![],
            prefills: 0,
            now: Rc::default(),
            broken: false,
        }
    }

    fn logits(&self, slot: usize, out: &mut [f32]) {
        let mut h = 0xcbf2_9ce4_8422_2325u64;
        for id in &self.slots[slot] {
            h = (h ^ u64::from(*id)).wrapping_mul(0x0100_0000_01b3);
        }
        for (k, x) in out.iter_mut().enumerate() {
            h = (h ^ k as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(23);
            *x = (h >> 40) as f32 / (1u64 << 24) as f32 * 2.0;
        }
        out[0] -= 1.5; // the end comes seldom: lengths have a tail
        if self.broken {
            out[3] = f32::NAN;
        }
    }
}

impl Generator for Hashed {
    fn vocab(&self) -> usize {
        V
    }
    fn slots(&self) -> usize {
        self.slots.len()
    }
    fn capacity(&self) -> usize {
        self.capacity
    }
    fn prefill(&mut self, slot: usize, prompt: &[u32], logits: &mut [f32]) -> Result<()> {
        self.slots[slot] = prompt.to_vec();
        self.prefills += 1;
        self.logits(slot, logits);
        Ok(())
    }
    fn fork(&mut self, from: usize, to: usize) -> Result<()> {
        self.slots[to] = self.slots[from].clone();
        Ok(())
    }
    fn step(&mut self, slots: &[usize], tokens: &[u32], logits: &mut [f32]) -> Result<()> {
        self.calls.push(slots.len());
        self.now.set(self.now.get() + 1.0);
        for (i, (&s, &t)) in slots.iter().zip(tokens).enumerate() {
            self.slots[s].push(t);
            assert!(self.slots[s].len() <= self.capacity, "slot {s} is over its capacity");
            self.logits(s, &mut logits[i * V..(i + 1) * V]);
        }
        Ok(())
    }
}

fn config(batching: Batching) -> EngineConfig {
    EngineConfig {
        batching,
        choice: Choice::Temperature(0.8),
        order: Order::AsGiven,
        max_tokens: 60,
        ends: vec![0],
        usable: 6,
        keep_members: None,
        keep_groups: None,
        seed: 5,
    }
}

/// Groups of `g` with prompts of their own.
fn requests(prompts: &[Vec<u32>], g: usize) -> Vec<Request<'_>> {
    let member = |i: usize| Request {
        prompt: &prompts[i / g],
        group: (i / g) as u32,
        stream: i as u64,
        predicted: (i / g) as f32,
    };
    (0..prompts.len() * g).map(member).collect()
}

fn prompts(n: usize) -> Vec<Vec<u32>> {
    (0..n as u32).map(|p| (0..=p % 4).map(|t| 1 + (p + t) % 5).collect()).collect()
}

fn run(model: &mut Hashed, requests: &[Request], config: &EngineConfig) -> Generation {
    generate(model, requests, config, &|| 0.0).unwrap()
}

fn lengths(g: &Generation) -> Vec<usize> {
    g.completed.iter().map(|c| c.as_ref().map_or(0, |c| c.tokens.len())).collect()
}

#[test]
fn every_way_of_batching_draws_the_same_completions() {
    let prompts = prompts(6);
    let requests = requests(&prompts, 4);
    let of = |batching, slots: usize, order| {
        let config = EngineConfig { order, ..config(batching) };
        run(&mut Hashed::new(slots + 1), &requests, &config).completed
    };
    let want = of(Batching::Continuous, 24, Order::AsGiven);
    assert!(lengths_of(&want).iter().max() > lengths_of(&want).iter().min());
    for batching in [Batching::PaddedGroups, Batching::PaddedWave, Batching::Continuous] {
        for slots in [3, 7, 24] {
            for order in [Order::AsGiven, Order::LongestFirst] {
                let got = of(batching, slots, order);
                let same = want.iter().zip(&got).all(|(a, b)| {
                    let (a, b) = (a.as_ref().unwrap(), b.as_ref().unwrap());
                    a.tokens == b.tokens && a.log_prob == b.log_prob && a.ending == b.ending
                });
                assert!(same, "{batching:?} with {slots} slots, {order:?}");
            }
        }
    }
}

fn lengths_of(completed: &[Option<token_policy::Completed>]) -> Vec<usize> {
    completed.iter().map(|c| c.as_ref().unwrap().tokens.len()).collect()
}

/// The first token comes with the prompt; every other takes a call.
#[test]
fn padded_batches_step_rows_times_longest_and_continuous_ones_only_what_is_needed() {
    let prompts = prompts(5);
    let requests = requests(&prompts, 4);
    let mut model = Hashed::new(21);
    let wave = run(&mut model, &requests, &config(Batching::PaddedWave));
    let lengths = lengths(&wave);
    let longest = *lengths.iter().max().unwrap();
    assert_eq!(model.calls, vec![20; longest - 1]);
    assert_eq!(wave.stats.stepped, (20 * longest) as u64);

    let mut model = Hashed::new(21);
    let groups = run(&mut model, &requests, &config(Batching::PaddedGroups));
    let per_group: usize = lengths.chunks(4).map(|g| 4 * g.iter().max().unwrap()).sum();
    assert_eq!(groups.stats.stepped, per_group as u64);

    for slots in [3, 20] {
        let mut model = Hashed::new(slots + 1);
        let flow = run(&mut model, &requests, &config(Batching::Continuous));
        assert_eq!(flow.stats.stepped, lengths.iter().sum::<usize>() as u64);
        assert_eq!(flow.stats.useful, flow.stats.stepped);
        assert!(model.calls.iter().all(|rows| *rows <= slots));
    }
}

#[test]
fn the_members_of_a_group_share_one_reading_of_their_prompt() {
    let prompts = prompts(5);
    for batching in [Batching::PaddedGroups, Batching::PaddedWave, Batching::Continuous] {
        let mut model = Hashed::new(8);
        let g = run(&mut model, &requests(&prompts, 4), &config(batching));
        assert_eq!((model.prefills, g.stats.prompt), (5, prompts.iter().map(|p| p.len() as u64).sum()), "{batching:?}");
    }
}

#[test]
fn a_completion_ends_at_any_of_the_ends_or_is_truncated_at_the_longest_length() {
    let prompts = prompts(8);
    let config = EngineConfig { ends: vec![0, 4], max_tokens: 5, ..config(Batching::Continuous) };
    let g = run(&mut Hashed::new(9), &requests(&prompts, 2), &config);
    let mut seen = [0, 0, 0];
    for c in g.completed.iter().flatten() {
        let end = c.tokens.iter().position(|t| [0, 4].contains(t));
        match c.ending {
            Ending::Stopped => {
                assert_eq!(end, Some(c.tokens.len() - 1));
                seen[usize::from(*c.tokens.last().unwrap() == 4)] += 1;
            }
            Ending::Truncated => {
                assert_eq!((end, c.tokens.len()), (None, 5));
                seen[2] += 1;
            }
        }
        assert!(c.tokens.iter().all(|t| *t < 6), "an id that is not usable");
    }
    assert!(seen.iter().all(|n| *n > 0), "{seen:?}");
}

#[test]
fn racing_keeps_the_first_members_makes_no_call_too_many_and_meters_its_bias() {
    let prompts = prompts(3);
    let requests = requests(&prompts, 6);
    let all = lengths(&run(&mut Hashed::new(19), &requests, &config(Batching::Continuous)));
    for batching in [Batching::PaddedGroups, Batching::PaddedWave, Batching::Continuous] {
        let mut model = Hashed::new(19);
        let config = EngineConfig { keep_members: Some(4), ..config(batching) };
        let g = run(&mut model, &requests, &config);
        let kept = lengths(&g);
        let mut latest = 0;
        for (all, kept) in all.chunks(6).zip(kept.chunks(6)) {
            assert_eq!(kept.iter().filter(|n| **n > 0).count(), 4, "{batching:?}");
            let mut sorted = all.to_vec();
            sorted.sort_unstable();
            let longest = *kept.iter().max().unwrap();
            assert_eq!(longest, sorted[3], "{batching:?}: the first four are the shortest four");
            latest = latest.max(longest);
        }
        if batching != Batching::PaddedGroups {
            assert_eq!(model.calls.len(), latest - 1, "{batching:?}: no call after the last needed row");
        }
        assert!(g.stats.bias < 1.0, "{batching:?}: {}", g.stats.bias);
    }
    assert_eq!(run(&mut Hashed::new(19), &requests, &config(Batching::Continuous)).stats.bias, 1.0);
}

#[test]
fn racing_groups_stops_when_enough_are_whole() {
    let prompts = prompts(6);
    let requests = requests(&prompts, 3);
    let config = EngineConfig { keep_groups: Some(4), ..config(Batching::Continuous) };
    let g = run(&mut Hashed::new(19), &requests, &config);
    let whole = g.completed.chunks(3).filter(|c| c.iter().all(Option::is_some)).count();
    assert_eq!(whole, 4);
}

/// Each call takes a second. Four slots and six rows: while rows wait for a slot, nobody waits for stragglers, however few
/// are live.
#[test]
fn waiting_on_the_tail_is_told_from_filling_the_batch() {
    let prompts = prompts(6);
    let requests = requests(&prompts, 1);
    for (slots, batching) in [(4, Batching::Continuous), (6, Batching::PaddedWave), (6, Batching::PaddedGroups)] {
        let mut model = Hashed::new(slots + 1);
        let now = Rc::clone(&model.now);
        let clock = move || now.get();
        let g = generate(&mut model, &requests, &config(batching), &clock).unwrap();
        let lengths = lengths(&g);
        assert_eq!(g.stats.seconds, model.calls.len() as f64);
        let want = match batching {
            // a group of one is never less than half full
            Batching::PaddedGroups => 0,
            Batching::PaddedWave => {
                let mut sorted = lengths.clone();
                sorted.sort_unstable();
                sorted[5] - sorted[3] // fewer than three of six live
            }
            Batching::Continuous => model.calls.iter().rev().take_while(|rows| **rows < 2).count(),
        };
        assert_eq!(g.stats.tail_seconds, want as f64, "{batching:?} {lengths:?} {:?}", model.calls);
        let finished: Vec<f64> = g.completed.iter().flatten().map(|c| c.finished_s).collect();
        if batching == Batching::PaddedWave {
            assert!(finished.iter().zip(&lengths).all(|(s, n)| *s == (*n - 1) as f64));
        }
    }
}

#[test]
fn what_cannot_be_generated_is_refused_by_request_and_remedy() {
    let say = |model: &mut Hashed, prompt: &[u32], change: fn(&mut EngineConfig)| {
        let mut config = config(Batching::Continuous);
        change(&mut config);
        let r = [
            Request { prompt: &[1], group: 0, stream: 0, predicted: 0.0 },
            Request { prompt, group: 1, stream: 1, predicted: 0.0 },
        ];
        generate(model, &r, &config, &|| 0.0).map(|_| ()).map_err(|e: EngineError| e.to_string()).unwrap_err()
    };
    let mut model = Hashed::new(3);
    assert!(say(&mut model, &[], |_| ()).contains("prompt 1 is empty"));
    let long = say(&mut model, &[1; 150], |_| ());
    assert!(long.contains("prompt 1 has 150 tokens") && long.contains("200"), "{long}");
    for t in [0.0, 1e-5, -1.0, f32::NAN, f32::INFINITY] {
        let config = EngineConfig { choice: Choice::Temperature(t), ..config(Batching::Continuous) };
        assert!(generate(&mut model, &[], &config, &|| 0.0).unwrap_err().to_string().contains("temperature"), "{t}");
    }
    assert!(say(&mut model, &[2], |c| c.max_tokens = 0).contains("max_tokens is 0"));
    assert!(say(&mut Hashed::new(1), &[2], |_| ()).contains("at least 2"));
    model.broken = true;
    let broken = say(&mut model, &[2], |_| ());
    assert!(broken.contains("token 0 of prompt 0") && broken.contains("not usable"), "{broken}");
    model.broken = false;
    assert_eq!(run(&mut model, &[], &config(Batching::PaddedWave)).completed, vec![]);
}

#[test]
fn greedy_completions_are_the_same_whatever_the_seed() {
    let prompts = prompts(3);
    let requests = requests(&prompts, 2);
    let of = |seed| {
        let config = EngineConfig { choice: Choice::Greedy, seed, ..config(Batching::Continuous) };
        lengths(&run(&mut Hashed::new(7), &requests, &config))
    };
    assert_eq!(of(1), of(2));
    assert!(of(1).chunks(2).all(|g| g[0] == g[1]), "members of a group are alike");
}
