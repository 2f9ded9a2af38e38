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
use crate::spare::{Buffer, Spare};

/// Everything that does not change from chunk to chunk.
pub(crate) struct Net<'a> {
    pub config: &'a DecoderConfig,
    pub layout: &'a Layout,
    pub params: &'a [f32],
    /// `[positions, h/2]`
    pub cos: &'a [f32],
    pub sin: &'a [f32],
    pub spare: &'a Spare,
}

/// Sequences next to each other.
pub(crate) struct Chunk<'a> {
    /// `[T]`
    pub ids: &'a [u32],
    /// Length of each sequence; they add up to T.
    pub lengths: &'a [usize],
}

/// What backward needs of one block.
struct Kept {
    x: Buffer,
    inv1: Buffer,
    h1: Buffer,
    /// Before the norm per head and rotation, and the inverse norms, where there is such a norm.
    raw: Option<[Buffer; 2]>,
    qkv: Buffer,
    /// `[L, L]` per sequence and head; what lies above the diagonal's blocks is not used.
    probs: Buffer,
    attended: Buffer,
    mid: Buffer,
    inv2: Buffer,
    h2: Buffer,
    gate_up: Buffer,
    act: Buffer,
}

/// A chunk on its way.
pub(crate) struct Pass {
    blocks: Vec<Kept>,
    /// Output of the last block and its norm.
    x: Buffer,
    inv: Buffer,
    /// `[T, d]`: what the head reads.
    pub hidden: Buffer,
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
        let mut x = self.spare.take(rows * d);
        for (row, &id) in x.chunks_exact_mut(d).zip(chunk.ids) {
            row.copy_from_slice(self.part(self.layout.embed + id as usize * d, d));
        }
        let mut blocks = Vec::new();
        for block in &self.layout.blocks {
            let (out, kept) = self.block(block, chunk, x, &cos, &sin);
            x = out;
            if keep {
                blocks.push(kept);
            }
        }
        let (mut hidden, mut inv) = (self.spare.take(rows * d), self.spare.take(rows));
        rms_norm(&x, self.part(self.layout.norm, d), c.norm_eps as f32, &mut hidden, &mut inv);
        Pass { blocks, x, inv, hidden }
    }

    fn block(&self, b: &BlockLayout, chunk: &Chunk, x: Buffer, cos: &[f32], sin: &[f32]) -> (Buffer, Kept) {
        let (c, spare) = (self.config, self.spare);
        let (d, f, h, w, rows) = (c.hidden, c.ffn, c.head_dim, self.width(), chunk.ids.len());
        let eps = c.norm_eps as f32;
        let (mut h1, mut inv1) = (spare.take(rows * d), spare.take(rows));
        rms_norm(&x, self.part(b.norm1, d), eps, &mut h1, &mut inv1);
        let mut qkv = spare.take(rows * w);
        if let Some(bias) = b.qkv_bias {
            let bias = self.part(bias, w);
            qkv.chunks_exact_mut(w).for_each(|row| row.copy_from_slice(bias));
        }
        project(&h1, self.part(b.qkv, w * d), d, w, &mut qkv, b.qkv_bias.is_some());
        let turned = c.heads + c.kv_heads;
        let raw = b.q_norm.zip(b.k_norm).map(|(q_norm, k_norm)| {
            let (raw, mut inv_heads) = (spare.copy(&qkv), spare.take(rows * turned));
            for ((row, raw), inv) in
                qkv.chunks_exact_mut(w).zip(raw.chunks_exact(w)).zip(inv_heads.chunks_exact_mut(turned))
            {
                let (qs, ks) = (c.heads * h, c.heads);
                rms_norm(&raw[..qs], self.part(q_norm, h), eps, &mut row[..qs], &mut inv[..ks]);
                rms_norm(&raw[qs..turned * h], self.part(k_norm, h), eps, &mut row[qs..turned * h], &mut inv[ks..]);
            }
            [raw, inv_heads]
        });
        rotate(&mut qkv, w, turned, h, cos, sin, 1.0);
        let (probs, attended) = self.attend(chunk, &qkv);
        let mut mid = spare.copy(&x);
        project(&attended, self.part(b.out, d * c.query_dim()), c.query_dim(), d, &mut mid, true);
        let (mut h2, mut inv2) = (spare.take(rows * d), spare.take(rows));
        rms_norm(&mid, self.part(b.norm2, d), eps, &mut h2, &mut inv2);
        let mut gate_up = spare.take(rows * 2 * f);
        project(&h2, self.part(b.gate_up, 2 * f * d), d, 2 * f, &mut gate_up, false);
        let mut act = spare.take(rows * f);
        swiglu(&gate_up, f, &mut act);
        let mut out = spare.copy(&mid);
        project(&act, self.part(b.down, d * f), f, d, &mut out, true);
        (out, Kept { x, inv1, h1, raw, qkv, probs, attended, mid, inv2, h2, gate_up, act })
    }

    /// Views of one head of one sequence inside rows of q, k, v: offset of q, of k, of v.
    fn offsets(&self, first: usize, head: usize) -> [usize; 3] {
        let c = self.config;
        let (h, at) = (c.head_dim, first * self.width());
        let kv = head / (c.heads / c.kv_heads);
        [at + head * h, at + c.query_dim() + kv * h, at + c.query_dim() + c.kv_dim() + kv * h]
    }

    /// Probabilities of every sequence and head, `[L, L]`, and what they average, `[T, H·h]`.
    fn attend(&self, chunk: &Chunk, qkv: &[f32]) -> (Buffer, Buffer) {
        let c = self.config;
        let (h, w, q) = (c.head_dim, self.width(), c.query_dim());
        let scale = 1.0 / (h as f32).sqrt();
        let mut all = self.spare.take(chunk.lengths.iter().map(|n| n * n * c.heads).sum());
        let mut attended = self.spare.take(chunk.ids.len() * q);
        let (rows, turned) = (View::rows(w), View::transposed(w));
        let (mut first, mut at) = (0, 0);
        for &n in chunk.lengths {
            for head in 0..c.heads {
                let [oq, ok, ov] = self.offsets(first, head);
                let probs = &mut all[at..at + n * n];
                for Rows { from, to } in causal(n) {
                    let (m, part) = (to - from, View::rows(n).at(from * n));
                    matmul(m, to, h, probs, part, false, qkv, rows.at(oq + from * w), qkv, turned.at(ok));
                    causal_softmax(probs, n, from..to, scale);
                    let out = View::rows(q).at((first + from) * q + head * h);
                    matmul(m, h, to, &mut attended, out, false, probs, part, qkv, rows.at(ov));
                }
                at += n * n;
            }
            first += n;
        }
        (all, attended)
    }

    /// Gradient of a chunk. `dhidden`: `[T, d]`; `grad`, like the parameters, is added to.
    pub fn backward(&self, chunk: &Chunk, pass: Pass, dhidden: &[f32], grad: &mut [f32]) {
        let c = self.config;
        let (d, rows) = (c.hidden, chunk.ids.len());
        let (cos, sin) = self.angles(chunk);
        let mut dx = self.spare.zeros(rows * d);
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
        let spare = self.spare;
        let range = |at: usize, len: usize| at..at + len;
        // feed-forward part
        let mut dact = spare.take(rows * f);
        project_backward(&k.act, self.part(b.down, d * f), dx, f, d, &mut dact, false, &mut grad[range(b.down, d * f)]);
        swiglu_backward(&mut k.gate_up, f, &dact);
        let mut dh = spare.take(rows * d);
        let (wide, at) = (2 * f, range(b.gate_up, 2 * f * d));
        project_backward(&k.h2, self.part(b.gate_up, wide * d), &k.gate_up, d, wide, &mut dh, false, &mut grad[at]);
        rms_norm_backward(&k.mid, &k.inv2, self.part(b.norm2, d), &dh, dx, &mut grad[range(b.norm2, d)]);
        // attention
        let mut dattended = spare.take(rows * q);
        let at = range(b.out, d * q);
        project_backward(&k.attended, self.part(b.out, d * q), dx, q, d, &mut dattended, false, &mut grad[at]);
        let mut dqkv = self.attend_backward(chunk, &k, &dattended);
        let turned = c.heads + c.kv_heads;
        rotate(&mut dqkv, w, turned, h, cos, sin, -1.0);
        if let (Some(q_norm), Some(k_norm), Some([raw, inv])) = (b.q_norm, b.k_norm, &k.raw) {
            let qs = c.heads * h;
            let (mut dq_norm, mut dk_norm) = (vec![0.0; h], vec![0.0; h]);
            let mut dy = vec![0.0; turned * h];
            for ((row, raw), inv) in dqkv.chunks_exact_mut(w).zip(raw.chunks_exact(w)).zip(inv.chunks_exact(turned)) {
                let row = &mut row[..turned * h];
                dy.copy_from_slice(row);
                row.fill(0.0);
                let (to_q, to_k) = row.split_at_mut(qs);
                let (raw_q, raw_k) = raw[..turned * h].split_at(qs);
                let (inv_q, inv_k) = inv.split_at(c.heads);
                rms_norm_backward(raw_q, inv_q, self.part(q_norm, h), &dy[..qs], to_q, &mut dq_norm);
                rms_norm_backward(raw_k, inv_k, self.part(k_norm, h), &dy[qs..], to_k, &mut dk_norm);
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

    fn attend_backward(&self, chunk: &Chunk, k: &Kept, dattended: &[f32]) -> Buffer {
        let c = self.config;
        let (h, w, q) = (c.head_dim, self.width(), c.query_dim());
        let scale = 1.0 / (h as f32).sqrt();
        let (rows, turned) = (View::rows(w), View::transposed(w));
        let mut dqkv = self.spare.zeros(k.qkv.len());
        let longest = chunk.lengths.iter().copied().max().unwrap_or(0);
        let mut ds = self.spare.take(longest * longest.min(ROWS));
        let (mut first, mut at) = (0, 0);
        for &n in chunk.lengths {
            for head in 0..c.heads {
                let [oq, ok, ov] = self.offsets(first, head);
                let probs = &k.probs[at..at + n * n];
                for Rows { from, to } in causal(n) {
                    let (m, oq, part) = (to - from, oq + from * w, from * n);
                    let out = View::rows(q).at((first + from) * q + head * h);
                    let (p, p_turned) = (View::rows(n).at(part), View::transposed(n).at(part));
                    let (s, s_turned) = (View::rows(n), View::transposed(n));
                    // dV += Pᵀ·dO;  dP = dO·Vᵀ;  dQ += dS·K;  dK += dSᵀ·Q
                    matmul(to, h, m, &mut dqkv, rows.at(ov), true, probs, p_turned, dattended, out);
                    matmul(m, to, h, &mut ds, s, false, dattended, out, &k.qkv, turned.at(ov));
                    causal_softmax_backward(&probs[p.offset..], &mut ds, n, from..to, scale);
                    matmul(m, h, to, &mut dqkv, rows.at(oq), true, &ds, s, &k.qkv, rows.at(ok));
                    matmul(to, h, m, &mut dqkv, rows.at(ok), true, &ds, s_turned, &k.qkv, rows.at(oq));
                }
                at += n * n;
            }
            first += n;
        }
        dqkv
    }
}

/// Rows of a causal matrix that are worked on together, on the columns up to the last one's diagonal.
const ROWS: usize = 64;

struct Rows {
    from: usize,
    to: usize,
}

fn causal(n: usize) -> impl Iterator<Item = Rows> {
    (0..n).step_by(ROWS).map(move |from| Rows { from, to: (from + ROWS).min(n) })
}
