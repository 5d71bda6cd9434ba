//! The two scanners of compaction (MECHANISMS 12.1): where pages come from and where they go.
//!
//! Both look at frames by heads. A position may have come to lie within a block that was merged
//! or allocated since; a scan therefore walks each pageblock from its start.
//! Neighbours: [`crate::compact::run`] for the run, [`crate::compact::migrate`] for the move itself.

use units::{CpuId, Order, Pfn};

use crate::alloc::buddy::LARGEST_ORDER;
use crate::alloc::pageblock::{BlockSize, head_step};
use crate::alloc::pcp::COSTLY_ORDER;
use crate::base::event::Trace;
use crate::base::frame::{FrameState, Frames, NO_OWNER, PageFlags, anon_owner};
use crate::base::gfp::MigrateType;
use crate::base::vmstat::VmEvent;
use crate::compact::migrate::{is_busy, is_movable, migrate};
use crate::compact::state::{CompactPriority, CompactStep, Compaction, Compactor};
use crate::core::Core;
use crate::lru::lists::Lru;
use crate::pages::anon::AnonMaps;
use crate::pages::cache::PageCache;
use crate::version::rules::CompactFolios;

/// Pages that are isolated at a time (`COMPACT_CLUSTER_MAX`).
const COMPACT_CLUSTER_MAX: u32 = 32;

/// The first head or reserved frame of a pageblock; none when a block of order 10 that starts
/// before it covers it all.
fn first_head(frames: &Frames, block: u32) -> Option<u32> {
    let chunk = Pfn(block & !(LARGEST_ORDER.pages() - 1));
    let covered = chunk.0 != block && head_step(frames, chunk) == LARGEST_ORDER.pages();
    (!covered).then_some(block)
}

/// The first head of `block`, which has `size`, at or behind `at`; the block's end when there is none.
fn head_from(frames: &Frames, block: u32, size: BlockSize, at: u32) -> u32 {
    let end = block + size.pages();
    let Some(mut head) = first_head(frames, block) else { return end };
    while head < at && head < end {
        head += head_step(frames, Pfn(head));
    }
    head.min(end)
}

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
        let Some(block) = self.next_source(core, run) else { return };
        let from = run.migrate_at;
        let isolated = self.isolate_source(core, lru, run, block, step);
        if isolated > 0 && run.last_migrated.is_none() {
            run.last_migrated = Some(from);
        }
        core.alloc.events.add(VmEvent::CompactIsolated, u64::from(isolated));
        let end = block + run.block.pages();
        if isolated == 0 && run.migrate_at >= end {
            self.note_source_done(run, block, end);
        }
        self.migrate_isolated(core, lru, cache, anon, cpu, run, isolated, step);
        let large = core.rules().compact_folios == CompactFolios::Large;
        if step.failed > 0 && run.request.direct && run.is_async() && !large {
            // The rest of the piece cannot become a block; the 6.12 kernel finishes the block.
            run.migrate_at = chunk_end(run.migrate_at - 1, run.request.order);
            run.last_migrated = None;
        }
    }

    // ---- where pages come from ----

    /// The next pageblock that is worth scanning; none when the scanners meet.
    fn next_source<T: Trace>(&self, core: &Core<T>, run: &mut Compaction) -> Option<u32> {
        loop {
            let block = run.block.start(Pfn(run.migrate_at)).0;
            if block + run.block.pages() > run.free_at {
                return None;
            }
            let ignore_skip = run.request.priority == CompactPriority::SyncFull;
            let skip = run.migrate_at == block && !ignore_skip && self.zones[run.zone.index()].skips(block);
            if !skip && is_source(core, run, block) {
                return Some(block);
            }
            run.migrate_at = block + run.block.pages();
        }
    }

    fn note_source_done(&mut self, run: &Compaction, block: u32, end: u32) {
        let state = &mut self.zones[run.zone.index()];
        state.set_skip(block);
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
        let gives_up_pieces = run.is_async() && run.request.direct;
        let mut at = head_from(&core.alloc.frames, block, run.block, run.migrate_at);
        let mut piece_end = chunk_end(run.migrate_at, run.request.order);
        let mut taken = 0;
        while at < end && taken < COMPACT_CLUSTER_MAX {
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
            step.migrate_scanned += if is_kept { u64::from(pages) } else { 1 };
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
                run.give_back(target, order);
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
        let low = run.block.start(Pfn(run.migrate_at + run.block.pages() - 1)).0;
        let mut block = run.block.start(Pfn(run.free_at)).0;
        let mut isolated = 0;
        while block >= low && run.targets_pages < wanted {
            let end = block + run.block.pages();
            let mut at = run.free_at.max(block);
            if self.is_target(core, run, block) {
                isolated += isolate_free_in(core, run, block, &mut at, wanted, step);
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
        if self.zones[run.zone.index()].skips(block) {
            return false;
        }
        let frames = &core.alloc.frames;
        let Some(head) = first_head(frames, block) else { return false };
        let large = core.rules().compact_folios == CompactFolios::Large;
        let keep = if large { run.request.order } else { run.block.order() };
        let pfn = Pfn(head);
        let is_large_free = frames.state(pfn) == FrameState::Free && frames.order(pfn) >= keep;
        let migrate_type = core.alloc.zone(run.zone).free_area.pageblocks().migrate_type(pfn);
        !is_large_free && migrate_type == MigrateType::Movable
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

/// Takes the smallest target that holds `order`; the upper halves stay targets.
fn split_target<T: Trace>(core: &mut Core<T>, run: &mut Compaction, order: Order) -> Option<Pfn> {
    let from = (order.index()..run.targets.len()).find(|&at| !run.targets[at].is_empty())?;
    let pfn = run.targets[from].pop().expect("it is not empty");
    for at in (order.index()..from).rev().map(|at| Order(u8::try_from(at).expect("at most 10"))) {
        let upper = Pfn(pfn.0 + at.pages());
        core.alloc.frames.set_state(upper, FrameState::InUse);
        core.alloc.frames.set_order(upper, at);
        core.alloc.frames.set_owner(upper, NO_OWNER, 0);
        run.targets[at.index()].push(upper);
    }
    core.alloc.frames.set_order(pfn, order);
    run.targets_pages -= u64::from(order.pages());
    Some(pfn)
}

/// `isolate_freepages_block`: takes free blocks from `at` upwards. `at` ends behind the last
/// frame that was looked at.
fn isolate_free_in<T: Trace>(
    core: &mut Core<T>,
    run: &mut Compaction,
    block: u32,
    at: &mut u32,
    wanted: u64,
    step: &mut CompactStep,
) -> u64 {
    let end = block + run.block.pages();
    let mut isolated = 0;
    *at = head_from(&core.alloc.frames, block, run.block, *at);
    while *at < end && run.targets_pages < wanted {
        let pfn = Pfn(*at);
        let pages = head_step(&core.alloc.frames, pfn);
        if core.alloc.frames.state(pfn) == FrameState::Free {
            if !isolate_free_block(core, run, pfn) {
                break;
            }
            isolated += u64::from(pages);
            step.free_scanned += u64::from(pages);
        } else {
            step.free_scanned += 1;
        }
        *at += pages;
    }
    *at = (*at).min(end);
    isolated
}

/// Takes one free block as a target; false when the zone would fall below its min mark.
fn isolate_free_block<T: Trace>(core: &mut Core<T>, run: &mut Compaction, pfn: Pfn) -> bool {
    let order = core.alloc.frames.order(pfn);
    if !core.alloc.isolate_free_block(run.zone, pfn) {
        return false;
    }
    run.targets[order.index()].push(pfn);
    run.targets_pages += u64::from(order.pages());
    true
}

impl Compaction {
    /// A target that was not needed after all.
    fn give_back(&mut self, pfn: Pfn, order: Order) {
        self.targets[order.index()].push(pfn);
        self.targets_pages += u64::from(order.pages());
    }
}
