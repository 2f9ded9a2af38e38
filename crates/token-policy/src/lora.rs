//! Low-rank adapters: a few numbers that are learned next to many that are not.

use std::path::Path;
use std::sync::Arc;

use candle_core::{CpuStorage, CustomOp1, Device, Layout, Result, Shape, Tensor};
use onpolicy::matmul::{View, matmul};
use onpolicy::params::{Init, Params, ParamsBuilder, cpu_result, cpu_slice, with_slice};
use onpolicy::{Bundle, BundleError, Noise, Persist};
use rayon::prelude::*;
use serde_json::{Map, Value, json};

use crate::checkpoint::CheckpointError;
use crate::decoder::Decoder;
use crate::weights::{Stored, Weights, object, write_object, write_params};

/// Matrices that can have an adapter, by their last name, in storage order.
pub const LORA_TARGETS: [&str; 7] = ["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"];

const CONFIG: &str = "adapter_config.json";
const MODEL: &str = "adapter_model.safetensors";
/// What PEFT puts before a part's name.
const PREFIX: &str = "base_model.model.";

/// Settings of [`Lora`].
#[derive(Clone, Debug, PartialEq)]
pub struct LoraConfig {
    /// Rank of every change, r.
    pub rank: usize,
    /// Changes are multiplied by α/r.
    pub alpha: f64,
    /// Matrices with an adapter in every layer; among [`LORA_TARGETS`].
    pub targets: Vec<String>,
}

/// A decoder whose weights are frozen, plus adapters.
///
/// ```text
/// W_eff = W + (α/r)·B·A,   A: [r, in] uniform in ±1/√in, B: [out, r] from 0
/// ```
#[derive(Clone, Debug)]
pub struct Lora {
    base: Decoder,
    adapters: Params,
    config: LoraConfig,
    pairs: Arc<[Pair]>,
}

/// One matrix and where its adapter lies.
#[derive(Clone, Copy, Debug)]
struct Pair {
    input: usize,
    output: usize,
    /// In the base.
    w: usize,
    /// In the adapters.
    a: usize,
    b: usize,
}

impl Lora {
    /// Fresh adapters: the sum equals the base, bit for bit.
    ///
    /// Errors: rank, α or a target is out of range, or memory.
    pub fn new(base: Decoder, config: LoraConfig, seed: u64) -> std::result::Result<Self, LoraError> {
        config.check(&base)?;
        let noise = &mut Noise::named(seed, "adapters");
        let (mut builder, mut pairs) = (ParamsBuilder::default(), Vec::new());
        for part in base.params().parts() {
            let Some(stem) = part.name.strip_suffix(".weight") else { continue };
            let last = stem.rsplit('.').next().unwrap_or_default();
            if !config.targets.iter().any(|t| t == last) {
                continue;
            }
            let (output, input, r) = (part.shape[0], part.shape[1], config.rank);
            let uniform = Init::Uniform { fan_in: input, factor: 1.0 };
            let a = builder.add(format!("{stem}.lora_A.weight"), &[r, input], uniform, noise);
            let b = builder.add(format!("{stem}.lora_B.weight"), &[output, r], Init::Constant(0.0), noise);
            pairs.push(Pair { input, output, w: part.offset, a, b });
        }
        Ok(Lora { base, adapters: builder.build()?, config, pairs: pairs.into() })
    }

    /// The frozen decoder.
    pub fn base(&self) -> &Decoder {
        &self.base
    }

    /// What is learned; parts are named `model.layers.{i}.self_attn.q_proj.lora_A.weight`.
    pub fn params(&self) -> &Params {
        &self.adapters
    }

    /// Its settings.
    pub fn config(&self) -> &LoraConfig {
        &self.config
    }

    /// All weights with the changes added, `[len]`; differentiable in the adapters.
    pub fn weights(&self) -> Result<Tensor> {
        let base = self.base.params().clone();
        let scale = (self.config.alpha / self.config.rank as f64) as f32;
        let merge = Merge { base, pairs: self.pairs.clone(), rank: self.config.rank, scale };
        self.adapters.var().as_tensor().apply_op1(merge)
    }

    /// A decoder of its own with the changes added.
    pub fn merged(&self) -> Result<Decoder> {
        let merged = self.base.snapshot()?;
        let weights = self.weights()?.detach();
        with_slice(&weights, |values| merged.params().write(values))??;
        Ok(merged)
    }

    /// A copy that no later update of the adapters reaches; it shares the base.
    pub fn snapshot(&self) -> Result<Lora> {
        Ok(Lora { adapters: self.adapters.snapshot()?, ..self.clone() })
    }

    /// Writes `adapter_config.json` and `adapter_model.safetensors` as PEFT reads them.
    ///
    /// Errors: a file cannot be written.
    pub fn write(&self, dir: &Path) -> std::result::Result<(), LoraError> {
        std::fs::create_dir_all(dir).map_err(|reason| CheckpointError::Io { path: dir.to_owned(), reason })?;
        let config = json!({
            "peft_type": "LORA",
            "task_type": "CAUSAL_LM",
            "base_model_name_or_path": null,
            "r": self.config.rank,
            "lora_alpha": self.config.alpha,
            "target_modules": self.config.targets,
            "lora_dropout": 0.0,
            "bias": "none",
            "fan_in_fan_out": false,
            "use_rslora": false,
            "use_dora": false,
            "modules_to_save": null,
            "inference_mode": true,
        });
        let config = config.as_object().cloned().unwrap_or_default();
        write_object(&dir.join(CONFIG), &config)?;
        Ok(write_params(&dir.join(MODEL), &self.adapters, Stored::F32, |name| format!("{PREFIX}{name}"))?)
    }

    /// Reads what [`Lora::write`] or PEFT wrote for that base.
    ///
    /// Errors: a setting that changes the sum and is not supported, or tensors that do not fit the base.
    pub fn read(base: Decoder, dir: &Path) -> std::result::Result<Self, LoraError> {
        let config = LoraConfig::parse(&object(&dir.join(CONFIG))?)?;
        let lora = Lora::new(base, config, 0)?;
        let weights = Weights::single(dir.join(MODEL))?;
        let names: Vec<String> = lora.adapters.parts().iter().map(|p| format!("{PREFIX}{}", p.name)).collect();
        let shapes = lora.adapters.parts().iter().map(|p| p.shape.as_slice());
        weights.check(names.iter().map(String::as_str).zip(shapes), |_| false)?;
        weights.fill(&lora.adapters, |name| format!("{PREFIX}{name}"))?;
        Ok(lora)
    }
}

impl LoraConfig {
    fn check(&self, base: &Decoder) -> std::result::Result<(), LoraError> {
        let c = base.config();
        let most = c.hidden.min(c.kv_dim()).min(c.ffn);
        if !(1..=most).contains(&self.rank) {
            return Err(LoraError::Rank { rank: self.rank, most });
        }
        if !(self.alpha.is_finite() && self.alpha > 0.0) {
            return Err(LoraError::Alpha(self.alpha));
        }
        if self.targets.is_empty() {
            return Err(LoraError::NoTargets);
        }
        match self.targets.iter().find(|t| !LORA_TARGETS.contains(&t.as_str())) {
            Some(target) => Err(LoraError::Target(target.clone())),
            None => Ok(()),
        }
    }

    fn parse(config: &Map<String, Value>) -> std::result::Result<Self, LoraError> {
        let get = |key: &str| config.get(key).unwrap_or(&Value::Null);
        let refuse = |key: &str, supported: &str| {
            let found = if get(key).is_null() { "missing".to_owned() } else { format!("is {}", get(key)) };
            let (file, key, supported) = (CONFIG.to_owned(), key.to_owned(), supported.to_owned());
            CheckpointError::Key { file, key, found, supported }
        };
        if get("peft_type") != "LORA" {
            return Err(refuse("peft_type", "\"LORA\"").into());
        }
        for (key, only) in [
            ("bias", json!("none")),
            ("fan_in_fan_out", json!(false)),
            ("use_rslora", json!(false)),
            ("use_dora", json!(false)),
            ("modules_to_save", json!([])),
            ("layers_to_transform", json!([])),
            ("rank_pattern", json!({})),
            ("alpha_pattern", json!({})),
            ("lora_bias", json!(false)),
            ("use_qalora", json!(false)),
            ("use_bdlora", json!(false)),
            ("exclude_modules", json!([])),
            ("layer_replication", json!([])),
            ("target_parameters", json!([])),
            ("trainable_token_indices", json!([])),
            ("alora_invocation_tokens", json!([])),
        ] {
            if !get(key).is_null() && *get(key) != only {
                return Err(refuse(key, &only.to_string()).into());
            }
        }
        let rank = get("r").as_u64().and_then(|r| usize::try_from(r).ok());
        let Some(rank) = rank else { return Err(refuse("r", "a whole number").into()) };
        let Some(alpha) = get("lora_alpha").as_f64() else { return Err(refuse("lora_alpha", "a number").into()) };
        let targets = match get("target_modules") {
            Value::String(all) if all == "all-linear" => LORA_TARGETS.map(String::from).to_vec(),
            Value::Array(list) if list.iter().all(Value::is_string) => {
                list.iter().filter_map(Value::as_str).map(String::from).collect()
            }
            _ => return Err(refuse("target_modules", "a list of names, or \"all-linear\"").into()),
        };
        Ok(LoraConfig { rank, alpha, targets })
    }
}

impl Persist for Lora {
    /// The adapters; the base is the user's to keep.
    fn save(&self, prefix: &str, to: &mut Bundle) {
        self.adapters.save(prefix, to);
    }
    fn load(&mut self, prefix: &str, from: &Bundle) -> std::result::Result<(), BundleError> {
        self.adapters.load(prefix, from)
    }
}

/// What makes no adapters.
#[derive(Debug, thiserror::Error)]
pub enum LoraError {
    /// The rank.
    #[error("rank is {rank}; it must be between 1 and {most}, the smallest side of the base's matrices")]
    Rank {
        /// What it is.
        rank: usize,
        /// The largest that makes sense.
        most: usize,
    },
    /// α.
    #[error("alpha is {0}; it must be above 0")]
    Alpha(f64),
    /// An empty list.
    #[error("there are no targets; use some of {}", LORA_TARGETS.join(", "))]
    NoTargets,
    /// A name that is no matrix.
    #[error("target {0:?} is no matrix of the decoder; use some of {names}", names = LORA_TARGETS.join(", "))]
    Target(String),
    /// The files.
    #[error(transparent)]
    Files(#[from] CheckpointError),
    /// The tensors.
    #[error(transparent)]
    Tensor(#[from] candle_core::Error),
}

/// Adapters to weights.
struct Merge {
    base: Params,
    pairs: Arc<[Pair]>,
    rank: usize,
    scale: f32,
}

impl CustomOp1 for Merge {
    fn name(&self) -> &'static str {
        "lora-merge"
    }

    fn cpu_fwd(&self, storage: &CpuStorage, layout: &Layout) -> Result<(CpuStorage, Shape)> {
        let (adapters, r) = (cpu_slice(storage, layout)?, self.rank);
        let mut weights = self.base.to_vec()?;
        let (mut pieces, mut rest, mut at) = (Vec::with_capacity(self.pairs.len()), &mut weights[..], 0);
        for p in self.pairs.iter() {
            let (piece, tail) = rest.split_at_mut(p.w - at + p.output * p.input);
            pieces.push((p, &mut piece[p.w - at..]));
            (rest, at) = (tail, p.w + p.output * p.input);
        }
        pieces.into_par_iter().for_each(|(p, w)| {
            let b: Vec<f32> = adapters[p.b..p.b + p.output * r].iter().map(|x| self.scale * x).collect();
            // nothing to add: not even to the sign of a zero
            if b.iter().any(|x| *x != 0.0) {
                let a = &adapters[p.a..p.a + r * p.input];
                matmul(p.output, p.input, r, w, View::rows(p.input), true, &b, View::rows(r), a, View::rows(p.input));
            }
        });
        let n = weights.len();
        cpu_result(weights, n)
    }

    /// `dA = (α/r)·Bᵀ·dW`, `dB = (α/r)·dW·Aᵀ`.
    fn bwd(&self, arg: &Tensor, _res: &Tensor, grad_res: &Tensor) -> Result<Option<Tensor>> {
        let (arg, grad_res, r) = (arg.contiguous()?, grad_res.contiguous()?, self.rank);
        let grad = with_slice(&arg, |adapters| {
            with_slice(&grad_res, |dw| {
                // a pair's two parts lie next to each other
                let (mut grad, mut pieces) = (vec![0.0; adapters.len()], Vec::with_capacity(self.pairs.len()));
                let mut rest = &mut grad[..];
                for p in self.pairs.iter() {
                    let (da, tail) = rest.split_at_mut(r * p.input);
                    let (db, tail) = tail.split_at_mut(p.output * r);
                    pieces.push((p, da, db));
                    rest = tail;
                }
                pieces.into_par_iter().for_each(|(p, da, db)| {
                    let a = &adapters[p.a..p.a + r * p.input];
                    let b = &adapters[p.b..p.b + p.output * r];
                    let dw = &dw[p.w..p.w + p.output * p.input];
                    let (input, output) = (View::rows(p.input), p.output);
                    matmul(r, p.input, output, da, input, false, b, View::transposed(r), dw, input);
                    matmul(output, r, p.input, db, View::rows(r), false, dw, input, a, View::transposed(p.input));
                    da.iter_mut().chain(db).for_each(|g| *g *= self.scale);
                });
                grad
            })
        })??;
        let n = grad.len();
        Ok(Some(Tensor::from_vec(grad, n, &Device::Cpu)?))
    }
}
