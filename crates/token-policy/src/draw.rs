//! One token from logits at a temperature, fast: no sorting, no narrowing.

use onpolicy::multiversion;
use onpolicy::simd::exp;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};

use crate::sampler::Drawn;

/// The uniform numbers of one completion: its own stream, one word a token, so that what it draws depends on nothing but
/// its number and its distribution.
#[derive(Clone, Debug)]
pub(crate) struct Stream(ChaCha8Rng);

impl Stream {
    pub fn new(seed: u64, number: u64) -> Self {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        rng.set_stream(number);
        Stream(rng)
    }

    /// In (0, 1).
    pub fn uniform(&mut self) -> f32 {
        onpolicy::unit(self.0.next_u32())
    }
}

multiversion! {
    /// `weight = exp((logit − top)/temperature)`; returns top and the sum of all weights.
    fn weights(logits: &[f32], inverse: f32, weight: &mut [f32]) -> (f32, f32) {
        let mut top = [f32::NEG_INFINITY; 16];
        for (k, l) in logits.iter().enumerate() {
            top[k % 16] = if *l > top[k % 16] { *l } else { top[k % 16] };
        }
        let mut highest = f32::NEG_INFINITY;
        for t in top {
            highest = highest.max(t);
        }
        let mut sums = [0.0f32; 16];
        for (k, l) in logits.iter().enumerate() {
            // exp clamps: what is not a number must reach the sum as such
            let w = if *l == f32::NEG_INFINITY { 0.0 } else { exp((*l - highest) * inverse) + 0.0 * *l };
            weight[k] = w;
            sums[k % 16] += w;
        }
        (highest, sums.iter().sum())
    }
}

/// Draws from `softmax(logits/temperature)`: the first token whose cumulated weight passes `u`, uniform in (0, 1).
/// `scratch`: as long as the logits. `None` if the logits are no distribution.
pub(crate) fn draw(logits: &[f32], temperature: f32, u: f32, scratch: &mut [f32]) -> Option<Drawn> {
    let inverse = 1.0 / temperature;
    let (top, sum) = weights(logits, inverse, scratch);
    if !(sum.is_finite() && sum > 0.0 && top.is_finite()) {
        return None;
    }
    let goal = f64::from(u) * f64::from(sum);
    let (mut mass, mut last) = (0.0, 0);
    for (k, w) in scratch.iter().enumerate().filter(|(_, w)| **w > 0.0) {
        mass += f64::from(*w);
        last = k;
        if goal < mass {
            break;
        }
    }
    Some(Drawn { token: last as u32, log_prob: (logits[last] - top) * inverse - sum.ln() })
}

/// The likeliest token, the lowest id of equal ones, and its log-probability at temperature 1.
pub(crate) fn likeliest(logits: &[f32], scratch: &mut [f32]) -> Option<Drawn> {
    let (top, sum) = weights(logits, 1.0, scratch);
    let best = logits.iter().position(|l| *l == top).filter(|_| sum.is_finite() && top.is_finite())?;
    Some(Drawn { token: best as u32, log_prob: -sum.ln() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sampler::{Sampling, sample};

    #[test]
    fn draws_are_those_of_the_sorting_sampler() {
        let logits: Vec<f32> = (0..53).map(|i| (i as f32 * 1.7).sin() * 4.0).collect();
        let mut scratch = vec![0.0; logits.len()];
        for temperature in [0.3, 1.0, 2.0] {
            let settings = Sampling { temperature, top_k: 0, top_p: 1.0 };
            for i in 0..500 {
                let u = (i as f32 + 0.5) / 500.0;
                let (a, b) =
                    (draw(&logits, temperature, u, &mut scratch).unwrap(), sample(&logits, &settings, u).unwrap());
                assert_eq!(a.token, b.token, "{temperature} {u}");
                assert!((a.log_prob - b.log_prob).abs() < 2e-6, "{a:?} {b:?}");
            }
        }
    }

    #[test]
    fn what_is_no_distribution_is_nothing_and_impossible_tokens_are_never_drawn() {
        let mut scratch = [0.0; 3];
        assert_eq!(draw(&[0.0, f32::NAN, 0.0], 1.0, 0.5, &mut scratch), None);
        assert_eq!(draw(&[f32::NEG_INFINITY; 3], 1.0, 0.5, &mut scratch), None);
        assert_eq!(draw(&[0.0, f32::INFINITY, 0.0], 1.0, 0.5, &mut scratch), None);
        let only = draw(&[f32::NEG_INFINITY, 3.0, f32::NEG_INFINITY], 1.0, 0.999_999, &mut scratch).unwrap();
        assert_eq!((only.token, only.log_prob), (1, 0.0));
        assert_eq!(likeliest(&[1.0, 2.0, 2.0], &mut scratch).unwrap().token, 1);
    }

    #[test]
    fn streams_of_different_numbers_differ_and_of_equal_ones_do_not() {
        let of = |seed, n| {
            let mut s = Stream::new(seed, n);
            [s.uniform(), s.uniform()]
        };
        assert_eq!(of(1, 2), of(1, 2));
        assert_ne!(of(1, 2), of(1, 3));
        assert_ne!(of(1, 2), of(2, 2));
    }
}
