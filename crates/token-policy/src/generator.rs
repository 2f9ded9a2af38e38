//! What the rollout engine needs of a model: a cache of slots, each holding one sequence.

use candle_core::Result;

/// A model that writes sequences token by token. A slot is a place for one sequence and its attention cache.
///
/// Rows are independent: the logits of a slot depend on its own tokens, not on which other slots are stepped with it,
/// so that every way of batching draws the same sequences.
pub trait Generator {
    /// Logits per token, V.
    fn vocab(&self) -> usize;

    /// Slots there are.
    fn slots(&self) -> usize;

    /// Most tokens a slot can hold, prompt included.
    fn capacity(&self) -> usize;

    /// Empties slot `slot` and reads a prompt into it. `logits`: `[V]` of the token that comes next.
    ///
    /// Panics on an empty prompt, one longer than the capacity, or no such slot.
    fn prefill(&mut self, slot: usize, prompt: &[u32], logits: &mut [f32]) -> Result<()>;

    /// Makes slot `to` equal to slot `from`, as for the members of a group, which share their prompt.
    fn fork(&mut self, from: usize, to: usize) -> Result<()>;

    /// Appends `tokens[i]` to slot `slots[i]`; `logits`: `[slots.len() * V]` of the tokens that come next.
    ///
    /// Panics if a slot is full or named twice.
    fn step(&mut self, slots: &[usize], tokens: &[u32], logits: &mut [f32]) -> Result<()>;
}
