//! Text tasks: one-step environments whose action is a text.

/// A set of prompts with a verifier. [`crate::conformance::check_text_task`] tests the promises.
///
/// Prompts are numbered; a generated task takes any number as a seed, a finite one has `0..len`. Everything about a
/// prompt follows from its number, so equal prompts of different numbers are never confused.
pub trait TextTask {
    /// The prompt of that number. Equal numbers, equal prompts.
    fn prompt(&self, index: u64) -> String;

    /// How right a completion of that prompt is, from 0 (wrong) to 1 (right). Pure: the same input always earns the
    /// same. Shaping by length or format belongs to the trainer.
    fn score(&self, index: u64, completion: &str) -> f32;

    /// Number of prompts; `None` where any index will do.
    fn len(&self) -> Option<u64> {
        None
    }

    /// Whether there is no prompt at all.
    fn is_empty(&self) -> bool {
        self.len() == Some(0)
    }

    /// A right completion, to start a policy from; `variant` chooses among several. `None` where none is known.
    fn solution(&self, index: u64, variant: u64) -> Option<String> {
        let _ = (index, variant);
        None
    }
}

impl<T: TextTask + ?Sized> TextTask for Box<T> {
    fn prompt(&self, index: u64) -> String {
        (**self).prompt(index)
    }
    fn score(&self, index: u64, completion: &str) -> f32 {
        (**self).score(index, completion)
    }
    fn len(&self) -> Option<u64> {
        (**self).len()
    }
    fn solution(&self, index: u64, variant: u64) -> Option<String> {
        (**self).solution(index, variant)
    }
}
