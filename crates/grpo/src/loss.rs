//! Per-token terms and how they become one number.

/// Clipped surrogate of one token, to be maximised.
///
/// ```text
/// min(ρ·A, clip(ρ, 1−ε_low, 1+ε_high)·A),   ρ = exp(new − old)
/// ```
///
/// DAPO's clip-higher has `low` 0.2 and `high` 0.28. Schulman et al. 2017, eq. 7.
pub fn clipped_surrogate(log_prob: f64, old_log_prob: f64, advantage: f64, low: f64, high: f64) -> f64 {
    clipped(log_prob - old_log_prob, advantage, low, high)
}

/// Clipped surrogate of a whole sequence, to be maximised: the ratio is the geometric mean of the tokens' ratios.
///
/// ```text
/// min(s·A, clip(s, 1−ε_low, 1+ε_high)·A),   s = exp(Σ_t (new_t − old_t)/T)
/// ```
///
/// Ratios of whole sequences lie close to 1; GSPO has `low` 3e-4 and `high` 4e-4. Arithmetic in 64 bits, as
/// differences of that size need. A sequence without tokens has s = 1. Zheng et al. 2025 (arXiv 2507.18071).
///
/// Panics if the lengths differ.
pub fn sequence_surrogate(log_prob: &[f64], old_log_prob: &[f64], advantage: f64, low: f64, high: f64) -> f64 {
    assert_eq!(log_prob.len(), old_log_prob.len());
    let sum: f64 = log_prob.iter().zip(old_log_prob).map(|(new, old)| new - old).sum();
    clipped(sum / log_prob.len().max(1) as f64, advantage, low, high)
}

fn clipped(log_ratio: f64, advantage: f64, low: f64, high: f64) -> f64 {
    let ratio = log_ratio.exp();
    (ratio * advantage).min(ratio.clamp(1.0 - low, 1.0 + high) * advantage)
}

/// Estimate of KL(policy‖reference) from one token of the policy, never negative: `e^d − d − 1` with
/// d = ln reference − ln policy.
pub fn k3(log_prob: f64, reference_log_prob: f64) -> f64 {
    let d = reference_log_prob - log_prob;
    d.exp_m1() - d
}

/// How tokens of sequences of different lengths are weighed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Aggregate {
    /// Mean over each sequence's tokens, then over sequences (GRPO).
    SequenceMean,
    /// Mean over all tokens of the batch (DAPO).
    TokenMean,
    /// Sum over tokens divided by sequences times a constant, the longest allowed length (Dr. GRPO).
    ConstantDivisor(usize),
}

/// One number from per-token terms of a whole batch.
///
/// `sequences` are the terms of each sequence's unmasked tokens; numerator and denominator count the same tokens. A batch
/// without tokens gives 0. Split a batch over several passes by [`Aggregate`] of the whole, never by means of parts.
pub fn aggregate(sequences: &[&[f64]], how: Aggregate) -> f64 {
    let sum = |s: &[f64]| s.iter().sum::<f64>();
    let filled = || sequences.iter().filter(|s| !s.is_empty());
    let (total, divisor) = match how {
        Aggregate::SequenceMean => (filled().map(|s| sum(s) / s.len() as f64).sum::<f64>(), filled().count()),
        Aggregate::TokenMean => (filled().map(|s| sum(s)).sum(), filled().map(|s| s.len()).sum()),
        Aggregate::ConstantDivisor(length) => (filled().map(|s| sum(s)).sum(), sequences.len() * length),
    };
    if divisor == 0 { 0.0 } else { total / divisor as f64 }
}

/// DAPO's soft punishment of length: 0 up to `longest − margin`, then falling linearly to −1 at `longest` and beyond.
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

    #[test]
    fn clipping_binds_only_where_it_lowers_the_objective() {
        let of = |ratio: f64, advantage| clipped_surrogate(ratio.ln(), 0.0, advantage, 0.2, 0.28);
        for (ratio, advantage, want) in
            [(1.0, 2.0, 2.0), (1.5, 1.0, 1.28), (0.5, 1.0, 0.5), (0.5, -1.0, -0.8), (1.5, -1.0, -1.5)]
        {
            assert!((of(ratio, advantage) - want).abs() < 1e-12, "{ratio} {advantage}");
        }
    }

    #[test]
    fn a_sequence_counts_by_the_geometric_mean_of_its_ratios() {
        let of = |ratios: &[f64], advantage| {
            let new: Vec<f64> = ratios.iter().map(|r| r.ln()).collect();
            sequence_surrogate(&new, &vec![0.0; new.len()], advantage, 0.2, 0.28)
        };
        // √(0.5·2) = 1: what one token gains the other loses
        assert!((of(&[0.5, 2.0], 3.0) - 3.0).abs() < 1e-12);
        assert!((of(&[4.0, 1.0], 1.0) - 1.28).abs() < 1e-12, "√4 = 2 is clipped");
        assert!((of(&[4.0, 1.0], -1.0) + 2.0).abs() < 1e-12);
        assert_eq!(of(&[], 5.0), 5.0);
        // one token: the token's surrogate
        for ratio in [0.5, 0.9, 1.1, 1.5] {
            let token = clipped_surrogate(f64::ln(ratio), 0.0, -2.0, 0.2, 0.28);
            assert_eq!(of(&[ratio], -2.0), token);
        }
    }

    #[test]
    fn at_equal_policies_the_slope_of_the_surrogate_is_the_advantage() {
        let (h, old) = (1e-5, -1.3);
        for advantage in [2.0, -0.5] {
            let of = |d: f64| clipped_surrogate(old + d, old, advantage, 0.2, 0.28);
            assert!(((of(h) - of(-h)) / (2.0 * h) - advantage).abs() < 1e-9);
        }
    }

    #[test]
    fn k3_has_its_table_values_and_is_never_negative() {
        for (d, want) in [(-1.0, 0.367_879), (0.0, 0.0), (0.5, 0.148_721), (1.0, 0.718_282)] {
            assert!((k3(0.0, d) - want).abs() < 1e-6, "{d}");
        }
        assert!((-50..50).all(|i| k3(0.0, f64::from(i) / 10.0) >= 0.0));
    }

    #[test]
    fn the_three_aggregates_differ_as_computed_by_hand() {
        // lengths 2 and 8, terms +1 and −1
        let (short, long) = ([1.0; 2], [-1.0; 8]);
        let batch: [&[f64]; 2] = [&short, &long];
        assert_eq!(aggregate(&batch, Aggregate::SequenceMean), 0.0);
        assert!((aggregate(&batch, Aggregate::TokenMean) + 0.6).abs() < 1e-15);
        assert!((aggregate(&batch, Aggregate::ConstantDivisor(10)) + 0.3).abs() < 1e-15);
    }

    #[test]
    fn masked_out_sequences_count_in_neither_part_and_an_empty_batch_is_nothing() {
        let short = [1.0; 2];
        for how in [Aggregate::SequenceMean, Aggregate::TokenMean] {
            assert_eq!(aggregate(&[&short, &[]], how), 1.0);
        }
        for how in [Aggregate::SequenceMean, Aggregate::TokenMean, Aggregate::ConstantDivisor(9)] {
            assert_eq!(aggregate(&[&[], &[]], how), 0.0);
            assert_eq!(aggregate(&[], how), 0.0);
        }
    }

    #[test]
    fn overlong_punishment_has_its_published_corners() {
        let of = |n| overlong(n, 20_480, 4_096);
        assert_eq!([of(16_384), of(18_432), of(20_480), of(30_000)], [0.0, -0.5, -1.0, -1.0]);
        assert!((of(16_385) + 1.0 / 4096.0).abs() < 1e-12);
        assert_eq!(overlong(5, 4, 0), -1.0);
    }
}
