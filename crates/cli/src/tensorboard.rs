//! TensorBoard event files, as far as scalars need them: TFRecord frames around hand-encoded protocol buffers.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result};

/// An event file open for writing.
pub(crate) struct EventFile(File);

impl EventFile {
    /// Makes a new one in `dir`, named so that TensorBoard finds it and sorts it after earlier ones.
    pub(crate) fn create(dir: &Path) -> Result<Self> {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let name = format!("events.out.tfevents.{:010}.phalanx.{:09}", since.as_secs(), since.subsec_nanos());
        let path = dir.join(name);
        let file = OpenOptions::new().create_new(true).write(true).open(&path);
        let mut events = EventFile(file.with_context(|| path.display().to_string())?);
        let mut version = wall_time();
        field(&mut version, 3, b"brain.Event:2");
        events.record(&version).with_context(|| path.display().to_string())?;
        Ok(events)
    }

    /// Adds one event with all scalars of a step.
    pub(crate) fn scalars<'a>(&mut self, step: u64, values: impl Iterator<Item = (&'a str, f32)>) -> io::Result<()> {
        let mut summary = Vec::new();
        for (tag, value) in values {
            let mut one = Vec::new();
            field(&mut one, 1, tag.as_bytes());
            one.push(2 << 3 | 5);
            one.extend(value.to_le_bytes());
            field(&mut summary, 1, &one);
        }
        let mut event = wall_time();
        event.push(2 << 3);
        varint(&mut event, step);
        field(&mut event, 5, &summary);
        self.record(&event)
    }

    fn record(&mut self, data: &[u8]) -> io::Result<()> {
        self.0.write_all(&frame(data))
    }
}

/// Field 1 of an event: seconds since 1970 as a double.
fn wall_time() -> Vec<u8> {
    let seconds = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64();
    let mut out = vec![1 << 3 | 1];
    out.extend(seconds.to_le_bytes());
    out
}

/// A length-delimited field.
fn field(out: &mut Vec<u8>, number: u8, bytes: &[u8]) {
    out.push(number << 3 | 2);
    varint(out, bytes.len() as u64);
    out.extend(bytes);
}

fn varint(out: &mut Vec<u8>, mut x: u64) {
    while x >= 0x80 {
        out.push(x as u8 | 0x80);
        x >>= 7;
    }
    out.push(x as u8);
}

/// length u64, masked CRC of the length, data, masked CRC of the data; little-endian.
fn frame(data: &[u8]) -> Vec<u8> {
    let length = (data.len() as u64).to_le_bytes();
    let mut out = length.to_vec();
    out.extend(masked_crc(&length).to_le_bytes());
    out.extend(data);
    out.extend(masked_crc(data).to_le_bytes());
    out
}

fn masked_crc(data: &[u8]) -> u32 {
    let crc = crc32c(data);
    crc.rotate_right(15).wrapping_add(0xa282_ead8)
}

/// CRC-32C (Castagnoli), bit by bit: a few hundred bytes per update.
fn crc32c(data: &[u8]) -> u32 {
    let step = |crc: u32, _| if crc & 1 == 1 { crc >> 1 ^ 0x82f6_3b78 } else { crc >> 1 };
    !data.iter().fold(!0, |crc, byte| (0..8).fold(crc ^ u32::from(*byte), step))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checksum_has_its_published_check_value() {
        assert_eq!(crc32c(b"123456789"), 0xe306_9283);
        assert_eq!(crc32c(&[0; 32]), 0x8a91_36aa); // RFC 3720, B.4
    }

    #[test]
    fn an_event_is_framed_and_encoded_as_the_format_says() {
        let dir = tempfile::tempdir().unwrap();
        let mut events = EventFile::create(dir.path()).unwrap();
        events.scalars(300, [("kl", 0.5f32)].into_iter()).unwrap();
        let path = std::fs::read_dir(dir.path()).unwrap().next().unwrap().unwrap().path();
        let bytes = std::fs::read(path).unwrap();
        // first frame: 9 bytes of time, then field 3
        assert_eq!(bytes[..8], 24u64.to_le_bytes());
        assert_eq!(&bytes[21..36], b"\x1a\x0dbrain.Event:2");
        let second = &bytes[8 + 4 + 24 + 4..];
        let data = &second[12..second.len() - 4];
        assert_eq!(second[..8], (data.len() as u64).to_le_bytes());
        // step 300 = 0xac 0x02; summary { value { tag "kl", simple_value 0.5 } }
        assert_eq!(&data[9..], b"\x10\xac\x02\x2a\x0b\x0a\x09\x0a\x02kl\x15\x00\x00\x00\x3f");
        assert_eq!(second[second.len() - 4..], masked_crc(data).to_le_bytes());
    }
}
