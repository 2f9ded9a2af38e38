//! The chain as differentiable operations on tensors: states split over threads in fixed blocks.

use std::sync::{Arc, Mutex};

use candle_core::{CpuStorage, CustomOp2, Device, Layout, Result, Shape, Tensor};
use onpolicy::mlp::sum_in_order;
use onpolicy::params::{cpu_result, cpu_slice, with_slice};
use rayon::prelude::*;

use crate::chain::{Given, Kept, Measure, PathKept, Setup, measure, measure_backward, run};
use crate::network::Net;

/// States per task when the chain is run step after step.
const CHAIN_BLOCK: usize = 128;
/// States per task when all steps of a path go through the network at once.
const PATH_BLOCK: usize = 32;

/// The chain's fixed part.
#[derive(Debug)]
pub(crate) struct Chain {
    pub net: Net,
    pub dt: Vec<f32>,
}

impl Chain {
    /// Elements of noise per state.
    pub fn noise_width(&self) -> usize {
        (self.net.steps + 1) * self.net.d
    }

    fn check(&self, obs: &Layout) -> Result<usize> {
        let (rows, columns) = obs.shape().dims2()?;
        if columns != self.net.obs {
            candle_core::bail!("policy takes observations of length {}, got {columns}", self.net.obs);
        }
        Ok(rows)
    }

    /// Length of a block's gradient: parameters, time part, η.
    fn grad_len(&self) -> usize {
        self.net.len + self.net.steps * (self.net.width + self.net.d)
    }

    /// Sums the blocks' gradients and carries time part and η into the parameters.
    fn finish(&self, setup: &Setup, parts: Vec<Vec<f32>>) -> Result<Tensor> {
        let mut total = sum_in_order(parts, self.grad_len());
        let tail = total.split_off(self.net.len);
        let (dtime, deta) = tail.split_at(self.net.steps * self.net.width);
        self.net.time_backward(setup.p, &setup.time, dtime, &mut total);
        setup.eta_backward(deta, &mut total);
        let n = total.len();
        Tensor::from_vec(total, n, &Device::Cpu)
    }
}

/// (observations `[B, O]`, parameters) → `[B, d+2]`: action, log π̂, entropy estimate. No gradient for observations.
pub(crate) struct ScoreOp {
    pub chain: Arc<Chain>,
    /// `[B, N+1, d]`
    pub noise: Vec<f32>,
    /// Keep what the gradient needs.
    pub keep: bool,
    pub kept: Mutex<Option<Vec<Kept>>>,
}

impl CustomOp2 for ScoreOp {
    fn name(&self) -> &'static str {
        "denoising-chain"
    }

    fn cpu_fwd(&self, s: &CpuStorage, sl: &Layout, p: &CpuStorage, pl: &Layout) -> Result<(CpuStorage, Shape)> {
        let rows = self.chain.check(sl)?;
        let (s, p) = (cpu_slice(s, sl)?, cpu_slice(p, pl)?);
        let net = &self.chain.net;
        let setup = Setup::new(net, &self.chain.dt, p);
        let mut out = vec![0.0; rows * (net.d + 2)];
        let kept: Vec<Option<Kept>> = out
            .par_chunks_mut(CHAIN_BLOCK * (net.d + 2))
            .zip(s.par_chunks(CHAIN_BLOCK * net.obs))
            .zip(self.noise.par_chunks(CHAIN_BLOCK * self.chain.noise_width()))
            .map(|((out, s), noise)| {
                let kept = run(&setup, s, noise, 1.0, 1.0);
                kept.score(&setup, noise, out);
                self.keep.then_some(kept)
            })
            .collect();
        if self.keep {
            *self.kept.lock().expect("no panic while held") = kept.into_iter().collect();
        }
        cpu_result(out, (rows, net.d + 2))
    }

    fn bwd(&self, s: &Tensor, p: &Tensor, _: &Tensor, grad: &Tensor) -> Result<(Option<Tensor>, Option<Tensor>)> {
        let kept = self.kept.lock().expect("no panic while held").take();
        let Some(kept) = kept else { candle_core::bail!("backward through one denoising chain runs once") };
        let (net, grad) = (&self.chain.net, grad.contiguous()?);
        let dp = with_slice(p, |p| {
            with_slice(s, |s| {
                with_slice(&grad, |grad| {
                    let setup = Setup::new(net, &self.chain.dt, p);
                    let parts = kept
                        .into_par_iter()
                        .zip(s.par_chunks(CHAIN_BLOCK * net.obs))
                        .zip(self.noise.par_chunks(CHAIN_BLOCK * self.chain.noise_width()))
                        .zip(grad.par_chunks(CHAIN_BLOCK * (net.d + 2)))
                        .map(|(((kept, s), noise), grad)| {
                            let mut dp = vec![0.0; self.chain.grad_len()];
                            kept.score_backward(&setup, s, noise, grad, &mut dp);
                            dp
                        })
                        .collect();
                    self.chain.finish(&setup, parts)
                })
            })
        })????;
        Ok((None, Some(dp)))
    }
}

/// Detached chains with everything a trace needs.
pub(crate) struct Traces {
    /// `[B, d]`
    pub action: Tensor,
    /// `[B, (N+1)·d]`
    pub path: Tensor,
    /// `[B, N·d]`
    pub mean: Vec<f32>,
    /// `[B, N]`
    pub density: Tensor,
}

/// Draws a chain per observation without a graph. `noise`: `[B, N+1, d]`.
pub(crate) fn trace(chain: &Chain, p: &Tensor, obs: &Tensor, noise: &[f32]) -> Result<Traces> {
    let rows = chain.check(obs.layout())?;
    let (net, obs) = (&chain.net, obs.contiguous()?);
    let (d, n) = (net.d, net.steps);
    let mut action = vec![0.0; rows * d];
    let mut path = vec![0.0; rows * (n + 1) * d];
    let mut mean = vec![0.0; rows * n * d];
    let mut density = vec![0.0; rows * n];
    with_slice(p, |p| {
        with_slice(&obs, |s| {
            let setup = Setup::new(net, &chain.dt, p);
            action
                .par_chunks_mut(CHAIN_BLOCK * d)
                .zip(path.par_chunks_mut(CHAIN_BLOCK * (n + 1) * d))
                .zip(mean.par_chunks_mut(CHAIN_BLOCK * n * d))
                .zip(density.par_chunks_mut(CHAIN_BLOCK * n))
                .zip(s.par_chunks(CHAIN_BLOCK * net.obs))
                .zip(noise.par_chunks(CHAIN_BLOCK * chain.noise_width()))
                .for_each(|(((((action, path), mean), density), s), noise)| {
                    run(&setup, s, noise, 1.0, 1.0).trace(&setup, noise, action, path, mean, density);
                });
        })
    })??;
    let dev = &Device::Cpu;
    Ok(Traces {
        action: Tensor::from_vec(action, (rows, d), dev)?,
        path: Tensor::from_vec(path, (rows, (n + 1) * d), dev)?,
        mean,
        density: Tensor::from_vec(density, (rows, n), dev)?,
    })
}

/// The noise-free chain with factor `c` on the control: actions `[B, d]`. Only the prior's draw of `noise` matters.
pub(crate) fn deterministic(chain: &Chain, p: &Tensor, obs: &Tensor, noise: &[f32], c: f32) -> Result<Tensor> {
    let rows = chain.check(obs.layout())?;
    let (net, obs) = (&chain.net, obs.contiguous()?);
    let mut action = vec![0.0; rows * net.d];
    with_slice(p, |p| {
        with_slice(&obs, |s| {
            let setup = Setup::new(net, &chain.dt, p);
            action
                .par_chunks_mut(CHAIN_BLOCK * net.d)
                .zip(s.par_chunks(CHAIN_BLOCK * net.obs))
                .zip(noise.par_chunks(CHAIN_BLOCK * chain.noise_width()))
                .for_each(|((action, s), noise)| {
                    let kept = run(&setup, s, noise, 0.0, c);
                    action.iter_mut().zip(kept.last()).for_each(|(a, x)| *a = onpolicy::simd::tanh(*x));
                });
        })
    })??;
    Tensor::from_vec(action, (rows, net.d), &Device::Cpu)
}

/// Means `[B, N·d]` and η `[N·d]` of a policy along given paths `[B, (N+1)·d]`.
pub(crate) fn means(chain: &Chain, p: &Tensor, obs: &Tensor, path: &Tensor) -> Result<(Vec<f32>, Vec<f32>)> {
    let rows = chain.check(obs.layout())?;
    let (net, obs, path) = (&chain.net, obs.contiguous()?, path.contiguous()?);
    let (d, n) = (net.d, net.steps);
    let mut mean = vec![0.0; rows * n * d];
    let eta = with_slice(p, |p| {
        with_slice(&obs, |s| {
            with_slice(&path, |path| {
                let setup = Setup::new(net, &chain.dt, p);
                mean.par_chunks_mut(PATH_BLOCK * n * d)
                    .zip(s.par_chunks(PATH_BLOCK * net.obs))
                    .zip(path.par_chunks(PATH_BLOCK * (n + 1) * d))
                    .for_each(|((mean, s), path)| {
                        let mut density = vec![0.0; mean.len() / d];
                        let given = Given { path, mean: &[], eta: &[] };
                        let (x, u, _) = measure(&setup, Measure::Density, s, &given, &mut density);
                        for (e, m) in mean.iter_mut().enumerate() {
                            let eta = setup.eta[e % (n * d)];
                            *m = x[e] + eta * (u[e] - x[e] / (crate::schedule::PRIOR_STD * crate::schedule::PRIOR_STD));
                        }
                    });
                setup.eta
            })
        })
    })???;
    Ok((mean, eta))
}

/// η of every step and dimension, `[N·d]`.
pub(crate) fn step_sizes(chain: &Chain, p: &Tensor) -> Result<Vec<f32>> {
    with_slice(p, |p| Setup::new(&chain.net, &chain.dt, p).eta)
}

/// (observations, parameters) → one number per step of given paths, `[B, N]`. No gradient for observations or paths.
pub(crate) struct PathOp {
    pub chain: Arc<Chain>,
    pub what: Measure,
    /// `[B, N+1, d]`
    pub path: Vec<f32>,
    /// `[B, N, d]` of the reference policy; empty for densities.
    pub mean: Vec<f32>,
    /// `[N, d]` of the reference policy; empty for densities.
    pub eta: Vec<f32>,
    pub kept: Mutex<Option<Vec<PathKept>>>,
}

impl PathOp {
    fn given(&self, block: usize, states: usize) -> Given<'_> {
        let (d, n) = (self.chain.net.d, self.chain.net.steps);
        let first = block * PATH_BLOCK;
        let mean = if self.mean.is_empty() { &[][..] } else { &self.mean[first * n * d..(first + states) * n * d] };
        Given { path: &self.path[first * (n + 1) * d..(first + states) * (n + 1) * d], mean, eta: &self.eta }
    }
}

impl CustomOp2 for PathOp {
    fn name(&self) -> &'static str {
        "denoising-path"
    }

    fn cpu_fwd(&self, s: &CpuStorage, sl: &Layout, p: &CpuStorage, pl: &Layout) -> Result<(CpuStorage, Shape)> {
        let rows = self.chain.check(sl)?;
        let (s, p) = (cpu_slice(s, sl)?, cpu_slice(p, pl)?);
        let net = &self.chain.net;
        if self.path.len() != rows * self.chain.noise_width() {
            candle_core::bail!(
                "{rows} observations need {rows} paths of {} numbers, got {} numbers",
                self.chain.noise_width(),
                self.path.len()
            );
        }
        let setup = Setup::new(net, &self.chain.dt, p);
        let mut out = vec![0.0; rows * net.steps];
        let kept = out
            .par_chunks_mut(PATH_BLOCK * net.steps)
            .zip(s.par_chunks(PATH_BLOCK * net.obs))
            .enumerate()
            .map(|(b, (out, s))| measure(&setup, self.what, s, &self.given(b, s.len() / net.obs), out))
            .collect();
        *self.kept.lock().expect("no panic while held") = Some(kept);
        cpu_result(out, (rows, net.steps))
    }

    fn bwd(&self, s: &Tensor, p: &Tensor, _: &Tensor, grad: &Tensor) -> Result<(Option<Tensor>, Option<Tensor>)> {
        let kept = self.kept.lock().expect("no panic while held").take();
        let Some(kept) = kept else { candle_core::bail!("backward through one measured path runs once") };
        let (net, grad) = (&self.chain.net, grad.contiguous()?);
        let dp = with_slice(p, |p| {
            with_slice(s, |s| {
                with_slice(&grad, |grad| {
                    let setup = Setup::new(net, &self.chain.dt, p);
                    let parts = kept
                        .into_par_iter()
                        .zip(s.par_chunks(PATH_BLOCK * net.obs))
                        .zip(grad.par_chunks(PATH_BLOCK * net.steps))
                        .enumerate()
                        .map(|(b, ((kept, s), grad))| {
                            let mut dp = vec![0.0; self.chain.grad_len()];
                            measure_backward(
                                &setup,
                                self.what,
                                s,
                                &self.given(b, s.len() / net.obs),
                                &kept,
                                grad,
                                &mut dp,
                            );
                            dp
                        })
                        .collect();
                    self.chain.finish(&setup, parts)
                })
            })
        })????;
        Ok((None, Some(dp)))
    }
}
