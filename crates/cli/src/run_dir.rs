//! The files of a run. Whatever the moment of a crash, each is whole or absent.

use std::fs::{self, File, OpenOptions};
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use onpolicy::write_atomically;

use crate::settings::Settings;

/// A run directory that this process owns.
pub(crate) struct RunDir {
    root: PathBuf,
    /// Held until the process ends, however it ends.
    _lock: File,
}

impl RunDir {
    /// Makes a new one. Refuses a directory that holds anything.
    pub(crate) fn create(root: &Path, settings: &Settings) -> Result<Self> {
        if root.join("config.toml").exists() {
            bail!(
                "{} holds a run already; continue it with --resume {}, or choose another directory with --out",
                root.display(),
                root.display()
            );
        }
        let leftovers = |e: fs::DirEntry| e.file_name() != ".lock" && e.file_name() != "checkpoints";
        if root.is_dir() && fs::read_dir(root).with_context(|| at(root))?.flatten().any(leftovers) {
            bail!("{} is not empty and holds no run; choose another directory with --out", root.display());
        }
        fs::create_dir_all(root.join("checkpoints"))
            .with_context(|| format!("cannot make the run directory {}; choose another with --out", root.display()))?;
        let lock = lock(root)?;
        let path = root.join("config.toml");
        write_atomically(&path, settings.text()?.as_bytes()).with_context(|| at(&path))?;
        Ok(RunDir { root: root.into(), _lock: lock })
    }

    /// Opens one that exists.
    pub(crate) fn open(root: &Path) -> Result<(Self, Settings)> {
        let config = read_config(root)?;
        let lock = lock(root)?;
        Ok((RunDir { root: root.into(), _lock: lock }, config))
    }

    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    pub(crate) fn metrics(&self) -> PathBuf {
        self.root.join("metrics.jsonl")
    }

    pub(crate) fn checkpoint(&self, updates: u64) -> PathBuf {
        checkpoints_dir(&self.root).join(format!("update-{updates:08}.safetensors"))
    }

    pub(crate) fn best(&self) -> PathBuf {
        best(&self.root)
    }

    /// Removes all but the newest two checkpoints, and what a crash left half-written.
    pub(crate) fn prune(&self) -> Result<()> {
        let newest = checkpoints(&self.root)?;
        let old = newest.iter().skip(2).cloned();
        let entries = fs::read_dir(checkpoints_dir(&self.root)).with_context(|| at(&self.root))?;
        let partial = entries.flatten().map(|e| e.path()).filter(|p| p.extension().is_some_and(|e| e == "partial"));
        for path in old.chain(partial) {
            fs::remove_file(&path).with_context(|| at(&path))?;
        }
        Ok(())
    }

    /// Cuts the metrics back to the first `updates` lines and opens them to go on.
    pub(crate) fn open_metrics(&self, updates: u64) -> Result<File> {
        let path = self.metrics();
        if path.exists() {
            let file = File::open(&path).with_context(|| at(&path))?;
            let mut kept = Vec::new();
            for line in BufReader::new(file).lines().take(updates as usize) {
                let line = line.with_context(|| at(&path))?;
                kept.extend(line.as_bytes());
                kept.push(b'\n');
            }
            write_atomically(&path, &kept).with_context(|| at(&path))?;
        }
        OpenOptions::new().create(true).append(true).open(&path).with_context(|| at(&path))
    }
}

fn at(path: &Path) -> String {
    path.display().to_string()
}

fn lock(root: &Path) -> Result<File> {
    let path = root.join(".lock");
    let mut file =
        OpenOptions::new().create(true).write(true).truncate(false).open(&path).with_context(|| at(&path))?;
    match file.try_lock() {
        Ok(()) => {}
        Err(fs::TryLockError::WouldBlock) => {
            bail!("another process is training in {}; wait for it, or stop it first", root.display())
        }
        Err(fs::TryLockError::Error(e)) => return Err(e).with_context(|| at(&path)),
    }
    // content means nothing: the lock is the file's, and the system drops it with the process
    let _ = file.write_all(b"");
    Ok(file)
}

/// Reads a run's settings.
pub(crate) fn read_config(root: &Path) -> Result<Settings> {
    let path = root.join("config.toml");
    if !path.is_file() {
        let what = if root.is_dir() { "holds no run (no config.toml)" } else { "does not exist" };
        bail!("{} {what}; `phalanx train TASK --out {}` makes one", root.display(), root.display());
    }
    let text = fs::read_to_string(&path).with_context(|| at(&path))?;
    Settings::read(&text).with_context(|| at(&path))
}

fn checkpoints_dir(root: &Path) -> PathBuf {
    root.join("checkpoints")
}

/// The checkpoint of the highest mean training return.
pub(crate) fn best(root: &Path) -> PathBuf {
    checkpoints_dir(root).join("best.safetensors")
}

/// All numbered checkpoints, newest first.
pub(crate) fn checkpoints(root: &Path) -> Result<Vec<PathBuf>> {
    let dir = checkpoints_dir(root);
    if !dir.is_dir() {
        return Ok(Vec::new());
    }
    let is_numbered = |p: &PathBuf| {
        let name = p.file_name().unwrap_or_default().to_string_lossy();
        name.strip_prefix("update-")
            .and_then(|n| n.strip_suffix(".safetensors"))
            .is_some_and(|n| n.parse::<u64>().is_ok())
    };
    let mut all: Vec<PathBuf> =
        fs::read_dir(&dir).with_context(|| at(&dir))?.flatten().map(|e| e.path()).filter(is_numbered).collect();
    all.sort();
    all.reverse();
    Ok(all)
}
