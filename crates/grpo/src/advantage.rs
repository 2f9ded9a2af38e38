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
    /// Standard deviation of all rewards of the batch about their own mean, with divisor N − 1, plus ε: groups keep
    /// their different spreads.
    Batch {
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
/// A_i = (r_i − mean r over i's group) / spread
/// ```
///
/// `reward`, `group`, `out`: `[N]`. Members are those with one group number, wherever they stand, and groups may differ in
/// size. A group whose rewards are all equal gets exactly 0, and so does a group of one, which has nothing to compare;
/// a reward that is not finite makes its own group's advantages NaN, and no other's (unless the spread is the batch's).
///
/// Panics if the lengths differ.
pub fn group_advantage(reward: &[f32], group: &[u32], spread: Spread, out: &mut [f32]) {
    assert_eq!((reward.len(), group.len()), (out.len(), out.len()));
    let batch = match spread {
        Spread::Batch { eps } => {
            let all: Vec<usize> = (0..reward.len()).collect();
            let (_, square) = moments(reward, &all);
            (square / (reward.len() as f64 - 1.0).max(1.0)).sqrt() + eps
        }
        _ => 1.0,
    };
    for members in groups(group) {
        let first = reward[members[0]];
        if members.iter().all(|&i| reward[i] == first) {
            members.iter().for_each(|&i| out[i] = 0.0);
            continue;
        }
        let n = members.len() as f64;
        let (mean, square) = moments(reward, &members);
        let scale = match spread {
            _ if members.len() < 2 => f64::NAN,
            Spread::Population { eps } => 1.0 / ((square / n).sqrt() + eps),
            Spread::Sample { eps } => 1.0 / ((square / (n - 1.0)).sqrt() + eps),
            Spread::Batch { .. } => 1.0 / batch,
            Spread::None => 1.0,
            Spread::LeaveOneOut => n / (n - 1.0),
        };
        for i in members {
            out[i] = ((f64::from(reward[i]) - mean) * scale) as f32;
        }
    }
}

/// Mean, and sum of squared deviations.
fn moments(reward: &[f32], members: &[usize]) -> (f64, f64) {
    let mean = members.iter().map(|&i| f64::from(reward[i])).sum::<f64>() / members.len() as f64;
    (mean, members.iter().map(|&i| (f64::from(reward[i]) - mean).powi(2)).sum())
}

/// Members of every group, groups in the order of their first member.
pub fn groups(group: &[u32]) -> Vec<Vec<usize>> {
    let mut place = std::collections::BTreeMap::new();
    let mut all: Vec<Vec<usize>> = Vec::new();
    for (i, g) in group.iter().enumerate() {
        let at = *place.entry(*g).or_insert(all.len());
        if at == all.len() {
            all.push(Vec::new());
        }
        all[at].push(i);
    }
    all
}

/// Whether a group's rewards differ: the others have no gradient (DAPO's dynamic sampling leaves them out).
pub fn informative(reward: &[f32]) -> bool {
    reward.iter().any(|r| *r != reward[0])
}

/// Chance that a group of `g` has no signal when a rollout is right with probability `p`: `p^g + (1−p)^g`.
pub fn degenerate_chance(p: f64, g: usize) -> f64 {
    p.powi(g as i32) + (1.0 - p).powi(g as i32)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Groups of `g` next to each other.
    fn of(reward: &[f32], g: usize, spread: Spread) -> Vec<f32> {
        let group: Vec<u32> = (0..reward.len()).map(|i| (i / g) as u32).collect();
        let mut out = vec![f32::NAN; reward.len()];
        group_advantage(reward, &group, spread, &mut out);
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
        // deviation of 0, 2, 4, 10 about 4: √(56/3)
        close(
            &of(&[0.0, 2.0, 4.0, 10.0], 2, Spread::Batch { eps: 0.0 }),
            &[-0.231_455, 0.231_455, -0.694_365, 0.694_365],
        );
    }

    #[test]
    fn equal_rewards_get_exactly_nothing_even_without_epsilon() {
        for spread in [
            Spread::Population { eps: 0.0 },
            Spread::Sample { eps: 0.0 },
            Spread::Batch { eps: 0.0 },
            Spread::None,
            Spread::LeaveOneOut,
        ] {
            assert_eq!(of(&[0.1; 6], 3, spread), [0.0; 6]);
        }
        assert!(!informative(&[0.1; 3]) && informative(&[0.1, 0.1, 0.2]));
    }

    /// Its mean would be 0 deviations away, its raw reward no comparison.
    #[test]
    fn a_group_of_one_gets_nothing_and_not_its_raw_reward() {
        let mut out = [f32::NAN; 3];
        for spread in [Spread::Sample { eps: 1e-6 }, Spread::LeaveOneOut, Spread::None] {
            group_advantage(&[5.0, 1.0, 3.0], &[7, 2, 2], spread, &mut out);
            assert_eq!(out[0], 0.0, "{spread:?}");
            assert!(out[1] < 0.0 && out[2] > 0.0);
        }
    }

    #[test]
    fn groups_are_their_numbers_wherever_members_stand_and_sizes_may_differ() {
        let spread = Spread::Population { eps: 1e-6 };
        let (reward, group) = ([1.0, 10.0, 2.0, 4.0, 20.0, 0.5, 0.25], [3, 9, 3, 3, 9, 1, 1]);
        let mut mixed = [0.0; 7];
        group_advantage(&reward, &group, spread, &mut mixed);
        assert_eq!([mixed[0], mixed[2], mixed[3]], of(&[1.0, 2.0, 4.0], 3, spread)[..]);
        assert_eq!([mixed[1], mixed[4]], of(&[10.0, 20.0], 2, spread)[..]);
        // any order of the rows permutes the advantages
        let order = [4, 6, 0, 5, 3, 1, 2];
        let mut permuted = [0.0; 7];
        group_advantage(&order.map(|i| reward[i]), &order.map(|i| group[i]), spread, &mut permuted);
        for (k, i) in order.into_iter().enumerate() {
            assert!((permuted[k] - mixed[i]).abs() < 1e-6);
        }
        assert_eq!(groups(&group), [vec![0, 2, 3], vec![1, 4], vec![5, 6]]);
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

    #[test]
    fn small_groups_of_hard_prompts_mostly_teach_nothing() {
        // two rollouts at 18 %: 0.18² + 0.82²
        assert!((degenerate_chance(0.18, 2) - 0.7048).abs() < 1e-12);
        assert!((1.0 - degenerate_chance(0.1, 16) - 0.8147).abs() < 1e-4);
    }
}
