//! How likely a group of G straggles, learned from single rollouts and from whole groups.

use alloc::vec;
use alloc::vec::Vec;

use crate::math::beta_cdf;
use crate::random::Random;
use crate::saved::{Line, StateError, Words};
use crate::straggler::Straggling;

/// Probability that at least one of `g` rollouts straggles when a rollout does with probability q ~ Beta(a, b):
///
/// ```text
/// 1 − E[(1−q)^g] = 1 − Π_{j<g} (b+j)/(a+b+j)
/// ```
pub fn beta_binomial_risk(a: f64, b: f64, g: usize) -> f64 {
    1.0 - (0..g).map(|j| (b + j as f64) / (a + b + j as f64)).product::<f64>()
}

/// Beta distribution of the risk of one size, of mean a/(a + b) and worth a + b groups.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Beta {
    pub a: f64,
    pub b: f64,
}

impl Beta {
    pub fn mean(&self) -> f64 {
        self.a / (self.a + self.b)
    }

    /// Probability that the risk is at most `x`.
    pub fn chance_below(&self, x: f64) -> f64 {
        beta_cdf(self.a, self.b, x)
    }

    pub fn draw(&self, random: &mut Random) -> f64 {
        random.beta(self.a, self.b)
    }

    /// Whether the mean lies two standard errors above `x`, were x the true risk: `(mean − x)² > 4·x(1−x)/(a + b)`.
    pub fn clearly_above(&self, x: f64) -> bool {
        let excess = self.mean() - x;
        excess > 0.0 && excess * excess > 4.0 * x * (1.0 - x) / (self.a + self.b)
    }
}

/// Running maximum: risk never falls with size.
pub(crate) fn rising(risks: impl Iterator<Item = f64>) -> Vec<f64> {
    let mut top = 0.0f64;
    risks
        .map(|r| {
            top = top.max(r);
            top
        })
        .collect()
}

/// Straggling groups and all groups of every candidate, faded by γ per step.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct GroupCounts {
    pub events: Vec<f64>,
    pub groups: Vec<f64>,
}

impl GroupCounts {
    pub fn new(candidates: usize) -> Self {
        GroupCounts { events: vec![0.0; candidates], groups: vec![0.0; candidates] }
    }

    /// Fades all counts, then adds a step with groups of candidate `arm`.
    pub fn observe(&mut self, fade: f64, arm: usize, seen: &Straggling) {
        for (e, n) in self.events.iter_mut().zip(&mut self.groups) {
            (*e, *n) = (*e * fade, *n * fade);
        }
        self.events[arm] += seen.events as f64;
        self.groups[arm] += seen.groups as f64;
    }

    /// Every candidate's prior plus its counts.
    pub fn posteriors(&self, prior: impl Iterator<Item = Beta>) -> Vec<Beta> {
        prior
            .zip(self.events.iter().zip(&self.groups))
            .map(|(p, (events, groups))| Beta { a: p.a + events, b: p.b + (groups - events) })
            .collect()
    }

    pub fn write(&self, line: &mut Line) {
        line.floats(&self.events).floats(&self.groups);
    }

    pub fn read(words: &mut Words<'_>, candidates: usize) -> Result<Self, StateError> {
        let events = words.amounts("straggling groups of a candidate", candidates)?;
        let groups = events
            .iter()
            .map(|e| words.word("groups of a candidate, not fewer than straggled", |n: &f64| n.is_finite() && n >= e))
            .collect::<Result<_, _>>()?;
        Ok(GroupCounts { events, groups })
    }
}

/// Posterior of the risk of every candidate size.
///
/// Rollouts share a Beta posterior, which would over-state the risk of groups whose members resemble each other;
/// events counted per size correct it, shrunk towards the shared model. All counts fade by γ per step.
///
/// ```text
/// a ← a₀ + γ(a − a₀) + straggled,   b ← b₀ + γ(b − b₀) + (rollouts − straggled)
/// r(G) ~ Beta(20·r_rollouts(G) + events_G, 20·(1 − r_rollouts(G)) + groups_G − events_G)
/// ```
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct SharedRisk {
    /// Beta parameters of a rollout.
    pub a: f64,
    /// See `a`.
    pub b: f64,
    /// What whole groups did.
    pub counts: GroupCounts,
}

/// Prior of a rollout: mean 5 %, worth ten rollouts.
const PRIOR: [f64; 2] = [0.5, 9.5];
/// Groups that the shared model is worth against those of one size.
const SHRINK: f64 = 20.0;

impl SharedRisk {
    /// The prior, for that many candidates.
    pub fn new(candidates: usize) -> Self {
        SharedRisk { a: PRIOR[0], b: PRIOR[1], counts: GroupCounts::new(candidates) }
    }

    /// Fades all counts by γ, then adds a step with groups of candidate `arm`.
    pub fn observe(&mut self, fade: f64, arm: usize, seen: &Straggling) {
        self.a = PRIOR[0] + fade * (self.a - PRIOR[0]) + seen.straggled as f64;
        self.b = PRIOR[1] + fade * (self.b - PRIOR[1]) + (seen.rollouts - seen.straggled) as f64;
        self.counts.observe(fade, arm, seen);
    }

    /// `sizes`: ascending, one per candidate.
    pub fn posteriors(&self, sizes: &[usize]) -> Vec<Beta> {
        self.counts.posteriors(sizes.iter().map(|&g| {
            let shared = beta_binomial_risk(self.a, self.b, g);
            Beta { a: SHRINK * shared, b: SHRINK * (1.0 - shared) }
        }))
    }

    pub fn write(&self, line: &mut Line) {
        line.floats(&[self.a, self.b]);
        self.counts.write(line);
    }

    pub fn read(words: &mut Words<'_>, candidates: usize) -> Result<Self, StateError> {
        let [a, b] =
            PRIOR.map(|least| words.word("a count of rollouts with its prior", |x: &f64| x.is_finite() && *x >= least));
        Ok(SharedRisk { a: a?, b: b?, counts: GroupCounts::read(words, candidates)? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn group_risk_has_its_closed_form_values() {
        for (a, b, want) in [
            (0.5, 9.5, [0.0932, 0.1644, 0.2676, 0.3946, 0.5264]),
            (50.0, 950.0, [0.0975, 0.1852, 0.3356, 0.5571, 0.8013]),
        ] {
            for (g, want) in [2, 4, 8, 16, 32].into_iter().zip(want) {
                assert!((beta_binomial_risk(a, b, g) - want).abs() < 5e-5, "{a} {b} {g}");
            }
        }
    }

    #[test]
    fn means_and_errors_have_their_hand_computed_values() {
        let mut risk = SharedRisk::new(2);
        risk.observe(0.5, 0, &Straggling { rollouts: 20, straggled: 4, groups: 10, events: 3 });
        risk.observe(0.5, 0, &Straggling { rollouts: 20, straggled: 0, groups: 10, events: 0 });
        assert_eq!((risk.a, risk.b), (0.5 + 2.0, 9.5 + 28.0));
        assert_eq!((risk.counts.events[0], risk.counts.groups[0]), (1.5, 15.0));
        // shared: 1 − (37.5·38.5)/(40·41) = 0.119 664…, then (20·0.119 664 + 1.5)/35
        let posterior = risk.posteriors(&[2, 4]);
        let r = [posterior[0].mean(), posterior[1].mean()];
        assert!((r[0] - (20.0 * (1.0 - 37.5 * 38.5 / 1640.0) + 1.5) / 35.0).abs() < 1e-15, "{r:?}");
        assert!((r[0] - 0.111_237).abs() < 1e-6, "{r:?}");
        // worth 35 groups
        assert!((posterior[0].a + posterior[0].b - 35.0).abs() < 1e-12);
    }

    #[test]
    fn events_of_a_size_outweigh_the_shared_model_in_the_end_and_risk_never_falls_with_size() {
        let mut risk = SharedRisk::new(3);
        for _ in 0..200 {
            // no rollout straggles on its own account, yet every small group is said to
            risk.observe(0.97, 0, &Straggling { rollouts: 128, straggled: 0, groups: 32, events: 32 });
        }
        let r = rising(risk.posteriors(&[4, 8, 16]).iter().map(Beta::mean));
        assert!(r[0] > 0.9 && r[0] <= r[1] && r[1] <= r[2], "{r:?}");
    }

    /// Groups drawn as the model says: q ~ Beta(a, b), then g rollouts of which each straggles with probability q.
    #[test]
    fn group_risk_is_that_of_drawn_groups() {
        const GROUPS: usize = 40_000;
        for (seed, a, b, g) in [(1, 0.5, 9.5, 4), (2, 0.5, 9.5, 32), (3, 2.0, 3.0, 8), (4, 50.0, 950.0, 16)] {
            let mut random = Random(seed);
            let late = (0..GROUPS)
                .filter(|_| {
                    let q = random.beta(a, b);
                    (0..g).filter(|_| random.uniform() < q).count() > 0
                })
                .count();
            let (share, want) = (late as f64 / GROUPS as f64, beta_binomial_risk(a, b, g));
            // four standard errors of a share of 40 000
            assert!((share - want).abs() < 0.01, "seed {seed}, Beta({a}, {b}), group of {g}: {share}, want {want}");
        }
    }

    #[test]
    fn clearly_above_means_two_standard_errors() {
        // mean 0.5 against 0.2: excess 0.3, standard error √(0.16/n), so n > 4·0.16/0.09 = 7.1
        assert!(!Beta { a: 3.5, b: 3.5 }.clearly_above(0.2));
        assert!(Beta { a: 3.6, b: 3.6 }.clearly_above(0.2));
        assert!(!Beta { a: 100.0, b: 900.0 }.clearly_above(0.2));
    }
}
