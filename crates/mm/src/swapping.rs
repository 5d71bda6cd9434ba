//! Anonymous memory and swap as a driver sees them: mappings, areas, faults on pages that are swapped out, writes
//! that are to be sent off, and what programs say of their memory.
//!
//! Neighbours: [`crate::pages::anon_swap`], [`crate::pages::swap_cache`], [`crate::reclaim::swap_out`].

use std_alloc::vec::Vec;

use units::{CpuId, Pfn};

use crate::base::event::{Reason, Trace};
use crate::base::frame::PageFlags;
use crate::base::ids::{AnonId, FileAreaId, MappingId, MemcgId};
use crate::base::layout::{OldReads, PageTables};
use crate::base::sysctl::Sysctl;
use crate::base::vmstat::VmEvent;
use crate::core::Core;
use crate::memory::Memory;
use crate::pages::advice;
use crate::pages::anon::HugeRange;
use crate::pages::anon_swap::{self, SwapFault};
use crate::reclaim::run::ChunkReport;
use crate::swap::areas::{AreaKind, AreaSpec};
use crate::swap::slot::SwapSlot;
use crate::version::rules::{self, SwapReadahead, SyncSwap};

/// An access to a page that is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Accessed {
    /// It is a part of a huge page.
    pub is_huge: bool,
    /// It takes a fault to be let in ([`PageTables::UserMode`]).
    pub is_fault: bool,
}

/// What a fault on a swapped-out page finds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub enum SwapLook {
    /// It has changed meanwhile.
    Gone,
    /// Its page is in the swap cache and can be mapped.
    Cached(Pfn),
    /// Its page is being read: it is to be waited for, at this place of a tree.
    Locked(MappingId, u32),
    /// It lies in a huge page that is being written: that is to be waited for.
    Written(MappingId),
    /// It is anonymous and to be read past the swap cache: its area answers at once.
    Bypass,
    /// It is to be read into the swap cache, with others.
    Read,
}

/// A write that is to be sent off: a page, or a huge one, and where its content goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SwapWrite {
    /// The page.
    pub pfn: Pfn,
    /// Its pages.
    pub pages: u32,
    /// The block device.
    pub device: u16,
    /// The first slot's place on it, in pages.
    pub offset: u32,
    /// The tree of the swap cache.
    pub mapping: MappingId,
    /// The first slot's place in there.
    pub index: u32,
}

impl<T: Trace> Memory<T> {
    /// A new mapping without pages.
    pub fn anon_create(&mut self) -> AnonId {
        let anon = self.anon.create();
        self.core.tell_anon(anon);
        anon
    }

    /// A new file in memory without pages.
    pub fn shared_create(&mut self) -> AnonId {
        self.anon.create_shared()
    }

    /// Frees all pages of a mapping and the mapping itself; returns the pages freed.
    pub fn anon_remove(&mut self, cpu: CpuId, anon: AnonId) -> u64 {
        self.anon.remove(&mut self.core, &mut self.lru, &mut self.cache, cpu, anon)
    }

    /// Puts a charged page or huge page into a mapping: [`crate::pages::anon::AnonMaps::map`].
    pub fn anon_map(&mut self, cpu: CpuId, anon: AnonId, index: u32, pfn: Pfn, memcg: MemcgId) {
        self.anon.map(&mut self.core, &mut self.lru, cpu, anon, index, pfn, memcg);
    }

    /// Frees the pages among `count` from `first`: [`crate::pages::anon::AnonMaps::unmap`].
    pub fn anon_unmap(&mut self, cpu: CpuId, anon: AnonId, first: u32, count: u32) -> u64 {
        self.anon.unmap(&mut self.core, &mut self.lru, &mut self.cache, cpu, anon, first, count)
    }

    /// `mlock` of the pages among `count` from `first`: [`crate::pages::anon::AnonMaps::lock`].
    pub fn anon_lock(&mut self, cpu: CpuId, anon: AnonId, first: u32, count: u32) {
        self.anon.lock(&mut self.core, &mut self.lru, cpu, anon, first, count);
    }

    /// `munlock` of the pages among `count` from `first`: [`crate::pages::anon::AnonMaps::unlock`].
    pub fn anon_unlock(&mut self, anon: AnonId, first: u32, count: u32) {
        self.anon.unlock(&mut self.core, &mut self.lru, anon, first, count);
    }

    /// The OOM reaper takes a mapping's pages, locked ones only since 5.18 ([`rules::OomReaper`]); returns how many.
    pub fn anon_reap(&mut self, cpu: CpuId, anon: AnonId) -> u64 {
        match self.core.rules().oom_reaper {
            rules::OomReaper::TakesLocked => self.anon_unmap(cpu, anon, 0, u32::MAX),
            rules::OomReaper::SparesLocked => {
                self.anon.unmap_unlocked(&mut self.core, &mut self.lru, &mut self.cache, cpu, anon)
            }
        }
    }

    /// A call reads a page of a file in memory, or writes to it (`shmem_file_read_iter`, `shmem_write_begin`).
    pub fn access_shared(&mut self, cpu: CpuId, anon: AnonId, index: u32, write: bool) {
        let Some(pfn) = self.anon.find(anon, index) else { return };
        if write {
            self.core.alloc.frames.set_flags(pfn, PageFlags::ANON_DIRTY);
        }
        self.mark_accessed(cpu, pfn);
    }

    /// What is in the 2 MiB from page `first`, a multiple of 512.
    pub fn anon_range(&self, anon: AnonId, first: u32) -> HugeRange {
        self.anon.range(&self.core, anon, first)
    }

    /// Lets a huge page take the place of single pages: [`crate::pages::anon::AnonMaps::collapse`].
    pub fn anon_collapse(&mut self, cpu: CpuId, anon: AnonId, first: u32, huge: Pfn, memcg: MemcgId) -> u32 {
        self.anon.collapse(&mut self.core, &mut self.lru, &mut self.cache, cpu, anon, first, huge, memcg)
    }

    /// A program accesses a page of its memory; none if it is not there.
    #[inline]
    pub fn access_anon(&mut self, anon: AnonId, index: u32, write: bool) -> Option<Accessed> {
        self.anon.note_access(anon);
        let head = self.anon.find(anon, index)?;
        let frames = &mut self.core.alloc.frames;
        let accessed = if write { PageFlags::YOUNG.set(PageFlags::ANON_DIRTY) } else { PageFlags::YOUNG };
        let (is_seen, is_fault) = match self.core.page_tables {
            PageTables::Hardware => (true, false),
            PageTables::UserMode { reads, .. } => {
                let is_seen = write || reads == OldReads::Fault;
                (is_seen, is_seen && !frames.flags(head).has(accessed))
            }
        };
        if is_seen {
            frames.set_flags(head, accessed);
        }
        Some(Accessed { is_huge: frames.pages(head) > 1, is_fault })
    }

    /// `swapon`: [`crate::swap::areas::SwapAreas::add_area`].
    pub fn add_swap_area(&mut self, spec: AreaSpec) {
        self.core.swap.add_area(spec);
    }

    /// What a fault finds where a page was swapped out.
    pub fn look_swapped(&self, fault: SwapFault) -> SwapLook {
        if self.anon.swapped_at(fault.anon, fault.index) != Some(fault.slot) {
            return SwapLook::Gone;
        }
        if let Some(pfn) = self.cache.swap_page(fault.slot) {
            let (tree, index) = self.cache.swap_place(fault.slot).expect("it is in the swap cache");
            let flags = self.core.alloc.frames.flags(pfn);
            let is_huge = self.core.alloc.frames.pages(pfn) > 1;
            return match flags {
                flags if flags.has(PageFlags::LOCKED) => SwapLook::Locked(tree, index),
                flags if is_huge && flags.has(PageFlags::WRITEBACK) => SwapLook::Written(tree),
                _ => SwapLook::Cached(pfn),
            };
        }
        let is_sync = self.core.swap.kind(fault.slot) == AreaKind::Zram && !self.anon.is_shared(fault.anon);
        if is_sync && self.core.rules().sync_swap == SyncSwap::Bypassed {
            SwapLook::Bypass
        } else {
            SwapLook::Read
        }
    }

    /// A fault maps a page of the swap cache.
    pub fn map_cached(&mut self, cpu: CpuId, fault: SwapFault, pfn: Pfn) {
        let Self { core, lru, cache, anon, .. } = self;
        if core.alloc.frames.pages(pfn) > 1 {
            lru.drain_all(core);
            cache.split_cached(core, lru, pfn);
        }
        let pfn = cache.swap_page(fault.slot).expect("it was there");
        let ahead = core.take_readahead_mark(pfn);
        if ahead {
            core.alloc.events.add(VmEvent::SwapRaHit, 1);
            core.swap.readahead.hit();
        }
        anon.swap_window(fault.anon).hit(fault.index, ahead);
        anon_swap::map_cached(anon, core, lru, cache, cpu, fault, pfn);
    }

    /// A fault maps `pfn`, new and charged to the slot's cgroup, with what is in the slot. Returns the bytes that it
    /// was compressed to.
    pub fn map_bypassing(&mut self, cpu: CpuId, fault: SwapFault, pfn: Pfn) -> Option<u16> {
        let Self { core, lru, cache, anon, .. } = self;
        let bytes = core.swap.stored_bytes(fault.slot);
        count_swap_in(core, fault.slot, pfn, false);
        core.zswap_load(cpu, fault.slot, pfn);
        anon_swap::map_bypassing(anon, core, lru, cache, cpu, fault, pfn);
        bytes
    }

    /// The slots that a fault reads: that of its page among its neighbours, as far as they are in use and not in the
    /// swap cache, in the order in which they are read. Of a file in memory they are neighbours in their area, and read
    /// into the swap cache wherever they lie (SWAP 3.5).
    pub fn slots_to_read(&mut self, fault: SwapFault, mapping_pages: u32) -> Vec<SwapSlot> {
        let by_mapping = self.core.rules().swap_readahead == SwapReadahead::Mapping
            && !self.core.swap.any_rotates()
            && !self.anon.is_shared(fault.anon);
        let page_cluster = self.core.alloc.sysctls().get(Sysctl::PageCluster);
        let Self { core, anon, .. } = self;
        let slots: Vec<SwapSlot> = if by_mapping {
            let pages = anon.swap_window(fault.anon).next(fault.index, page_cluster, mapping_pages);
            pages.filter_map(|page| anon.swapped_at(fault.anon, page)).collect()
        } else {
            let (at, slots) = (fault.slot.offset(), core.swap.area_slots(fault.slot));
            let offsets = core.swap.readahead.next(at, page_cluster, slots);
            offsets.map(|offset| SwapSlot(fault.slot.0 - at + offset)).collect()
        };
        slots.into_iter().filter(|&slot| self.is_swapped_out(slot)).collect()
    }

    /// Whether a slot has content that is not in the swap cache.
    pub fn is_swapped_out(&self, slot: SwapSlot) -> bool {
        self.core.swap.is_used(slot) && self.cache.swap_page(slot).is_none()
    }

    /// Begins to read a slot into `pfn`, new and charged to the slot's cgroup; false: somebody else did, or the slot is
    /// free by now, or there is no memory for the tree. `ahead`: nobody has asked for it yet.
    pub fn begin_swap_read(&mut self, cpu: CpuId, slot: SwapSlot, pfn: Pfn, ahead: bool) -> bool {
        if !self.is_swapped_out(slot) {
            return false;
        }
        let Self { core, lru, cache, .. } = self;
        if !cache.begin_read(core, lru, cpu, slot, pfn) {
            return false;
        }
        if ahead {
            core.mark_readahead(pfn);
            core.alloc.events.add(VmEvent::SwapRa, 1);
        }
        count_swap_in(core, slot, pfn, ahead);
        true
    }

    /// A page of the swap cache was read from memory, not from a disk.
    pub fn end_stored_read(&mut self, cpu: CpuId, slot: SwapSlot) {
        if let Some(pfn) = self.cache.swap_page(slot) {
            self.core.zswap_load(cpu, slot, pfn);
        }
    }

    /// Whether somebody met the limit of the zswap pool since this was asked last.
    pub fn take_zswap_hit(&mut self) -> bool {
        self.core.swap.zswap.take_hit()
    }

    /// The entry of zswap that is to be written back next, while the pool is above what it has to fall to; none, too,
    /// where no cgroup lets its entries go.
    pub fn next_zswap_write(&mut self) -> Option<SwapSlot> {
        let (_, threshold) = self.core.zswap_limits();
        let Self { core, .. } = self;
        if !core.swap.zswap.is_above(threshold) {
            return None;
        }
        core.swap.zswap.next_to_write(|memcg| core.cgroups.may_write_to_swap(memcg))
    }

    /// Writes an entry of zswap back by way of `pfn`, a new page; false: it is gone, and the page is the caller's.
    pub fn zswap_write_back(&mut self, cpu: CpuId, slot: SwapSlot, pfn: Pfn) -> bool {
        let Self { core, lru, cache, reclaim, .. } = self;
        let written = cache.write_back(core, lru, cpu, slot, pfn);
        if written == Some(true) {
            reclaim.add_swap_write(pfn);
        }
        written.is_some()
    }

    /// The tree of the swap cache that a slot in use is in, and its place in there.
    pub fn swap_place(&self, slot: SwapSlot) -> (MappingId, u32) {
        self.cache.swap_place(slot).expect("a slot in use has a tree")
    }

    /// Whether [`Self::take_swap_writes`] has any.
    #[inline]
    pub fn has_swap_writes(&self) -> bool {
        self.reclaim.has_swap_writes()
    }

    /// Writes to swap that reclaim has decided on and that are to be sent off.
    pub fn take_swap_writes(&mut self) -> Vec<SwapWrite> {
        let pages = self.reclaim.take_swap_writes();
        pages.into_iter().filter_map(|pfn| self.swap_write(pfn)).collect()
    }

    fn swap_write(&self, pfn: Pfn) -> Option<SwapWrite> {
        let slot = SwapSlot(self.core.alloc.frames.private(pfn));
        let (mapping, index) = self.cache.swap_place(slot)?;
        let AreaKind::Disk { device, .. } = self.core.swap.kind(slot) else { return None };
        let pages = self.core.alloc.frames.pages(pfn);
        Some(SwapWrite { pfn, pages, device, offset: slot.offset(), mapping, index })
    }

    /// `MADV_FREE` on `count` pages from `first`: [`crate::pages::advice`].
    pub fn anon_give_up(&mut self, cpu: CpuId, anon: AnonId, first: u32, count: u32) {
        let Self { core, lru, cache, anon: maps, .. } = self;
        advice::give_up(maps, core, lru, cache, cpu, anon, first, count);
    }

    /// `MADV_COLD` on `count` pages from `first`: [`crate::pages::advice`].
    pub fn anon_cool(&mut self, cpu: CpuId, anon: AnonId, first: u32, count: u32) {
        let pages = self.anon_advised(cpu, anon, first, count);
        advice::cool(&mut self.core, &mut self.lru, pages);
    }

    /// `MADV_PAGEOUT` on `count` pages from `first`, at most 512: reclaim decides on them at once.
    pub fn anon_page_out(&mut self, cpu: CpuId, anon: AnonId, first: u32, count: u32) -> ChunkReport {
        let pages = self.anon_advised(cpu, anon, first, count);
        self.page_out(cpu, pages)
    }

    /// `MADV_COLD` on `count` pages of a mapping of a file from `first`: [`crate::pages::advice`].
    pub fn file_cool(&mut self, cpu: CpuId, area: FileAreaId, first: u32, count: u32) {
        let pages = self.file_advised(cpu, area, first, count);
        advice::cool(&mut self.core, &mut self.lru, pages);
    }

    /// `MADV_PAGEOUT` on `count` pages of a mapping of a file from `first`: reclaim decides on them at once.
    pub fn file_page_out(&mut self, cpu: CpuId, area: FileAreaId, first: u32, count: u32) -> ChunkReport {
        let pages = self.file_advised(cpu, area, first, count);
        self.page_out(cpu, pages)
    }

    /// What advice on anonymous memory is about, out of the batches of this CPU (`lru_add_drain`).
    fn anon_advised(&mut self, cpu: CpuId, anon: AnonId, first: u32, count: u32) -> Vec<Pfn> {
        self.lru.drain(&mut self.core, cpu);
        advice::whole_pages(&mut self.anon, &mut self.core, &mut self.lru, anon, first, count)
    }

    /// The same of a mapping of a file.
    fn file_advised(&mut self, cpu: CpuId, area: FileAreaId, first: u32, count: u32) -> Vec<Pfn> {
        self.lru.drain(&mut self.core, cpu);
        self.cache.cool_area(&self.core, area, first..first + count)
    }

    fn page_out(&mut self, cpu: CpuId, pages: Vec<Pfn>) -> ChunkReport {
        let Self { core, lru, cache, anon, reclaim, .. } = self;
        let pages = advice::take_for_pageout(core, pages);
        reclaim.page_out(core, lru, cache, anon, cpu, &pages)
    }

    /// `mincore`: pages among `count` from `first` that are in memory, mapped or in the swap cache.
    pub fn anon_resident(&self, anon: AnonId, first: u32, count: u32) -> u32 {
        let is_cached = |index: &u32| {
            let slot = self.anon.swapped_at(anon, *index);
            slot.and_then(|slot| self.cache.swap_page(slot)).is_some()
        };
        let mut found = self.anon.resident(anon, first, count);
        if self.anon.swapped_pages(anon) > 0 {
            let cached = (first..first.saturating_add(count)).filter(is_cached).count();
            found += u32::try_from(cached).expect("a part of the mapping");
        }
        found
    }
}

/// A page is read from its area, unless it is known to be one of zeroes, or is in the pool of zswap. `ahead`: nobody
/// has asked for it yet.
fn count_swap_in<T: Trace>(core: &mut Core<T>, slot: SwapSlot, pfn: Pfn, ahead: bool) {
    let reason = if core.swap.is_zero(slot) {
        core.alloc.events.add(VmEvent::SwpInZero, 1);
        Reason::SwapZeroes
    } else if core.swap.zswap.get(slot).is_some() {
        Reason::SwapFromPool
    } else {
        core.alloc.events.add(VmEvent::PswpIn, 1);
        let kind = core.swap.kind(slot);
        core.count_zram(VmEvent::PgPgIn, u64::from(kind == AreaKind::Zram));
        let memcg = core.swap.memcg(slot).expect("a slot in use is charged");
        core.swap.zswap.note_read(memcg);
        match (kind, ahead) {
            (AreaKind::Disk { .. }, false) => Reason::SwapRead,
            (AreaKind::Disk { .. }, true) => Reason::SwapReadAhead,
            (AreaKind::Zram, false) => Reason::SwapDecompressed,
            (AreaKind::Zram, true) => Reason::SwapDecompressedAhead,
        }
    };
    core.tell_swapped_in(slot, pfn, reason);
}
