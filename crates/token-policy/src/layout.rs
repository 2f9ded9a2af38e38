//! Where a decoder's parameters lie in its flat vector.

use candle_core::Result;
use onpolicy::Noise;
use onpolicy::params::{Init, Params, ParamsBuilder};

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

/// A fresh parameter vector and its layout. Parts carry the names of published checkpoints. Weights are normal with
/// deviation 0.02, those that write into the residual stream divided by √(2·layers); norms are 1, biases 0.
pub(crate) fn build(c: &DecoderConfig, noise: &mut Noise) -> Result<(Params, Layout)> {
    let mut b = ParamsBuilder::default();
    let normal = |b: &mut ParamsBuilder, name: String, shape: &[usize], scale: f32, noise: &mut Noise| {
        let values: Vec<f32> = noise.normal_vec(shape.iter().product()).iter().map(|x| INIT * scale * x).collect();
        b.add_values(name, shape, &values)
    };
    let (d, q, kv, f) = (c.hidden, c.query_dim(), c.kv_dim(), c.ffn);
    let residual = 1.0 / (2.0 * c.layers as f32).sqrt();
    let ones = Init::Constant(1.0);
    let mut layout = Layout {
        embed: normal(&mut b, "model.embed_tokens.weight".into(), &[c.vocab, d], 1.0, noise),
        ..Default::default()
    };
    for i in 0..c.layers {
        let name = |part: &str| format!("model.layers.{i}.{part}");
        let norm1 = b.add(name("input_layernorm.weight"), &[d], ones, noise);
        let qkv = normal(&mut b, name("self_attn.q_proj.weight"), &[q, d], 1.0, noise);
        normal(&mut b, name("self_attn.k_proj.weight"), &[kv, d], 1.0, noise);
        normal(&mut b, name("self_attn.v_proj.weight"), &[kv, d], 1.0, noise);
        let qkv_bias = c.qkv_bias.then(|| {
            let first = b.add(name("self_attn.q_proj.bias"), &[q], Init::Constant(0.0), noise);
            b.add(name("self_attn.k_proj.bias"), &[kv], Init::Constant(0.0), noise);
            b.add(name("self_attn.v_proj.bias"), &[kv], Init::Constant(0.0), noise);
            first
        });
        let q_norm = c.qk_norm.then(|| b.add(name("self_attn.q_norm.weight"), &[c.head_dim], ones, noise));
        let k_norm = c.qk_norm.then(|| b.add(name("self_attn.k_norm.weight"), &[c.head_dim], ones, noise));
        let out = normal(&mut b, name("self_attn.o_proj.weight"), &[d, q], residual, noise);
        let norm2 = b.add(name("post_attention_layernorm.weight"), &[d], ones, noise);
        let gate_up = normal(&mut b, name("mlp.gate_proj.weight"), &[f, d], 1.0, noise);
        normal(&mut b, name("mlp.up_proj.weight"), &[f, d], 1.0, noise);
        let down = normal(&mut b, name("mlp.down_proj.weight"), &[d, f], residual, noise);
        layout.blocks.push(BlockLayout { norm1, qkv, qkv_bias, q_norm, k_norm, out, norm2, gate_up, down });
    }
    layout.norm = b.add("model.norm.weight", &[d], ones, noise);
    layout.head =
        if c.tied { layout.embed } else { normal(&mut b, "lm_head.weight".into(), &[c.vocab, d], 1.0, noise) };
    Ok((b.build()?, layout))
}
