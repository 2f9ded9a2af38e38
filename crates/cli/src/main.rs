//! `phalanx`: train, evaluate and inspect runs from the command line.

mod agent;
mod args;
mod checkpoint;
mod config;
mod eval;
mod groups;
mod lines;
mod metrics;
mod presets;
mod progress;
mod run_dir;
mod settings;
mod tasks;
mod tensorboard;
mod train;

use std::process::ExitCode;

use clap::Parser;

use args::{Args, Command};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// What the shell is told.
pub(crate) enum Outcome {
    /// Everything asked for was done.
    Done,
    /// Stopped by a signal, after a checkpoint.
    Interrupted,
}

fn main() -> ExitCode {
    // SAFETY: no other thread has started. candle's own thread pool would spin next to ours.
    unsafe { std::env::set_var("CANDLE_NUM_THREADS", "1") };
    let args = Args::parse();
    let outcome = match args.command {
        Command::Train(a) => train::command(a),
        Command::Eval(a) => eval::command(a),
        Command::Tasks(a) => tasks::command(&a),
        Command::Physics(a) => lines::physics(&a),
        Command::Observe(a) => lines::observe(&a),
    };
    match outcome {
        Ok(Outcome::Done) => ExitCode::SUCCESS,
        Ok(Outcome::Interrupted) => ExitCode::from(130),
        // whoever read our output has gone; there is nobody to tell
        Err(e) if broken_pipe(&e) => ExitCode::SUCCESS,
        Err(e) => {
            eprintln!("error: {e:#}");
            ExitCode::FAILURE
        }
    }
}

fn broken_pipe(error: &anyhow::Error) -> bool {
    error
        .chain()
        .any(|e| e.downcast_ref::<std::io::Error>().is_some_and(|e| e.kind() == std::io::ErrorKind::BrokenPipe))
}
