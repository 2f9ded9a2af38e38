//! Wall time of decoding and of training steps, on a decoder with random weights; `benches/peers/token_speed.py` asks for
//! them and compares.
//!
//! ```sh
//! cargo run --release -p token-policy --example token_speed
//! ```
//!
//! Every line of standard input is a JSON object and is answered with one, before the next is read:
//!
//! ```text
//! {"do": "make", "hidden": 128, "dir": DIR}                    writes the decoder as a Llama folder and keeps it
//! {"do": "score", "rows": [[ids]]}                             log-probabilities of every token but the first, [rows][]
//! {"do": "train", "rows": [[ids]]}                             seconds of one step on all tokens but the first
//! {"do": "decode", "prompts": [[ids]], "tokens": 128}          seconds to draw so many tokens after every prompt
//! {"do": "modes", "lengths": [n], "slots": 64, "mode": M}      seconds to write completions of those lengths (at least 2);
//!                                                              M: padded-groups (of 8), padded-wave or continuous
//! ```

use std::io::{BufRead, Write};
use std::path::Path;
use std::time::Instant;

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};
use token_policy::{
    Batching, Checkpoint, Choice, Decoder, DecoderConfig, Decoding, EngineConfig, Generator, Order, Request,
    Supervised, SupervisedConfig, Tokens, generate,
};

// the program that trains has it too
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const VOCAB: usize = 128;
const END: u32 = 0;

struct Server {
    decoder: Decoder,
    supervised: Supervised,
}

impl Server {
    fn new(hidden: usize) -> Result<Self> {
        let (heads, ffn) = (hidden / 32, hidden * 11 / 4);
        let decoder = Decoder::new(DecoderConfig::new(VOCAB, hidden, 4, heads, heads / 2, ffn), 1)?;
        let config = SupervisedConfig { lr: 1e-4, warm_up: 0, steps: 1 << 30, clip_norm: 1.0, micro_batch: usize::MAX };
        Ok(Server { supervised: Supervised::new(config, &decoder), decoder })
    }

    fn answer(&mut self, r: &Value) -> Result<Value> {
        let text = |key: &str| r[key].as_str().with_context(|| format!("`{key}` is no text"));
        match text("do")? {
            "make" => {
                *self = Server::new(number(&r["hidden"])?)?;
                Checkpoint::new(self.decoder.clone(), vec![END]).write(Path::new(text("dir")?))?;
                Ok(json!({}))
            }
            "score" => {
                let (first, rest) = split(&rows(&r["rows"])?);
                let score = self.decoder.log_prob(&first, &rest, 1.0, VOCAB)?.to_vec1::<f32>()?;
                let mut score = score.into_iter();
                let by_row: Vec<Vec<f32>> = rest.iter().map(|r| score.by_ref().take(r.len()).collect()).collect();
                Ok(json!({ "score": by_row }))
            }
            "train" => {
                let (first, rest) = split(&rows(&r["rows"])?);
                let begin = Instant::now();
                let report = self.supervised.step(&self.decoder, &first, &rest)?;
                Ok(json!({ "seconds": begin.elapsed().as_secs_f64(), "loss": report.loss }))
            }
            "decode" => {
                let (prompts, tokens) = (rows(&r["prompts"])?, number(&r["tokens"])?);
                let longest = prompts.iter().map(Vec::len).max().unwrap_or(0);
                let begin = Instant::now();
                // packing the weights is part of it, as after every update
                let mut model = Decoding::new(&self.decoder, prompts.len() + 1, longest + tokens)?;
                let requests: Vec<Request> = prompts.iter().enumerate().map(|(i, p)| request(i, p)).collect();
                let out = generate(&mut model, &requests, &engine(Batching::Continuous, tokens, vec![]), &seconds())?;
                Ok(json!({ "seconds": begin.elapsed().as_secs_f64(), "tokens": out.stats.useful }))
            }
            "modes" => {
                let lengths = r["lengths"].as_array().context("`lengths` is no list")?;
                let lengths = lengths.iter().map(number).collect::<Result<Vec<usize>>>()?;
                let batching = match text("mode")? {
                    "padded-groups" => Batching::PaddedGroups,
                    "padded-wave" => Batching::PaddedWave,
                    "continuous" => Batching::Continuous,
                    other => bail!("no mode `{other}`"),
                };
                if lengths.iter().any(|n| *n < 2) {
                    bail!("`lengths` are at least 2: the first token is drawn after the prompt");
                }
                let longest = lengths.iter().copied().max().unwrap_or(0);
                let inner = Decoding::new(&self.decoder, number(&r["slots"])? + 1, PROMPT.len() + longest)?;
                let slots = inner.slots();
                let mut model = Scripted { inner, lengths: &lengths, admitted: 0, written: vec![(0, 0); slots] };
                let requests: Vec<Request> =
                    (0..lengths.len()).map(|i| Request { group: i as u32 / 8, ..request(i, &PROMPT) }).collect();
                let out = generate(&mut model, &requests, &engine(batching, longest, vec![END]), &seconds())?;
                let written: Vec<usize> = out.completed.iter().flatten().map(|c| c.tokens.len()).collect();
                if written != lengths {
                    bail!("completions do not have the lengths they were to have");
                }
                Ok(json!({ "seconds": out.stats.seconds, "tokens": out.stats.useful, "stepped": out.stats.stepped }))
            }
            other => bail!("`do` is `{other}`; use make, score, train, decode or modes"),
        }
    }
}

const PROMPT: [u32; 16] = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16];

/// Ends every sequence at a length that was given, in the order of admission.
struct Scripted<'a> {
    inner: Decoding,
    lengths: &'a [usize],
    admitted: usize,
    /// Of every slot: tokens written and to be written.
    written: Vec<(usize, usize)>,
}

impl Generator for Scripted<'_> {
    fn vocab(&self) -> usize {
        self.inner.vocab()
    }

    fn slots(&self) -> usize {
        self.inner.slots()
    }

    fn capacity(&self) -> usize {
        self.inner.capacity()
    }

    fn prefill(&mut self, slot: usize, prompt: &[u32], logits: &mut [f32]) -> candle_core::Result<()> {
        self.inner.prefill(slot, prompt, logits)?;
        logits[END as usize] = f32::NEG_INFINITY;
        Ok(())
    }

    fn fork(&mut self, from: usize, to: usize) -> candle_core::Result<()> {
        self.written[to] = (1, self.lengths[self.admitted]);
        self.admitted += 1;
        self.inner.fork(from, to)
    }

    fn step(&mut self, slots: &[usize], tokens: &[u32], logits: &mut [f32]) -> candle_core::Result<()> {
        self.inner.step(slots, tokens, logits)?;
        for (slot, row) in slots.iter().zip(logits.chunks_exact_mut(VOCAB)) {
            let (written, length) = &mut self.written[*slot];
            *written += 1;
            if written == length {
                row.fill(f32::NEG_INFINITY);
            }
            row[END as usize] = if written == length { 0.0 } else { f32::NEG_INFINITY };
        }
        Ok(())
    }
}

fn engine(batching: Batching, max_tokens: usize, ends: Vec<u32>) -> EngineConfig {
    EngineConfig {
        batching,
        choice: Choice::Temperature(1.0),
        order: Order::AsGiven,
        max_tokens,
        ends,
        usable: VOCAB,
        keep_members: None,
        keep_groups: None,
        seed: 1,
    }
}

fn request(i: usize, prompt: &[u32]) -> Request<'_> {
    Request { prompt, group: i as u32, stream: i as u64, predicted: 0.0 }
}

fn seconds() -> impl Fn() -> f64 {
    let begin = Instant::now();
    move || begin.elapsed().as_secs_f64()
}

fn number(value: &Value) -> Result<usize> {
    Ok(value.as_u64().with_context(|| format!("`{value}` is no count"))? as usize)
}

fn rows(value: &Value) -> Result<Vec<Vec<u32>>> {
    let rows: Vec<Vec<u32>> = serde_json::from_value(value.clone()).context("rows are lists of ids")?;
    if rows.iter().any(Vec::is_empty) {
        bail!("a row is empty; it needs at least one id");
    }
    Ok(rows)
}

/// The first token of every row, and the others.
fn split(rows: &[Vec<u32>]) -> (Tokens, Tokens) {
    (Tokens::new(rows.iter().map(|r| &r[..1])), Tokens::new(rows.iter().map(|r| &r[1..])))
}

fn main() -> Result<()> {
    let mut server = Server::new(128)?;
    for line in std::io::stdin().lock().lines() {
        let asked: Result<Value> = serde_json::from_str(&line?).context("a request is a JSON object");
        let answer = asked.and_then(|r| server.answer(&r)).unwrap_or_else(|e| json!({ "error": format!("{e:#}") }));
        println!("{answer}");
        std::io::stdout().flush()?;
    }
    Ok(())
}
