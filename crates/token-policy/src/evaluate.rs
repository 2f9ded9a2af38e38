//! How many prompts a policy solves, with the uncertainty of that.

use onpolicy::Noise;
use rollouts::TextTask;

use crate::codec::Codec;
use crate::collect::{CollectError, Plan, Scored, Writing, write};
use crate::ending::Ending;
use crate::engine::Choice;
use crate::policy::TokenPolicy;

/// What came out.
#[derive(Clone, Debug, PartialEq)]
pub struct Evaluation {
    /// Prompts.
    pub prompts: usize,
    /// Completions of each.
    pub samples: usize,
    /// Mean score of a completion, in [0, 1].
    pub pass_at_1: f64,
    /// 95 % interval of it over prompts: Wilson's for one completion each, else normal over the prompts' means.
    pub interval: [f64; 2],
    /// Mean length of all, of right (more than half the score) and of wrong completions, in tokens with the end token;
    /// NaN where there are none.
    pub length: [f64; 3],
    /// Share of completions cut at the longest length.
    pub truncated: f64,
    /// Every completion, those of one prompt side by side.
    pub completions: Vec<Scored>,
}

/// Completes prompts and scores what comes. Equal seeds, equal draws.
///
/// Errors: [`CollectError`].
pub fn evaluate(
    policy: &TokenPolicy,
    task: &(impl TextTask + Sync + ?Sized),
    codec: &(impl Codec + Sync + ?Sized),
    prompts: &[u64],
    samples: usize,
    choice: Choice,
    writing: Writing,
    seed: u64,
) -> Result<Evaluation, CollectError> {
    let seed = u64::from(Noise::named(seed, "evaluation").uniform(1)[0].to_bits());
    let plan = Plan { copies: samples, keep_members: None, keep_groups: None };
    let written = write(policy, task, codec, prompts, plan, choice, writing, seed, 0, &|| 0.0)?;
    let scored: Vec<Scored> = written.scored.into_iter().flatten().collect();
    let means: Vec<f64> =
        scored.chunks(samples).map(|c| c.iter().map(|s| f64::from(s.score)).sum::<f64>() / samples as f64).collect();
    let mean = |x: Vec<f64>| x.iter().sum::<f64>() / x.len() as f64;
    let length = |keep: fn(f32) -> bool| {
        mean(scored.iter().filter(|s| keep(s.score)).map(|s| s.completed.tokens.len() as f64).collect())
    };
    Ok(Evaluation {
        prompts: prompts.len(),
        samples,
        pass_at_1: mean(means.clone()),
        interval: if samples == 1 { wilson(mean(means), prompts.len()) } else { normal(&means) },
        length: [length(|_| true), length(|s| s > 0.5), length(|s| s <= 0.5)],
        truncated: scored.iter().filter(|s| s.completed.ending == Ending::Truncated).count() as f64
            / scored.len() as f64,
        completions: scored,
    })
}

/// Quantile of the standard normal at 97.5 %.
const Z: f64 = 1.959_963_984_540_054;

/// Wilson's interval of a share `p` of `n` trials (Wilson 1927):
///
/// ```text
/// (p + z²/2n ± z·√(p(1−p)/n + z²/4n²)) / (1 + z²/n)
/// ```
pub fn wilson(p: f64, n: usize) -> [f64; 2] {
    let n = n as f64;
    let z2 = Z * Z / n;
    let (centre, half) = (p + z2 / 2.0, Z * (p * (1.0 - p) / n + z2 / (4.0 * n)).sqrt());
    [(centre - half) / (1.0 + z2), (centre + half) / (1.0 + z2)]
}

/// Mean ± z standard errors, within [0, 1].
fn normal(x: &[f64]) -> [f64; 2] {
    let n = x.len() as f64;
    let mean = x.iter().sum::<f64>() / n;
    let square = x.iter().map(|v| (v - mean).powi(2)).sum::<f64>();
    let half = if n < 2.0 { 1.0 } else { Z * (square / (n - 1.0) / n).sqrt() };
    [(mean - half).max(0.0), (mean + half).min(1.0)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_have_their_hand_computed_values() {
        // 8 of 10: a textbook's 0.490 to 0.943
        let [low, high] = wilson(0.8, 10);
        assert!((low - 0.490_2).abs() < 1e-4 && (high - 0.943_3).abs() < 1e-4, "{low} {high}");
        let [low, high] = wilson(0.0, 20);
        assert!(low.abs() < 1e-12 && (high - 0.161_1).abs() < 1e-4, "{high}");
        // mean 0.5, deviation 0.5, error 0.25
        let [low, high] = normal(&[0.0, 1.0, 0.0, 1.0]);
        assert!((low - 0.0).abs() < 0.07 && (high - 1.0).abs() < 0.07, "{low} {high}");
        assert_eq!(normal(&[0.25]), [0.0, 1.0]);
    }
}
