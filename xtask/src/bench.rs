//! `cargo xtask bench sim`: builds what is timed, finds the peers it is compared with, and runs the comparison.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};
use clap::{Args, Subcommand};

use crate::{output, run};

/// What the comparison needs, in the versions that the engine follows.
const NEEDED: [&str; 3] = ["mujoco==3.17.0", "dm_control==1.0.50", "numpy"];
/// What it can do without; a column says so then.
const WELCOME: &str = "envpool";
/// Where the comparison lies.
const SCRIPT: &str = "benches/peers/sim_speed.py";

/// What is measured.
#[derive(Subcommand)]
pub enum Bench {
    /// The engine against MuJoCo, EnvPool and dm_control: one table, in minutes
    Sim(Sim),
    /// Group size control in training against everything simpler: tables, in half an hour
    Sagc(crate::sagc::Sagc),
}

/// How the simulation is measured.
#[derive(Args)]
pub struct Sim {
    /// Interpreter that has mujoco, dm_control and numpy; default: one in target/peers, made when it is not there
    #[arg(long)]
    python: Option<PathBuf>,
    /// Rounds in which all sides are interleaved [default: 7, with --quick 3]
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=99))]
    rounds: Option<u32>,
    /// Fewer and shorter rounds, no 65,536 environments, and a file in target unless --out names one
    #[arg(long)]
    quick: bool,
    /// Where the table goes, its figures next to it as .json [default: docs/results/sim.txt]
    #[arg(long)]
    out: Option<PathBuf>,
}

/// Runs it.
pub fn bench(root: &Path, what: Bench) -> Result<()> {
    let target = target(root)?;
    let o = match what {
        Bench::Sim(o) => o,
        Bench::Sagc(o) => return crate::sagc::study(root, &target, &o),
    };
    let python = match &o.python {
        Some(python) => python.clone(),
        None => venv(&target.join("peers"))?,
    };
    missing(&python)?;
    run(root, &["cargo", "build", "--release", "-p", "sim-vec", "--examples"])?;
    let out = match &o.out {
        Some(out) => std::path::absolute(out)?,
        None if o.quick => target.join("sim-quick.txt"),
        None => root.join("docs/results/sim.txt"),
    };
    let mut command = Command::new(&python);
    command.current_dir(root).arg(SCRIPT).arg("--examples").arg(target.join("release/examples"));
    command.arg("--out").arg(&out).args(["--command", &said(&o)]);
    if let Some(rounds) = o.rounds {
        command.args(["--rounds", &rounds.to_string()]);
    }
    if o.quick {
        command.arg("--quick");
    }
    let status = command.status().with_context(|| format!("{} cannot be run", python.display()))?;
    if !status.success() {
        bail!("{SCRIPT} failed: {status}");
    }
    Ok(())
}

/// The command as it stands in the table: without what only this machine has.
fn said(o: &Sim) -> String {
    let mut words = "cargo xtask bench sim".to_string();
    if o.python.is_some() {
        words += " --python PYTHON";
    }
    if let Some(rounds) = o.rounds {
        words += &format!(" --rounds {rounds}");
    }
    if o.quick {
        words += " --quick";
    }
    words
}

/// Where cargo builds.
fn target(root: &Path) -> Result<PathBuf> {
    let text = output(root, &["cargo", "metadata", "--format-version", "1", "--no-deps"])?;
    let metadata: serde_json::Value = serde_json::from_str(&text)?;
    Ok(metadata["target_directory"].as_str().context("cargo metadata names no target directory")?.into())
}

/// Fails with what the interpreter said if it cannot be run or lacks a package or its version.
fn missing(python: &Path) -> Result<()> {
    let checks = NEEDED.map(|need| {
        let (name, version) = need.split_once("==").unwrap_or((need, ""));
        format!("import importlib.metadata as m; v = m.version('{name}'); assert v.startswith('{version}'), '{name} is ' + v + ', needed is {need}'")
    });
    let ask = Command::new(python).args(["-c", &checks.join("\n")]).output();
    let ask = ask.with_context(|| format!("no Python at `{}`; name one with --python", python.display()))?;
    if !ask.status.success() {
        let said = String::from_utf8_lossy(&ask.stderr);
        let last = said.trim().lines().last().unwrap_or("it does not say which").to_string();
        let python = python.display();
        bail!("`{python}` lacks a peer: {last}; install with `{python} -m pip install {}`", NEEDED.join(" "));
    }
    Ok(())
}

/// The interpreter of a virtual environment with all peers, made and filled as far as it is not.
fn venv(folder: &Path) -> Result<PathBuf> {
    let python = folder.join(if cfg!(windows) { "Scripts/python.exe" } else { "bin/python" });
    if missing(&python).is_ok() {
        return Ok(python);
    }
    let system = if cfg!(windows) { "python" } else { "python3" };
    println!("making {} with the peers, once", folder.display());
    let made = Command::new(system).args(["-m", "venv"]).arg(folder).status();
    let made =
        made.with_context(|| format!("no `{system}` to make a virtual environment with; name one with --python"))?;
    if !made.success() {
        bail!("`{system} -m venv {}` failed: {made}; name an interpreter with --python", folder.display());
    }
    let pip =
        |packages: &[&str]| Command::new(&python).args(["-m", "pip", "install", "--quiet"]).args(packages).status();
    if !pip(&NEEDED)?.success() {
        bail!(
            "pip could not install {} into {}; name an interpreter that has them with --python",
            NEEDED.join(" "),
            folder.display()
        );
    }
    if !pip(&[WELCOME])?.success() {
        eprintln!("pip could not install {WELCOME}; its column stays empty");
    }
    Ok(python)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_interpreter_is_named() {
        let error = missing(Path::new("no/such/python")).unwrap_err().to_string();
        assert_eq!(error, "no Python at `no/such/python`; name one with --python");
    }

    #[test]
    fn the_command_in_the_table_names_no_path() {
        let o = Sim { python: Some("a/b".into()), rounds: Some(4), quick: true, out: Some("c".into()) };
        assert_eq!(said(&o), "cargo xtask bench sim --python PYTHON --rounds 4 --quick");
    }
}
