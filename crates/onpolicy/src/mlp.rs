//! Multilayer perceptrons as one differentiable operation: forward and backward hand-written, rows split over threads.

use std::sync::{Arc, Mutex};

use candle_core::{CpuStorage, CustomOp2, Device, Layout, Result, Shape, Tensor};
use rayon::prelude::*;

use crate::dense::{Activation, Dense, Norm, activate, activate_backward};
use crate::noise::Noise;
use crate::params::{Init, Params, ParamsBuilder, cpu_result, cpu_slice, with_slice};

/// Rows that one task works through. Fixed, so that sums over rows have one order for any thread count.
pub const BLOCK: usize = 128;

/// What a forward pass must be able to differentiate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wants {
    /// Nothing: no graph, nothing kept.
    Nothing,
    /// The input only: the parameters count as constants.
    Input,
    /// The parameters only: the input counts as data.
    Params,
    /// Both.
    All,
}

/// A stack of [`Dense`] layers over one flat parameter vector.
#[derive(Clone, Debug)]
pub struct Mlp {
    stack: Arc<Stack>,
    params: Params,
}

#[derive(Debug)]
struct Stack {
    input_act: Activation,
    layers: Vec<Dense>,
    offsets: Vec<usize>,
}

impl Mlp {
    /// Layers must fit one another. Weights and biases start uniform in ±1/√fan_in, the last layer's multiplied by
    /// `last`; scales start at 1, shifts at 0. `input_act` is applied to the input first.
    ///
    /// Panics if consecutive layers do not fit.
    pub fn new(input_act: Activation, layers: Vec<Dense>, last: f32, noise: &mut Noise) -> Result<Self> {
        assert!(
            !layers.is_empty() && layers.windows(2).all(|w| w[0].output == w[1].input),
            "layers do not fit: {layers:?}"
        );
        let mut builder = ParamsBuilder::default();
        let mut offsets = Vec::new();
        for (l, d) in layers.iter().enumerate() {
            let factor = if l + 1 == layers.len() { last } else { 1.0 };
            let init = Init::Uniform { fan_in: d.input, factor };
            offsets.push(builder.add(format!("{l}.weight"), &[d.output, d.input], init, noise));
            builder.add(format!("{l}.bias"), &[d.output], init, noise);
            if d.norm != Norm::None {
                builder.add(format!("{l}.norm.weight"), &[d.output], Init::Constant(1.0), noise);
            }
            if d.norm == Norm::Layer {
                builder.add(format!("{l}.norm.bias"), &[d.output], Init::Constant(0.0), noise);
            }
        }
        Ok(Mlp { stack: Arc::new(Stack { input_act, layers, offsets }), params: builder.build()? })
    }

    /// `depth` linear layers: hidden ones of that width with norm and activation, the last one bare.
    pub fn uniform_width(
        input_act: Activation,
        input: usize,
        width: usize,
        output: usize,
        depth: usize,
        norm: Norm,
        act: Activation,
        last: f32,
        noise: &mut Noise,
    ) -> Result<Self> {
        let layer = |l: usize| Dense {
            input: if l == 0 { input } else { width },
            output: if l + 1 == depth { output } else { width },
            norm: if l + 1 == depth { Norm::None } else { norm },
            act: if l + 1 == depth { Activation::None } else { act },
        };
        Mlp::new(input_act, (0..depth).map(layer).collect(), last, noise)
    }

    /// The parameters.
    pub fn params(&self) -> &Params {
        &self.params
    }

    /// The parameters, to load into.
    pub fn params_mut(&mut self) -> &mut Params {
        &mut self.params
    }

    /// A copy that no later update reaches.
    pub fn snapshot(&self) -> Result<Mlp> {
        Ok(Mlp { stack: self.stack.clone(), params: self.params.snapshot()? })
    }

    /// `[B, in]` → `[B, out]`.
    pub fn forward(&self, x: &Tensor, wants: Wants) -> Result<Tensor> {
        let x = x.contiguous()?;
        let op = MlpOp { stack: self.stack.clone(), wants, kept: Mutex::new(None) };
        let p = self.params.var().as_tensor();
        match wants {
            Wants::Nothing => x.apply_op2_no_bwd(p, &op),
            Wants::Input => x.apply_op2(&p.detach(), op),
            Wants::Params => x.detach().apply_op2(p, op),
            Wants::All => x.apply_op2(p, op),
        }
    }
}

impl Stack {
    fn input(&self) -> usize {
        self.layers[0].input
    }

    fn output(&self) -> usize {
        self.layers[self.layers.len() - 1].output
    }

    fn layer_params<'a>(&self, p: &'a [f32], l: usize) -> &'a [f32] {
        &p[self.offsets[l]..self.offsets[l] + self.layers[l].params()]
    }
}

/// What one block of rows keeps for its backward pass.
struct Kept {
    /// Per layer: input `[rows, in]`, normalised or pre-activation values `[rows, out]`, 1/std `[rows]`.
    layers: Vec<(Vec<f32>, Vec<f32>, Vec<f32>)>,
}

struct MlpOp {
    stack: Arc<Stack>,
    wants: Wants,
    kept: Mutex<Option<Vec<Kept>>>,
}

impl MlpOp {
    fn block_forward(&self, p: &[f32], x: &[f32], out: &mut [f32]) -> Option<Kept> {
        let s = &*self.stack;
        let rows = x.len() / s.input();
        let mut input = vec![0.0; x.len()];
        activate(s.input_act, x, &mut input);
        let mut kept = Kept { layers: Vec::with_capacity(s.layers.len()) };
        for (l, layer) in s.layers.iter().enumerate() {
            let (mut values, mut scale) = (vec![0.0; rows * layer.output], vec![0.0; rows]);
            let params = s.layer_params(p, l);
            if l + 1 == s.layers.len() {
                layer.forward(params, rows, &input, out, &mut values, &mut scale);
                kept.layers.push((std::mem::take(&mut input), values, scale));
            } else {
                let mut y = vec![0.0; rows * layer.output];
                layer.forward(params, rows, &input, &mut y, &mut values, &mut scale);
                kept.layers.push((std::mem::replace(&mut input, y), values, scale));
            }
        }
        (self.wants != Wants::Nothing).then_some(kept)
    }

    /// Adds to `dp` (empty: not wanted) and overwrites `dx` (empty: not wanted).
    fn block_backward(&self, p: &[f32], x: &[f32], kept: &Kept, dy: &[f32], dx: &mut [f32], dp: &mut [f32]) {
        let s = &*self.stack;
        let rows = dy.len() / s.output();
        let mut grad = dy.to_vec();
        for (l, layer) in s.layers.iter().enumerate().rev() {
            let (input, values, scale) = &kept.layers[l];
            let dp = (!dp.is_empty()).then(|| &mut dp[s.offsets[l]..s.offsets[l] + layer.params()]);
            let params = s.layer_params(p, l);
            if l == 0 {
                let dx = (!dx.is_empty()).then_some(&mut *dx);
                layer.backward(params, rows, input, values, scale, &mut grad, dx, dp);
            } else {
                let mut next = vec![0.0; rows * layer.input];
                layer.backward(params, rows, input, values, scale, &mut grad, Some(&mut next), dp);
                grad = next;
            }
        }
        activate_backward(s.input_act, x, dx);
    }
}

impl CustomOp2 for MlpOp {
    fn name(&self) -> &'static str {
        "mlp"
    }

    fn cpu_fwd(&self, x: &CpuStorage, xl: &Layout, p: &CpuStorage, pl: &Layout) -> Result<(CpuStorage, Shape)> {
        let (x, p) = (cpu_slice(x, xl)?, cpu_slice(p, pl)?);
        let (input, output) = (self.stack.input(), self.stack.output());
        let (rows, columns) = xl.shape().dims2()?;
        if columns != input {
            candle_core::bail!("network takes {input} inputs, got {columns}");
        }
        let mut out = vec![0.0; rows * output];
        let kept: Vec<Option<Kept>> = out
            .par_chunks_mut(BLOCK * output)
            .zip(x.par_chunks(BLOCK * input))
            .map(|(out, x)| self.block_forward(p, x, out))
            .collect();
        if self.wants != Wants::Nothing {
            *self.kept.lock().expect("no panic while held") = kept.into_iter().collect();
        }
        cpu_result(out, (rows, output))
    }

    fn bwd(&self, x: &Tensor, p: &Tensor, _: &Tensor, dy: &Tensor) -> Result<(Option<Tensor>, Option<Tensor>)> {
        let kept = self.kept.lock().expect("no panic while held").take();
        let Some(kept) = kept else { candle_core::bail!("backward through one mlp forward pass runs once") };
        let s = &*self.stack;
        let (rows, input, output) = (x.dims()[0], s.input(), s.output());
        let (want_x, want_p) = (self.wants != Wants::Params, self.wants != Wants::Input);
        let dy = dy.contiguous()?;
        let mut dx = vec![0.0; if want_x { rows * input } else { 0 }];
        let parts = with_slice(x, |x| {
            with_slice(p, |p| {
                with_slice(&dy, |dy| {
                    let mut dx_blocks: Vec<&mut [f32]> = dx.chunks_mut(BLOCK * input).collect();
                    dx_blocks.resize_with(kept.len(), Default::default);
                    kept.par_iter()
                        .zip(dx_blocks)
                        .enumerate()
                        .map(|(b, (kept, dx))| {
                            let rows = b * BLOCK..rows.min((b + 1) * BLOCK);
                            let mut dp = vec![0.0; if want_p { p.len() } else { 0 }];
                            self.block_backward(
                                p,
                                &x[rows.start * input..rows.end * input],
                                kept,
                                &dy[rows.start * output..rows.end * output],
                                dx,
                                &mut dp,
                            );
                            dp
                        })
                        .collect::<Vec<_>>()
                })
            })
        })???;
        let dx = if want_x { Some(Tensor::from_vec(dx, (rows, input), &Device::Cpu)?) } else { None };
        let dp = if want_p {
            Some(Tensor::from_vec(sum_in_order(parts, p.elem_count()), p.elem_count(), &Device::Cpu)?)
        } else {
            None
        };
        Ok((dx, dp))
    }
}

/// Adds up vectors of one length, always in their order: the same bits for any thread count.
pub fn sum_in_order(mut parts: Vec<Vec<f32>>, len: usize) -> Vec<f32> {
    if parts.is_empty() {
        return vec![0.0; len];
    }
    let mut total = parts.swap_remove(0);
    // swap_remove moved the last part to the front: put it back where it was
    let n = parts.len();
    if n > 1 {
        parts[..n].rotate_left(1);
    }
    total.par_chunks_mut(16_384).enumerate().for_each(|(c, total)| {
        for part in &parts {
            for (t, x) in total.iter_mut().zip(&part[c * 16_384..]) {
                *t += x;
            }
        }
    });
    total
}

#[cfg(test)]
mod tests {
    use super::*;
    use candle_core::DType;

    /// The same network from candle's own differentiable operations.
    fn composed(net: &Mlp, x: &Tensor) -> Result<Tensor> {
        let act = |x: &Tensor, a: Activation| match a {
            Activation::None => Ok(x.clone()),
            Activation::Silu => x.silu(),
            Activation::Gelu => x.gelu_erf(),
        };
        let p = net.params.var().as_tensor();
        let mut x = act(x, net.stack.input_act)?;
        for (l, d) in net.stack.layers.iter().enumerate() {
            let (o, n) = (net.stack.offsets[l], d.output);
            let part = |k: usize| p.narrow(0, o + n * (d.input + k), n);
            let w = p.narrow(0, o, n * d.input)?.reshape((n, d.input))?;
            let mut t = x.matmul(&w.t()?)?.broadcast_add(&part(0)?)?;
            if d.norm == Norm::Layer {
                t = t.broadcast_sub(&t.mean_keepdim(1)?)?;
            }
            if d.norm != Norm::None {
                let eps = if d.norm == Norm::Layer { 1e-5 } else { 1e-6 };
                let std = (t.sqr()?.mean_keepdim(1)? + eps)?.sqrt()?;
                t = t.broadcast_div(&std)?.broadcast_mul(&part(1)?)?;
            }
            if d.norm == Norm::Layer {
                t = t.broadcast_add(&part(2)?)?;
            }
            x = act(&t, d.act)?;
        }
        Ok(x)
    }

    fn close(a: &Tensor, b: &Tensor, tol: f64) {
        let d = (a - b).unwrap().sqr().unwrap().sum_all().unwrap().to_scalar::<f32>().unwrap();
        let n = b.sqr().unwrap().sum_all().unwrap().to_scalar::<f32>().unwrap();
        assert!(f64::from(d.sqrt()) <= tol * f64::from(n.sqrt()).max(1e-6), "{d} of {n}");
    }

    fn nets() -> Vec<Mlp> {
        let mut noise = Noise::new(1);
        let mut all = Vec::new();
        for norm in [Norm::None, Norm::Layer, Norm::Rms] {
            for (first, act) in [(Activation::None, Activation::Gelu), (Activation::Silu, Activation::Silu)] {
                let net = Mlp::uniform_width(first, 7, 33, 5, 3, norm, act, 1.0, &mut noise).unwrap();
                // scales and shifts away from 1 and 0, so that their place matters
                net.params
                    .update(|p| p.iter_mut().enumerate().for_each(|(i, x)| *x += 0.1 * (i as f32).sin()))
                    .unwrap();
                all.push(net);
            }
        }
        all
    }

    #[test]
    fn forward_and_gradients_equal_the_composed_network() {
        for net in nets() {
            // 300 rows: two whole blocks and a part
            let x = candle_core::Var::from_tensor(&Noise::new(2).normal((300, 7)).unwrap()).unwrap();
            let weight = Noise::new(3).normal((300, 5)).unwrap();
            let (a, b) = (net.forward(&x, Wants::All).unwrap(), composed(&net, &x).unwrap());
            close(&a, &b, 1e-6);
            let (ga, gb) = (
                (a * &weight).unwrap().sum_all().unwrap().backward().unwrap(),
                (b * &weight).unwrap().sum_all().unwrap().backward().unwrap(),
            );
            close(ga.get(&x).unwrap(), gb.get(&x).unwrap(), 3e-6);
            close(ga.get(net.params.var()).unwrap(), gb.get(net.params.var()).unwrap(), 3e-6);
        }
    }

    #[test]
    fn every_part_gets_a_gradient() {
        for net in nets() {
            let x = Noise::new(2).normal((40, 7)).unwrap();
            let loss = net.forward(&x, Wants::Params).unwrap().sqr().unwrap().sum_all().unwrap();
            let grad = loss.backward().unwrap().get(net.params.var()).unwrap().to_vec1::<f32>().unwrap();
            for part in net.params.parts() {
                assert!(grad[part.range()].iter().any(|g| *g != 0.0), "{} gets none", part.name);
            }
        }
    }

    #[test]
    fn frozen_parameters_get_no_gradient_and_data_neither() {
        let net = &nets()[0];
        let x = candle_core::Var::from_tensor(&Noise::new(2).normal((10, 7)).unwrap()).unwrap();
        let input = net.forward(&x, Wants::Input).unwrap().sum_all().unwrap().backward().unwrap();
        assert!(input.get(&x).is_some() && input.get(net.params.var()).is_none());
        let params = net.forward(&x, Wants::Params).unwrap().sum_all().unwrap().backward().unwrap();
        assert!(params.get(&x).is_none() && params.get(net.params.var()).is_some());
        let nothing = net.forward(&x, Wants::Nothing).unwrap();
        assert_eq!(nothing.dtype(), DType::F32);
        assert!(nothing.sum_all().unwrap().backward().unwrap().get(&x).is_none());
    }

    #[test]
    fn thread_count_changes_no_bit_of_the_gradient() {
        let net = &nets()[2];
        let run = |threads| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            pool.install(|| {
                let x = Noise::new(2).normal((1000, 7)).unwrap();
                let loss = net.forward(&x, Wants::Params).unwrap().sqr().unwrap().sum_all().unwrap();
                loss.backward().unwrap().get(net.params.var()).unwrap().to_vec1::<f32>().unwrap()
            })
        };
        assert_eq!(run(1), run(3));
    }

    #[test]
    fn parts_are_added_in_their_order() {
        // in f32, (1e8 + 1) − 1e8 is 0 and (1e8 − 1e8) + 1 is 1
        let parts = |order: [f32; 3]| order.iter().map(|&x| vec![x]).collect::<Vec<_>>();
        assert_eq!(sum_in_order(parts([1e8, 1.0, -1e8]), 1), [0.0]);
        assert_eq!(sum_in_order(parts([1e8, -1e8, 1.0]), 1), [1.0]);
        assert_eq!(sum_in_order(vec![], 2), [0.0, 0.0]);
    }
}
