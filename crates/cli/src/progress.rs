//! The bar on a terminal; nothing where there is none.

use std::io::{IsTerminal, stderr};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::metrics::Line;

/// Progress of a run in its own unit.
pub(crate) struct Progress(ProgressBar);

impl Progress {
    pub(crate) fn new(total: u64, done: u64, unit: &str) -> Self {
        let bar = ProgressBar::with_draw_target(
            Some(total),
            if stderr().is_terminal() { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() },
        );
        let style = ProgressStyle::with_template(&format!(
            "{{bar:24}} {{human_pos}}/{{human_len}} {unit}  {{msg}}  {{eta}} left"
        ));
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
        let message = if line.get("group_size").is_some() {
            format!(
                "score {}  held out {}  groups of {}  length {}",
                number("score_mean", 3),
                number("held_out", 3),
                number("group_size", 0),
                number("length_mean", 0)
            )
        } else if line.get("supervised_loss").is_some() {
            format!("warm-up: loss {} nats a token", number("supervised_loss", 3))
        } else {
            format!("{} steps/s  return {}  KL {}", number("steps_per_s", 0), number("return_mean", 1), number("kl", 3))
        };
        self.0.set_message(message);
        self.0.set_position(env_steps);
    }

    pub(crate) fn finish(&self) {
        self.0.finish_and_clear();
    }
}
