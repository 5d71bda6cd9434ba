//! Mapped files: which pages of the page cache page tables name, and what these say of them (MAPPED 1, 2).
//!
//! An area is a stretch of a file in the address space of a process. What its page table holds for a page is three
//! bits: the page's place in the file says which frame it is, so a byte for each page of the 2 MiB that were touched
//! is all that it costs. The reverse map goes the same way: from a frame to its file, from there to the areas.
//!
//! ```text
//!   entry   present   young: accessed since somebody looked   writable: so the page is dirty
//! ```
//! A write always faults on an entry that is not writable, which makes the page dirty first, and writeback takes
//! the right to write away again: so there is no dirty bit to be moved to the page.
//!
//! Left out: huge entries, locked mappings. A page that a private mapping writes to becomes anonymous
//! ([`crate::pages::anon`]). Neighbours: [`crate::pages::cache`], [`crate::pages::mapped_pages`] for what needs the
//! page cache, [`crate::reclaim::page`], which asks.

use std_alloc::boxed::Box;
use std_alloc::collections::BTreeMap;
use std_alloc::vec::Vec;

use units::Pfn;

use crate::base::event::Trace;
use crate::base::frame::PageFlags;
use crate::base::ids::{FileAreaId, MappingId, MemcgId};
use crate::base::layout::{FollowTables, OldReads, PageTables};
use crate::base::vmstat::MemcgStat;
use crate::core::Core;
use crate::version::rules::AdvisedAccess;

/// A stretch of a file in an address space.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileArea {
    /// The file.
    pub mapping: MappingId,
    /// The cgroup of the process.
    pub memcg: MemcgId,
    /// Its first page in the file.
    pub first: u32,
    /// Its pages.
    pub pages: u32,
    /// Pages from a multiple of those that a fault maps at once to its first, in the address space.
    pub behind: u32,
    /// Writes reach the file (`VM_SHARED`).
    pub shared: bool,
    /// It may be written to (`VM_WRITE`).
    pub writable: bool,
    /// Code runs in it (`VM_EXEC`).
    pub executable: bool,
}

/// How a program said that it accesses an area.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum AccessAdvice {
    /// `MADV_NORMAL`.
    #[default]
    Normal,
    /// `MADV_RANDOM`.
    Random,
    /// `MADV_SEQUENTIAL`.
    Sequential,
}

impl AccessAdvice {
    /// Whether accesses through page tables count as such (`vma_has_recency`).
    pub(crate) fn counts_accesses(self, rule: AdvisedAccess) -> bool {
        match self {
            Self::Normal => true,
            Self::Random => rule == AdvisedAccess::RandomCounts,
            Self::Sequential => false,
        }
    }
}

/// What an access to a page of an area came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub enum Access {
    /// The page table has it.
    Done,
    /// The page table has it, and lets nobody in without a fault ([`PageTables::UserMode`]).
    Fault,
    /// A fault: the page table has no entry.
    Missing,
    /// A fault: the entry may not be written to.
    ReadOnly,
}

/// What page tables say of a page.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Seen {
    /// Areas that accessed it since the last look.
    pub areas: u32,
    /// Code runs in one of them.
    pub executable: bool,
}

/// Pages that one page table maps.
const TABLE_PAGES: usize = 512;

type Table = [u8; TABLE_PAGES];

const PRESENT: u8 = 1;
const YOUNG: u8 = 2;
const WRITABLE: u8 = 4;
/// Mapped with others around a fault, and not used yet ([`FollowTables::ByEntry`]).
const AHEAD: u8 = 8;

#[derive(Debug, Clone)]
struct Area {
    spec: FileArea,
    advice: AccessAdvice,
    tables: Vec<Option<Box<Table>>>,
    /// Entries that are present.
    present: u32,
    live: bool,
    /// Since the last walk for a new generation.
    accessed: bool,
}

impl Area {
    /// The place in the area of a page of its file.
    fn place(&self, index: u32) -> Option<u32> {
        index.checked_sub(self.spec.first).filter(|&page| page < self.spec.pages)
    }

    fn entry(&self, page: u32) -> u8 {
        let (table, place) = (page as usize / TABLE_PAGES, page as usize % TABLE_PAGES);
        self.tables.get(table).and_then(Option::as_ref).map_or(0, |table| table[place])
    }

    fn entry_mut(&mut self, page: u32) -> &mut u8 {
        let (table, place) = (page as usize / TABLE_PAGES, page as usize % TABLE_PAGES);
        if self.tables.len() <= table {
            self.tables.resize(table + 1, None);
        }
        &mut self.tables[table].get_or_insert_with(|| Box::new([0; TABLE_PAGES]))[place]
    }

    fn set(&mut self, page: u32, entry: u8) {
        let slot = self.entry_mut(page);
        let was = core::mem::replace(slot, entry);
        self.present -= u32::from((was & PRESENT) != 0);
        self.present += u32::from((entry & PRESENT) != 0);
    }
}

/// All areas of the machine.
#[derive(Debug, Clone, Default)]
pub struct FileMaps {
    list: Vec<Area>,
    free: Vec<u32>,
    /// Areas of each file that has any (`i_mmap`).
    of: BTreeMap<MappingId, Vec<u32>>,
    /// Pages that some page table names: `nr_mapped`.
    mapped: u64,
    used: bool,
}

impl FileMaps {
    /// Whether a file was ever mapped: figures of mapped files are told from then on.
    pub const fn were_used(&self) -> bool {
        self.used
    }

    /// Pages of files that some page table names: `nr_mapped`.
    pub const fn mapped_pages(&self) -> u64 {
        self.mapped
    }

    /// A new area without entries.
    pub fn create(&mut self, spec: FileArea) -> FileAreaId {
        self.used = true;
        let area = Area {
            spec,
            advice: AccessAdvice::Normal,
            tables: Vec::new(),
            present: 0,
            live: true,
            accessed: false,
        };
        let id = match self.free.pop() {
            Some(id) => {
                self.list[id as usize] = area;
                id
            }
            None => {
                self.list.push(area);
                u32::try_from(self.list.len() - 1).expect("fewer areas than pages")
            }
        };
        self.of.entry(spec.mapping).or_default().push(id);
        FileAreaId(id)
    }

    /// Takes an area away whose entries are gone.
    pub(crate) fn release(&mut self, id: FileAreaId) {
        let area = &mut self.list[id.0 as usize];
        assert!(area.present == 0, "an area is released with entries");
        area.live = false;
        area.tables = Vec::new();
        let mapping = area.spec.mapping;
        let areas = self.of.get_mut(&mapping).expect("a file with an area");
        areas.retain(|&other| other != id.0);
        if areas.is_empty() {
            self.of.remove(&mapping);
        }
        self.free.push(id.0);
    }

    /// What it is a stretch of.
    pub fn area(&self, id: FileAreaId) -> FileArea {
        self.list[id.0 as usize].spec
    }

    /// How its program accesses it, as it says.
    pub fn advice(&self, id: FileAreaId) -> AccessAdvice {
        self.list[id.0 as usize].advice
    }

    /// `madvise` of a kind that readahead and reclaim heed.
    pub fn advise(&mut self, id: FileAreaId, advice: AccessAdvice) {
        self.list[id.0 as usize].advice = advice;
    }

    /// A program accesses a page of an area.
    #[inline]
    pub fn access(&mut self, id: FileAreaId, page: u32, write: bool, tables: PageTables) -> Access {
        let area = &mut self.list[id.0 as usize];
        area.accessed = true;
        let (table, place) = (page as usize / TABLE_PAGES, page as usize % TABLE_PAGES);
        let Some(Some(table)) = area.tables.get_mut(table) else { return Access::Missing };
        let entry = &mut table[place];
        if (*entry & PRESENT) == 0 {
            return Access::Missing;
        }
        if write && (*entry & WRITABLE) == 0 {
            return Access::ReadOnly;
        }
        let was = *entry;
        let is_seen = write || !matches!(tables, PageTables::UserMode { reads: OldReads::Unseen, .. });
        *entry = (was & !AHEAD) | if is_seen { YOUNG } else { 0 };
        let is_fault = (was & AHEAD) != 0 || (is_seen && (was & YOUNG) == 0);
        if is_fault && tables != PageTables::Hardware { Access::Fault } else { Access::Done }
    }

    /// Whether the page table of an area has a page.
    pub fn is_present(&self, id: FileAreaId, page: u32) -> bool {
        (self.list[id.0 as usize].entry(page) & PRESENT) != 0
    }

    /// Whether some page table names a page of a file.
    fn is_mapped(&self, mapping: MappingId, index: u32) -> bool {
        self.entries(mapping, index).next().is_some()
    }

    /// Whether a file is mapped anywhere (`mapping_mapped`).
    pub(crate) fn has_areas(&self, mapping: MappingId) -> bool {
        self.of.contains_key(&mapping)
    }

    fn entries(&self, mapping: MappingId, index: u32) -> impl Iterator<Item = u8> + '_ {
        let areas = self.of.get(&mapping).map_or(&[][..], |areas| &areas[..]);
        let entry = move |&id: &u32| {
            let area = &self.list[id as usize];
            area.place(index).map(|page| area.entry(page)).filter(|entry| (entry & PRESENT) != 0)
        };
        areas.iter().filter_map(entry)
    }

    /// Puts a page of the file into the page table of an area, young (`set_pte_range`). `ahead`: the fault is on
    /// another page.
    pub(crate) fn enter<T: Trace>(
        &mut self,
        core: &mut Core<T>,
        id: FileAreaId,
        page: u32,
        head: Pfn,
        writable: bool,
        ahead: bool,
    ) {
        let spec = self.list[id.0 as usize].spec;
        let first = !self.is_mapped(spec.mapping, spec.first + page);
        let entry = PRESENT | YOUNG | if writable { WRITABLE } else { 0 };
        let follows = matches!(core.page_tables, PageTables::UserMode { follow: FollowTables::ByEntry, .. });
        let is_late = ahead && follows;
        let area = &mut self.list[id.0 as usize];
        area.accessed = true;
        area.set(page, entry | if is_late { AHEAD } else { 0 });
        core.alloc.frames.set_flags(head, PageFlags::MAPPED);
        if first {
            self.mapped += 1;
            let (_, node) = core.page_place(head);
            core.cgroups.add_stat(core.page_memcg(head), node, MemcgStat::FileMapped, 1);
        }
    }

    /// Takes a page out of the page table of an area; whether it was accessed there in a way that counts, none if
    /// it was not there (`zap_pte_range`).
    pub(crate) fn leave<T: Trace>(
        &mut self,
        core: &mut Core<T>,
        id: FileAreaId,
        page: u32,
        head: Pfn,
    ) -> Option<bool> {
        let area = &mut self.list[id.0 as usize];
        let entry = area.entry(page);
        if (entry & PRESENT) == 0 {
            return None;
        }
        area.set(page, 0);
        let counts = area.advice.counts_accesses(core.rules().advised_access);
        let (mapping, index) = (area.spec.mapping, area.spec.first + page);
        if !self.is_mapped(mapping, index) {
            self.forget(core, head, 1);
            let first = core.alloc.frames.index(head);
            let pages = first..first + core.alloc.frames.pages(head);
            if !pages.into_iter().any(|index| self.is_mapped(mapping, index)) {
                core.alloc.frames.clear_flags(head, PageFlags::MAPPED);
            }
        }
        Some(counts && (entry & YOUNG) != 0)
    }

    fn forget<T: Trace>(&mut self, core: &mut Core<T>, head: Pfn, pages: u64) {
        self.mapped -= pages;
        let (_, node) = core.page_place(head);
        core.cgroups.sub_stat(core.page_memcg(head), node, MemcgStat::FileMapped, pages);
    }

    /// Every entry of a folio: the area and the page in it.
    fn places<T: Trace>(&self, core: &Core<T>, head: Pfn) -> Vec<(u32, u32)> {
        let frames = &core.alloc.frames;
        let (mapping, first, pages) = (MappingId(frames.owner(head)), frames.index(head), frames.pages(head));
        let mut found = Vec::new();
        for &id in self.of.get(&mapping).into_iter().flatten() {
            let area = &self.list[id as usize];
            let places = (first..first + pages).filter_map(|index| area.place(index));
            found.extend(places.filter(|&page| (area.entry(page) & PRESENT) != 0).map(|page| (id, page)));
        }
        found
    }

    /// Takes a folio out of all page tables (`try_to_unmap`); the entries that there were.
    pub(crate) fn unmap<T: Trace>(&mut self, core: &mut Core<T>, head: Pfn) -> u32 {
        core.alloc.frames.clear_flags(head, PageFlags::MAPPED);
        let places = self.places(core, head);
        let mut indices: Vec<u32> = Vec::new();
        for &(id, page) in &places {
            let area = &mut self.list[id as usize];
            area.set(page, 0);
            indices.push(area.spec.first + page);
        }
        indices.sort_unstable();
        indices.dedup();
        if !indices.is_empty() {
            self.forget(core, head, indices.len() as u64);
        }
        u32::try_from(places.len()).expect("entries of one folio")
    }

    /// Looks through all page tables whether a folio was accessed, and lets them forget it (`folio_referenced`).
    pub(crate) fn referenced<T: Trace>(&mut self, core: &Core<T>, head: Pfn) -> Seen {
        let mut seen = Seen::default();
        let mut last = None;
        for (id, page) in self.places(core, head) {
            let area = &mut self.list[id as usize];
            let entry = area.entry(page);
            area.set(page, entry & !YOUNG);
            if (entry & YOUNG) != 0 && area.advice.counts_accesses(core.rules().advised_access) {
                seen.areas += u32::from(last != Some(id));
                seen.executable |= area.spec.executable;
                last = Some(id);
            }
        }
        seen
    }

    /// Whether page tables of other areas than this one have no page of a folio.
    pub(crate) fn is_only_in<T: Trace>(&self, core: &Core<T>, id: FileAreaId, head: Pfn) -> bool {
        self.places(core, head).iter().all(|&(area, _)| area == id.0)
    }

    /// Lets nobody write to a folio without a fault: it is about to be written to the disk (`folio_mkclean`).
    pub(crate) fn protect<T: Trace>(&mut self, core: &Core<T>, head: Pfn) {
        for (id, page) in self.places(core, head) {
            let area = &mut self.list[id as usize];
            let entry = area.entry(page);
            area.set(page, entry & !WRITABLE);
        }
    }

    /// The areas of processes of a cgroup that reclaim walks: those that may be told by accesses.
    pub(crate) fn areas_to_walk(&self, memcg: MemcgId) -> Vec<FileAreaId> {
        let walked = |area: &Area| {
            area.live && area.spec.memcg == memcg && area.present > 0 && area.advice == AccessAdvice::Normal
        };
        let areas = (0_u32..).zip(&self.list);
        areas.filter(|(_, area)| walked(area)).map(|(id, _)| FileAreaId(id)).collect()
    }

    /// The areas and places where a folio was accessed, and which 64 entries lie around each, as an area's pages
    /// (`lru_gen_look_around`).
    pub(crate) fn young_places<T: Trace>(&self, core: &Core<T>, head: Pfn) -> Vec<(FileAreaId, u32)> {
        let is_young = |&(id, page): &(u32, u32)| (self.list[id as usize].entry(page) & YOUNG) != 0;
        let places = self.places(core, head).into_iter().filter(is_young);
        places.map(|(id, page)| (FileAreaId(id), page)).collect()
    }

    /// Whether an area was accessed since the last walk asked this.
    pub(crate) fn was_accessed(&mut self, id: FileAreaId) -> bool {
        core::mem::take(&mut self.list[id.0 as usize].accessed)
    }

    /// Lets the entries of an area in a range forget that they were accessed, those of pages of the file that are asked
    /// for; these pages, as the file counts them.
    pub(crate) fn take_young(
        &mut self,
        id: FileAreaId,
        pages: core::ops::Range<u32>,
        is_asked_for: impl Fn(u32) -> bool,
    ) -> Vec<u32> {
        let area = &mut self.list[id.0 as usize];
        let end = pages.end.min(area.spec.pages);
        let mut found = Vec::new();
        let mut page = pages.start;
        while page < end {
            let table = page as usize / TABLE_PAGES;
            if area.tables.get(table).is_none_or(Option::is_none) {
                page = (table as u32 + 1) * TABLE_PAGES as u32;
                continue;
            }
            let entry = area.entry(page);
            let index = area.spec.first + page;
            if (entry & YOUNG) != 0 && is_asked_for(index) {
                area.set(page, entry & !YOUNG);
                found.push(index);
            }
            page += 1;
        }
        found
    }

    /// The next page of an area from `page` on that its page table has.
    pub(crate) fn next_present(&self, id: FileAreaId, page: u32) -> Option<u32> {
        let area = &self.list[id.0 as usize];
        let mut page = page;
        while page < area.spec.pages {
            let table = page as usize / TABLE_PAGES;
            match area.tables.get(table) {
                None => return None,
                Some(None) => page = (table as u32 + 1) * TABLE_PAGES as u32,
                Some(Some(_)) if (area.entry(page) & PRESENT) != 0 => return Some(page),
                Some(Some(_)) => page += 1,
            }
        }
        None
    }

    /// What the processes of a removed cgroup have mapped is its heir's.
    pub(crate) fn hand_over(&mut self, memcg: MemcgId, heir: MemcgId) {
        for area in self.list.iter_mut().filter(|area| area.spec.memcg == memcg) {
            area.spec.memcg = heir;
        }
    }

    /// Every entry of every area: the area, the page of the file, and whether it may be written to.
    pub(crate) fn all_entries(&self) -> impl Iterator<Item = (MappingId, u32, bool)> + '_ {
        self.list.iter().filter(|area| area.live).flat_map(|area| {
            let entries = (0..area.spec.pages).map(|page| (page, area.entry(page)));
            entries
                .filter(|(_, entry)| (entry & PRESENT) != 0)
                .map(|(page, entry)| (area.spec.mapping, area.spec.first + page, (entry & WRITABLE) != 0))
        })
    }

    /// Whether the counts of entries are those that there are.
    pub(crate) fn counts_agree(&self) -> bool {
        let live = |(_, area): &(u32, &Area)| area.live;
        (0_u32..).zip(&self.list).filter(live).all(|(id, area)| {
            let present = (0..area.spec.pages).filter(|&page| (area.entry(page) & PRESENT) != 0).count();
            let listed = self.of.get(&area.spec.mapping).is_some_and(|areas| areas.contains(&id));
            present == area.present as usize && listed
        })
    }
}
