//! What page tables of files need the page cache for: mapping around a fault, unmapping, aging (MAPPED 2, 3, 5).
//!
//! ```text
//!   fault at page 21:   16 .. 31   those that are in memory and up to date are mapped along with it
//!                       11 .. 26   where the mapping begins five pages behind such a multiple
//! ```
//! Neighbours: [`crate::pages::mapped`] for the tables, [`crate::lru::mglru::aging`].

use core::ops::Range;
use std_alloc::vec::Vec;

use units::{CpuId, NodeId, Pfn};

use crate::base::event::Trace;
use crate::base::frame::{FrameState, PageFlags};
use crate::base::ids::{FileAreaId, MemcgId};
use crate::core::Core;
use crate::lru::lists::Lru;
use crate::lru::mglru::aging::walks_page_tables;
use crate::lru::mglru::filter::{Mapped, TABLE_PAGES, Table, is_dense};
use crate::pages::cache::PageCache;
use crate::pages::mapped::{FileArea, Seen};
use crate::pages::tree::Slot;

/// Pages that a fault maps at once, at a multiple of as many in the address space (`fault_around_bytes`).
pub const FAULT_AROUND: u32 = 16;

/// Entries around a young one that eviction by generations looks at along with it.
const LOOK_AROUND: u32 = 64;

/// What a fault mapped.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Around {
    /// Entries made.
    pub entries: u32,
    /// Pages that were there: the program does not miss them ([`Around::entries`] and what was mapped already).
    pub found: u32,
    /// The page of the fault is among them.
    pub wanted: bool,
    /// It came back soon after an eviction.
    pub refaulted: bool,
}

/// The entries that eviction looks at around that of a page: of the same page table, in an area of `pages`.
pub(crate) fn around(page: u32, pages: u32) -> Range<u32> {
    let table = page - (page % TABLE_PAGES);
    let end = (table + TABLE_PAGES).min(pages);
    let half = LOOK_AROUND / 2;
    let first = match () {
        () if end - table <= LOOK_AROUND || page - table < half => table,
        () if end - page < half => end - LOOK_AROUND,
        () => page - half,
    };
    first..(first + LOOK_AROUND).min(end)
}

/// The pages of an area that a fault at one of them looks at: 16 from a multiple of as many, or from where the area
/// begins.
fn fault_window(page: u32, area: FileArea) -> Range<u32> {
    let start = page.saturating_sub((page % FAULT_AROUND + area.behind) % FAULT_AROUND);
    start..start.saturating_add(FAULT_AROUND).min(area.pages)
}

impl PageCache {
    /// Maps what is in memory and up to date of the 16 pages around a fault (`filemap_map_pages`). Pages that bear a
    /// marker of readahead are left to faults of their own, which see it.
    pub(crate) fn map_around<T: Trace>(
        &mut self,
        core: &mut Core<T>,
        id: FileAreaId,
        page: u32,
        is_copied: impl Fn(u32) -> bool,
    ) -> Around {
        let spec = self.maps.area(id);
        let mut around = Around::default();
        for place in fault_window(page, spec) {
            let Some(pfn) = self.mappable(core, id, place) else { continue };
            let unfit = PageFlags::LOCKED.set(PageFlags::READAHEAD);
            if core.alloc.frames.flags(pfn).has_any(unfit) || is_copied(place) {
                continue;
            }
            around.found += 1;
            if place == page {
                around.wanted = true;
                around.refaulted = core.alloc.frames.flags(pfn).has(PageFlags::WORKINGSET);
            }
            if !self.maps.is_present(id, place) {
                self.maps.enter(core, id, place, pfn, false, place != page);
                around.entries += 1;
            }
        }
        around
    }

    /// The folio of the file that a page of an area shows.
    pub(crate) fn mappable<T: Trace>(&self, core: &Core<T>, id: FileAreaId, page: u32) -> Option<Pfn> {
        let spec = self.maps.area(id);
        match self.trees.find(spec.mapping, spec.first + page) {
            Slot::Page(pfn) => {
                assert!(core.alloc.frames.owner(pfn) == spec.mapping.0, "tree and frame agree");
                Some(pfn)
            }
            _ => None,
        }
    }

    /// Takes pages of an area out of its page table: those that were accessed through it are marked so. Returns how
    /// many there were.
    pub(crate) fn unmap_area<T: Trace>(
        &mut self,
        core: &mut Core<T>,
        lru: &mut Lru,
        cpu: CpuId,
        id: FileAreaId,
        range: Range<u32>,
    ) -> u64 {
        let (mut at, mut unmapped) = (range.start, 0);
        while let Some(page) = self.maps.next_present(id, at).filter(|&page| page < range.end) {
            let pfn = self.mappable(core, id, page).expect("a page that is mapped is in memory");
            if self.maps.leave(core, id, page, pfn) == Some(true) {
                lru.mark_accessed(core, cpu, pfn);
            }
            unmapped += 1;
            at = page + 1;
        }
        unmapped
    }

    /// Folios in a range of an area that no other area maps, in their order; that they were accessed there is forgotten
    /// (`madvise_cold_or_pageout_pte_range`).
    pub(crate) fn cool_area<T: Trace>(
        &mut self,
        core: &Core<T>,
        id: FileAreaId,
        range: Range<u32>,
    ) -> Vec<Pfn> {
        let (mut at, mut found) = (range.start, Vec::new());
        while let Some(page) = self.maps.next_present(id, at).filter(|&page| page < range.end) {
            let pfn = self.mappable(core, id, page).expect("a page that is mapped is in memory");
            if found.last() != Some(&pfn) && self.maps.is_only_in(core, id, pfn) {
                self.maps.referenced(core, pfn);
                found.push(pfn);
            }
            at = page + 1;
        }
        found
    }

    /// Whether page tables saw an access to a folio since the last look.
    pub(crate) fn folio_referenced<T: Trace>(&mut self, core: &Core<T>, pfn: Pfn) -> Seen {
        let flags = core.alloc.frames.flags(pfn);
        if !flags.has(PageFlags::MAPPED) || core.alloc.frames.is_anon(pfn) {
            return Seen::default();
        }
        self.maps.referenced(core, pfn)
    }

    /// Folios of a cgroup on a node that page tables saw accesses to near those to a folio that eviction looks at:
    /// what their tables saw of them is forgotten.
    pub(crate) fn young_around<T: Trace>(
        &mut self,
        core: &mut Core<T>,
        pfn: Pfn,
        at: (MemcgId, NodeId),
        dense: &mut Vec<Table>,
    ) -> Vec<Pfn> {
        let mut found = Vec::new();
        for (id, page) in self.maps.young_places(core, pfn) {
            let around = around(page, self.maps.area(id).pages);
            let sides = [around.start..page, page + 1..around.end];
            let young = 1 + sides
                .map(|range| self.take_young_pages(core, id, range, at, &mut found))
                .iter()
                .sum::<u32>();
            if is_dense(young, around.end - around.start) {
                dense.push(Table::of(Mapped::File(id), page));
            }
        }
        found.retain(|&other| other != pfn);
        found
    }

    /// Folios of a cgroup on a node that page tables of its processes saw accesses to, for a walk that makes a new
    /// generation.
    pub(crate) fn young_of<T: Trace>(
        &mut self,
        core: &mut Core<T>,
        lru: &mut Lru,
        at: (MemcgId, NodeId),
    ) -> Vec<Pfn> {
        let mut found = Vec::new();
        let areas = if walks_page_tables(core) { self.maps.areas_to_walk(at.0) } else { Vec::new() };
        let gens = lru.gens_mut(at);
        let max_seq = gens.max_seq();
        for id in areas {
            // Its program has not run since the last walk.
            if !self.maps.was_accessed(id) {
                continue;
            }
            let mapped = Mapped::File(id);
            let (is_new, pages) = (gens.filters.begin(max_seq, mapped), self.maps.area(id).pages);
            for first in (0..pages).step_by(TABLE_PAGES as usize) {
                let (table, end) = (Table::of(mapped, first), (first + TABLE_PAGES).min(pages));
                if !is_new && !gens.filters.visits(max_seq, table) {
                    continue;
                }
                let young = self.take_young_pages(core, id, first..end, at, &mut found);
                if is_dense(young, end - first) {
                    gens.filters.add(max_seq + 1, table);
                }
            }
        }
        found
    }

    /// Adds the listed folios of a cgroup on a node that an area accessed; returns how many entries say so. Others that
    /// are off the lists take note by themselves: those that are just decided on, and those in a batch.
    fn take_young_pages<T: Trace>(
        &mut self,
        core: &mut Core<T>,
        id: FileAreaId,
        range: Range<u32>,
        (memcg, node): (MemcgId, NodeId),
        found: &mut Vec<Pfn>,
    ) -> u32 {
        let (mapping, trees) = (self.maps.area(id).mapping, &self.trees);
        let folio = |index| match trees.find(mapping, index) {
            Slot::Page(pfn) => pfn,
            _ => panic!("page {index} of {mapping:?} is mapped and not in memory"),
        };
        let is_theirs = |index| {
            let pfn = folio(index);
            core.page_memcg(pfn) == memcg && core.page_place(pfn).1 == node
        };
        let pages = self.maps.take_young(id, range, is_theirs);
        let young = pages.len() as u32;
        for pfn in pages.into_iter().map(folio) {
            match core.alloc.frames.state(pfn) {
                FrameState::Lru if found.last() != Some(&pfn) => found.push(pfn),
                FrameState::Lru => {}
                FrameState::Isolated => core.alloc.frames.set_flags(pfn, PageFlags::YOUNG),
                _ => core.alloc.frames.set_flags(pfn, PageFlags::REFERENCED),
            }
        }
        young
    }

    /// Holds page tables of files against the page cache; returns what differs.
    pub(crate) fn check_maps<T: Trace>(&self, core: &Core<T>) -> Result<(), &'static str> {
        let mut entries: Vec<_> = self.maps.all_entries().collect();
        for &(mapping, index, writable) in &entries {
            let Slot::Page(pfn) = self.trees.find(mapping, index) else {
                return Err("a page table names a page that is not in memory");
            };
            let flags = core.alloc.frames.flags(pfn);
            if !flags.has(PageFlags::MAPPED) {
                return Err("a page is mapped and does not say so");
            }
            if flags.has(PageFlags::LOCKED) {
                return Err("a page is mapped that is still being read");
            }
            if writable && !flags.has(PageFlags::DIRTY) {
                return Err("a clean page can be written to without a fault");
            }
        }
        entries.sort_unstable();
        entries.dedup_by_key(|&mut (mapping, index, _)| (mapping, index));
        if entries.len() as u64 != self.maps.mapped_pages() || !self.maps.counts_agree() {
            return Err("another number of pages is mapped than is said");
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fault_at_the_end_of_sixteen_tib_counted_beyond_them() {
        let (mapping, memcg) = (crate::base::ids::MappingId(0), MemcgId::ROOT);
        let window = |page, behind| {
            let (shared, writable, executable) = (true, false, false);
            let area =
                FileArea { mapping, memcg, first: 0, pages: u32::MAX, behind, shared, writable, executable };
            fault_window(page, area)
        };
        let last = u32::MAX - 1;
        assert_eq!(window(last, 0), last - 14..u32::MAX);
        assert_eq!(window(last, 5), last - 3..u32::MAX);
        assert_eq!([window(0, 15), window(16, 15), window(17, 15)], [0..16, 1..17, 17..33]);
    }
}
