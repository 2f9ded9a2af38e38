//! The trainable decoder: parameters, and scores that can be differentiated.

use std::ops::Range;
use std::sync::{Arc, Mutex};

use candle_core::{CpuStorage, CustomOp1, Device, Layout as TensorLayout, Result, Shape, Tensor};
use onpolicy::matmul::{View, matmul};
use onpolicy::multiversion;
use onpolicy::params::{cpu_result, cpu_slice, with_slice};
use onpolicy::simd::exp;
use onpolicy::{Bundle, BundleError, Noise, Params, Persist};
use rayon::prelude::*;

use crate::block::{Chunk, Net, Pass};
use crate::config::{DecoderConfig, ShapeError};
use crate::kernels::rope_table;
use crate::layout::{Layout, Plan};
use crate::spare::{Buffer, Spare};
use crate::tokens::Tokens;

/// Tokens that are worked on together by one thread. Fixed, so that the bits do not depend on the thread count.
const CHUNK: usize = 512;
/// Gradients that are summed side by side, then in order; one for models above [`LARGE`].
const SUMS: usize = 8;
const LARGE: usize = 1 << 24;

/// A decoder-only transformer; see [`DecoderConfig`]. All its weights are one flat vector whose parts have the names of
/// published checkpoints.
#[derive(Clone, Debug)]
pub struct Decoder {
    pub(crate) config: Arc<DecoderConfig>,
    pub(crate) layout: Arc<Layout>,
    pub(crate) params: Params,
    /// Memory of passes that are over.
    spare: Spare,
}

/// What a row of the output is made of.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Head {
    /// All logits, `[M, V]`.
    Logits,
    /// Log-probability of the token that follows, `[M]`.
    LogProb {
        temperature: f32,
        /// Ids from here on have probability 0.
        usable: usize,
    },
}

impl Decoder {
    /// Fresh weights: normal with deviation 0.02, those that write into the residual stream divided by √(2·layers).
    ///
    /// Errors: the shape, or memory.
    pub fn new(config: DecoderConfig, seed: u64) -> std::result::Result<Self, DecoderError> {
        config.check()?;
        let noise = &mut Noise::named(seed, "decoder");
        Self::planned(config, |plan| plan.build(Some(noise)))
    }

    /// All weights 0, to be overwritten.
    pub(crate) fn zero(config: DecoderConfig) -> std::result::Result<Self, DecoderError> {
        config.check()?;
        Self::planned(config, |plan| plan.build(None))
    }

    fn planned(
        config: DecoderConfig,
        build: impl FnOnce(Plan) -> Result<(Params, Layout)>,
    ) -> std::result::Result<Self, DecoderError> {
        let (params, layout) = build(Plan::new(&config))?;
        Ok(Decoder { config: Arc::new(config), layout: Arc::new(layout), params, spare: Spare::default() })
    }

    /// Its shape.
    pub fn config(&self) -> &DecoderConfig {
        &self.config
    }

    /// Its weights.
    pub fn params(&self) -> &Params {
        &self.params
    }

    /// The same shape with other weights of the same layout, as adapters make them.
    ///
    /// Panics if the length differs.
    pub fn with_params(&self, params: Params) -> Decoder {
        assert_eq!(params.len(), self.params.len(), "weights of another shape");
        Decoder { config: self.config.clone(), layout: self.layout.clone(), params, spare: self.spare.clone() }
    }

    /// A copy that no later update of the original reaches.
    pub fn snapshot(&self) -> Result<Decoder> {
        Ok(self.with_params(self.params.snapshot()?))
    }

    /// Logits of every token of the completions before it is read, `[M, V]` with M the number of completion tokens, row
    /// after row; differentiable in the weights.
    ///
    /// Errors: a prompt is empty, the batches differ in rows, or an id is not below V.
    pub fn logits(&self, prompts: &Tokens, completions: &Tokens) -> Result<Tensor> {
        self.logits_with(self.params.var().as_tensor(), prompts, completions)
    }

    /// [`Decoder::logits`] with weights that are themselves computed, `[len]`.
    pub fn logits_with(&self, weights: &Tensor, prompts: &Tokens, completions: &Tokens) -> Result<Tensor> {
        self.apply(weights, prompts, completions, Head::Logits)
    }

    /// Log-probability of every token of the completions, `[M]`, nats; differentiable in the weights.
    ///
    /// ```text
    /// ln softmax(logits/temperature) at the token, over the ids below `usable`
    /// ```
    ///
    /// Errors: as [`Decoder::logits`], and a completion with an id that is not usable.
    pub fn log_prob(&self, prompts: &Tokens, completions: &Tokens, temperature: f32, usable: usize) -> Result<Tensor> {
        self.log_prob_with(self.params.var().as_tensor(), prompts, completions, temperature, usable)
    }

    /// [`Decoder::log_prob`] with weights that are themselves computed, `[len]`.
    pub fn log_prob_with(
        &self,
        weights: &Tensor,
        prompts: &Tokens,
        completions: &Tokens,
        temperature: f32,
        usable: usize,
    ) -> Result<Tensor> {
        if let Some(id) = completions.ids().iter().find(|id| **id as usize >= usable) {
            candle_core::bail!("a completion has token {id}; the usable ids are below {usable}");
        }
        self.apply(weights, prompts, completions, Head::LogProb { temperature, usable })
    }

    fn apply(&self, weights: &Tensor, prompts: &Tokens, completions: &Tokens, head: Head) -> Result<Tensor> {
        let batch = Batch::new(prompts, completions, self.config.vocab)?;
        if batch.scored == 0 {
            let width = if head == Head::Logits { self.config.vocab } else { 1 };
            let none = Tensor::zeros((0, width), candle_core::DType::F32, &Device::Cpu)?;
            return if head == Head::Logits { Ok(none) } else { none.flatten_all() };
        }
        let (cos, sin) = rope_table(batch.longest, self.config.head_dim, self.config.rope_theta);
        let kept = (0..batch.chunks.len()).map(|_| Mutex::new(None)).collect();
        let (config, layout, spare) = (self.config.clone(), self.layout.clone(), self.spare.clone());
        weights.apply_op1(Score { config, layout, spare, batch, cos, sin, head, kept })
    }
}

/// What makes no decoder.
#[derive(Debug, thiserror::Error)]
pub enum DecoderError {
    /// The shape.
    #[error(transparent)]
    Shape(#[from] ShapeError),
    /// The tensors.
    #[error(transparent)]
    Tensor(#[from] candle_core::Error),
}

impl Persist for Decoder {
    fn save(&self, prefix: &str, to: &mut Bundle) {
        self.params.save(prefix, to);
    }
    fn load(&mut self, prefix: &str, from: &Bundle) -> std::result::Result<(), BundleError> {
        self.params.load(prefix, from)
    }
}

/// Prompts and completions as the network reads them: without the last token, which nothing follows.
struct Batch {
    ids: Vec<u32>,
    lengths: Vec<usize>,
    /// Token that follows each scored position.
    targets: Vec<u32>,
    chunks: Vec<Part>,
    scored: usize,
    longest: usize,
}

/// One chunk's share of the batch.
struct Part {
    sequences: Range<usize>,
    tokens: Range<usize>,
    /// Scored positions, counted from the chunk's first token.
    rows: Vec<u32>,
    /// Where they lie in the output.
    out: Range<usize>,
}

impl Batch {
    fn new(prompts: &Tokens, completions: &Tokens, vocab: usize) -> Result<Self> {
        if prompts.rows() != completions.rows() {
            candle_core::bail!("{} prompts and {} completions", prompts.rows(), completions.rows());
        }
        let all = prompts.ids().iter().chain(completions.ids());
        if let Some(id) = all.copied().find(|id| *id as usize >= vocab) {
            candle_core::bail!("token {id} is beyond the vocabulary of {vocab}");
        }
        let mut b = Batch { ids: vec![], lengths: vec![], targets: vec![], chunks: vec![], scored: 0, longest: 0 };
        let mut part = Part { sequences: 0..0, tokens: 0..0, rows: vec![], out: 0..0 };
        for (i, (prompt, completion)) in prompts.iter().zip(completions.iter()).enumerate() {
            if prompt.is_empty() {
                candle_core::bail!("prompt {i} is empty; it needs at least one token to predict from");
            }
            if completion.is_empty() {
                continue;
            }
            let n = prompt.len() + completion.len() - 1;
            if part.tokens.len() + n > CHUNK && !part.tokens.is_empty() {
                let next = Part {
                    sequences: part.sequences.end..part.sequences.end,
                    tokens: part.tokens.end..part.tokens.end,
                    rows: vec![],
                    out: part.out.end..part.out.end,
                };
                b.chunks.push(std::mem::replace(&mut part, next));
            }
            let base = part.tokens.len();
            part.rows.extend((prompt.len() - 1..n).map(|t| (base + t) as u32));
            b.ids.extend_from_slice(prompt);
            b.ids.extend_from_slice(&completion[..completion.len() - 1]);
            b.lengths.push(n);
            b.targets.extend_from_slice(completion);
            part.sequences.end += 1;
            part.tokens.end += n;
            part.out.end += completion.len();
            b.longest = b.longest.max(n);
        }
        if !part.tokens.is_empty() {
            b.chunks.push(part);
        }
        b.scored = b.targets.len();
        Ok(b)
    }

    fn chunk(&self, part: &Part) -> Chunk<'_> {
        Chunk { ids: &self.ids[part.tokens.clone()], lengths: &self.lengths[part.sequences.clone()] }
    }
}

struct Score {
    config: Arc<DecoderConfig>,
    layout: Arc<Layout>,
    batch: Batch,
    cos: Vec<f32>,
    sin: Vec<f32>,
    head: Head,
    /// One per chunk, between forward and backward.
    kept: Vec<Mutex<Option<Scored>>>,
    spare: Spare,
}

/// A chunk on its way back.
struct Scored {
    pass: Pass,
    /// Rows of the hidden state that are scored, `[m, d]`.
    picked: Buffer,
    /// Theirs, `[m, V]`, unless that is much.
    logits: Option<Buffer>,
}

impl Score {
    fn net<'a>(&'a self, params: &'a [f32]) -> Net<'a> {
        Net { config: &self.config, layout: &self.layout, params, cos: &self.cos, sin: &self.sin, spare: &self.spare }
    }

    /// Numbers per scored position.
    fn width(&self) -> usize {
        if self.head == Head::Logits { self.config.vocab } else { 1 }
    }

    fn forward(&self, params: &[f32], part: &Part) -> Scored {
        let d = self.config.hidden;
        let pass = self.net(params).forward(&self.batch.chunk(part), true);
        let mut picked = self.spare.take(part.rows.len() * d);
        for (row, &r) in picked.chunks_exact_mut(d).zip(&part.rows) {
            row.copy_from_slice(&pass.hidden[r as usize * d..(r as usize + 1) * d]);
        }
        Scored { pass, picked, logits: None }
    }

    /// `[m, V]` of `[m, d]`.
    fn logits(&self, params: &[f32], picked: &[f32]) -> Buffer {
        let (d, v) = (self.config.hidden, self.config.vocab);
        let m = picked.len() / d;
        let head = &params[self.layout.head..self.layout.head + v * d];
        let mut logits = self.spare.take(m * v);
        matmul(m, v, d, &mut logits, View::rows(v), false, picked, View::rows(d), head, View::transposed(d));
        logits
    }

    fn forward_part(&self, params: &[f32], i: usize, out: &mut [f32]) {
        let part = &self.batch.chunks[i];
        let mut scored = self.forward(params, part);
        let mut logits = self.logits(params, &scored.picked);
        match self.head {
            Head::Logits => out.copy_from_slice(&logits),
            Head::LogProb { temperature, usable } => {
                let targets = &self.batch.targets[part.out.clone()];
                for ((row, out), &id) in logits.chunks_exact_mut(self.config.vocab).zip(out).zip(targets) {
                    *out = log_prob(&mut row[..usable], id, temperature);
                }
            }
        }
        // a large vocabulary's take more memory than all blocks and are computed again
        if self.config.vocab <= self.config.layers * self.config.hidden {
            scored.logits = Some(logits);
        }
        *self.kept[i].lock().expect("no panic while held") = Some(scored);
    }

    fn backward_part(&self, params: &[f32], i: usize, g: &[f32], grad: &mut [f32]) {
        let part = &self.batch.chunks[i];
        let net = self.net(params);
        let kept = self.kept[i].lock().expect("no panic while held").take();
        // a second backward through the same graph starts over
        let Scored { pass, picked, logits } = kept.unwrap_or_else(|| self.forward(params, part));
        let (d, v, m) = (self.config.hidden, self.config.vocab, part.rows.len());
        let kept = logits.is_some();
        let mut dlogits = logits.unwrap_or_else(|| self.logits(params, &picked));
        match self.head {
            Head::Logits => dlogits.copy_from_slice(g),
            Head::LogProb { temperature, usable } => {
                let targets = &self.batch.targets[part.out.clone()];
                for ((row, &g), &id) in dlogits.chunks_exact_mut(v).zip(g).zip(targets) {
                    let (live, dead) = row.split_at_mut(usable);
                    if !kept {
                        log_prob(live, id, temperature);
                    }
                    log_prob_backward(live, id, temperature, g);
                    dead.fill(0.0);
                }
            }
        }
        let at = self.layout.head;
        let mut dpicked = self.spare.take(m * d);
        matmul(
            m,
            d,
            v,
            &mut dpicked,
            View::rows(d),
            false,
            &dlogits,
            View::rows(v),
            &params[at..at + v * d],
            View::rows(d),
        );
        let dhead = &mut grad[at..at + v * d];
        matmul(v, d, m, dhead, View::rows(d), true, &dlogits, View::transposed(v), &picked, View::rows(d));
        let mut dhidden = self.spare.zeros(pass.hidden.len());
        for (row, &r) in dpicked.chunks_exact(d).zip(&part.rows) {
            dhidden[r as usize * d..(r as usize + 1) * d].copy_from_slice(row);
        }
        net.backward(&self.batch.chunk(part), pass, &dhidden, grad);
    }
}

multiversion! {
    /// `ln softmax(row/temperature)[id]`; the row becomes its softmax.
    fn log_prob(row: &mut [f32], id: u32, temperature: f32) -> f32 {
        let (target, inverse) = (row[id as usize], 1.0 / temperature);
        let mut top = [f32::NEG_INFINITY; 16];
        for (k, l) in row.iter().enumerate() {
            top[k % 16] = top[k % 16].max(*l);
        }
        let top = top.iter().copied().fold(f32::NEG_INFINITY, f32::max);
        let mut sums = [0.0f32; 16];
        for (k, l) in row.iter_mut().enumerate() {
            // exp clamps: what is not a number must reach the sum as such
            let w = exp((*l - top) * inverse) + 0.0 * *l;
            *l = w;
            sums[k % 16] += w;
        }
        let sum: f32 = sums.iter().sum();
        for l in row.iter_mut() {
            *l /= sum;
        }
        (target - top) * inverse - sum.ln()
    }
}

multiversion! {
    /// `row`, a softmax p, becomes `g·(onehot − p)/temperature`.
    fn log_prob_backward(row: &mut [f32], id: u32, temperature: f32, g: f32) {
        let scale = g / temperature;
        for p in row.iter_mut() {
            *p *= -scale;
        }
        row[id as usize] += scale;
    }
}

impl CustomOp1 for Score {
    fn name(&self) -> &'static str {
        "decoder-score"
    }

    fn cpu_fwd(&self, storage: &CpuStorage, layout: &TensorLayout) -> Result<(CpuStorage, Shape)> {
        let params = cpu_slice(storage, layout)?;
        let width = self.width();
        let mut out = vec![0.0; self.batch.scored * width];
        let mut pieces: Vec<&mut [f32]> = Vec::new();
        let mut rest = &mut out[..];
        for part in &self.batch.chunks {
            let (piece, tail) = rest.split_at_mut(part.out.len() * width);
            pieces.push(piece);
            rest = tail;
        }
        pieces.into_par_iter().enumerate().for_each(|(i, out)| self.forward_part(params, i, out));
        let scored = self.batch.scored;
        if width == 1 { cpu_result(out, scored) } else { cpu_result(out, (scored, width)) }
    }

    fn bwd(&self, arg: &Tensor, _res: &Tensor, grad_res: &Tensor) -> Result<Option<Tensor>> {
        let (arg, grad_res) = (arg.contiguous()?, grad_res.contiguous()?);
        let grad = with_slice(&arg, |params| {
            with_slice(&grad_res, |g| {
                let width = self.width();
                let sums = if params.len() > LARGE { 1 } else { SUMS.min(self.batch.chunks.len()) };
                let partial: Vec<Vec<f32>> = (0..sums)
                    .into_par_iter()
                    .map(|lane| {
                        let mut grad = vec![0.0; params.len()];
                        for (i, part) in self.batch.chunks.iter().enumerate().skip(lane).step_by(sums) {
                            let g = &g[part.out.start * width..part.out.end * width];
                            self.backward_part(params, i, g, &mut grad);
                        }
                        grad
                    })
                    .collect();
                let mut partial = partial.into_iter();
                let mut total = partial.next().unwrap_or_default();
                for p in partial {
                    total.iter_mut().zip(p).for_each(|(t, x)| *t += x);
                }
                total
            })
        })??;
        Ok(Some(Tensor::from_vec(grad, arg.elem_count(), &Device::Cpu)?))
    }
}
