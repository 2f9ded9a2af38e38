//! Decoding with a cache: the decoder's weights, packed, and slots that remember keys and values.

use candle_core::Result;
use onpolicy::multiversion;
use rayon::prelude::*;

use crate::config::DecoderConfig;
use crate::decoder::Decoder;
use crate::generator::Generator;
use crate::kernels::{rms_norm, rope_table, rotate, softmax, swiglu};
use crate::packed::Packed;

/// Slots that one thread steps together. Any number gives the same bits.
const BLOCK: usize = 16;

/// Weights of one block.
struct Block {
    norm1: Vec<f32>,
    qkv: Packed,
    qkv_bias: Option<Vec<f32>>,
    qk_norm: Option<[Vec<f32>; 2]>,
    out: Packed,
    norm2: Vec<f32>,
    gate_up: Packed,
    down: Packed,
}

struct Weights {
    config: DecoderConfig,
    embed: Vec<f32>,
    blocks: Vec<Block>,
    norm: Vec<f32>,
    head: Packed,
    cos: Vec<f32>,
    sin: Vec<f32>,
    capacity: usize,
}

/// One sequence's keys and values.
struct Slot {
    len: usize,
    /// `[layers, K, h, capacity]`: a key's entries lie a capacity apart, so that all positions are scored in one sweep.
    keys: Vec<f32>,
    /// `[layers, K, capacity, h]`
    values: Vec<f32>,
}

/// A [`Generator`] over the weights as they were when it was made: an optimiser step cannot make its cache stale.
pub struct Decoding {
    weights: Weights,
    slots: Vec<Slot>,
}

impl Decoding {
    /// `slots` sequences of up to `capacity` tokens.
    pub fn new(decoder: &Decoder, slots: usize, capacity: usize) -> Result<Self> {
        let p = decoder.params.to_vec()?;
        let (c, layout) = (decoder.config().clone(), &decoder.layout);
        let (d, q, kv, f, h) = (c.hidden, c.query_dim(), c.kv_dim(), c.ffn, c.head_dim);
        let part = |at: usize, len: usize| p[at..at + len].to_vec();
        let pack = |at: usize, input: usize, output: usize| Packed::new(&p[at..at + input * output], input, output);
        let blocks = layout.blocks.iter().map(|b| Block {
            norm1: part(b.norm1, d),
            qkv: pack(b.qkv, d, q + 2 * kv),
            qkv_bias: b.qkv_bias.map(|at| part(at, q + 2 * kv)),
            qk_norm: b.q_norm.zip(b.k_norm).map(|(q, k)| [part(q, h), part(k, h)]),
            out: pack(b.out, q, d),
            norm2: part(b.norm2, d),
            gate_up: pack(b.gate_up, d, 2 * f),
            down: pack(b.down, f, d),
        });
        let (cos, sin) = rope_table(capacity, h, c.rope_theta);
        let size = c.layers * kv * capacity;
        let slots = (0..slots).map(|_| Slot { len: 0, keys: vec![0.0; size], values: vec![0.0; size] }).collect();
        let weights = Weights {
            embed: part(layout.embed, c.vocab * d),
            blocks: blocks.collect(),
            norm: part(layout.norm, d),
            head: pack(layout.head, d, c.vocab),
            cos,
            sin,
            capacity,
            config: c,
        };
        Ok(Decoding { weights, slots })
    }

    /// Tokens that slot `slot` holds.
    pub fn len(&self, slot: usize) -> usize {
        self.slots[slot].len
    }

    /// Whether no slot holds anything.
    pub fn is_empty(&self) -> bool {
        self.slots.iter().all(|s| s.len == 0)
    }
}

impl Weights {
    /// Appends tokens to slots and gives the logits of the last row of each. `rows`: index into `slots` and token, rows of
    /// one slot in order; `logits`: `[slots, V]`.
    fn advance(&self, slots: &mut [&mut Slot], rows: &[(usize, u32)], logits: &mut [f32]) {
        let c = &self.config;
        let (d, q, kv, f, h) = (c.hidden, c.query_dim(), c.kv_dim(), c.ffn, c.head_dim);
        let (w, n, eps, half) = (q + 2 * kv, rows.len(), c.norm_eps as f32, h / 2);
        let mut x = Vec::with_capacity(n * d);
        let (mut cos, mut sin) = (Vec::with_capacity(n * half), Vec::with_capacity(n * half));
        let mut position = Vec::with_capacity(n);
        for &(s, token) in rows {
            let t = slots[s].len;
            assert!(t < self.capacity, "slot is full: it holds {t} tokens");
            x.extend_from_slice(&self.embed[token as usize * d..(token as usize + 1) * d]);
            cos.extend_from_slice(&self.cos[t * half..(t + 1) * half]);
            sin.extend_from_slice(&self.sin[t * half..(t + 1) * half]);
            position.push(t);
            slots[s].len += 1;
        }
        let (mut normed, mut inv) = (vec![0.0; n * d], vec![0.0; n]);
        let (mut qkv, mut attended) = (vec![0.0; n * w], vec![0.0; n * q]);
        let (mut gate_up, mut act) = (vec![0.0; n * 2 * f], vec![0.0; n * f]);
        let mut scores = vec![0.0; self.capacity];
        for (layer, b) in self.blocks.iter().enumerate() {
            rms_norm(&x, &b.norm1, eps, &mut normed, &mut inv);
            if let Some(bias) = &b.qkv_bias {
                qkv.chunks_exact_mut(w).for_each(|row| row.copy_from_slice(bias));
            }
            b.qkv.apply(&normed, &mut qkv, b.qkv_bias.is_some());
            if let Some([q_norm, k_norm]) = &b.qk_norm {
                let mut inv = vec![0.0; c.heads];
                for row in qkv.chunks_exact_mut(w) {
                    let raw = row[..q + kv].to_vec();
                    rms_norm(&raw[..q], q_norm, eps, &mut row[..q], &mut inv);
                    rms_norm(&raw[q..], k_norm, eps, &mut row[q..q + kv], &mut inv[..c.kv_heads]);
                }
            }
            rotate(&mut qkv, w, c.heads + c.kv_heads, h, &cos, &sin, 1.0);
            for (r, &(s, _)) in rows.iter().enumerate() {
                let (slot, row) = (&mut *slots[s], &qkv[r * w..(r + 1) * w]);
                self.remember(slot, layer, position[r], &row[q..q + kv], &row[q + kv..]);
                let out = &mut attended[r * q..(r + 1) * q];
                self.attend(slot, layer, position[r] + 1, &row[..q], &mut scores, out);
            }
            b.out.apply(&attended, &mut x, true);
            rms_norm(&x, &b.norm2, eps, &mut normed, &mut inv);
            b.gate_up.apply(&normed, &mut gate_up, false);
            swiglu(&gate_up, f, &mut act);
            b.down.apply(&act, &mut x, true);
        }
        let mut last = vec![0.0; slots.len() * d];
        for (r, &(s, _)) in rows.iter().enumerate() {
            last[s * d..(s + 1) * d].copy_from_slice(&x[r * d..(r + 1) * d]);
        }
        let (mut hidden, mut inv) = (vec![0.0; last.len()], vec![0.0; slots.len()]);
        rms_norm(&last, &self.norm, eps, &mut hidden, &mut inv);
        self.head.apply(&hidden, logits, false);
    }

    fn remember(&self, slot: &mut Slot, layer: usize, t: usize, key: &[f32], value: &[f32]) {
        let (h, capacity) = (self.config.head_dim, self.capacity);
        for head in 0..self.config.kv_heads {
            let at = (layer * self.config.kv_heads + head) * h * capacity;
            for k in 0..h {
                slot.keys[at + k * capacity + t] = key[head * h + k];
            }
            slot.values[at + t * h..at + (t + 1) * h].copy_from_slice(&value[head * h..(head + 1) * h]);
        }
    }

    /// Attention of one token over the `n` tokens up to and with itself.
    fn attend(&self, slot: &Slot, layer: usize, n: usize, q: &[f32], scores: &mut [f32], out: &mut [f32]) {
        let c = &self.config;
        let (h, shared) = (c.head_dim, c.heads / c.kv_heads);
        for head in 0..c.heads {
            let at = (layer * c.kv_heads + head / shared) * h * self.capacity;
            let size = h * self.capacity;
            attend(
                &q[head * h..(head + 1) * h],
                &slot.keys[at..at + size],
                &slot.values[at..at + size],
                &mut scores[..n],
                &mut out[head * h..(head + 1) * h],
            );
        }
    }
}

multiversion! {
    /// `softmax(q·K/√h)·V`. `keys`: `[h, capacity]`; `values`: `[capacity, h]`; `scores`: scratch, one per position.
    fn attend(q: &[f32], keys: &[f32], values: &[f32], scores: &mut [f32], out: &mut [f32]) {
        let (h, n) = (q.len(), scores.len());
        let capacity = keys.len() / h;
        scores.fill(0.0);
        for k in 0..h {
            let (a, keys) = (q[k], &keys[k * capacity..k * capacity + n]);
            for t in 0..n {
                scores[t] += a * keys[t];
            }
        }
        softmax(scores, 1.0 / (h as f32).sqrt());
        out.fill(0.0);
        for (p, v) in scores.iter().zip(values.chunks_exact(h)) {
            for k in 0..h {
                out[k] += p * v[k];
            }
        }
    }
}

impl Generator for Decoding {
    fn vocab(&self) -> usize {
        self.weights.config.vocab
    }

    fn slots(&self) -> usize {
        self.slots.len()
    }

    fn capacity(&self) -> usize {
        self.weights.capacity
    }

    fn prefill(&mut self, slot: usize, prompt: &[u32], logits: &mut [f32]) -> Result<()> {
        assert!(!prompt.is_empty(), "an empty prompt predicts nothing");
        if let Some(id) = prompt.iter().find(|id| **id as usize >= self.vocab()) {
            candle_core::bail!("prompt token {id} is beyond the vocabulary of {}", self.vocab());
        }
        let slot = &mut self.slots[slot];
        slot.len = 0;
        let rows: Vec<(usize, u32)> = prompt.iter().map(|&id| (0, id)).collect();
        self.weights.advance(&mut [slot], &rows, logits);
        Ok(())
    }

    fn fork(&mut self, from: usize, to: usize) -> Result<()> {
        if from == to {
            return Ok(());
        }
        let (low, high) = self.slots.split_at_mut(from.max(to));
        let (source, target) = if from < to { (&low[from], &mut high[0]) } else { (&high[0], &mut low[to]) };
        let (n, h, capacity) = (source.len, self.weights.config.head_dim, self.weights.capacity);
        target.len = n;
        for (a, b) in source.keys.chunks_exact(capacity).zip(target.keys.chunks_exact_mut(capacity)) {
            b[..n].copy_from_slice(&a[..n]);
        }
        for (a, b) in source.values.chunks_exact(capacity * h).zip(target.values.chunks_exact_mut(capacity * h)) {
            b[..n * h].copy_from_slice(&a[..n * h]);
        }
        Ok(())
    }

    fn step(&mut self, slots: &[usize], tokens: &[u32], logits: &mut [f32]) -> Result<()> {
        let v = self.vocab();
        assert_eq!((slots.len(), slots.len() * v), (tokens.len(), logits.len()));
        if let Some(id) = tokens.iter().find(|id| **id as usize >= v) {
            candle_core::bail!("token {id} is beyond the vocabulary of {v}");
        }
        let mut all: Vec<Option<&mut Slot>> = self.slots.iter_mut().map(Some).collect();
        let mut picked: Vec<&mut Slot> =
            slots.iter().map(|&s| all[s].take().expect("a slot is stepped once at a time")).collect();
        let weights = &self.weights;
        picked.par_chunks_mut(BLOCK).zip(tokens.par_chunks(BLOCK)).zip(logits.par_chunks_mut(BLOCK * v)).for_each(
            |((slots, tokens), logits)| {
                let rows: Vec<(usize, u32)> = tokens.iter().copied().enumerate().collect();
                weights.advance(slots, &rows, logits);
            },
        );
        Ok(())
    }
}
