//! How long reference solutions are, and where their spread comes from.
//!
//! ```sh
//! cargo run -p text-tasks --example lengths
//! ```
//!
//! ICC is the share of the variance of log length that lies between prompts: near 1, a group has no stragglers of its own
//! and its size cannot matter.

use rollouts::TextTask;
use text_tasks::{Split, TASKS, build};

const PROMPTS: u64 = 500;
const VARIANTS: u64 = 16;

fn mean(x: &[f64]) -> f64 {
    x.iter().sum::<f64>() / x.len() as f64
}

fn variance(x: &[f64]) -> f64 {
    let m = mean(x);
    x.iter().map(|v| (v - m).powi(2)).sum::<f64>() / (x.len() - 1) as f64
}

fn main() -> Result<(), text_tasks::UnknownTask> {
    println!("{PROMPTS} prompts, {VARIANTS} solutions each; characters");
    println!("{:14} {:>6} {:>6} {:>6}  within prompts  between  ICC", "task", "median", "p95", "max");
    for info in TASKS {
        let task = build(info.name, Split::Train)?;
        let logs: Vec<Vec<f64>> = (0..PROMPTS)
            .map(|i| (0..VARIANTS).filter_map(|v| Some((task.solution(i, v)?.len() as f64).ln())).collect())
            .collect();
        let within = mean(&logs.iter().map(|l| variance(l)).collect::<Vec<_>>());
        let means: Vec<f64> = logs.iter().map(|l| mean(l)).collect();
        let between = (variance(&means) - within / VARIANTS as f64).max(0.0);
        let mut lengths: Vec<f64> = logs.concat().iter().map(|l| l.exp().round()).collect();
        lengths.sort_by(f64::total_cmp);
        let at = |share: f64| lengths[(share * (lengths.len() - 1) as f64) as usize];
        println!(
            "{:14} {:>6} {:>6} {:>6}  {within:14.3}  {between:7.3}  {:.2}",
            info.name,
            at(0.5),
            at(0.95),
            at(1.0),
            between / (between + within)
        );
    }
    Ok(())
}
