//! The runs of the study: what distinguishes them, how they are made and read.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use anyhow::{Context, Result, bail};
use serde_json::Value;

/// How the group size is chosen.
#[derive(Clone, Debug, PartialEq)]
pub struct Arm {
    /// In tables.
    pub name: String,
    /// For `--group`.
    pub sizer: String,
}

impl Arm {
    fn new(name: &str, sizer: &str) -> Self {
        Arm { name: name.into(), sizer: sizer.into() }
    }

    /// The controller.
    pub fn sagc() -> Self {
        Arm::new("sagc", "sagc")
    }

    /// What it is compared with; `sizes` are those it chose in the run with the same algorithm and seed.
    pub fn others(sizes: &[u64]) -> Vec<Arm> {
        let mut histogram = BTreeMap::new();
        for g in sizes {
            *histogram.entry(*g).or_insert(0) += 1;
        }
        let random: Vec<String> = histogram.iter().map(|(g, n)| format!("{g}*{n}")).collect();
        // the same sizes, largest first: a plan that needs no lengths
        let planned: Vec<String> = histogram.iter().rev().map(|(g, n)| format!("{g}*{n}")).collect();
        vec![
            Arm::new("static 4", "static:4"),
            Arm::new("static 8", "static:8"),
            Arm::new("static 16", "static:16"),
            Arm::new("static 32", "static:32"),
            Arm::new("per-arm beta", "per-arm"),
            Arm::new("greedy", "greedy"),
            Arm::new("random, sagc's sizes", &format!("random:{}", random.join(","))),
            Arm::new("planned, sagc's sizes", &format!("schedule:{}", planned.join(","))),
        ]
    }
}

/// One training run.
#[derive(Clone, Debug)]
pub struct Run {
    pub algo: &'static str,
    pub arm: Arm,
    pub seed: u64,
}

impl Run {
    fn name(&self) -> String {
        let arm: String = self.arm.name.chars().filter(|c| c.is_ascii_alphanumeric()).collect();
        format!("{}-{arm}-seed{}", self.algo, self.seed)
    }
}

/// What a run left behind.
pub struct Record {
    pub algo: &'static str,
    pub arm: String,
    pub seed: u64,
    /// One line per update.
    pub lines: Vec<Value>,
    /// The evaluation at its end.
    pub eval: Value,
}

/// Where and how runs are made.
pub struct Setting {
    pub binary: PathBuf,
    pub dir: PathBuf,
    pub updates: u64,
    pub jobs: usize,
}

/// Settings of every run of the study: a smaller model than the preset's, so that all of it takes less than an hour. A row
/// is late beyond six medians: at 2.5 every group size is over the budget from the first update to the last, for half of
/// the rows show no working and the median is theirs.
pub const COMMON: [&str; 9] = [
    "trainer.rollouts=128",
    "group.budget=0.25",
    "group.threshold=6",
    "policy.hidden=96",
    "policy.layers=3",
    "policy.heads=4",
    "policy.ffn=256",
    "generation.max_tokens=256",
    "trainer.anneal=false",
];

impl Setting {
    fn train(&self, dir: &Path, more: &[String]) -> Result<()> {
        let mut command = Command::new(&self.binary);
        if dir.join("config.toml").exists() {
            command.args(["train", "--resume"]).arg(dir);
        } else {
            command.args(["train", "countdown", "--out"]).arg(dir).args(more);
            command.args(COMMON.iter().flat_map(|s| ["--set", s]));
        }
        let log = fs::File::create(self.dir.join("last.log"))?;
        let status = command.stdout(Stdio::null()).stderr(log).status().context("phalanx cannot be run")?;
        if !status.success() {
            let said = fs::read_to_string(self.dir.join("last.log")).unwrap_or_default();
            bail!("{} failed: {said}", dir.display());
        }
        Ok(())
    }

    fn start_dir(&self) -> PathBuf {
        self.dir.join("start")
    }

    /// The supervised policy that all runs start from.
    pub fn start(&self, quick: bool) -> Result<()> {
        fs::create_dir_all(&self.dir)?;
        let dir = self.start_dir();
        if dir.join("eval.json").exists() {
            return Ok(());
        }
        println!("supervised start");
        let steps = format!("warm_up.steps={}", if quick { 100 } else { 1500 });
        let words = ["--updates", "0", "--set", &steps].map(String::from);
        self.train(&dir, &words)
    }

    fn run_dir(&self, run: &Run) -> PathBuf {
        self.dir.join(run.name())
    }

    fn one(&self, run: &Run) -> Result<()> {
        let dir = self.run_dir(run);
        if dir.join("eval.json").exists() {
            return Ok(());
        }
        let mut words: Vec<String> =
            ["--algo", run.algo, "--group", &run.arm.sizer, "--threads", "1"].map(String::from).into();
        words.extend(["--seed".into(), run.seed.to_string(), "--updates".into(), self.updates.to_string()]);
        let start = format!("policy.start={}", self.start_dir().display());
        for set in ["warm_up.steps=0", "generation.compare=true", "generation.trace=true", "evaluation.every=5", &start]
        {
            words.extend(["--set".into(), set.into()]);
        }
        self.train(&dir, &words)
    }

    /// Makes runs, several side by side.
    pub fn make(&self, runs: &[Run]) -> Result<()> {
        let (next, done) = (AtomicUsize::new(0), AtomicUsize::new(0));
        let failed = Mutex::new(None);
        std::thread::scope(|scope| {
            for _ in 0..self.jobs {
                scope.spawn(|| {
                    loop {
                        let Some(run) = runs.get(next.fetch_add(1, Ordering::SeqCst)) else { return };
                        if let Err(e) = self.one(run) {
                            *failed.lock().expect("no panic while held") = Some(e);
                            next.store(runs.len(), Ordering::SeqCst);
                            return;
                        }
                        println!("{}/{} {}", done.fetch_add(1, Ordering::SeqCst) + 1, runs.len(), run.name());
                    }
                });
            }
        });
        failed.into_inner().expect("no panic while held").map_or(Ok(()), Err)
    }

    /// Group sizes of a run, update by update.
    pub fn sizes(&self, run: &Run) -> Result<Vec<u64>> {
        let lines = lines(&self.run_dir(run))?;
        Ok(lines.iter().filter_map(|l| l["group_size"].as_u64()).collect())
    }

    /// What a run left behind.
    pub fn read(&self, run: &Run) -> Result<Record> {
        let dir = self.run_dir(run);
        let text = fs::read_to_string(dir.join("eval.json")).with_context(|| dir.display().to_string())?;
        let eval = serde_json::from_str(&text)?;
        Ok(Record { algo: run.algo, arm: run.arm.name.clone(), seed: run.seed, lines: lines(&dir)?, eval })
    }

    /// The recorded lengths of the runs with groups of 32, replayed through all controllers.
    pub fn replay(&self, simulate: &Path, runs: &[Run]) -> Result<String> {
        let Some(run) = runs.iter().find(|r| r.arm.name == "static 32").or(runs.last()) else {
            return Ok(String::new());
        };
        let trace = self.run_dir(run).join("lengths.csv");
        let out = Command::new(simulate).arg(&trace).output().context("simulate cannot be run")?;
        if !out.status.success() {
            bail!("simulate failed: {}", String::from_utf8_lossy(&out.stderr));
        }
        Ok(String::from_utf8_lossy(&out.stdout).into_owned())
    }
}

fn lines(dir: &Path) -> Result<Vec<Value>> {
    let path = dir.join("metrics.jsonl");
    let text = fs::read_to_string(&path).with_context(|| path.display().to_string())?;
    text.lines().map(|l| Ok(serde_json::from_str(l)?)).collect()
}
