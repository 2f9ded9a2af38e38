//! The bar on a terminal; nothing where there is none.

use std::io::{IsTerminal, stderr};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::metrics::Line;

/// Progress of a run in environment steps.
pub(crate) struct Progress(ProgressBar);

impl Progress {
    pub(crate) fn new(total: u64, done: u64) -> Self {
        let bar = ProgressBar::with_draw_target(
            Some(total),
            if stderr().is_terminal() { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() },
        );
        let style = ProgressStyle::with_template("{bar:24} {human_pos}/{human_len} steps  {msg}  {eta} left");
        bar.set_style(style.expect("the template is well-formed"));
        bar.set_position(done);
        bar.reset_eta();
        Progress(bar)
    }

    pub(crate) fn show(&self, env_steps: u64, line: &Line) {
        let number = |name: &str, digits: usize| match line.get(name) {
            Some(x) => format!("{x:.digits$}"),
            None => "-".into(),
        };
        self.0.set_message(format!(
            "{} steps/s  return {}  KL {}",
            number("steps_per_s", 0),
            number("return_mean", 1),
            number("kl", 3)
        ));
        self.0.set_position(env_steps);
    }

    pub(crate) fn finish(&self) {
        self.0.finish_and_clear();
    }
}
