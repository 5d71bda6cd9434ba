//! The fast searches of compaction through the lists of free blocks (5.1, "mm, compaction: use free lists to quickly
//! locate a migration source", "... a migration target").
//!
//! ```text
//!   zone start |  migrate scanner ->|      eighth   ...       half |  last quarter    |<- free scanner
//!                                    <---- source ---->             <- else -><-target->
//! ```
//! A pageblock with large free blocks has few pages that must move: it makes a good source. A free block near the free
//! scanner makes a good target, and saves the scan to it. Both searches end after some entries, fewer with each
//! failure, and turn the list so that the next one meets others first.
//!
//! Left out: where the first block with something to move or to take lies after skip bits were cleared
//! (`compact_init_migrate_pfn`). Measured by `mm_compaction_*` of guests of 5.10 to 7.2: which pageblocks are gone to
//! and passed over, how many frames are looked at, what is finished, where the next run begins. Known and not
//! measured: how many entries a search looks at, the parts of the zone, that lists are turned.
//! Neighbours: [`crate::compact::scanners`], which goes on where a search fails; [`crate::compact::run`].

use units::{Order, Pfn};

use crate::alloc::pcp::COSTLY_ORDER;
use crate::base::event::Trace;
use crate::base::frame::FrameList;
use crate::base::gfp::MigrateType;
use crate::base::vmstat::VmEvent;
use crate::compact::state::{CompactStep, Compaction, Compactor};
use crate::compact::targets::{is_target_type, isolate_free_block, isolate_free_in};
use crate::core::Core;
use crate::version::rules::CompactSearch;

/// What a search saw on the list of one order.
struct Seen {
    /// Entries.
    entries: u32,
    /// The entry that the list is turned to.
    last: Option<Pfn>,
    /// The block to take.
    taken: Option<Pfn>,
}

impl Compactor {
    /// Goes on to a pageblock with a large free block, if one lies before the migrate scanner's next stretch; returns
    /// whether it did (`fast_find_migrateblock`).
    pub(super) fn search_source<T: Trace>(
        &mut self,
        core: &mut Core<T>,
        run: &mut Compaction,
        step: &mut CompactStep,
    ) -> bool {
        let state = &mut self.zones[run.zone.index()];
        let (at, request) = (run.migrate_at, run.request);
        let begins = at == state.start;
        if core.rules().compact_search == CompactSearch::None
            || request.is_of_whole_zone()
            || !(begins || at.is_multiple_of(run.block.pages()))
            || request.order <= COSTLY_ORDER
            || (request.direct && request.want != MigrateType::Movable)
            || (run.finishes && core.rules().compact_search == CompactSearch::Counted)
        {
            return false;
        }
        let distance = run.free_at.saturating_sub(at) >> if begins { 1 } else { 3 };
        let below = run.block.start(Pfn(at + distance)).0;
        let limit = run.searches.limit();
        let mut seen = 0;
        let mut found = None;
        let area = &core.alloc.zone(run.zone).free_area;
        for order in (COSTLY_ORDER.0..request.order.0).rev().map(Order) {
            if found.is_some() || seen >= limit {
                break;
            }
            for pfn in area.list(MigrateType::Movable, order).iter(&core.alloc.frames) {
                seen += 1;
                let is_found = pfn.0 < below && !state.skips(run.block.start(pfn).0);
                if seen > limit || is_found {
                    found = Some((pfn, is_found));
                    break;
                }
            }
        }
        step.migrate_scanned += u64::from(seen);
        if let Some((pfn, _)) = found {
            core.alloc.turn_free_list(run.zone, pfn, false);
        }
        match found.filter(|&(_, is_found)| is_found) {
            Some((pfn, _)) => {
                run.searches.source_found(pfn.0);
                run.migrate_at = run.block.start(pfn).0.max(state.start);
                if core.rules().compact_search != CompactSearch::Counted {
                    state.set_skip(run.block.start(pfn).0);
                }
                run.migrate_at != at
            }
            None => {
                run.migrate_at = run.searches.source_failed().unwrap_or(at);
                false
            }
        }
    }

    /// Takes a free block near the free scanner as a target, and with it what else is free in its pageblock, for
    /// `wanted` pages (`fast_isolate_freepages`).
    pub(super) fn search_targets<T: Trace>(
        &mut self,
        core: &mut Core<T>,
        run: &mut Compaction,
        wanted: u64,
        step: &mut CompactStep,
    ) {
        let is_for_blocks = run.request.has_order() && run.request.order > Order(0);
        if !is_for_blocks || core.rules().compact_search == CompactSearch::None {
            return;
        }
        let state = &self.zones[run.zone.index()];
        let starts = run.free_at >= state.free_first;
        let mut limit = if starts { run.block.pages() >> 1 } else { run.searches.limit() };
        let distance = run.free_at.saturating_sub(run.migrate_at);
        let preferred = run.block.start(Pfn(run.free_at - (distance >> 2))).0;
        let least = run.block.start(Pfn(run.free_at - (distance >> 1))).0;
        let mut highest = None;
        let mut found = None;
        for order in run.searches.orders(run.request.order) {
            let seen = look(core, run, order, (preferred, least), &mut limit, &mut highest);
            step.free_scanned += u64::from(seen.entries);
            if let Some(pfn) = seen.taken.or(seen.last) {
                core.alloc.turn_free_list(run.zone, pfn, true);
            }
            if let Some(pfn) = seen.taken {
                if !isolate_free_block(core, run, pfn) {
                    break;
                }
                let pages = u64::from(order.pages());
                step.free_scanned += pages - 1;
                core.alloc.events.add(VmEvent::CompactIsolated, pages);
                found = Some(pfn);
                if pfn.0 >= preferred {
                    run.searches.target_found(order);
                }
                break;
            }
            if seen.entries >= limit {
                limit = (limit >> 1).max(1);
            }
        }
        if found.is_none() {
            run.searches.target_failed(run.request.order);
            found = if starts { go_without_target(core, run, highest, least) } else { None };
        }
        let state = &mut self.zones[run.zone.index()];
        if let Some(highest) = highest.filter(|&highest| highest > 0 && highest >= state.free_cached) {
            state.free_cached = highest.saturating_sub(run.block.pages());
        }
        if let Some(pfn) = found {
            self.take_around(core, run, pfn, wanted, step);
        }
    }

    /// What else is free in the pageblock of `pfn` (`fast_isolate_around`).
    fn take_around<T: Trace>(
        &mut self,
        core: &mut Core<T>,
        run: &mut Compaction,
        pfn: Pfn,
        wanted: u64,
        step: &mut CompactStep,
    ) {
        if run.targets_pages >= wanted || (run.request.direct && run.is_async()) {
            return;
        }
        let block = run.block.start(pfn).0;
        let mut at = block;
        let isolated = isolate_free_in(core, run, block, &mut at, (wanted, 1), step);
        core.alloc.events.add(VmEvent::CompactIsolated, isolated);
        if at >= block + run.block.pages() {
            self.zones[run.zone.index()].set_skip(block);
        }
    }
}

/// No list had a target for a run that starts: it goes to the pageblock of the highest free block, and a task that
/// waits to the middle.
fn go_without_target<T: Trace>(
    core: &Core<T>,
    run: &mut Compaction,
    highest: Option<u32>,
    least: u32,
) -> Option<Pfn> {
    let any = core.rules().compact_search == CompactSearch::Any;
    match highest.filter(|&highest| any || highest >= least) {
        Some(highest) => {
            run.free_at = highest;
            Some(Pfn(highest))
        }
        None if run.request.direct => {
            run.free_at = least;
            is_target_type(core, run, least).then_some(Pfn(least))
        }
        None => None,
    }
}

/// Looks through the list of one order, from its tail: for a block in the `preferred` part of the zone, else the
/// highest above the `least`.
fn look<T: Trace>(
    core: &Core<T>,
    run: &Compaction,
    order: Order,
    (preferred, least): (u32, u32),
    limit: &mut u32,
    highest: &mut Option<u32>,
) -> Seen {
    let list = core.alloc.zone(run.zone).free_area.list(MigrateType::Movable, order);
    let (mut seen, mut high) = (Seen { entries: 0, last: None, taken: None }, None);
    let mut next = list.last();
    while let Some(pfn) = next {
        next = FrameList::prev(&core.alloc.frames, pfn);
        seen.entries += 1;
        *highest = (*highest).max(Some(run.block.start(pfn).0));
        if pfn.0 >= preferred {
            seen.taken = Some(pfn);
            return seen;
        }
        if pfn.0 >= least && high.is_none_or(|high| pfn > high) {
            high = Some(pfn);
            *limit >>= 1;
        }
        if seen.entries >= *limit {
            seen.last = Some(pfn);
            break;
        }
    }
    seen.taken = high;
    seen
}
