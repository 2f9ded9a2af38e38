//! From a text task to a rollout.

use candle_core::Result as TensorResult;
use onpolicy::{Bundle, BundleError, Noise, Persist};
use rayon::prelude::*;
use rollouts::{Rollout, Status, TextTask};

use crate::codec::{Codec, CodecError};
use crate::decoding::Decoding;
use crate::engine::{Batching, Choice, Completed, EngineConfig, EngineError, Order, Request, Stats, generate};
use crate::padding::Ending;
use crate::policy::TokenPolicy;
use crate::tokens::Tokens;

/// How completions are written.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Writing {
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
    seed: u64,
    /// Prompts used so far.
    position: u64,
    /// Completions begun so far: each has a stream of draws of its own.
    streams: u64,
}

impl TextCollector {
    /// Prompts and draws follow from `seed`.
    pub fn new(seed: u64) -> Self {
        TextCollector { seed, position: 0, streams: 0 }
    }

    /// Prompts used so far.
    pub fn position(&self) -> u64 {
        self.position
    }

    /// Completions begun so far.
    pub fn completions(&self) -> u64 {
        self.streams
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
        let prompts = self.next(groups, task.len());
        let first = self.streams;
        self.streams += (groups * group_size) as u64;
        let choice = Choice::Temperature(policy.temperature);
        let (seed, copies) = (Noise::named(self.seed, "completions").uniform(1)[0].to_bits(), group_size);
        let written =
            write(policy, task, codec, &prompts, copies, choice, writing, u64::from(seed) ^ self.seed, first, clock)?;
        Ok(Collected { rollout: rollout(written.0, written.1, group_size)?, prompts, stats: written.2 })
    }

    /// Writes the completions that the last [`TextCollector::collect`] of `prompts` wrote once more, another way, and says
    /// what that takes.
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
        let seed = Noise::named(self.seed, "completions").uniform(1)[0].to_bits();
        let seed = u64::from(seed) ^ self.seed;
        Ok(write(policy, task, codec, prompts, group_size, choice, writing, seed, first, clock)?.2)
    }
}

impl Persist for TextCollector {
    fn save(&self, prefix: &str, to: &mut Bundle) {
        to.put_u64(&format!("{prefix}.prompts"), &[self.seed, self.position, self.streams]);
    }

    fn load(&mut self, prefix: &str, from: &Bundle) -> Result<(), BundleError> {
        let v = from.u64s(&format!("{prefix}.prompts"), 3)?;
        (self.seed, self.position, self.streams) = (v[0], v[1], v[2]);
        Ok(())
    }
}

/// A completion with its score.
pub(crate) struct Scored {
    pub completed: Completed,
    pub score: f32,
}

/// `copies` completions of each prompt, scored; with the prompts' tokens, one row a completion.
pub(crate) fn write(
    policy: &TokenPolicy,
    task: &(impl TextTask + Sync + ?Sized),
    codec: &(impl Codec + Sync + ?Sized),
    prompts: &[u64],
    copies: usize,
    choice: Choice,
    writing: Writing,
    seed: u64,
    first_stream: u64,
    clock: &dyn Fn() -> f64,
) -> Result<(Tokens, Vec<Scored>, Stats), CollectError> {
    let encode =
        |&index: &u64| codec.encode(&task.prompt(index)).map_err(|reason| CollectError::Prompt { index, reason });
    let encoded: Vec<Vec<u32>> = prompts.iter().map(encode).collect::<Result<_, _>>()?;
    let request = |i: usize| Request {
        prompt: &encoded[i / copies],
        group: (i / copies) as u32,
        stream: first_stream + i as u64,
        predicted: encoded[i / copies].len() as f32,
    };
    let requests: Vec<Request> = (0..prompts.len() * copies).map(request).collect();
    let config = EngineConfig {
        batching: writing.batching,
        choice,
        order: writing.order,
        max_tokens: policy.max_tokens,
        ends: policy.ends.clone(),
        usable: policy.usable,
        keep_members: None,
        keep_groups: None,
        seed,
    };
    let begun = clock();
    let longest = encoded.iter().map(Vec::len).max().unwrap_or(0);
    let slots = writing.slots.min(requests.len()).max(1);
    let mut decoding = Decoding::new(&policy.decoder, slots + 1, longest + policy.max_tokens)?;
    let mut generation = generate(&mut decoding, &requests, &config, clock)?;
    // packing the weights belongs to it
    generation.stats.seconds = clock() - begun;
    let completed: Vec<Completed> = generation.completed.into_iter().flatten().collect();
    let score = |(i, completed): (usize, Completed)| {
        let ended = completed.ending == Ending::Stopped;
        let text = codec.decode(&completed.tokens[..completed.tokens.len() - usize::from(ended)]);
        Scored { score: task.score(prompts[i / copies], &text), completed }
    };
    let scored = completed.into_par_iter().enumerate().map(score).collect();
    let rows = Tokens::new(requests.iter().map(|r| r.prompt));
    Ok((rows, scored, generation.stats))
}

fn rollout(obs: Tokens, scored: Vec<Scored>, group_size: usize) -> TensorResult<Rollout<Tokens, Tokens>> {
    let lanes = scored.len();
    let width = scored.iter().map(|s| s.completed.tokens.len()).max().unwrap_or(0);
    let mut log_prob = vec![0.0; lanes * width];
    for (row, s) in log_prob.chunks_exact_mut(width.max(1)).zip(&scored) {
        row[..s.completed.log_prob.len()].copy_from_slice(&s.completed.log_prob);
    }
    let status = |s: &Scored| match s.completed.ending {
        Ending::Stopped => Status::Terminated,
        Ending::Truncated => Status::Truncated,
    };
    Ok(Rollout {
        steps: 1,
        lanes,
        obs,
        next_obs: None,
        trace: Tokens::new(scored.iter().map(|s| &s.completed.tokens)),
        action: Vec::new(),
        log_prob,
        reward: scored.iter().map(|s| s.score).collect(),
        status: scored.iter().map(status).collect(),
        group: (0..lanes).map(|n| (n / group_size) as u32).collect(),
        length: scored.iter().map(|s| s.completed.tokens.len() as u32).collect(),
    })
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

    #[test]
    fn a_generated_task_never_repeats_a_prompt_and_seeds_have_their_own() {
        let mut a = TextCollector::new(1);
        let mut b = TextCollector::new(2);
        let all: BTreeSet<u64> =
            a.next(50, None).into_iter().chain(a.next(50, None)).chain(b.next(100, None)).collect();
        assert_eq!(all.len(), 200);
    }
}
