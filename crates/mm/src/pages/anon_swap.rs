//! Anonymous pages that leave memory and come back: what page tables have in their place (SWAP 2.4, 2.6, 2.7).
//!
//! A page is written out if it is not what its slot holds: there is none yet, or it was written to since. Here one
//! bit of the frame says so, where the kernel has the dirty bits of page table entries and of the page.
//!
//! Neighbours: [`crate::pages::anon`] for page tables, [`crate::pages::swap_cache`].

use std_alloc::vec::Vec;

use units::{CpuId, Pfn};

use crate::alloc::pageblock::HUGE_PAGES;
use crate::base::event::{Detail, Trace};
use crate::base::frame::{ANON_OWNER, FrameState, NIL, NO_OWNER, PageFlags, anon_owner};
use crate::base::ids::AnonId;
use crate::base::vmstat::VmEvent;
use crate::core::Core;
use crate::lru::lists::Lru;
use crate::lru::mglru::access::faulted_in;
use crate::pages::anon::{AnonMaps, Change, SWAPPED, count};
use crate::pages::cache::PageCache;
use crate::pages::swap_cache::begin_anon;
use crate::pages::tree::Slot;
use crate::swap::slot::SwapSlot;
use crate::version::rules::AnonStart;

/// A fault that finds a page swapped out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SwapFault {
    /// The mapping.
    pub anon: AnonId,
    /// The page in it.
    pub index: u32,
    /// Where it is.
    pub slot: SwapSlot,
    /// It is to be written.
    pub write: bool,
    /// It is to be locked (`VM_LOCKED`).
    pub locked: bool,
}

/// Reclaim takes a page in the swap cache out of its page table (`try_to_unmap`): the entry is its slot.
pub(crate) fn unmap_to_slot<T: Trace>(maps: &mut AnonMaps, core: &mut Core<T>, pfn: Pfn) {
    let slot = PageCache::slot_of(core, pfn);
    let frames = &core.alloc.frames;
    let (index, pages) = (frames.index(pfn), frames.pages(pfn));
    let anon = anon_owner(frames.owner(pfn)).expect("a mapped page has an owner");
    for place in 0..pages {
        maps.set(anon, index + place, 1, slot.plus(place).0 | SWAPPED);
        core.swap.map(slot.plus(place));
        if core.alloc.trace.listens(Detail::Page) {
            core.swap.tell_owner(slot.plus(place), anon, index + place);
        }
    }
    maps.list[anon.0 as usize].swapped += u64::from(pages);
    maps.huge -= u64::from(pages == HUGE_PAGES);
    core.alloc.frames.clear_flags(pfn, PageFlags::MAPPED.set(PageFlags::YOUNG));
    disown(core, pfn, maps.is_shared(anon));
}

/// A page is mapped no longer: it is no anonymous memory of a cgroup any more, though on such a list.
fn disown<T: Trace>(core: &mut Core<T>, pfn: Pfn, shared: bool) {
    core.note_aged(pfn);
    core.alloc.frames.set_owner(pfn, NO_OWNER, core.alloc.frames.index(pfn));
    count(core, pfn, shared, Change::Less);
}

/// Reclaim takes a page that its program gave up, and that is what it was then, out of its page table.
pub(crate) fn unmap_given_up<T: Trace>(maps: &mut AnonMaps, core: &mut Core<T>, pfn: Pfn) {
    let frames = &core.alloc.frames;
    let (index, pages) = (frames.index(pfn), frames.pages(pfn));
    let anon = anon_owner(frames.owner(pfn)).expect("a mapped page has an owner");
    maps.set(anon, index, pages, NIL);
    maps.huge -= u64::from(pages == HUGE_PAGES);
    core.alloc.frames.clear_flags(pfn, PageFlags::MAPPED);
    disown(core, pfn, maps.is_shared(anon));
}

/// A page table names a page again instead of its slot.
fn enter<T: Trace>(maps: &mut AnonMaps, core: &mut Core<T>, fault: SwapFault, pfn: Pfn) {
    let SwapFault { anon, index, slot, write, .. } = fault;
    assert!(maps.swapped_at(anon, index) == Some(slot), "a page comes back to where it was");
    maps.set(anon, index, 1, pfn.0);
    maps.list[anon.0 as usize].swapped -= 1;
    core.alloc.frames.set_owner(pfn, anon.0 | ANON_OWNER, index);
    // A call accesses a page of a file in memory otherwise than through a page table.
    let young = if maps.is_shared(anon) { PageFlags::default() } else { PageFlags::YOUNG };
    core.alloc.frames.set_flags(pfn, PageFlags::MAPPED.set(young));
    if write {
        core.alloc.frames.set_flags(pfn, PageFlags::ANON_DIRTY);
    }
    count(core, pfn, maps.is_shared(anon), Change::More);
}

/// Maps a page of the swap cache, single and not locked, where a fault wants it (`do_swap_page`). Its slot is
/// free if few are left, the page is to be locked, or it is to be written.
pub(crate) fn map_cached<T: Trace>(
    maps: &mut AnonMaps,
    core: &mut Core<T>,
    lru: &mut Lru,
    cache: &mut PageCache,
    cpu: CpuId,
    fault: SwapFault,
    pfn: Pfn,
) {
    enter(maps, core, fault, pfn);
    let unused = core.swap.unmap(fault.slot);
    assert!(!unused, "the swap cache has a page of the slot");
    if core.rules().anon_start == AnonStart::Active {
        lru.activate(core, cpu, pfn);
    }
    let memcg = core.page_memcg(pfn);
    let is_shared = maps.is_shared(fault.anon);
    if fault.write || fault.locked || is_shared || core.swap.is_full_for(&core.cgroups, memcg) {
        let _ = cache.free_swap(core, cpu, pfn);
    }
}

/// Maps a new page, charged to the slot's cgroup, with the content of a slot whose page the swap cache never had;
/// the slot is free.
pub(crate) fn map_bypassing<T: Trace>(
    maps: &mut AnonMaps,
    core: &mut Core<T>,
    lru: &mut Lru,
    cache: &mut PageCache,
    cpu: CpuId,
    fault: SwapFault,
    pfn: Pfn,
) {
    let memcg = core.swap.memcg(fault.slot).expect("a slot in use is charged");
    begin_anon(core, pfn, memcg, core.rules().anon_start == AnonStart::Active);
    // Events say whose it is.
    core.alloc.frames.set_owner(pfn, fault.anon.0 | ANON_OWNER, fault.index);
    if let Slot::Shadow(shadow) = cache.find_swap(fault.slot) {
        lru.refault(core, pfn, shadow);
    }
    enter(maps, core, fault, pfn);
    let flags = core.alloc.frames.flags(pfn).set(PageFlags::ANON_DIRTY);
    core.alloc.frames.put_flags(pfn, faulted_in(core, flags));
    lru.add(core, cpu, pfn);
    cache.drop_slot(core, cpu, fault.slot);
}

/// `split_huge_page` of one that reclaim has isolated: its other pages, isolated as it is, are added to `tails`.
pub(crate) fn split_isolated<T: Trace>(
    maps: &mut AnonMaps,
    core: &mut Core<T>,
    head: Pfn,
    tails: &mut Vec<Pfn>,
) {
    let frames = &core.alloc.frames;
    let (owner, index, pages) = (frames.owner(head), frames.index(head), frames.pages(head));
    let (flags, memcg) = (frames.flags(head), frames.memcg(head));
    let anon = anon_owner(owner).expect("a mapped page has an owner");
    core.alloc.frames.set_order(head, units::Order(0));
    for offset in 1..pages {
        let tail = Pfn(head.0 + offset);
        let frames = &mut core.alloc.frames;
        frames.set_order(tail, units::Order(0));
        frames.set_state(tail, FrameState::Isolated);
        frames.put_flags(tail, flags);
        frames.set_memcg(tail, memcg);
        frames.set_owner(tail, owner, index + offset);
        maps.set(anon, index + offset, 1, tail.0);
        tails.push(tail);
    }
    maps.huge -= u64::from(pages == HUGE_PAGES);
    core.alloc.events.add(VmEvent::ThpSplitPage, 1);
}
