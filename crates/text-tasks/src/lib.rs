//! Text tasks with exact verifiers, seeded and without downloads: sources of prompts for reinforcement learning of
//! language models that are small enough to train from scratch, and [`TextFile`] for prompts of one's own.
//!
//! What it is not: a tokenizer or a reward model. A task gives texts and scores texts; nothing here knows tokens.
//!
//! ```
//! use rollouts::TextTask;
//! use text_tasks::{Countdown, Level, Split};
//!
//! let task = Countdown::new(Level::Three, Split::Train);
//! let prompt = task.prompt(7); // numbers = target
//! let solution = task.solution(7, 0).unwrap(); // a search, then the expression it found
//! assert!(prompt.ends_with('\n') && solution.contains('='));
//! assert_eq!(task.score(7, &solution), 1.0);
//! assert_eq!(task.score(7, "=1+1"), 0.0);
//! ```
//!
//! In reading order: [`Split`], [`Countdown`], [`Addition`], [`ModularChain`], [`SortingTrace`], [`TextFile`],
//! [`TASKS`], [`build`].

mod addition;
mod answer;
mod countdown;
mod draw;
mod expression;
mod modular_chain;
mod registry;
mod sorting;
mod split;
mod text_file;

pub use addition::Addition;
pub use countdown::{Countdown, Level};
pub use modular_chain::ModularChain;
pub use registry::{DynTask, TASKS, TaskInfo, UnknownTask, build, find};
pub use sorting::SortingTrace;
pub use split::Split;
pub use text_file::{Match, TextFile, TextFileError};

/// Every character that a generated task writes or expects.
pub const ALPHABET: &str = "\n 0123456789+-*%=(),?";

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
