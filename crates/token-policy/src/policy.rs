//! A decoder as a policy: a prompt is what it observes, a completion what it decides.

use candle_core::{D, Device, Result, Tensor};
use onpolicy::{Bundle, BundleError, Factors, Noise, Params, Persist, Policy, Sampled};

use crate::decoder::Decoder;
use crate::decoding::Decoding;
use crate::generator::Generator;
use crate::sampler::{Sampling, sample};
use crate::tokens::Tokens;

/// A decoder with everything that a distribution over completions needs.
///
/// ```text
/// ln π(o|q) = Σ_t ln softmax(logits(q, o_<t)/temperature)[o_t],   over ids below `usable`
/// ```
#[derive(Clone, Debug)]
pub struct TokenPolicy {
    /// The network.
    pub decoder: Decoder,
    /// Logits are divided by it, in sampling and in scoring alike; at least 1e-4.
    pub temperature: f32,
    /// Ids from here on are never drawn: rows of the embedding that the tokenizer does not have.
    pub usable: usize,
    /// Longest completion, the end token included.
    pub max_tokens: usize,
    /// Every token that ends a completion.
    pub ends: Vec<u32>,
}

impl TokenPolicy {
    /// `[M]` as `[B, F]`: row b holds its completion's numbers, then zeros.
    pub(crate) fn spread(flat: &Tensor, lengths: &[usize]) -> Result<Factors> {
        let (rows, width) = (lengths.len(), lengths.iter().copied().max().unwrap_or(0));
        let total = flat.dims()[0];
        // one zero after the numbers stands for all padding
        let padded = Tensor::cat(&[flat, &Tensor::zeros(1, flat.dtype(), &Device::Cpu)?], 0)?;
        let mut index = vec![total as u32; rows * width];
        let mut mask = vec![0.0f32; rows * width];
        let mut at = 0;
        for (b, &n) in lengths.iter().enumerate() {
            for t in 0..n {
                index[b * width + t] = at;
                mask[b * width + t] = 1.0;
                at += 1;
            }
        }
        let index = Tensor::from_vec(index, rows * width, &Device::Cpu)?;
        let value = padded.index_select(&index, 0)?.reshape((rows, width))?;
        Ok(Factors { value, mask: Tensor::from_vec(mask, (rows, width), &Device::Cpu)? })
    }

    /// Log-probabilities of the whole vocabulary at every completion token, `[M, usable]`.
    fn distributions(&self, prompts: &Tokens, completions: &Tokens) -> Result<Tensor> {
        let logits = self.decoder.logits(prompts, completions)?;
        Self::normalised(&logits, self.usable, self.temperature)
    }

    /// `ln softmax(logits/temperature)` over the ids below `usable`.
    pub(crate) fn normalised(logits: &Tensor, usable: usize, temperature: f32) -> Result<Tensor> {
        let scaled = (logits.narrow(1, 0, usable)? / f64::from(temperature))?;
        let shifted = scaled.broadcast_sub(&scaled.max_keepdim(D::Minus1)?.detach())?;
        shifted.broadcast_sub(&shifted.exp()?.sum_keepdim(D::Minus1)?.log()?)
    }

    /// `Σ_v p_v·(ln p_v − ln q_v)` at every token, from logarithms.
    pub(crate) fn divergence(p: &Tensor, q: &Tensor, lengths: &[usize]) -> Result<Factors> {
        let flat = (p.exp()? * (p - q)?)?.sum(D::Minus1)?;
        Self::spread(&flat, lengths)
    }
}

impl Policy for TokenPolicy {
    type Obs = Tokens;
    type Action = Tokens;
    type Trace = Tokens;

    /// One row after the other and all side by side; the engine batches better.
    fn sample(&self, prompts: &Tokens, noise: &mut Noise) -> Result<Sampled<Self>> {
        let rows = prompts.rows();
        let longest = prompts.lengths().into_iter().max().unwrap_or(0);
        let mut decoding = Decoding::new(&self.decoder, rows, longest + self.max_tokens)?;
        let v = decoding.vocab();
        let mut logits = vec![0.0; rows * v];
        for (b, prompt) in prompts.iter().enumerate() {
            decoding.prefill(b, prompt, &mut logits[b * v..(b + 1) * v])?;
        }
        let settings = Sampling { temperature: self.temperature, top_k: 0, top_p: 1.0 };
        let (mut ids, mut log_prob) = (vec![Vec::new(); rows], vec![Vec::new(); rows]);
        let mut live: Vec<usize> = (0..rows).collect();
        for t in 0..self.max_tokens {
            // a number for every row, so that a row's draws do not depend on when others end
            let uniform = noise.uniform(rows);
            let mut drawn = Vec::with_capacity(live.len());
            for (i, &b) in live.iter().enumerate() {
                let draw = sample(&logits[i * v..i * v + self.usable], &settings, uniform[b])
                    .map_err(|e| candle_core::Error::Msg(format!("prompt {b}, token {t}: {e}")))?;
                ids[b].push(draw.token);
                log_prob[b].push(draw.log_prob);
                drawn.push(draw.token);
            }
            let next: Vec<(usize, u32)> =
                live.iter().copied().zip(drawn).filter(|(_, id)| !self.ends.contains(id)).collect();
            live = next.iter().map(|n| n.0).collect();
            if live.is_empty() || t + 1 == self.max_tokens {
                break;
            }
            let tokens: Vec<u32> = next.iter().map(|n| n.1).collect();
            logits.truncate(live.len() * v);
            decoding.step(&live, &tokens, &mut logits)?;
        }
        let action = Tokens::new(&ids);
        let flat = Tensor::from_vec(log_prob.concat(), action.ids().len(), &Device::Cpu)?;
        let log_prob = Self::spread(&flat, &action.lengths())?;
        Ok(Sampled { trace: action.clone(), action, log_prob })
    }

    fn log_prob(&self, prompts: &Tokens, completions: &Tokens) -> Result<Factors> {
        let flat = self.decoder.log_prob(prompts, completions, self.temperature, self.usable)?;
        Self::spread(&flat, &completions.lengths())
    }

    /// Exact over the vocabulary: `Σ_v p_v·(ln p_v − ln q_v)` at every token.
    fn kl(p: &Self, q: &Self, prompts: &Tokens, completions: &Tokens) -> Result<Factors> {
        let p = p.distributions(prompts, completions)?.detach();
        Self::divergence(&p, &q.distributions(prompts, completions)?, &completions.lengths())
    }

    fn snapshot(&self) -> Result<Self> {
        Ok(TokenPolicy { decoder: self.decoder.snapshot()?, ..self.clone() })
    }

    fn params(&self) -> Vec<&Params> {
        vec![&self.decoder.params]
    }
}

impl Persist for TokenPolicy {
    fn save(&self, prefix: &str, to: &mut Bundle) {
        self.decoder.save(prefix, to);
    }
    fn load(&mut self, prefix: &str, from: &Bundle) -> std::result::Result<(), BundleError> {
        self.decoder.load(prefix, from)
    }
}
