//! Memory that outlives its use: fresh pages cost more than the arithmetic on them.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::{Deref, DerefMut};
use std::sync::{Arc, Mutex};

/// Buffers that nobody uses at the moment, by size. Clones share them.
#[derive(Clone, Default)]
pub(crate) struct Spare(Arc<Mutex<BTreeMap<usize, Vec<Vec<f32>>>>>);

/// Floats whose memory goes back when they are dropped.
pub(crate) struct Buffer {
    data: Vec<f32>,
    len: usize,
    home: Spare,
}

impl Spare {
    /// `len` floats that hold anything, numbers or not: they must be written before they are read.
    pub fn take(&self, len: usize) -> Buffer {
        let size = size(len);
        // up to twice as large: batches whose sizes wander do not hoard a set of buffers for each
        let found =
            self.0.lock().expect("no panic while held").range_mut(size..=2 * size).find_map(|(_, same)| same.pop());
        Buffer { data: found.unwrap_or_else(|| vec![0.0; size]), len, home: self.clone() }
    }

    /// `len` zeros.
    pub fn zeros(&self, len: usize) -> Buffer {
        let mut buffer = self.take(len);
        buffer.fill(0.0);
        buffer
    }

    /// A copy.
    pub fn copy(&self, of: &[f32]) -> Buffer {
        let mut buffer = self.take(of.len());
        buffer.copy_from_slice(of);
        buffer
    }
}

/// Sizes that are kept apart: four to a doubling, so that batches of like length share memory.
fn size(len: usize) -> usize {
    let step = (len.next_power_of_two() / 8).max(64);
    len.next_multiple_of(step)
}

impl fmt::Debug for Spare {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.debug_struct("Spare").finish_non_exhaustive()
    }
}

impl Deref for Buffer {
    type Target = [f32];

    fn deref(&self) -> &[f32] {
        &self.data[..self.len]
    }
}

impl DerefMut for Buffer {
    fn deref_mut(&mut self) -> &mut [f32] {
        &mut self.data[..self.len]
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        let data = std::mem::take(&mut self.data);
        if let Ok(mut spare) = self.home.0.lock() {
            spare.entry(data.len()).or_default().push(data);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_used_again_for_lengths_alike_up_to_half_and_no_shorter() {
        let spare = Spare::default();
        let first = spare.take(1000);
        let at = first.as_ptr();
        drop(first);
        let again = spare.clone().zeros(990);
        assert_eq!((again.as_ptr(), again.len()), (at, 990));
        assert_ne!(spare.take(1000).as_ptr(), at, "it is in use");
        drop(again);
        assert_eq!(spare.take(520).as_ptr(), at);
        assert_ne!(spare.take(100).as_ptr(), at, "it is ten times too large");
    }

    #[test]
    fn zeros_and_copies_hold_nothing_of_what_was_there() {
        let spare = Spare::default();
        spare.take(100).fill(f32::NAN);
        assert_eq!(*spare.zeros(100), [0.0; 100]);
        spare.take(100).fill(f32::NAN);
        assert_eq!(*spare.copy(&[1.0, 2.0]), [1.0, 2.0]);
    }

    #[test]
    fn sizes_waste_at_most_a_quarter_beyond_the_smallest() {
        for len in [0, 1, 63, 64, 65, 1000, 4097, 1 << 20, (1 << 20) + 1] {
            let size = size(len);
            assert!(size >= len && (size <= 64 || size * 4 <= len * 5 + 256), "{len} {size}");
        }
    }
}
