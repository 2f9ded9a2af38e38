//! Where a decoder's parameters lie in its flat vector.

use candle_core::Result;
use onpolicy::Noise;
use onpolicy::params::{Params, ParamsBuilder};

use crate::config::DecoderConfig;

/// Offsets of one block's parts.
#[derive(Clone, Debug, Default)]
pub(crate) struct BlockLayout {
    pub norm1: usize,
    /// q, k, v one after the other: one matrix `[H·h + 2·K·h, d]`.
    pub qkv: usize,
    pub qkv_bias: Option<usize>,
    pub q_norm: Option<usize>,
    pub k_norm: Option<usize>,
    pub out: usize,
    pub norm2: usize,
    /// gate, up one after the other: one matrix `[2·ffn, d]`.
    pub gate_up: usize,
    pub down: usize,
}

/// Offsets of all parts.
#[derive(Clone, Debug, Default)]
pub(crate) struct Layout {
    pub embed: usize,
    pub blocks: Vec<BlockLayout>,
    pub norm: usize,
    pub head: usize,
}

/// Standard deviation of initial weights.
const INIT: f32 = 0.02;

/// How a part starts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Start {
    Constant(f32),
    /// Standard deviation.
    Normal(f32),
}

/// Name, shape and start of every part in storage order, and where the parts lie. Parts carry the names of published
/// checkpoints. Weights are normal with deviation 0.02, those that write into the residual stream divided by
/// √(2·layers); norms are 1, biases 0.
pub(crate) struct Plan {
    pub parts: Vec<(String, Vec<usize>, Start)>,
    pub layout: Layout,
    len: usize,
}

impl Plan {
    fn add(&mut self, name: String, shape: &[usize], start: Start) -> usize {
        let offset = self.len;
        self.len += shape.iter().product::<usize>();
        self.parts.push((name, shape.to_vec(), start));
        offset
    }

    pub fn new(c: &DecoderConfig) -> Self {
        let mut p = Plan { parts: Vec::new(), layout: Layout::default(), len: 0 };
        let (d, q, kv, f) = (c.hidden, c.query_dim(), c.kv_dim(), c.ffn);
        let (normal, zero, one) = (Start::Normal(INIT), Start::Constant(0.0), Start::Constant(1.0));
        let residual = Start::Normal(INIT * (1.0 / (2.0 * c.layers as f32).sqrt()));
        p.layout.embed = p.add("model.embed_tokens.weight".into(), &[c.vocab, d], normal);
        for i in 0..c.layers {
            let name = |part: &str| format!("model.layers.{i}.{part}");
            let norm1 = p.add(name("input_layernorm.weight"), &[d], one);
            let qkv = p.add(name("self_attn.q_proj.weight"), &[q, d], normal);
            p.add(name("self_attn.k_proj.weight"), &[kv, d], normal);
            p.add(name("self_attn.v_proj.weight"), &[kv, d], normal);
            let qkv_bias = c.qkv_bias.then(|| {
                let first = p.add(name("self_attn.q_proj.bias"), &[q], zero);
                p.add(name("self_attn.k_proj.bias"), &[kv], zero);
                p.add(name("self_attn.v_proj.bias"), &[kv], zero);
                first
            });
            let q_norm = c.qk_norm.then(|| p.add(name("self_attn.q_norm.weight"), &[c.head_dim], one));
            let k_norm = c.qk_norm.then(|| p.add(name("self_attn.k_norm.weight"), &[c.head_dim], one));
            let out = p.add(name("self_attn.o_proj.weight"), &[d, q], residual);
            let norm2 = p.add(name("post_attention_layernorm.weight"), &[d], one);
            let gate_up = p.add(name("mlp.gate_proj.weight"), &[f, d], normal);
            p.add(name("mlp.up_proj.weight"), &[f, d], normal);
            let down = p.add(name("mlp.down_proj.weight"), &[d, f], residual);
            p.layout.blocks.push(BlockLayout { norm1, qkv, qkv_bias, q_norm, k_norm, out, norm2, gate_up, down });
        }
        p.layout.norm = p.add("model.norm.weight".into(), &[d], one);
        p.layout.head = if c.tied { p.layout.embed } else { p.add("lm_head.weight".into(), &[c.vocab, d], normal) };
        p
    }

    /// The parameter vector at its start; all zeros without noise.
    pub fn build(self, mut noise: Option<&mut Noise>) -> Result<(Params, Layout)> {
        let mut b = ParamsBuilder::default();
        for (name, shape, start) in self.parts {
            let n = shape.iter().product();
            let values = match (&mut noise, start) {
                (None, _) => vec![0.0; n],
                (_, Start::Constant(value)) => vec![value; n],
                (Some(noise), Start::Normal(deviation)) => noise.normal_vec(n).iter().map(|x| deviation * x).collect(),
            };
            b.add_values(name, &shape, &values);
        }
        Ok((b.build()?, self.layout))
    }
}
