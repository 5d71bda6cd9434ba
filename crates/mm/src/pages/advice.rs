//! What programs say of their memory: `MADV_FREE`, `MADV_COLD`, `MADV_PAGEOUT` (SWAP 2.8).
//!
//! ```text
//!   free:    clean and old --[batch of 15 or 31]--> inactive file list; gone at once when reclaim meets it
//!   cold:    old; an active page: to the inactive head
//!   pageout: the same, and reclaim decides on it at once
//! ```
//! A huge page that lies partly in the range is split. Pages of a mapped file are cooled and paged out only while
//! nobody else maps them. Left out: the batch of pages that are deactivated, large folios of files that lie partly in
//! the range. Neighbours: [`crate::pages::anon`], [`crate::reclaim::page`].

use std_alloc::vec::Vec;

use units::{CpuId, Pfn};

use crate::base::event::Trace;
use crate::base::frame::{FrameState, PageFlags};
use crate::base::ids::AnonId;
use crate::base::vmstat::{MemcgStat, VmEvent};
use crate::core::Core;
use crate::lru::lists::Lru;
use crate::pages::anon::AnonMaps;
use crate::pages::cache::PageCache;

/// The pages among `count` from `first` that are on lists or in batches, in their order.
pub(crate) fn whole_pages<T: Trace>(
    maps: &mut AnonMaps,
    core: &mut Core<T>,
    lru: &mut Lru,
    anon: AnonId,
    first: u32,
    count: u32,
) -> Vec<Pfn> {
    let end = first.saturating_add(count).min(maps.table_len(anon));
    let (mut index, mut pages) = (first, Vec::new());
    while let Some((pfn, start, count)) = maps.next_whole(core, lru, anon, first..end, index) {
        pages.push(pfn);
        index = start + count;
    }
    pages
}

/// `MADV_FREE`: pages are given up until they are written to again. Those that are swapped out are gone.
pub(crate) fn give_up<T: Trace>(
    maps: &mut AnonMaps,
    core: &mut Core<T>,
    lru: &mut Lru,
    cache: &mut PageCache,
    cpu: CpuId,
    anon: AnonId,
    first: u32,
    count: u32,
) {
    maps.drop_swapped(core, lru, cache, cpu, anon, first..first.saturating_add(count));
    for pfn in whole_pages(maps, core, lru, anon, first, count) {
        let is_cached = core.alloc.frames.flags(pfn).has(PageFlags::SWAP_CACHE);
        if is_cached && !cache.free_swap(core, cpu, pfn) {
            continue; // It is being read or written.
        }
        core.alloc.frames.clear_flags(pfn, PageFlags::YOUNG.set(PageFlags::ANON_DIRTY));
        lru.give_up(core, cpu, pfn);
    }
}

/// `MADV_COLD`: pages count as not accessed.
pub(crate) fn cool<T: Trace>(core: &mut Core<T>, lru: &mut Lru, pages: Vec<Pfn>) {
    pages.into_iter().for_each(|pfn| cool_page(lru, core, pfn));
}

/// `MADV_PAGEOUT`: pages count as not accessed; those that lie on a list and may leave it, reclaim is to decide on at
/// once.
pub(crate) fn take_for_pageout<T: Trace>(core: &mut Core<T>, pages: Vec<Pfn>) -> Vec<Pfn> {
    for &pfn in &pages {
        core.alloc.frames.clear_flags(pfn, PageFlags::YOUNG.set(PageFlags::REFERENCED));
    }
    let can_go = |&pfn: &Pfn| {
        let (state, flags) = (core.alloc.frames.state(pfn), core.alloc.frames.flags(pfn));
        state == FrameState::Lru && !flags.has_any(PageFlags::UNEVICTABLE.set(PageFlags::ACTIVATING))
    };
    pages.into_iter().filter(can_go).collect()
}

/// `MADV_COLD` of one page (`folio_deactivate`).
fn cool_page<T: Trace>(lru: &mut Lru, core: &mut Core<T>, pfn: Pfn) {
    core.alloc.frames.clear_flags(pfn, PageFlags::YOUNG.set(PageFlags::REFERENCED));
    let flags = core.alloc.frames.flags(pfn);
    let is_listed = core.alloc.frames.state(pfn) == FrameState::Lru;
    if !is_listed || !flags.has(PageFlags::ACTIVE) || flags.has(PageFlags::UNEVICTABLE) {
        return;
    }
    lru.remove(core, pfn);
    core.alloc.frames.clear_flags(pfn, PageFlags::ACTIVE);
    lru.insert(core, pfn);
    let (_, node) = core.page_place(pfn);
    let pages = u64::from(core.alloc.frames.pages(pfn));
    core.alloc.events.add(VmEvent::PgDeactivate, pages);
    core.cgroups.add_stat(core.page_memcg(pfn), node, MemcgStat::PgDeactivate, pages);
}
