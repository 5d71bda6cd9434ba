//! What is asked of compaction, what it says, and what it remembers: of a zone between runs, and of
//! a run between steps (MECHANISMS 12.1).
//!
//! Neighbours: [`crate::compact::run`] and [`crate::compact::scanners`] work on it.

use std_alloc::vec;
use std_alloc::vec::Vec;

use units::{Order, Pfn};

use crate::alloc::buddy::ORDERS;
use crate::alloc::flags::AllocFlags;
use crate::alloc::pageblock::BlockSize;
use crate::alloc::zone::Zone;
use crate::base::gfp::MigrateType;
use crate::base::layout::{ZoneId, ZoneKind};
use crate::compact::defer::Deferral;
use crate::compact::searches::Searches;

/// How hard a run tries.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum CompactPriority {
    /// Everything: whole zone, blocks of all types, skip bits ignored.
    SyncFull,
    /// Blocks of all types as sources.
    SyncLight,
    /// Only sources of the wanted type; gives a piece up at the first page that stays.
    Async,
}

impl CompactPriority {
    /// The next harder one; nothing is harder than everything.
    #[must_use]
    pub const fn harder(self) -> Self {
        match self {
            Self::Async => Self::SyncLight,
            Self::SyncLight | Self::SyncFull => Self::SyncFull,
        }
    }
}

/// How a run ended, worst first: of several zones the best counts (`enum compact_result`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum CompactResult {
    /// Too little free memory, or fragmentation is not to blame.
    Skipped,
    /// Put off after earlier failures.
    Deferred,
    /// The scanners met; the whole zone was scanned.
    Complete,
    /// The scanners met; they had started in the middle of the zone.
    PartialSkipped,
    /// No target could be had though the scanners had not met.
    Contended,
    /// A block of the wanted order is free.
    Success,
}

impl CompactResult {
    /// As `mm_compaction_end` prints it.
    pub const fn text(self) -> &'static str {
        match self {
            Self::Skipped => "skipped",
            Self::Deferred => "deferred",
            Self::Complete => "complete",
            Self::PartialSkipped => "partial_skipped",
            Self::Contended => "contended",
            Self::Success => "success",
        }
    }
}

/// What is asked of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CompactRequest {
    /// The order that is wanted.
    pub order: Order,
    /// The type of the request.
    pub want: MigrateType,
    /// Its highest zone.
    pub highest_zoneidx: ZoneKind,
    /// Flags of its allocation: they name the mark.
    pub flags: AllocFlags,
    /// How hard to try.
    pub priority: CompactPriority,
    /// For a task that waits, rather than for kcompactd.
    pub direct: bool,
    /// File pages may be moved (`__GFP_FS`).
    pub may_fs: bool,
    /// When it is enough.
    pub goal: CompactGoal,
}

/// What a run of compaction is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CompactGoal {
    /// A free block of the order, for the type.
    Block,
    /// Whole pageblocks that are free, up to the high mark (`vm.defrag_mode`).
    WholeBlocks,
    /// A zone with this score at most ([`crate::compact::score`]). It goes through the whole zone, whatever was found
    /// before, and does not search.
    Score(u64),
}

impl CompactRequest {
    /// Begins at both ends of the zone, and looks at pageblocks that had nothing (`whole_zone`, `ignore_skip_hint`).
    pub(super) fn is_of_whole_zone(&self) -> bool {
        self.priority == CompactPriority::SyncFull || matches!(self.goal, CompactGoal::Score(_))
    }

    /// It is for blocks of its order. Proactive compaction is for none (`cc->order` is -1): it does not search lists of
    /// free blocks, drains no list of a CPU, and is not put off.
    pub fn has_order(&self) -> bool {
        !matches!(self.goal, CompactGoal::Score(_))
    }
}

/// What one step did: for CPU time and counters.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[must_use]
pub struct CompactStep {
    /// Frames that the migrate scanner looked at.
    pub migrate_scanned: u64,
    /// Frames that the free scanner looked at.
    pub free_scanned: u64,
    /// File pages moved.
    pub moved_file: u64,
    /// Mapped anonymous pages moved.
    pub moved_anon: u64,
    /// Pages that could not be moved.
    pub failed: u64,
    /// Pages drained from the CPU's lists.
    pub drained: u64,
    /// The run is over.
    pub done: Option<CompactResult>,
}

/// What a zone remembers between runs.
#[derive(Debug, Clone)]
pub struct ZoneCompact {
    /// Where the migrate scanner starts, by [`CompactPriority::Async`] or not.
    pub(super) migrate_cached: [u32; 2],
    pub(super) free_cached: u32,
    /// Where the free scanner starts once skip bits were cleared; before, every position counts as a start.
    pub(super) free_first: u32,
    pub(super) start: u32,
    size: BlockSize,
    /// One for each pageblock: nothing to be had there.
    pub(super) skip: Vec<bool>,
    /// Skip bits are to be cleared when kswapd goes to sleep.
    pub(super) flush_skip: bool,
    pub(super) deferral: Deferral,
}

impl ZoneCompact {
    pub(super) fn new(zone: &Zone) -> Self {
        let size = zone.free_area.pageblocks().size();
        let blocks = zone.spanned.div_ceil(size.pages());
        Self {
            migrate_cached: [zone.start.0; 2],
            free_cached: 0,
            free_first: 0,
            start: zone.start.0,
            size,
            skip: vec![false; blocks as usize],
            flush_skip: false,
            deferral: Deferral::default(),
        }
    }

    /// How far compaction of this zone is put off.
    pub const fn deferral(&self) -> Deferral {
        self.deferral
    }

    pub(super) fn last_block(&self) -> u32 {
        let blocks = u32::try_from(self.skip.len()).expect("fewer blocks than frames");
        self.start + ((blocks - 1) * self.size.pages())
    }

    fn index(&self, block: u32) -> usize {
        ((block - self.start) >> self.size.order().0) as usize
    }

    pub(super) fn skips(&self, block: u32) -> bool {
        self.skip[self.index(block)]
    }

    pub(super) fn set_skip(&mut self, block: u32) {
        let index = self.index(block);
        self.skip[index] = true;
    }

    pub(super) fn reset_positions(&mut self) {
        self.migrate_cached = [self.start; 2];
        self.free_cached = self.last_block();
    }

    /// `__reset_isolation_suitable`: every block is worth a look again.
    pub(super) fn reset_skips(&mut self) {
        self.skip.fill(false);
        self.flush_skip = false;
        self.free_first = self.last_block();
        self.reset_positions();
    }
}

/// A run in progress.
#[derive(Debug)]
pub struct Compaction {
    pub(super) zone: ZoneId,
    pub(super) request: CompactRequest,
    /// Next frame of the migrate scanner.
    pub(super) migrate_at: u32,
    /// How large the zone's pageblocks are.
    pub(super) block: BlockSize,
    /// Next frame of the free scanner; it goes up within a block and down from block to block.
    pub(super) free_at: u32,
    pub(super) whole_zone: bool,
    /// Free blocks taken as targets, by order.
    pub(super) targets: [Vec<Pfn>; ORDERS],
    pub(super) targets_pages: u64,
    pub(super) last_migrated: Option<u32>,
    /// The pageblock that the last step moved pages of is finished first.
    pub(super) finishes: bool,
    pub(super) searches: Searches,
    /// Set by a step that cannot go on.
    pub(super) given_up: bool,
}

impl Compaction {
    pub(super) fn is_async(&self) -> bool {
        self.request.priority == CompactPriority::Async
    }

    pub(super) fn scanners_met(&self) -> bool {
        let order = self.block.order().0;
        (self.free_at >> order) <= (self.migrate_at >> order)
    }
}

/// Compaction: what each zone remembers.
#[derive(Debug, Clone)]
pub struct Compactor {
    /// By [`ZoneId`].
    pub(super) zones: Vec<ZoneCompact>,
    /// Pages that a step took off their lists; empty between steps.
    pub(super) isolated: Vec<Pfn>,
}

impl Compactor {
    /// Before the first run on these zones.
    pub fn new(zones: &[Zone]) -> Self {
        Self { zones: zones.iter().map(ZoneCompact::new).collect(), isolated: Vec::new() }
    }

    /// What a zone remembers.
    pub fn zone(&self, zone: ZoneId) -> &ZoneCompact {
        &self.zones[zone.index()]
    }

    /// Asks whether compaction of `zone` is put off; counts the question.
    pub fn is_deferred(&mut self, zone: ZoneId, order: Order) -> bool {
        self.zones[zone.index()].deferral.is_deferred(order)
    }

    /// Puts compaction of `zone` off for some requests: it failed.
    pub fn defer(&mut self, zone: ZoneId, order: Order) {
        self.zones[zone.index()].deferral.failed(order);
    }

    /// Compaction of `zone` made a block of `order`; `allocated`: the request got one.
    pub fn succeeded(&mut self, zone: ZoneId, order: Order, allocated: bool) {
        let state = &mut self.zones[zone.index()];
        state.deferral.succeeded(order, allocated);
        if allocated {
            state.flush_skip = false;
        }
    }

    /// kswapd goes to sleep: skip bits of zones that were scanned through in vain are cleared
    /// (`reset_isolation_suitable`).
    pub fn reset_skip_bits(&mut self, zone: ZoneId) {
        if self.zones[zone.index()].flush_skip {
            self.zones[zone.index()].reset_skips();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_priority_is_harder_than_the_one_before() {
        use CompactPriority::{Async, SyncFull, SyncLight};
        assert_eq!(
            [Async, SyncLight, SyncFull].map(CompactPriority::harder),
            [SyncLight, SyncFull, SyncFull]
        );
    }

    #[test]
    fn a_zone_that_was_scanned_in_part_speaks_for_another_that_was_scanned_through() {
        use CompactResult::{Complete, Contended, Deferred, PartialSkipped, Skipped, Success};
        let worst_first = [Skipped, Deferred, Complete, PartialSkipped, Contended, Success];
        assert!(worst_first.is_sorted());
        assert_eq!(Complete.max(PartialSkipped), PartialSkipped, "there is something left to try");
    }
}
