//! Anonymous memory: which page of which mapping lies in which frame, and huge pages in it
//! (MECHANISMS 12.2, 12.3).
//!
//! A mapping's table of frames is its page table; a frame knows its mapping and place in return
//! (its reverse map), so that compaction can move it. A huge page is one folio of order 9 at a
//! multiple of 512 pages: each of its 512 slots names its head. Mappings start at a multiple of
//! 2 MiB.
//!
//! Files of a tmpfs are such tables, too, which no process owns ([`AnonMaps::create_shared`]): their pages lie on the
//! anonymous lists and go to swap, and count as page cache and as shared memory (`nr_shmem`).
//!
//! Left out: sharing after `fork`, the zero page, huge pages mapped by single pages (a huge
//! page of which a part goes is split at once, where the kernel defers that). Neighbours:
//! [`crate::lru::lists`] for the lists, [`crate::compact::migrate`] for moving pages,
//! [`crate::pages::anon_swap`] for pages that are swapped out and come back.

use core::ops::Range;
use std_alloc::vec::Vec;

use units::{CpuId, Pfn};

use crate::alloc::pageblock::{HUGE_ORDER, HUGE_PAGES};
use crate::base::event::Trace;
use crate::base::frame::{ANON_OWNER, FrameState, NIL, NO_OWNER, PageFlags, anon_owner};
use crate::base::ids::{AnonId, MemcgId};
use crate::base::vmstat::{MemcgStat, VmEvent};
use crate::core::Core;
use crate::lru::lists::Lru;
use crate::lru::mglru::access::faulted_in;
use crate::pages::cache::PageCache;
use crate::pages::mapped::AccessAdvice;
use crate::swap::readahead::MappingWindow;
use crate::swap::slot::SwapSlot;
use crate::version::rules::{AdvisedAccess, AnonStart};

#[derive(Debug, Clone, Default)]
pub(super) struct Anon {
    live: bool,
    /// Frame of each page, its slot of swap with [`SWAPPED`], or [`NIL`] where there is neither.
    pub(super) slots: Vec<u32>,
    pages: u64,
    /// Pages that are in slots of swap.
    pub(super) swapped: u64,
    /// Readahead of swap.
    pub(super) readahead: MappingWindow,
    /// What a compressor brings a page of it down to.
    compressed: u16,
    /// It is a file in memory.
    shared: bool,
    /// Since the last walk for a new generation.
    accessed: bool,
    advice: AccessAdvice,
}

/// Set in an entry that names a slot of swap; no frame has so high a number.
pub(super) const SWAPPED: u32 = 1 << 31;

/// What a page compresses to where its program says nothing: the mean of pages of programs (SWAP 4.5).
pub const COMPRESSED_BYTES: u16 = 1200;

/// All anonymous mappings of the machine.
#[derive(Debug, Clone, Default)]
pub struct AnonMaps {
    pub(super) list: Vec<Anon>,
    free: Vec<u32>,
    pub(super) huge: u64,
    /// Pages of all mappings.
    pages: u64,
    /// Pages of all files in memory.
    shared_pages: u64,
    /// There was a file in memory.
    shares: bool,
}

/// What is in a range of 2 MiB: whether huge pages can or do serve it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct HugeRange {
    /// Pages that are present.
    pub present: u32,
    /// One of them belongs to a huge page.
    pub huge: bool,
    /// One of them was accessed lately.
    pub referenced: bool,
    /// One of them cannot be copied now, or is swapped out (khugepaged would read up to 64 of these back).
    pub busy: bool,
}

impl AnonMaps {
    /// The head of the page at `index`.
    #[inline]
    pub fn find(&self, anon: AnonId, index: u32) -> Option<Pfn> {
        match self.list[anon.0 as usize].slots.get(index as usize) {
            Some(&pfn) if (pfn & SWAPPED) == 0 => Some(Pfn(pfn)),
            _ => None,
        }
    }

    /// A program accesses a mapping.
    #[inline]
    pub(crate) fn note_access(&mut self, anon: AnonId) {
        self.list[anon.0 as usize].accessed = true;
    }

    /// How its program says that it accesses a mapping.
    pub fn advise(&mut self, anon: AnonId, advice: AccessAdvice) {
        self.list[anon.0 as usize].advice = advice;
    }

    /// Whether accesses through page tables to a mapping count.
    pub(crate) fn counts_accesses(&self, anon: AnonId, rule: AdvisedAccess) -> bool {
        self.list[anon.0 as usize].advice.counts_accesses(rule)
    }

    /// Whether a mapping was accessed, in a way that counts, since the last walk asked this.
    pub(crate) fn was_accessed(&mut self, anon: AnonId, rule: AdvisedAccess) -> bool {
        let anon = &mut self.list[anon.0 as usize];
        core::mem::take(&mut anon.accessed) && anon.advice.counts_accesses(rule)
    }

    /// Pages of all mappings: `nr_anon_pages`.
    pub fn total_pages(&self) -> u64 {
        self.pages
    }

    /// Pages of all files in memory: `nr_shmem`.
    pub fn shared_pages(&self) -> u64 {
        self.shared_pages
    }

    /// Whether there was ever a file in memory: what counts them is told from then on.
    pub fn had_shared(&self) -> bool {
        self.shares
    }

    /// Whether it is a file in memory.
    pub(crate) fn is_shared(&self, anon: AnonId) -> bool {
        self.list[anon.0 as usize].shared
    }

    /// Pages present in a mapping.
    pub fn pages(&self, anon: AnonId) -> u64 {
        self.list[anon.0 as usize].pages
    }

    /// Pages present among `count` from `first`: `mincore`.
    pub fn resident(&self, anon: AnonId, first: u32, count: u32) -> u32 {
        let present = (first..first.saturating_add(count)).filter(|&index| self.find(anon, index).is_some());
        present.fold(0, |sum, _| sum + 1)
    }

    /// Whether none of `count` pages from `first` is present or swapped out (`pmd_none`).
    pub fn is_range_empty(&self, anon: AnonId, first: u32, count: u32) -> bool {
        let slots = &self.list[anon.0 as usize].slots;
        (first..first.saturating_add(count))
            .all(|index| matches!(slots.get(index as usize), None | Some(&NIL)))
    }

    /// Huge pages of all mappings.
    pub const fn huge_pages(&self) -> u64 {
        self.huge
    }

    /// Every page of a mapping in ascending order, heads once: their first index and frame.
    pub fn heads(&self, anon: AnonId) -> impl Iterator<Item = (u32, Pfn)> + '_ {
        let mut last = NIL;
        (0_u32..).zip(&self.list[anon.0 as usize].slots).filter_map(move |(index, &pfn)| {
            let is_head = (pfn & SWAPPED) == 0 && pfn != last;
            last = pfn;
            is_head.then_some((index, Pfn(pfn)))
        })
    }

    /// Live mappings.
    pub fn ids(&self) -> impl Iterator<Item = AnonId> + '_ {
        (0_u32..).zip(&self.list).filter(|(_, anon)| anon.live).map(|(id, _)| AnonId(id))
    }

    pub(super) fn set(&mut self, anon: AnonId, first: u32, count: u32, pfn: u32) {
        let anon = &mut self.list[anon.0 as usize];
        let (first, end) = (first as usize, first as usize + count as usize);
        if anon.slots.len() < end {
            anon.slots.resize(end, NIL);
        }
        let before = anon.pages;
        for slot in &mut anon.slots[first..end] {
            anon.pages -= u64::from((*slot & SWAPPED) == 0);
            anon.pages += u64::from((pfn & SWAPPED) == 0);
            *slot = pfn;
        }
        let all = if anon.shared { &mut self.shared_pages } else { &mut self.pages };
        *all = *all - before + anon.pages;
    }
}

impl AnonMaps {
    /// A new mapping without pages.
    pub fn create(&mut self) -> AnonId {
        let fresh = Anon { live: true, compressed: COMPRESSED_BYTES, ..Anon::default() };
        if let Some(id) = self.free.pop() {
            self.list[id as usize] = fresh;
            return AnonId(id);
        }
        let id = u32::try_from(self.list.len()).expect("fewer mappings than pages");
        assert!((id & ANON_OWNER) == 0, "mappings are numbered in 31 bits");
        self.list.push(fresh);
        AnonId(id)
    }

    /// A new file in memory without pages (`shmem_file_setup`).
    pub fn create_shared(&mut self) -> AnonId {
        let anon = self.create();
        self.list[anon.0 as usize].shared = true;
        self.shares = true;
        anon
    }

    /// Says what a compressor brings the pages of a mapping down to, in bytes; 0 is a page of one repeated word.
    pub fn set_compressed(&mut self, anon: AnonId, bytes: u16) {
        self.list[anon.0 as usize].compressed = bytes;
    }

    /// Bytes that a page of the mapping compresses to.
    pub fn compressed(&self, anon: AnonId) -> u16 {
        self.list[anon.0 as usize].compressed
    }

    /// Frees all pages of a mapping and the mapping itself; returns the pages freed.
    pub fn remove<T: Trace>(
        &mut self,
        core: &mut Core<T>,
        lru: &mut Lru,
        cache: &mut PageCache,
        cpu: CpuId,
        anon: AnonId,
    ) -> u64 {
        let freed = self.unmap(core, lru, cache, cpu, anon, 0, u32::MAX);
        self.list[anon.0 as usize] = Anon::default();
        self.free.push(anon.0);
        freed
    }

    /// Puts a page or huge page that is charged to `memcg` into `anon` at `index`, and on its way
    /// to the lists.
    ///
    /// # Panics
    /// When a page is there already, or a huge page is not at a multiple of its size.
    pub fn map<T: Trace>(
        &mut self,
        core: &mut Core<T>,
        lru: &mut Lru,
        cpu: CpuId,
        anon: AnonId,
        index: u32,
        pfn: Pfn,
        memcg: MemcgId,
    ) {
        let pages = core.alloc.frames.pages(pfn);
        assert!(index.is_multiple_of(pages), "a huge page is aligned");
        assert!(self.is_range_empty(anon, index, pages), "an anonymous page is mapped twice");
        self.set(anon, index, pages, pfn.0);
        self.huge += u64::from(pages == HUGE_PAGES);
        core.alloc.frames.set_owner(pfn, anon.0 | ANON_OWNER, index);
        add_page(core, lru, cpu, pfn, memcg, self.is_shared(anon));
    }

    /// Frees the pages among `count` from `first`; a huge page that lies partly in there is split
    /// before. Returns the pages freed.
    pub fn unmap<T: Trace>(
        &mut self,
        core: &mut Core<T>,
        lru: &mut Lru,
        cache: &mut PageCache,
        cpu: CpuId,
        anon: AnonId,
        first: u32,
        count: u32,
    ) -> u64 {
        let present = u32::try_from(self.list[anon.0 as usize].slots.len()).expect("a mapping's pages");
        let end = first.saturating_add(count).min(present);
        let (mut index, mut freed) = (first, 0);
        while let Some((pfn, start, pages)) = self.next_whole(core, lru, anon, first..end, index) {
            self.set(anon, start, pages, NIL);
            self.huge -= u64::from(pages == HUGE_PAGES);
            core.alloc.frames.set_owner(pfn, NO_OWNER, 0);
            free_page(core, lru, cache, cpu, pfn, self.is_shared(anon));
            freed += u64::from(pages);
            index = start + pages;
        }
        self.drop_swapped(core, lru, cache, cpu, anon, first..end);
        freed
    }

    /// The slot that the page at `index` was swapped out to.
    pub fn swapped_at(&self, anon: AnonId, index: u32) -> Option<SwapSlot> {
        match self.list[anon.0 as usize].slots.get(index as usize) {
            Some(&entry) if (entry & SWAPPED) != 0 && entry != NIL => Some(SwapSlot(entry & !SWAPPED)),
            _ => None,
        }
    }

    /// Pages of a mapping that are swapped out: `swapents`.
    pub fn swapped_pages(&self, anon: AnonId) -> u64 {
        self.list[anon.0 as usize].swapped
    }

    /// Every page of a mapping that is swapped out, and where it is.
    pub(crate) fn swapped(&self, anon: AnonId) -> impl Iterator<Item = (u32, SwapSlot)> + '_ {
        (0_u32..).zip(&self.list[anon.0 as usize].slots).filter_map(|(index, &entry)| {
            ((entry & SWAPPED) != 0 && entry != NIL).then_some((index, SwapSlot(entry & !SWAPPED)))
        })
    }

    /// Readahead of swap in a mapping.
    pub fn swap_window(&mut self, anon: AnonId) -> &mut MappingWindow {
        &mut self.list[anon.0 as usize].readahead
    }

    /// Length of the mapping's page table so far.
    pub(crate) fn table_len(&self, anon: AnonId) -> u32 {
        u32::try_from(self.list[anon.0 as usize].slots.len()).expect("a mapping's pages")
    }

    /// The pages in `range` that are swapped out are needed no more.
    pub(super) fn drop_swapped<T: Trace>(
        &mut self,
        core: &mut Core<T>,
        lru: &mut Lru,
        cache: &mut PageCache,
        cpu: CpuId,
        anon: AnonId,
        range: Range<u32>,
    ) {
        let end = range.end.min(self.table_len(anon));
        for index in range.start..end {
            if self.list[anon.0 as usize].swapped == 0 {
                return;
            }
            let Some(slot) = self.swapped_at(anon, index) else { continue };
            self.set(anon, index, 1, NIL);
            self.list[anon.0 as usize].swapped -= 1;
            cache.drop_entry(core, lru, cpu, slot);
        }
    }

    /// Recounts what is swapped out; what differs.
    pub(crate) fn check_swapped(&self) -> Result<(), &'static str> {
        for anon in self.ids() {
            if self.swapped(anon).count() as u64 != self.swapped_pages(anon) {
                return Err("a mapping says another number of swapped-out pages than it has");
            }
        }
        Ok(())
    }

    /// The first page from `at` on in a range, where it starts and how many it is; a huge page that lies
    /// partly in the range is split before.
    pub(super) fn next_whole<T: Trace>(
        &mut self,
        core: &mut Core<T>,
        lru: &mut Lru,
        anon: AnonId,
        range: Range<u32>,
        at: u32,
    ) -> Option<(Pfn, u32, u32)> {
        let (index, pfn) = (at..range.end).find_map(|index| Some((index, self.find(anon, index)?)))?;
        let (start, pages) = (core.alloc.frames.index(pfn), core.alloc.frames.pages(pfn));
        if pages == 1 || (start >= range.start && start + pages <= range.end) {
            return Some((pfn, start, pages));
        }
        self.split_huge(core, lru, pfn);
        self.find(anon, index).map(|pfn| (pfn, index, 1))
    }

    /// `mlock` of the pages among `count` from `first`; a huge page that lies partly in there is
    /// split before.
    pub fn lock<T: Trace>(
        &mut self,
        core: &mut Core<T>,
        lru: &mut Lru,
        cpu: CpuId,
        anon: AnonId,
        first: u32,
        count: u32,
    ) {
        let range = first..first.saturating_add(count);
        let mut index = first;
        while let Some((pfn, start, pages)) = self.next_whole(core, lru, anon, range.clone(), index) {
            lru.mlock(core, cpu, pfn);
            index = start + pages;
        }
    }

    /// `munlock` of the pages among `count` from `first`; a huge page that lies partly in there is split before.
    pub fn unlock<T: Trace>(
        &mut self,
        core: &mut Core<T>,
        lru: &mut Lru,
        anon: AnonId,
        first: u32,
        count: u32,
    ) {
        let range = first..first.saturating_add(count);
        let mut index = first;
        while let Some((pfn, start, pages)) = self.next_whole(core, lru, anon, range.clone(), index) {
            lru.munlock(core, pfn);
            index = start + pages;
        }
    }

    /// Frees the pages of a mapping that are not locked; returns the pages freed.
    pub fn unmap_unlocked<T: Trace>(
        &mut self,
        core: &mut Core<T>,
        lru: &mut Lru,
        cache: &mut PageCache,
        cpu: CpuId,
        anon: AnonId,
    ) -> u64 {
        let heads: Vec<(u32, Pfn)> = self.heads(anon).collect();
        let is_locked = |pfn| core.alloc.frames.flags(pfn).has(PageFlags::MLOCKED);
        let unlocked: Vec<(u32, u32)> = heads
            .into_iter()
            .filter(|&(_, pfn)| !is_locked(pfn))
            .map(|(index, pfn)| (index, core.alloc.frames.pages(pfn)))
            .collect();
        self.drop_swapped(core, lru, cache, cpu, anon, 0..u32::MAX);
        unlocked.into_iter().map(|(index, pages)| self.unmap(core, lru, cache, cpu, anon, index, pages)).sum()
    }

    /// The reverse map: lets the place of `old` name `new` instead.
    pub(crate) fn replace<T: Trace>(&mut self, core: &Core<T>, anon: AnonId, old: Pfn, new: Pfn) {
        let (index, pages) = (core.alloc.frames.index(old), core.alloc.frames.pages(old));
        assert!(self.find(anon, index) == Some(old), "the page table and the reverse map agree");
        self.set(anon, index, pages, new.0);
    }

    /// `split_huge_page`: makes single pages of a huge page. They stay where the huge page was on
    /// its list, in ascending order behind its first page.
    pub fn split_huge<T: Trace>(&mut self, core: &mut Core<T>, lru: &mut Lru, head: Pfn) {
        let frames = &core.alloc.frames;
        let (owner, index, pages) = (frames.owner(head), frames.index(head), frames.pages(head));
        let (flags, memcg, state) = (frames.flags(head), frames.memcg(head), frames.state(head));
        let anon = anon_owner(owner).expect("only anonymous huge pages are split");
        assert!(state == FrameState::Lru, "a large folio never waits in a batch");
        core.alloc.frames.set_order(head, units::Order(0));
        let mut behind = head;
        for offset in 1..pages {
            let tail = Pfn(head.0 + offset);
            let frames = &mut core.alloc.frames;
            frames.set_order(tail, units::Order(0));
            frames.put_flags(tail, flags.clear(PageFlags::ACTIVATING));
            frames.set_memcg(tail, memcg);
            frames.set_owner(tail, owner, index + offset);
            lru.split_off(core, behind, tail);
            self.set(anon, index + offset, 1, tail.0);
            behind = tail;
        }
        self.huge -= u64::from(pages == HUGE_PAGES);
        core.alloc.events.add(VmEvent::ThpSplitPage, 1);
    }

    /// What is in the 2 MiB from page `first`, a multiple of 512.
    pub fn range<T: Trace>(&self, core: &Core<T>, anon: AnonId, first: u32) -> HugeRange {
        let mut range = HugeRange::default();
        for index in first..first + HUGE_PAGES {
            let Some(pfn) = self.find(anon, index) else {
                range.busy |= !self.is_range_empty(anon, index, 1);
                continue;
            };
            let flags = core.alloc.frames.flags(pfn);
            range.present += 1;
            range.huge |= core.alloc.frames.pages(pfn) > 1;
            range.referenced |= flags.has_any(PageFlags::YOUNG.set(PageFlags::REFERENCED));
            range.busy |= core.alloc.frames.state(pfn) != FrameState::Lru
                || flags.has_any(PageFlags::ACTIVATING.set(PageFlags::MLOCKED));
        }
        range
    }

    /// `collapse_huge_page`: lets `huge`, charged to `memcg`, take the place of the single pages
    /// from `first`, which are freed. Returns how many there were to copy.
    ///
    /// # Panics
    /// When `huge` is no huge page, or one is there already.
    pub fn collapse<T: Trace>(
        &mut self,
        core: &mut Core<T>,
        lru: &mut Lru,
        cache: &mut PageCache,
        cpu: CpuId,
        anon: AnonId,
        first: u32,
        huge: Pfn,
        memcg: MemcgId,
    ) -> u32 {
        assert!(core.alloc.frames.order(huge) == HUGE_ORDER, "collapsed into a huge page");
        let range = self.range(core, anon, first);
        assert!(!range.huge, "single pages are collapsed");
        self.unmap(core, lru, cache, cpu, anon, first, HUGE_PAGES);
        self.map(core, lru, cpu, anon, first, huge, memcg);
        range.present
    }

    /// Holds page tables against reverse maps; returns what differs.
    pub(crate) fn check<T: Trace>(&self, core: &Core<T>) -> Result<(), &'static str> {
        let frames = &core.alloc.frames;
        let (mut mapped, mut huge, mut total, mut shared) = (0_u64, 0, 0, 0);
        for anon in self.ids() {
            let mut pages = 0;
            for (index, pfn) in self.heads(anon) {
                if !frames.is_lru_page(pfn) || anon_owner(frames.owner(pfn)) != Some(anon) {
                    return Err("a page table names a frame that is not the mapping's");
                }
                if frames.index(pfn) != index {
                    return Err("a page table and a reverse map name different places");
                }
                let count = frames.pages(pfn);
                if self.resident(anon, index, count) != count {
                    return Err("a huge page does not fill its place");
                }
                pages += u64::from(count);
                mapped += 1;
                huge += u64::from(count == HUGE_PAGES);
            }
            if pages != self.pages(anon) {
                return Err("a mapping's page count differs from its table");
            }
            *(if self.is_shared(anon) { &mut shared } else { &mut total }) += pages;
        }
        if total != self.pages {
            return Err("mappings have another number of pages in all than is said");
        }
        if shared != self.shared_pages {
            return Err("files in memory have another number of pages in all than is said");
        }
        let owned = (0..u32::try_from(frames.len()).expect("frame numbers are 32 bits"))
            .filter(|&pfn| frames.is_lru_page(Pfn(pfn)) && anon_owner(frames.owner(Pfn(pfn))).is_some());
        if owned.count() as u64 != mapped {
            return Err("a frame says that it is mapped where no page table names it");
        }
        if huge == self.huge { Ok(()) } else { Err("the count of huge pages differs") }
    }
}

/// Adds pages of a table to what a cgroup has, or takes them away: anonymous memory, or cache and shared memory.
pub(super) fn count<T: Trace>(core: &mut Core<T>, pfn: Pfn, shared: bool, change: Change) {
    let (_, node) = core.page_place(pfn);
    let (memcg, pages) = (core.page_memcg(pfn), u64::from(core.alloc.frames.pages(pfn)));
    let stats: &[MemcgStat] = if shared { &[MemcgStat::File, MemcgStat::Shmem] } else { &[MemcgStat::Anon] };
    for &stat in stats {
        match change {
            Change::More => core.cgroups.add_stat(memcg, node, stat, pages),
            Change::Less => core.cgroups.sub_stat(memcg, node, stat, pages),
        }
    }
}

/// Which way a count goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Change {
    More,
    Less,
}

/// Puts a new anonymous page of `memcg` on its way to the lists. Up to 5.8 it starts active. One of a file in memory
/// starts inactive, was accessed by the call that made it (`shmem_get_folio`), and is clean until it is written to.
fn add_page<T: Trace>(core: &mut Core<T>, lru: &mut Lru, cpu: CpuId, pfn: Pfn, memcg: MemcgId, shared: bool) {
    let clean = PageFlags::SWAP_BACKED.set(PageFlags::MAPPED);
    let backed = clean.set(PageFlags::ANON_DIRTY);
    let flags = match (shared, core.rules().anon_start) {
        (true, _) => clean,
        (false, AnonStart::Inactive) => backed.set(PageFlags::YOUNG),
        (false, AnonStart::Active) => backed.set(PageFlags::YOUNG).set(PageFlags::ACTIVE),
    };
    core.alloc.frames.put_flags(pfn, faulted_in(core, flags));
    core.alloc.frames.set_memcg(pfn, memcg.0);
    core.cgroups.note_update(1);
    count(core, pfn, shared, Change::More);
    lru.add(core, cpu, pfn);
}

/// Frees an anonymous page that nobody maps any more and uncharges it, and its slot if it has one. One that is being
/// read or written is left to reclaim, in the swap cache.
fn free_page<T: Trace>(
    core: &mut Core<T>,
    lru: &mut Lru,
    cache: &mut PageCache,
    cpu: CpuId,
    pfn: Pfn,
    shared: bool,
) {
    let memcg = core.page_memcg(pfn);
    let pages = core.alloc.frames.pages(pfn);
    count(core, pfn, shared, Change::Less);
    if core.alloc.frames.flags(pfn).has(PageFlags::SWAP_CACHE) {
        core.alloc.frames.clear_flags(pfn, PageFlags::MAPPED.set(PageFlags::YOUNG));
        if core.alloc.frames.flags(pfn).has(PageFlags::MLOCKED) {
            lru.munlock(core, pfn);
        }
        if !cache.free_swap(core, cpu, pfn) {
            return;
        }
    }
    lru.detach(core, pfn);
    core.cgroups.uncharge(memcg, u64::from(pages));
    core.cgroups.note_update(1);
    core.alloc.free(cpu, pfn, core.alloc.frames.order(pfn));
}
