//! A decoder's shape as `config.json` of a published checkpoint says it.

use serde_json::{Map, Value, json};

use crate::checkpoint::CheckpointError;
use crate::config::DecoderConfig;
use crate::weights::Stored;

type Result<T> = std::result::Result<T, CheckpointError>;

/// Families that are read, by their `model_type`.
const QWEN2: &str = "qwen2";
const QWEN3: &str = "qwen3";
const LLAMA: &str = "llama";

/// Errors with a key whose value cannot be used.
fn refuse<T>(key: &str, found: &Value, supported: impl Into<String>) -> Result<T> {
    let found = if found.is_null() { "missing".to_owned() } else { format!("is {found}") };
    Err(CheckpointError::Key { file: "config.json".into(), key: key.into(), found, supported: supported.into() })
}

struct Keys<'a>(&'a Map<String, Value>);

impl<'a> Keys<'a> {
    /// The value of a key; null if there is none.
    fn get(&self, key: &str) -> &'a Value {
        self.0.get(key).unwrap_or(&Value::Null)
    }

    fn size(&self, key: &str, default: Option<usize>) -> Result<usize> {
        match (self.get(key), default) {
            (Value::Null, Some(n)) => Ok(n),
            (value, _) => match value.as_u64().and_then(|n| usize::try_from(n).ok()) {
                Some(n) => Ok(n),
                None => refuse(key, value, "a whole number"),
            },
        }
    }

    fn number(&self, key: &str, default: f64) -> Result<f64> {
        match self.get(key) {
            Value::Null => Ok(default),
            value => value.as_f64().map_or_else(|| refuse(key, value, "a number"), Ok),
        }
    }

    fn flag(&self, key: &str) -> Result<bool> {
        match self.get(key) {
            Value::Null => Ok(false),
            value => value.as_bool().map_or_else(|| refuse(key, value, "true or false"), Ok),
        }
    }

    /// Errors unless the key is absent, null or that value.
    fn only(&self, key: &str, value: Value) -> Result<()> {
        match self.get(key) {
            Value::Null => Ok(()),
            found if *found == value => Ok(()),
            found => refuse(key, found, value.to_string()),
        }
    }
}

/// The shape. Keys that are missing mean what transformers takes them for.
pub(crate) fn shape(config: &Map<String, Value>) -> Result<DecoderConfig> {
    let keys = Keys(config);
    let family = match keys.get("model_type").as_str() {
        Some(family @ (QWEN2 | QWEN3 | LLAMA)) => family,
        _ => return refuse("model_type", keys.get("model_type"), "\"qwen2\", \"qwen3\" and \"llama\""),
    };
    keys.only("hidden_act", json!("silu"))?;
    keys.only("use_sliding_window", json!(false))?;
    keys.only("mlp_bias", json!(false))?;
    if family != QWEN2 {
        keys.only("attention_bias", json!(false))?;
    }
    if !keys.get("quantization_config").is_null() {
        return refuse("quantization_config", keys.get("quantization_config"), "weights in f32, f16 or bf16");
    }
    if let Some(kinds) = keys.get("layer_types").as_array()
        && let Some(kind) = kinds.iter().find(|k| **k != json!("full_attention"))
    {
        return refuse("layer_types", &json!([kind]), "\"full_attention\" in all layers");
    }
    for key in ["rope_scaling", "rope_parameters"] {
        plain_rope(key, keys.get(key))?;
    }
    keys.only("partial_rotary_factor", json!(1.0))?;
    let theta = match config.get("rope_parameters").and_then(Value::as_object) {
        Some(rope) if rope.get("rope_theta").is_some_and(|t| !t.is_null()) => {
            Keys(rope).number("rope_theta", 10_000.0)?
        }
        _ => keys.number("rope_theta", 10_000.0)?,
    };
    let (hidden, heads) = (keys.size("hidden_size", None)?, keys.size("num_attention_heads", None)?);
    let head_dim = match family {
        QWEN3 => 128,
        _ => hidden / heads.max(1),
    };
    let shape = DecoderConfig {
        vocab: keys.size("vocab_size", None)?,
        hidden,
        layers: keys.size("num_hidden_layers", None)?,
        heads,
        kv_heads: keys.size("num_key_value_heads", Some(heads))?,
        head_dim: keys.size("head_dim", Some(head_dim))?,
        ffn: keys.size("intermediate_size", None)?,
        rope_theta: theta,
        norm_eps: keys.number("rms_norm_eps", 1e-6)?,
        tied: keys.flag("tie_word_embeddings")?,
        qkv_bias: family == QWEN2,
        qk_norm: family == QWEN3,
    };
    shape.check()?;
    Ok(shape)
}

/// Errors if rotary positions are stretched.
fn plain_rope(key: &str, value: &Value) -> Result<()> {
    let supported = "no scaling: null, or a `rope_type` of \"default\"";
    let rope = match value {
        Value::Null => return Ok(()),
        Value::Object(rope) => rope,
        _ => return refuse(key, value, supported),
    };
    for kind in ["rope_type", "type"] {
        if rope.get(kind).is_some_and(|k| !k.is_null() && *k != json!("default")) {
            return refuse(key, value, supported);
        }
    }
    match rope.get("partial_rotary_factor") {
        Some(part) if !part.is_null() && part.as_f64() != Some(1.0) => {
            refuse(&format!("{key}.partial_rotary_factor"), part, "1")
        }
        _ => Ok(()),
    }
}

/// The family whose checkpoints have that shape.
fn family(c: &DecoderConfig) -> Result<(&'static str, &'static str)> {
    let unfit = |reason: String| Err(CheckpointError::NoFamily(reason));
    match (c.qkv_bias, c.qk_norm) {
        (true, true) => unfit("no family has both qkv_bias and qk_norm; switch one of them off".into()),
        (true, false) => Ok((QWEN2, "Qwen2ForCausalLM")),
        (false, true) => Ok((QWEN3, "Qwen3ForCausalLM")),
        (false, false) if !c.hidden.is_multiple_of(c.heads) => {
            unfit(format!("llama wants hidden, {}, to be a multiple of heads, {}", c.hidden, c.heads))
        }
        (false, false) => Ok((LLAMA, "LlamaForCausalLM")),
    }
}

/// `known` with the keys of that shape; all others stay.
pub(crate) fn describe(
    known: &Map<String, Value>,
    c: &DecoderConfig,
    ends: &[u32],
    width: Stored,
) -> Result<Map<String, Value>> {
    let (family, class) = family(c)?;
    let mut config = known.clone();
    if config.get("model_type").and_then(Value::as_str) != Some(family) {
        config.insert("architectures".into(), json!([class]));
        config.insert("model_type".into(), json!(family));
    }
    for (key, value) in [
        ("vocab_size", c.vocab),
        ("hidden_size", c.hidden),
        ("intermediate_size", c.ffn),
        ("num_hidden_layers", c.layers),
        ("num_attention_heads", c.heads),
        ("num_key_value_heads", c.kv_heads),
    ] {
        config.insert(key.into(), json!(value));
    }
    if family == QWEN3 || config.contains_key("head_dim") || c.head_dim * c.heads != c.hidden {
        config.insert("head_dim".into(), json!(c.head_dim));
    }
    config.insert("rms_norm_eps".into(), json!(c.norm_eps));
    config.insert("tie_word_embeddings".into(), json!(c.tied));
    let nested = config.get_mut("rope_parameters").and_then(Value::as_object_mut);
    match nested {
        Some(rope) => rope.insert("rope_theta".into(), json!(c.rope_theta)),
        None => config.insert("rope_theta".into(), json!(c.rope_theta)),
    };
    if known.is_empty() {
        config.insert("hidden_act".into(), json!("silu"));
        config.insert("max_position_embeddings".into(), json!(32_768));
        config.insert("bos_token_id".into(), Value::Null);
        config.insert("eos_token_id".into(), stops(ends));
        if family != QWEN2 {
            config.insert("attention_bias".into(), json!(false));
        }
    }
    // loaders convert to what this says
    let kind = if config.contains_key("torch_dtype") { "torch_dtype" } else { "dtype" };
    let width = match width {
        Stored::F32 => "float32",
        Stored::Bf16 => "bfloat16",
    };
    config.insert(kind.into(), json!(width));
    Ok(config)
}

/// End tokens as these files write them: null, a number, or a list.
pub(crate) fn stops(ends: &[u32]) -> Value {
    match ends {
        [] => Value::Null,
        [end] => json!(end),
        _ => json!(ends),
    }
}

/// End tokens of `generation_config.json`, or where it names none of `config.json`; sorted by first appearance.
pub(crate) fn ends(generation: &Map<String, Value>, config: &Map<String, Value>) -> Result<Vec<u32>> {
    for (file, from) in [("generation_config.json", generation), ("config.json", config)] {
        let found = from.get("eos_token_id").unwrap_or(&Value::Null);
        let list = match found {
            Value::Null => continue,
            Value::Array(list) => list.as_slice(),
            one => std::slice::from_ref(one),
        };
        let mut ends = Vec::new();
        for value in list {
            let Some(id) = value.as_u64().and_then(|id| u32::try_from(id).ok()) else {
                return Err(CheckpointError::Key {
                    file: file.into(),
                    key: "eos_token_id".into(),
                    found: format!("is {found}"),
                    supported: "a token id or a list of them".into(),
                });
            };
            if !ends.contains(&id) {
                ends.push(id);
            }
        }
        return Ok(ends);
    }
    Ok(Vec::new())
}
