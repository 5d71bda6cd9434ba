//! A CPU: who is on it, who waits for it, and the piece of work that it is at.
//!
//! Read next: `schedule.rs`, which decides who runs where.

use std::collections::VecDeque;

use crate::machine::task::NONE;

/// One CPU.
#[derive(Debug)]
pub(crate) struct Cpu {
    /// The task on it; [`NONE`] when idle.
    pub(crate) current: u32,
    /// Whether `current` is still being switched in.
    pub(crate) switching: bool,
    /// Nanoseconds of the current task's debt that pass until the next event here.
    pub(crate) segment: u64,
    /// When that began.
    pub(crate) segment_began: u64,
    /// What is left of the current task's slice, or until the next tick; at least 1 between events.
    pub(crate) slice_left: u64,
    /// The current task is to give way where it can next.
    pub(crate) resched: bool,
    /// The least virtual time of its tasks, never going back.
    pub(crate) base: i64,
    /// Tasks that wait for this CPU, next one first.
    pub(crate) queue: VecDeque<u32>,
    pub(crate) busy: u64,
    pub(crate) switches: u64,
}

impl Cpu {
    pub(crate) fn new(slice: u64) -> Self {
        let queue = VecDeque::new();
        Self {
            current: NONE,
            switching: false,
            segment: 0,
            segment_began: 0,
            slice_left: slice,
            resched: false,
            base: 0,
            queue,
            busy: 0,
            switches: 0,
        }
    }

    /// What has passed of the present segment.
    pub(crate) fn passed(&self, now: u64) -> u64 {
        if self.switching || self.segment == 0 { 0 } else { now - self.segment_began }
    }
}

/// A set of CPUs that finds its lowest member fast.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CpuSet(Vec<u64>);

impl CpuSet {
    /// CPUs `0..count`.
    pub(crate) fn full(count: u16) -> Self {
        let mut set = Self(vec![0; usize::from(count).div_ceil(64)]);
        (0..count).for_each(|cpu| set.insert(cpu));
        set
    }

    pub(crate) fn insert(&mut self, cpu: u16) {
        self.0[usize::from(cpu / 64)] |= 1 << (cpu % 64);
    }

    pub(crate) fn remove(&mut self, cpu: u16) {
        self.0[usize::from(cpu / 64)] &= !(1 << (cpu % 64));
    }

    #[inline]
    pub(crate) fn contains(&self, cpu: u16) -> bool {
        self.0[usize::from(cpu / 64)] & (1 << (cpu % 64)) != 0
    }

    pub(crate) fn lowest(&self) -> Option<u16> {
        let word = self.0.iter().position(|&word| word != 0)?;
        u16::try_from(word * 64 + self.0[word].trailing_zeros() as usize).ok()
    }
}
