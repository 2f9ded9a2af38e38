//! The loss of a sequence and its slope in every token's log-probability, on slices.

/// What is maximised per token, besides the divergence.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Surrogate {
    /// `min(ρ·A, clip(ρ, 1−low, 1+high)·A)` with the token's own ratio `ρ = exp(new − old)`. Schulman et al. 2017, eq. 7.
    Token {
        /// ε_low.
        low: f64,
        /// ε_high; larger than `low` in DAPO, so that rare tokens may grow.
        high: f64,
    },
    /// The same with the geometric mean of the sequence's ratios, `s = exp(mean_t(new − old))`. GSPO, Zheng et al. 2025
    /// (arXiv 2507.18071), eq. 5. Its token form has the same gradient where all tokens share one advantage.
    Sequence {
        /// ε_low.
        low: f64,
        /// ε_high.
        high: f64,
    },
    /// `min(ρ, cap)·A·new` with the factor held constant: no token's gradient is dropped. CISPO, MiniMax 2025 (arXiv
    /// 2506.13585), eq. 4.
    Weighted {
        /// Largest weight.
        cap: f64,
    },
}

/// How tokens of sequences of different lengths are weighed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Aggregate {
    /// Mean over each sequence's tokens, then over sequences (GRPO).
    SequenceMean,
    /// Mean over all tokens of the window (DAPO).
    TokenMean,
    /// Sum over tokens divided by sequences times a constant, the longest allowed length (Dr. GRPO).
    ConstantDivisor(usize),
}

/// Estimate of KL(policy‖reference) from one token of the policy, with `d = ln reference − ln policy`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KlEstimate {
    /// `−d`. Unbiased in value; its own slope is 1 for every token, which in expectation is no gradient at all.
    K1,
    /// `d²/2`. Its slope `−d` is that of the divergence in expectation.
    K2,
    /// `e^d − d − 1 ≥ 0`. Unbiased in value; its own slope `1 − e^d` is that of the opposite divergence. As GRPO has it.
    K3,
    /// The value of [`KlEstimate::K3`] with the slope of [`KlEstimate::K2`].
    K3Straight,
    /// `ρ·(e^d − d − 1)`, differentiated through ρ as well: unbiased in value and slope, also off the policy.
    K3Weighted,
}

/// Weight and estimate of the divergence from a reference.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct KlTerm {
    /// β; 0 needs no reference.
    pub weight: f64,
    /// How one token estimates it.
    pub estimate: KlEstimate,
}

/// A group-relative loss.
///
/// ```text
/// loss = −Σ_i Σ_t w_it·(surrogate_it − β·kl_it)
/// w_it = 1/(S·|o_i|)  SequenceMean      1/Σ|o_i|  TokenMean      1/(S·c)  ConstantDivisor(c)
/// ```
///
/// with S and Σ|o_i| those of the whole optimiser window, [`Totals`]: the sum over any partition of the window into
/// micro-batches is the same number with the same gradient.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Loss {
    /// What is maximised.
    pub surrogate: Surrogate,
    /// How tokens are weighed.
    pub aggregate: Aggregate,
    /// For A < 0 the surrogate is at least `c·A` (dual clip, Ye et al. 2020, eq. 5); above 1.
    pub dual_clip: Option<f64>,
    /// The unclipped ratio is at most δ (two-sided clipping, INTELLECT-2 2025); above 1 + ε_high.
    pub ratio_cap: Option<f64>,
    /// Divergence.
    pub kl: KlTerm,
}

impl Loss {
    fn with(surrogate: Surrogate, aggregate: Aggregate) -> Self {
        let kl = KlTerm { weight: 0.0, estimate: KlEstimate::K3 };
        Loss { surrogate, aggregate, dual_clip: None, ratio_cap: None, kl }
    }

    /// GRPO: clip 0.2, mean per sequence. Shao et al. 2024 (arXiv 2402.03300), eq. 3, without its divergence.
    pub fn grpo() -> Self {
        Loss::with(Surrogate::Token { low: 0.2, high: 0.2 }, Aggregate::SequenceMean)
    }

    /// Dr. GRPO: as GRPO with a constant divisor, the longest length. Liu et al. 2025 (arXiv 2503.20783), §3.
    pub fn dr_grpo(longest: usize) -> Self {
        Loss::with(Surrogate::Token { low: 0.2, high: 0.2 }, Aggregate::ConstantDivisor(longest))
    }

    /// DAPO: clip 0.2 and 0.28, mean over tokens. Yu et al. 2025 (arXiv 2503.14476), eq. 8.
    pub fn dapo() -> Self {
        Loss::with(Surrogate::Token { low: 0.2, high: 0.28 }, Aggregate::TokenMean)
    }

    /// GSPO: ratio of sequences, clip 3e-4 and 4e-4. Zheng et al. 2025 (arXiv 2507.18071), §5.1.
    pub fn gspo() -> Self {
        Loss::with(Surrogate::Sequence { low: 3e-4, high: 4e-4 }, Aggregate::SequenceMean)
    }

    /// CISPO with weights up to 5, mean over tokens.
    pub fn cispo() -> Self {
        Loss::with(Surrogate::Weighted { cap: 5.0 }, Aggregate::TokenMean)
    }
}

/// Counts of the whole optimiser window: sequences that have tokens, and tokens. Masked ones count in neither.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// S.
    pub sequences: usize,
    /// Σ|o_i|.
    pub tokens: usize,
}

impl Totals {
    /// Of sequences with those lengths.
    pub fn of(lengths: impl IntoIterator<Item = usize>) -> Self {
        lengths
            .into_iter()
            .filter(|n| *n > 0)
            .fold(Totals::default(), |t, n| Totals { sequences: t.sequences + 1, tokens: t.tokens + n })
    }
}

/// One sequence's unmasked tokens.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sequence<'a> {
    /// ln π of each token now.
    pub log_prob: &'a [f64],
    /// Under the policy that is improved upon.
    pub old: &'a [f64],
    /// Under the reference; needed if β > 0.
    pub reference: Option<&'a [f64]>,
    /// A, shared by all tokens.
    pub advantage: f64,
}

/// What a sequence adds to the window's loss.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Terms {
    /// Its part of the loss.
    pub loss: f64,
    /// Σ_t kl.
    pub kl: f64,
    /// Tokens whose slope is dropped because the ratio is too small, with A < 0.
    pub clipped_low: usize,
    /// Because it is too large, with A > 0.
    pub clipped_high: usize,
    /// Tokens.
    pub tokens: usize,
}

/// Log-ratios beyond this are taken for it: exp would overflow, and nothing is learned there.
const LARGEST_LOG_RATIO: f64 = 20.0;

impl Loss {
    /// Adds the slopes of the loss in every `log_prob` to `slope`, and returns the parts. `totals` are the window's.
    ///
    /// Panics if lengths differ, or if β > 0 and there is no reference.
    pub fn evaluate(&self, s: &Sequence, totals: Totals, slope: &mut [f64]) -> Terms {
        let n = s.log_prob.len();
        assert_eq!((s.old.len(), slope.len()), (n, n));
        if n == 0 {
            return Terms::default();
        }
        let weight = match self.aggregate {
            Aggregate::SequenceMean => 1.0 / (totals.sequences as f64 * n as f64),
            Aggregate::TokenMean => 1.0 / totals.tokens as f64,
            Aggregate::ConstantDivisor(c) => 1.0 / (totals.sequences as f64 * c as f64),
        };
        let mut terms = Terms { tokens: n, ..Terms::default() };
        let log_ratio = |t: usize| (s.log_prob[t] - s.old[t]).clamp(-LARGEST_LOG_RATIO, LARGEST_LOG_RATIO);
        match self.surrogate {
            Surrogate::Token { low, high } => {
                for t in 0..n {
                    let (value, d) = self.clipped(log_ratio(t).exp(), s.advantage, low, high, 1, &mut terms);
                    terms.loss -= weight * value;
                    if (s.log_prob[t] - s.old[t]).abs() <= LARGEST_LOG_RATIO {
                        slope[t] -= weight * d;
                    }
                }
            }
            Surrogate::Sequence { low, high } => {
                let mean = (0..n).map(|t| s.log_prob[t] - s.old[t]).sum::<f64>() / n as f64;
                let ratio = mean.clamp(-LARGEST_LOG_RATIO, LARGEST_LOG_RATIO).exp();
                let (value, d) = self.clipped(ratio, s.advantage, low, high, n, &mut terms);
                terms.loss -= weight * n as f64 * value;
                // n tokens carry the value, and each moves the mean by 1/n
                if mean.abs() <= LARGEST_LOG_RATIO {
                    slope.iter_mut().for_each(|slope| *slope -= weight * d);
                }
            }
            Surrogate::Weighted { cap } => {
                for t in 0..n {
                    let ratio = log_ratio(t).exp();
                    terms.clipped_high += usize::from(ratio > cap && s.advantage > 0.0);
                    let factor = ratio.min(cap) * s.advantage;
                    terms.loss -= weight * factor * s.log_prob[t];
                    slope[t] -= weight * factor;
                }
            }
        }
        if self.kl.weight > 0.0 {
            let reference = s.reference.expect("a divergence needs a reference");
            assert_eq!(reference.len(), n);
            // under a sequence's ratio all tokens share it, and each moves it by 1/n
            let shared = match self.surrogate {
                Surrogate::Sequence { .. } => Some((0..n).map(log_ratio).sum::<f64>() / n as f64),
                _ => None,
            };
            let mut through_shared = 0.0;
            for t in 0..n {
                let ratio = shared.unwrap_or_else(|| log_ratio(t)).exp();
                let (value, d) = match (self.kl.estimate, shared) {
                    (KlEstimate::K3Weighted, Some(_)) => {
                        let (k3, d3) = KlEstimate::K3.token(s.log_prob[t], reference[t], ratio);
                        through_shared += ratio * k3 / n as f64;
                        (ratio * k3, ratio * d3)
                    }
                    (estimate, _) => estimate.token(s.log_prob[t], reference[t], ratio),
                };
                terms.kl += value;
                terms.loss += weight * self.kl.weight * value;
                slope[t] += weight * self.kl.weight * d;
            }
            slope.iter_mut().for_each(|slope| *slope += weight * self.kl.weight * through_shared);
        }
        terms
    }

    /// Value and slope in the log-ratio of the clipped surrogate; counts clipped tokens.
    fn clipped(&self, ratio: f64, a: f64, low: f64, high: f64, tokens: usize, terms: &mut Terms) -> (f64, f64) {
        let capped = self.ratio_cap.map_or(ratio, |cap| ratio.min(cap));
        let free = capped * a;
        let bound = ratio.clamp(1.0 - low, 1.0 + high) * a;
        if bound < free {
            if a > 0.0 {
                terms.clipped_high += tokens;
            } else {
                terms.clipped_low += tokens;
            }
            return (bound, 0.0);
        }
        if let Some(c) = self.dual_clip
            && a < 0.0
            && free < c * a
        {
            return (c * a, 0.0);
        }
        (free, if capped < ratio { 0.0 } else { free })
    }
}

impl KlEstimate {
    /// Value and slope in `new` of one token's estimate. `ratio`: new to old probability.
    pub fn token(self, new: f64, reference: f64, ratio: f64) -> (f64, f64) {
        let d = (reference - new).clamp(-LARGEST_LOG_RATIO, LARGEST_LOG_RATIO);
        let k3 = d.exp_m1() - d;
        match self {
            KlEstimate::K1 => (-d, 1.0),
            KlEstimate::K2 => (0.5 * d * d, -d),
            KlEstimate::K3 => (k3, -d.exp_m1()),
            KlEstimate::K3Straight => (k3, -d),
            KlEstimate::K3Weighted => (ratio * k3, ratio * (k3 - d.exp_m1())),
        }
    }
}

/// DAPO's soft punishment of length: 0 up to `longest − margin`, then falling linearly to −1 at `longest` and beyond.
/// Yu et al. 2025, eq. 13.
pub fn overlong(length: usize, longest: usize, margin: usize) -> f64 {
    let start = longest.saturating_sub(margin);
    if length <= start {
        0.0
    } else if length >= longest {
        -1.0
    } else {
        -((length - start) as f64) / margin as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Value of one sequence alone in its window, and slopes.
    fn of(loss: Loss, new: &[f64], old: &[f64], advantage: f64) -> (f64, Vec<f64>) {
        let mut slope = vec![0.0; new.len()];
        let s = Sequence { log_prob: new, old, reference: None, advantage };
        (loss.evaluate(&s, Totals::of([new.len()]), &mut slope).loss, slope)
    }

    #[test]
    fn clipping_binds_only_where_it_lowers_the_objective() {
        let dapo = Loss::dapo();
        for (ratio, advantage, want, slope) in [
            (1.0, 2.0, 2.0, 2.0),
            (1.5, 1.0, 1.28, 0.0),
            (0.5, 1.0, 0.5, 0.5),
            (0.5, -1.0, -0.8, 0.0),
            (1.5, -1.0, -1.5, -1.5),
        ] {
            let (value, d) = of(dapo, &[f64::ln(ratio)], &[0.0], advantage);
            assert!((value + want).abs() < 1e-12 && (d[0] + slope).abs() < 1e-12, "{ratio} {advantage}: {value} {d:?}");
        }
        let dual = Loss { dual_clip: Some(3.0), ..dapo };
        assert_eq!(of(dual, &[f64::ln(8.0)], &[0.0], -1.0), (3.0, vec![0.0]));
        let capped = Loss { ratio_cap: Some(4.0), ..dapo };
        let (value, d) = of(capped, &[f64::ln(8.0)], &[0.0], -1.0);
        assert!((value - 4.0).abs() < 1e-12 && d[0] == 0.0);
    }

    #[test]
    fn a_sequence_counts_by_the_geometric_mean_of_its_ratios() {
        let loss = Loss { surrogate: Surrogate::Sequence { low: 0.2, high: 0.28 }, ..Loss::gspo() };
        let logs = |r: &[f64]| r.iter().map(|x| x.ln()).collect::<Vec<_>>();
        // √(0.5·2) = 1: what one token gains the other loses
        let (value, slope) = of(loss, &logs(&[0.5, 2.0]), &[0.0; 2], 3.0);
        assert!((value + 3.0).abs() < 1e-12 && slope.iter().all(|d| (d + 1.5).abs() < 1e-12));
        assert!((of(loss, &logs(&[4.0, 1.0]), &[0.0; 2], 1.0).0 + 1.28).abs() < 1e-12, "√4 = 2 is clipped");
        assert!((of(loss, &logs(&[4.0, 1.0]), &[0.0; 2], -1.0).0 - 2.0).abs() < 1e-12);
    }

    #[test]
    fn a_ratio_beyond_all_bounds_has_no_slope() {
        for loss in [Loss::grpo(), Loss::gspo()] {
            let (value, slope) = of(loss, &[-1.0], &[-26.0], -1.0);
            assert!((value - f64::exp(20.0)).abs() < 1.0 && slope == [0.0], "{value} {slope:?}");
        }
    }

    #[test]
    fn slopes_are_those_of_the_loss_by_finite_differences() {
        let old = [-1.0, -0.4, -2.2];
        let new = [-1.1, -0.3, -1.0];
        let reference = [-0.9, -0.5, -1.5];
        let losses = [
            Loss::grpo(),
            Loss::dapo(),
            Loss::dr_grpo(7),
            Loss { surrogate: Surrogate::Sequence { low: 0.5, high: 0.5 }, ..Loss::gspo() },
        ];
        let estimates = [KlEstimate::K1, KlEstimate::K2, KlEstimate::K3, KlEstimate::K3Weighted];
        for (loss, estimate) in losses.iter().flat_map(|l| estimates.map(|e| (*l, e))) {
            let loss = Loss { kl: KlTerm { weight: 0.3, estimate }, ..loss };
            let value = |new: &[f64], slope: &mut [f64]| {
                let s = Sequence { log_prob: new, old: &old, reference: Some(&reference), advantage: 0.7 };
                loss.evaluate(&s, Totals { sequences: 4, tokens: 20 }, slope).loss
            };
            let mut slope = [0.0; 3];
            value(&new, &mut slope);
            for t in 0..3 {
                let moved = |by: f64| {
                    let mut moved = new;
                    moved[t] += by;
                    value(&moved, &mut [0.0; 3])
                };
                let want = (moved(1e-6) - moved(-1e-6)) / 2e-6;
                assert!((slope[t] - want).abs() < 1e-8, "{loss:?} token {t}: {} {want}", slope[t]);
            }
        }
    }

    #[test]
    fn a_truncated_weight_multiplies_the_score_and_is_not_differentiated() {
        let (value, slope) = of(Loss::cispo(), &[-1.0, -2.0], &[-1.0 - f64::ln(2.0), -12.0], 0.5);
        // weights 2 and min(e^10, 5)
        assert!((value - 0.5 * (2.0 * 0.5 * 1.0 + 5.0 * 0.5 * 2.0)).abs() < 1e-12);
        assert!((slope[0] + 0.5).abs() < 1e-12 && (slope[1] + 1.25).abs() < 1e-12);
    }

    #[test]
    fn k3_has_its_table_values_and_is_never_negative() {
        for (d, want) in [(-1.0, 0.367_879), (0.0, 0.0), (0.5, 0.148_721), (1.0, 0.718_282)] {
            assert!((KlEstimate::K3.token(0.0, d, 1.0).0 - want).abs() < 1e-6, "{d}");
        }
        assert!((-50..50).all(|i| KlEstimate::K3.token(0.0, f64::from(i) / 10.0, 1.0).0 >= 0.0));
    }

    #[test]
    fn overlong_punishment_has_its_published_corners() {
        let of = |n| overlong(n, 20_480, 4_096);
        assert_eq!([of(16_384), of(18_432), of(20_480), of(30_000)], [0.0, -0.5, -1.0, -1.0]);
        assert!((of(16_385) + 1.0 / 4096.0).abs() < 1e-12);
        assert_eq!(overlong(5, 4, 0), -1.0);
    }
}
