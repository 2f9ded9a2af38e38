//! The trainer: asks for groups, compares their members, takes a clipped step.

use std::time::Instant;

use candle_core::backprop::GradStore;
use onpolicy::adam::{clip_scale, squared_norm};
use onpolicy::params::with_slice;
use onpolicy::{Adam, AdamConfig, Bundle, BundleError, Noise, Params, Persist, Policy, Rows, TrainError, Trainer};
use rollouts::Rollout;
use sagc::{GroupReport, GroupSizer};

use crate::advantage::{degenerate_chance, group_advantage, groups, informative};
use crate::config::{ConfigError, GrpoConfig};
use crate::lanes::{Lane, RatioOver, Scored, gather, lanes, score};
use crate::loss::{Aggregate, Sequence, Terms, Totals, overlong};
use crate::report::{Report, Timing};

/// What a source is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ask {
    /// P: prompts, or start states.
    pub groups: usize,
    /// G: rollouts of each.
    pub group_size: usize,
}

/// What a source gives.
pub struct Generated<P: Policy> {
    /// Lanes of one group share a group number; numbers differ within one generation.
    pub rollout: Rollout<P::Obs, P::Trace>,
    /// What it took.
    pub timing: Timing,
}

/// Settings or a policy that make no trainer.
#[derive(Debug, thiserror::Error)]
pub enum SetupError {
    /// A setting.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The first group size.
    #[error(
        "groups of {group_size} do not divide {rollouts} rollouts; change the sizer's sizes or the number of rollouts"
    )]
    GroupSize {
        /// G.
        group_size: usize,
        /// N.
        rollouts: usize,
    },
    /// The reference policy could not be copied.
    #[error(transparent)]
    Tensor(#[from] candle_core::Error),
}

/// Group-relative policy optimisation over any policy, with groups sized by `S`.
///
/// ```text
/// G from the sizer, P = N/G prompts, G rollouts of each
/// A_i = (r_i − mean of its group)/spread
/// θ ← Adam along the clipped gradient of the loss, μ passes of minibatches
/// ```
///
/// A lane is one trajectory: a text, or a whole episode. Its tokens are the factors of its decisions. Shao et al. 2024
/// (arXiv 2402.03300), algorithm 1.
pub struct Grpo<S> {
    config: GrpoConfig,
    sizer: S,
    adam: Vec<Adam>,
    /// Weights of the policy that training started with, if the loss knows a divergence from it.
    reference: Option<Vec<Params>>,
    noise: Noise,
    updates: u64,
    /// Running median length, for the report.
    median: Option<f64>,
    clock: Box<dyn Fn() -> f64>,
}

/// Weight of the past in the running median, as `sagc` has it.
const FADE: f64 = 0.9;

impl<S: GroupSizer> Grpo<S> {
    /// A trainer of that policy.
    ///
    /// Errors: [`SetupError`].
    pub fn new<P: Policy>(config: GrpoConfig, policy: &P, sizer: S, seed: u64) -> Result<Self, SetupError> {
        config.check()?;
        let (group_size, rollouts) = (sizer.group_size(), config.rollouts);
        if group_size < 2 || !rollouts.is_multiple_of(group_size) {
            return Err(SetupError::GroupSize { group_size, rollouts });
        }
        let adam = policy.params().iter().map(|p| Adam::new(p.len(), AdamConfig::default())).collect();
        let copy = || policy.params().iter().map(|p| p.snapshot()).collect::<candle_core::Result<Vec<_>>>();
        let reference = if config.loss.kl.weight > 0.0 { Some(copy()?) } else { None };
        let start = Instant::now();
        Ok(Grpo {
            config,
            sizer,
            adam,
            reference,
            noise: Noise::named(seed, "group-relative updates"),
            updates: 0,
            median: None,
            clock: Box::new(move || start.elapsed().as_secs_f64()),
        })
    }

    /// Measures its own seconds with another clock.
    pub fn with_clock(self, clock: impl Fn() -> f64 + 'static) -> Self {
        Grpo { clock: Box::new(clock), ..self }
    }

    /// The sizer.
    pub fn sizer(&self) -> &S {
        &self.sizer
    }

    /// Updates made.
    pub fn updates(&self) -> u64 {
        self.updates
    }

    /// What the next generation should be.
    pub fn ask(&self) -> Ask {
        let group_size = self.sizer.group_size();
        Ask { groups: (self.config.rollouts / group_size).max(1), group_size }
    }

    /// One update: generates, with refills where dynamic sampling asks for them, and learns. The sizer is told of every
    /// group that was generated, whether it is learned from or not.
    ///
    /// Lanes that were idle throughout count as nothing.
    ///
    /// Errors: the source's, [`TrainError::GroupSize`] if the sizer chose a size that does not divide N, and
    /// [`TrainError::NotFinite`] before it reaches a parameter.
    pub fn step<P: Policy>(
        &mut self,
        policy: &mut P,
        source: &mut dyn FnMut(&P, Ask) -> candle_core::Result<Generated<P>>,
    ) -> Result<Report, TrainError> {
        let ask = self.ask();
        if ask.groups * ask.group_size != self.config.rollouts {
            return Err(TrainError::GroupSize { group_size: ask.group_size, rollouts: self.config.rollouts });
        }
        let mut seen: Vec<Lane> = Vec::new();
        let mut kept: Vec<(P::Obs, P::Trace, Vec<Lane>)> = Vec::new();
        let mut report = Report { group_size: ask.group_size, behaviour_gap: [f64::NAN; 2], ..Report::default() };
        let rounds = self.config.dynamic_sampling.unwrap_or(1);
        let mut missing = ask.groups;
        for round in 0..rounds {
            let generated = source(policy, ask)?;
            report.timing += generated.timing;
            report.refills = round;
            let r = generated.rollout;
            let all: Vec<Lane> = lanes(&r).into_iter().filter(|l| !l.rows.is_empty()).collect();
            let number: Vec<u32> = all.iter().map(|l| l.group).collect();
            let mut chosen = Vec::new();
            for members in groups(&number) {
                let scores: Vec<f32> = members.iter().map(|&i| all[i].score).collect();
                // members next to one another, as the sizer reads them; numbers of different rounds must not meet
                let group = report.groups_seen as u32;
                seen.extend(members.iter().map(|&i| Lane { group, ..all[i].clone() }));
                report.groups_seen += 1;
                report.degenerate += f64::from(!informative(&scores));
                let dynamic = self.config.dynamic_sampling.is_some();
                if !dynamic || (informative(&scores) && missing > 0) {
                    missing = missing.saturating_sub(1);
                    report.groups_kept += 1;
                    chosen.extend(members.iter().map(|&i| Lane { group, ..all[i].clone() }));
                }
            }
            if !chosen.is_empty() {
                let picked: Vec<&Lane> = chosen.iter().collect();
                let (obs, trace) = (gather(&r.obs, &picked)?, gather(&r.trace, &picked)?);
                kept.push((obs, trace, chosen));
            }
            if missing == 0 {
                break;
            }
        }
        report.under_filled = f64::from(missing > 0);
        report.degenerate /= report.groups_seen.max(1) as f64;
        report.describe(&seen, self.config.straggler_threshold, self.median);
        report.degenerate_predicted = degenerate_chance(report.score_mean.clamp(0.0, 1.0), ask.group_size);
        self.tell(&seen, ask.group_size, report.timing.generate_s);
        if kept.is_empty() {
            self.updates += 1;
            return Ok(report);
        }
        let mut all: Vec<Lane> = Vec::new();
        let (mut obs, mut trace) = (Vec::new(), Vec::new());
        for (o, t, lanes) in kept {
            let mut first = all.iter().map(|l| l.rows.len() as u32).sum();
            for mut lane in lanes {
                let n = lane.rows.len() as u32;
                lane.rows = (first..first + n).collect();
                first += n;
                all.push(lane);
            }
            obs.push(o);
            trace.push(t);
        }
        let data = Data { obs: Rows::concat(&obs)?, trace: Rows::concat(&trace)?, lanes: all };
        self.learn(policy, data, &mut report)?;
        self.updates += 1;
        Ok(report)
    }

    /// Lengths to the sizer, before anything was filtered.
    fn tell(&mut self, seen: &[Lane], group_size: usize, seconds: f64) {
        // a group that lost members, or got more, is none of this size
        let whole: Vec<&Lane> =
            seen.chunk_by(|a, b| a.group == b.group).filter(|g| g.len() == group_size).flatten().collect();
        if whole.is_empty() {
            return;
        }
        let length: Vec<f32> = whole.iter().map(|l| l.length as f32).collect();
        let truncated: Vec<bool> = whole.iter().map(|l| l.truncated).collect();
        let report = GroupReport::new(group_size, &length).with_truncated(&truncated);
        self.sizer.observe(&if self.config.tell_seconds { report.with_seconds(seconds) } else { report });
        let latest = sagc::straggler::median(&length);
        self.median = Some(self.median.map_or(latest, |m| FADE * m + (1.0 - FADE) * latest));
    }

    /// All passes over the kept lanes.
    fn learn<P: Policy>(&mut self, policy: &mut P, data: Data<P>, report: &mut Report) -> Result<(), TrainError> {
        let c = self.config.clone();
        let begun = (self.clock)();
        let advantage = self.advantages(&data.lanes, report)?;
        // a lane at its group's mean has advantage 0 and belongs to a group with signal all the same
        let telling: std::collections::BTreeSet<u32> =
            (0..data.lanes.len()).filter(|&i| advantage[i] != 0.0).map(|i| data.lanes[i].group).collect();
        let signal = |i: usize| !c.mask_degenerate || telling.contains(&data.lanes[i].group);
        let live = |l: &Lane| !(c.mask_truncated && l.truncated);
        let usable: Vec<usize> = (0..data.lanes.len()).filter(|&i| live(&data.lanes[i]) && signal(i)).collect();
        // nothing to learn: a step would only let the optimiser's memory move the weights
        let idle = c.loss.kl.weight == 0.0 && usable.iter().all(|&i| advantage[i] == 0.0);
        let reference = self.scores_of_reference(policy, &data)?;
        let mut old: Vec<Option<Vec<f64>>> = vec![None; data.lanes.len()];
        let single = c.epochs * c.minibatches == 1;
        let mut gap = Gap::default();
        if !single || idle {
            for micro in (0..data.lanes.len()).collect::<Vec<_>>().chunks(c.micro_batch) {
                let scored = data.score(policy, micro, c.ratio)?;
                gap.add(scored.gap(&data.pick(micro)));
                for (&i, tokens) in micro.iter().zip(scored.tokens) {
                    old[i] = Some(tokens);
                }
            }
        }
        let scored_at = (self.clock)();
        report.score_s = scored_at - begun;
        let mut tally = Tally::default();
        for epoch in 0..if idle { 0 } else { c.epochs } {
            let order: Vec<usize> = self.noise.permutation(usable.len()).iter().map(|&k| usable[k as usize]).collect();
            for window in order.chunks(order.len().div_ceil(c.minibatches).max(1)) {
                if c.loss.kl.weight == 0.0 && window.iter().all(|&i| advantage[i] == 0.0) {
                    continue; // the optimiser's memory alone would move the weights
                }
                let mut sum = Window::new(policy);
                // how many tokens there are is known when all are scored: a mean over them is divided in the end
                let totals = Totals { sequences: window.len(), tokens: 1 };
                let (before, loss_before) = (tally.tokens, tally.loss);
                for micro in window.chunks(c.micro_batch) {
                    let scored = data.score(policy, micro, c.ratio)?;
                    if single {
                        gap.add(scored.gap(&data.pick(micro)));
                    }
                    let mut slopes = Vec::with_capacity(micro.len());
                    for (&i, new) in micro.iter().zip(&scored.tokens) {
                        let own = old[i].as_deref().unwrap_or(new);
                        let reference = reference.as_ref().map(|r| &r[i][..]);
                        let s = Sequence { log_prob: new, old: own, reference, advantage: f64::from(advantage[i]) };
                        let mut slope = vec![0.0; new.len()];
                        tally.add(&c.loss.evaluate(&s, totals, &mut slope), epoch == 0, new);
                        slopes.push(slope);
                    }
                    sum.add(&scored.pull_back(&slopes)?, policy)?;
                }
                if c.loss.aggregate == Aggregate::TokenMean {
                    let scale = 1.0 / (tally.tokens - before).max(1) as f64;
                    sum.grads.iter_mut().flatten().for_each(|g| *g *= scale as f32);
                    let part = tally.loss - loss_before;
                    tally.loss = loss_before + part * scale;
                    if epoch == 0 {
                        tally.first_loss += part * scale - part;
                    }
                }
                tally.norms.push(self.apply(policy, &sum, tally.loss)?);
            }
        }
        report.update_s = (self.clock)() - scored_at;
        report.behaviour_gap = gap.figures();
        if idle {
            let all: Vec<f64> = old.iter().flatten().flatten().copied().collect();
            report.entropy = -all.iter().sum::<f64>() / all.len().max(1) as f64;
        } else {
            tally.write(report, (tally.norms.len() / c.epochs).max(1));
        }
        Ok(())
    }

    /// Rewards with the punishment of length, relative to their groups.
    fn advantages(&self, lanes: &[Lane], report: &mut Report) -> Result<Vec<f32>, TrainError> {
        let punish = |l: &Lane| {
            self.config.overlong.map_or(0.0, |o| o.factor * overlong(l.length as usize, o.longest, o.margin)) as f32
        };
        let reward: Vec<f32> = lanes.iter().map(|l| l.score + punish(l)).collect();
        let group: Vec<u32> = lanes.iter().map(|l| l.group).collect();
        report.reward_mean = reward.iter().map(|r| f64::from(*r)).sum::<f64>() / reward.len() as f64;
        let mut advantage = vec![0.0; reward.len()];
        group_advantage(&reward, &group, self.config.spread, &mut advantage);
        if advantage.iter().any(|a| !a.is_finite()) {
            return Err(TrainError::NotFinite { what: "a reward", update: self.updates });
        }
        Ok(advantage)
    }

    fn scores_of_reference<P: Policy>(&self, policy: &P, data: &Data<P>) -> Result<Option<Vec<Vec<f64>>>, TrainError> {
        let Some(weights) = &self.reference else { return Ok(None) };
        let reference = policy.snapshot()?;
        for (params, values) in reference.params().iter().zip(weights) {
            params.write(&values.to_vec()?)?;
        }
        let mut all = Vec::with_capacity(data.lanes.len());
        for micro in (0..data.lanes.len()).collect::<Vec<_>>().chunks(self.config.micro_batch) {
            all.extend(data.score(&reference, micro, self.config.ratio)?.tokens);
        }
        Ok(Some(all))
    }

    /// One clipped Adam step; returns the norm before clipping.
    fn apply<P: Policy>(&mut self, policy: &P, sum: &Window, loss: f64) -> Result<f64, TrainError> {
        let norm = sum.grads.iter().map(|g| squared_norm(g)).sum::<f64>().sqrt();
        if !(norm.is_finite() && loss.is_finite()) {
            return Err(TrainError::NotFinite { what: "the loss or its gradient", update: self.updates });
        }
        let c = &self.config;
        let rise = if c.lr_warm_up == 0 { 1.0 } else { ((self.updates + 1) as f64 / c.lr_warm_up as f64).min(1.0) };
        let left = if c.anneal_updates == 0 { 1.0 } else { 1.0 - self.updates as f64 / c.anneal_updates as f64 };
        let (scale, lr) = (clip_scale(norm, c.clip_norm) as f32, c.lr * rise * left.max(0.0));
        for ((params, grad), adam) in policy.params().into_iter().zip(&sum.grads).zip(&mut self.adam) {
            if c.weight_decay > 0.0 {
                let keep = (1.0 - lr * c.weight_decay) as f32;
                params.update(|p| p.iter_mut().for_each(|p| *p *= keep))?;
            }
            adam.step_params(params, grad, scale, lr)?;
        }
        Ok(norm)
    }
}

/// Kept lanes, their rows one after the other.
struct Data<P: Policy> {
    obs: P::Obs,
    trace: P::Trace,
    lanes: Vec<Lane>,
}

impl<P: Policy> Data<P> {
    fn pick(&self, lanes: &[usize]) -> Vec<&Lane> {
        lanes.iter().map(|&i| &self.lanes[i]).collect()
    }

    fn score(&self, policy: &P, lanes: &[usize], over: RatioOver) -> candle_core::Result<Scored> {
        let picked = self.pick(lanes);
        let rows: Vec<usize> = picked.iter().map(|l| l.rows.len()).collect();
        score(policy, &gather(&self.obs, &picked)?, &gather(&self.trace, &picked)?, &rows, over)
    }
}

/// Gradient of one optimiser step, summed over micro-batches.
struct Window {
    grads: Vec<Vec<f32>>,
}

impl Window {
    fn new<P: Policy>(policy: &P) -> Self {
        Window { grads: policy.params().iter().map(|p| vec![0.0; p.len()]).collect() }
    }

    fn add<P: Policy>(&mut self, loss: &candle_core::Tensor, policy: &P) -> Result<(), TrainError> {
        let mut store: GradStore = loss.backward()?;
        for (sum, params) in self.grads.iter_mut().zip(policy.params()) {
            if let Some(grad) = store.remove(params.var().as_tensor()) {
                let add = |g: &[f32]| sum.iter_mut().zip(g).for_each(|(s, g)| *s += g);
                with_slice(&grad.contiguous()?, add)?;
            }
        }
        Ok(())
    }
}

#[derive(Default)]
struct Gap {
    most: f64,
    sum: f64,
    count: usize,
}

impl Gap {
    fn add(&mut self, (most, sum, count): (f64, f64, usize)) {
        self.most = if most > self.most || most.is_nan() { most } else { self.most };
        self.sum += sum;
        self.count += count;
    }

    fn figures(&self) -> [f64; 2] {
        if self.count == 0 { [f64::NAN; 2] } else { [self.most, self.sum / self.count as f64] }
    }
}

/// Sums over tokens and steps.
#[derive(Default)]
struct Tally {
    loss: f64,
    kl: f64,
    tokens: usize,
    low: usize,
    high: usize,
    first_loss: f64,
    first_tokens: usize,
    surprise: f64,
    norms: Vec<f64>,
}

impl Tally {
    fn add(&mut self, t: &Terms, first: bool, log_prob: &[f64]) {
        self.loss += t.loss;
        self.kl += t.kl;
        self.tokens += t.tokens;
        self.low += t.clipped_low;
        self.high += t.clipped_high;
        if first {
            self.first_loss += t.loss;
            self.first_tokens += t.tokens;
            self.surprise -= log_prob.iter().sum::<f64>();
        }
    }

    fn write(&self, report: &mut Report, minibatches: usize) {
        let tokens = self.tokens.max(1) as f64;
        report.loss = self.first_loss / minibatches as f64;
        report.kl = self.kl / tokens;
        report.clipped_low = self.low as f64 / tokens;
        report.clipped_high = self.high as f64 / tokens;
        report.entropy = self.surprise / self.first_tokens.max(1) as f64;
        report.grad_norm = self.norms.iter().sum::<f64>() / self.norms.len().max(1) as f64;
    }
}

impl<P: Policy, S: GroupSizer> Trainer<P> for Grpo<S> {
    type Report = Report;

    fn group_size(&self) -> usize {
        self.sizer.group_size()
    }

    /// Learns from one rollout as it is, without refills.
    ///
    /// Errors: [`TrainError::NotFinite`] before it reaches a parameter.
    fn update(&mut self, policy: &mut P, rollout: Rollout<P::Obs, P::Trace>) -> Result<Report, TrainError> {
        let dynamic = self.config.dynamic_sampling.take();
        let mut rollout = Some(rollout);
        let report = self.step(policy, &mut |_, _| {
            let rollout = rollout.take().expect("one round asks once");
            Ok(Generated { rollout, timing: Timing::default() })
        });
        self.config.dynamic_sampling = dynamic;
        report
    }
}

impl<S: GroupSizer> Persist for Grpo<S> {
    fn save(&self, prefix: &str, to: &mut Bundle) {
        for (i, adam) in self.adam.iter().enumerate() {
            adam.save(&format!("{prefix}.adam.{i}"), to);
        }
        for (i, params) in self.reference.iter().flatten().enumerate() {
            params.save(&format!("{prefix}.reference.{i}"), to);
        }
        self.noise.save(prefix, to);
        to.put_u64(&format!("{prefix}.updates"), &[self.updates, self.median.unwrap_or(f64::NAN).to_bits()]);
        to.put_text(&format!("{prefix}.sizer"), self.sizer.save());
    }

    fn load(&mut self, prefix: &str, from: &Bundle) -> Result<(), BundleError> {
        for (i, adam) in self.adam.iter_mut().enumerate() {
            adam.load(&format!("{prefix}.adam.{i}"), from)?;
        }
        for (i, params) in self.reference.iter_mut().flatten().enumerate() {
            params.load(&format!("{prefix}.reference.{i}"), from)?;
        }
        self.noise.load(prefix, from)?;
        let counts = from.u64s(&format!("{prefix}.updates"), 2)?;
        (self.updates, self.median) = (counts[0], Some(f64::from_bits(counts[1])).filter(|m| !m.is_nan()));
        let name = format!("{prefix}.sizer");
        let saved = from.text(&name)?;
        self.sizer.restore(saved).map_err(|e| BundleError::Mismatch {
            name,
            found: saved.into(),
            expected: e.to_string(),
        })
    }
}
