//! `cargo xtask bench sagc`: what the control of the group size does to a real run, against everything simpler.
//!
//! Every run starts from the same supervised policy. Each batch is written in all three ways of batching, which draw the
//! same completions, so one run gives three clocks.

mod runs;
mod table;

use std::path::{Path, PathBuf};

use anyhow::{Result, bail};
use clap::Args;

use runs::{Arm, Run, Setting};

/// How the study is made.
#[derive(Args)]
pub struct Sagc {
    /// Seeds, each with its own prompts and draws
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u64).range(1..=99))]
    seeds: u64,
    /// Updates of every run
    #[arg(long, default_value_t = 40, value_parser = clap::value_parser!(u64).range(2..=100_000))]
    updates: u64,
    /// Processes side by side, each with one thread
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u64).range(1..=256))]
    jobs: u64,
    /// Two arms, one seed, few updates, and a file in target unless --out names one
    #[arg(long)]
    quick: bool,
    /// Where the tables go, their figures next to them as .json [default: docs/results/sagc.txt]
    #[arg(long)]
    out: Option<PathBuf>,
}

/// Algorithms that are compared.
const ALGORITHMS: [&str; 2] = ["grpo", "dapo"];

/// Runs it. Runs that have ended are not made again; those cut off go on.
pub fn study(root: &Path, target: &Path, o: &Sagc) -> Result<()> {
    crate::run(root, &["cargo", "build", "--release", "-p", "phalanx"])?;
    crate::run(root, &["cargo", "build", "--release", "-p", "sagc", "--examples"])?;
    let commit = crate::output(root, &["git", "rev-parse", "--short", "HEAD"])?.trim().to_string();
    let (seeds, updates) = if o.quick { (1, o.updates.min(6)) } else { (o.seeds, o.updates) };
    let setting = Setting {
        binary: target.join("release/phalanx"),
        dir: target.join(format!("sagc/{commit}{}", if o.quick { "-quick" } else { "" })),
        updates,
        jobs: o.jobs as usize,
    };
    setting.start(o.quick)?;
    // the controlled runs come first: two arms repeat what they did without looking
    let controlled: Vec<Run> =
        ALGORITHMS.iter().flat_map(|algo| (1..=seeds).map(|seed| Run { algo, arm: Arm::sagc(), seed })).collect();
    setting.make(&controlled)?;
    let mut others = Vec::new();
    for run in &controlled {
        let sizes = setting.sizes(run)?;
        for arm in Arm::others(&sizes) {
            if !o.quick || arm.name == "static 8" {
                others.push(Run { algo: run.algo, arm, seed: run.seed });
            }
        }
    }
    setting.make(&others)?;
    let all: Vec<Run> = controlled.into_iter().chain(others).collect();
    let out = match &o.out {
        Some(out) => std::path::absolute(out)?,
        None if o.quick => target.join("sagc-quick.txt"),
        None => root.join("docs/results/sagc.txt"),
    };
    let mut data = Vec::new();
    for run in &all {
        data.push(setting.read(run)?);
    }
    if data.is_empty() {
        bail!("there are no runs to compare");
    }
    let replay = setting.replay(&target.join("release/examples/simulate"), &all)?;
    table::write(&out, &table::Head::new(root, &commit, o.quick, seeds, updates)?, &data, &replay)?;
    println!("{}", out.display());
    Ok(())
}
