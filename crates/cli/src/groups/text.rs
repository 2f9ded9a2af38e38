//! A transformer that learns from its own completions.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::Path;
use std::time::Instant;

use anyhow::{Context, Result, anyhow, bail};
use grpo::{Generated, Grpo, Timing};
use onpolicy::{Bundle, Persist};
use rollouts::{Scalars, TextTask};
use serde_json::json;
use text_tasks::{ALPHABET, DynTask, Match, Split, TextFile};
use token_policy::{
    Batching, CharCodec, Choice, Codec, Decoder, DecoderConfig, Ending, Order, Race, Stats, Supervised,
    SupervisedConfig, TextCollector, TokenPolicy, Tokens, Writing, evaluate,
};

use super::config::{BatchingArg, GroupConfig, RaceArg, WARM_UP_CHUNK};
use super::sizer::Sizer;
use crate::agent::{Agent, Update};
use crate::args::{Mode, SplitArg};
use crate::eval::{Asked, Evaluation};
use crate::run_dir;

/// Longest completion of a task, in tokens.
pub(crate) fn longest(task: &str) -> Result<usize> {
    Ok(text_tasks::find(task).map_or(256, |t| t.max_tokens))
}

fn task(name: &str, split: Split) -> Result<DynTask> {
    if name.ends_with(".jsonl") {
        return Ok(Box::new(TextFile::read(Path::new(name), Match::Numeric)?));
    }
    Ok(text_tasks::build(name, split)?)
}

/// Everything of a text run.
struct TextAgent {
    config: GroupConfig,
    task: DynTask,
    codec: CharCodec,
    policy: TokenPolicy,
    supervised: Supervised,
    grpo: Grpo<Sizer>,
    collector: TextCollector,
    /// Updates made, chunks of the warm-up included.
    updates: u64,
    /// Share of held-out prompts solved when group-relative training began, and its interval.
    start: Option<[f64; 3]>,
    /// Completions in `lengths.csv`.
    lines: u64,
    trace: Option<File>,
}

pub(crate) fn build(config: &GroupConfig) -> Result<Box<dyn Agent>> {
    let g = config.generation.as_ref().context("[generation] is missing")?;
    let w = config.warm_up.as_ref().context("[warm_up] is missing")?;
    let p = &config.policy;
    let train = task(&config.task, Split::Train)?;
    let codec = CharCodec::new(ALPHABET);
    let size = |n: Option<usize>| n.context("a size of the transformer is missing");
    let shape = DecoderConfig::new(
        codec.size(),
        size(p.hidden)?,
        size(p.layers)?,
        size(p.heads)?,
        size(p.kv_heads)?,
        size(p.ffn)?,
    );
    if !shape.hidden.is_multiple_of(shape.heads) {
        bail!("policy.hidden is {}; it must be a multiple of policy.heads, {}", shape.hidden, shape.heads);
    }
    let decoder = Decoder::new(shape, config.seed).map_err(|e| anyhow!("policy.{e}"))?;
    if !(g.temperature.is_finite() && g.temperature >= 1e-4) {
        bail!("generation.temperature is {}; it must be at least 1e-4", g.temperature);
    }
    if g.race != RaceArg::None && g.compare {
        bail!(
            "generation.compare writes the same completions again, and racing keeps others; set race=none or compare=false"
        );
    }
    if !(1.0..=16.0).contains(&g.race_factor) {
        bail!("generation.race_factor is {}; it must be between 1 and 16", g.race_factor);
    }
    let usable = codec.size();
    let ends = codec.ends().to_vec();
    let mut policy = TokenPolicy { decoder, temperature: g.temperature, usable, max_tokens: g.max_tokens, ends };
    if let Some(start) = p.start.as_deref().filter(|s| !s.is_empty()) {
        begin_from(Path::new(start), &mut policy)?;
    }
    let supervised = SupervisedConfig {
        lr: w.lr,
        warm_up: 50,
        steps: w.steps,
        clip_norm: 1.0,
        micro_batch: config.trainer.micro_batch,
    };
    let supervised = Supervised::new(supervised, &policy.decoder);
    let grpo = Grpo::new(super::trainer(config, g.max_tokens)?, &policy, Sizer::new(config)?, config.seed)?;
    Ok(Box::new(TextAgent {
        config: config.clone(),
        task: train,
        codec,
        supervised,
        grpo,
        collector: TextCollector::new(config.seed),
        policy,
        updates: 0,
        start: None,
        lines: 0,
        trace: None,
    }))
}

/// Takes the weights of another run's newest checkpoint.
fn begin_from(dir: &Path, policy: &mut TokenPolicy) -> Result<()> {
    let path = run_dir::checkpoints(dir)?.into_iter().next();
    let path = path.with_context(|| {
        format!("policy.start is {}, which holds no checkpoint; name the directory of a run", dir.display())
    })?;
    let bundle = Bundle::read(&path)?;
    policy.load("policy", &bundle).with_context(|| {
        format!("{} does not fit; policy.hidden, layers, heads, kv_heads and ffn must be that run's", path.display())
    })
}

fn batching(arg: BatchingArg) -> Batching {
    match arg {
        BatchingArg::PaddedGroups => Batching::PaddedGroups,
        BatchingArg::PaddedWave => Batching::PaddedWave,
        BatchingArg::Continuous => Batching::Continuous,
    }
}

impl TextAgent {
    fn writing(&self) -> Writing {
        let g = self.config.generation.as_ref().expect("checked when it was built");
        let race = match g.race {
            RaceArg::None => Race::None,
            RaceArg::Members => Race::Members { factor: g.race_factor },
            RaceArg::Tail => Race::Tail { factor: g.race_factor },
        };
        Writing { race, batching: batching(g.batching), order: Order::AsGiven, slots: g.slots }
    }

    /// One chunk of supervised steps.
    fn warm_up(&mut self) -> Result<Update> {
        let w = self.config.warm_up.as_ref().expect("checked when it was built");
        let (begun, done) = (Instant::now(), self.updates * WARM_UP_CHUNK);
        let (mut loss, mut norm, mut tokens) = (0.0, 0.0, 0);
        let steps = WARM_UP_CHUNK.min(w.steps - done);
        for step in done..done + steps {
            let (mut prompts, mut completions) = (Tokens::default(), Tokens::default());
            for i in 0..w.batch as u64 {
                // a range of prompts of its own, far from those that groups get
                let number = (self.config.seed << 32) + (1 << 31) + step * w.batch as u64 + i;
                let number = self.task.len().map_or(number, |len| number % len);
                let solution = self.task.solution(number, self.config.seed ^ step);
                let solution = solution
                    .with_context(|| format!("{} has no reference solutions; set warm_up.steps=0", self.config.task))?;
                prompts.push(&self.codec.encode(&self.task.prompt(number))?);
                let mut ids = self.codec.encode(&solution)?;
                ids.extend_from_slice(&self.policy.ends[..1]);
                completions.push(&ids);
            }
            let report = self.supervised.step(&self.policy.decoder, &prompts, &completions)?;
            loss += report.loss / steps as f64;
            norm += report.grad_norm / steps as f64;
            tokens += report.tokens;
        }
        let seconds = begun.elapsed().as_secs_f64();
        let scalars = vec![
            ("supervised_loss", loss),
            ("grad_norm", norm),
            ("tokens_useful", tokens as f64),
            ("tokens_per_second", tokens as f64 / seconds),
            ("update_s", seconds),
        ];
        Ok(Update { returns: Vec::new(), scalars })
    }

    /// One group-relative update.
    fn improve(&mut self) -> Result<Update> {
        let begun = Instant::now();
        let clock = move || begun.elapsed().as_secs_f64();
        let mut scalars = Vec::new();
        let done = self.updates - self.config.warm_up_chunks();
        let every = self.config.evaluation.every;
        if self.start.is_none() {
            let e = self.held_out(self.config.evaluation.closing, 0)?;
            self.start = Some([e.pass_at_1, e.interval[0], e.interval[1]]);
        }
        if every > 0 && done.is_multiple_of(every) {
            let e = self.held_out(self.config.evaluation.prompts, 1)?;
            scalars.push(("held_out", e.pass_at_1));
            scalars.push(("held_out_low", e.interval[0]));
            scalars.push(("held_out_high", e.interval[1]));
            scalars.push(("held_out_length", e.length[0]));
        }
        let (writing, compare) = (self.writing(), self.config.generation.as_ref().is_some_and(|g| g.compare));
        let mut others: Vec<(Batching, Stats)> = Vec::new();
        let mut lines = String::new();
        let mut returns = Vec::new();
        let mut bias = 1.0;
        let Self { grpo, policy, collector, task, codec, .. } = self;
        let report = grpo.step(policy, &mut |policy, ask| {
            let fail = |e: token_policy::CollectError| candle_core::Error::Msg(e.to_string());
            let c =
                collector.collect(policy, task, codec, ask.groups, ask.group_size, writing, &clock).map_err(fail)?;
            if compare {
                for other in [Batching::PaddedGroups, Batching::PaddedWave, Batching::Continuous] {
                    let w = Writing { batching: other, ..writing };
                    let stats = if other == writing.batching {
                        c.stats
                    } else {
                        collector.again(policy, task, codec, &c.prompts, ask.group_size, w, &clock).map_err(fail)?
                    };
                    others.push((other, stats));
                }
            }
            for (n, length) in c.rollout.length.iter().enumerate() {
                let cut = c.rollout.status[n] == rollouts::Status::Truncated;
                lines.push_str(&format!("{},{length},{}\n", c.prompts[n / ask.group_size], u8::from(cut)));
            }
            returns.extend(c.rollout.reward.iter().map(|r| f64::from(*r)));
            bias = c.stats.bias;
            let timing = Timing {
                generate_s: c.stats.seconds,
                tail_s: c.stats.tail_seconds,
                useful: c.stats.useful,
                computed: c.stats.stepped,
            };
            Ok(Generated { rollout: c.rollout, timing })
        })?;
        report.each(&mut |name, value| scalars.push((name, value)));
        scalars.push(("race_bias", bias));
        for (batching, stats) in others {
            let [seconds, tail, tokens] = match batching {
                Batching::PaddedGroups => ["padded_groups_s", "padded_groups_tail_s", "tokens_padded_groups"],
                Batching::PaddedWave => ["padded_wave_s", "padded_wave_tail_s", "tokens_padded_wave"],
                Batching::Continuous => ["continuous_s", "continuous_tail_s", "tokens_continuous"],
            };
            for (name, x) in [(seconds, stats.seconds), (tail, stats.tail_seconds), (tokens, stats.stepped as f64)] {
                // several rounds of one update add up
                match scalars.iter_mut().find(|s| s.0 == name) {
                    Some(s) => s.1 += x,
                    None => scalars.push((name, x)),
                }
            }
        }
        if let Some(status) = self.grpo.sizer().status() {
            scalars.push(("sizer_queue", status.queue));
            scalars.push(("sizer_debt", status.infeasible_debt));
            scalars.push(("sizer_out_of_reach", f64::from(u8::from(status.out_of_reach))));
        }
        if report.truncated > 0.5 && self.updates == self.config.warm_up_chunks() {
            eprintln!(
                "warning: {:.0} % of completions were cut at {} tokens and cannot be right; raise generation.max_tokens",
                100.0 * report.truncated,
                self.policy.max_tokens
            );
        }
        self.lines += lines.lines().count() as u64;
        if let Some(trace) = &mut self.trace {
            trace.write_all(lines.as_bytes()).context("cannot write lengths.csv")?;
        }
        Ok(Update { returns, scalars })
    }

    /// The first prompts of the held-out split.
    fn held_out(&self, prompts: usize, seed: u64) -> Result<token_policy::Evaluation> {
        Ok(self.judge(SplitArg::HeldOut, prompts, 1, Choice::Temperature(self.policy.temperature), seed)?.0)
    }

    /// Also the numbers of the prompts.
    fn judge(
        &self,
        split: SplitArg,
        prompts: usize,
        samples: usize,
        choice: Choice,
        seed: u64,
    ) -> Result<(token_policy::Evaluation, Vec<u64>)> {
        let task = task(&self.config.task, which(split))?;
        let count = task.len().map_or(prompts, |len| prompts.min(len as usize));
        let indices: Vec<u64> = (0..count as u64).map(|i| (seed << 32) + i).collect();
        let indices: Vec<u64> = task.len().map_or(indices.clone(), |len| indices.iter().map(|i| i % len).collect());
        let writing = Writing { race: Race::None, batching: Batching::Continuous, ..self.writing() };
        let e = evaluate(&self.policy, &task, &self.codec, &indices, samples, choice, writing, seed)?;
        Ok((e, indices))
    }

    /// Writes what an evaluation saw, one JSON object a line.
    fn list(&self, path: &Path, split: SplitArg, e: &token_policy::Evaluation, indices: &[u64]) -> Result<()> {
        let task = task(&self.config.task, which(split))?;
        let mut lines = String::new();
        for (k, s) in e.completions.iter().enumerate() {
            let index = indices[k / e.samples];
            let cut = s.completed.ending == Ending::Truncated;
            let line = json!({
                "index": index, "prompt": task.prompt(index), "completion": self.codec.decode(&s.completed.tokens),
                "score": s.score, "tokens": s.completed.tokens.len(), "truncated": cut,
            });
            lines += &format!("{line}\n");
        }
        onpolicy::write_atomically(path, lines.as_bytes()).with_context(|| path.display().to_string())
    }
}

impl Agent for TextAgent {
    fn sit(&mut self, root: &Path, updates: u64) -> Result<()> {
        if self.config.generation.as_ref().is_some_and(|g| g.trace) {
            let path = root.join("lengths.csv");
            // updates after the checkpoint are made again, and so are their lines
            let kept = if updates > 0 { std::fs::read(&path).unwrap_or_default() } else { Vec::new() };
            let lines = self.collector_lines();
            let kept: Vec<&[u8]> = kept.split_inclusive(|b| *b == b'\n').take(lines).collect();
            onpolicy::write_atomically(&path, &kept.concat()).with_context(|| path.display().to_string())?;
            let file = OpenOptions::new().append(true).open(&path).with_context(|| path.display().to_string())?;
            self.trace = Some(file);
        }
        Ok(())
    }

    fn update(&mut self) -> Result<Update> {
        let update = if self.updates < self.config.warm_up_chunks() { self.warm_up()? } else { self.improve()? };
        self.updates += 1;
        Ok(update)
    }

    fn save(&self, to: &mut Bundle) {
        self.policy.save("policy", to);
        self.supervised.save("supervised", to);
        self.grpo.save("trainer", to);
        self.collector.save("collector", to);
        let start = self.start.unwrap_or([f64::NAN; 3]).map(f64::to_bits);
        to.put_u64("text.progress", &[self.updates, start[0], start[1], start[2], self.lines]);
    }

    fn load(&mut self, from: &Bundle) -> Result<()> {
        self.load_to_act(from)?;
        self.supervised.load("supervised", from)?;
        self.grpo.load("trainer", from)?;
        self.collector.load("collector", from)?;
        Ok(())
    }

    fn load_to_act(&mut self, from: &Bundle) -> Result<()> {
        self.policy.load("policy", from)?;
        let v = from.u64s("text.progress", 5)?;
        let start = [v[1], v[2], v[3]].map(f64::from_bits);
        (self.updates, self.lines) = (v[0], v[4]);
        self.start = Some(start).filter(|s| !s[0].is_nan());
        Ok(())
    }

    fn evaluate(&self, asked: &Asked) -> Result<Evaluation> {
        let choice = match asked.mode.unwrap_or(Mode::Sample) {
            Mode::Sample => Choice::Temperature(self.policy.temperature),
            Mode::Greedy => Choice::Greedy,
            other => bail!("--mode {} is for simulation; use sample or greedy", other.name()),
        };
        let split = asked.split.unwrap_or(SplitArg::HeldOut);
        let (prompts, samples) = (asked.episodes.unwrap_or(512), asked.samples.unwrap_or(1));
        let (e, indices) = self.judge(split, prompts, samples, choice, asked.seed)?;
        if let Some(path) = &asked.completions {
            self.list(path, split, &e, &indices)?;
        }
        Ok(summary(&self.config.task, &e, choice, split, asked.seed))
    }

    fn closing(&self) -> Result<Vec<Evaluation>> {
        let choice = Choice::Temperature(self.policy.temperature);
        let after = self.held_out(self.config.evaluation.closing, 0)?;
        let mut all = Vec::new();
        if let Some([pass, low, high]) = self.start {
            all.push(Evaluation {
                key: "start".into(),
                json: json!({ "task": self.config.task, "prompts": after.prompts, "pass_at_1": pass, "interval": [low, high] }),
                line: format!(
                    "held-out prompts solved before group-relative training: {:.1} % ({:.1} to {:.1})",
                    100.0 * pass,
                    100.0 * low,
                    100.0 * high
                ),
            });
        }
        all.push(summary(&self.config.task, &after, choice, SplitArg::HeldOut, 0));
        Ok(all)
    }
}

impl TextAgent {
    /// Lines that `lengths.csv` has: one per completion.
    fn collector_lines(&self) -> usize {
        self.lines as usize
    }
}

fn which(split: SplitArg) -> Split {
    match split {
        SplitArg::Train => Split::Train,
        SplitArg::HeldOut => Split::HeldOut,
        SplitArg::Harder => Split::Harder,
    }
}

/// One evaluation for people and for `eval.json`.
fn summary(task: &str, e: &token_policy::Evaluation, choice: Choice, split: SplitArg, seed: u64) -> Evaluation {
    let mode = if choice == Choice::Greedy { Mode::Greedy } else { Mode::Sample }.name();
    let (name, key) = match split {
        SplitArg::Train => ("training", format!("{mode}-train")),
        SplitArg::HeldOut => ("held-out", mode.to_string()),
        SplitArg::Harder => ("harder", format!("{mode}-harder")),
    };
    let [low, high] = e.interval;
    let [all, right, wrong] = e.length;
    let json = json!({
        "task": task, "mode": mode, "split": name, "prompts": e.prompts, "samples": e.samples, "seed": seed,
        "pass_at_1": e.pass_at_1, "interval": [low, high], "length_mean": all, "length_right": right,
        "length_wrong": wrong, "truncated": e.truncated,
    });
    let line = format!(
        "{name} prompts solved ({mode}, {} of {} each): {:.1} % ({:.1} to {:.1}), mean length {all:.0}",
        e.prompts,
        e.samples,
        100.0 * e.pass_at_1,
        100.0 * low,
        100.0 * high
    );
    Evaluation { key, json, line }
}
