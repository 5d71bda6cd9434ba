//! Compaction of a zone: how a run starts, goes on and ends
//! (MECHANISMS 12.1, MECHANISMS-6X 9.2).
//!
//! ```text
//!   zone start |--> migrate scanner: pages in use     free pages: free scanner <--| zone end
//! ```
//!
//! A run is [`Compactor::begin`], then [`Compactor::step`] until it says that it is done,
//! then [`Compactor::end`]. Each step isolates, moves and puts back up to 32 pages of one
//! pageblock, or since 5.1 the rest of one, so that no page is isolated between steps; free
//! pages that were taken as targets stay with the run.
//!
//! Left out: capture of the freed block for the waiting task (5.1), contention on the zone lock.
//! Next: [`crate::compact::scanners`] for the two scanners, [`crate::compact::search`] for the searches before
//! them, [`crate::compact::migrate`].

use std_alloc::vec::Vec;

use units::{CpuId, Order};

use crate::alloc::buddy::{LARGEST_ORDER, ORDERS};
use crate::alloc::fallback::can_serve;
use crate::alloc::suitable::{Suitability, suitable, suitable_for_whole_blocks};
use crate::base::event::Trace;
use crate::base::layout::ZoneId;
use crate::base::vmstat::VmEvent;
use crate::compact::score::zone_score;
use crate::compact::searches::Searches;
use crate::compact::state::{
    CompactGoal, CompactPriority, CompactRequest, CompactResult, CompactStep, Compaction, Compactor,
};
use crate::core::Core;
use crate::lru::lists::Lru;
use crate::pages::anon::AnonMaps;
use crate::pages::cache::PageCache;

impl Compactor {
    /// Starts a run on a zone.
    ///
    /// # Errors
    /// The result, where no run is needed or makes sense.
    pub fn begin<T: Trace>(
        &mut self,
        core: &mut Core<T>,
        lru: &mut Lru,
        cpu: CpuId,
        zone: ZoneId,
        request: CompactRequest,
    ) -> Result<Compaction, CompactResult> {
        let (order, highest) = (request.order, request.highest_zoneidx);
        let found = match request.goal {
            CompactGoal::Block => suitable(&core.alloc, zone, order, request.flags, highest),
            CompactGoal::WholeBlocks => suitable_for_whole_blocks(&core.alloc, zone, order, highest),
            CompactGoal::Score(_) => Suitability::Suitable,
        };
        match found {
            Suitability::Fits => return Err(CompactResult::Success),
            Suitability::Skip => return Err(CompactResult::Skipped),
            Suitability::Suitable => {}
        }
        lru.drain(core, cpu);
        let state = &mut self.zones[zone.index()];
        // Of a zone that was never compacted nothing is known yet. If it begins with the machine's first frame, both
        // positions pass for good ones, and its first run ends at once: guests of 5.10 to 7.2 all do that.
        if state.free_cached < state.start {
            state.free_cached = state.last_block();
        }
        if request.has_order() && state.deferral.is_restarting(request.order) {
            state.reset_skips();
        }
        let whole = request.is_of_whole_zone();
        let is_sync = usize::from(request.priority != CompactPriority::Async);
        let migrate_at = if whole { state.start } else { state.migrate_cached[is_sync] };
        let free_at = if whole { state.last_block() } else { state.free_cached };
        Ok(Compaction {
            zone,
            request,
            block: core.alloc.block_size(),
            migrate_at,
            free_at,
            whole_zone: migrate_at == state.start,
            targets: [const { Vec::new() }; ORDERS],
            targets_pages: 0,
            last_migrated: None,
            finishes: false,
            searches: Searches::new(request.order),
            given_up: false,
        })
    }

    /// Goes on with a run by up to 32 pages of one pageblock, or the rest of it.
    pub fn step<T: Trace>(
        &mut self,
        core: &mut Core<T>,
        lru: &mut Lru,
        cache: &mut PageCache,
        anon: &mut AnonMaps,
        cpu: CpuId,
        run: &mut Compaction,
    ) -> CompactStep {
        let mut step = CompactStep { done: self.finished(core, run), ..CompactStep::default() };
        if step.done.is_some() {
            return step;
        }
        self.isolate_and_migrate(core, lru, cache, anon, cpu, run, &mut step);
        let chunk = run.migrate_at & !(run.request.order.pages() - 1);
        if run.request.has_order() && run.last_migrated.is_some_and(|last| last < chunk) {
            // Freed pages merge only once they have left the CPU's lists.
            lru.drain(core, cpu);
            step.drained = core.alloc.drain_cpu_zone(cpu, run.zone);
            run.last_migrated = None;
        }
        let events = &mut core.alloc.events;
        events.add(VmEvent::CompactMigrateScanned, step.migrate_scanned);
        events.add(VmEvent::CompactFreeScanned, step.free_scanned);
        events.add(VmEvent::PgMigrateSuccess, step.moved_file + step.moved_anon);
        events.add(VmEvent::PgMigrateFail, step.failed);
        step
    }

    /// `compact_finished`.
    fn finished<T: Trace>(&mut self, core: &Core<T>, run: &Compaction) -> Option<CompactResult> {
        if run.scanners_met() {
            let state = &mut self.zones[run.zone.index()];
            state.reset_positions();
            state.flush_skip |= run.request.direct;
            let whole = run.whole_zone;
            return Some(if whole { CompactResult::Complete } else { CompactResult::PartialSkipped });
        }
        if run.given_up {
            return Some(CompactResult::Contended);
        }
        if let CompactGoal::Score(most) = run.request.goal {
            return (zone_score(&core.alloc.zone(run.zone).free_area) <= most)
                .then_some(CompactResult::Success);
        }
        // A block is always finished, to keep types from mixing in it later.
        if !run.migrate_at.is_multiple_of(run.block.pages()) {
            return None;
        }
        if run.request.goal == CompactGoal::WholeBlocks {
            let zone = core.alloc.zone(run.zone);
            let done = zone.above_in_whole_blocks(run.request.order, run.request.highest_zoneidx);
            return done.then_some(CompactResult::Success);
        }
        let area = &core.alloc.zone(run.zone).free_area;
        (run.request.order.0..=LARGEST_ORDER.0)
            .any(|at| can_serve(area, Order(at), run.request.want))
            .then_some(CompactResult::Success)
    }

    /// Ends a run: targets that were not needed are free again.
    pub fn end<T: Trace>(&mut self, core: &mut Core<T>, cpu: CpuId, run: Compaction) {
        let mut highest = None;
        for (order, blocks) in (0..).map(Order).zip(&run.targets) {
            for &pfn in blocks {
                highest = highest.max(Some(pfn));
                core.alloc.free(cpu, pfn, order);
            }
        }
        if let Some(pfn) = highest {
            let state = &mut self.zones[run.zone.index()];
            state.free_cached = state.free_cached.max(run.block.start(pfn).0);
        }
    }
}
