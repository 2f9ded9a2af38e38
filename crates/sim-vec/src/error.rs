//! What can go wrong between a task's name and its first observation.

use crate::engine_error::EngineError;
use crate::mjcf::MjcfError;

/// A task, a model or a set of options that cannot be simulated.
#[derive(Debug, thiserror::Error)]
pub enum SimError {
    /// No such task.
    #[error("no task is named `{name}`; the nearest are {}", quoted(nearest))]
    UnknownTask {
        /// What was asked for.
        name: String,
        /// Existing names, nearest first.
        nearest: Vec<&'static str>,
    },
    /// The task is in the registry and not built yet.
    #[error("task `{name}` ({reference}) is planned and cannot run yet; choose one whose status is exact or rebuilt")]
    Planned {
        /// Its name.
        name: &'static str,
        /// What it will follow.
        reference: &'static str,
    },
    /// The model lacks something the task reads.
    #[error("model `{model}` has no {element} named `{name}`, which the task reads; add it to the model")]
    MissingElement {
        /// Model.
        model: String,
        /// Kind of element.
        element: &'static str,
        /// Its name.
        name: String,
    },
    /// A batch needs lanes, a task observations and actions.
    #[error("task `{task}` with zero {what} cannot be stepped; give it at least one")]
    Nothing {
        /// Task.
        task: String,
        /// What there is none of.
        what: &'static str,
    },
    /// A vector has the wrong length.
    #[error("{what} has {got} numbers, task `{task}` needs {expected}")]
    Length {
        /// Task.
        task: String,
        /// Which vector.
        what: &'static str,
        /// Needed.
        expected: usize,
        /// Given.
        got: usize,
    },
    /// There are fewer lanes.
    #[error("there is no lane {lane}; this batch has {lanes}, counted from 0")]
    Lane {
        /// What was asked for.
        lane: usize,
        /// How many there are.
        lanes: usize,
    },
    /// A control step must be a whole number of physics steps.
    #[error("a control step of {seconds} s is not a multiple of the {timestep} s step of task `{task}`'s model")]
    ControlStep {
        /// Task.
        task: String,
        /// What was asked for.
        seconds: f64,
        /// The model's.
        timestep: f64,
    },
    /// Factors on the model's numbers cannot be drawn from this interval.
    #[error("{what} cannot vary between {low} and {high}; give factors [low, high] with low ≤ high, around 1")]
    Range {
        /// Which factor.
        what: &'static str,
        /// Lower end.
        low: f64,
        /// Upper end.
        high: f64,
    },
    /// The system refused the threads of a pool.
    #[error("a pool of {threads} threads cannot be started: {reason}")]
    Threads {
        /// What was asked for.
        threads: usize,
        /// What the system says.
        reason: String,
    },
    /// Reading a model failed.
    #[error(transparent)]
    Mjcf(#[from] MjcfError),
    /// The engine cannot take the model or this machine lacks the instructions asked for.
    #[error(transparent)]
    Engine(#[from] EngineError),
}

fn quoted(names: &[&str]) -> String {
    names.iter().map(|n| format!("`{n}`")).collect::<Vec<_>>().join(", ")
}
