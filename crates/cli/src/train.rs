//! The training loop around an agent: metrics, checkpoints, signals.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use anyhow::{Context, Result, bail};

use crate::Outcome;
use crate::agent::{self, Agent};
use crate::args::{self, Algo, PolicyKind, Preset, TrainerKind};
use crate::checkpoint::{self, Position};
use crate::config::RunConfig;
use crate::eval;
use crate::metrics::{Line, Metrics};
use crate::presets::preset;
use crate::progress::Progress;
use crate::run_dir::{self, RunDir};

/// `phalanx train`.
pub(crate) fn command(a: args::Train) -> Result<Outcome> {
    threads(a.threads)?;
    match &a.resume {
        Some(root) => resume(root),
        None => {
            let config = configure(&a)?;
            let root = a.out.clone().unwrap_or_else(|| default_dir(&config));
            // everything that can be wrong is found before anything is written
            let agent = agent::build(&config, config.env.envs)?;
            let dir = RunDir::create(&root, &config)?;
            run(&dir, &config, agent, Position::default())
        }
    }
}

/// Sizes the thread pool that everything runs on.
pub(crate) fn threads(wanted: Option<usize>) -> Result<()> {
    if wanted == Some(0) {
        bail!("--threads is 0; it must be at least 1");
    }
    let pool = rayon::ThreadPoolBuilder::new().num_threads(wanted.unwrap_or(0));
    pool.build_global().context("cannot start threads; lower --threads")
}

/// Settings of a new run: preset or file, then options, then `--set`.
fn configure(a: &args::Train) -> Result<RunConfig> {
    let mut config = match (&a.config, &a.task) {
        (Some(path), _) => {
            let text = std::fs::read_to_string(path).with_context(|| path.display().to_string())?;
            RunConfig::read(&text).with_context(|| path.display().to_string())?
        }
        (None, Some(task)) => {
            sim_vec::registry::build(task)?;
            let algo = match a.algo.unwrap_or(Algo::Trudi) {
                Algo::Trudi => (PolicyKind::Diffusion, TrainerKind::TrustRegion),
                Algo::Reppo => (PolicyKind::Gaussian, TrainerKind::TrustRegion),
            };
            let (kind, trainer) = (a.policy.unwrap_or(algo.0), a.trainer.unwrap_or(algo.1));
            let mut config = preset(a.preset.unwrap_or(Preset::Quick), kind, task);
            config.trainer.kind = trainer;
            config
        }
        (None, None) => bail!("name a task, as `phalanx train cartpole-swingup`"),
    };
    config.seed = a.seed.unwrap_or(config.seed);
    config.steps = a.steps.unwrap_or(config.steps);
    config.env.envs = a.envs.unwrap_or(config.env.envs);
    let config = config.set(&a.set)?;
    if config.seed > i64::MAX as u64 {
        bail!("seed {} is more than config.toml can hold; use at most {}", config.seed, i64::MAX);
    }
    config.check()?;
    Ok(config)
}

fn default_dir(config: &RunConfig) -> PathBuf {
    let algo = match config.policy.kind {
        PolicyKind::Diffusion => "trudi",
        PolicyKind::Gaussian => "reppo",
    };
    PathBuf::from(format!("runs/{}-{algo}-seed{}", config.task, config.seed))
}

fn resume(root: &Path) -> Result<Outcome> {
    let (dir, config) = RunDir::open(root)?;
    let text = config.text()?;
    let mut agent = agent::build(&config, config.env.envs)?;
    let mut position = None;
    for path in run_dir::checkpoints(root)? {
        match checkpoint::read(&path, &mut *agent, &text) {
            Ok(p) => {
                position = Some(p);
                break;
            }
            Err(e) => {
                eprintln!("warning: {e:#}; trying the checkpoint before it");
                // what was read in part must not stay
                agent = agent::build(&config, config.env.envs)?;
            }
        }
    }
    if position.is_none() {
        eprintln!("no usable checkpoint in {}: starting from the beginning", root.display());
    }
    run(&dir, &config, agent, position.unwrap_or_default())
}

/// Trains to the end or to a signal, then evaluates.
fn run(dir: &RunDir, config: &RunConfig, mut agent: Box<dyn Agent>, mut position: Position) -> Result<Outcome> {
    let trained = sitting(dir, config, &mut *agent, &mut position);
    let updates = config.updates();
    match trained.with_context(|| format!("training stopped; {}", how_to_resume(dir.root())))? {
        Outcome::Interrupted => {
            eprintln!("stopped after update {} of {updates}; {}", position.updates, how_to_resume(dir.root()));
            return Ok(Outcome::Interrupted);
        }
        Outcome::Done => {}
    }
    let root = dir.root().display();
    println!("trained {} steps in {:.0} s: {root}", updates * config.steps_per_update(), position.wall_s);
    if let Some(mean) = position.return_mean() {
        println!("mean return of the last {} training episodes: {mean:.1}", position.recent.len());
    }
    let result = eval::evaluate(&*agent, config, eval::Settings::default())?;
    eval::record(dir.root(), &result)?;
    println!("{}", result.line());
    println!("evaluate again: phalanx eval {root}");
    Ok(Outcome::Done)
}

/// Updates until the end of the run or a signal; a checkpoint stands at either.
fn sitting(dir: &RunDir, config: &RunConfig, agent: &mut dyn Agent, position: &mut Position) -> Result<Outcome> {
    let stop = stop_flag()?;
    let (updates, per_update) = (config.updates(), config.steps_per_update());
    let text = config.text()?;
    let mut metrics = Metrics::new(dir.open_metrics(position.updates)?, dir.root())?;
    let progress = Progress::new(updates * per_update, position.updates * per_update);
    while position.updates < updates {
        let start = Instant::now();
        let update = agent.update(config.trainer.rollout_steps)?;
        let seconds = start.elapsed().as_secs_f64();
        position.updates += 1;
        position.wall_s += seconds;
        position.observe(&update.returns);
        let env_steps = position.updates * per_update;
        let line = Line::new(position, env_steps, per_update as f64 / seconds, &update, agent.non_finite_lanes());
        metrics.write(&line, env_steps)?;
        progress.show(env_steps, &line);
        let (last, stopping) = (position.updates == updates, stop.load(Ordering::SeqCst));
        if last || stopping || position.updates.is_multiple_of(config.checkpoint.every_updates) {
            metrics.sync()?;
            let best = position.improves();
            checkpoint::write(&dir.checkpoint(position.updates), agent, position, &text)?;
            if best {
                checkpoint::write(&dir.best(), agent, position, &text)?;
            }
            dir.prune()?;
        }
        if stopping && !last {
            progress.finish();
            return Ok(Outcome::Interrupted);
        }
    }
    progress.finish();
    Ok(Outcome::Done)
}

/// Set by the first Ctrl-C or termination signal; the second one ends the process.
fn stop_flag() -> Result<Arc<AtomicBool>> {
    let stop = Arc::new(AtomicBool::new(false));
    let handler = stop.clone();
    ctrlc::set_handler(move || {
        if handler.swap(true, Ordering::SeqCst) {
            std::process::exit(130);
        }
        eprintln!("\nfinishing this update, then writing a checkpoint; once more to stop at once");
    })
    .context("cannot listen for Ctrl-C")?;
    Ok(stop)
}

fn how_to_resume(root: &Path) -> String {
    format!("continue with: phalanx train --resume {}", root.display())
}
