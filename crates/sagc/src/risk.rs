//! How likely a group of G straggles, learned from single rollouts and from whole groups.

use alloc::vec;
use alloc::vec::Vec;

use crate::straggler::Straggling;

/// Probability that at least one of `g` rollouts straggles when a rollout does with probability q ~ Beta(a, b):
///
/// ```text
/// 1 − E[(1−q)^g] = 1 − Π_{j<g} (b+j)/(a+b+j)
/// ```
pub fn beta_binomial_risk(a: f64, b: f64, g: usize) -> f64 {
    1.0 - (0..g).map(|j| (b + j as f64) / (a + b + j as f64)).product::<f64>()
}

/// Posterior of the risk of every candidate size.
///
/// Rollouts share a Beta posterior, which would over-state the risk of groups whose members resemble each other;
/// events counted per size correct it, shrunk towards the shared model. All counts fade by γ per step.
#[derive(Clone, Debug, PartialEq)]
pub struct Risk {
    /// Beta parameters of a rollout.
    pub a: f64,
    /// See `a`.
    pub b: f64,
    /// Straggling groups seen per candidate, faded.
    pub events: Vec<f64>,
    /// Groups seen per candidate, faded.
    pub groups: Vec<f64>,
}

/// Prior of a rollout: mean 5 %, worth ten rollouts.
const PRIOR: [f64; 2] = [0.5, 9.5];
/// Groups that the shared model is worth against those of one size.
const SHRINK: f64 = 20.0;

impl Risk {
    /// The prior, for that many candidates.
    pub fn new(candidates: usize) -> Self {
        Risk { a: PRIOR[0], b: PRIOR[1], events: vec![0.0; candidates], groups: vec![0.0; candidates] }
    }

    /// Fades all counts by γ, then adds a step with groups of candidate `arm`.
    pub fn observe(&mut self, fade: f64, arm: usize, seen: &Straggling) {
        self.a = PRIOR[0] + fade * (self.a - PRIOR[0]) + seen.straggled as f64;
        self.b = PRIOR[1] + fade * (self.b - PRIOR[1]) + (seen.rollouts - seen.straggled) as f64;
        for (e, n) in self.events.iter_mut().zip(&mut self.groups) {
            (*e, *n) = (*e * fade, *n * fade);
        }
        self.events[arm] += seen.events as f64;
        self.groups[arm] += seen.groups as f64;
    }

    /// Squared standard error of candidate `arm`'s mean risk, were its true risk r: `r(1−r)/(20 + groups_G)`.
    pub fn squared_error(&self, arm: usize, r: f64) -> f64 {
        r * (1.0 - r) / (SHRINK + self.groups[arm])
    }

    /// Mean risk of every candidate, never falling with size. `sizes`: ascending.
    ///
    /// ```text
    /// r̂(G) = (20·r_rollouts(G) + events_G)/(20 + groups_G), then the running maximum
    /// ```
    pub fn means(&self, sizes: &[usize]) -> Vec<f64> {
        let mut top = 0.0f64;
        sizes
            .iter()
            .zip(self.events.iter().zip(&self.groups))
            .map(|(&g, (events, groups))| {
                let shared = beta_binomial_risk(self.a, self.b, g);
                top = top.max((SHRINK * shared + events) / (SHRINK + groups));
                top
            })
            .collect()
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
        let mut risk = Risk::new(2);
        risk.observe(0.5, 0, &Straggling { rollouts: 20, straggled: 4, groups: 10, events: 3 });
        risk.observe(0.5, 0, &Straggling { rollouts: 20, straggled: 0, groups: 10, events: 0 });
        assert_eq!((risk.a, risk.b), (0.5 + 2.0, 9.5 + 28.0));
        assert_eq!((risk.events[0], risk.groups[0]), (1.5, 15.0));
        // shared: 1 − (37.5·38.5)/(40·41) = 0.119 664…, then (20·0.119 664 + 1.5)/35
        let r = risk.means(&[2, 4]);
        assert!((r[0] - (20.0 * (1.0 - 37.5 * 38.5 / 1640.0) + 1.5) / 35.0).abs() < 1e-15, "{r:?}");
        assert!((r[0] - 0.111_237).abs() < 1e-6, "{r:?}");
        assert!((risk.squared_error(0, 0.3) - 0.006).abs() < 1e-15);
    }

    #[test]
    fn events_of_a_size_outweigh_the_shared_model_in_the_end_and_risk_never_falls_with_size() {
        let mut risk = Risk::new(3);
        for _ in 0..200 {
            // no rollout straggles on its own account, yet every small group is said to
            risk.observe(0.97, 0, &Straggling { rollouts: 128, straggled: 0, groups: 32, events: 32 });
        }
        let r = risk.means(&[4, 8, 16]);
        assert!(r[0] > 0.9 && r[0] <= r[1] && r[1] <= r[2], "{r:?}");
    }
}
