//! A decoder with adapters as a policy.

use candle_core::{Result, Tensor};
use onpolicy::{Bundle, BundleError, Factors, Noise, Params, Persist, Policy, Sampled};

use crate::lora::Lora;
use crate::policy::TokenPolicy;
use crate::tokens::Tokens;

/// [`TokenPolicy`] over base and adapters together, of which only the adapters are learned.
#[derive(Clone, Debug)]
pub struct LoraPolicy {
    /// The network.
    pub lora: Lora,
    /// Logits are divided by it, in sampling and in scoring alike; at least 1e-4.
    pub temperature: f32,
    /// Ids from here on are never drawn: rows of the embedding that the tokenizer does not have.
    pub usable: usize,
    /// Longest completion, the end token included.
    pub max_tokens: usize,
    /// Every token that ends a completion.
    pub ends: Vec<u32>,
}

impl LoraPolicy {
    /// The same distribution with weights of its own, to sample from: what the rollout engine takes.
    pub fn merged(&self) -> Result<TokenPolicy> {
        Ok(TokenPolicy {
            decoder: self.lora.merged()?,
            temperature: self.temperature,
            usable: self.usable,
            max_tokens: self.max_tokens,
            ends: self.ends.clone(),
        })
    }

    fn distributions(&self, prompts: &Tokens, completions: &Tokens) -> Result<Tensor> {
        let logits = self.lora.base().logits_with(&self.lora.weights()?, prompts, completions)?;
        TokenPolicy::normalised(&logits, self.usable, self.temperature)
    }
}

impl Policy for LoraPolicy {
    type Obs = Tokens;
    type Action = Tokens;
    type Trace = Tokens;

    fn sample(&self, prompts: &Tokens, noise: &mut Noise) -> Result<Sampled<Self>> {
        let Sampled { action, trace, log_prob } = self.merged()?.sample(prompts, noise)?;
        Ok(Sampled { action, trace, log_prob })
    }

    fn log_prob(&self, prompts: &Tokens, completions: &Tokens) -> Result<Factors> {
        let (weights, base) = (self.lora.weights()?, self.lora.base());
        let flat = base.log_prob_with(&weights, prompts, completions, self.temperature, self.usable)?;
        TokenPolicy::spread(&flat, &completions.lengths())
    }

    /// Exact over the vocabulary.
    fn kl(p: &Self, q: &Self, prompts: &Tokens, completions: &Tokens) -> Result<Factors> {
        let p = p.distributions(prompts, completions)?.detach();
        TokenPolicy::divergence(&p, &q.distributions(prompts, completions)?, &completions.lengths())
    }

    fn snapshot(&self) -> Result<Self> {
        Ok(LoraPolicy { lora: self.lora.snapshot()?, ..self.clone() })
    }

    fn params(&self) -> Vec<&Params> {
        vec![self.lora.params()]
    }
}

impl Persist for LoraPolicy {
    fn save(&self, prefix: &str, to: &mut Bundle) {
        self.lora.save(prefix, to);
    }
    fn load(&mut self, prefix: &str, from: &Bundle) -> std::result::Result<(), BundleError> {
        self.lora.load(prefix, from)
    }
}
