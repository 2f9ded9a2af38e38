//! Learning from given completions, to start from.

use candle_core::Result;
use onpolicy::adam::{clip_scale, squared_norm};
use onpolicy::params::with_slice;
use onpolicy::{Adam, AdamConfig, Bundle, BundleError, Persist};

use crate::decoder::Decoder;
use crate::tokens::Tokens;

/// Settings of [`Supervised`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SupervisedConfig {
    /// Largest learning rate.
    pub lr: f64,
    /// Steps over which it rises to that.
    pub warm_up: u64,
    /// Steps after which it has fallen, along a cosine, to a tenth.
    pub steps: u64,
    /// Largest norm of a gradient.
    pub clip_norm: f64,
    /// Sequences per forward pass: memory, not result.
    pub micro_batch: usize,
}

impl SupervisedConfig {
    /// Learning rate of step number `t`, counted from 0.
    ///
    /// ```text
    /// lr·min(1, (t+1)/warm_up)·(0.1 + 0.9·(1 + cos(π·t/steps))/2)
    /// ```
    pub fn rate(&self, t: u64) -> f64 {
        let rise = if self.warm_up == 0 { 1.0 } else { ((t + 1) as f64 / self.warm_up as f64).min(1.0) };
        let part = (t as f64 / self.steps.max(1) as f64).min(1.0);
        self.lr * rise * (0.1 + 0.45 * (1.0 + (std::f64::consts::PI * part).cos()))
    }
}

/// What one step tells.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SupervisedReport {
    /// Mean of −ln π over completion tokens, nats.
    pub loss: f64,
    /// Before clipping.
    pub grad_norm: f64,
    /// Completion tokens.
    pub tokens: usize,
}

/// Cross-entropy on completions. Prompts are read and not learned.
#[derive(Clone, Debug)]
pub struct Supervised {
    config: SupervisedConfig,
    adam: Adam,
    steps: u64,
}

impl Supervised {
    /// For that decoder.
    pub fn new(config: SupervisedConfig, decoder: &Decoder) -> Self {
        Supervised { config, adam: Adam::new(decoder.params().len(), AdamConfig::default()), steps: 0 }
    }

    /// Steps made.
    pub fn steps(&self) -> u64 {
        self.steps
    }

    /// One step on a batch: the mean over its completion tokens, however it is split into passes.
    ///
    /// Errors: as [`Decoder::log_prob`], and if the gradient is not finite; then nothing changed.
    pub fn step(&mut self, decoder: &Decoder, prompts: &Tokens, completions: &Tokens) -> Result<SupervisedReport> {
        let tokens = completions.ids().len();
        let mut grad = vec![0.0f32; decoder.params().len()];
        let mut loss = 0.0;
        let rows: Vec<usize> = (0..prompts.rows()).collect();
        for part in rows.chunks(self.config.micro_batch.max(1)) {
            let p = Tokens::new(part.iter().map(|b| prompts.row(*b)));
            let c = Tokens::new(part.iter().map(|b| completions.row(*b)));
            let score = decoder.log_prob(&p, &c, 1.0, decoder.config().vocab)?;
            let part = (score.sum_all()? * (-1.0 / tokens.max(1) as f64))?;
            loss += f64::from(part.to_scalar::<f32>()?);
            if let Some(g) = part.backward()?.remove(decoder.params().var().as_tensor()) {
                with_slice(&g.contiguous()?, |g| grad.iter_mut().zip(g).for_each(|(s, g)| *s += g))?;
            }
        }
        let grad_norm = squared_norm(&grad).sqrt();
        if !(grad_norm.is_finite() && loss.is_finite()) {
            candle_core::bail!("the supervised gradient is not finite at step {}; lower the learning rate", self.steps);
        }
        let scale = clip_scale(grad_norm, self.config.clip_norm) as f32;
        self.adam.step_params(decoder.params(), &grad, scale, self.config.rate(self.steps))?;
        self.steps += 1;
        Ok(SupervisedReport { loss, grad_norm, tokens })
    }
}

impl Persist for Supervised {
    fn save(&self, prefix: &str, to: &mut Bundle) {
        self.adam.save(prefix, to);
        to.put_u64(&format!("{prefix}.steps"), &[self.steps]);
    }

    fn load(&mut self, prefix: &str, from: &Bundle) -> std::result::Result<(), BundleError> {
        self.adam.load(prefix, from)?;
        self.steps = from.u64s(&format!("{prefix}.steps"), 1)?[0];
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::DecoderConfig;

    fn setup() -> (Decoder, SupervisedConfig, Tokens, Tokens) {
        let decoder = Decoder::new(DecoderConfig::new(12, 32, 2, 4, 2, 64), 1).unwrap();
        let config = SupervisedConfig { lr: 1e-2, warm_up: 5, steps: 200, clip_norm: 1.0, micro_batch: 3 };
        let prompts = Tokens::new([&[1, 2][..], &[3], &[4, 5, 6], &[7, 7]]);
        let completions = Tokens::new([&[8, 9, 10, 0][..], &[1, 0], &[2, 2, 2, 2, 2, 0], &[5, 11, 0]]);
        (decoder, config, prompts, completions)
    }

    #[test]
    fn a_small_decoder_learns_four_sequences_by_heart() {
        let (decoder, config, prompts, completions) = setup();
        let mut s = Supervised::new(config, &decoder);
        let mut last = f64::NAN;
        for _ in 0..200 {
            last = s.step(&decoder, &prompts, &completions).unwrap().loss;
        }
        assert!(last < 0.05, "{last}");
    }

    #[test]
    fn the_step_does_not_depend_on_how_the_batch_is_split() {
        let run = |micro_batch| {
            let (decoder, config, prompts, completions) = setup();
            let mut s = Supervised::new(SupervisedConfig { micro_batch, ..config }, &decoder);
            let report = s.step(&decoder, &prompts, &completions).unwrap();
            (report, decoder.params().to_vec().unwrap())
        };
        let (whole, weights) = run(4);
        assert_eq!(whole.tokens, 15);
        for micro_batch in [1, 2, 3] {
            let (parts, other) = run(micro_batch);
            assert!((whole.loss - parts.loss).abs() < 1e-6 && (whole.grad_norm / parts.grad_norm - 1.0).abs() < 1e-4);
            // Adam's first step is the sign of the gradient: compare where that is clear
            let far = weights.iter().zip(&other).filter(|(a, b)| (*a - *b).abs() > 1e-4).count();
            assert!(far * 100 < weights.len(), "{far} of {}", weights.len());
        }
    }

    #[test]
    fn the_loss_is_that_of_completion_tokens_and_their_ends_alone() {
        let (decoder, config, prompts, completions) = setup();
        let score = decoder.log_prob(&prompts, &completions, 1.0, 12).unwrap().to_vec1::<f32>().unwrap();
        let want = -score.iter().map(|s| f64::from(*s)).sum::<f64>() / 15.0;
        let report = Supervised::new(config, &decoder).step(&decoder, &prompts, &completions).unwrap();
        assert!((report.loss - want).abs() < 1e-5, "{} and {want}", report.loss);
        // a row that asks nothing changes nothing, however long its prompt is
        let (alone, config, ..) = setup();
        let more = Tokens::new(prompts.iter().chain([&[3u32; 40][..]]));
        let none = Tokens::new(completions.iter().chain([&[][..]]));
        let with = Supervised::new(config, &alone).step(&alone, &more, &none).unwrap();
        assert_eq!(with.tokens, 15);
        assert!((with.loss - report.loss).abs() < 1e-6 && (with.grad_norm / report.grad_norm - 1.0).abs() < 1e-5);
    }

    #[test]
    fn a_loaded_state_goes_on_with_the_same_bits() {
        let (decoder, config, prompts, completions) = setup();
        let mut s = Supervised::new(config, &decoder);
        s.step(&decoder, &prompts, &completions).unwrap();
        let mut bundle = Bundle::default();
        s.save("s", &mut bundle);
        decoder.save("d", &mut bundle);
        let (mut other, ..) = setup();
        let mut t = Supervised::new(config, &other);
        t.load("s", &bundle).unwrap();
        other.load("d", &bundle).unwrap();
        for (s, d) in [(&mut s, &decoder), (&mut t, &other)] {
            s.step(d, &prompts, &completions).unwrap();
        }
        assert_eq!((s.steps(), t.steps()), (2, 2));
        assert_eq!(decoder.params().to_vec().unwrap(), other.params().to_vec().unwrap());
    }

    #[test]
    fn the_rate_rises_then_falls_to_a_tenth() {
        let c = SupervisedConfig { lr: 1.0, warm_up: 10, steps: 100, clip_norm: 1.0, micro_batch: 1 };
        assert!((c.rate(0) - 0.1).abs() < 1e-3 && (c.rate(50) - 0.55).abs() < 1e-12);
        assert!((c.rate(100) - 0.1).abs() < 1e-12 && (c.rate(500) - 0.1).abs() < 1e-12);
    }
}
