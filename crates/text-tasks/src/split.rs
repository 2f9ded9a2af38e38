//! Which instances a policy trains on and which it never sees.

use crate::draw::{Draw, hash};

/// Part of a generated task. An instance belongs to at most one of them.
///
/// ```text
/// held out: hash(instance) mod 8 = 0;   train: the others;   harder: larger instances than either has
/// ```
///
/// Two writings of one instance (countdown's numbers in another order, a + b and b + a) count as the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Split {
    /// To train on.
    Train,
    /// As hard as [`Split::Train`], but disjoint from it.
    HeldOut,
    /// Larger numbers or longer lists than in training.
    Harder,
}

impl Split {
    /// Every split, in reading order.
    pub const ALL: [Split; 3] = [Split::Train, Split::HeldOut, Split::Harder];

    fn holds(self, key: &[u64]) -> bool {
        match self {
            Split::Train => !hash(key).is_multiple_of(8),
            Split::HeldOut => hash(key).is_multiple_of(8),
            Split::Harder => true,
        }
    }

    /// Instance number `index` of a task: drawn until it belongs here. `make` may decline a draw; `key` identifies an
    /// instance whichever way it is written.
    pub(crate) fn instance<I>(
        self,
        task: u64,
        index: u64,
        mut make: impl FnMut(&mut Draw) -> Option<I>,
        key: impl Fn(&I) -> Vec<u64>,
    ) -> I {
        let mut draw = Draw::new(&[task, self as u64, index]);
        loop {
            if let Some(instance) = make(&mut draw)
                && self.holds(&key(&instance))
            {
                return instance;
            }
        }
    }
}
