//! The settings of a run, of either kind: what the loop around it needs to know.

use anyhow::{Result, bail};

use crate::config::RunConfig;
use crate::groups::config::GroupConfig;

/// A run's `config.toml`.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Settings {
    /// Trust-region training on the steps of simulated episodes.
    Steps(Box<RunConfig>),
    /// Group-relative training on whole texts or episodes.
    Groups(Box<GroupConfig>),
}

impl Settings {
    /// Reads the text of a `config.toml`. Errors name line and key.
    pub(crate) fn read(text: &str) -> Result<Self> {
        let table: toml::Table = toml::from_str(text)?;
        let known = i64::from(RunConfig::VERSION);
        match table.get("version").and_then(toml::Value::as_integer) {
            Some(v) if v == known => {}
            Some(v) => bail!("its version is {v}, this program reads version {known}"),
            None => bail!("it has no version; write version = {known} if it is a run's config.toml"),
        }
        let settings = if table.contains_key("group") {
            Settings::Groups(Box::new(toml::from_str(text)?))
        } else {
            Settings::Steps(Box::new(toml::from_str(text)?))
        };
        settings.check()?;
        Ok(settings)
    }

    pub(crate) fn text(&self) -> Result<String> {
        Ok(match self {
            Settings::Steps(c) => toml::to_string(c)?,
            Settings::Groups(c) => toml::to_string(c)?,
        })
    }

    /// Applies `key=value` texts.
    pub(crate) fn set(self, changes: &[String]) -> Result<Self> {
        Ok(match self {
            Settings::Steps(c) => Settings::Steps(Box::new(crate::config::set(&*c, changes)?)),
            Settings::Groups(c) => Settings::Groups(Box::new(crate::config::set(&*c, changes)?)),
        })
    }

    /// Errors with the first setting out of range that no crate below checks.
    pub(crate) fn check(&self) -> Result<()> {
        match self {
            Settings::Steps(c) => c.check(),
            Settings::Groups(c) => c.check(),
        }
    }

    pub(crate) fn task(&self) -> &str {
        match self {
            Settings::Steps(c) => &c.task,
            Settings::Groups(c) => &c.task,
        }
    }

    pub(crate) fn seed(&self) -> u64 {
        match self {
            Settings::Steps(c) => c.seed,
            Settings::Groups(c) => c.seed,
        }
    }

    /// Updates of the whole run.
    pub(crate) fn updates(&self) -> u64 {
        match self {
            Settings::Steps(c) => c.updates(),
            Settings::Groups(c) => c.updates(),
        }
    }

    /// Units of progress that one update makes.
    pub(crate) fn per_update(&self) -> u64 {
        match self {
            Settings::Steps(c) => c.steps_per_update(),
            Settings::Groups(_) => 1,
        }
    }

    /// What progress is counted in.
    pub(crate) fn unit(&self) -> &'static str {
        match self {
            Settings::Steps(_) => "steps",
            Settings::Groups(_) => "updates",
        }
    }

    /// Updates between checkpoints.
    pub(crate) fn checkpoint_every(&self) -> u64 {
        match self {
            Settings::Steps(c) => c.checkpoint.every_updates,
            Settings::Groups(c) => c.checkpoint.every_updates,
        }
    }
}
