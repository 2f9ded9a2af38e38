//! Forward and backward of the decoder over a chunk of whole sequences, on slices.
//!
//! ```text
//! h = norm₁(x);  q, k, v = W_qkv·h (+ bias) (norm per head) rotated;  x' = x + W_o·attention(q, k, v)
//! h' = norm₂(x');  x'' = x' + W_down·(silu(W_gate·h')·(W_up·h'))
//! ```

use onpolicy::matmul::{View, matmul};

use crate::config::DecoderConfig;
use crate::kernels::{
    causal_softmax, causal_softmax_backward, rms_norm, rms_norm_backward, rotate, swiglu, swiglu_backward,
};
use crate::layout::{BlockLayout, Layout};

/// Everything that does not change from chunk to chunk.
pub(crate) struct Net<'a> {
    pub config: &'a DecoderConfig,
    pub layout: &'a Layout,
    pub params: &'a [f32],
    /// `[positions, h/2]`
    pub cos: &'a [f32],
    pub sin: &'a [f32],
}

/// Sequences next to each other.
pub(crate) struct Chunk<'a> {
    /// `[T]`
    pub ids: &'a [u32],
    /// Length of each sequence; they add up to T.
    pub lengths: &'a [usize],
}

/// What backward needs of one block.
#[derive(Default)]
struct Kept {
    x: Vec<f32>,
    inv1: Vec<f32>,
    h1: Vec<f32>,
    /// Before the norm per head and rotation, where there is such a norm.
    raw: Vec<f32>,
    inv_heads: Vec<f32>,
    qkv: Vec<f32>,
    /// `[L, L]` per sequence and head.
    probs: Vec<f32>,
    attended: Vec<f32>,
    mid: Vec<f32>,
    inv2: Vec<f32>,
    h2: Vec<f32>,
    gate_up: Vec<f32>,
    act: Vec<f32>,
}

/// A chunk on its way.
pub(crate) struct Pass {
    blocks: Vec<Kept>,
    /// Output of the last block and its norm.
    x: Vec<f32>,
    inv: Vec<f32>,
    /// `[T, d]`: what the head reads.
    pub hidden: Vec<f32>,
}

/// `y = x·Wᵀ` for `W: [out, in]`.
fn project(x: &[f32], w: &[f32], input: usize, output: usize, y: &mut [f32], add: bool) {
    let rows = x.len() / input;
    matmul(rows, output, input, y, View::rows(output), add, x, View::rows(input), w, View::transposed(input));
}

/// `dx = dy·W` (or adds to it) and `dW += dyᵀ·x`.
fn project_backward(
    x: &[f32],
    w: &[f32],
    dy: &[f32],
    input: usize,
    output: usize,
    dx: &mut [f32],
    add: bool,
    dw: &mut [f32],
) {
    let rows = x.len() / input;
    matmul(output, input, rows, dw, View::rows(input), true, dy, View::transposed(output), x, View::rows(input));
    matmul(rows, input, output, dx, View::rows(input), add, dy, View::rows(output), w, View::rows(input));
}

impl Net<'_> {
    fn part(&self, offset: usize, len: usize) -> &[f32] {
        &self.params[offset..offset + len]
    }

    fn width(&self) -> usize {
        self.config.query_dim() + 2 * self.config.kv_dim()
    }

    /// Cosines and sines of every row of a chunk, positions counted from each sequence's start.
    fn angles(&self, chunk: &Chunk) -> (Vec<f32>, Vec<f32>) {
        let half = self.config.head_dim / 2;
        let gather = |table: &[f32]| {
            let mut out = Vec::with_capacity(chunk.ids.len() * half);
            for &n in chunk.lengths {
                out.extend_from_slice(&table[..n * half]);
            }
            out
        };
        (gather(self.cos), gather(self.sin))
    }

    /// The whole chunk up to the final norm. `keep`: whether [`Net::backward`] will follow.
    pub fn forward(&self, chunk: &Chunk, keep: bool) -> Pass {
        let c = self.config;
        let (d, rows) = (c.hidden, chunk.ids.len());
        let (cos, sin) = self.angles(chunk);
        let mut x = Vec::with_capacity(rows * d);
        for &id in chunk.ids {
            x.extend_from_slice(self.part(self.layout.embed + id as usize * d, d));
        }
        let mut blocks = Vec::new();
        for block in &self.layout.blocks {
            let mut kept = Kept::default();
            x = self.block(block, chunk, x, &cos, &sin, &mut kept);
            if keep {
                blocks.push(kept);
            }
        }
        let (mut hidden, mut inv) = (vec![0.0; rows * d], vec![0.0; rows]);
        rms_norm(&x, self.part(self.layout.norm, d), c.norm_eps as f32, &mut hidden, &mut inv);
        Pass { blocks, x, inv, hidden }
    }

    fn block(&self, b: &BlockLayout, chunk: &Chunk, x: Vec<f32>, cos: &[f32], sin: &[f32], k: &mut Kept) -> Vec<f32> {
        let c = self.config;
        let (d, f, h, w, rows) = (c.hidden, c.ffn, c.head_dim, self.width(), chunk.ids.len());
        let eps = c.norm_eps as f32;
        (k.h1, k.inv1) = (vec![0.0; rows * d], vec![0.0; rows]);
        rms_norm(&x, self.part(b.norm1, d), eps, &mut k.h1, &mut k.inv1);
        k.qkv = vec![0.0; rows * w];
        if let Some(bias) = b.qkv_bias {
            let bias = self.part(bias, w);
            k.qkv.chunks_exact_mut(w).for_each(|row| row.copy_from_slice(bias));
        }
        project(&k.h1, self.part(b.qkv, w * d), d, w, &mut k.qkv, b.qkv_bias.is_some());
        let turned = c.heads + c.kv_heads;
        if let (Some(q_norm), Some(k_norm)) = (b.q_norm, b.k_norm) {
            k.raw = k.qkv.clone();
            k.inv_heads = vec![0.0; rows * turned];
            for (r, row) in k.qkv.chunks_exact_mut(w).enumerate() {
                let raw = &k.raw[r * w..r * w + turned * h];
                let inv = &mut k.inv_heads[r * turned..(r + 1) * turned];
                let (qs, ks) = (c.heads * h, c.heads);
                rms_norm(&raw[..qs], self.part(q_norm, h), eps, &mut row[..qs], &mut inv[..ks]);
                rms_norm(&raw[qs..], self.part(k_norm, h), eps, &mut row[qs..turned * h], &mut inv[ks..]);
            }
        }
        rotate(&mut k.qkv, w, turned, h, cos, sin, 1.0);
        k.attended = vec![0.0; rows * c.query_dim()];
        self.attend(chunk, k);
        k.mid = x.clone();
        project(&k.attended, self.part(b.out, d * c.query_dim()), c.query_dim(), d, &mut k.mid, true);
        k.x = x;
        (k.h2, k.inv2) = (vec![0.0; rows * d], vec![0.0; rows]);
        rms_norm(&k.mid, self.part(b.norm2, d), eps, &mut k.h2, &mut k.inv2);
        k.gate_up = vec![0.0; rows * 2 * f];
        project(&k.h2, self.part(b.gate_up, 2 * f * d), d, 2 * f, &mut k.gate_up, false);
        k.act = vec![0.0; rows * f];
        swiglu(&k.gate_up, f, &mut k.act);
        let mut out = k.mid.clone();
        project(&k.act, self.part(b.down, d * f), f, d, &mut out, true);
        out
    }

    /// Views of one head of one sequence inside rows of q, k, v: offset of q, of k, of v.
    fn offsets(&self, first: usize, head: usize) -> [usize; 3] {
        let c = self.config;
        let (h, at) = (c.head_dim, first * self.width());
        let kv = head / (c.heads / c.kv_heads);
        [at + head * h, at + c.query_dim() + kv * h, at + c.query_dim() + c.kv_dim() + kv * h]
    }

    fn attend(&self, chunk: &Chunk, k: &mut Kept) {
        let c = self.config;
        let (h, w, q) = (c.head_dim, self.width(), c.query_dim());
        let scale = 1.0 / (h as f32).sqrt();
        k.probs = vec![0.0; chunk.lengths.iter().map(|n| n * n * c.heads).sum()];
        let (rows, turned) = (View::rows(w), View::transposed(w));
        let (mut first, mut at) = (0, 0);
        for &n in chunk.lengths {
            for head in 0..c.heads {
                let [oq, ok, ov] = self.offsets(first, head);
                let probs = &mut k.probs[at..at + n * n];
                matmul(n, n, h, probs, View::rows(n), false, &k.qkv, rows.at(oq), &k.qkv, turned.at(ok));
                causal_softmax(probs, n, scale);
                let to = View::rows(q).at(first * q + head * h);
                matmul(n, h, n, &mut k.attended, to, false, probs, View::rows(n), &k.qkv, rows.at(ov));
                at += n * n;
            }
            first += n;
        }
    }

    /// Gradient of a chunk. `dhidden`: `[T, d]`; `grad`, like the parameters, is added to.
    pub fn backward(&self, chunk: &Chunk, pass: Pass, dhidden: &[f32], grad: &mut [f32]) {
        let c = self.config;
        let (d, rows) = (c.hidden, chunk.ids.len());
        let (cos, sin) = self.angles(chunk);
        let mut dx = vec![0.0; rows * d];
        let at = self.layout.norm;
        rms_norm_backward(&pass.x, &pass.inv, self.part(at, d), dhidden, &mut dx, &mut grad[at..at + d]);
        for (b, kept) in self.layout.blocks.iter().zip(pass.blocks).rev() {
            self.block_backward(b, chunk, kept, &cos, &sin, &mut dx, grad);
        }
        for (row, &id) in dx.chunks_exact(d).zip(chunk.ids) {
            let to = self.layout.embed + id as usize * d;
            grad[to..to + d].iter_mut().zip(row).for_each(|(g, x)| *g += x);
        }
    }

    /// `dx`: gradient of the block's output, becomes that of its input.
    fn block_backward(
        &self,
        b: &BlockLayout,
        chunk: &Chunk,
        mut k: Kept,
        cos: &[f32],
        sin: &[f32],
        dx: &mut [f32],
        grad: &mut [f32],
    ) {
        let c = self.config;
        let (d, f, h, w, q, rows) = (c.hidden, c.ffn, c.head_dim, self.width(), c.query_dim(), chunk.ids.len());
        let range = |at: usize, len: usize| at..at + len;
        // feed-forward part
        let mut dact = vec![0.0; rows * f];
        project_backward(&k.act, self.part(b.down, d * f), dx, f, d, &mut dact, false, &mut grad[range(b.down, d * f)]);
        swiglu_backward(&mut k.gate_up, f, &dact);
        let mut dh = vec![0.0; rows * d];
        let (wide, at) = (2 * f, range(b.gate_up, 2 * f * d));
        project_backward(&k.h2, self.part(b.gate_up, wide * d), &k.gate_up, d, wide, &mut dh, false, &mut grad[at]);
        rms_norm_backward(&k.mid, &k.inv2, self.part(b.norm2, d), &dh, dx, &mut grad[range(b.norm2, d)]);
        // attention
        let mut dattended = vec![0.0; rows * q];
        let at = range(b.out, d * q);
        project_backward(&k.attended, self.part(b.out, d * q), dx, q, d, &mut dattended, false, &mut grad[at]);
        let mut dqkv = self.attend_backward(chunk, &k, &dattended);
        let turned = c.heads + c.kv_heads;
        rotate(&mut dqkv, w, turned, h, cos, sin, -1.0);
        if let (Some(q_norm), Some(k_norm)) = (b.q_norm, b.k_norm) {
            let qs = c.heads * h;
            let mut dq_norm = vec![0.0; h];
            let mut dk_norm = vec![0.0; h];
            for (r, row) in dqkv.chunks_exact_mut(w).enumerate() {
                let raw = &k.raw[r * w..r * w + turned * h];
                let inv = &k.inv_heads[r * turned..(r + 1) * turned];
                let dy = row[..turned * h].to_vec();
                row[..turned * h].fill(0.0);
                let (to_q, to_k) = row[..turned * h].split_at_mut(qs);
                rms_norm_backward(&raw[..qs], &inv[..c.heads], self.part(q_norm, h), &dy[..qs], to_q, &mut dq_norm);
                rms_norm_backward(&raw[qs..], &inv[c.heads..], self.part(k_norm, h), &dy[qs..], to_k, &mut dk_norm);
            }
            for (at, part) in [(q_norm, dq_norm), (k_norm, dk_norm)] {
                grad[range(at, h)].iter_mut().zip(part).for_each(|(g, x)| *g += x);
            }
        }
        if let Some(bias) = b.qkv_bias {
            for row in dqkv.chunks_exact(w) {
                grad[range(bias, w)].iter_mut().zip(row).for_each(|(g, x)| *g += x);
            }
        }
        let at = range(b.qkv, w * d);
        project_backward(&k.h1, self.part(b.qkv, w * d), &dqkv, d, w, &mut dh, false, &mut grad[at]);
        rms_norm_backward(&k.x, &k.inv1, self.part(b.norm1, d), &dh, dx, &mut grad[range(b.norm1, d)]);
    }

    fn attend_backward(&self, chunk: &Chunk, k: &Kept, dattended: &[f32]) -> Vec<f32> {
        let c = self.config;
        let (h, w, q) = (c.head_dim, self.width(), c.query_dim());
        let scale = 1.0 / (h as f32).sqrt();
        let (rows, turned) = (View::rows(w), View::transposed(w));
        let mut dqkv = vec![0.0; k.qkv.len()];
        let (mut first, mut at) = (0, 0);
        for &n in chunk.lengths {
            let mut ds = vec![0.0; n * n];
            for head in 0..c.heads {
                let [oq, ok, ov] = self.offsets(first, head);
                let probs = &k.probs[at..at + n * n];
                let from = View::rows(q).at(first * q + head * h);
                // dV += Pᵀ·dO;  dP = dO·Vᵀ;  dQ = dS·K;  dK += dSᵀ·Q
                matmul(n, h, n, &mut dqkv, rows.at(ov), true, probs, View::transposed(n), dattended, from);
                matmul(n, n, h, &mut ds, View::rows(n), false, dattended, from, &k.qkv, turned.at(ov));
                causal_softmax_backward(probs, &mut ds, n, scale);
                matmul(n, h, n, &mut dqkv, rows.at(oq), true, &ds, View::rows(n), &k.qkv, rows.at(ok));
                matmul(n, h, n, &mut dqkv, rows.at(ok), true, &ds, View::transposed(n), &k.qkv, rows.at(oq));
                at += n * n;
            }
            first += n;
        }
        dqkv
    }
}
