//! The two scanners of compaction (MECHANISMS 12.1): where pages come from and where they go.
//!
//! Both look at frames by heads. A position may have come to lie within a block that was merged
//! or allocated since; a scan therefore walks each pageblock from its start.
//! Neighbours: [`crate::compact::run`] for the run, [`crate::compact::migrate`] for the move itself.

use units::{CpuId, Order, Pfn};

use crate::alloc::pageblock::head_step;
use crate::alloc::pcp::COSTLY_ORDER;
use crate::base::event::Trace;
use crate::base::frame::{FrameState, PageFlags, anon_owner};
use crate::base::vmstat::VmEvent;
use crate::compact::migrate::{is_busy, is_movable, migrate};
use crate::compact::searches::COMPACT_CLUSTER_MAX;
use crate::compact::state::{CompactPriority, CompactStep, Compaction, Compactor};
use crate::compact::targets::{head_from, is_target_type, isolate_free_in, split_target};
use crate::core::Core;
use crate::lru::lists::Lru;
use crate::pages::anon::AnonMaps;
use crate::pages::cache::PageCache;
use crate::version::rules::{CompactFolios, CompactSearch};

/// The end of the aligned piece of `order` pages that holds `at`.
const fn chunk_end(at: u32, order: Order) -> u32 {
    (at & !(order.pages() - 1)) + order.pages()
}

impl Compactor {
    /// One step: isolates pages of one pageblock, moves them, puts back what stays.
    pub(crate) fn isolate_and_migrate<T: Trace>(
        &mut self,
        core: &mut Core<T>,
        lru: &mut Lru,
        cache: &mut PageCache,
        anon: &mut AnonMaps,
        cpu: CpuId,
        run: &mut Compaction,
        step: &mut CompactStep,
    ) {
        let began = run.migrate_at;
        let search = core.rules().compact_search;
        let same_block = |last: u32| run.block.start(Pfn(last)) == run.block.start(Pfn(began));
        run.finishes = search != CompactSearch::None && run.last_migrated.is_some_and(same_block);
        let Some(block) = self.next_source(core, run, step) else { return };
        let from = run.migrate_at;
        let isolated = self.isolate_source(core, lru, run, block, step);
        if isolated > 0 {
            run.last_migrated = match search {
                CompactSearch::None => run.last_migrated.or(Some(from)),
                CompactSearch::Any | CompactSearch::UpperHalf => Some(began),
                CompactSearch::Counted => Some(run.block.start(Pfn(run.migrate_at - 1)).0),
            };
        }
        core.alloc.events.add(VmEvent::CompactIsolated, u64::from(isolated));
        let end = block + run.block.pages();
        if run.migrate_at >= end && (isolated == 0 || run.finishes) {
            self.zones[run.zone.index()].set_skip(block);
            self.note_source_done(core, run, end);
        }
        self.migrate_isolated(core, lru, cache, anon, cpu, run, isolated, step);
        if step.failed > 0 && search == CompactSearch::Counted && run.migrate_at >= end {
            // The next search is not to come back to what stayed.
            self.zones[run.zone.index()].set_skip(block);
        }
        let large = core.rules().compact_folios == CompactFolios::Large;
        if step.failed > 0 && run.request.direct && run.is_async() && !large {
            // The rest of the piece cannot become a block; the 6.12 kernel finishes the block.
            run.migrate_at = chunk_end(run.migrate_at - 1, run.request.order);
            run.last_migrated = None;
        }
    }

    // ---- where pages come from ----

    /// The next pageblock that is worth scanning; none when the scanners meet.
    fn next_source<T: Trace>(
        &mut self,
        core: &mut Core<T>,
        run: &mut Compaction,
        step: &mut CompactStep,
    ) -> Option<u32> {
        let mut found = self.search_source(core, run, step);
        loop {
            let block = run.block.start(Pfn(run.migrate_at)).0;
            if block + run.block.pages() > run.free_at {
                return None;
            }
            let ignore_skip = run.request.is_of_whole_zone();
            let skips = self.zones[run.zone.index()].skips(block);
            let skip = run.migrate_at == block && !ignore_skip && !found && skips;
            let is_source = is_source(core, run, block);
            if !skip && is_source {
                return Some(block);
            }
            run.migrate_at = block + run.block.pages();
            if !skip && core.rules().compact_search != CompactSearch::None {
                self.note_source_done(core, run, run.migrate_at);
            }
            found = false;
        }
    }

    /// Nothing more is to be had before `end`. Since 5.1 the next run leaves the pageblock behind it out, too: guests
    /// whose run ended at the pageblock 0x4400 began the next one at 0x4800.
    fn note_source_done<T: Trace>(&mut self, core: &Core<T>, run: &Compaction, end: u32) {
        let beyond = if core.rules().compact_search == CompactSearch::None { 0 } else { run.block.pages() };
        let end = end + beyond;
        let state = &mut self.zones[run.zone.index()];
        state.migrate_cached[0] = state.migrate_cached[0].max(end);
        if !run.is_async() {
            state.migrate_cached[1] = state.migrate_cached[1].max(end);
        }
    }

    /// `isolate_migratepages_block`: takes up to 32 pages off their lists into the scratch list;
    /// returns how many pages that is.
    fn isolate_source<T: Trace>(
        &mut self,
        core: &mut Core<T>,
        lru: &mut Lru,
        run: &mut Compaction,
        block: u32,
        step: &mut CompactStep,
    ) -> u32 {
        let end = block + run.block.pages();
        let counts = core.rules().compact_search == CompactSearch::Counted;
        let passes = !run.request.is_of_whole_zone() && run.migrate_at == block;
        if !counts && passes && self.zones[run.zone.index()].skips(block) {
            // The search that found it has marked it.
            step.migrate_scanned += 1;
            run.migrate_at = end;
            return 0;
        }
        let gives_up_pieces = run.is_async() && run.request.direct;
        let mut at = head_from(&core.alloc.frames, block, run.block, run.migrate_at);
        let mut piece_end = chunk_end(run.migrate_at, run.request.order);
        let mut taken = 0;
        while at < end && (taken < COMPACT_CLUSTER_MAX || run.finishes) {
            if gives_up_pieces && at >= piece_end {
                if taken > 0 {
                    break;
                }
                piece_end = chunk_end(at, run.request.order);
            }
            let pfn = Pfn(at);
            let pages = head_step(&core.alloc.frames, pfn);
            // Large blocks in use are what boot left: the kernel has them page by page.
            let is_kept = core.alloc.frames.state(pfn) == FrameState::InUse && pages > COSTLY_ORDER.pages();
            step.migrate_scanned += if is_kept || counts { u64::from(pages) } else { 1 };
            at += pages;
            if core.alloc.frames.state(pfn) == FrameState::Free {
                continue;
            }
            if may_isolate(core, run, pfn) {
                lru.remove(core, pfn);
                self.isolated.push(pfn);
                taken += pages;
            } else if gives_up_pieces {
                self.put_back(core, lru);
                taken = 0;
                at = at.max(piece_end);
                piece_end += run.request.order.pages();
            }
        }
        run.migrate_at = at;
        taken
    }

    /// Puts isolated pages back to the heads of their lists.
    fn put_back<T: Trace>(&mut self, core: &mut Core<T>, lru: &mut Lru) {
        let mut pages = core::mem::take(&mut self.isolated);
        pages.drain(..).for_each(|pfn| lru.insert(core, pfn));
        self.isolated = pages;
    }

    /// `migrate_pages`: moves what is isolated, as far as targets can be had.
    fn migrate_isolated<T: Trace>(
        &mut self,
        core: &mut Core<T>,
        lru: &mut Lru,
        cache: &mut PageCache,
        anon: &mut AnonMaps,
        cpu: CpuId,
        run: &mut Compaction,
        isolated: u32,
        step: &mut CompactStep,
    ) {
        let mut left = u64::from(isolated);
        let mut pages = core::mem::take(&mut self.isolated);
        for pfn in pages.drain(..) {
            let order = core.alloc.frames.order(pfn);
            let count = u64::from(order.pages());
            let is_anon = anon_owner(core.alloc.frames.owner(pfn)).is_some();
            let target = if run.given_up { None } else { self.take_target(core, run, order, left, step) };
            left -= count;
            let Some(target) = target else {
                if order > Order(0) {
                    lru.insert(core, pfn);
                    step.failed += count;
                    continue; // Smaller ones may still find room.
                }
                // Without targets the rest stays; the scanners tell whether that is the end.
                run.given_up = true;
                lru.insert(core, pfn);
                continue;
            };
            if is_busy(core, pfn) {
                run.add_target(target, order);
                lru.insert(core, pfn);
                step.failed += count;
            } else {
                migrate(core, lru, cache, anon, cpu, pfn, target);
                *(if is_anon { &mut step.moved_anon } else { &mut step.moved_file }) += count;
            }
        }
        self.isolated = pages;
    }

    // ---- where they go ----

    /// A free block of `order`; scans for enough of them for `wanted` pages first if need be.
    fn take_target<T: Trace>(
        &mut self,
        core: &mut Core<T>,
        run: &mut Compaction,
        order: Order,
        wanted: u64,
        step: &mut CompactStep,
    ) -> Option<Pfn> {
        if let Some(pfn) = split_target(core, run, order) {
            return Some(pfn);
        }
        self.isolate_free(core, run, wanted, step);
        split_target(core, run, order)
    }

    /// `isolate_freepages`: goes down from block to block until there are targets for `wanted`
    /// pages or the migrate scanner is met.
    fn isolate_free<T: Trace>(
        &mut self,
        core: &mut Core<T>,
        run: &mut Compaction,
        wanted: u64,
        step: &mut CompactStep,
    ) {
        self.search_targets(core, run, wanted, step);
        if run.targets_pages > 0 {
            return;
        }
        let search = core.rules().compact_search;
        let mut stride = match search {
            CompactSearch::None => 1,
            _ if run.is_async() => COMPACT_CLUSTER_MAX,
            _ => 1,
        };
        let low = run.block.start(Pfn(run.migrate_at + run.block.pages())).0;
        let mut block = run.block.start(Pfn(run.free_at)).0;
        let mut isolated = 0;
        while block >= low && run.targets_pages < wanted {
            let end = block + run.block.pages();
            let mut at = run.free_at.max(block);
            if self.is_target(core, run, block) {
                let taken = isolate_free_in(core, run, block, &mut at, (wanted, stride), step);
                isolated += taken;
                stride = match search {
                    CompactSearch::None => 1,
                    _ if taken > 0 => 1,
                    _ => (stride << 1).min(COMPACT_CLUSTER_MAX),
                };
                if at < end {
                    run.free_at = at;
                    break; // Enough, or the zone has no more to give.
                }
                let state = &mut self.zones[run.zone.index()];
                state.set_skip(block);
                state.free_cached = state.free_cached.min(block - run.block.pages().min(block));
            }
            run.free_at = block - run.block.pages().min(block);
            block = run.free_at;
            if block < low {
                break;
            }
        }
        core.alloc.events.add(VmEvent::CompactIsolated, isolated);
    }

    /// `suitable_migration_target` and the skip bit: movable, and not free in large blocks already.
    fn is_target<T: Trace>(&self, core: &Core<T>, run: &Compaction, block: u32) -> bool {
        if run.request.priority == CompactPriority::SyncFull {
            return true;
        }
        if !run.request.is_of_whole_zone() && self.zones[run.zone.index()].skips(block) {
            return false;
        }
        is_target_type(core, run, block)
    }
}

/// `suitable_migration_source_block`: without waiting only blocks of the wanted type are
/// emptied.
fn is_source<T: Trace>(core: &Core<T>, run: &Compaction, block: u32) -> bool {
    let migrate_type = core.alloc.zone(run.zone).free_area.pageblocks().migrate_type(Pfn(block));
    !run.is_async() || !run.request.direct || migrate_type == run.request.want
}

fn may_isolate<T: Trace>(core: &Core<T>, run: &Compaction, pfn: Pfn) -> bool {
    let frames = &core.alloc.frames;
    let (order, flags) = (frames.order(pfn), frames.flags(pfn));
    let moves_large = core.rules().compact_folios == CompactFolios::Large && order < run.request.order;
    is_movable(core, pfn)
        && (order == Order(0) || moves_large)
        && !flags.has(PageFlags::WRITEBACK)
        && (run.request.may_fs || anon_owner(frames.owner(pfn)).is_some())
}
