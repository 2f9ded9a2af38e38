//! Checkpoints: named arrays and texts in one safetensors file, replaced atomically.

use std::collections::{BTreeMap, HashMap};
use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};

use safetensors::SafeTensors;
use safetensors::tensor::{Dtype, TensorView};

/// Something went wrong with a checkpoint.
#[derive(Debug, thiserror::Error)]
pub enum BundleError {
    /// The file could not be read or written.
    #[error("checkpoint {path}: {reason}")]
    Io {
        /// The file.
        path: PathBuf,
        /// The system's reason.
        reason: std::io::Error,
    },
    /// The file is not a complete safetensors file.
    #[error("checkpoint {path} is damaged: {reason}")]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What the reader said.
        reason: String,
    },
    /// An entry is missing.
    #[error("checkpoint has no entry `{0}`; it was written by another configuration or version")]
    Missing(String),
    /// An entry has another shape or type.
    #[error("checkpoint entry `{name}` is {found}, expected {expected}")]
    Mismatch {
        /// The entry.
        name: String,
        /// What is in the file.
        found: String,
        /// What the run needs.
        expected: String,
    },
    /// A tensor could not take the value.
    #[error(transparent)]
    Tensor(candle_core::Error),
}

#[derive(Clone, Debug, PartialEq)]
enum Entry {
    F32(Vec<usize>, Vec<f32>),
    U64(Vec<u64>),
    Bytes(Vec<u8>),
}

impl Entry {
    fn describe(&self) -> String {
        match self {
            Entry::F32(shape, _) => format!("f32 {shape:?}"),
            Entry::U64(v) => format!("u64 [{}]", v.len()),
            Entry::Bytes(v) => format!("{} bytes", v.len()),
        }
    }
}

/// Named arrays (f32 of any shape, u64 and byte vectors) and texts.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Bundle {
    entries: BTreeMap<String, Entry>,
    texts: BTreeMap<String, String>,
}

/// A part of a run's state that a checkpoint holds.
pub trait Persist {
    /// Adds this part under names that start with `prefix`.
    fn save(&self, prefix: &str, to: &mut Bundle);
    /// Takes this part back; on error the part may be partly overwritten and must not be used.
    fn load(&mut self, prefix: &str, from: &Bundle) -> Result<(), BundleError>;
}

impl Bundle {
    /// Adds an f32 array. Panics if shape and length differ.
    pub fn put_f32(&mut self, name: &str, shape: &[usize], values: &[f32]) {
        assert_eq!(shape.iter().product::<usize>(), values.len(), "{name}");
        self.entries.insert(name.to_owned(), Entry::F32(shape.to_vec(), values.to_vec()));
    }

    /// Adds a vector of integers.
    pub fn put_u64(&mut self, name: &str, values: &[u64]) {
        self.entries.insert(name.to_owned(), Entry::U64(values.to_vec()));
    }

    /// Adds bytes.
    pub fn put_bytes(&mut self, name: &str, bytes: Vec<u8>) {
        self.entries.insert(name.to_owned(), Entry::Bytes(bytes));
    }

    /// Adds a text to the file's metadata.
    pub fn put_text(&mut self, name: &str, text: impl Into<String>) {
        self.texts.insert(name.to_owned(), text.into());
    }

    /// Names of all arrays, sorted.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.entries.keys().map(String::as_str)
    }

    fn entry(&self, name: &str) -> Result<&Entry, BundleError> {
        self.entries.get(name).ok_or_else(|| BundleError::Missing(name.to_owned()))
    }

    fn mismatch<T>(&self, name: &str, expected: String) -> Result<T, BundleError> {
        Err(BundleError::Mismatch { name: name.to_owned(), found: self.entry(name)?.describe(), expected })
    }

    /// An f32 array of that shape.
    pub fn f32s(&self, name: &str, shape: &[usize]) -> Result<&[f32], BundleError> {
        match self.entry(name)? {
            Entry::F32(found, values) if found == shape => Ok(values),
            _ => self.mismatch(name, format!("f32 {shape:?}")),
        }
    }

    /// A vector of that many integers.
    pub fn u64s(&self, name: &str, len: usize) -> Result<&[u64], BundleError> {
        match self.entry(name)? {
            Entry::U64(values) if values.len() == len => Ok(values),
            _ => self.mismatch(name, format!("u64 [{len}]")),
        }
    }

    /// Bytes.
    pub fn bytes(&self, name: &str) -> Result<&[u8], BundleError> {
        match self.entry(name)? {
            Entry::Bytes(values) => Ok(values),
            _ => self.mismatch(name, "bytes".into()),
        }
    }

    /// A text.
    pub fn text(&self, name: &str) -> Result<&str, BundleError> {
        self.texts.get(name).map(String::as_str).ok_or_else(|| BundleError::Missing(name.to_owned()))
    }

    /// Writes the file under a temporary name, syncs and renames: a reader sees the old file or the whole new one.
    pub fn write(&self, path: &Path) -> Result<(), BundleError> {
        let raw: Vec<(&String, Dtype, Vec<usize>, Vec<u8>)> = self
            .entries
            .iter()
            .map(|(name, entry)| match entry {
                Entry::F32(shape, v) => {
                    (name, Dtype::F32, shape.clone(), v.iter().flat_map(|x| x.to_le_bytes()).collect())
                }
                Entry::U64(v) => (name, Dtype::U64, vec![v.len()], v.iter().flat_map(|x| x.to_le_bytes()).collect()),
                Entry::Bytes(v) => (name, Dtype::U8, vec![v.len()], v.clone()),
            })
            .collect();
        let damaged =
            |e: safetensors::SafeTensorError| BundleError::Damaged { path: path.to_owned(), reason: e.to_string() };
        let mut views = Vec::with_capacity(raw.len());
        for (name, dtype, shape, bytes) in &raw {
            views.push((name.as_str(), TensorView::new(*dtype, shape.clone(), bytes).map_err(damaged)?));
        }
        // one text entry: a map of several would be written in a random order
        let texts: Vec<(&String, &String)> = self.texts.iter().collect();
        let metadata = HashMap::from([("texts".to_owned(), encode(&texts))]);
        let bytes = safetensors::serialize(views, Some(metadata)).map_err(damaged)?;
        write_atomically(path, &bytes).map_err(|reason| BundleError::Io { path: path.to_owned(), reason })
    }

    /// Reads a file that [`Bundle::write`] made.
    pub fn read(path: &Path) -> Result<Self, BundleError> {
        let bytes = fs::read(path).map_err(|reason| BundleError::Io { path: path.to_owned(), reason })?;
        let damaged = |reason: String| BundleError::Damaged { path: path.to_owned(), reason };
        let file = SafeTensors::deserialize(&bytes).map_err(|e| damaged(e.to_string()))?;
        let (_, meta) = SafeTensors::read_metadata(&bytes).map_err(|e| damaged(e.to_string()))?;
        let mut bundle = Bundle::default();
        if let Some(texts) = meta.metadata().as_ref().and_then(|m| m.get("texts")) {
            bundle.texts = decode(texts).ok_or_else(|| damaged("its texts are cut".into()))?;
        }
        for (name, view) in file.iter() {
            let data = view.data();
            let entry = match view.dtype() {
                Dtype::F32 => Entry::F32(view.shape().to_vec(), words::<4>(data).map(f32::from_le_bytes).collect()),
                Dtype::U64 => Entry::U64(words::<8>(data).map(u64::from_le_bytes).collect()),
                Dtype::U8 => Entry::Bytes(data.to_vec()),
                other => return Err(damaged(format!("entry `{name}` has type {other:?}, expected f32, u64 or bytes"))),
            };
            bundle.entries.insert(name.to_owned(), entry);
        }
        Ok(bundle)
    }
}

fn words<const N: usize>(data: &[u8]) -> impl Iterator<Item = [u8; N]> {
    data.chunks_exact(N).map(|c| c.try_into().expect("chunks of N"))
}

/// `length:key length:value` …, lengths in bytes: exact for any text.
fn encode(texts: &[(&String, &String)]) -> String {
    texts.iter().flat_map(|(k, v)| [k, v]).map(|s| format!("{}:{s}", s.len())).collect()
}

fn decode(mut rest: &str) -> Option<BTreeMap<String, String>> {
    let mut fields = Vec::new();
    while !rest.is_empty() {
        let (len, tail) = rest.split_once(':')?;
        let len: usize = len.parse().ok()?;
        fields.push(tail.get(..len)?.to_owned());
        rest = tail.get(len..)?;
    }
    let mut pairs = BTreeMap::new();
    let mut fields = fields.into_iter();
    while let Some(key) = fields.next() {
        pairs.insert(key, fields.next()?);
    }
    Some(pairs)
}

/// Writes `bytes` to `path` so that the file is the old one or the new one at any moment: temporary name in the same
/// folder, fsync, rename, fsync of the folder. On error the temporary file is removed and `path` is untouched.
pub fn write_atomically(path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(".partial");
    let partial = path.with_file_name(name);
    let written = File::create(&partial)
        .and_then(|mut f| f.write_all(bytes).and_then(|()| f.sync_all()))
        .and_then(|()| fs::rename(&partial, path));
    if written.is_err() {
        let _ = fs::remove_file(&partial);
        return written;
    }
    match path.parent() {
        Some(dir) if cfg!(unix) => {
            File::open(if dir.as_os_str().is_empty() { Path::new(".") } else { dir })?.sync_all()
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> Bundle {
        let mut b = Bundle::default();
        b.put_f32("w", &[2, 1], &[1.5, f32::MIN_POSITIVE]);
        b.put_u64("n", &[u64::MAX, 0]);
        b.put_bytes("env", vec![1, 2, 3]);
        b.put_text("config", "a = \"ü:3\"\n");
        b.put_text("empty", "");
        b
    }

    #[test]
    fn a_written_bundle_reads_back_equal_and_leaves_no_temporary_file() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x.safetensors");
        sample().write(&path).unwrap();
        let first = fs::read(&path).unwrap();
        assert_eq!(Bundle::read(&path).unwrap(), sample());
        sample().write(&path).unwrap();
        assert_eq!(fs::read(&path).unwrap(), first, "equal bundles make equal files");
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_cut_file_is_called_damaged_whatever_the_cut() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x.safetensors");
        sample().write(&path).unwrap();
        let whole = fs::read(&path).unwrap();
        for cut in 0..whole.len() {
            fs::write(&path, &whole[..cut]).unwrap();
            assert!(matches!(Bundle::read(&path), Err(BundleError::Damaged { .. })), "cut at {cut}");
        }
    }

    #[test]
    fn missing_and_misshapen_entries_are_named() {
        let b = sample();
        assert!(b.f32s("v", &[2]).unwrap_err().to_string().contains("`v`"));
        let text = b.f32s("w", &[2]).unwrap_err().to_string();
        assert!(text.contains("[2, 1]") && text.contains("[2]"), "{text}");
    }

    #[test]
    fn a_failed_write_keeps_the_old_file() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x.safetensors");
        sample().write(&path).unwrap();
        // a folder in the way of the temporary name makes the write fail
        fs::create_dir(dir.path().join("x.safetensors.partial")).unwrap();
        assert!(matches!(sample().write(&path), Err(BundleError::Io { .. })));
        assert_eq!(Bundle::read(&path).unwrap(), sample());
    }
}
