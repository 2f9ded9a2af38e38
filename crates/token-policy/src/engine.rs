//! Many completions at once: three ways of batching that draw the same completions at different cost.

use std::collections::VecDeque;

use crate::draw::{Stream, draw, likeliest};
use crate::ending::Ending;
use crate::generator::Generator;
use crate::sampler::Drawn;

/// How rows share the model's calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Batching {
    /// Each group is a batch of its own, stepped until its longest member ends. Ended rows are stepped on as padding.
    PaddedGroups,
    /// All rows are one batch, as far as there are slots, stepped until the longest ends.
    PaddedWave,
    /// An ended row leaves at once and its slot takes the next request: only live rows are stepped.
    Continuous,
}

/// How a token is chosen.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Choice {
    /// Drawn from `softmax(logits/temperature)` over all usable ids. There is no top-k and no top-p: training would score
    /// such draws on another support than they came from.
    Temperature(f32),
    /// The likeliest: for evaluation.
    Greedy,
}

/// In which order waiting requests are admitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// As they are given.
    AsGiven,
    /// Groups with the longest prediction first, so that the longest rows do not start last.
    LongestFirst,
}

/// How a batch is decoded.
#[derive(Clone, Debug, PartialEq)]
pub struct EngineConfig {
    /// Way of batching.
    pub batching: Batching,
    /// Choice of tokens.
    pub choice: Choice,
    /// Order of admission.
    pub order: Order,
    /// Longest completion, the end token included.
    pub max_tokens: usize,
    /// Every token that ends a completion.
    pub ends: Vec<u32>,
    /// Ids from here on are never chosen.
    pub usable: usize,
    /// Members of a group that are needed: the others are cancelled once so many have ended.
    pub keep_members: Option<usize>,
    /// Groups that are needed: everything else is cancelled once so many are whole.
    pub keep_groups: Option<usize>,
    /// Seed of all draws.
    pub seed: u64,
}

/// One completion that is wanted.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Request<'a> {
    /// What to complete.
    pub prompt: &'a [u32],
    /// Members of a group have one number, one prompt, and follow one another.
    pub group: u32,
    /// Number of its stream of draws; two requests with the same number and prompt draw the same.
    pub stream: u64,
    /// Predicted length, for [`Order::LongestFirst`].
    pub predicted: f32,
}

/// A completion.
#[derive(Clone, Debug, PartialEq)]
pub struct Completed {
    /// With the end token, if there is one.
    pub tokens: Vec<u32>,
    /// Log-probability of every token under the distribution it was drawn from, nats.
    pub log_prob: Vec<f32>,
    /// How it ended.
    pub ending: Ending,
    /// Seconds from the start of generation to its end.
    pub finished_s: f64,
}

/// What it took.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Stats {
    /// Tokens of completions that are kept.
    pub useful: u64,
    /// Rows stepped, those of ended and cancelled rows included, and the first token of each row.
    pub stepped: u64,
    /// Prompt tokens read.
    pub prompt: u64,
    /// Calls that step rows.
    pub calls: u64,
    /// All of generation.
    pub seconds: f64,
    /// Of which in calls that less than half of a full batch still needed, with nothing left to admit: the price of
    /// stragglers. Filling a batch is not waiting.
    pub tail_seconds: f64,
    /// Mean length of kept completions over the mean length of all, the cancelled ones counted as far as they got.
    /// Below 1: racing prefers short ones. 1 without racing.
    pub bias: f64,
}

/// All completions of a call.
#[derive(Clone, Debug, PartialEq)]
pub struct Generation {
    /// In the order of the requests; `None` where a row was cancelled.
    pub completed: Vec<Option<Completed>>,
    /// What it took.
    pub stats: Stats,
}

/// Why nothing was generated.
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    /// A temperature that leaves one token or none.
    #[error("temperature is {0}; it must be finite and at least 1e-4 (choose greedily instead)")]
    Temperature(f32),
    /// Nothing to predict from.
    #[error("prompt {0} is empty; it needs at least one token")]
    EmptyPrompt(usize),
    /// It does not fit.
    #[error(
        "prompt {request} has {tokens} tokens, which with {max_tokens} new ones is more than a slot's {capacity}; shorten it, \
         lower the longest completion, or make slots of more capacity"
    )]
    PromptTooLong {
        /// Which request.
        request: usize,
        /// Its length.
        tokens: usize,
        /// What may be added.
        max_tokens: usize,
        /// What fits.
        capacity: usize,
    },
    /// One slot holds prompts, so one more is needed.
    #[error("the model has {0} slots; generation needs at least 2, one for prompts")]
    Slots(usize),
    /// Nothing may be written.
    #[error("max_tokens is 0; it must be at least 1")]
    NoTokens,
    /// The model's output is no distribution.
    #[error("the logits after token {token} of prompt {request} are no distribution: the weights are not usable")]
    Logits {
        /// Which request.
        request: usize,
        /// Tokens written so far.
        token: usize,
    },
    /// The model failed.
    #[error(transparent)]
    Tensor(#[from] candle_core::Error),
}

/// A row on its way.
struct Row {
    request: usize,
    slot: usize,
    stream: Stream,
    tokens: Vec<u32>,
    log_prob: Vec<f32>,
    /// Ended or cancelled; in padded batches it is stepped on.
    done: bool,
}

/// Everything but the rows.
struct Run<'a, G> {
    model: &'a mut G,
    requests: &'a [Request<'a>],
    config: &'a EngineConfig,
    clock: &'a dyn Fn() -> f64,
    start: f64,
    out: Vec<Option<Completed>>,
    /// Length of rows that were cancelled.
    cancelled: Vec<usize>,
    ended: Vec<usize>,
    members: Vec<usize>,
    whole: usize,
    over: bool,
    /// Group whose prompt the last slot holds, and the logits after it.
    held: Option<u32>,
    held_logits: Vec<f32>,
    logits: Vec<f32>,
    scratch: Vec<f32>,
    stats: Stats,
}

/// Writes all completions. `clock`: seconds from any origin.
///
/// The draws of a request depend on its stream, its prompt and the model alone, so every way of batching gives the same
/// completions; racing decides which are kept.
///
/// Errors: [`EngineError`].
pub fn generate<G: Generator>(
    model: &mut G,
    requests: &[Request<'_>],
    config: &EngineConfig,
    clock: &dyn Fn() -> f64,
) -> Result<Generation, EngineError> {
    check(model, requests, config)?;
    let groups = requests.iter().map(|r| r.group as usize + 1).max().unwrap_or(0);
    let mut members = vec![0; groups];
    requests.iter().for_each(|r| members[r.group as usize] += 1);
    let v = model.vocab();
    let start = clock();
    let mut run = Run {
        requests,
        config,
        clock,
        start,
        out: vec![None; requests.len()],
        cancelled: Vec::new(),
        ended: vec![0; groups],
        members,
        whole: 0,
        over: false,
        held: None,
        held_logits: vec![0.0; v],
        logits: Vec::new(),
        scratch: vec![0.0; config.usable.min(v)],
        stats: Stats::default(),
        model,
    };
    let order = order(requests, config.order);
    let slots = run.model.slots() - 1;
    match config.batching {
        Batching::Continuous => run.continuous(order.into(), slots)?,
        Batching::PaddedWave => order.chunks(slots).try_for_each(|rows| run.padded(rows))?,
        Batching::PaddedGroups => {
            for group in order.chunk_by(|a, b| requests[*a].group == requests[*b].group) {
                group.chunks(slots).try_for_each(|rows| run.padded(rows))?;
            }
        }
    }
    run.stats.seconds = clock() - start;
    let kept: Vec<usize> = run.out.iter().flatten().map(|c| c.tokens.len()).collect();
    run.stats.useful = kept.iter().sum::<usize>() as u64;
    run.stats.bias = bias(&kept, &run.cancelled);
    Ok(Generation { completed: run.out, stats: run.stats })
}

fn check<G: Generator>(model: &G, requests: &[Request], config: &EngineConfig) -> Result<(), EngineError> {
    if let Choice::Temperature(t) = config.choice
        && !(t.is_finite() && t >= 1e-4)
    {
        return Err(EngineError::Temperature(t));
    }
    if config.max_tokens == 0 {
        return Err(EngineError::NoTokens);
    }
    if model.slots() < 2 {
        return Err(EngineError::Slots(model.slots()));
    }
    for (request, r) in requests.iter().enumerate() {
        let (tokens, max_tokens, capacity) = (r.prompt.len(), config.max_tokens, model.capacity());
        if tokens == 0 {
            return Err(EngineError::EmptyPrompt(request));
        }
        if tokens + max_tokens > capacity {
            return Err(EngineError::PromptTooLong { request, tokens, max_tokens, capacity });
        }
    }
    Ok(())
}

/// Requests in the order of admission; members of a group stay together.
fn order(requests: &[Request], how: Order) -> Vec<usize> {
    let all: Vec<usize> = (0..requests.len()).collect();
    let mut groups: Vec<&[usize]> = all.chunk_by(|a, b| requests[*a].group == requests[*b].group).collect();
    if how == Order::LongestFirst {
        let longest = |g: &[usize]| g.iter().map(|i| requests[*i].predicted).fold(f32::NEG_INFINITY, f32::max);
        groups.sort_by(|a, b| longest(b).total_cmp(&longest(a)));
    }
    groups.concat()
}

fn bias(kept: &[usize], cancelled: &[usize]) -> f64 {
    let mean = |sum: usize, n: usize| sum as f64 / n as f64;
    let (sum, more) = (kept.iter().sum::<usize>(), cancelled.iter().sum::<usize>());
    if kept.is_empty() || sum + more == 0 {
        return 1.0;
    }
    mean(sum, kept.len()) / mean(sum + more, kept.len() + cancelled.len())
}

impl<G: Generator> Run<'_, G> {
    /// Whether nobody needs the request any more.
    fn cancelled(&self, request: usize) -> bool {
        let group = self.requests[request].group as usize;
        self.over || self.config.keep_members.is_some_and(|keep| self.ended[group] >= keep)
    }

    /// Reads the request's prompt into a slot and draws the first token.
    fn admit(&mut self, request: usize, slot: usize) -> Result<Row, EngineError> {
        let r = self.requests[request];
        let holder = self.model.slots() - 1;
        if self.held != Some(r.group) {
            self.model.prefill(holder, r.prompt, &mut self.held_logits)?;
            self.stats.prompt += r.prompt.len() as u64;
            self.held = Some(r.group);
        }
        self.model.fork(holder, slot)?;
        let stream = Stream::new(self.config.seed, r.stream);
        let mut row = Row { request, slot, stream, tokens: Vec::new(), log_prob: Vec::new(), done: false };
        let logits = std::mem::take(&mut self.held_logits);
        self.stats.stepped += 1;
        let drawn = self.take(&mut row, &logits);
        self.held_logits = logits;
        drawn?;
        Ok(row)
    }

    /// Draws a row's next token; notes its end.
    fn take(&mut self, row: &mut Row, logits: &[f32]) -> Result<(), EngineError> {
        let usable = &logits[..self.scratch.len()];
        let drawn: Option<Drawn> = match self.config.choice {
            Choice::Temperature(t) => draw(usable, t, row.stream.uniform(), &mut self.scratch),
            Choice::Greedy => likeliest(usable, &mut self.scratch),
        };
        let Some(drawn) = drawn else {
            return Err(EngineError::Logits { request: row.request, token: row.tokens.len() });
        };
        row.tokens.push(drawn.token);
        row.log_prob.push(drawn.log_prob);
        let stopped = self.config.ends.contains(&drawn.token);
        if !stopped && row.tokens.len() < self.config.max_tokens {
            return Ok(());
        }
        row.done = true;
        // one that ends in the same call as the last one needed is as late as it, and not needed
        if self.cancelled(row.request) {
            self.cancelled.push(row.tokens.len());
            return Ok(());
        }
        self.out[row.request] = Some(Completed {
            tokens: std::mem::take(&mut row.tokens),
            log_prob: std::mem::take(&mut row.log_prob),
            ending: if stopped { Ending::Stopped } else { Ending::Truncated },
            finished_s: (self.clock)() - self.start,
        });
        let group = self.requests[row.request].group as usize;
        self.ended[group] += 1;
        let needed = self.config.keep_members.unwrap_or(usize::MAX).min(self.members[group]);
        self.whole += usize::from(self.ended[group] == needed);
        self.over |= self.config.keep_groups.is_some_and(|keep| self.whole >= keep);
        Ok(())
    }

    /// Marks rows that nobody needs any more.
    fn cancel(&mut self, rows: &mut [Row]) {
        for row in rows.iter_mut().filter(|r| !r.done) {
            if self.cancelled(row.request) {
                row.done = true;
                self.cancelled.push(row.tokens.len());
            }
        }
    }

    /// One call of the model for `rows`, then a draw for each that is not done. `full`: rows of a full batch; `waiting`:
    /// whether requests wait to be admitted.
    fn step(&mut self, rows: &mut [Row], full: usize, waiting: bool) -> Result<(), EngineError> {
        let v = self.model.vocab();
        let begun = (self.clock)();
        let live = rows.iter().filter(|r| !r.done).count();
        let slots: Vec<usize> = rows.iter().map(|r| r.slot).collect();
        // an ended row's padding: any token will do
        let tokens: Vec<u32> = rows.iter().map(|r| r.tokens.last().copied().unwrap_or(0)).collect();
        let mut logits = std::mem::take(&mut self.logits);
        logits.resize(rows.len() * v, 0.0);
        self.model.step(&slots, &tokens, &mut logits)?;
        self.stats.calls += 1;
        self.stats.stepped += rows.len() as u64;
        for (row, logits) in rows.iter_mut().zip(logits.chunks_exact(v)) {
            if !row.done {
                self.take(row, logits)?;
            }
        }
        self.logits = logits;
        self.cancel(rows);
        if !waiting && 2 * live < full {
            self.stats.tail_seconds += (self.clock)() - begun;
        }
        Ok(())
    }

    /// One static batch.
    fn padded(&mut self, requests: &[usize]) -> Result<(), EngineError> {
        let mut rows = Vec::with_capacity(requests.len());
        for (slot, &request) in requests.iter().enumerate() {
            if !self.cancelled(request) {
                rows.push(self.admit(request, slot)?);
            }
        }
        self.cancel(&mut rows);
        let full = rows.len();
        while rows.iter().any(|r| !r.done) {
            self.step(&mut rows, full, false)?;
        }
        Ok(())
    }

    /// Live rows only, slots refilled as they come free.
    fn continuous(&mut self, mut queue: VecDeque<usize>, slots: usize) -> Result<(), EngineError> {
        let full = slots.min(queue.len());
        let mut free: Vec<usize> = (0..slots).rev().collect();
        let mut rows: Vec<Row> = Vec::new();
        loop {
            while !free.is_empty()
                && let Some(request) = queue.pop_front()
            {
                if self.cancelled(request) {
                    continue;
                }
                let slot = free.pop().expect("checked above");
                let row = self.admit(request, slot)?;
                if row.done {
                    free.push(slot);
                } else {
                    rows.push(row);
                }
            }
            self.cancel(&mut rows);
            rows.retain(|r| {
                if r.done {
                    free.push(r.slot);
                }
                !r.done
            });
            if rows.is_empty() && queue.is_empty() {
                return Ok(());
            }
            if !rows.is_empty() {
                self.step(&mut rows, full, !queue.is_empty())?;
            }
            rows.retain(|r| {
                if r.done {
                    free.push(r.slot);
                }
                !r.done
            });
        }
    }
}
