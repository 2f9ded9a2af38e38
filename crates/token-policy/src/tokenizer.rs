//! Published vocabularies: `tokenizer.json`.

use std::path::{Path, PathBuf};

use crate::checkpoint::{Checkpoint, CheckpointError};
use crate::codec::{Codec, CodecError};

/// A vocabulary from a `tokenizer.json`.
///
/// Texts become ids without anything added in front or behind; special tokens that a text spells out become their ids, so
/// a text from outside can hold them. Limits on lengths that the file sets are lifted: nothing is cut or padded.
#[derive(Clone, Debug)]
pub struct Tokenizer {
    inner: tokenizers::Tokenizer,
    ends: Vec<u32>,
    size: usize,
}

impl Tokenizer {
    /// `tokenizer.json` of a folder, end tokens of its `generation_config.json`, else of its `config.json`.
    ///
    /// Errors: [`TokenizerError`], among them that neither names an end token.
    pub fn read(dir: &Path) -> Result<Self, TokenizerError> {
        let ends = Checkpoint::read_ends(dir)?;
        if ends.is_empty() {
            return Err(TokenizerError::NoEnds(dir.to_owned()));
        }
        Self::from_file(&dir.join("tokenizer.json"), ends)
    }

    /// That file, with end tokens of your own.
    ///
    /// Errors: [`TokenizerError`].
    pub fn from_file(path: &Path, ends: Vec<u32>) -> Result<Self, TokenizerError> {
        let unfit = |reason: String| TokenizerError::Unreadable { path: path.to_owned(), reason };
        let bytes = std::fs::read(path).map_err(|e| unfit(e.to_string()))?;
        let mut inner = tokenizers::Tokenizer::from_bytes(bytes).map_err(|e| unfit(e.to_string()))?;
        inner.with_truncation(None).map_err(|e| unfit(e.to_string()))?;
        inner.with_padding(None);
        // ids may have gaps
        let size = inner.get_vocab(true).into_values().max().map_or(0, |id| id as usize + 1);
        match ends.iter().find(|end| **end as usize >= size) {
            Some(end) => Err(TokenizerError::End { path: path.to_owned(), end: *end, size }),
            None => Ok(Tokenizer { inner, ends, size }),
        }
    }

    /// Ids to draw from in a decoder of `rows` ids: those of the tokenizer. Published decoders have more rows than that.
    ///
    /// Errors: [`TokenizerError::Larger`].
    pub fn usable_vocab(&self, rows: usize) -> Result<usize, TokenizerError> {
        if self.size <= rows { Ok(self.size) } else { Err(TokenizerError::Larger { size: self.size, rows }) }
    }

    /// Id of a token by its spelling.
    pub fn id(&self, token: &str) -> Option<u32> {
        self.inner.token_to_id(token)
    }
}

impl Codec for Tokenizer {
    fn size(&self) -> usize {
        self.size
    }

    fn encode(&self, text: &str) -> Result<Vec<u32>, CodecError> {
        let encoding = self.inner.encode(text, false).map_err(|e| CodecError::Tokenizer(e.to_string()))?;
        Ok(encoding.get_ids().to_vec())
    }

    /// Special tokens and ids that the vocabulary lacks give nothing.
    fn decode(&self, ids: &[u32]) -> String {
        let ids: Vec<u32> = ids.iter().copied().filter(|id| !self.ends.contains(id)).collect();
        self.inner.decode(&ids, true).unwrap_or_default()
    }

    fn ends(&self) -> &[u32] {
        &self.ends
    }
}

/// A file that is no vocabulary.
#[derive(Debug, thiserror::Error)]
pub enum TokenizerError {
    /// It cannot be read.
    #[error("{} is not a readable tokenizer: {reason}; fetch it again", path.display())]
    Unreadable {
        /// Which.
        path: PathBuf,
        /// Why.
        reason: String,
    },
    /// An end token that it lacks.
    #[error("{} has ids below {size}; the end token {end} is not one of them: mend eos_token_id", path.display())]
    End {
        /// The file.
        path: PathBuf,
        /// The token.
        end: u32,
        /// Ids there are.
        size: usize,
    },
    /// Ids that the decoder does not have.
    #[error("the tokenizer has {size} ids and the decoder {rows} rows; they are not of the same model")]
    Larger {
        /// Ids there are.
        size: usize,
        /// Rows of the embedding.
        rows: usize,
    },
    /// No end token is known.
    #[error("{}: neither generation_config.json nor config.json has eos_token_id; pass the end tokens", .0.display())]
    NoEnds(PathBuf),
    /// The files that name the end tokens.
    #[error(transparent)]
    Checkpoint(#[from] CheckpointError),
}
