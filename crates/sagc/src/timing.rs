//! How long a step takes with every candidate size.

use alloc::vec;
use alloc::vec::Vec;

/// Faded means of the seconds that steps took, per candidate.
///
/// ```text
/// w_G ← γ·w_G + [this step had G],   T̂(G) = Σ weights·seconds / w_G
/// ```
///
/// A candidate that was never seen, or so long ago that its weight fell below 0.05 (98 steps at γ = 0.97), is thought well
/// of until it is measured: a smaller one than the nearest seen takes proportionally less time, a larger one no more.
///
/// ```text
/// T̂(G) = T̂(G')·min(1, G/G'),   G' the nearest candidate seen, the smaller of two equally near
/// ```
///
/// So all get tried, from either end; the mean of a neighbour alone would never let a large size try a smaller one.
/// Before any seconds are known all are 1.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct StepTimes {
    /// Faded sum of seconds per candidate.
    pub sum: Vec<f64>,
    /// Faded number of steps per candidate.
    pub weight: Vec<f64>,
}

const FORGOTTEN: f64 = 0.05;

impl StepTimes {
    pub fn new(candidates: usize) -> Self {
        StepTimes { sum: vec![0.0; candidates], weight: vec![0.0; candidates] }
    }

    /// Takes in the seconds of a step with candidate `arm`; nothing if they are not a positive number.
    pub fn observe(&mut self, fade: f64, arm: usize, seconds: Option<f64>) {
        let Some(seconds) = seconds.filter(|s| s.is_finite() && *s > 0.0) else { return };
        for (s, w) in self.sum.iter_mut().zip(&mut self.weight) {
            (*s, *w) = (*s * fade, *w * fade);
        }
        self.sum[arm] += seconds;
        self.weight[arm] += 1.0;
    }

    /// T̂ of every candidate, in seconds. `sizes`: one per candidate.
    pub fn means(&self, sizes: &[usize]) -> Vec<f64> {
        let seen: Vec<usize> = (0..self.sum.len()).filter(|k| self.weight[*k] >= FORGOTTEN).collect();
        (0..self.sum.len())
            .map(|k| match seen.iter().min_by_key(|s| s.abs_diff(k)) {
                Some(&s) => self.sum[s] / self.weight[s] * (sizes[k] as f64 / sizes[s] as f64).min(1.0),
                None => 1.0,
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn means_fade_and_sizes_not_seen_are_thought_well_of() {
        let sizes = [4, 8, 16, 32];
        let mut times = StepTimes::new(4);
        assert_eq!(times.means(&sizes), [1.0; 4]);
        times.observe(0.5, 1, Some(8.0));
        assert_eq!(times.means(&sizes), [4.0, 8.0, 8.0, 8.0]);
        times.observe(0.5, 1, Some(2.0));
        times.observe(0.5, 3, Some(20.0));
        // (0.5·8 + 2)/(0.5 + 1) = 4; the third is as near to either and takes the smaller size's
        assert_eq!(times.means(&sizes), [2.0, 4.0, 4.0, 20.0]);
        for nothing in [None, Some(f64::NAN), Some(0.0), Some(-1.0)] {
            let before = times.clone();
            times.observe(0.5, 0, nothing);
            assert_eq!(times, before);
        }
        for _ in 0..5 {
            times.observe(0.5, 3, Some(20.0));
        }
        assert_eq!(times.means(&sizes), [2.5, 5.0, 10.0, 20.0], "the second size is forgotten");
    }
}
