//! Tensors in safetensors files, as published checkpoints keep them.

use std::collections::{BTreeMap, HashMap};
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use onpolicy::params::with_slice;
use onpolicy::{Params, write_atomically};
use safetensors::Dtype;
use safetensors::tensor::{Metadata, TensorView};
use serde_json::{Map, Value};

use crate::checkpoint::CheckpointError;

type Result<T> = std::result::Result<T, CheckpointError>;

/// File of a checkpoint's tensors.
pub(crate) const MODEL: &str = "model.safetensors";
/// File that says in which file each tensor is, for checkpoints of several.
pub(crate) const INDEX: &str = "model.safetensors.index.json";
/// Names that a message lists at most.
const LISTED: usize = 4;

/// All bytes of a file.
pub(crate) fn bytes(path: &Path) -> Result<Vec<u8>> {
    std::fs::read(path).map_err(|reason| CheckpointError::Io { path: path.to_owned(), reason })
}

/// A JSON object in a file.
pub(crate) fn object(path: &Path) -> Result<Map<String, Value>> {
    serde_json::from_slice(&bytes(path)?)
        .map_err(|reason| CheckpointError::Json { path: path.to_owned(), reason: reason.to_string() })
}

/// Writes a JSON object.
pub(crate) fn write_object(path: &Path, object: &Map<String, Value>) -> Result<()> {
    let mut text = serde_json::to_string_pretty(object).expect("keys are texts");
    text.push('\n');
    write(path, text.as_bytes())
}

/// Writes a file at once or not at all.
pub(crate) fn write(path: &Path, bytes: &[u8]) -> Result<()> {
    write_atomically(path, bytes).map_err(|reason| CheckpointError::Io { path: path.to_owned(), reason })
}

/// Longest header of a safetensors file, as its own readers have it.
const LONGEST_HEADER: u64 = 100_000_000;

/// Head of one safetensors file; its tensors stay on disk until they are asked for.
struct File {
    path: PathBuf,
    /// Where the tensors begin.
    start: u64,
    head: Metadata,
}

impl File {
    /// Errors unless the tensors fill the file, one after the other.
    fn open(path: PathBuf) -> Result<Self> {
        let io = |reason| CheckpointError::Io { path: path.clone(), reason };
        let damaged = |reason: String| CheckpointError::Damaged { path: path.clone(), reason };
        let mut file = std::fs::File::open(&path).map_err(io)?;
        let len = file.metadata().map_err(io)?.len();
        let mut word = [0; 8];
        if len < 8 {
            return Err(damaged(format!("{len} bytes hold no header")));
        }
        file.read_exact(&mut word).map_err(io)?;
        let header = u64::from_le_bytes(word);
        if header > LONGEST_HEADER.min(len - 8) {
            return Err(damaged(format!("a header of {header} bytes in a file of {len}")));
        }
        let mut text = vec![0; header as usize];
        file.read_exact(&mut text).map_err(io)?;
        let head: Metadata = serde_json::from_slice(&text).map_err(|e| damaged(e.to_string()))?;
        let mut end = 0;
        for name in head.offset_keys() {
            let Some(t) = head.info(&name) else { continue };
            let bits = t.shape.iter().try_fold(t.dtype.bitsize(), |n, side| n.checked_mul(*side));
            let size = t.data_offsets.1.checked_sub(t.data_offsets.0).and_then(|n| n.checked_mul(8));
            if t.data_offsets.0 != end || size.is_none() || size != bits {
                return Err(damaged(format!("{name} does not lie where its shape puts it")));
            }
            end = t.data_offsets.1;
        }
        let start = 8 + header;
        if start.checked_add(end as u64) != Some(len) {
            return Err(damaged(format!("{len} bytes instead of {}", start.saturating_add(end as u64))));
        }
        Ok(File { path, start, head })
    }

    /// A tensor's numbers into `out`, which has as many places. `raw`: scratch.
    fn read(&self, name: &str, raw: &mut Vec<u8>, out: &mut [f32]) -> Result<()> {
        let io = |reason| CheckpointError::Io { path: self.path.clone(), reason };
        let Some(t) = self.head.info(name) else { return Ok(()) };
        raw.resize(t.data_offsets.1 - t.data_offsets.0, 0);
        let mut file = std::fs::File::open(&self.path).map_err(io)?;
        file.seek(SeekFrom::Start(self.start + t.data_offsets.0 as u64)).map_err(io)?;
        file.read_exact(raw).map_err(io)?;
        widen(t.dtype, raw, out);
        Ok(())
    }
}

/// The tensors of a checkpoint, in one file or several.
pub(crate) struct Weights {
    files: Vec<File>,
    /// Name → file.
    names: BTreeMap<String, usize>,
}

impl Weights {
    /// One file.
    pub fn single(path: PathBuf) -> Result<Self> {
        let file = File::open(path)?;
        let names = file.head.offset_keys().into_iter().map(|n| (n, 0)).collect();
        Ok(Weights { files: vec![file], names })
    }

    /// `model.safetensors` of a folder, else the files of its index.
    pub fn folder(dir: &Path) -> Result<Self> {
        if dir.join(MODEL).exists() {
            return Self::single(dir.join(MODEL));
        }
        let index = dir.join(INDEX);
        if !index.exists() {
            return Err(CheckpointError::NoWeights(dir.to_owned()));
        }
        let malformed = |reason: String| CheckpointError::Json { path: index.clone(), reason };
        let map = object(&index)?;
        let Some(map) = map.get("weight_map").and_then(Value::as_object) else {
            return Err(malformed("it has no object `weight_map` from tensors to files".into()));
        };
        let (mut order, mut places) = (Vec::<&str>::new(), HashMap::<&str, usize>::new());
        for (tensor, file) in map {
            let Some(file) = file.as_str() else {
                return Err(malformed(format!("`weight_map` gives no file name for {tensor}")));
            };
            // one plain name: nothing that leads out of the folder
            if file.is_empty() || file.contains(['/', '\\', ':']) || file == "." || file == ".." {
                return Err(CheckpointError::Outside { index, shard: file.to_owned() });
            }
            if !places.contains_key(file) {
                if !dir.join(file).is_file() {
                    let (shard, tensor) = (file.to_owned(), tensor.clone());
                    return Err(CheckpointError::NoShard { index, shard, tensor });
                }
                places.insert(file, order.len());
                order.push(file);
            }
        }
        let mut all = Weights { files: Vec::new(), names: BTreeMap::new() };
        for (at, name) in order.iter().enumerate() {
            let file = File::open(dir.join(name))?;
            for tensor in file.head.offset_keys() {
                // a tensor that lies in two files counts where the index says
                let here = map.get(&tensor).and_then(Value::as_str).is_none_or(|f| places[f] == at);
                if here {
                    all.names.insert(tensor, at);
                }
            }
            all.files.push(file);
        }
        Ok(all)
    }

    /// Tensors there are.
    pub fn len(&self) -> usize {
        self.names.len()
    }

    pub fn contains(&self, name: &str) -> bool {
        self.names.contains_key(name)
    }

    /// Errors unless exactly these tensors are there, with their shapes and of a type that can be read.
    pub fn check<'a>(
        &self,
        expected: impl Iterator<Item = (&'a str, &'a [usize])>,
        ignored: impl Fn(&str) -> bool,
    ) -> Result<()> {
        let expected: BTreeMap<&str, &[usize]> = expected.collect();
        let place = self.files[0].path.parent().unwrap_or(Path::new("")).to_owned();
        let missing: Vec<&str> = expected.keys().copied().filter(|name| !self.contains(name)).collect();
        if !missing.is_empty() {
            return Err(CheckpointError::Missing { place, count: missing.len(), names: listed(&missing) });
        }
        let names = self.names.keys().map(String::as_str);
        let surplus: Vec<&str> = names.filter(|name| !expected.contains_key(name) && !ignored(name)).collect();
        if !surplus.is_empty() {
            return Err(CheckpointError::Unexpected { place, count: surplus.len(), names: listed(&surplus) });
        }
        for (name, shape) in expected {
            let file = &self.files[self.names[name]];
            let Some(found) = file.head.info(name) else { continue };
            let (file, tensor) = (file.path.clone(), name.to_owned());
            if found.shape != shape {
                let (expected, found) = (shape.to_vec(), found.shape.clone());
                return Err(CheckpointError::TensorShape { file, tensor, expected, found });
            }
            if !matches!(found.dtype, Dtype::F32 | Dtype::F16 | Dtype::BF16) {
                return Err(CheckpointError::TensorType { file, tensor, found: format!("{:?}", found.dtype) });
            }
        }
        Ok(())
    }

    /// Overwrites the parts of `params` by the tensors of the same names, which [`Weights::check`] has seen.
    /// `stored`: a part's name in the file.
    pub fn fill(&self, params: &Params, stored: impl Fn(&str) -> String) -> Result<()> {
        let mut done = Ok(());
        params.update(|flat| {
            let mut raw = Vec::new();
            done = params.parts().iter().try_for_each(|part| {
                let name = stored(&part.name);
                let Some(at) = self.names.get(&name) else { return Ok(()) };
                self.files[*at].read(&name, &mut raw, &mut flat[part.range()])
            });
        })?;
        done
    }

    /// Whether two tensors hold the same numbers in the same shape.
    pub fn equal(&self, a: &str, b: &str) -> Result<bool> {
        let values = |name: &str| -> Result<Option<(Vec<usize>, Vec<f32>)>> {
            let Some(at) = self.names.get(name) else { return Ok(None) };
            let Some(found) = self.files[*at].head.info(name) else { return Ok(None) };
            let mut values = vec![0.0; found.shape.iter().product()];
            self.files[*at].read(name, &mut Vec::new(), &mut values)?;
            Ok(Some((found.shape.clone(), values)))
        };
        Ok(values(a)? == values(b)?)
    }
}

/// The first names, and that there are more.
fn listed(names: &[&str]) -> String {
    let more = if names.len() > LISTED { ", …" } else { "" };
    format!("{}{more}", names[..names.len().min(LISTED)].join(", "))
}

/// Any of the three widths as f32, exactly.
fn widen(kind: Dtype, data: &[u8], out: &mut [f32]) {
    let halves = || data.chunks_exact(2).map(|b| u16::from_le_bytes([b[0], b[1]]));
    match kind {
        Dtype::BF16 => out.iter_mut().zip(halves()).for_each(|(o, b)| *o = f32::from_bits(u32::from(b) << 16)),
        Dtype::F16 => out.iter_mut().zip(halves()).for_each(|(o, b)| *o = half(b)),
        _ => {
            for (o, b) in out.iter_mut().zip(data.chunks_exact(4)) {
                *o = f32::from_le_bytes([b[0], b[1], b[2], b[3]]);
            }
        }
    }
}

/// An IEEE half: sign, 5 bits of exponent, 10 of fraction.
fn half(bits: u16) -> f32 {
    let (sign, exponent, fraction) = (u32::from(bits >> 15) << 31, u32::from(bits >> 10 & 31), u32::from(bits & 1023));
    let size = match exponent {
        0 => (fraction as f32 * 2f32.powi(-24)).to_bits(),
        31 => 255 << 23 | fraction << 13,
        e => (e + 112) << 23 | fraction << 13,
    };
    f32::from_bits(sign | size)
}

/// Width of written weights.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stored {
    /// As they are.
    F32,
    /// Rounded to the nearest bf16, ties to even: half the size, 8 bits of precision.
    Bf16,
}

/// Nearest bf16, ties to even; what is no number stays none.
fn narrow(x: f32) -> u16 {
    let bits = x.to_bits();
    if x.is_nan() {
        return (bits >> 16) as u16 | 0x40;
    }
    // beyond the largest the carry reaches the exponent of infinity
    ((bits + 0x7fff + (bits >> 16 & 1)) >> 16) as u16
}

/// Writes all parts under the names that `stored` gives them.
pub(crate) fn write_params(path: &Path, params: &Params, width: Stored, stored: impl Fn(&str) -> String) -> Result<()> {
    let (kind, size) = match width {
        Stored::F32 => (Dtype::F32, 4),
        Stored::Bf16 => (Dtype::BF16, 2),
    };
    let flat: Vec<u8> = with_slice(params.var().as_tensor(), |values| match width {
        Stored::F32 => values.iter().flat_map(|x| x.to_le_bytes()).collect(),
        Stored::Bf16 => values.iter().flat_map(|x| narrow(*x).to_le_bytes()).collect(),
    })?;
    let unfit = |e: safetensors::SafeTensorError| CheckpointError::Damaged {
        path: path.to_owned(),
        reason: format!("cannot be laid out: {e}"),
    };
    let mut views = Vec::with_capacity(params.parts().len());
    for part in params.parts() {
        let range = part.range().start * size..part.range().end * size;
        let view = TensorView::new(kind, part.shape.clone(), &flat[range]).map_err(unfit)?;
        views.push((stored(&part.name), view));
    }
    // loaders ask for the framework that wrote it
    let metadata = HashMap::from([("format".to_owned(), "pt".to_owned())]);
    write(path, &safetensors::serialize(views, Some(metadata)).map_err(unfit)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn halves_widen_exactly_in_all_their_kinds() {
        let cases = [
            (0x0000, 0.0),
            (0x3c00, 1.0),
            (0x4000, 2.0),
            (0x7bff, 65504.0),
            (0x0001, 2f32.powi(-24)),
            (0x03ff, 1023.0 * 2f32.powi(-24)),
            (0x0400, 2f32.powi(-14)),
            (0x3555, 0.333_251_95),
            (0x7c00, f32::INFINITY),
        ];
        for (bits, value) in cases {
            assert_eq!(half(bits), value, "{bits:#x}");
            assert_eq!(half(bits | 0x8000).to_bits(), (-half(bits)).to_bits(), "{bits:#x}");
        }
        assert!(half(0x7e00).is_nan());
    }

    #[test]
    fn narrowing_goes_to_the_nearest_and_to_the_even_of_two() {
        for (x, bits) in [
            (1.0f32, 0x3f80),
            (f32::from_bits(0x3f80_8000), 0x3f80),
            (f32::from_bits(0x3f81_8000), 0x3f82),
            (f32::from_bits(0x3f80_8001), 0x3f81),
            (-0.0, 0x8000),
            (f32::MAX, 0x7f80),
            (f32::NEG_INFINITY, 0xff80),
        ] {
            assert_eq!(narrow(x), bits, "{x}");
        }
        assert!(f32::from_bits(u32::from(narrow(f32::from_bits(0x7f80_0001))) << 16).is_nan());
    }
}
