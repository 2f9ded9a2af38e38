//! Text tasks: one-step environments whose action is a token sequence.

/// A task with a verifier. Equal seeds give equal prompts; `score` is pure.
pub trait TextTask {
    /// The prompt's token ids.
    fn prompt(&self, seed: u64) -> Vec<u32>;
    /// Reward of a completion; the same input always earns the same.
    fn score(&self, prompt: &[u32], completion: &[u32]) -> f32;
}
