//! A policy small enough to check by hand: the next symbol depends on the last one alone.

use candle_core::{D, Device, Result, Tensor};
use grpo::{Ask, Generated, Timing};
use onpolicy::params::{Init, ParamsBuilder};
use onpolicy::{Factors, Noise, Params, Policy, Rows, Sampled};
use rollouts::{Rollout, Status};

/// Symbols; 0 ends a sequence.
pub const V: usize = 5;
/// Longest sequence.
pub const LONGEST: usize = 6;

/// Sequences of symbols.
#[derive(Clone, Debug, PartialEq)]
pub struct Symbols(pub Vec<Vec<u32>>);

impl Rows for Symbols {
    fn rows(&self) -> usize {
        self.0.len()
    }
    fn select(&self, rows: &Tensor) -> Result<Self> {
        Ok(Symbols(rows.to_vec1::<u32>()?.iter().map(|r| self.0[*r as usize].clone()).collect()))
    }
    fn concat(parts: &[Self]) -> Result<Self> {
        Ok(Symbols(parts.iter().flat_map(|p| p.0.clone()).collect()))
    }
}

#[derive(Clone)]
pub struct Bigram {
    pub params: Params,
    pub temperature: f64,
}

impl Bigram {
    pub fn new(temperature: f64) -> Self {
        let mut b = ParamsBuilder::default();
        b.add("logits", &[V, V], Init::Uniform { fan_in: 1, factor: 0.5 }, &mut Noise::new(1));
        Bigram { params: b.build().unwrap(), temperature }
    }

    pub fn weights(&self) -> Vec<u32> {
        self.params.to_vec().unwrap().into_iter().map(f32::to_bits).collect()
    }

    fn table(&self) -> Result<Tensor> {
        let logits = (self.params.var().as_tensor().reshape((V, V))? / self.temperature)?;
        logits.broadcast_sub(&logits.exp()?.sum_keepdim(D::Minus1)?.log()?)
    }

    fn factors(&self, table: &Tensor, prompts: &Symbols, completions: &Symbols) -> Result<Factors> {
        let width = completions.0.iter().map(Vec::len).max().unwrap_or(0);
        let (mut index, mut mask) = (Vec::new(), Vec::new());
        for (p, c) in prompts.0.iter().zip(&completions.0) {
            let mut last = *p.last().unwrap();
            for t in 0..width {
                let id = c.get(t).copied();
                index.push(last * V as u32 + id.unwrap_or(0));
                mask.push(f32::from(u8::from(id.is_some())));
                last = id.unwrap_or(0);
            }
        }
        let shape = (prompts.0.len(), width);
        let mask = Tensor::from_vec(mask, shape, &Device::Cpu)?;
        let index = Tensor::from_vec(index, shape.0 * width, &Device::Cpu)?;
        let value = table.flatten_all()?.index_select(&index, 0)?.reshape(shape)?;
        Ok(Factors { value: (value * &mask)?, mask })
    }
}

impl Policy for Bigram {
    type Obs = Symbols;
    type Action = Symbols;
    type Trace = Symbols;

    fn sample(&self, prompts: &Symbols, noise: &mut Noise) -> Result<Sampled<Self>> {
        let table = self.table()?.to_vec2::<f32>()?;
        let mut all = Vec::new();
        for p in &prompts.0 {
            let (mut last, mut row) = (*p.last().unwrap(), Vec::new());
            for u in noise.uniform(LONGEST) {
                let mut mass = 0.0;
                let pick = table[last as usize].iter().position(|l| {
                    mass += l.exp();
                    u < mass
                });
                last = pick.unwrap_or(V - 1) as u32;
                row.push(last);
                if last == 0 {
                    break;
                }
            }
            all.push(row);
        }
        let action = Symbols(all);
        let log_prob = self.log_prob(prompts, &action)?;
        Ok(Sampled { trace: action.clone(), action, log_prob })
    }
    fn log_prob(&self, prompts: &Symbols, completions: &Symbols) -> Result<Factors> {
        self.factors(&self.table()?, prompts, completions)
    }
    fn kl(_: &Self, _: &Self, _: &Symbols, _: &Symbols) -> Result<Factors> {
        unreachable!("the trainer estimates divergences from samples")
    }
    fn snapshot(&self) -> Result<Self> {
        Ok(Bigram { params: self.params.snapshot()?, temperature: self.temperature })
    }
    fn params(&self) -> Vec<&Params> {
        vec![&self.params]
    }
}

/// Share of a sequence's symbols that are 3, and 1 only if it ends: something to learn.
pub fn score(row: &[u32]) -> f32 {
    let threes = row.iter().filter(|s| **s == 3).count() as f32;
    threes / LONGEST as f32 + f32::from(u8::from(row.last() == Some(&0))) / LONGEST as f32
}

/// Groups of sequences, each group from one first symbol, scored by `score`.
pub fn generate(
    policy: &Bigram,
    ask: Ask,
    noise: &mut Noise,
    score: impl Fn(&[u32]) -> f32,
) -> Result<Generated<Bigram>> {
    let lanes = ask.groups * ask.group_size;
    let obs = Symbols((0..lanes).map(|n| vec![1 + (n / ask.group_size % 4) as u32]).collect());
    let drawn = policy.sample(&obs, noise)?;
    let rows = &drawn.action.0;
    let status = |r: &Vec<u32>| if r.last() == Some(&0) { Status::Terminated } else { Status::Truncated };
    let rollout = Rollout {
        steps: 1,
        lanes,
        obs,
        next_obs: None,
        action: Vec::new(),
        log_prob: drawn.log_prob.value.flatten_all()?.to_vec1()?,
        reward: rows.iter().map(|r| score(r)).collect(),
        status: rows.iter().map(status).collect(),
        group: (0..lanes).map(|n| (n / ask.group_size) as u32).collect(),
        length: rows.iter().map(|r| r.len() as u32).collect(),
        trace: drawn.trace,
    };
    Ok(Generated { rollout, timing: Timing { generate_s: 2.0, tail_s: 0.5, useful: 10, computed: 15 } })
}
