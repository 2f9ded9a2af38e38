//! Between text and token ids.

use std::collections::HashMap;

/// A vocabulary.
pub trait Codec {
    /// Ids there are: 0..size.
    fn size(&self) -> usize;
    /// Ids of a text. Errors: a character or piece that the vocabulary lacks.
    fn encode(&self, text: &str) -> Result<Vec<u32>, CodecError>;
    /// Text of ids; end tokens give nothing.
    fn decode(&self, ids: &[u32]) -> String;
    /// Every token that ends a completion. Models have several; with one unknown, every completion looks truncated.
    fn ends(&self) -> &[u32];
}

/// A text that a vocabulary cannot hold.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CodecError {
    /// A character without an id.
    #[error("the vocabulary has no character {character:?} (character {at} of the text); use those of {alphabet:?}")]
    Character {
        /// Which.
        character: char,
        /// Its place, counted from 1.
        at: usize,
        /// What there is.
        alphabet: String,
    },
    /// The tokenizer refused.
    #[error("the tokenizer cannot encode the text: {0}")]
    Tokenizer(String),
}

/// One id per character of an alphabet, from 1; id 0 ends a completion.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CharCodec {
    alphabet: Vec<char>,
    ids: HashMap<char, u32>,
}

impl CharCodec {
    /// Characters in the order of their ids; repeated ones count once.
    pub fn new(alphabet: &str) -> Self {
        let mut codec = CharCodec { alphabet: Vec::new(), ids: HashMap::new() };
        for c in alphabet.chars() {
            if !codec.ids.contains_key(&c) {
                codec.alphabet.push(c);
                codec.ids.insert(c, codec.alphabet.len() as u32);
            }
        }
        codec
    }
}

impl Codec for CharCodec {
    fn size(&self) -> usize {
        self.alphabet.len() + 1
    }

    fn encode(&self, text: &str) -> Result<Vec<u32>, CodecError> {
        let id = |(i, c): (usize, char)| {
            self.ids.get(&c).copied().ok_or_else(|| CodecError::Character {
                character: c,
                at: i + 1,
                alphabet: self.alphabet.iter().collect(),
            })
        };
        text.chars().enumerate().map(id).collect()
    }

    fn decode(&self, ids: &[u32]) -> String {
        ids.iter().filter_map(|id| self.alphabet.get((*id as usize).checked_sub(1)?)).collect()
    }

    fn ends(&self) -> &[u32] {
        &[0]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_survive_their_ids_and_foreign_characters_are_named() {
        let codec = CharCodec::new("abca ");
        assert_eq!(codec.size(), 5);
        assert_eq!(codec.encode("a cab").unwrap(), [1, 4, 3, 1, 2]);
        assert_eq!(codec.decode(&[1, 4, 3, 1, 2, 0, 99]), "a cab");
        let error = codec.encode("ab!").unwrap_err().to_string();
        assert!(error.contains("'!'") && error.contains("character 3"), "{error}");
    }
}
