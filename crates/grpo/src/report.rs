//! What one update tells.

use rollouts::Scalars;
use sagc::straggler::max_over_median;
use sagc::{GroupReport, Straggling};

use crate::lanes::Lane;

/// Seconds and tokens of a generation, as the source measured them.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Timing {
    /// All of it.
    pub generate_s: f64,
    /// Of which waiting for the last rows, not filling the batch.
    pub tail_s: f64,
    /// Tokens or steps that rollouts are made of.
    pub useful: u64,
    /// Those and the padding that was computed with them.
    pub computed: u64,
}

impl std::ops::AddAssign for Timing {
    fn add_assign(&mut self, other: Timing) {
        self.generate_s += other.generate_s;
        self.tail_s += other.tail_s;
        self.useful += other.useful;
        self.computed += other.computed;
    }
}

/// What one update tells. Names are those of [`Scalars`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Report {
    /// Loss of the first pass.
    pub loss: f64,
    /// Mean divergence from the reference per token, nats; 0 without one.
    pub kl: f64,
    /// Norm of the gradient before clipping, mean over steps.
    pub grad_norm: f64,
    /// Mean reward as the source gave it.
    pub score_mean: f64,
    /// Mean reward with the punishment of length.
    pub reward_mean: f64,
    /// G.
    pub group_size: usize,
    /// Groups that were trained on, and generated.
    pub groups_kept: usize,
    /// See `groups_kept`.
    pub groups_seen: usize,
    /// Rollouts generated.
    pub rollouts: usize,
    /// Share of generated groups without signal: their loss is 0 however long one trains.
    pub degenerate: f64,
    /// The same as predicted from the mean score, were all prompts equally hard.
    pub degenerate_predicted: f64,
    /// Rounds of generation beyond the first.
    pub refills: u32,
    /// 1 if there were not enough groups with signal even so.
    pub under_filled: f64,
    /// Share of tokens whose gradient was dropped at the low side. Where an update is one step, every ratio is 1 by
    /// construction and both are 0.
    pub clipped_low: f64,
    /// At the high side.
    pub clipped_high: f64,
    /// Share of rollouts that were cut at the longest length; above ½ scores say little.
    pub truncated: f64,
    /// Mean, median, 95th and 99th percentile and largest length.
    pub length: [f64; 5],
    /// Mean length of rollouts that earned more than half of the highest reward, and of the others.
    pub length_right: f64,
    /// See `length_right`.
    pub length_wrong: f64,
    /// Share of groups with a rollout longer than κ running medians.
    pub stragglers: f64,
    /// Share of groups whose longest is more than κ times their own median.
    pub stragglers_in_group: f64,
    /// Mean over groups of longest over median.
    pub max_over_median: f64,
    /// Mean of −ln π of drawn tokens: an estimate of the entropy, nats.
    pub entropy: f64,
    /// Largest and mean difference between the log-probabilities that the source kept and those computed again.
    pub behaviour_gap: [f64; 2],
    /// Generation.
    pub timing: Timing,
    /// Seconds of scoring before the first step; 0 where the first step does it.
    pub score_s: f64,
    /// Seconds of optimiser steps.
    pub update_s: f64,
}

impl Scalars for Report {
    fn each(&self, f: &mut dyn FnMut(&'static str, f64)) {
        let n = |x: usize| x as f64;
        for (name, value) in [
            ("score_mean", self.score_mean),
            ("reward_mean", self.reward_mean),
            ("loss", self.loss),
            ("kl", self.kl),
            ("grad_norm", self.grad_norm),
            ("entropy", self.entropy),
            ("group_size", n(self.group_size)),
            ("groups_kept", n(self.groups_kept)),
            ("groups_seen", n(self.groups_seen)),
            ("rollouts", n(self.rollouts)),
            ("degenerate", self.degenerate),
            ("degenerate_predicted", self.degenerate_predicted),
            ("refills", f64::from(self.refills)),
            ("under_filled", self.under_filled),
            ("clipped_low", self.clipped_low),
            ("clipped_high", self.clipped_high),
            ("truncated", self.truncated),
            ("length_mean", self.length[0]),
            ("length_p50", self.length[1]),
            ("length_p95", self.length[2]),
            ("length_p99", self.length[3]),
            ("length_max", self.length[4]),
            ("length_right", self.length_right),
            ("length_wrong", self.length_wrong),
            ("stragglers", self.stragglers),
            ("stragglers_in_group", self.stragglers_in_group),
            ("max_over_median", self.max_over_median),
            ("behaviour_gap_max", self.behaviour_gap[0]),
            ("behaviour_gap_mean", self.behaviour_gap[1]),
            ("tokens_useful", self.timing.useful as f64),
            ("tokens_computed", self.timing.computed as f64),
            ("generate_s", self.timing.generate_s),
            ("tail_s", self.timing.tail_s),
            ("score_s", self.score_s),
            ("update_s", self.update_s),
        ] {
            f(name, value);
        }
    }
}

impl Report {
    /// What the lanes themselves tell: scores and lengths. `normal`: running median of earlier updates.
    pub(crate) fn describe(&mut self, lanes: &[Lane], threshold: f64, normal: Option<f64>) {
        if lanes.is_empty() {
            return;
        }
        let n = lanes.len() as f64;
        let mean = |x: &[f64]| x.iter().sum::<f64>() / x.len() as f64;
        self.rollouts = lanes.len();
        self.score_mean = lanes.iter().map(|l| f64::from(l.score)).sum::<f64>() / n;
        self.truncated = lanes.iter().filter(|l| l.truncated).count() as f64 / n;
        let mut sorted: Vec<f64> = lanes.iter().map(|l| f64::from(l.length)).collect();
        sorted.sort_by(f64::total_cmp);
        // nearest rank
        let at = |share: f64| sorted[((share * n).ceil() as usize).clamp(1, sorted.len()) - 1];
        self.length = [mean(&sorted), at(0.5), at(0.95), at(0.99), at(1.0)];
        let best = lanes.iter().map(|l| l.score).fold(f32::NEG_INFINITY, f32::max);
        let worst = lanes.iter().map(|l| l.score).fold(f32::INFINITY, f32::min);
        let (right, wrong): (Vec<&Lane>, Vec<&Lane>) = lanes.iter().partition(|l| l.score > 0.5 * best.max(worst));
        let length = |l: &[&Lane]| mean(&l.iter().map(|l| f64::from(l.length)).collect::<Vec<_>>());
        (self.length_right, self.length_wrong) = (length(&right), length(&wrong));
        let whole = lanes.chunk_by(|a, b| a.group == b.group).filter(|g| g.len() == self.group_size).flatten();
        let lengths: Vec<f32> = whole.map(|l| l.length as f32).collect();
        if lengths.is_empty() {
            (self.stragglers, self.stragglers_in_group, self.max_over_median) = (f64::NAN, f64::NAN, f64::NAN);
            return;
        }
        let report = GroupReport::new(self.group_size, &lengths);
        let rate = |normal| Straggling::count(&report, threshold, normal).map_or(f64::NAN, |s| s.rate());
        self.stragglers = rate(Some(normal.unwrap_or_else(|| sagc::straggler::median(&lengths))));
        self.stragglers_in_group = rate(None);
        let ratios: Vec<f64> = lengths.chunks_exact(self.group_size).map(max_over_median).collect();
        self.max_over_median = mean(&ratios);
    }
}
