//! From a rollout to lanes: whole trajectories with their tokens.

use candle_core::{Device, Result, Tensor};
use onpolicy::{Factors, Policy, Rows};
use rollouts::{Rollout, Status};

/// What ratios are taken of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RatioOver {
    /// Every factor of a decision: a text's token, one denoising step.
    Factor,
    /// A whole decision: its factors' log-probabilities are added first.
    Decision,
}

/// One trajectory of a rollout.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Lane {
    /// Its live rows, in time.
    pub rows: Vec<u32>,
    /// Σ reward.
    pub score: f32,
    pub length: u32,
    pub truncated: bool,
    pub group: u32,
    /// `[rows, F]` log-probability of each factor when it was drawn; empty where the source did not keep it.
    pub behaviour: Vec<f32>,
}

/// The lanes of a rollout. Idle rows belong to none.
pub(crate) fn lanes<O, T>(r: &Rollout<O, T>) -> Vec<Lane> {
    let factors = r.log_prob.len() / r.rows().max(1);
    (0..r.lanes)
        .map(|n| {
            let rows: Vec<u32> = (0..r.steps)
                .map(|t| t * r.lanes + n)
                .filter(|row| r.status[*row] != Status::Idle)
                .map(|row| row as u32)
                .collect();
            let kept = |row: &u32| &r.log_prob[*row as usize * factors..(*row as usize + 1) * factors];
            let behaviour = if factors > 0 { rows.iter().flat_map(kept).copied().collect() } else { Vec::new() };
            Lane {
                score: rows.iter().map(|row| r.reward[*row as usize]).sum(),
                length: r.length[n],
                truncated: rows.last().is_some_and(|row| r.status[*row as usize] == Status::Truncated),
                group: r.group[n],
                behaviour,
                rows,
            }
        })
        .collect()
}

/// Adds one row's tokens.
fn push(values: &[f32], mask: &[f32], over: RatioOver, to: &mut Vec<f64>) {
    let live = values.iter().enumerate().filter(|(k, _)| mask[*k] != 0.0).map(|(_, v)| f64::from(*v));
    match over {
        RatioOver::Factor => to.extend(live),
        RatioOver::Decision => to.push(live.sum()),
    }
}

/// Scores of some lanes under a policy, with the graph behind them.
pub(crate) struct Scored {
    factors: Factors,
    value: Vec<f32>,
    mask: Vec<f32>,
    width: usize,
    /// Rows of each lane.
    rows: Vec<usize>,
    over: RatioOver,
    /// Log-probability of each lane's tokens.
    pub tokens: Vec<Vec<f64>>,
}

/// Scores lanes whose rows follow one another in `obs` and `trace`.
pub(crate) fn score<P: Policy>(
    policy: &P,
    obs: &P::Obs,
    trace: &P::Trace,
    rows: &[usize],
    over: RatioOver,
) -> Result<Scored> {
    let factors = policy.log_prob(obs, trace)?;
    let width = factors.value.dims()[1];
    let value = factors.value.flatten_all()?.to_vec1::<f32>()?;
    let mask = factors.mask.flatten_all()?.to_vec1::<f32>()?;
    let mut at = 0;
    let tokens = rows
        .iter()
        .map(|&n| {
            let mut tokens = Vec::new();
            for _ in 0..n {
                push(&value[at..at + width], &mask[at..at + width], over, &mut tokens);
                at += width;
            }
            tokens
        })
        .collect();
    Ok(Scored { factors, value, mask, width, rows: rows.to_vec(), over, tokens })
}

impl Scored {
    /// Differences to what the lanes' source kept: the largest, their sum, and how many.
    pub fn gap(&self, lanes: &[&Lane]) -> (f64, f64, usize) {
        let (mut most, mut sum, mut count, mut row) = (0.0f64, 0.0, 0, 0);
        for (&n, lane) in self.rows.iter().zip(lanes) {
            let factors = lane.behaviour.len() / n.max(1);
            for r in 0..n {
                for k in (0..self.width.min(factors)).filter(|k| self.mask[(row + r) * self.width + k] != 0.0) {
                    let now = self.value[(row + r) * self.width + k];
                    let gap = f64::from(now - lane.behaviour[r * factors + k]).abs();
                    // NaN must not hide behind a comparison
                    most = if gap > most || gap.is_nan() { gap } else { most };
                    sum += gap;
                    count += 1;
                }
            }
            row += n;
        }
        (most, sum, count)
    }

    /// `Σ slope·log-probability`: its gradient is that of the loss whose slopes these are.
    pub fn pull_back(&self, slopes: &[Vec<f64>]) -> Result<Tensor> {
        let mut weight = vec![0.0f32; self.mask.len()];
        let mut row = 0;
        for (&n, slopes) in self.rows.iter().zip(slopes) {
            let mut next = slopes.iter();
            for r in row..row + n {
                let at = r * self.width..(r + 1) * self.width;
                let decision = (self.over == RatioOver::Decision).then(|| next.next().copied().unwrap_or(0.0));
                for k in at {
                    if self.mask[k] != 0.0 {
                        weight[k] = decision.unwrap_or_else(|| next.next().copied().unwrap_or(0.0)) as f32;
                    }
                }
            }
            row += n;
        }
        let weight = Tensor::from_vec(weight, self.factors.value.dims(), &Device::Cpu)?;
        (&self.factors.value * weight)?.sum_all()
    }
}

/// The rows of some lanes, one lane after the other.
pub(crate) fn gather<B: Rows>(from: &B, lanes: &[&Lane]) -> Result<B> {
    let rows: Vec<u32> = lanes.iter().flat_map(|l| l.rows.iter().copied()).collect();
    from.select(&Tensor::new(&rows[..], &Device::Cpu)?)
}
