//! The candidates as a ladder: one rung per change, and a stay on each.

use core::cmp::Ordering;

/// Where on the ladder of candidates a sizer stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ladder {
    /// Index of the present size among the candidates.
    pub arm: usize,
    /// Steps since the last change.
    pub since_change: u32,
}

impl Ladder {
    /// Counts a step and, if `dwell` steps have passed since the last change, moves one rung towards `goal`.
    pub fn climb(&mut self, dwell: u32, goal: usize) {
        self.since_change = self.since_change.saturating_add(1);
        if self.since_change < dwell {
            return;
        }
        self.arm = match goal.cmp(&self.arm) {
            Ordering::Less => self.arm - 1,
            Ordering::Equal => return,
            Ordering::Greater => self.arm + 1,
        };
        self.since_change = 0;
    }
}

/// Index of the largest score; a tie with the present one keeps it, other ties take the smaller size.
pub(crate) fn best(present: usize, scores: &[f64]) -> usize {
    let mut best = present;
    for k in 0..scores.len() {
        if scores[k] > scores[best] {
            best = k;
        }
    }
    best
}

/// Index of the candidate nearest to `g`; the smaller of two equally near.
pub(crate) fn nearest(sizes: &[usize], g: usize) -> usize {
    let mut best = 0;
    for k in 0..sizes.len() {
        if sizes[k].abs_diff(g) < sizes[best].abs_diff(g) {
            best = k;
        }
    }
    best
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ladder_moves_one_rung_after_its_dwell() {
        let mut ladder = Ladder { arm: 3, since_change: 0 };
        let arms: std::vec::Vec<usize> = (0..6)
            .map(|_| {
                ladder.climb(3, 0);
                ladder.arm
            })
            .collect();
        assert_eq!(arms, [3, 3, 2, 2, 2, 1]);
    }

    #[test]
    fn ties_keep_what_is_there() {
        assert_eq!(best(2, &[1.0, 1.0, 1.0]), 2);
        assert_eq!(best(2, &[3.0, 3.0, 1.0]), 0);
        assert_eq!((nearest(&[4, 8], 6), nearest(&[4, 8], 7), nearest(&[4, 8], 99)), (0, 1, 1));
    }
}
