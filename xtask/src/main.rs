//! Project automation: `cargo xtask tidy`, `cargo xtask ci`, `cargo xtask package`, `cargo xtask bench`.

mod bench;
mod sagc;
mod tidy;

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};
use clap::{Parser, Subcommand};

/// Project automation.
#[derive(Parser)]
struct Args {
    #[command(subcommand)]
    command: Task,
}

#[derive(Subcommand)]
enum Task {
    /// Check dependency arrows, paths named in documents, file lengths, and what files must not contain
    Tidy,
    /// Everything continuous integration checks
    Ci,
    /// Package the publishable crates together and build each from its package
    Package,
    /// Measure against other programs
    #[command(subcommand)]
    Bench(bench::Bench),
}

fn main() -> Result<()> {
    let root = root();
    match Args::parse().command {
        Task::Tidy => tidy::check(&root),
        Task::Bench(what) => bench::bench(&root, what),
        Task::Ci => run(&root, &[".ci/run"]),
        Task::Package => {
            let mut words = vec!["cargo", "package", "--allow-dirty"];
            // they depend on one another, so they are packaged in one go
            for name in [
                "sagc",
                "rollouts",
                "sim-vec",
                "text-tasks",
                "onpolicy",
                "diffusion-policy",
                "token-policy",
                "trust-region",
                "grpo",
            ] {
                words.extend(["-p", name]);
            }
            run(&root, &words)
        }
    }
}

/// The workspace.
fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("xtask lies in the workspace").into()
}

fn run(root: &Path, words: &[&str]) -> Result<()> {
    let status =
        Command::new(words[0]).args(&words[1..]).current_dir(root).status().with_context(|| words.join(" "))?;
    if !status.success() {
        bail!("{} failed: {status}", words.join(" "));
    }
    Ok(())
}

/// What a command prints.
fn output(root: &Path, words: &[&str]) -> Result<String> {
    let out = Command::new(words[0]).args(&words[1..]).current_dir(root).output().with_context(|| words.join(" "))?;
    if !out.status.success() {
        bail!("{}: {}", words.join(" "), String::from_utf8_lossy(&out.stderr));
    }
    Ok(String::from_utf8_lossy(&out.stdout).into())
}
