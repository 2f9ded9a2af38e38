//! The 73 tasks by name: what they are, what they follow and whether they run yet.

use std::sync::Arc;

use crate::SimError;
use crate::tasks::{Task, control};

mod table;

/// A family of tasks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Suite {
    /// DeepMind Control Suite.
    Control,
    /// Joystick walking of Unitree G1 and Booster T1.
    Locomotion,
    /// Table-top and mobile manipulation.
    Manipulation,
    /// Unitree H1 with two Shadow hands.
    Humanoid,
}

impl Suite {
    /// Lower-case name.
    pub fn name(self) -> &'static str {
        match self {
            Suite::Control => "control",
            Suite::Locomotion => "locomotion",
            Suite::Manipulation => "manipulation",
            Suite::Humanoid => "humanoid",
        }
    }
}

/// How a task relates to its reference.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TaskStatus {
    /// Compared number for number with the reference implementation.
    Exact,
    /// Same task, own scene and assets.
    Rebuilt,
    /// Not there yet.
    Planned,
}

impl TaskStatus {
    /// Lower-case name.
    pub fn name(self) -> &'static str {
        match self {
            TaskStatus::Exact => "exact",
            TaskStatus::Rebuilt => "rebuilt",
            TaskStatus::Planned => "planned",
        }
    }
}

/// One line of the table of tasks.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TaskInfo {
    /// Our name, kebab case.
    pub name: &'static str,
    /// Family.
    pub suite: Suite,
    /// The implementation whose observation, action, reward, reset and termination it follows.
    pub reference: &'static str,
    /// Control step in seconds.
    pub dt_s: f64,
    /// Steps after which an episode is truncated.
    pub episode_steps: usize,
    /// Length of an observation; unknown for some planned tasks.
    pub obs_dim: Option<usize>,
    /// Length of an action; unknown for some planned tasks.
    pub act_dim: Option<usize>,
    /// Exact, rebuilt or planned.
    pub status: TaskStatus,
    /// Discount the task prescribes, `1 − 10/H` for manipulation; `None` leaves it to the learner.
    pub discount: Option<f64>,
}

/// All tasks, suite by suite.
pub fn tasks() -> &'static [TaskInfo] {
    &table::TASKS
}

/// The task of that name. Errors: [`SimError::UnknownTask`] with the nearest names.
pub fn find(name: &str) -> Result<&'static TaskInfo, SimError> {
    tasks()
        .iter()
        .find(|t| t.name == name)
        .ok_or_else(|| SimError::UnknownTask { name: name.into(), nearest: nearest(name, 3) })
}

/// Builds a task that runs. Errors: [`SimError::UnknownTask`], [`SimError::Planned`].
pub fn build(name: &str) -> Result<Arc<dyn Task>, SimError> {
    let info = find(name)?;
    control::task(name).unwrap_or(Err(SimError::Planned { name: info.name, reference: info.reference }))
}

/// Names nearest to `name` by edit distance (transpositions count once; ties in the table's order).
fn nearest(name: &str, count: usize) -> Vec<&'static str> {
    let name = name.to_lowercase().replace('_', "-");
    let mut names: Vec<_> = tasks().iter().map(|t| (strsim::damerau_levenshtein(&name, t.name), t.name)).collect();
    names.sort_by_key(|&(distance, _)| distance);
    names.into_iter().take(count).map(|(_, name)| name).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_are_73_tasks_with_names_of_their_own() {
        let count = |suite| tasks().iter().filter(|t| t.suite == suite).count();
        assert_eq!(
            [Suite::Control, Suite::Locomotion, Suite::Manipulation, Suite::Humanoid].map(count),
            [23, 4, 18, 28]
        );
        let mut names: Vec<_> = tasks().iter().map(|t| t.name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), 73);
    }

    #[test]
    fn every_exact_task_builds_with_the_sizes_the_table_names() {
        let mut built = 0;
        for info in tasks().iter().filter(|t| t.status != TaskStatus::Planned) {
            let task = build(info.name).unwrap();
            assert_eq!(task.name(), info.name);
            assert_eq!(Some(task.obs_dim()), info.obs_dim, "{}", info.name);
            assert_eq!(Some(task.model().nu()), info.act_dim, "{}", info.name);
            assert_eq!(task.episode_steps(), info.episode_steps, "{}", info.name);
            let dt = task.model().opt.timestep * task.substeps() as f64;
            assert!((dt - info.dt_s).abs() < 1e-12, "{}: {dt}", info.name);
            built += 1;
        }
        assert_eq!(built, 23);
    }

    #[test]
    fn a_planned_task_is_refused_by_name() {
        for info in tasks().iter().filter(|t| t.status == TaskStatus::Planned) {
            let Err(error) = build(info.name) else { panic!("{} is planned and was built", info.name) };
            assert!(matches!(error, SimError::Planned { name, .. } if name == info.name));
            assert!(error.to_string().contains("planned"));
        }
    }

    #[test]
    fn a_misspelt_task_is_answered_with_the_nearest() {
        for (wrong, right) in [
            ("cartpole-swignup", "cartpole-swingup"),
            ("cheetah_run", "cheetah-run"),
            ("Humanoid-Walk", "humanoid-walk"),
            ("h1hand-wakl", "h1hand-walk"),
        ] {
            let Err(SimError::UnknownTask { nearest, .. }) = find(wrong) else { panic!("{wrong} was found") };
            assert_eq!(nearest[0], right);
        }
    }

    #[test]
    fn manipulation_discounts_by_its_horizon() {
        let pick = find("pick-cube").unwrap();
        assert_eq!((pick.episode_steps, pick.discount), (50, Some(0.8)));
        assert!(tasks().iter().all(|t| t.discount.is_some() == (t.suite == Suite::Manipulation)));
    }
}
