//! Compaction of a zone: when it is worth it, how it starts and ends, when it is put off
//! (MECHANISMS 12.1, MECHANISMS-6X 9.2).
//!
//! ```text
//!   zone start |--> migrate scanner: pages in use     free pages: free scanner <--| zone end
//! ```
//!
//! A run is [`Memory::begin_compact`], then [`Memory::compact_step`] until it says that it is done,
//! then [`Memory::end_compact`]. Each step isolates, moves and puts back up to 32 pages of one
//! pageblock, so that no page is isolated between steps; free pages that were taken as targets
//! stay with the run.
//!
//! Left out: the fast searches through free lists (5.1), capture of the freed block for the waiting
//! task (5.1), contention on the zone lock, proactive compaction.
//! Next: [`crate::compact::scanners`] for the two scanners, [`crate::compact::migrate`].

use std_alloc::vec;
use std_alloc::vec::Vec;

use units::{CpuId, NodeId, Order, Pfn};

use crate::alloc::buddy::{FreeArea, LARGEST_ORDER, ORDERS};
use crate::alloc::flags::AllocFlags;
use crate::alloc::pageblock::{PAGEBLOCK_ORDER, PAGEBLOCK_PAGES, block_start};
use crate::alloc::pcp::COSTLY_ORDER;
use crate::alloc::watermark::Mark;
use crate::alloc::zone::Zone;
use crate::base::event::Trace;
use crate::base::gfp::MigrateType;
use crate::base::layout::{ZoneId, ZoneKind};
use crate::base::vmstat::VmEvent;
use crate::memory::Memory;
use crate::reclaim::run::{DEF_PRIORITY, ScanControl};

/// Runs that are put off after a failure double up to 2^6 (`COMPACT_MAX_DEFER_SHIFT`).
const DEFER_SHIFT_MAX: u8 = 6;
/// `vm.extfrag_threshold`: at or below it a failure is for want of memory, not for fragmentation.
const EXTFRAG_THRESHOLD: i64 = 500;

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

/// How a run ended, worst first: of several zones the best counts (`enum compact_result`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum CompactResult {
    /// Too little free memory, or fragmentation is not to blame.
    Skipped,
    /// Put off after earlier failures.
    Deferred,
    /// The scanners met; they had started in the middle of the zone.
    PartialSkipped,
    /// The scanners met; the whole zone was scanned.
    Complete,
    /// No target could be had though the scanners had not met.
    Contended,
    /// A block of the wanted order is free.
    Success,
}

/// What is asked of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CompactRequest {
    /// The order that is wanted.
    pub order: Order,
    /// The type of the request.
    pub want: MigrateType,
    /// Its class.
    pub class: ZoneKind,
    /// Flags of its allocation: they name the mark.
    pub flags: AllocFlags,
    /// How hard to try.
    pub priority: CompactPriority,
    /// For a task that waits, rather than for kcompactd.
    pub direct: bool,
    /// File pages may be moved (`__GFP_FS`).
    pub may_fs: bool,
}

/// Whether compaction of a zone makes sense.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Suitability {
    /// The request fits already.
    Fits,
    /// Yes.
    Suitable,
    /// No.
    Skip,
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
    pub(crate) migrate_cached: [u32; 2],
    pub(crate) free_cached: u32,
    start: u32,
    /// One for each pageblock: nothing to be had there.
    skip: Vec<bool>,
    /// Skip bits are to be cleared when kswapd goes to sleep.
    flush_skip: bool,
    deferral: Deferral,
}

/// How often compaction of a zone is put off (`compact_considered`, `compact_defer_shift`).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Deferral {
    considered: u32,
    shift: u8,
    order_failed: Order,
}

impl Deferral {
    /// Asks for a run for `order`: true when it is put off. Counts the question.
    pub fn is_deferred(&mut self, order: Order) -> bool {
        if order < self.order_failed {
            return false;
        }
        let limit = 1 << self.shift;
        self.considered = (self.considered + 1).min(limit);
        self.considered < limit
    }

    /// A run for `order` failed although it went through the zone.
    pub fn failed(&mut self, order: Order) {
        self.considered = 0;
        self.shift = (self.shift + 1).min(DEFER_SHIFT_MAX);
        self.order_failed = self.order_failed.min(order);
    }

    /// A block of `order` should be free now; `allocated`: it was even had.
    pub fn succeeded(&mut self, order: Order, allocated: bool) {
        if allocated {
            (self.considered, self.shift) = (0, 0);
        }
        if order >= self.order_failed {
            self.order_failed = Order(order.0 + 1);
        }
    }

    /// The next run for `order` is the first one after the longest deferral.
    fn is_restarting(&self, order: Order) -> bool {
        order >= self.order_failed && self.shift == DEFER_SHIFT_MAX && self.considered >= (1 << self.shift)
    }
}

impl ZoneCompact {
    pub(crate) fn new(zone: &Zone) -> Self {
        let blocks = zone.spanned.div_ceil(PAGEBLOCK_PAGES);
        let mut state = Self {
            migrate_cached: [zone.start.0; 2],
            free_cached: 0,
            start: zone.start.0,
            skip: vec![false; blocks as usize],
            flush_skip: false,
            deferral: Deferral::default(),
        };
        state.reset_skips();
        state
    }

    /// How far compaction of this zone is put off.
    pub const fn deferral(&self) -> Deferral {
        self.deferral
    }

    fn last_block(&self) -> u32 {
        let blocks = u32::try_from(self.skip.len()).expect("fewer blocks than frames");
        self.start + ((blocks - 1) * PAGEBLOCK_PAGES)
    }

    fn index(&self, block: u32) -> usize {
        ((block - self.start) >> PAGEBLOCK_ORDER.0) as usize
    }

    pub(crate) fn skips(&self, block: u32) -> bool {
        self.skip[self.index(block)]
    }

    pub(crate) fn set_skip(&mut self, block: u32) {
        let index = self.index(block);
        self.skip[index] = true;
    }

    fn reset_positions(&mut self) {
        self.migrate_cached = [self.start; 2];
        self.free_cached = self.last_block();
    }

    /// `__reset_isolation_suitable`: every block is worth a look again.
    fn reset_skips(&mut self) {
        self.skip.fill(false);
        self.flush_skip = false;
        self.reset_positions();
    }
}

/// A run in progress.
#[derive(Debug)]
pub struct Compaction {
    pub(crate) zone: ZoneId,
    pub(crate) request: CompactRequest,
    /// Next frame of the migrate scanner.
    pub(crate) migrate_at: u32,
    /// Next frame of the free scanner; it goes up within a block and down from block to block.
    pub(crate) free_at: u32,
    whole_zone: bool,
    /// Free blocks taken as targets, by order.
    pub(crate) targets: [Vec<Pfn>; ORDERS],
    pub(crate) targets_pages: u64,
    pub(crate) last_migrated: Option<u32>,
    /// Set by a step that cannot go on.
    pub(crate) given_up: bool,
}

impl Compaction {
    pub(crate) fn is_async(&self) -> bool {
        self.request.priority == CompactPriority::Async
    }

    fn scanners_met(&self) -> bool {
        (self.free_at >> PAGEBLOCK_ORDER.0) <= (self.migrate_at >> PAGEBLOCK_ORDER.0)
    }
}

/// Fragmentation index of a zone for `order`, in 1/1000: towards 0 a request fails for want of
/// memory, towards 1000 for fragmentation; -1000 when it would not fail.
pub fn fragmentation_index(area: &FreeArea, order: Order) -> i64 {
    let (mut blocks, mut fits) = (0, false);
    for at in (0..=LARGEST_ORDER.0).map(Order) {
        let here = area.blocks_free(at);
        blocks += here;
        fits |= at >= order && here > 0;
    }
    if blocks == 0 {
        return 0;
    }
    if fits {
        return -1000;
    }
    let share = 1000 + ((area.free_pages() * 1000) / u64::from(order.pages()));
    1000 - i64::try_from(share / blocks).expect("a share of the zone")
}

/// Pages that compaction for `order` works with (`compact_gap`).
pub const fn compact_gap(order: Order) -> u64 {
    2 << order.0
}

impl<T: Trace> Memory<T> {
    /// `compaction_suitable`: whether compaction of `zone` for `order` makes sense if `free` pages
    /// were free.
    pub fn compaction_suitable_with(
        &self,
        zone: ZoneId,
        order: Order,
        flags: AllocFlags,
        class: ZoneKind,
        free: u64,
    ) -> Suitability {
        let zone = self.core.alloc.zone(zone);
        let mark = zone.watermarks.mark(flags.mark().unwrap_or(Mark::Min));
        if zone.watermark_ok(order, mark, class, flags, free) {
            return Suitability::Fits;
        }
        let base = if order > COSTLY_ORDER { Mark::Low } else { Mark::Min };
        let needed = zone.watermarks.mark(base) + compact_gap(order);
        if !zone.watermark_ok(Order(0), needed, class, AllocFlags::NO_WATERMARKS, free) {
            return Suitability::Skip;
        }
        let index = if order > COSTLY_ORDER { fragmentation_index(&zone.free_area, order) } else { -1000 };
        if (0..=EXTFRAG_THRESHOLD).contains(&index) { Suitability::Skip } else { Suitability::Suitable }
    }

    /// [`Memory::compaction_suitable_with`] for the pages that are free now.
    pub fn compaction_suitable(
        &self,
        zone: ZoneId,
        order: Order,
        flags: AllocFlags,
        class: ZoneKind,
    ) -> Suitability {
        let free = self.core.alloc.zone(zone).free_pages().0;
        self.compaction_suitable_with(zone, order, flags, class, free)
    }

    /// `compaction_ready`: direct reclaim for `order` need not free more of `zone`, as the request
    /// fits or compaction has what it needs.
    pub fn compaction_ready(&self, zone: ZoneId, order: Order, class: ZoneKind) -> bool {
        match self.compaction_suitable(zone, order, AllocFlags::WMARK_MIN, class) {
            Suitability::Fits => true,
            Suitability::Skip => false,
            Suitability::Suitable => {
                let zone = self.core.alloc.zone(zone);
                let needed = zone.watermarks.mark(Mark::High) + compact_gap(order);
                let free = zone.free_pages().0;
                zone.watermark_ok(Order(0), needed, class, AllocFlags::NO_WATERMARKS, free)
            }
        }
    }

    /// `should_continue_reclaim`: a pass over `node` for a block freed `freed` pages; another one at
    /// the same priority is due if compaction cannot work yet and there is enough to reclaim.
    pub fn should_continue_reclaim(&self, node: NodeId, sc: &ScanControl, freed: u64) -> bool {
        let for_compaction =
            sc.order > Order(0) && (sc.order > COSTLY_ORDER || sc.priority < DEF_PRIORITY - 2);
        if !for_compaction || freed == 0 {
            return false;
        }
        let served = self.core.alloc.nodes()[node.index()]
            .zones
            .iter()
            .filter(|&&id| self.core.alloc.zone(id).kind <= sc.reclaim_idx)
            .any(|&id| {
                let flags = AllocFlags::WMARK_MIN;
                self.compaction_suitable(id, sc.order, flags, sc.reclaim_idx) != Suitability::Skip
            });
        let inactive = self.node_inactive_file_pages(node);
        !served && inactive > compact_gap(sc.order)
    }

    /// Asks whether compaction of `zone` is put off; counts the question.
    pub fn compaction_deferred(&mut self, zone: ZoneId, order: Order) -> bool {
        self.compact[zone.index()].deferral.is_deferred(order)
    }

    /// Puts compaction of `zone` off for some requests: it failed.
    pub fn defer_compaction(&mut self, zone: ZoneId, order: Order) {
        self.compact[zone.index()].deferral.failed(order);
    }

    /// Compaction of `zone` made a block of `order`; `allocated`: the request got one.
    pub fn compaction_succeeded(&mut self, zone: ZoneId, order: Order, allocated: bool) {
        let state = &mut self.compact[zone.index()];
        state.deferral.succeeded(order, allocated);
        if allocated {
            state.flush_skip = false;
        }
    }

    /// kswapd goes to sleep: skip bits of zones that were scanned through in vain are cleared
    /// (`reset_isolation_suitable`).
    pub fn reset_skip_bits(&mut self, zone: ZoneId) {
        if self.compact[zone.index()].flush_skip {
            self.compact[zone.index()].reset_skips();
        }
    }

    /// Starts a run on a zone.
    ///
    /// # Errors
    /// The result, where no run is needed or makes sense.
    pub fn begin_compact(
        &mut self,
        cpu: CpuId,
        zone: ZoneId,
        request: CompactRequest,
    ) -> Result<Compaction, CompactResult> {
        match self.compaction_suitable(zone, request.order, request.flags, request.class) {
            Suitability::Fits => return Err(CompactResult::Success),
            Suitability::Skip => return Err(CompactResult::Skipped),
            Suitability::Suitable => {}
        }
        self.lru_drain(cpu);
        let state = &mut self.compact[zone.index()];
        if state.deferral.is_restarting(request.order) {
            state.reset_skips();
        }
        let whole = request.priority == CompactPriority::SyncFull;
        let is_sync = usize::from(request.priority != CompactPriority::Async);
        let migrate_at = if whole { state.start } else { state.migrate_cached[is_sync] };
        let free_at = if whole { state.last_block() } else { state.free_cached };
        Ok(Compaction {
            zone,
            request,
            migrate_at,
            free_at,
            whole_zone: migrate_at == state.start,
            targets: [const { Vec::new() }; ORDERS],
            targets_pages: 0,
            last_migrated: None,
            given_up: false,
        })
    }

    /// Goes on with a run by up to 32 pages of one pageblock.
    pub fn compact_step(&mut self, cpu: CpuId, run: &mut Compaction) -> CompactStep {
        let mut step = CompactStep { done: self.compact_finished(run), ..CompactStep::default() };
        if step.done.is_some() {
            return step;
        }
        self.isolate_and_migrate(cpu, run, &mut step);
        let chunk = run.migrate_at & !(run.request.order.pages() - 1);
        if run.last_migrated.is_some_and(|last| last < chunk) {
            // Freed pages merge only once they have left the CPU's lists.
            self.lru_drain(cpu);
            step.drained = self.core.alloc.drain_cpu_zone(cpu, run.zone);
            run.last_migrated = None;
        }
        let events = &mut self.core.alloc.events;
        events.add(VmEvent::CompactMigrateScanned, step.migrate_scanned);
        events.add(VmEvent::CompactFreeScanned, step.free_scanned);
        events.add(VmEvent::PgMigrateSuccess, step.moved_file + step.moved_anon);
        events.add(VmEvent::PgMigrateFail, step.failed);
        step
    }

    /// `compact_finished`.
    fn compact_finished(&mut self, run: &Compaction) -> Option<CompactResult> {
        if run.scanners_met() {
            let state = &mut self.compact[run.zone.index()];
            state.reset_positions();
            state.flush_skip |= run.request.direct;
            let whole = run.whole_zone;
            return Some(if whole { CompactResult::Complete } else { CompactResult::PartialSkipped });
        }
        if run.given_up {
            return Some(CompactResult::Contended);
        }
        // A block is always finished, to keep types from mixing in it later.
        if !run.migrate_at.is_multiple_of(PAGEBLOCK_PAGES) {
            return None;
        }
        let area = &self.core.alloc.zone(run.zone).free_area;
        (run.request.order.0..=LARGEST_ORDER.0)
            .any(|at| crate::alloc::fallback::can_serve(area, Order(at), run.request.want))
            .then_some(CompactResult::Success)
    }

    /// Ends a run: targets that were not needed are free again.
    pub fn end_compact(&mut self, cpu: CpuId, run: Compaction) {
        let mut highest = None;
        for (order, blocks) in (0..).map(Order).zip(&run.targets) {
            for &pfn in blocks {
                highest = highest.max(Some(pfn));
                self.core.alloc.free(cpu, pfn, order);
            }
        }
        if let Some(pfn) = highest {
            let state = &mut self.compact[run.zone.index()];
            state.free_cached = state.free_cached.max(block_start(pfn).0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_failure_doubles_the_requests_that_are_put_off_up_to_63() {
        let mut deferral = Deferral::default();
        let put_off: Vec<u32> = (0..8)
            .map(|_| {
                let mut count = 0;
                while deferral.is_deferred(Order(9)) {
                    count += 1;
                }
                deferral.failed(Order(9));
                count
            })
            .collect();
        assert_eq!(put_off, [0, 1, 3, 7, 15, 31, 63, 63]);
        assert!(deferral.is_deferred(Order(1)), "as at boot, no order is known to work");
        deferral.succeeded(Order(9), false);
        assert!(!deferral.is_deferred(Order(9)), "it works again");
        deferral.failed(Order(9));
        assert!(!deferral.is_deferred(Order(8)), "smaller orders did not fail");
        assert!(deferral.is_deferred(Order(9)), "the next failure counts in full");
        deferral.succeeded(Order(9), true);
        assert_eq!(deferral, Deferral { order_failed: Order(10), ..Deferral::default() });
    }
}
