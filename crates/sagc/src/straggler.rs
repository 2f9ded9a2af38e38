//! When is a group straggling?

use alloc::vec::Vec;

use crate::GroupReport;

/// What a rollout's length is compared with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reference {
    /// An exponential average of earlier steps' median lengths. A group is late if one member is longer than what
    /// rollouts usually take, whatever the others of its group do.
    Running,
    /// The median of its own group, as the max/median ratio has it. Falls with the group size by construction (a group
    /// of 2 never exceeds 2) and does not see a prompt that is long for all members.
    Group,
}

/// Counts of one generation step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Straggling {
    /// Rollouts looked at.
    pub rollouts: usize,
    /// Rollouts that straggled.
    pub straggled: usize,
    /// Groups looked at.
    pub groups: usize,
    /// Groups with a straggler.
    pub events: usize,
}

impl Straggling {
    /// Counts the stragglers of a step.
    ///
    /// ```text
    /// rollout i straggles:  L_i > threshold · m,   m = `normal`, or the median of its group if that is `None`
    /// ```
    ///
    /// A last group that is not complete does not count. `None` if there is no complete group, or if a length is
    /// negative or not finite: such a report says nothing.
    pub fn count(seen: &GroupReport<'_>, threshold: f64, normal: Option<f64>) -> Option<Self> {
        if !seen.is_usable() {
            return None;
        }
        let groups = seen.length.len() / seen.group_size;
        let length = &seen.length[..groups * seen.group_size];
        let mut count = Straggling { rollouts: length.len(), straggled: 0, groups, events: 0 };
        for group in length.chunks_exact(seen.group_size) {
            let limit = threshold * normal.unwrap_or_else(|| median(group));
            let late = group.iter().filter(|l| f64::from(**l) > limit).count();
            count.straggled += late;
            count.events += usize::from(late > 0);
        }
        Some(count)
    }

    /// Share of groups with a straggler, s ∈ [0, 1].
    pub fn rate(&self) -> f64 {
        self.events as f64 / self.groups as f64
    }
}

/// Longest over median length of one group, at least 1. All zero: 1. Median zero: ∞.
///
/// Panics on an empty slice.
pub fn max_over_median(length: &[f32]) -> f64 {
    let max = length.iter().copied().fold(0.0, f32::max);
    if max == 0.0 { 1.0 } else { f64::from(max) / median(length) }
}

/// Median; of an even number of lengths, the mean of the two in the middle. Panics on an empty slice.
pub fn median(length: &[f32]) -> f64 {
    let mut sorted: Vec<f32> = length.into();
    sorted.sort_by(f32::total_cmp);
    let n = sorted.len();
    assert!(n > 0, "no lengths, no median");
    (f64::from(sorted[(n - 1) / 2]) + f64::from(sorted[n / 2])) / 2.0
}

#[cfg(test)]
mod tests {
    use super::*;

    const LENGTHS: [f32; 8] = [100.0, 110.0, 90.0, 300.0, 400.0, 500.0, 450.0, 420.0];

    fn report(group_size: usize) -> GroupReport<'static> {
        GroupReport::new(group_size, &LENGTHS)
    }

    #[test]
    fn ratios_have_their_hand_computed_values() {
        assert_eq!(median(&[3.0, 1.0, 2.0]), 2.0);
        assert_eq!(max_over_median(&LENGTHS[..4]), 300.0 / 105.0);
        assert_eq!(max_over_median(&[5.0, 5.0]), 1.0);
        assert_eq!(max_over_median(&[0.0, 0.0]), 1.0);
        assert_eq!(max_over_median(&[0.0, 0.0, 1.0]), f64::INFINITY);
    }

    #[test]
    fn a_prompt_long_for_everyone_straggles_against_the_running_median_only() {
        let running = Straggling::count(&report(4), 2.5, Some(100.0)).unwrap();
        assert_eq!(running, Straggling { rollouts: 8, straggled: 5, groups: 2, events: 2 });
        let own = Straggling::count(&report(4), 2.5, None).unwrap();
        assert_eq!(own, Straggling { rollouts: 8, straggled: 1, groups: 2, events: 1 });
        assert_eq!((running.rate(), own.rate()), (1.0, 0.5));
    }

    #[test]
    fn a_pair_never_straggles_against_its_own_median() {
        let pair = GroupReport::new(2, &[1.0, 1e9]);
        assert_eq!(Straggling::count(&pair, 2.0, None).unwrap().events, 0);
    }

    #[test]
    fn an_incomplete_group_does_not_count_and_what_is_no_length_says_nothing() {
        assert_eq!(Straggling::count(&report(3), 2.5, Some(100.0)).unwrap().rollouts, 6);
        for (group_size, length) in [
            (0, &[1.0][..]),
            (2, &[]),
            (2, &[1.0]),
            (2, &[1.0, f32::NAN]),
            (2, &[1.0, f32::INFINITY]),
            (2, &[1.0, -1.0]),
        ] {
            assert_eq!(Straggling::count(&GroupReport::new(group_size, length), 2.5, None), None, "{length:?}");
        }
    }
}
