//! One token from logits.

use std::fmt;

/// How the distribution is narrowed before a token is drawn.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sampling {
    /// Logits are divided by it; 1 leaves them as they are.
    pub temperature: f32,
    /// Only that many likeliest tokens; 0: all.
    pub top_k: usize,
    /// Only the likeliest tokens that together have this probability; 1: all.
    pub top_p: f32,
}

/// A drawn token.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Drawn {
    /// Its id.
    pub token: u32,
    /// Log-probability under the narrowed distribution it was drawn from, nats: the behaviour policy's. A training
    /// pass that recomputes it must narrow alike.
    pub log_prob: f32,
}

/// Logits or settings that define no distribution.
#[derive(Clone, Debug, PartialEq)]
pub enum SamplingError {
    /// Temperature must be at least 1e-4: below it single precision leaves one token.
    Temperature(f32),
    /// top_p must be above 0 and at most 1.
    TopP(f32),
    /// There are no logits, or one is NaN, or none is above −∞.
    Logits,
}

impl fmt::Display for SamplingError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SamplingError::Temperature(t) => write!(f, "temperature is {t}; it must be finite and at least 1e-4"),
            SamplingError::TopP(p) => write!(f, "top_p is {p}; it must be above 0 and at most 1"),
            SamplingError::Logits => write!(f, "the logits are no distribution: none, NaN, or all −∞"),
        }
    }
}

impl std::error::Error for SamplingError {}

/// Log-probabilities of the narrowed distribution, −∞ outside its support.
///
/// ```text
/// p = softmax(logits/temperature), then the top_k likeliest, then the least set of likeliest with mass ≥ top_p,
/// rescaled to sum to 1; ties go to the lower id
/// ```
///
/// Errors: [`SamplingError`].
pub fn log_probs(logits: &[f32], s: &Sampling) -> Result<Vec<f32>, SamplingError> {
    if !(s.temperature.is_finite() && s.temperature >= 1e-4) {
        return Err(SamplingError::Temperature(s.temperature));
    }
    if !(s.top_p > 0.0 && s.top_p <= 1.0) {
        return Err(SamplingError::TopP(s.top_p));
    }
    let max = logits.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    if !max.is_finite() || logits.iter().any(|l| l.is_nan()) {
        return Err(SamplingError::Logits);
    }
    let weight: Vec<f64> = logits.iter().map(|l| (f64::from(l - max) / f64::from(s.temperature)).exp()).collect();
    let mut order: Vec<usize> = (0..logits.len()).collect();
    order.sort_by(|&i, &j| weight[j].total_cmp(&weight[i]));
    if s.top_k > 0 {
        order.truncate(s.top_k);
    }
    if s.top_p < 1.0 {
        let total: f64 = order.iter().map(|&i| weight[i]).sum();
        let mut mass = 0.0;
        let kept = order.iter().position(|&i| {
            mass += weight[i];
            mass >= f64::from(s.top_p) * total
        });
        order.truncate(kept.map_or(order.len(), |k| k + 1));
    }
    let total: f64 = order.iter().map(|&i| weight[i]).sum();
    let mut out = vec![f32::NEG_INFINITY; logits.len()];
    for i in order {
        out[i] = (weight[i] / total).ln() as f32;
    }
    Ok(out)
}

/// Draws a token: the first, by id, whose cumulated probability passes `u`, a uniform number in [0, 1).
///
/// Errors: [`SamplingError`].
pub fn sample(logits: &[f32], s: &Sampling, u: f32) -> Result<Drawn, SamplingError> {
    let log_p = log_probs(logits, s)?;
    let mut mass = 0.0;
    let mut last = 0;
    for (token, &l) in log_p.iter().enumerate().filter(|(_, l)| **l > f32::NEG_INFINITY) {
        mass += f64::from(l).exp();
        last = token;
        if f64::from(u) < mass {
            break;
        }
    }
    Ok(Drawn { token: last as u32, log_prob: log_p[last] })
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: Sampling = Sampling { temperature: 1.0, top_k: 0, top_p: 1.0 };

    #[test]
    fn without_narrowing_it_is_the_softmax_of_the_scaled_logits() {
        let p: Vec<f32> = log_probs(&[0.0, 2.0f32.ln(), f32::NEG_INFINITY], &ALL).unwrap();
        assert!((p[0].exp() - 1.0 / 3.0).abs() < 1e-6 && (p[1].exp() - 2.0 / 3.0).abs() < 1e-6);
        assert_eq!(p[2], f32::NEG_INFINITY);
        let cold = log_probs(&[0.0, 2.0f32.ln()], &Sampling { temperature: 0.5, ..ALL }).unwrap();
        assert!((cold[1].exp() - 0.8).abs() < 1e-6, "2² to 1");
    }

    #[test]
    fn narrowing_keeps_the_likeliest_and_rescales() {
        // probabilities 0.5, 0.3, 0.2
        let logits = [0.3f32.ln(), 0.5f32.ln(), 0.2f32.ln()];
        for s in [Sampling { top_k: 2, ..ALL }, Sampling { top_p: 0.7, ..ALL }] {
            let p = log_probs(&logits, &s).unwrap();
            assert!((p[1].exp() - 0.625).abs() < 1e-6 && (p[0].exp() - 0.375).abs() < 1e-6, "{p:?}");
            assert_eq!(p[2], f32::NEG_INFINITY);
        }
        let one = log_probs(&logits, &Sampling { top_p: 1e-6, ..ALL }).unwrap();
        assert_eq!(one[1], 0.0);
    }

    #[test]
    fn draws_follow_the_distribution_and_report_its_log_probability() {
        let logits = [0.3f32.ln(), 0.5f32.ln(), 0.2f32.ln()];
        let mut counts = [0; 3];
        for i in 0..1000 {
            let d = sample(&logits, &ALL, (i as f32 + 0.5) / 1000.0).unwrap();
            counts[d.token as usize] += 1;
            assert!((d.log_prob - logits[d.token as usize]).abs() < 1e-6);
        }
        assert_eq!(counts, [300, 500, 200]);
    }

    #[test]
    fn a_draw_never_leaves_the_support() {
        let s = Sampling { top_k: 1, ..ALL };
        assert_eq!(sample(&[0.0, 5.0, 0.0], &s, 0.999_999_94).unwrap().token, 1);
        assert_eq!(sample(&[f32::NEG_INFINITY, 0.0], &ALL, 0.0).unwrap().token, 1);
    }

    #[test]
    fn what_is_no_distribution_is_refused() {
        assert_eq!(log_probs(&[], &ALL), Err(SamplingError::Logits));
        assert_eq!(log_probs(&[0.0, f32::NAN], &ALL), Err(SamplingError::Logits));
        assert_eq!(log_probs(&[f32::NEG_INFINITY], &ALL), Err(SamplingError::Logits));
        for t in [0.0, -1.0, f32::NAN, 1e-9] {
            assert!(matches!(
                log_probs(&[0.0], &Sampling { temperature: t, ..ALL }),
                Err(SamplingError::Temperature(_))
            ));
        }
        for p in [0.0, 1.1, f32::NAN] {
            assert!(matches!(log_probs(&[0.0], &Sampling { top_p: p, ..ALL }), Err(SamplingError::TopP(_))));
        }
    }
}
