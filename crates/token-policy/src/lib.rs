//! What a token policy does around its network: sampling from logits, the log-probability of what was sampled, and the
//! book-keeping of sequences of different lengths in one batch.
//!
//! Not here yet: the network, its cache, tokenizers and checkpoints, and so no `Policy`.
//!
//! ```
//! use token_policy::{Sampling, sample};
//! let logits = [0.0, 2.0, -1.0];
//! let drawn = sample(&logits, &Sampling { temperature: 0.7, top_k: 0, top_p: 1.0 }, 0.5)?;
//! assert_eq!(drawn.token, 1);
//! assert!(drawn.log_prob < 0.0);
//! # Ok::<(), token_policy::SamplingError>(())
//! ```

mod block;
mod codec;
mod collect;
mod config;
mod decoder;
mod decoding;
mod draw;
mod engine;
mod evaluate;
mod generator;
mod kernels;
mod layout;
mod packed;
mod padding;
mod policy;
mod sampler;
mod supervised;
mod tokens;

pub use codec::{CharCodec, Codec, CodecError};
pub use collect::{CollectError, Collected, Race, TextCollector, Writing};
pub use config::{DecoderConfig, ShapeError};
pub use decoder::{Decoder, DecoderError};
pub use decoding::Decoding;
pub use engine::{Batching, Choice, Completed, EngineConfig, EngineError, Generation, Order, Request, Stats, generate};
pub use evaluate::{Evaluation, evaluate, wilson};
pub use generator::Generator;
pub use policy::TokenPolicy;
pub use supervised::{Supervised, SupervisedConfig, SupervisedReport};

pub use padding::{Ending, LeftPadded, completion};
pub use sampler::{Drawn, Sampling, SamplingError, log_probs, sample};
pub use tokens::Tokens;
