//! What all adaptive sizers share: measuring, booking, and moving along the candidates. They differ in their risk.

use alloc::vec::Vec;

use crate::gauge::Gauge;
use crate::ladder::{Ladder, best, nearest};
use crate::queue::BudgetQueue;
use crate::random::Random;
use crate::risk::Beta;
use crate::saved::{Line, StateError, Words, list};
use crate::status::Status;
use crate::straggler::Straggling;
use crate::timing::StepTimes;
use crate::{ConfigError, Estimate, GroupReport, SagcConfig};

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Control {
    pub config: SagcConfig,
    gauge: Gauge,
    queue: BudgetQueue,
    ladder: Ladder,
    times: StepTimes,
    random: Random,
}

impl Control {
    pub fn new(config: SagcConfig) -> Result<Self, ConfigError> {
        config.check()?;
        let n = config.candidates.len();
        let start = config.start.and_then(|start| config.candidates.iter().position(|g| *g == start));
        let seed = match config.estimate {
            Estimate::Mean => 0,
            Estimate::Thompson { seed } => seed,
        };
        Ok(Control {
            gauge: Gauge::new(config.threshold, config.reference)?,
            queue: BudgetQueue::default(),
            ladder: Ladder { arm: start.unwrap_or(n - 1), since_change: 0 },
            times: StepTimes::new(n),
            random: Random(seed),
            config,
        })
    }

    pub fn candidates(&self) -> usize {
        self.config.candidates.len()
    }

    pub fn group_size(&self) -> usize {
        self.config.candidates[self.ladder.arm]
    }

    /// Measures a step. `None`, and nothing changed, if the report is not usable. A size that is no candidate is taken for
    /// the nearest one.
    pub fn take(&mut self, seen: &GroupReport<'_>) -> Option<(usize, Straggling)> {
        let count = self.gauge.observe(seen)?;
        let arm = nearest(&self.config.candidates, seen.group_size);
        self.times.observe(self.config.fade, arm, seen.seconds);
        Some((arm, count))
    }

    /// Books a step. `out_of_reach`: what was thought of the smallest size before it.
    pub fn book(&mut self, count: &Straggling, out_of_reach: bool) {
        let withhold = self.config.anti_windup && self.ladder.arm == 0 && out_of_reach;
        self.queue.book(count.rate() - self.config.budget, withhold);
    }

    /// The number that stands for the risk of every candidate.
    pub fn estimate(&mut self, posteriors: &[Beta]) -> Vec<f64> {
        match self.config.estimate {
            Estimate::Mean => posteriors.iter().map(Beta::mean).collect(),
            Estimate::Thompson { .. } => posteriors.iter().map(|p| p.draw(&mut self.random)).collect(),
        }
    }

    /// Drift plus penalty: moves towards argmax V·U(G) − Q·r(G).
    pub fn choose(&mut self, risks: &[f64]) {
        let utility = self.config.utility.values(&self.config.candidates, &self.times.means(&self.config.candidates));
        let scores: Vec<f64> =
            utility.iter().zip(risks).map(|(u, r)| self.config.weight * u - self.queue.queue * r).collect();
        self.move_towards(best(self.ladder.arm, &scores));
    }

    pub fn move_towards(&mut self, goal: usize) {
        self.ladder.climb(self.config.dwell, goal);
    }

    pub fn status(&self, risks: &[f64], out_of_reach: bool) -> Status {
        Status {
            group_size: self.group_size(),
            steps: self.gauge.steps(),
            straggler_rate: self.gauge.rate(),
            budget: self.config.budget,
            queue: self.queue.queue,
            infeasible_debt: self.queue.debt,
            out_of_reach,
            clipped: self.gauge.clipped(),
            risks: self.config.candidates.iter().copied().zip(risks.iter().copied()).collect(),
        }
    }

    pub fn write(&self, header: &'static str) -> Line {
        let mut line = Line::new(header);
        line.word(list(&self.config.candidates)).word(self.ladder.arm).word(self.ladder.since_change);
        line.floats(&[self.queue.queue, self.queue.debt]).word(self.random.0);
        self.gauge.write(&mut line);
        line.floats(&self.times.sum).floats(&self.times.weight);
        line
    }

    /// What was written, with the settings of `self`, and the words that follow.
    pub fn read<'a>(&self, header: &'static str, saved: &'a str) -> Result<(Self, Words<'a>), StateError> {
        let n = self.candidates();
        let mut words = Words::open(header, saved)?;
        words.exactly("the candidates", &list(&self.config.candidates))?;
        let control = Control {
            ladder: Ladder {
                arm: words.word("index of a candidate", |arm| *arm < n)?,
                since_change: words.word("steps since the last change", |_| true)?,
            },
            queue: BudgetQueue { queue: words.amount("queue")?, debt: words.amount("infeasible debt")? },
            random: Random(words.word("state of the generator", |_| true)?),
            gauge: self.gauge.read(&mut words)?,
            times: StepTimes {
                sum: words.amounts("seconds of a candidate", n)?,
                weight: words.amounts("steps of a candidate", n)?,
            },
            config: self.config.clone(),
        };
        Ok((control, words))
    }
}
