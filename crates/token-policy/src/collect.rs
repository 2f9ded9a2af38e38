//! From a text task to a rollout.

use candle_core::Result as TensorResult;
use onpolicy::{Bundle, BundleError, Noise, Persist};
use rayon::prelude::*;
use rollouts::{Rollout, Status, TextTask};

use crate::codec::{Codec, CodecError};
use crate::decoding::Decoding;
use crate::ending::Ending;
use crate::engine::{Batching, Choice, Completed, EngineConfig, EngineError, Order, Request, Stats, generate};
use crate::policy::TokenPolicy;
use crate::tokens::Tokens;

/// Whether more is begun than is needed, so that nobody waits for the last.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Race {
    /// Every completion that is begun is kept.
    None,
    /// `factor·G` members are begun in each group and the first G that end are kept. Prefers short completions, which
    /// [`Stats::bias`] measures.
    Members {
        /// At least 1.
        factor: f32,
    },
    /// Short rounds begin `factor·P` prompts with `factor·G` members, and keep the first G of the first P groups. Prompts
    /// that were cut off wait; as soon as P wait, they get a long round of their own in which nobody races. No prompt is
    /// lost, only put off. After RollPacker (arXiv 2509.21009).
    Tail {
        /// At least 1.
        factor: f32,
    },
}

/// How completions are written.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Writing {
    /// Racing.
    pub race: Race,
    /// Way of batching.
    pub batching: Batching,
    /// Order of admission; predictions are prompt lengths.
    pub order: Order,
    /// Sequences decoded side by side at most.
    pub slots: usize,
}

/// Why nothing was collected.
#[derive(Debug, thiserror::Error)]
pub enum CollectError {
    /// A prompt has no tokens in this vocabulary.
    #[error("prompt {index}: {reason}")]
    Prompt {
        /// Its number.
        index: u64,
        /// Why.
        reason: CodecError,
    },
    /// The engine.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// The tensors.
    #[error(transparent)]
    Tensor(#[from] candle_core::Error),
}

/// One generation, scored.
pub struct Collected {
    /// One step; a lane is a completion.
    pub rollout: Rollout<Tokens, Tokens>,
    /// Number of each group's prompt.
    pub prompts: Vec<u64>,
    /// What it took.
    pub stats: Stats,
}

/// Walks through a task's prompts and has a policy complete them in groups.
///
/// Where there are finitely many prompts, each is used once before any is used again, in an order that is drawn anew for
/// every pass; a generated task never repeats one.
#[derive(Clone, Debug, PartialEq)]
pub struct TextCollector {
    /// Prompts that were cut off in a short round.
    waiting: Vec<u64>,
    seed: u64,
    /// Prompts used so far.
    position: u64,
    /// Completions begun so far: each has a stream of draws of its own.
    streams: u64,
}

impl TextCollector {
    /// Prompts and draws follow from `seed`.
    pub fn new(seed: u64) -> Self {
        TextCollector { waiting: Vec::new(), seed, position: 0, streams: 0 }
    }

    /// Prompts used so far.
    pub fn position(&self) -> u64 {
        self.position
    }

    /// Numbers of the next prompts.
    fn next(&mut self, count: usize, len: Option<u64>) -> Vec<u64> {
        let first = self.position;
        self.position += count as u64;
        let Some(len) = len else {
            // a run's own range of seeds
            return (first..self.position).map(|i| (self.seed << 32).wrapping_add(i)).collect();
        };
        let mut pass = (u64::MAX, Vec::new());
        (first..self.position)
            .map(|i| {
                if i / len != pass.0 {
                    let mut noise = Noise::named(self.seed, &format!("prompts, pass {}", i / len));
                    pass = (i / len, noise.permutation(len as usize));
                }
                u64::from(pass.1[(i % len) as usize])
            })
            .collect()
    }

    /// `groups` prompts, `group_size` completions of each, scored.
    ///
    /// Errors: [`CollectError`].
    pub fn collect(
        &mut self,
        policy: &TokenPolicy,
        task: &(impl TextTask + Sync + ?Sized),
        codec: &(impl Codec + Sync + ?Sized),
        groups: usize,
        group_size: usize,
        writing: Writing,
        clock: &dyn Fn() -> f64,
    ) -> Result<Collected, CollectError> {
        let more = |n: usize, factor: f32| ((n as f64 * f64::from(factor)).ceil() as usize).max(n);
        let mut plan = Plan { copies: group_size, keep_members: None, keep_groups: None };
        let prompts = match writing.race {
            Race::Tail { .. } if self.waiting.len() >= groups => self.waiting.drain(..groups).collect(),
            Race::None => self.next(groups, task.len()),
            Race::Members { factor } => {
                plan = Plan { copies: more(group_size, factor), keep_members: Some(group_size), keep_groups: None };
                self.next(groups, task.len())
            }
            Race::Tail { factor } => {
                let copies = more(group_size, factor);
                plan = Plan { copies, keep_members: Some(group_size), keep_groups: Some(groups) };
                self.next(more(groups, factor), task.len())
            }
        };
        let first = self.streams;
        self.streams += (prompts.len() * plan.copies) as u64;
        let choice = Choice::Temperature(policy.temperature);
        let written = write(policy, task, codec, &prompts, plan, choice, writing, self.draws(), first, clock)?;
        let kept: Vec<u32> = whole(&written.scored, plan.copies, group_size).into_iter().take(groups).collect();
        if matches!(writing.race, Race::Tail { .. }) {
            self.waiting.extend((0..prompts.len() as u32).filter(|g| !kept.contains(g)).map(|g| prompts[g as usize]));
        }
        let (rollout, kept) = rollout(written.rows, written.scored, &kept, plan.copies)?;
        let prompts = kept.into_iter().map(|g| prompts[g as usize]).collect();
        Ok(Collected { rollout, prompts, stats: written.stats })
    }

    /// Writes the completions that the last [`TextCollector::collect`] of `prompts` wrote without racing once more, another
    /// way, and says what that takes.
    ///
    /// Errors: [`CollectError`].
    pub fn again(
        &self,
        policy: &TokenPolicy,
        task: &(impl TextTask + Sync + ?Sized),
        codec: &(impl Codec + Sync + ?Sized),
        prompts: &[u64],
        group_size: usize,
        writing: Writing,
        clock: &dyn Fn() -> f64,
    ) -> Result<Stats, CollectError> {
        let first = self.streams - (prompts.len() * group_size) as u64;
        let choice = Choice::Temperature(policy.temperature);
        let plan = Plan { copies: group_size, keep_members: None, keep_groups: None };
        Ok(write(policy, task, codec, prompts, plan, choice, writing, self.draws(), first, clock)?.stats)
    }

    /// Seed of all completions.
    fn draws(&self) -> u64 {
        u64::from(Noise::named(self.seed, "completions").uniform(1)[0].to_bits()) ^ self.seed
    }
}

/// Groups of which `size` members ended, in order. `copies` were begun in each.
fn whole(scored: &[Option<Scored>], copies: usize, size: usize) -> Vec<u32> {
    let groups = scored.chunks(copies).enumerate();
    groups.filter(|(_, g)| g.iter().flatten().count() >= size).map(|(g, _)| g as u32).collect()
}

impl Persist for TextCollector {
    fn save(&self, prefix: &str, to: &mut Bundle) {
        to.put_u64(&format!("{prefix}.prompts"), &[self.seed, self.position, self.streams, self.waiting.len() as u64]);
        to.put_u64(&format!("{prefix}.waiting"), &self.waiting);
    }

    fn load(&mut self, prefix: &str, from: &Bundle) -> Result<(), BundleError> {
        let v = from.u64s(&format!("{prefix}.prompts"), 4)?;
        self.waiting = from.u64s(&format!("{prefix}.waiting"), v[3] as usize)?.into();
        (self.seed, self.position, self.streams) = (v[0], v[1], v[2]);
        Ok(())
    }
}

/// How many completions of a prompt are begun and kept.
#[derive(Clone, Copy)]
pub(crate) struct Plan {
    pub copies: usize,
    pub keep_members: Option<usize>,
    pub keep_groups: Option<usize>,
}

/// A completion with its score.
#[derive(Clone, Debug, PartialEq)]
pub struct Scored {
    /// What was written.
    pub completed: Completed,
    /// The task's verdict, in [0, 1].
    pub score: f32,
}

/// What [`write`] wrote.
pub(crate) struct Written {
    /// Prompts, one row a completion.
    pub rows: Tokens,
    /// `None` where a completion was cancelled.
    pub scored: Vec<Option<Scored>>,
    pub stats: Stats,
}

/// Completions of each prompt, scored.
pub(crate) fn write(
    policy: &TokenPolicy,
    task: &(impl TextTask + Sync + ?Sized),
    codec: &(impl Codec + Sync + ?Sized),
    prompts: &[u64],
    plan: Plan,
    choice: Choice,
    writing: Writing,
    seed: u64,
    first_stream: u64,
    clock: &dyn Fn() -> f64,
) -> Result<Written, CollectError> {
    let encode =
        |&index: &u64| codec.encode(&task.prompt(index)).map_err(|reason| CollectError::Prompt { index, reason });
    let encoded: Vec<Vec<u32>> = prompts.iter().map(encode).collect::<Result<_, _>>()?;
    let request = |i: usize| Request {
        prompt: &encoded[i / plan.copies],
        group: (i / plan.copies) as u32,
        stream: first_stream + i as u64,
        predicted: encoded[i / plan.copies].len() as f32,
    };
    let requests: Vec<Request> = (0..prompts.len() * plan.copies).map(request).collect();
    let config = EngineConfig {
        batching: writing.batching,
        choice,
        order: writing.order,
        max_tokens: policy.max_tokens,
        ends: policy.ends.clone(),
        usable: policy.usable,
        keep_members: plan.keep_members,
        keep_groups: plan.keep_groups,
        seed,
    };
    let begun = clock();
    let longest = encoded.iter().map(Vec::len).max().unwrap_or(0);
    let slots = writing.slots.min(requests.len()).max(1);
    let mut decoding = Decoding::new(&policy.decoder, slots + 1, longest + policy.max_tokens)?;
    let mut generation = generate(&mut decoding, &requests, &config, clock)?;
    // packing the weights belongs to it
    generation.stats.seconds = clock() - begun;
    let score = |(i, completed): (usize, Option<Completed>)| {
        let completed = completed?;
        let ended = completed.ending == Ending::Stopped;
        let text = codec.decode(&completed.tokens[..completed.tokens.len() - usize::from(ended)]);
        Some(Scored { score: task.score(prompts[i / plan.copies], &text), completed })
    };
    let scored = generation.completed.into_par_iter().enumerate().map(score).collect();
    Ok(Written { rows: Tokens::new(requests.iter().map(|r| r.prompt)), scored, stats: generation.stats })
}

/// The completions of the kept groups, in order, with the groups' places among the prompts.
fn rollout(
    rows: Tokens,
    scored: Vec<Option<Scored>>,
    kept: &[u32],
    copies: usize,
) -> TensorResult<(Rollout<Tokens, Tokens>, Vec<u32>)> {
    let (mut obs, mut chosen, mut group) = (Tokens::default(), Vec::new(), Vec::new());
    for (i, s) in scored.into_iter().enumerate() {
        let place = kept.iter().position(|g| *g as usize == i / copies);
        if let (Some(place), Some(s)) = (place, s) {
            obs.push(rows.row(i));
            chosen.push(s);
            group.push(place as u32);
        }
    }
    let lanes = chosen.len();
    let width = chosen.iter().map(|s| s.completed.tokens.len()).max().unwrap_or(0);
    let mut log_prob = vec![0.0; lanes * width];
    for (row, s) in log_prob.chunks_exact_mut(width.max(1)).zip(&chosen) {
        row[..s.completed.log_prob.len()].copy_from_slice(&s.completed.log_prob);
    }
    let status = |s: &Scored| match s.completed.ending {
        Ending::Stopped => Status::Terminated,
        Ending::Truncated => Status::Truncated,
    };
    let rollout = Rollout {
        steps: 1,
        lanes,
        obs,
        next_obs: None,
        trace: Tokens::new(chosen.iter().map(|s| &s.completed.tokens)),
        action: Vec::new(),
        log_prob,
        reward: chosen.iter().map(|s| s.score).collect(),
        status: chosen.iter().map(status).collect(),
        group,
        length: chosen.iter().map(|s| s.completed.tokens.len() as u32).collect(),
    };
    Ok((rollout, kept.to_vec()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_prompt_is_used_once_a_pass_and_passes_differ() {
        let mut collector = TextCollector::new(3);
        let drawn: Vec<u64> = (0..5).flat_map(|_| collector.next(4, Some(10))).collect();
        let pass = |k: usize| drawn[10 * k..10 * k + 10].iter().copied().collect::<BTreeSet<_>>();
        assert_eq!((pass(0).len(), pass(1).len()), (10, 10));
        assert_ne!(drawn[..10], drawn[10..]);
    }

    struct Even;

    impl TextTask for Even {
        fn prompt(&self, index: u64) -> String {
            ["ab", "ba", "aab", "b"][(index % 4) as usize].into()
        }
        fn score(&self, _: u64, completion: &str) -> f32 {
            f32::from(u8::from(completion.len().is_multiple_of(2)))
        }
    }

    fn collect(collector: &mut TextCollector, race: Race) -> Collected {
        let codec = crate::codec::CharCodec::new("ab");
        let shape = crate::config::DecoderConfig::new(3, 8, 1, 2, 1, 8);
        let decoder = crate::decoder::Decoder::new(shape, 1).unwrap();
        let policy = TokenPolicy { decoder, temperature: 1.0, usable: 3, max_tokens: 20, ends: vec![0] };
        let writing = Writing { race, batching: Batching::Continuous, order: Order::AsGiven, slots: 5 };
        collector.collect(&policy, &Even, &codec, 4, 3, writing, &|| 0.0).unwrap()
    }

    #[test]
    fn a_rollout_holds_whole_groups_with_densities_lengths_and_scores() {
        for race in [Race::None, Race::Members { factor: 2.0 }, Race::Tail { factor: 1.5 }] {
            let c = collect(&mut TextCollector::new(5), race);
            let r = &c.rollout;
            assert_eq!((r.lanes, c.prompts.len(), r.group.clone()), (12, 4, vec![0, 0, 0, 1, 1, 1, 2, 2, 2, 3, 3, 3]));
            let width = r.log_prob.len() / 12;
            for n in 0..12 {
                let tokens = r.trace.row(n);
                assert_eq!(r.length[n] as usize, tokens.len());
                let row = &r.log_prob[n * width..(n + 1) * width];
                assert!(row[..tokens.len()].iter().all(|l| *l < 0.0) && row[tokens.len()..].iter().all(|l| *l == 0.0));
                let ended = *tokens.last().unwrap() == 0;
                assert_eq!(r.status[n] == Status::Terminated, ended);
                assert_eq!(r.reward[n] == 1.0, (tokens.len() - usize::from(ended)).is_multiple_of(2));
                assert_eq!(r.obs.row(n), r.obs.row(n / 3 * 3), "one prompt a group");
            }
            assert!((race == Race::None) == (c.stats.bias == 1.0), "{race:?}: {}", c.stats.bias);
        }
    }

    #[test]
    fn tail_batching_puts_prompts_off_and_loses_none() {
        let mut collector = TextCollector::new(7);
        let mut trained = BTreeSet::new();
        for _ in 0..12 {
            let c = collect(&mut collector, Race::Tail { factor: 1.5 });
            assert!(c.prompts.iter().all(|p| trained.insert(*p)), "a prompt came twice");
        }
        let first = 7u64 << 32;
        let begun: BTreeSet<u64> = (first..first + collector.position()).collect();
        assert!(collector.waiting.len() < 8, "waiting prompts get their turn: {}", collector.waiting.len());
        trained.extend(&collector.waiting);
        assert_eq!(trained, begun);
        let mut bundle = Bundle::default();
        collector.save("x", &mut bundle);
        let mut again = TextCollector::new(0);
        again.load("x", &bundle).unwrap();
        assert_eq!(again, collector);
    }

    #[test]
    fn a_generated_task_never_repeats_a_prompt_and_seeds_have_their_own() {
        let mut a = TextCollector::new(1);
        let mut b = TextCollector::new(2);
        let all: BTreeSet<u64> =
            a.next(50, None).into_iter().chain(a.next(50, None)).chain(b.next(100, None)).collect();
        assert_eq!(all.len(), 200);
    }
}
