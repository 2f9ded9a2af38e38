//! Decoders in the folders that Qwen2.5, Qwen3 and unbiased Llama models are published in.
//!
//! ```text
//! config.json               shape
//! generation_config.json    end tokens
//! model.safetensors         weights; or model.safetensors.index.json and the files it names
//! tokenizer.json            see [`Tokenizer`](crate::Tokenizer)
//! ```

use std::path::{Path, PathBuf};

use serde_json::{Map, Value};

use crate::config::ShapeError;
use crate::decoder::{Decoder, DecoderError};
use crate::hf_config::{describe, ends, shape, stops};
use crate::layout::Plan;
use crate::weights::{MODEL, Stored, Weights, bytes, object, write, write_object, write_params};

const CONFIG: &str = "config.json";
const GENERATION: &str = "generation_config.json";
const TOKENIZER: &str = "tokenizer.json";
/// What lies next to a tokenizer and belongs to it.
const COMPANIONS: [&str; 2] = ["tokenizer_config.json", "chat_template.jinja"];
/// Tensors of a block, at least.
const PER_LAYER: usize = 9;

/// A decoder and what its folder says about it.
#[derive(Clone, Debug)]
pub struct Checkpoint {
    /// The network.
    pub decoder: Decoder,
    /// Every token that ends a completion.
    pub ends: Vec<u32>,
    /// `config.json` as it was read; empty for a decoder made from scratch.
    pub config: Map<String, Value>,
    /// `generation_config.json` as it was read; empty if there was none.
    pub generation: Map<String, Value>,
    /// Its `tokenizer.json`.
    pub tokenizer: Option<PathBuf>,
}

impl Checkpoint {
    /// For a decoder made from scratch.
    pub fn new(decoder: Decoder, ends: Vec<u32>) -> Self {
        Checkpoint { decoder, ends, config: Map::new(), generation: Map::new(), tokenizer: None }
    }

    /// Reads a folder. Weights in f32, f16 or bf16 become f32, exactly.
    ///
    /// `config.json` must have `model_type` qwen2, qwen3 or llama; positions are rotated without scaling, attention is
    /// full, the activation is silu. Keys that are missing mean what transformers takes them for.
    ///
    /// Errors: [`CheckpointError`].
    pub fn read(dir: &Path) -> Result<Self, CheckpointError> {
        let config = object(&dir.join(CONFIG))?;
        let shape = shape(&config)?;
        let generation = if dir.join(GENERATION).exists() { object(&dir.join(GENERATION))? } else { Map::new() };
        let ends = ends(&generation, &config)?;
        if let Some(end) = ends.iter().find(|end| **end as usize >= shape.vocab) {
            return Err(CheckpointError::End { end: *end, vocab: shape.vocab });
        }
        let weights = Weights::folder(dir)?;
        // before a layout of that many layers is made
        if shape.layers > weights.len() / PER_LAYER {
            let (layers, tensors) = (shape.layers, weights.len());
            return Err(CheckpointError::Layers { place: dir.to_owned(), layers, tensors });
        }
        let plan = Plan::new(&shape);
        weights.check(plan.parts.iter().map(|(name, shape, _)| (name.as_str(), shape.as_slice())), |name| {
            (shape.tied && name == "lm_head.weight") || name.ends_with(".rotary_emb.inv_freq")
        })?;
        if shape.tied
            && weights.contains("lm_head.weight")
            && !weights.equal("lm_head.weight", "model.embed_tokens.weight")?
        {
            return Err(CheckpointError::Untied(dir.to_owned()));
        }
        let decoder = Decoder::zero(shape)?;
        weights.fill(decoder.params(), str::to_owned)?;
        let tokenizer = Some(dir.join(TOKENIZER)).filter(|path| path.exists());
        Ok(Checkpoint { decoder, ends, config, generation, tokenizer })
    }

    /// [`Checkpoint::write_as`] with weights in f32: reading gives equal bits.
    pub fn write(&self, dir: &Path) -> Result<(), CheckpointError> {
        self.write_as(dir, Stored::F32)
    }

    /// Writes a folder that [`Checkpoint::read`] and transformers read, weights in one file. Keys of the read
    /// `config.json` and `generation_config.json` that this crate does not know stay; the tokenizer is copied.
    ///
    /// A shape without biases and norms per head is written as llama.
    ///
    /// Errors: no family of models has that shape, or a file cannot be written; weights come last.
    pub fn write_as(&self, dir: &Path, width: Stored) -> Result<(), CheckpointError> {
        let config = describe(&self.config, self.decoder.config(), &self.ends, width)?;
        let mut generation = self.generation.clone();
        generation.insert("eos_token_id".into(), stops(&self.ends));
        std::fs::create_dir_all(dir).map_err(|reason| CheckpointError::Io { path: dir.to_owned(), reason })?;
        if let Some(from) = &self.tokenizer {
            write(&dir.join(TOKENIZER), &bytes(from)?)?;
            for name in COMPANIONS {
                let companion = from.with_file_name(name);
                if companion.exists() {
                    write(&dir.join(name), &bytes(&companion)?)?;
                }
            }
        }
        write_object(&dir.join(GENERATION), &generation)?;
        write_object(&dir.join(CONFIG), &config)?;
        write_params(&dir.join(MODEL), self.decoder.params(), width, str::to_owned)
    }

    /// End tokens of a folder: `eos_token_id` of `generation_config.json`, else of `config.json`; empty if neither has it.
    pub fn read_ends(dir: &Path) -> Result<Vec<u32>, CheckpointError> {
        let read = |name: &str| {
            let path = dir.join(name);
            if path.exists() { object(&path) } else { Ok(Map::new()) }
        };
        ends(&read(GENERATION)?, &read(CONFIG)?)
    }
}

/// A folder that is no checkpoint of this kind.
#[derive(Debug, thiserror::Error)]
pub enum CheckpointError {
    /// A file cannot be read or written.
    #[error("{}: {reason}", path.display())]
    Io {
        /// Which.
        path: PathBuf,
        /// Why.
        reason: std::io::Error,
    },
    /// A file is not the JSON object it should be.
    #[error("{} is not the object it should be: {reason}; fetch it again", path.display())]
    Json {
        /// Which.
        path: PathBuf,
        /// Why.
        reason: String,
    },
    /// A key has a value that is not supported.
    #[error("{file}: {key} {found}; supported: {supported}")]
    Key {
        /// In which file.
        file: String,
        /// Which.
        key: String,
        /// What it has.
        found: String,
        /// What would do.
        supported: String,
    },
    /// The sizes make no decoder.
    #[error("config.json: {0}")]
    Shape(#[from] ShapeError),
    /// An end token that the network cannot write.
    #[error("end token {end} is beyond vocab_size {vocab}; mend eos_token_id")]
    End {
        /// Which.
        end: u32,
        /// Rows of the embedding.
        vocab: usize,
    },
    /// No weights.
    #[error(
        "{} has neither model.safetensors nor model.safetensors.index.json; other formats have to be converted",
        .0.display()
    )]
    NoWeights(PathBuf),
    /// The index names a file elsewhere.
    #[error("{} names the file {shard:?}; it may only name files of its own folder", index.display())]
    Outside {
        /// The index.
        index: PathBuf,
        /// What it names.
        shard: String,
    },
    /// A file that the index names is not there.
    #[error("{} names {shard} (for {tensor}), which is not in the folder; fetch that file", index.display())]
    NoShard {
        /// The index.
        index: PathBuf,
        /// The file.
        shard: String,
        /// A tensor that it should hold.
        tensor: String,
    },
    /// A file of weights is cut or not safetensors.
    #[error("{} is cut or no safetensors file ({reason}); fetch it again", path.display())]
    Damaged {
        /// Which.
        path: PathBuf,
        /// Why.
        reason: String,
    },
    /// Fewer tensors than the layers need.
    #[error("{}: num_hidden_layers is {layers}, and there are {tensors} tensors; a layer has at least 9", place.display())]
    Layers {
        /// The folder.
        place: PathBuf,
        /// Layers of the shape.
        layers: usize,
        /// Tensors of the files.
        tensors: usize,
    },
    /// Tensors that the shape has and the files do not.
    #[error("{} lacks {count} tensors: {names}; does config.json belong to these weights?", place.display())]
    Missing {
        /// The folder.
        place: PathBuf,
        /// How many.
        count: usize,
        /// The first of them.
        names: String,
    },
    /// Tensors that the files have and the shape does not.
    #[error("{} has {count} tensors too many: {names}; does config.json belong to these weights?", place.display())]
    Unexpected {
        /// The folder.
        place: PathBuf,
        /// How many.
        count: usize,
        /// The first of them.
        names: String,
    },
    /// A tensor of another shape.
    #[error("{}: {tensor} has shape {found:?}; config.json makes it {expected:?}", file.display())]
    TensorShape {
        /// In which file.
        file: PathBuf,
        /// Which.
        tensor: String,
        /// By the configuration.
        expected: Vec<usize>,
        /// In the file.
        found: Vec<usize>,
    },
    /// A tensor of another type.
    #[error("{}: {tensor} has type {found}; supported: F32, F16, BF16", file.display())]
    TensorType {
        /// In which file.
        file: PathBuf,
        /// Which.
        tensor: String,
        /// In the file.
        found: String,
    },
    /// The output matrix should be the embedding and is another.
    #[error("{}: tie_word_embeddings is true, and lm_head.weight differs from the embedding; set it to false", .0.display())]
    Untied(PathBuf),
    /// No family of models has that shape.
    #[error("this decoder has no published form: {0}")]
    NoFamily(String),
    /// The tensors.
    #[error(transparent)]
    Tensor(#[from] candle_core::Error),
}

impl From<DecoderError> for CheckpointError {
    fn from(e: DecoderError) -> Self {
        match e {
            DecoderError::Shape(e) => CheckpointError::Shape(e),
            DecoderError::Tensor(e) => CheckpointError::Tensor(e),
        }
    }
}
