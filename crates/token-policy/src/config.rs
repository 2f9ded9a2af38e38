//! The shape of a decoder.

/// Sizes and kinds of a decoder-only transformer: RMSNorm, rotary positions, grouped queries, SwiGLU. Covers Qwen2.5
/// (`qkv_bias`) and Qwen3 (`qk_norm`, a head size of its own).
#[derive(Clone, Debug, PartialEq)]
pub struct DecoderConfig {
    /// Rows of the embedding, V. May exceed the tokenizer's ids.
    pub vocab: usize,
    /// Width of the residual stream, d.
    pub hidden: usize,
    /// Blocks.
    pub layers: usize,
    /// Query heads, H.
    pub heads: usize,
    /// Key and value heads, K; divides H.
    pub kv_heads: usize,
    /// Width of a head, even.
    pub head_dim: usize,
    /// Width of the feed-forward part.
    pub ffn: usize,
    /// Base of the rotary frequencies.
    pub rope_theta: f64,
    /// Added to the mean square in every norm.
    pub norm_eps: f64,
    /// The output matrix is the embedding.
    pub tied: bool,
    /// Queries, keys and values have a bias.
    pub qkv_bias: bool,
    /// Queries and keys are normalised per head before rotation.
    pub qk_norm: bool,
}

/// A shape that makes no decoder.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("{field} is {value}; it must be {expected}")]
pub struct ShapeError {
    /// Which field.
    pub field: &'static str,
    /// Its value.
    pub value: String,
    /// What would do.
    pub expected: String,
}

impl DecoderConfig {
    /// A shape for models trained from scratch: heads of equal size, tied output, no biases. Check it with
    /// [`DecoderConfig::check`].
    pub fn new(vocab: usize, hidden: usize, layers: usize, heads: usize, kv_heads: usize, ffn: usize) -> Self {
        DecoderConfig {
            vocab,
            hidden,
            layers,
            heads,
            kv_heads,
            head_dim: hidden / heads.max(1),
            ffn,
            rope_theta: 10_000.0,
            norm_eps: 1e-6,
            tied: true,
            qkv_bias: false,
            qk_norm: false,
        }
    }

    /// Errors with the first field out of range.
    pub fn check(&self) -> Result<(), ShapeError> {
        let wrong = |field, value: String, expected: &str| Err(ShapeError { field, value, expected: expected.into() });
        for (field, n) in [
            ("vocab", self.vocab),
            ("hidden", self.hidden),
            ("layers", self.layers),
            ("heads", self.heads),
            ("kv_heads", self.kv_heads),
            ("head_dim", self.head_dim),
            ("ffn", self.ffn),
        ] {
            if !(1..=1 << 20).contains(&n) {
                return wrong(field, n.to_string(), "between 1 and 1048576");
            }
        }
        if !self.heads.is_multiple_of(self.kv_heads) {
            return wrong("kv_heads", self.kv_heads.to_string(), &format!("a divisor of heads, {}", self.heads));
        }
        if !self.head_dim.is_multiple_of(2) {
            return wrong("head_dim", self.head_dim.to_string(), "even: rotary positions turn pairs");
        }
        if !(self.rope_theta.is_finite() && self.rope_theta > 1.0) {
            return wrong("rope_theta", self.rope_theta.to_string(), "above 1");
        }
        if !(self.norm_eps.is_finite() && self.norm_eps > 0.0) {
            return wrong("norm_eps", self.norm_eps.to_string(), "above 0");
        }
        Ok(())
    }

    /// Width of all query heads together.
    pub fn query_dim(&self) -> usize {
        self.heads * self.head_dim
    }

    /// Width of all key heads together, and of all value heads.
    pub fn kv_dim(&self) -> usize {
        self.kv_heads * self.head_dim
    }
}
