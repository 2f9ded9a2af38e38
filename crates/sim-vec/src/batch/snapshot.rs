//! A batch as bytes, lane by lane, so that the width of the lanes does not matter.
//!
//! ```text
//! "SIMVEC02", bytes per number (4 or 8), length of the task's name, name,
//! lanes, nq, nv, na, nu, mocap numbers, warm-start numbers, factors, O, G (u64 each),
//! lanes turned non-finite so far (u64),
//! then per lane: seed u64, episode u64, clock u32, qpos, qvel, act, ctrl, mocap, warm start, factors (numbers),
//! goal (G f64), held observation (O f32)
//! ```
//!
//! All little-endian. Random numbers need no more: an episode's follow from seed and episode number.

use rollouts::SnapshotError;

use super::{Batch, Record, Shared};
use crate::lane::Lane;
use crate::lane_state::{fields, fields_mut};

const MAGIC: &[u8; 8] = b"SIMVEC02";
/// Bytes of a lane's seed, episode and clock.
const RECORD_BYTES: usize = 20;

impl<L: Lane> Batch<L> {
    fn header(&self) -> Vec<u8> {
        let name = self.shared.task.name().as_bytes();
        let mut out = MAGIC.to_vec();
        out.push(number_bytes::<L>() as u8);
        out.extend((name.len() as u64).to_le_bytes());
        out.extend(name);
        let s = &self.blocks[0].state;
        let Shared { obs_dim, goal_dim, .. } = self.shared;
        let counts = fields(s).map(|f| f.len());
        for n in [self.lanes].into_iter().chain(counts).chain([obs_dim, goal_dim]) {
            out.extend((n as u64).to_le_bytes());
        }
        out
    }

    fn lane_bytes(&self) -> usize {
        let numbers: usize = fields(&self.blocks[0].state).iter().map(|f| f.len()).sum();
        RECORD_BYTES + numbers * number_bytes::<L>() + 8 * self.shared.goal_dim + 4 * self.shared.obs_dim
    }

    /// See the module's text.
    pub(super) fn write_snapshot(&self) -> Vec<u8> {
        let mut out = self.header();
        out.reserve(8 + self.lanes * self.lane_bytes());
        out.extend(self.non_finite.to_le_bytes());
        let g = self.shared.goal_dim;
        for (n, held) in self.held.chunks_exact(self.shared.obs_dim).enumerate() {
            let (block, lane) = (&self.blocks[n / L::W], n % L::W);
            let Record { seed, episode, clock } = block.records[lane];
            out.extend(seed.to_le_bytes());
            out.extend(episode.to_le_bytes());
            out.extend(clock.to_le_bytes());
            for x in fields(&block.state).into_iter().flatten() {
                let x = x.get(lane);
                if L::SINGLE { out.extend((x as f32).to_le_bytes()) } else { out.extend(x.to_le_bytes()) }
            }
            block.goals[lane * g..(lane + 1) * g].iter().for_each(|x| out.extend(x.to_le_bytes()));
            held.iter().for_each(|x| out.extend(x.to_le_bytes()));
        }
        out
    }

    /// Checks everything before it changes anything.
    pub(super) fn read_snapshot(&mut self, bytes: &[u8]) -> Result<(), SnapshotError> {
        let header = self.header();
        let size = self.lane_bytes();
        if !bytes.starts_with(&header) {
            return Err(SnapshotError(format!(
                "it is not of {} lanes of task {} with {} bytes a number",
                self.lanes,
                self.shared.task.name(),
                number_bytes::<L>()
            )));
        }
        let expected = header.len() + 8 + self.lanes * size;
        if bytes.len() != expected {
            return Err(SnapshotError(format!("{} bytes, expected {expected}", bytes.len())));
        }
        let mut body = Reader(&bytes[header.len()..]);
        let non_finite = u64::from_le_bytes(body.take());
        let steps = self.shared.steps;
        for (n, lane) in body.0.chunks_exact(size).enumerate() {
            let clock = Record::read(&mut Reader(lane)).clock;
            if clock >= steps {
                return Err(SnapshotError(format!("lane {n} is at step {clock} of an episode of {steps}")));
            }
        }
        self.non_finite = non_finite;
        self.ahead.iter_mut().for_each(|a| a.ready = 0);
        let g = self.shared.goal_dim;
        for (n, held) in self.held.chunks_exact_mut(self.shared.obs_dim).enumerate() {
            let (block, lane) = (&mut self.blocks[n / L::W], n % L::W);
            block.records[lane] = Record::read(&mut body);
            for x in fields_mut(&mut block.state).into_iter().flatten() {
                let value =
                    if L::SINGLE { f32::from_le_bytes(body.take()) as f64 } else { f64::from_le_bytes(body.take()) };
                x.set(lane, value);
            }
            for x in &mut block.goals[lane * g..(lane + 1) * g] {
                *x = f64::from_le_bytes(body.take());
            }
            held.iter_mut().for_each(|x| *x = f32::from_le_bytes(body.take()));
        }
        Ok(())
    }
}

/// Bytes of one number of a lane.
fn number_bytes<L: Lane>() -> usize {
    if L::SINGLE { 4 } else { 8 }
}

impl Record {
    fn read(bytes: &mut Reader<'_>) -> Self {
        Record {
            seed: u64::from_le_bytes(bytes.take()),
            episode: u64::from_le_bytes(bytes.take()),
            clock: u32::from_le_bytes(bytes.take()),
        }
    }
}

/// Takes fixed-size pieces off the front; the caller has checked the length.
struct Reader<'a>(&'a [u8]);

impl Reader<'_> {
    fn take<const N: usize>(&mut self) -> [u8; N] {
        let (head, rest) = self.0.split_at(N);
        self.0 = rest;
        head.try_into().expect("split_at gives N bytes")
    }
}
