//! A batch of eviction by generations: which pages of the oldest generation are isolated, which are sorted away,
//! and what becomes of the former (MGLRU 5.2 to 5.5; MECHANISMS-510-72 11).
//!
//! ```text
//!   oldest generation, tail --> young since by its page table: head of that generation
//!                           --> tier above the limit, or accesses saturated: next generation
//!                           --> isolated: freed, a shadow stays; if not, to a younger generation
//! ```
//! Left out: that pages are isolated and decided on by two steps between which others may change them; large
//! folios count by their pages. Neighbours: [`super::visit`] for the loop, [`super::choice`] for the type,
//! [`crate::reclaim::page`] decides on each page.

use units::{CpuId, NodeId, Pfn};

use crate::base::event::{Reason, Trace, TraceEvent};
use crate::base::frame::PageFlags;
use crate::base::ids::MemcgId;
use crate::base::layout::ZoneKind;
use crate::base::vmstat::{MemcgStat, VmEvent};
use crate::core::Core;
use crate::lru::lists::{Lru, LruList};
use crate::lru::mglru::access;
use crate::lru::mglru::aging::Sorted;
use crate::lru::mglru::state::{Evictable, Gens, Kind, MIN_GENS};
use crate::pages::anon::AnonMaps;
use crate::pages::cache::PageCache;
use crate::reclaim::mglru::choice::{self, BATCH};
use crate::reclaim::page::{count_scanned, tell_rotated, vmstat_counts};
use crate::reclaim::run::{ChunkReport, ScanControl};
use crate::reclaim::state::Reclaim;
use crate::version::rules::{GenAccess, GenForm, GenQuota, GenTiers};

/// Folios that a batch looks at, at most (`MAX_LRU_BATCH`).
const LOOKS: u64 = 4096;

/// What a batch came to.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Batch {
    /// Pages that count towards the visit's quota; 0: no more can be had.
    pub(super) delta: u64,
    pub(super) report: ChunkReport,
}

/// What was looked at of one type.
#[derive(Debug, Clone, Copy, Default)]
struct Looked {
    scanned: u64,
    sorted: u64,
    isolated: u64,
}

/// Where a page of the oldest generation goes.
enum Fate {
    Sort(Sorted, Reason),
    Skip,
    Isolate,
}

impl Reclaim {
    /// Evicts up to `wanted` pages of a cgroup, 64 at most (`evict_folios`).
    pub(super) fn evict_batch<T: Trace>(
        &mut self,
        core: &mut Core<T>,
        lru: &mut Lru,
        cache: &mut PageCache,
        anon: &mut AnonMaps,
        cpu: CpuId,
        at: (MemcgId, NodeId),
        wanted: u64,
        sc: &mut ScanControl,
    ) -> Batch {
        let swappiness = choice::swappiness(core, at.0, sc);
        let once = core.rules().gen_quota == GenQuota::Once;
        let free_to_differ = core.rules().gen_access == GenAccess::Accesses;
        let batch = if once { wanted.min(BATCH) } else { BATCH };
        let gens = lru.lruvec(at.0, at.1).gens().expect("a kernel with generations");
        let (mut scanned, mut all) = (0, ChunkReport::default());
        for (kind, limit) in choice::tries(gens, swappiness, free_to_differ).into_iter().flatten() {
            let looked = self.look(core, lru, at, kind, limit, batch, sc);
            let mut report = ChunkReport::default();
            self.count_looked(core, at, kind, looked, sc, &mut report);
            self.shrink_isolated(core, lru, cache, anon, cpu, at, kind, sc, &mut report);
            all.add(&report);
            let in_vain = looked.isolated == 0 && looked.scanned < LOOKS;
            scanned = if in_vain { 0 } else { looked.scanned };
            if scanned > 0 {
                break;
            }
        }
        let types = choice::types_at(swappiness);
        scanned += u64::from(lru.advance(at, types));
        let gens = lru.lruvec(at.0, at.1).gens().expect("a kernel with generations");
        let counts = match types {
            Evictable::Both if !free_to_differ => Kind::Anon,
            Evictable::Both | Evictable::Files => Kind::File,
            Evictable::Anon => Kind::Anon,
        };
        let left = gens.generations(counts);
        let delta = if left == MIN_GENS { 0 } else { scanned };
        Batch { delta, report: all }
    }

    /// Looks at the tail of the oldest generation of a type, zone by zone: those wanted first (`scan_folios`).
    fn look<T: Trace>(
        &mut self,
        core: &mut Core<T>,
        lru: &mut Lru,
        (memcg, node): (MemcgId, NodeId),
        kind: Kind,
        limit: usize,
        batch: u64,
        sc: &ScanControl,
    ) -> Looked {
        let (mut looked, mut looks) = (Looked::default(), LOOKS);
        let oldest =
            |lru: &Lru, zone| lru.lruvec(memcg, node).gens().and_then(|gens| gens.oldest(kind, zone));
        if lru.lruvec(memcg, node).gens().is_none_or(|gens| gens.generations(kind) == MIN_GENS) {
            return looked;
        }
        let wanted = ZoneKind::ALL.into_iter().filter(|&zone| zone <= sc.reclaim_idx).rev();
        let above = ZoneKind::ALL.into_iter().filter(|&zone| zone > sc.reclaim_idx).rev();
        for zone in wanted.chain(above) {
            let mut skipped = 0;
            while let Some(pfn) = oldest(lru, zone) {
                let pages = u64::from(core.alloc.frames.pages(pfn));
                looked.scanned += pages;
                match fate(core, pfn, zone, limit, sc) {
                    Fate::Sort(how, reason) => {
                        looked.sorted += pages;
                        if reason == Reason::Protected {
                            lru.note_protected(core, pfn);
                        }
                        if reason == Reason::NotNow {
                            core.alloc.frames.set_flags(pfn, PageFlags::RECLAIM);
                        }
                        lru.sort(core, pfn, how);
                        tell_rotated(core, pfn, reason, sc);
                    }
                    Fate::Skip => {
                        skipped += pages;
                        lru.remove(core, pfn);
                        self.skipped.push(pfn);
                    }
                    Fate::Isolate => {
                        looked.isolated += pages;
                        lru.remove(core, pfn);
                        let flags = core.alloc.frames.flags(pfn);
                        core.alloc.frames.put_flags(pfn, access::isolated(flags));
                        self.isolated.push(pfn);
                    }
                }
                looks -= 1;
                if looks == 0 || looked.isolated.max(skipped) >= batch {
                    break;
                }
            }
            let mut back = core::mem::take(&mut self.skipped);
            for pfn in back.drain(..) {
                lru.insert(core, pfn);
            }
            self.skipped = back;
            if looks == 0 || looked.isolated >= batch {
                break;
            }
        }
        looked
    }

    fn count_looked<T: Trace>(
        &self,
        core: &mut Core<T>,
        at: (MemcgId, NodeId),
        kind: Kind,
        looked: Looked,
        sc: &mut ScanControl,
        report: &mut ChunkReport,
    ) {
        let pages = |count| u32::try_from(count).expect("a batch has few pages");
        let isolated = pages(looked.isolated);
        count_scanned(core, at.0, at.1, sc, LruList::of_kind(kind, false), isolated);
        if vmstat_counts(core, sc) {
            core.alloc.events.add(VmEvent::PgRefill, looked.sorted);
        }
        core.cgroups.add_stat(at.0, at.1, MemcgStat::PgRefill, looked.sorted);
        report.scanned += pages(looked.scanned);
        report.deactivated += pages(looked.sorted);
        report.taken.pages += isolated;
        report.taken.file += if kind == Kind::File { isolated } else { 0 };
    }

    /// Frees isolated pages, or puts them back (`shrink_folio_list`, `move_folios_to_lru`).
    fn shrink_isolated<T: Trace>(
        &mut self,
        core: &mut Core<T>,
        lru: &mut Lru,
        cache: &mut PageCache,
        anon: &mut AnonMaps,
        cpu: CpuId,
        (memcg, node): (MemcgId, NodeId),
        kind: Kind,
        sc: &mut ScanControl,
        report: &mut ChunkReport,
    ) {
        let looked = core::mem::take(report);
        report.taken = looked.taken;
        self.judge(core, lru, cache, anon, cpu, sc, report);
        self.looked_at.clear();
        sc.note_writeback(report);
        sc.nr_reclaimed += u64::from(report.reclaimed);
        let list = LruList::of_kind(kind, false);
        self.count_stolen(core, memcg, node, sc, list, report.reclaimed);
        core.alloc.events.add(VmEvent::PgActivate, u64::from(report.activated));
        core.cgroups.add_stat(memcg, node, MemcgStat::PgActivate, u64::from(report.activated));
        core.tell(|_| TraceEvent::VmscanLruShrinkInactive {
            nid: node,
            memcg: memcg.0,
            nr_scanned: report.taken.pages,
            nr_reclaimed: report.reclaimed,
            scan: sc.scan_for(),
            file: list.is_file(),
        });
        report.scanned = looked.scanned;
        report.deactivated = looked.deactivated;
    }
}

/// What to do with a page at the tail of the oldest generation (`sort_folio`, `isolate_folio`).
fn fate<T: Trace>(core: &Core<T>, pfn: Pfn, zone: ZoneKind, limit: usize, sc: &ScanControl) -> Fate {
    let flags = core.alloc.frames.flags(pfn);
    let (form, access) = (core.rules().gen_form, core.rules().gen_access);
    let protects = core.rules().gen_tiers == GenTiers::Protect;
    let kept = match access {
        GenAccess::Reads => Sorted::NextTail,
        GenAccess::Accesses => Sorted::NextHead,
    };
    let busy = flags.has_any(PageFlags::LOCKED.set(PageFlags::WRITEBACK).set(PageFlags::DIRTY));
    let clean_copy = flags.has(PageFlags::SWAP_CACHE) && !flags.has(PageFlags::ANON_DIRTY);
    let needs_io = flags.has(PageFlags::SWAP_BACKED) && !clean_copy;
    match () {
        () if Gens::is_promoted(flags) => Fate::Sort(Sorted::Promoted, Reason::Promoted),
        () if protects && (access::tier(flags, access) > limit || access::is_saturated(flags)) => {
            Fate::Sort(kept, Reason::Protected)
        }
        () if zone > sc.reclaim_idx => Fate::Sort(Sorted::NextTail, Reason::ZoneAbove),
        () if form == GenForm::First && busy => Fate::Sort(Sorted::NextHead, Reason::NotNow),
        () if form == GenForm::First && !sc.may_writepage && needs_io => Fate::Skip,
        () => Fate::Isolate,
    }
}
