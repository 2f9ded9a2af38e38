//! A small transformer decoder as a reinforcement-learning policy: trained from scratch by its own completions, decoded in
//! batches, scored exactly. f32 on the CPU, gradients written by hand.
//!
//! What it is not: a trainer or a task. [`TokenPolicy`] is an [`onpolicy::Policy`]; [`TextCollector`] fills rollouts from
//! any [`rollouts::TextTask`]. Published models are those of Qwen2.5, Qwen3 and Llama without biases
//! or stretched positions, from a folder; nothing is fetched.
//!
//! ```
//! use onpolicy::{Noise, Policy};
//! use token_policy::{Decoder, DecoderConfig, TokenPolicy, Tokens};
//!
//! let decoder = Decoder::new(DecoderConfig::new(12, 16, 2, 4, 2, 32), 1)?;
//! let policy = TokenPolicy { decoder, temperature: 1.0, usable: 12, max_tokens: 8, ends: vec![0] };
//! let prompts = Tokens::new([&[1, 2, 3][..], &[4]]);
//! let drawn = policy.sample(&prompts, &mut Noise::new(1))?;
//! // scoring again repeats what sampling reported
//! let again = policy.log_prob(&prompts, &drawn.trace)?.sum()?.to_vec1::<f32>()?;
//! let first = drawn.log_prob.sum()?.to_vec1::<f32>()?;
//! assert!(again.iter().zip(&first).all(|(a, b)| (a - b).abs() < 1e-4));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! In reading order: [`Tokens`], [`DecoderConfig`], [`Decoder`], [`Decoding`], [`generate`], [`TokenPolicy`],
//! [`TextCollector`], [`Supervised`], [`evaluate`]; [`Codec`] is between text and ids. [`Checkpoint`], [`Tokenizer`] and
//! [`qwen3_prompt`] take published models from a folder; [`Lora`] and [`LoraPolicy`] train adapters on them.

mod block;
mod chat;
mod checkpoint;
mod codec;
mod collect;
mod config;
mod decoder;
mod decoding;
mod draw;
mod ending;
mod engine;
mod evaluate;
mod generator;
mod hf_config;
mod kernels;
mod layout;
mod lora;
mod lora_policy;
mod packed;
mod policy;
mod sampler;
mod spare;
mod supervised;
mod tokenizer;
mod tokens;
mod weights;

pub use chat::{Role, qwen3_prompt, qwen25_prompt};
pub use checkpoint::{Checkpoint, CheckpointError};
pub use codec::{CharCodec, Codec, CodecError};
pub use collect::{CollectError, Collected, Race, Scored, TextCollector, Writing};
pub use config::{DecoderConfig, ShapeError};
pub use decoder::{Decoder, DecoderError};
pub use decoding::Decoding;
pub use ending::Ending;
pub use engine::{Batching, Choice, Completed, EngineConfig, EngineError, Generation, Order, Request, Stats, generate};
pub use evaluate::{Evaluation, evaluate, wilson};
pub use generator::Generator;
pub use lora::{LORA_TARGETS, Lora, LoraConfig, LoraError};
pub use lora_policy::LoraPolicy;
pub use policy::TokenPolicy;
pub use supervised::{Supervised, SupervisedConfig, SupervisedReport};

pub use sampler::{Drawn, Sampling, SamplingError, log_probs, sample};
pub use tokenizer::{Tokenizer, TokenizerError};
pub use tokens::Tokens;
pub use weights::Stored;
