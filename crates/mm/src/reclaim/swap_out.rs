//! What becomes of an anonymous page at the tail of an inactive list that nothing speaks for (SWAP 2.4, 2.8, 5).
//!
//! ```text
//!   1 slot, charged, swap cache      none to be had: active
//!   2 out of its page table, which names the slot
//!   3 written, if it is not what its slot holds    under way: kept, comes to the tail when it is written
//!   4 freed, a shadow stays
//! ```
//! zswap may take a page before it is written. A page that its program gave up goes at once if it was not written to
//! since.
//!
//! A page of a file in memory goes the same way, but for reclaimers that may not enter filesystems; one that nobody
//! wrote to is dropped. Left out: that it leaves its page tables even where it is kept.
//!
//! Left out: huge pages of orders below 9, which have no slots in a row here. Neighbours:
//! [`crate::reclaim::page`] decides on all pages, [`crate::pages::swap_cache`], [`crate::pages::anon_swap`].

use std_alloc::vec::Vec;

use units::{CpuId, Pfn};

use crate::base::event::{Reason, Trace, TraceEvent};
use crate::base::frame::{FrameState, NO_OWNER, PageFlags, anon_owner};
use crate::base::ids::MemcgId;
use crate::base::vmstat::{MemcgStat, VmEvent};
use crate::cgroup::charge::Uncharged;
use crate::core::Core;
use crate::lru::lists::Lru;
use crate::pages::anon::AnonMaps;
use crate::pages::anon_swap::{split_isolated, unmap_given_up, unmap_to_slot};
use crate::pages::cache::{PageCache, release_reclaimed_page};
use crate::pages::zswap::Taken;
use crate::reclaim::run::{ChunkReport, ScanControl};
use crate::reclaim::state::Reclaim;
use crate::reclaim::verdict::Verdict;
use crate::swap::slot::SwapSlot;
use crate::swap::store::Stored;
use crate::version::rules::{AnonStart, HugeSwap};

impl Reclaim {
    /// Decides on an anonymous page that was not accessed lately.
    pub(super) fn decide_anon<T: Trace>(
        &mut self,
        core: &mut Core<T>,
        cache: &mut PageCache,
        anon: &mut AnonMaps,
        cpu: CpuId,
        pfn: Pfn,
        sc: &ScanControl,
        report: &mut ChunkReport,
    ) -> Verdict {
        let flags = core.alloc.frames.flags(pfn);
        if !flags.has(PageFlags::SWAP_BACKED) {
            return give_up(core, anon, pfn);
        }
        if !flags.has(PageFlags::SWAP_CACHE) {
            if core.swap.total_pages() == 0 {
                return Verdict::Activate(Reason::Anonymous);
            }
            let of_file = is_of_file(core, anon, pfn);
            if of_file && !flags.has(PageFlags::ANON_DIRTY) {
                unmap_given_up(anon, core, pfn); // Zeroes, as its place has without it.
                return Verdict::Free;
            }
            if !sc.may_io || of_file && !sc.may_fs {
                return Verdict::Keep(Reason::MayNotSwap);
            }
            if !self.add_to_swap(core, cache, anon, cpu, pfn, report) {
                return Verdict::Activate(Reason::NoSlot);
            }
        }
        let pages = core.alloc.frames.pages(pfn);
        if flags.has(PageFlags::MAPPED) {
            self.remap(core, pfn, report);
            unmap_to_slot(anon, core, pfn);
            report.swap.unmapped += pages;
        }
        if core.alloc.frames.flags(pfn).has(PageFlags::ANON_DIRTY) {
            return self.write_to_swap(core, cache, cpu, pfn, sc, report);
        }
        Verdict::Free
    }

    /// `add_to_swap`: a slot and a place in the swap cache. A huge page for which there is no cluster is split, and
    /// its other pages are decided on by themselves.
    fn add_to_swap<T: Trace>(
        &mut self,
        core: &mut Core<T>,
        cache: &mut PageCache,
        anon: &mut AnonMaps,
        cpu: CpuId,
        pfn: Pfn,
        report: &mut ChunkReport,
    ) -> bool {
        let (memcg, pages) = (core.page_memcg(pfn), core.alloc.frames.pages(pfn));
        // What it holds is noted with the slot that it gets.
        let holds = anon_owner(core.alloc.frames.owner(pfn)).map(|owner| anon.compressed(owner));
        let whole = pages == 1 || core.rules().huge_swap == HugeSwap::Whole;
        let mut found = if whole { cache.take_slot(core, cpu, memcg, pages) } else { None };
        if found.is_none() && pages > 1 {
            if whole {
                core.alloc.events.add(VmEvent::ThpSwpOutFallback, 1);
            }
            split_isolated(anon, core, pfn, &mut self.split);
            found = cache.take_slot(core, cpu, memcg, 1);
        }
        let Some(found) = found else { return false };
        report.swap.slots += 1;
        report.swap.fetched += found.fetched;
        report.swap.cached += 1;
        for place in 0..core.alloc.frames.pages(pfn) {
            core.swap.note_content(found.slot.plus(place), holds.unwrap_or_default());
        }
        if cache.insert_swap(core, cpu, found.slot, pfn).is_none() {
            cache.put_unused(core, cpu, found.slot, core.alloc.frames.pages(pfn));
            return false;
        }
        core.alloc.frames.set_flags(pfn, PageFlags::ANON_DIRTY);
        true
    }

    /// `pageout` of a page in the swap cache that nobody maps.
    fn write_to_swap<T: Trace>(
        &mut self,
        core: &mut Core<T>,
        cache: &mut PageCache,
        cpu: CpuId,
        pfn: Pfn,
        sc: &ScanControl,
        report: &mut ChunkReport,
    ) -> Verdict {
        if !sc.may_io || !sc.may_writepage {
            return Verdict::Keep(Reason::MayNotSwap);
        }
        let (slot, pages) = (PageCache::slot_of(core, pfn), core.alloc.frames.pages(pfn));
        let taken = if pages == 1 { self.offer_to_zswap(core, cpu, slot, pfn) } else { Taken::Refused };
        match taken {
            Taken::Full => return Verdict::Keep(Reason::MayNotSwap), // It is asked again.
            Taken::Refused if !core.cgroups.may_write_to_swap(core.page_memcg(pfn)) => {
                return Verdict::Activate(Reason::MayNotSwap);
            }
            Taken::Refused | Taken::Stored => {}
        }
        report.pageout += pages;
        core.alloc.events.add(VmEvent::NrVmscanWrite, u64::from(pages));
        core.alloc.frames.clear_flags(pfn, PageFlags::ANON_DIRTY);
        if taken == Taken::Stored {
            report.swap.tested += 1;
            report.swap.compressed += 1;
            return Verdict::Free;
        }
        let (mut zeroes, mut compressed, mut written) = (0, 0, 0);
        for place in 0..pages {
            match core.swap.store(&mut core.alloc, cpu, slot.plus(place)) {
                Stored::Zero => zeroes += 1,
                Stored::Compressed(bytes) => {
                    compressed += 1;
                    report.swap.compressed += u32::from(bytes > 0);
                }
                Stored::ToBeWritten => written += 1,
                Stored::Failed => {
                    core.alloc.frames.set_flags(pfn, PageFlags::ANON_DIRTY);
                    return Verdict::Activate(Reason::WriteFailed);
                }
            }
        }
        report.swap.tested += zeroes + compressed;
        core.alloc.events.add(VmEvent::SwpOutZero, u64::from(zeroes));
        core.alloc.events.add(VmEvent::PswpOut, u64::from(compressed + written));
        core.count_zram(VmEvent::PgPgOut, u64::from(compressed));
        if pages > 1 {
            core.alloc.events.add(VmEvent::ThpSwpOut, 1);
        }
        if written > 0 {
            cache.start_swap_write(core, pfn);
            self.swap_writes.push(pfn);
            return Verdict::Keep(Reason::SwapWrite);
        }
        if compressed > 0 {
            // It was under writeback for that moment.
            core.cgroups.note_update(2 * u64::from(pages));
            core.alloc.events.add(VmEvent::NrWritten, u64::from(pages));
        }
        Verdict::Free
    }

    /// Lets zswap have a page. Where a cgroup has its share of the pool already it is to be asked a second time, after
    /// [`Self::make_room_in_zswap`].
    fn offer_to_zswap<T: Trace>(
        &mut self,
        core: &mut Core<T>,
        cpu: CpuId,
        slot: SwapSlot,
        pfn: Pfn,
    ) -> Taken {
        let memcg = core.page_memcg(pfn);
        let taken = core.zswap_store(cpu, slot, memcg);
        if taken == Taken::Full && self.zswap_tried {
            return Taken::Refused;
        }
        self.zswap_full = (taken == Taken::Full).then_some(memcg);
        taken
    }

    /// After a verdict: whether the page is to be judged once more, as its cgroup had its share of zswap. An entry of
    /// the cgroup may have been written back for it.
    pub(super) fn make_room_in_zswap<T: Trace>(
        &mut self,
        core: &mut Core<T>,
        lru: &mut Lru,
        cache: &mut PageCache,
        cpu: CpuId,
    ) -> bool {
        self.zswap_tried = false;
        let Some(memcg) = self.zswap_full.take() else { return false };
        self.zswap_tried = true;
        self.put_kept_back(core, lru);
        self.swap_writes.extend(cache.shrink_zswap(core, lru, cpu, memcg));
        true
    }

    /// The write of a page of the swap cache is to be sent off.
    pub(crate) fn add_swap_write(&mut self, pfn: Pfn) {
        self.swap_writes.push(pfn);
    }

    /// Whether a write of a page of the swap cache is to be sent off.
    pub fn has_swap_writes(&self) -> bool {
        !self.swap_writes.is_empty()
    }

    /// Pages of the swap cache whose write is to be sent off; the list is handed over.
    pub fn take_swap_writes(&mut self) -> Vec<Pfn> {
        core::mem::take(&mut self.swap_writes)
    }
}

/// Whether a page is that of a file in memory: its filesystem writes it (`shmem_writepage`), so that those who may not
/// enter filesystems cannot have it written.
fn is_of_file<T: Trace>(core: &Core<T>, anon: &AnonMaps, pfn: Pfn) -> bool {
    anon_owner(core.alloc.frames.owner(pfn)).is_some_and(|owner| anon.is_shared(owner))
}

/// A page that its program gave up (`MADV_FREE`): it goes, unless it was written to since.
fn give_up<T: Trace>(core: &mut Core<T>, anon: &mut AnonMaps, pfn: Pfn) -> Verdict {
    if core.alloc.frames.flags(pfn).has(PageFlags::ANON_DIRTY) {
        core.alloc.frames.set_flags(pfn, PageFlags::SWAP_BACKED);
        return Verdict::Activate(Reason::WrittenAgain);
    }
    unmap_given_up(anon, core, pfn);
    let (_, node) = core.page_place(pfn);
    let pages = u64::from(core.alloc.frames.pages(pfn));
    core.alloc.events.add(VmEvent::PgLazyFreed, pages);
    core.cgroups.add_stat(core.page_memcg(pfn), node, MemcgStat::PgLazyFreed, pages);
    Verdict::Free
}

/// Frees an isolated anonymous page that nobody maps. One that was swapped out leaves a shadow in its slot, where the
/// kernel remembers such (5.9).
pub(super) fn evict_anon<T: Trace>(
    core: &mut Core<T>,
    lru: &mut Lru,
    cache: &mut PageCache,
    cpu: CpuId,
    pfn: Pfn,
    target: MemcgId,
    uncharged: &mut Uncharged,
) {
    assert!(core.alloc.frames.owner(pfn) == NO_OWNER, "{pfn:?} is freed and mapped");
    if core.alloc.frames.flags(pfn).has(PageFlags::SWAP_CACHE) {
        let remembers = core.rules().anon_start == AnonStart::Inactive;
        let shadow = remembers.then(|| lru.evict_shadow(core, pfn, target));
        cache.remove_swap(core, cpu, pfn, shadow);
    }
    core.alloc.frames.set_state(pfn, FrameState::InUse);
    release_reclaimed_page(core, cpu, pfn, uncharged);
}

/// A page of the swap cache stays in memory: it gives its slot back where few are left.
pub(super) fn settle_active<T: Trace>(core: &mut Core<T>, cache: &mut PageCache, cpu: CpuId, pfn: Pfn) {
    if core.alloc.frames.flags(pfn).has(PageFlags::SWAP_CACHE)
        && core.swap.is_full_for(&core.cgroups, core.page_memcg(pfn))
    {
        let _ = cache.free_swap(core, cpu, pfn);
    }
}

/// Told of a page that is freed.
pub(super) fn tell_swapped_out<T: Trace>(core: &mut Core<T>, pfn: Pfn, sc: &ScanControl) {
    let is_swapped = core.alloc.frames.flags(pfn).has(PageFlags::SWAP_CACHE);
    let reason = if is_swapped { Reason::SwappedOut } else { Reason::GivenUp };
    let scan = sc.scan_for();
    core.tell_page(pfn, |page| TraceEvent::PageReclaimed { page, reason, scan });
}
