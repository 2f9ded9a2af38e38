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
use crate::eval;
use crate::groups;
use crate::metrics::{Line, Metrics};
use crate::presets::preset;
use crate::progress::Progress;
use crate::run_dir::{self, RunDir};
use crate::settings::Settings;

/// `phalanx train`.
pub(crate) fn command(a: args::Train) -> Result<Outcome> {
    threads(a.threads)?;
    match &a.resume {
        Some(root) => resume(root),
        None => {
            let settings = configure(&a)?;
            let root = a.out.clone().unwrap_or_else(|| default_dir(&settings));
            // everything that can be wrong is found before anything is written
            let agent = agent::build(&settings)?;
            let dir = RunDir::create(&root, &settings)?;
            run(&dir, &settings, agent, Position::default())
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
fn configure(a: &args::Train) -> Result<Settings> {
    let settings = match (&a.config, &a.task) {
        (Some(path), _) => {
            let text = std::fs::read_to_string(path).with_context(|| path.display().to_string())?;
            Settings::read(&text).with_context(|| path.display().to_string())?
        }
        (None, Some(task)) => start(a, task)?,
        (None, None) => bail!("name a task, as `phalanx train cartpole-swingup`"),
    };
    let settings = options(settings, a)?.set(&a.set)?;
    if settings.seed() > i64::MAX as u64 {
        bail!("seed {} is more than config.toml can hold; use at most {}", settings.seed(), i64::MAX);
    }
    settings.check()?;
    Ok(settings)
}

/// The preset of a task and an algorithm.
fn start(a: &args::Train, task: &str) -> Result<Settings> {
    let text = groups::is_text(task);
    let algo = a.algo.unwrap_or(if text { Algo::Grpo } else { Algo::Trudi });
    let preset_of = a.preset.unwrap_or(Preset::Quick);
    let (kind, trainer) = match algo {
        Algo::Grpo | Algo::Dapo => {
            if a.trainer.is_some() {
                bail!("--trainer is for trudi and reppo; --algo {} brings its own", algo.name());
            }
            return Ok(Settings::Groups(Box::new(groups::presets::preset(preset_of, algo, a.policy, task)?)));
        }
        Algo::Trudi | Algo::Reppo if text => {
            bail!(
                "{} needs actions that can be differentiated through, and {task} is a text task; use --algo grpo or dapo",
                algo.name()
            )
        }
        Algo::Trudi => (PolicyKind::Diffusion, TrainerKind::TrustRegion),
        Algo::Reppo => (PolicyKind::Gaussian, TrainerKind::TrustRegion),
    };
    sim_vec::registry::build(task)?;
    let mut config = preset(preset_of, a.policy.unwrap_or(kind), task);
    config.trainer.kind = a.trainer.unwrap_or(trainer);
    Ok(Settings::Steps(Box::new(config)))
}

/// Options that stand for single settings.
fn options(settings: Settings, a: &args::Train) -> Result<Settings> {
    Ok(match settings {
        Settings::Steps(mut c) => {
            if a.group.is_some() {
                bail!("--group is for --algo grpo and dapo; {} has no groups", c.task);
            }
            c.seed = a.seed.unwrap_or(c.seed);
            c.steps = a.steps.unwrap_or(c.steps);
            c.env.envs = a.envs.unwrap_or(c.env.envs);
            if a.updates.is_some() {
                bail!("--updates is for --algo grpo and dapo; use --steps");
            }
            Settings::Steps(c)
        }
        Settings::Groups(mut c) => {
            c.seed = a.seed.unwrap_or(c.seed);
            c.updates = a.updates.unwrap_or(c.updates);
            c.trainer.rollouts = a.envs.unwrap_or(c.trainer.rollouts);
            if a.steps.is_some() {
                bail!("--steps is for trudi and reppo; use --updates");
            }
            if let Some(group) = &a.group {
                c.group.sizer = group.clone();
            }
            Settings::Groups(c)
        }
    })
}

fn default_dir(settings: &Settings) -> PathBuf {
    let algo = match settings {
        Settings::Steps(c) => match c.policy.kind {
            PolicyKind::Diffusion => "trudi",
            PolicyKind::Gaussian => "reppo",
        },
        Settings::Groups(c) => c.trainer.loss.name(),
    };
    PathBuf::from(format!("runs/{}-{algo}-seed{}", settings.task(), settings.seed()))
}

fn resume(root: &Path) -> Result<Outcome> {
    let (dir, settings) = RunDir::open(root)?;
    let text = settings.text()?;
    let mut agent = agent::build(&settings)?;
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
                agent = agent::build(&settings)?;
            }
        }
    }
    if position.is_none() {
        eprintln!("no usable checkpoint in {}: starting from the beginning", root.display());
    }
    run(&dir, &settings, agent, position.unwrap_or_default())
}

/// Trains to the end or to a signal, then evaluates.
fn run(dir: &RunDir, settings: &Settings, mut agent: Box<dyn Agent>, mut position: Position) -> Result<Outcome> {
    let trained = sitting(dir, settings, &mut *agent, &mut position);
    let updates = settings.updates();
    match trained.with_context(|| format!("training stopped; {}", how_to_resume(dir.root())))? {
        Outcome::Interrupted => {
            eprintln!("stopped after update {} of {updates}; {}", position.updates, how_to_resume(dir.root()));
            return Ok(Outcome::Interrupted);
        }
        Outcome::Done => {}
    }
    let root = dir.root().display();
    println!("trained {} {} in {:.0} s: {root}", updates * settings.per_update(), settings.unit(), position.wall_s);
    if let (Some(mean), Settings::Steps(_)) = (position.return_mean(), settings) {
        println!("mean return of the last {} training episodes: {mean:.1}", position.recent.len());
    }
    for result in agent.closing()? {
        eval::record(dir.root(), &result)?;
        println!("{}", result.line);
    }
    println!("evaluate again: phalanx eval {root}");
    Ok(Outcome::Done)
}

/// Updates until the end of the run or a signal; a checkpoint stands at either.
fn sitting(dir: &RunDir, settings: &Settings, agent: &mut dyn Agent, position: &mut Position) -> Result<Outcome> {
    let stop = stop_flag()?;
    let (updates, per_update) = (settings.updates(), settings.per_update());
    let text = settings.text()?;
    let mut metrics = Metrics::new(dir.open_metrics(position.updates)?, dir.root())?;
    let progress = Progress::new(updates * per_update, position.updates * per_update, settings.unit());
    agent.sit(dir.root(), position.updates)?;
    while position.updates < updates {
        let start = Instant::now();
        let update = agent.update()?;
        let seconds = start.elapsed().as_secs_f64();
        position.updates += 1;
        position.wall_s += seconds;
        position.observe(&update.returns);
        let units = position.updates * per_update;
        let line = Line::new(position, settings, seconds, &update);
        metrics.write(&line, units)?;
        progress.show(units, &line);
        let (last, stopping) = (position.updates == updates, stop.load(Ordering::SeqCst));
        if last || stopping || position.updates.is_multiple_of(settings.checkpoint_every()) {
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
