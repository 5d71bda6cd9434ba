//! What reclaim did for a request before it gave up: what the report of the OOM killer tells.
//!
//! Left out: what kswapd and others did meanwhile. Neighbours: [`super::priority`], which fills it in,
//! [`super::slow_path`], which keeps it, and `why.rs`, which prints it.

use crate::reclaim::run::{DEF_PRIORITY, ScanControl};

/// What a run did at one priority, over all nodes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct AtPriority {
    /// Pages looked at.
    pub scanned: u64,
    /// Pages freed, slab pages included.
    pub freed: u64,
    /// Slab objects looked at.
    pub objects: u64,
}

/// What one run of reclaim did at each priority, from 12 down.
#[derive(Debug, Clone, Copy, Default)]
pub struct Passes {
    passes: [AtPriority; DEF_PRIORITY as usize + 1],
    count: usize,
}

impl Passes {
    /// Nothing was looked at, at any priority.
    pub(super) const IN_VAIN: Self = Self {
        passes: [AtPriority { scanned: 0, freed: 0, objects: 0 }; DEF_PRIORITY as usize + 1],
        count: DEF_PRIORITY as usize + 1,
    };

    /// A new round, at the first priority: what was noted before counts no more.
    pub(super) const fn begin(&mut self) {
        self.count = 0;
    }

    /// All nodes were visited at the priority of `sc`; `before`: its figures at the end of the priority before.
    pub(super) fn note(&mut self, sc: &ScanControl, before: AtPriority) -> AtPriority {
        let (freed, objects) = (sc.nr_reclaimed, sc.slab_scanned);
        self.passes[self.count] = AtPriority {
            scanned: sc.nr_scanned,
            freed: freed - before.freed,
            objects: objects - before.objects,
        };
        self.count += 1;
        AtPriority { scanned: sc.nr_scanned, freed, objects }
    }

    /// Each priority that was tried, and what was done there.
    pub fn iter(&self) -> impl Iterator<Item = (u8, AtPriority)> + '_ {
        (0..=DEF_PRIORITY).rev().zip(self.passes[..self.count].iter().copied())
    }
}

/// What was done for a request since it began, or since somebody was killed for it.
#[derive(Debug, Clone, Copy, Default)]
pub struct Effort {
    /// Runs of reclaim.
    pub runs: u32,
    /// Those in a row at the end that freed nothing.
    pub in_vain: u32,
    /// Pages that all of them freed.
    pub freed: u64,
    /// The last one.
    pub last: Passes,
}

impl Effort {
    /// A run has ended.
    pub fn note_run(&mut self, freed: u64, passes: Passes) {
        self.runs += 1;
        self.in_vain = if freed == 0 { self.in_vain + 1 } else { 0 };
        self.freed += freed;
        self.last = passes;
    }
}
