//! What a large group is worth.

use alloc::vec::Vec;

/// What a group of G is worth to the learner, in [0, 1]; no reward is read.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Utility {
    /// ```text
    /// U(G) = 1 − 1/G
    /// ```
    ///
    /// A baseline that is the group's mean, the sample itself included, scales the expected gradient by (G−1)/G.
    BaselineBias,
    /// The chance that a group holds both outcomes of a binary reward whose success probability is p ~ Beta(u, v); a
    /// group without both teaches nothing.
    ///
    /// ```text
    /// U(G) = E[1 − p^G − (1−p)^G] = 1 − Π_{j<G} (u+j)/(u+v+j) − Π_{j<G} (v+j)/(u+v+j)
    /// u = v = 1:  U(G) = (G−1)/(G+1)
    /// ```
    ///
    /// Hard tasks: u < v. Both above 0.
    Informative {
        /// u, weight of success.
        u: f64,
        /// v, weight of failure.
        v: f64,
    },
    /// [`Utility::Informative`] per second, over the largest of the candidates:
    ///
    /// ```text
    /// U(G)/T̂(G) / max_{G'} U(G')/T̂(G')
    /// ```
    ///
    /// T̂(G) are faded means of [`crate::GroupReport::seconds`] per candidate. Until one is measured, or when that is
    /// long ago (about 100 steps at γ = 0.97), it is thought well of so that it is tried: from the nearest measured size
    /// G', T̂(G) = T̂(G')·min(1, G/G'). Without any seconds only U counts.
    PerSecond {
        /// u, weight of success.
        u: f64,
        /// v, weight of failure.
        v: f64,
    },
}

impl Default for Utility {
    /// [`Utility::Informative`] with uniform p.
    fn default() -> Self {
        Utility::Informative { u: 1.0, v: 1.0 }
    }
}

impl Utility {
    /// U of every candidate. `sizes`, `seconds`: `[candidates]`; only [`Utility::PerSecond`] reads the seconds a step
    /// takes with each size, all above 0.
    ///
    /// Panics if the slices differ in length.
    pub fn values(&self, sizes: &[usize], seconds: &[f64]) -> Vec<f64> {
        assert_eq!(sizes.len(), seconds.len(), "seconds of every candidate");
        match *self {
            Utility::BaselineBias => sizes.iter().map(|&g| 1.0 - 1.0 / g as f64).collect(),
            Utility::Informative { u, v } => sizes.iter().map(|&g| informative(u, v, g)).collect(),
            Utility::PerSecond { u, v } => {
                let rate: Vec<f64> = sizes.iter().zip(seconds).map(|(&g, t)| informative(u, v, g) / t).collect();
                let top = rate.iter().copied().fold(f64::MIN_POSITIVE, f64::max);
                rate.iter().map(|r| r / top).collect()
            }
        }
    }

    /// The parameters u and v, where there are any.
    pub(crate) fn parameters(&self) -> [f64; 2] {
        match *self {
            Utility::BaselineBias => [1.0, 1.0],
            Utility::Informative { u, v } | Utility::PerSecond { u, v } => [u, v],
        }
    }
}

fn informative(u: f64, v: f64, g: usize) -> f64 {
    let all = |w: f64| (0..g).map(|j| (w + j as f64) / (u + v + j as f64)).product::<f64>();
    // rounding may end a hair below 0
    (1.0 - all(u) - all(v)).max(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn close(got: &[f64], want: &[f64]) {
        assert!(
            got.len() == want.len() && got.iter().zip(want).all(|(g, w)| (g - w).abs() < 1e-14),
            "{got:?} {want:?}"
        );
    }

    #[test]
    fn utilities_have_their_hand_computed_values() {
        let sizes = [4, 8, 16, 32];
        let none = [1.0; 4];
        close(&Utility::BaselineBias.values(&sizes, &none), &[0.75, 0.875, 0.9375, 0.96875]);
        close(&Utility::default().values(&sizes, &none), &[3.0 / 5.0, 7.0 / 9.0, 15.0 / 17.0, 31.0 / 33.0]);
        // Beta(1, 2), G = 2: 1 − (1·2)/(3·4) − (2·3)/(3·4) = 1/3;  G = 4: 1 − 24/360 − 120/360 = 0.6
        close(&Utility::Informative { u: 1.0, v: 2.0 }.values(&[2, 4], &[1.0; 2]), &[1.0 / 3.0, 0.6]);
        // per second: 1/3 over 1 s, 3/5 over 4 s = 0.15; over the larger: 1 and 0.45
        close(&Utility::PerSecond { u: 1.0, v: 1.0 }.values(&[2, 4], &[1.0, 4.0]), &[1.0, 0.45]);
        close(&Utility::PerSecond { u: 1.0, v: 1.0 }.values(&[2, 4], &[1.0, 1.0]), &[5.0 / 9.0, 1.0]);
    }

    #[test]
    fn every_utility_lies_in_the_unit_interval_and_all_but_per_second_rise_with_size() {
        let sizes: Vec<usize> = (2..200).collect();
        let seconds: Vec<f64> = sizes.iter().map(|g| 3.0 + (g % 7) as f64).collect();
        for (u, v) in [(1.0, 1.0), (0.01, 0.01), (0.2, 30.0), (50.0, 50.0)] {
            for kind in [Utility::BaselineBias, Utility::Informative { u, v }, Utility::PerSecond { u, v }] {
                let value = kind.values(&sizes, &seconds);
                assert!(value.iter().all(|x| (0.0..=1.0).contains(x)), "{kind:?}");
                let rises = value.windows(2).all(|w| w[0] <= w[1]);
                assert!(rises || matches!(kind, Utility::PerSecond { .. }), "{kind:?}");
            }
        }
    }
}
