//! What accesses to a page say when reclaim looks at it, and taking it out of page tables (MECHANISMS 6.2; MAPPED 4 to
//! 6).
//!
//! ```text
//!   accessed through page tables   first time: kept    again, by two, or code: active    (2.6.32: at once)
//!   not                            free; a dirty one that was read is not written for reclaim's sake
//! ```
//! Neighbours: [`super::page`], which decides by it; [`crate::pages::mapped`].

use units::{CpuId, Pfn};

use crate::base::event::Trace;
use crate::base::frame::{FrameState, PageFlags, anon_owner};
use crate::base::ids::{AnonId, MappingId};
use crate::base::layout::{FollowTables, PageTables};
use crate::core::Core;
use crate::lru::lists::Lru;
use crate::lru::mglru::aging::Promotion;
use crate::lru::mglru::filter::{Mapped, Table, is_dense};
use crate::pages::anon::AnonMaps;
use crate::pages::cache::PageCache;
use crate::pages::mapped_pages::around;
use crate::reclaim::run::{ChunkReport, Reclaimer, ScanControl};
use crate::reclaim::state::Reclaim;
use crate::version::rules::{AnonStart, GenAround, LruKind, MappedReferences};

/// What accesses say about a page at the inactive tail.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum References {
    /// Nothing speaks for it.
    Reclaim,
    /// It was read once: no reason to keep a clean page, but it is not written for reclaim's sake.
    ReclaimClean,
    Keep,
    Activate,
    /// Code runs in it, and did since the last look.
    ActivateCode,
}

impl Reclaim {
    /// `try_to_unmap` of a page of a file.
    pub(super) fn unmap_file<T: Trace>(
        &mut self,
        core: &mut Core<T>,
        cache: &mut PageCache,
        pfn: Pfn,
        report: &mut ChunkReport,
    ) {
        if core.alloc.frames.flags(pfn).has(PageFlags::MAPPED) {
            self.remap(core, pfn, report);
            report.swap.unmapped += cache.maps.unmap(core, pfn);
        }
    }

    /// The entry of a page goes, or loses its accessed bit: where a host's mappings follow, one has to.
    pub(super) fn remap<T: Trace>(&mut self, core: &Core<T>, pfn: Pfn, report: &mut ChunkReport) {
        let PageTables::UserMode { follow, .. } = core.page_tables else { return };
        let place = (core.alloc.frames.owner(pfn), core.alloc.frames.index(pfn));
        let last = core::mem::replace(&mut self.remapped, place);
        let is_neighbour = last.0 == place.0 && last.1.abs_diff(place.1) == 1;
        report.swap.remapped += u32::from(follow == FollowTables::ByEntry || !is_neighbour);
    }

    /// `folio_check_references` (MECHANISMS 6.2). Where there are generations, pages near one that was accessed are
    /// looked at, too.
    pub(super) fn references<T: Trace>(
        &mut self,
        core: &mut Core<T>,
        cache: &mut PageCache,
        anon: &AnonMaps,
        pfn: Pfn,
        flags: PageFlags,
        report: &mut ChunkReport,
    ) -> References {
        let looks_around =
            core.rules().lru == LruKind::Generations && core.rules().gen_around == GenAround::Entries;
        if looks_around && flags.has(PageFlags::MAPPED) {
            match anon_owner(core.alloc.frames.owner(pfn)) {
                Some(id) if flags.has(PageFlags::YOUNG) && !self.looked_at.contains(&pfn) => {
                    self.look_around_anon(core, anon, id, pfn);
                }
                Some(_) => {}
                None => {
                    let at = (core.page_memcg(pfn), core.page_place(pfn).1);
                    self.young.extend(cache.young_around(core, pfn, at, &mut self.dense));
                }
            }
        }
        let seen = cache.folio_referenced(core, pfn);
        let rule = core.rules().advised_access;
        let owner = anon_owner(core.alloc.frames.owner(pfn));
        let counts = flags.has(PageFlags::YOUNG) && owner.is_none_or(|id| anon.counts_accesses(id, rule));
        let areas = seen.areas + u32::from(counts);
        if areas > 0 {
            core.note_aged(pfn);
            self.remap(core, pfn, report);
        }
        let referenced = flags.has(PageFlags::REFERENCED);
        core.alloc.frames.clear_flags(pfn, PageFlags::YOUNG.set(PageFlags::REFERENCED));
        let at_once = core.rules().mapped_references == MappedReferences::FirstActivates;
        let mapping = MappingId(core.alloc.frames.owner(pfn));
        if areas == 0 && at_once && referenced && cache.maps.has_areas(mapping) {
            return References::Activate; // `page_mapping_inuse`
        }
        if areas == 0 {
            return if referenced { References::ReclaimClean } else { References::Reclaim };
        }
        if flags.has(PageFlags::SWAP_BACKED) && core.rules().anon_start == AnonStart::Active {
            return References::Activate;
        }
        core.alloc.frames.set_flags(pfn, PageFlags::REFERENCED);
        match () {
            () if referenced || areas > 1 || at_once => References::Activate,
            () if seen.executable => References::ActivateCode,
            () => References::Keep,
        }
    }

    /// Pages that eviction saw accesses to beside the one that it looked at belong to the youngest generation.
    pub(super) fn promote_young<T: Trace>(
        &mut self,
        core: &mut Core<T>,
        lru: &mut Lru,
        cpu: CpuId,
        pfn: Pfn,
        sc: &ScanControl,
    ) {
        let how = if sc.reclaimer == Reclaimer::Kswapd || sc.proactive {
            Promotion::Listed
        } else {
            Promotion::Moved(cpu)
        };
        let at = (core.page_memcg(pfn), core.page_place(pfn).1);
        for table in self.dense.drain(..) {
            let gens = lru.gens_mut(at);
            let max_seq = gens.max_seq();
            gens.filters.add(max_seq, table);
        }
        let mut young = core::mem::take(&mut self.young);
        for pfn in young.drain(..) {
            if core.alloc.frames.state(pfn) == FrameState::Isolated {
                self.looked_at.push(pfn);
            } else {
                lru.see_young(core, pfn, how);
            }
        }
        self.young = young;
    }

    /// Pages of the same cgroup and node near a page of anonymous memory that page tables saw accesses to.
    fn look_around_anon<T: Trace>(&mut self, core: &Core<T>, anon: &AnonMaps, id: AnonId, pfn: Pfn) {
        let index = core.alloc.frames.index(pfn);
        let at = |pfn| (core.page_memcg(pfn), core.page_place(pfn).1);
        let is_young = |other: &Pfn| {
            *other != pfn && core.alloc.frames.flags(*other).has(PageFlags::YOUNG) && at(*other) == at(pfn)
        };
        let (around, before) = (around(index, anon.table_len(id)), self.young.len());
        let entries = around.end - around.start;
        self.young.extend(around.filter_map(|index| anon.find(id, index)).filter(is_young));
        let young = 1 + (self.young.len() - before) as u32;
        if is_dense(young, entries) {
            self.dense.push(Table::of(Mapped::Anon(id), index));
        }
    }
}
