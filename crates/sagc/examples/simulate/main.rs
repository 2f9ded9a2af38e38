//! Compares sizers on drawn or on recorded lengths.
//!
//! ```sh
//! cargo run -p sagc --example simulate                          # three phases of log-normal lengths
//! cargo run -p sagc --example simulate -- lengths.csv           # lengths recorded per prompt
//! cargo run -p sagc --example simulate -- --plot straggling.svg
//! ```
//!
//! A trace has a line `prompt_id,length` or `prompt_id,length,truncated` per rollout: any text without a comma, a number
//! at least 0, and 0 or 1. Lines that are empty or begin with `#`, and a first line that begins with `prompt_id`, are
//! passed over. Lines of a prompt need not stand together. Each step draws N/G prompts and G lengths of each: different
//! ones where as many were recorded, otherwise with repetition.

mod plot;
mod replay;
mod workload;

use std::error::Error;
use std::process::ExitCode;

use replay::{Run, sizers};
use sagc::{SagcConfig, check_menu};
use workload::Workload;

const USAGE: &str = "usage: simulate [TRACE.csv] [--rollouts N] [--steps N] [--seeds N] [--plot FILE.svg]
  --rollouts  rollouts per step, held whatever the size (128)
  --steps     steps per phase (200; of a trace, which has one phase, 600)
  --seeds     runs that are averaged (12)
  --plot      writes the first run as a figure";

/// What the command line says.
struct Options {
    trace: Option<String>,
    rollouts: usize,
    steps: Option<usize>,
    seeds: u64,
    plot: Option<String>,
}

fn options(mut words: impl Iterator<Item = String>) -> Result<Options, String> {
    let mut o = Options { trace: None, rollouts: 128, steps: None, seeds: 12, plot: None };
    while let Some(word) = words.next() {
        let mut value = || words.next().ok_or(format!("`{word}` needs a value\n{USAGE}"));
        let count = |text: String| match text.parse::<u32>() {
            Ok(n) if n > 0 => Ok(n),
            _ => Err(format!("`{word}` needs a whole number above 0, not `{text}`\n{USAGE}")),
        };
        match word.as_str() {
            "--rollouts" => o.rollouts = count(value()?)? as usize,
            "--steps" => o.steps = Some(count(value()?)? as usize),
            "--seeds" => o.seeds = count(value()?)?.into(),
            "--plot" => o.plot = Some(value()?),
            "-h" | "--help" => return Err(USAGE.into()),
            _ if word.starts_with('-') => return Err(format!("there is no option `{word}`\n{USAGE}")),
            _ if o.trace.is_some() => return Err(format!("one trace at a time; `{word}` is a second\n{USAGE}")),
            _ => o.trace = Some(word),
        }
    }
    Ok(o)
}

fn main() -> ExitCode {
    match options(std::env::args().skip(1)).map_err(Into::into).and_then(|o| compare(&o)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn compare(o: &Options) -> Result<(), Box<dyn Error>> {
    let config = SagcConfig::new(&[4, 8, 16, 32]);
    check_menu(o.rollouts, &config.candidates)?;
    let workload = match &o.trace {
        None => Workload::drawn(o.steps.unwrap_or(200)),
        Some(path) => Workload::recorded(path, o.steps.unwrap_or(600))?,
    };
    println!("{}", workload.describe(*config.candidates.last().expect("a size")));
    println!(
        "{} rollouts per step, budget {}, {} steps, mean of {} seeds\n",
        o.rollouts,
        config.budget,
        workload.steps(),
        o.seeds
    );
    // runs[seed][sizer]
    let mut runs: Vec<Vec<(String, Run)>> = Vec::new();
    for seed in 1..=o.seeds {
        runs.push(sizers(&config, &workload, o.rollouts, seed)?);
    }
    println!("| sizer | straggler rate (phases) | mean U | mean G (phases) | switches | Σ(s−ε) | longest | padding |");
    println!("|---|---|---|---|---|---|---|---|");
    for k in 0..runs[0].len() {
        let of_seed: Vec<&Run> = runs.iter().map(|r| &r[k].1).collect();
        println!("| {} | {} |", runs[0][k].0, row(&of_seed, &config, workload.phases()));
    }
    println!(
        "\nlongest: mean over steps of the longest rollout, what one wave waits for. padding: tokens of groups padded to their \
         longest rollout, over tokens used."
    );
    if let Some(path) = &o.plot {
        let svg = plot::svg(&runs[0], config.budget, workload.steps() / workload.phases());
        std::fs::write(path, svg).map_err(|e| format!("{path}: {e}; name a file in a folder that exists"))?;
        println!("\nwrote {path}");
    }
    Ok(())
}

/// Means over the runs of one sizer, as the cells of a table.
fn row(runs: &[&Run], config: &SagcConfig, phases: usize) -> String {
    let mean = |of: &dyn Fn(&Run) -> f64| runs.iter().map(|r| of(r)).sum::<f64>() / runs.len() as f64;
    let steps = runs[0].rate.len();
    let average = |x: &[f64]| x.iter().sum::<f64>() / x.len() as f64;
    let per_phase = |of: &dyn Fn(&Run) -> Vec<f64>, digits: usize| {
        let length = steps / phases;
        let part = |p: usize| mean(&|r| average(&of(r)[p * length..(p + 1) * length]));
        (0..phases).map(|p| format!("{:.digits$}", part(p))).collect::<Vec<_>>().join(" ")
    };
    let size = |r: &Run| r.size.iter().map(|g| *g as f64).collect::<Vec<_>>();
    let worth = |r: &Run| {
        let worth = config.utility.values(&r.size, &vec![1.0; r.size.len()]);
        average(&worth)
    };
    format!(
        "{:.3} ({}) | {:.3} | {} | {:.0} | {:+.1} | {:.0} | {:.2}",
        mean(&|r| average(&r.rate)),
        per_phase(&|r| r.rate.clone(), 2),
        mean(&worth),
        per_phase(&size, 0),
        mean(&|r| r.size.windows(2).filter(|w| w[0] != w[1]).count() as f64),
        mean(&|r| r.rate.iter().map(|s| s - config.budget).sum()),
        mean(&|r| average(&r.longest)),
        mean(&|r| r.padded / r.used),
    )
}
