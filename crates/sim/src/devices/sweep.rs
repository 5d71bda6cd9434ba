//! In which order a disk serves the requests that it has: upwards from where its head is, sweep by sweep.
//!
//! What comes during a sweep waits for the next one, so that a stream that always lies ahead keeps nobody waiting.
//! Requests are places of the device. Next: `device.rs`.

use std::collections::{BTreeSet, VecDeque};

/// Requests that a disk has and has not begun.
#[derive(Debug, Default)]
pub(crate) struct Sweep {
    /// Offset and place of those of this sweep, and of those that came meanwhile.
    going: BTreeSet<(u64, u32)>,
    coming: BTreeSet<(u64, u32)>,
    /// Durable writes: between two sweeps.
    durable: VecDeque<u32>,
}

impl Sweep {
    pub(crate) fn add(&mut self, offset: u64, slot: u32, durable: bool) {
        if durable {
            self.durable.push_back(slot);
        } else {
            self.coming.insert((offset, slot));
        }
    }

    /// The place to serve next with the head at `head`.
    pub(crate) fn next(&mut self, head: u64) -> Option<u32> {
        if self.going.is_empty() {
            if let Some(durable) = self.durable.pop_front() {
                return Some(durable);
            }
            std::mem::swap(&mut self.going, &mut self.coming);
        }
        let next = self.going.range((head, 0)..).next().or(self.going.first()).copied()?;
        self.going.remove(&next);
        Some(next.1)
    }
}
