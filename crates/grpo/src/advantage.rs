//! Rewards relative to their group.

/// What a group's centred rewards are divided by.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Spread {
    /// Standard deviation with divisor G, plus ε. The mean squared advantage is 1 whatever the group size, so a changing
    /// group size does not change the step.
    Population {
        /// Added to the deviation.
        eps: f64,
    },
    /// Standard deviation with divisor G − 1, plus ε: the form of common trainers. The mean squared advantage is
    /// (G−1)/G.
    Sample {
        /// Added to the deviation.
        eps: f64,
    },
    /// Nothing (Dr. GRPO).
    None,
    /// Nothing, and the baseline is the mean of the other members: G/(G−1)·(r − mean).
    LeaveOneOut,
}

/// Advantage of each member of each group.
///
/// ```text
/// A_i = (r_i − mean r) / spread
/// ```
///
/// `reward`: `[groups * G]`, members next to each other. A group whose rewards are all equal gets exactly 0;
/// a reward that is not finite makes its own group's advantages NaN, and no other's.
///
/// Panics if `group_size` is below 2 or does not divide the length, or if the lengths differ.
pub fn group_advantage(reward: &[f32], group_size: usize, spread: Spread, out: &mut [f32]) {
    assert!(group_size >= 2, "a group of {group_size} has nothing to compare");
    assert!(reward.len().is_multiple_of(group_size), "{} rewards are no groups of {group_size}", reward.len());
    assert_eq!(reward.len(), out.len());
    let n = group_size as f64;
    for (r, a) in reward.chunks_exact(group_size).zip(out.chunks_exact_mut(group_size)) {
        if r.iter().all(|x| *x == r[0]) {
            a.fill(0.0);
            continue;
        }
        let mean = r.iter().map(|x| f64::from(*x)).sum::<f64>() / n;
        let square = r.iter().map(|x| (f64::from(*x) - mean).powi(2)).sum::<f64>();
        let scale = match spread {
            Spread::Population { eps } => 1.0 / ((square / n).sqrt() + eps),
            Spread::Sample { eps } => 1.0 / ((square / (n - 1.0)).sqrt() + eps),
            Spread::None => 1.0,
            Spread::LeaveOneOut => n / (n - 1.0),
        };
        for (a, r) in a.iter_mut().zip(r) {
            *a = ((f64::from(*r) - mean) * scale) as f32;
        }
    }
}

/// Whether a group's rewards differ: the others have no gradient (DAPO's dynamic sampling leaves them out).
pub fn informative(reward: &[f32]) -> bool {
    reward.iter().any(|r| *r != reward[0])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(reward: &[f32], g: usize, spread: Spread) -> Vec<f32> {
        let mut out = vec![f32::NAN; reward.len()];
        group_advantage(reward, g, spread, &mut out);
        out
    }

    fn close(got: &[f32], want: &[f64]) {
        for (g, w) in got.iter().zip(want) {
            assert!((f64::from(*g) - w).abs() < 1e-6, "{got:?} {want:?}");
        }
    }

    #[test]
    fn advantages_have_their_hand_computed_values() {
        let r = [1.0, 0.0, 0.0, 1.0];
        close(&of(&r, 4, Spread::Sample { eps: 1e-4 }), &[0.865_875, -0.865_875, -0.865_875, 0.865_875]);
        let one = [1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0];
        close(&of(&one, 8, Spread::Sample { eps: 1e-4 })[..2], &[2.474_174, -0.353_453]);
        close(&of(&[1.0, 0.0], 2, Spread::Sample { eps: 1e-4 }), &[0.707_007, -0.707_007]);
        close(&of(&[3.0, 1.0], 2, Spread::None), &[1.0, -1.0]);
        // the others' mean is the baseline: 3 − 1 and 1 − 3
        close(&of(&[3.0, 1.0], 2, Spread::LeaveOneOut), &[2.0, -2.0]);
    }

    #[test]
    fn equal_rewards_get_exactly_nothing_even_without_epsilon() {
        for spread in [Spread::Population { eps: 0.0 }, Spread::Sample { eps: 0.0 }, Spread::None, Spread::LeaveOneOut]
        {
            assert_eq!(of(&[0.1; 6], 3, spread), [0.0; 6]);
        }
        assert!(!informative(&[0.1; 3]) && informative(&[0.1, 0.1, 0.2]));
    }

    #[test]
    fn groups_do_not_see_each_other_and_order_within_one_does_not_matter() {
        let spread = Spread::Population { eps: 1e-6 };
        let both = of(&[1.0, 2.0, 4.0, 100.0, 200.0, 0.0], 3, spread);
        assert_eq!(both[..3], of(&[1.0, 2.0, 4.0], 3, spread));
        assert_eq!([both[2], both[0], both[1]], of(&[4.0, 1.0, 2.0], 3, spread)[..]);
    }

    #[test]
    fn a_reward_that_is_no_number_spoils_its_own_group_only() {
        let a = of(&[f32::NAN, 1.0, 2.0, 4.0], 2, Spread::None);
        assert!(a[0].is_nan() && a[1].is_nan());
        assert_eq!(a[2..], [-1.0, 1.0]);
    }

    #[test]
    fn population_advantages_have_unit_mean_square_whatever_the_group_size() {
        for g in [2, 8, 32] {
            let reward: Vec<f32> = (0..g).map(|i| (i % 2) as f32).collect();
            let a = of(&reward, g, Spread::Population { eps: 0.0 });
            assert!((a.iter().map(|x| x * x).sum::<f32>() / g as f32 - 1.0).abs() < 1e-6);
        }
    }
}
