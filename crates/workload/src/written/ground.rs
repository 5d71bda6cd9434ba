//! What a step over many places goes over, where it is in it, and its passes.
//!
//! Next: [`super::act`], which makes and uses these.

use units::Nanos;

use crate::system::System;
use crate::system::outcome::WorkloadError;
use crate::written::walk::Walk;

/// What a step goes over.
pub(super) struct Ground<S: System> {
    /// The one file that it is in, by path.
    pub(super) file: Option<(String, S::File)>,
    /// It was laid out, so that no call finds its end.
    pub(super) never_ends: bool,
    pub(super) size: u64,
    /// Its first place, and how many there are.
    pub(super) first: u64,
    pub(super) places: u64,
    /// Bytes of a single file.
    pub(super) bytes: u64,
    pub(super) block: u64,
    pub(super) write_each: u64,
}

impl<S: System> Ground<S> {
    /// A laid-out file ended at `at`.
    pub(super) fn short(&self, at: u64) -> WorkloadError {
        let path = self.file.as_ref().map_or_else(String::new, |(path, _)| path.clone());
        WorkloadError::ShortRead { path, read_bytes: at, size_bytes: self.size }
    }
}

/// Where a step is.
pub(super) struct Going {
    pub(super) key: String,
    pub(super) places: u64,
    pub(super) walk: Walk,
    /// Whether `walk` goes by bytes instead of blocks.
    pub(super) by_bytes: bool,
    /// Bytes that are left, where they are counted.
    pub(super) left: Option<u64>,
}

impl Going {
    /// The next place, where it begins in a file, and its bytes; none where all is done.
    pub(super) fn next<S: System>(&mut self, ground: &Ground<S>) -> Option<(u64, u64, u64)> {
        if self.left == Some(0) {
            return None;
        }
        let whole = self.left.map_or(ground.block, |left| left.min(ground.block));
        if let (true, Walk::Sequential { next, places }) = (self.by_bytes, &mut self.walk) {
            let len = whole.min(*places - *next);
            let at = ground.first * ground.block + *next;
            *next = (*next + len) % *places;
            self.left = self.left.map(|left| left - len);
            return Some((at / ground.block, at, len));
        }
        self.left = self.left.map(|left| left - whole);
        let place = ground.first + self.walk.next();
        let at = place * ground.block;
        Some((place, at, ground.block.min(ground.size.saturating_sub(at))))
    }
}

/// A pass of a step, as rates along it need it.
pub(super) struct Pass {
    pub(super) begin: Nanos,
    part_begin: Nanos,
    part_bytes: u64,
    part_len: Option<u64>,
}

impl Pass {
    pub(super) fn new(begin: Nanos, parts: Option<u64>, bytes: u64) -> Self {
        let part_len = parts.map(|parts| bytes.div_ceil(parts).max(1));
        Self { begin, part_begin: begin, part_bytes: 0, part_len }
    }

    /// Whether anything was done since the last part.
    pub(super) fn has_begun_part(&self) -> bool {
        self.part_bytes > 0
    }

    /// Counts an operation; whether a part ends with it.
    pub(super) fn part_ends(&mut self, bytes: u64) -> bool {
        self.part_bytes += bytes;
        self.part_len.is_some_and(|len| self.part_bytes >= len)
    }

    /// Begins the next part; bytes and time of the one that ends.
    pub(super) fn part(&mut self, now: Nanos) -> (u64, Nanos) {
        let begin = std::mem::replace(&mut self.part_begin, now);
        (std::mem::take(&mut self.part_bytes), now.saturating_sub(begin))
    }
}
