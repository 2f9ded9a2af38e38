//! Tasks by name.

use rollouts::TextTask;

use crate::{Addition, Countdown, Level, ModularChain, SortingTrace, Split};

/// A task that can be shared among threads.
pub type DynTask = Box<dyn TextTask + Send + Sync>;

/// One line of the table of tasks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TaskInfo {
    /// Its name.
    pub name: &'static str,
    /// What is asked.
    pub about: &'static str,
    /// Longest completion that its reference solutions need, in characters, the end token included.
    pub max_tokens: usize,
}

/// Every generated task.
pub const TASKS: [TaskInfo; 5] = [
    TaskInfo { name: "countdown", about: "combine three numbers into a target by search", max_tokens: 384 },
    TaskInfo { name: "countdown-4", about: "the same with four numbers", max_tokens: 512 },
    TaskInfo { name: "addition", about: "add column by column, check, repair", max_tokens: 288 },
    TaskInfo {
        name: "modular-chain",
        about: "iterate a map modulo m until 0; length follows from the prompt",
        max_tokens: 256,
    },
    TaskInfo { name: "sorting", about: "sort digits by swaps of neighbours", max_tokens: 320 },
];

/// A name that no task has.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there is no text task `{name}`; the nearest is `{nearest}`, and there are {all}")]
pub struct UnknownTask {
    /// What was asked for.
    pub name: String,
    /// The most similar name.
    pub nearest: &'static str,
    /// All names.
    pub all: String,
}

/// The line of a task's name.
///
/// Errors: [`UnknownTask`] with the nearest name.
pub fn find(name: &str) -> Result<&'static TaskInfo, UnknownTask> {
    TASKS.iter().find(|t| t.name == name).ok_or_else(|| {
        let likeness = |t: &&TaskInfo| strsim::jaro_winkler(name, t.name);
        let nearest = TASKS.iter().max_by(|a, b| likeness(a).total_cmp(&likeness(b))).map_or("", |t| t.name);
        UnknownTask { name: name.into(), nearest, all: TASKS.map(|t| t.name).join(", ") }
    })
}

/// One split of the task of that name.
///
/// Errors: [`UnknownTask`] with the nearest name.
pub fn build(name: &str, split: Split) -> Result<DynTask, UnknownTask> {
    Ok(match find(name)?.name {
        "countdown" => Box::new(Countdown::new(Level::Three, split)),
        "countdown-4" => Box::new(Countdown::new(Level::Four, split)),
        "addition" => Box::new(Addition::new(split)),
        "modular-chain" => Box::new(ModularChain::new(split)),
        _ => Box::new(SortingTrace::new(split)),
    })
}
