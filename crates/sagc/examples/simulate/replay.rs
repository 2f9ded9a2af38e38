//! Runs every sizer over a workload.

use sagc::baselines::{GreedyChance, Oracle, PerArmBeta, RandomWithHistogram, Schedule};
use sagc::{ConfigError, Fixed, Gauge, GroupReport, GroupSizer, Sagc, SagcConfig};

use crate::workload::{Random, Workload};

/// What happened, per step or in all.
#[derive(Clone, Default)]
pub struct Run {
    /// Share of groups that straggled.
    pub rate: Vec<f64>,
    /// Group size.
    pub size: Vec<usize>,
    /// Longest rollout.
    pub longest: Vec<f64>,
    /// Length of all groups, each padded to its longest rollout.
    pub padded: f64,
    /// Length of all rollouts.
    pub used: f64,
}

struct Replay<'a> {
    config: &'a SagcConfig,
    workload: &'a Workload,
    rollouts: usize,
    seed: u64,
}

impl Replay<'_> {
    /// `before` is called ahead of every step. Straggling is measured apart from what the sizer measures itself.
    fn run<S: GroupSizer>(&self, sizer: &mut S, mut before: impl FnMut(usize, &mut S)) -> Result<Run, ConfigError> {
        let mut random = Random(self.seed);
        let mut gauge = Gauge::new(self.config.threshold, self.config.reference)?;
        let mut run = Run::default();
        for step in 0..self.workload.steps() {
            before(step, sizer);
            let g = sizer.group_size();
            let (length, cut) = self.workload.draw(self.workload.phase(step), self.rollouts / g, g, &mut random);
            let seen = GroupReport::new(g, &length).with_truncated(&cut);
            sizer.observe(&seen);
            run.rate.push(gauge.observe(&seen).map_or(0.0, |s| s.rate()));
            run.size.push(g);
            let longest = |x: &[f32]| f64::from(x.iter().copied().fold(0.0, f32::max));
            run.longest.push(longest(&length));
            run.padded += length.chunks_exact(g).map(|group| g as f64 * longest(group)).sum::<f64>();
            run.used += length.iter().map(|l| f64::from(*l)).sum::<f64>();
        }
        Ok(run)
    }

    fn plain(&self, sizer: &mut dyn GroupSizer) -> Result<Run, ConfigError> {
        self.run(&mut { sizer }, |_, _| ())
    }
}

/// The name and run of every sizer. The control with SAGC's histogram has the sizes of the same seed's run in another
/// order; the schedule has those of another seed's run, in its order.
pub fn sizers(
    config: &SagcConfig,
    workload: &Workload,
    rollouts: usize,
    seed: u64,
) -> Result<Vec<(String, Run)>, ConfigError> {
    let replay = Replay { config, workload, rollouts, seed };
    let with = |change: fn(&mut SagcConfig)| {
        let mut changed = config.clone();
        change(&mut changed);
        changed
    };
    let mut runs = Vec::new();
    for &g in &config.candidates {
        runs.push((format!("static {g}"), replay.plain(&mut Fixed::new(g)?)?));
    }
    let unguarded = with(|c| c.anti_windup = false);
    runs.push(("queue, no anti-windup".into(), replay.plain(&mut Sagc::new(unguarded)?)?));
    let sagc = replay.plain(&mut Sagc::new(config.clone())?)?;
    runs.push(("**SAGC**".into(), sagc.clone()));
    runs.push(("SAGC, V = 20".into(), replay.plain(&mut Sagc::new(with(|c| c.weight = 20.0))?)?));
    runs.push(("greedy chance, δ = 0.1".into(), replay.plain(&mut GreedyChance::new(config.clone(), 0.1)?)?));
    runs.push(("per-arm Beta".into(), replay.plain(&mut PerArmBeta::new(config.clone())?)?));
    let histogram: Vec<(usize, f64)> =
        config.candidates.iter().map(|g| (*g, sagc.size.iter().filter(|s| *s == g).count() as f64)).collect();
    let mut random = RandomWithHistogram::new(&histogram, seed)?;
    runs.push(("random, SAGC's histogram".into(), replay.plain(&mut random)?));
    let other = Replay { seed: seed + 1_000_000, ..replay }.plain(&mut Sagc::new(config.clone())?)?;
    runs.push(("schedule of another SAGC run".into(), replay.plain(&mut Schedule::new(other.size)?)?));
    let risks = workload.risks(config.threshold, &config.candidates);
    let mut oracle = Oracle::new(config.clone(), &risks[0])?;
    let told = replay.run(&mut oracle, |step, oracle: &mut Oracle| {
        oracle.tell(&risks[workload.phase(step)]).expect("shares lie between 0 and 1");
    })?;
    runs.push(("oracle".into(), told));
    Ok(runs)
}
