//! A network's parameters: one flat f32 variable with named parts.

use std::sync::Arc;

use candle_core::{CpuStorage, Device, InplaceOp1, Layout, Result, Shape, Storage, Tensor, Var};

use crate::bundle::{Bundle, BundleError, Persist};
use crate::noise::Noise;

/// One named part of [`Params`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// Name within the network, as `layer.0.weight`.
    pub name: String,
    /// First element.
    pub offset: usize,
    /// Shape, row-major.
    pub shape: Vec<usize>,
}

impl Part {
    /// Number of elements.
    pub fn len(&self) -> usize {
        self.shape.iter().product()
    }

    /// Whether it has no elements.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Where it lies in the flat variable.
    pub fn range(&self) -> std::ops::Range<usize> {
        self.offset..self.offset + self.len()
    }
}

/// How a part starts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Init {
    /// Every element the same.
    Constant(f32),
    /// Uniform in ±1/√fan_in, PyTorch's default for linear layers, times a factor.
    Uniform {
        /// Inputs of the unit.
        fan_in: usize,
        /// Multiplies the bound.
        factor: f32,
    },
}

/// Collects parts and their initial values.
#[derive(Default)]
pub struct ParamsBuilder {
    parts: Vec<Part>,
    values: Vec<f32>,
}

impl ParamsBuilder {
    /// Adds a part drawn from `init`; returns its offset.
    pub fn add(&mut self, name: impl Into<String>, shape: &[usize], init: Init, noise: &mut Noise) -> usize {
        let n: usize = shape.iter().product();
        let offset = self.values.len();
        match init {
            Init::Constant(c) => self.values.extend(std::iter::repeat_n(c, n)),
            Init::Uniform { fan_in, factor } => {
                let bound = factor / (fan_in as f32).sqrt();
                self.values.extend(noise.uniform(n).iter().map(|u| bound * (2.0 * u - 1.0)));
            }
        }
        self.parts.push(Part { name: name.into(), offset, shape: shape.to_vec() });
        offset
    }

    /// Adds a part with given values; returns its offset.
    pub fn add_values(&mut self, name: impl Into<String>, shape: &[usize], values: &[f32]) -> usize {
        assert_eq!(values.len(), shape.iter().product::<usize>());
        let offset = self.values.len();
        self.values.extend_from_slice(values);
        self.parts.push(Part { name: name.into(), offset, shape: shape.to_vec() });
        offset
    }

    /// The variable.
    pub fn build(self) -> Result<Params> {
        let n = self.values.len();
        Ok(Params { var: Var::from_vec(self.values, n, &Device::Cpu)?, parts: self.parts.into() })
    }
}

/// One flat variable and the names of its parts.
#[derive(Clone, Debug)]
pub struct Params {
    var: Var,
    parts: Arc<[Part]>,
}

impl Params {
    /// The variable that gradients are taken for. Clones share storage.
    pub fn var(&self) -> &Var {
        &self.var
    }

    /// Named parts in storage order.
    pub fn parts(&self) -> &[Part] {
        &self.parts
    }

    /// Number of parameters.
    pub fn len(&self) -> usize {
        self.var.elem_count()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The part of that name.
    pub fn part(&self, name: &str) -> Option<&Part> {
        self.parts.iter().find(|p| p.name == name)
    }

    /// A copy of all values.
    pub fn to_vec(&self) -> Result<Vec<f32>> {
        self.var.as_tensor().to_vec1()
    }

    /// Overwrites all values in place.
    ///
    /// Panics if the length differs.
    pub fn write(&self, values: &[f32]) -> Result<()> {
        assert_eq!(values.len(), self.len());
        self.update(|p| p.copy_from_slice(values))
    }

    /// Changes the values in place: the variable keeps its identity and allocates nothing.
    pub fn update(&self, f: impl FnOnce(&mut [f32])) -> Result<()> {
        struct Apply<F>(std::sync::Mutex<Option<F>>);
        impl<F: FnOnce(&mut [f32])> InplaceOp1 for Apply<F> {
            fn name(&self) -> &'static str {
                "update"
            }
            fn cpu_fwd(&self, storage: &mut CpuStorage, layout: &Layout) -> Result<()> {
                let (start, end) = layout.contiguous_offsets().expect("parameters are contiguous");
                let CpuStorage::F32(values) = storage else { candle_core::bail!("parameters are f32") };
                if let Some(f) = self.0.lock().expect("no panic while held").take() {
                    f(&mut values[start..end]);
                }
                Ok(())
            }
        }
        self.var.as_tensor().inplace_op1(&Apply(std::sync::Mutex::new(Some(f))))
    }

    /// A copy that no later update of the original reaches.
    pub fn snapshot(&self) -> Result<Params> {
        let n = self.len();
        Ok(Params { var: Var::from_vec(self.to_vec()?, n, &Device::Cpu)?, parts: self.parts.clone() })
    }
}

impl Persist for Params {
    fn save(&self, prefix: &str, to: &mut Bundle) {
        let values = self.to_vec().expect("parameters are f32 on the CPU");
        for part in self.parts.iter() {
            to.put_f32(&format!("{prefix}.{}", part.name), &part.shape, &values[part.range()]);
        }
    }

    fn load(&mut self, prefix: &str, from: &Bundle) -> std::result::Result<(), BundleError> {
        let mut values = vec![0.0; self.len()];
        for part in self.parts.iter() {
            values[part.range()].copy_from_slice(from.f32s(&format!("{prefix}.{}", part.name), &part.shape)?);
        }
        self.write(&values).map_err(BundleError::Tensor)
    }
}

/// Runs `f` on a contiguous f32 CPU tensor's values.
pub fn with_slice<R>(t: &Tensor, f: impl FnOnce(&[f32]) -> R) -> Result<R> {
    let (storage, layout) = t.storage_and_layout();
    match &*storage {
        Storage::Cpu(s) => Ok(f(cpu_slice(s, layout)?)),
        _ => candle_core::bail!("expected a tensor on the CPU"),
    }
}

/// The values of contiguous f32 CPU storage.
pub fn cpu_slice<'a>(storage: &'a CpuStorage, layout: &Layout) -> Result<&'a [f32]> {
    let Some((start, end)) = layout.contiguous_offsets() else { candle_core::bail!("expected a contiguous tensor") };
    match storage {
        CpuStorage::F32(v) => Ok(&v[start..end]),
        other => candle_core::bail!("expected f32, got {:?}", candle_core::backend::BackendStorage::dtype(other)),
    }
}

/// Wraps values as the result of a custom operation.
pub fn cpu_result(values: Vec<f32>, shape: impl Into<Shape>) -> Result<(CpuStorage, Shape)> {
    Ok((CpuStorage::F32(values), shape.into()))
}
