//! What becomes of the pages that a reclaim pass looks at (MECHANISMS 6.3, 6.6a, 6.8,
//! MECHANISMS-6X 3.3 to 3.6).
//!
//! One step, [`Reclaim::shrink_chunk`] of [`crate::reclaim::spend`], takes up to 32 pages off the tail of one list and
//! decides for each: free it, keep it, or move it to the other list.
//!
//! ```text
//!   active tail   --> not referenced: inactive head      (opened only if the balance asks for it)
//!   inactive tail --> clean and not referenced: freed, a shadow stays
//!                 --> referenced by page tables twice, code, dirty, under writeback: active head
//!                 --> referenced by a page table once: inactive head
//!                 --> locked, being read, held by a batch: inactive head
//! ```
//!
//! A dirty page is marked for reclaim and the flusher writes it; when kswapd meets nothing else it
//! has single pages written, where the filesystem lets it ([`Reclaim::take_pageout`]). Up to 3.1 every
//! reclaimer has dirty pages written, and keeps those that are being written ([`Writepage`]).
//!
//! Pages of files that page tables name ([`crate::pages::mapped`]) are asked for there, and unmapped before they are
//! written or freed; a pass always may (`may_unmap`).
//!
//! Pages are isolated within one step only, so there are never too many of them (`too_many_isolated`).
//! Left out: lumpy reclaim (2.6.23 to 3.4: for a large block also the neighbours of a page are taken, wherever
//! they are on the lists, and waited for), demotion. Next: [`crate::reclaim::shrinker`] for the slab part of a
//! visit, [`crate::pages::dirty`] for dirty pages, [`crate::reclaim::swap_out`] for anonymous ones.

use units::{CpuId, NodeId, Pfn};

use crate::base::event::{Reason, Trace, TraceEvent};
use crate::base::frame::PageFlags;
use crate::base::ids::MemcgId;
use crate::base::layout::ZoneKind;
use crate::base::vmstat::{MemcgStat, VmEvent};
use crate::cgroup::charge::Uncharged;
use crate::core::Core;
use crate::lru::lists::{Lru, LruList, MOST_ZONE_SKIPS};
use crate::lru::mglru::access;
use crate::lru::queues::{self, AtEnd};
use crate::pages::anon::AnonMaps;
use crate::pages::cache::PageCache;
use crate::pages::tree::SLOTS;
use crate::reclaim::evict::{evict, evict_row};
use crate::reclaim::pass::LruvecScan;
use crate::reclaim::references::References;
use crate::reclaim::run::{ChunkReport, Reclaimer, ScanControl, Taken};
use crate::reclaim::state::Reclaim;
use crate::reclaim::swap_out::{evict_anon, settle_active, tell_swapped_out};
use crate::reclaim::verdict::Verdict;
use crate::version::rules::{LruCost, LruKind, ProactiveCounts, ReclaimCounts, Writepage};

/// What may keep a page. The common one is clean, unmapped, and nobody holds it.
const SPECIAL: PageFlags = PageFlags::LOCKED
    .set(PageFlags::ACTIVATING)
    .set(PageFlags::DIRTY)
    .set(PageFlags::WRITEBACK)
    .set(PageFlags::MAPPED)
    .set(PageFlags::SWAP_BACKED)
    .set(PageFlags::JOURNAL)
    .set(PageFlags::SWAP_CACHE)
    .set(PageFlags::UNEVICTABLE);

impl Reclaim {
    /// `isolate_lru_folios`: takes up to `chunk` pages off the tail into the scratch list, oldest
    /// first. Pages of zones above the wanted ones are passed over and put back.
    fn isolate<T: Trace>(
        &mut self,
        core: &mut Core<T>,
        lru: &mut Lru,
        list: LruList,
        chunk: u64,
        memcg: MemcgId,
        node: NodeId,
        sc: &ScanControl,
    ) -> (u32, u32) {
        let (from, highest_zoneidx) = ((memcg, node, list), sc.reclaim_idx);
        let found =
            lru.isolate_tail(core, from, highest_zoneidx, chunk, &mut self.isolated, &mut self.skipped);
        let pages = |count| u32::try_from(count).expect("a list has 32 bits of pages");
        if self.skipped.is_empty() {
            return (pages(found.iter().sum::<u64>()), 0);
        }
        let (mut taken, mut skipped) = (0, 0);
        for (zone, pages) in ZoneKind::ALL.into_iter().zip(found) {
            if zone > highest_zoneidx {
                let passed =
                    if self.skipped.len() < MOST_ZONE_SKIPS { pages } else { self.passed_over(core, zone) };
                skipped += passed;
                taken += pages - passed;
                core.alloc.events.add(pgskip(zone), passed);
            } else {
                taken += pages;
            }
        }
        let mut back = core::mem::take(&mut self.skipped);
        // They go back to the head in the order in which they were met: the list is disturbed.
        for pfn in back.drain(..) {
            lru.keep_in_place(core, pfn);
            tell_rotated(core, pfn, Reason::ZoneAbove, sc);
        }
        self.skipped = back;
        (pages(taken), pages(skipped))
    }

    /// Pages of a zone that were just passed over: fewer than were found where [`ZoneSkips::Capped`] ended it.
    fn passed_over<T: Trace>(&self, core: &Core<T>, zone: ZoneKind) -> u64 {
        let of_zone = self.skipped.iter().filter(|&&pfn| core.page_place(pfn).0 == zone);
        of_zone.map(|&pfn| u64::from(core.alloc.frames.pages(pfn))).sum()
    }

    pub(super) fn shrink_inactive<T: Trace>(
        &mut self,
        core: &mut Core<T>,
        lru: &mut Lru,
        cache: &mut PageCache,
        anon: &mut AnonMaps,
        cpu: CpuId,
        list: LruList,
        chunk: u64,
        scan: &LruvecScan,
        sc: &mut ScanControl,
    ) -> ChunkReport {
        lru.drain(core, cpu);
        let (taken, skipped) = self.isolate(core, lru, list, chunk, scan.memcg, scan.node, sc);
        self.shrink_taken(core, lru, cache, anon, cpu, list, (taken, taken + skipped), scan, sc)
    }

    /// Goes through with a chunk that was taken off the lists into the scratch list: pages of it, and pages that were
    /// looked at for it.
    #[inline]
    pub(super) fn shrink_taken<T: Trace>(
        &mut self,
        core: &mut Core<T>,
        lru: &mut Lru,
        cache: &mut PageCache,
        anon: &mut AnonMaps,
        cpu: CpuId,
        list: LruList,
        (taken, scanned): (u32, u32),
        scan: &LruvecScan,
        sc: &mut ScanControl,
    ) -> ChunkReport {
        let (memcg, node) = (scan.memcg, scan.node);
        count_scanned(core, memcg, node, sc, list, scanned);
        let mut report = ChunkReport { scanned, ..ChunkReport::default() };
        report.taken = Taken { pages: taken, file: if list.is_file() { taken } else { 0 } };
        self.judge(core, lru, cache, anon, cpu, sc, &mut report);
        lru.age_on_scan(core, memcg, node, u64::from(report.activated));
        sc.note_writeback(&report);
        self.count_stolen(core, memcg, node, sc, list, report.reclaimed);
        core.alloc.events.add(VmEvent::PgActivate, u64::from(report.activated));
        core.cgroups.add_stat(memcg, node, MemcgStat::PgActivate, u64::from(report.activated));
        core.tell(|_| TraceEvent::VmscanLruShrinkInactive {
            nid: node,
            memcg: memcg.0,
            nr_scanned: scanned,
            nr_reclaimed: report.reclaimed,
            scan: sc.scan_for(),
            file: list.is_file(),
        });
        report
    }

    /// `shrink_folio_list`: decides on each page of the scratch list, and does so.
    pub(super) fn judge<T: Trace>(
        &mut self,
        core: &mut Core<T>,
        lru: &mut Lru,
        cache: &mut PageCache,
        anon: &mut AnonMaps,
        cpu: CpuId,
        sc: &ScanControl,
        report: &mut ChunkReport,
    ) {
        let on_queues = queues::has_queues(core.rules().lru);
        let mut isolated = core::mem::take(&mut self.isolated);
        let mut uncharged = Uncharged::default();
        let mut next = 0;
        while let Some(&pfn) = isolated.get(next) {
            let row = &isolated[next..];
            let freed = evict_row(core, lru, cache, cpu, row, SPECIAL, sc.target, &mut uncharged);
            report.reclaimed += freed;
            next += freed.max(1) as usize;
            if freed > 0 {
                continue;
            }
            let flags = core.alloc.frames.flags(pfn);
            let verdict = loop {
                let verdict = if on_queues && LruList::of(flags).is_file() {
                    self.decide_on_queue(core, cache, anon, cpu, pfn, sc, report)
                } else {
                    self.decide(core, cache, anon, cpu, pfn, sc, report)
                };
                if !self.make_room_in_zswap(core, lru, cache, cpu) {
                    break verdict;
                }
            };
            if !self.young.is_empty() || !self.dense.is_empty() {
                self.promote_young(core, lru, cpu, pfn, sc);
            }
            isolated.append(&mut self.split);
            let pages = core.alloc.frames.pages(pfn);
            match verdict {
                Verdict::Free if core.alloc.frames.is_anon(pfn) => {
                    report.reclaimed += pages;
                    report.swap.cached += pages;
                    tell_swapped_out(core, pfn, sc);
                    evict_anon(core, lru, cache, cpu, pfn, sc.target, &mut uncharged);
                }
                Verdict::Free => {
                    report.reclaimed += pages;
                    report.tails += pages - 1;
                    report.leaf_tails += if pages < SLOTS as u32 { pages - 1 } else { 0 };
                    tell_reclaimed(core, pfn, flags, sc);
                    evict(core, lru, cache, cpu, pfn, sc.target, &mut uncharged);
                }
                Verdict::Keep(reason) => {
                    self.keep(core, lru, pfn);
                    tell_rotated(core, pfn, reason, sc);
                }
                Verdict::Activate(reason) => {
                    settle_active(core, cache, cpu, pfn);
                    report.activated += pages;
                    self.activate(core, lru, pfn);
                    let scan = Some(sc.scan_for());
                    core.tell_page(pfn, |page| TraceEvent::LruActivate { page, reason, scan });
                }
            }
        }
        self.put_kept_back(core, lru);
        core.cgroups.finish_uncharge(uncharged);
        isolated.clear();
        self.isolated = isolated;
    }

    /// Reclaim of pages that their program does not need now (`reclaim_pages`): those of lists that it names, at most
    /// some hundred at a time. They do not count as scanned or stolen.
    pub fn page_out<T: Trace>(
        &mut self,
        core: &mut Core<T>,
        lru: &mut Lru,
        cache: &mut PageCache,
        anon: &mut AnonMaps,
        cpu: CpuId,
        pages: &[Pfn],
    ) -> ChunkReport {
        let sc = ScanControl::direct(ZoneKind::Movable);
        let mut report = ChunkReport::default();
        for &pfn in pages {
            lru.remove(core, pfn);
            self.isolated.push(pfn);
        }
        self.judge(core, lru, cache, anon, cpu, &sc, &mut report);
        self.looked_at.clear();
        core.alloc.events.add(VmEvent::PgActivate, u64::from(report.activated));
        report
    }

    /// What becomes of a file page on a queue: first as its queue has it.
    fn decide_on_queue<T: Trace>(
        &mut self,
        core: &mut Core<T>,
        cache: &mut PageCache,
        anon: &mut AnonMaps,
        cpu: CpuId,
        pfn: Pfn,
        sc: &ScanControl,
        report: &mut ChunkReport,
    ) -> Verdict {
        let lru = core.rules().lru;
        let (flags, kept) = match queues::at_end(lru, core.alloc.frames.flags(pfn)) {
            AtEnd::Again(flags) => (flags, Some(Verdict::Keep(Reason::HitInQueue))),
            AtEnd::Proven(flags) => (flags, Some(Verdict::Activate(Reason::Proven))),
            AtEnd::Victim(flags) => (flags, None),
        };
        core.alloc.frames.put_flags(pfn, flags);
        match kept.unwrap_or_else(|| self.decide(core, cache, anon, cpu, pfn, sc, report)) {
            Verdict::Activate(reason) if lru == LruKind::Sieve => Verdict::Keep(reason),
            verdict => verdict,
        }
    }

    /// `shrink_folio_list` for one page.
    #[inline]
    fn decide<T: Trace>(
        &mut self,
        core: &mut Core<T>,
        cache: &mut PageCache,
        anon: &mut AnonMaps,
        cpu: CpuId,
        pfn: Pfn,
        sc: &ScanControl,
        report: &mut ChunkReport,
    ) -> Verdict {
        if !core.alloc.frames.flags(pfn).has_any(SPECIAL) {
            // Referenced once through read(): no reason to keep a clean file page.
            return Verdict::Free;
        }
        self.decide_special(core, cache, anon, cpu, pfn, sc, report)
    }

    /// The same for a page that may have to stay.
    fn decide_special<T: Trace>(
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
        let pages = core.alloc.frames.pages(pfn);
        if flags.has_any(PageFlags::LOCKED.set(PageFlags::ACTIVATING)) {
            let is_locked = flags.has(PageFlags::LOCKED);
            return Verdict::Keep(if is_locked { Reason::Locked } else { Reason::Activating });
        }
        let (dirty, writeback) = (flags.has(PageFlags::DIRTY), flags.has(PageFlags::WRITEBACK));
        // Reclaim writes anonymous pages itself, and does not stall for them.
        if (dirty || writeback) && !core.alloc.frames.is_anon(pfn) {
            report.dirty += pages;
            if !writeback {
                report.unqueued_dirty += pages;
            }
        }
        if writeback && flags.has(PageFlags::RECLAIM) {
            report.congested += pages;
        }
        if writeback && core.rules().writepage == Writepage::Anyone {
            return Verdict::Keep(Reason::KeptForWriteback);
        }
        if writeback {
            return self.decide_writeback(core, pfn, flags, sc, report);
        }
        match self.references(core, cache, anon, pfn, flags, report) {
            References::Activate => return Verdict::Activate(Reason::MappedTwice),
            References::ActivateCode => return Verdict::Activate(Reason::Executable),
            References::Keep => return Verdict::Keep(Reason::Mapped),
            _ if core.alloc.frames.is_anon(pfn) => {
                return self.decide_anon(core, cache, anon, cpu, pfn, sc, report);
            }
            references if dirty => {
                self.unmap_file(core, cache, pfn, report);
                let verdict = self.decide_dirty(core, pfn, flags, references, sc);
                report.pageout += if verdict == Verdict::Keep(Reason::WriteStarted) { pages } else { 0 };
                return verdict;
            }
            // The filesystem cannot drop the buffers of a page that a transaction holds (MECHANISMS-6X 8.2).
            _ if flags.has(PageFlags::JOURNAL) => return Verdict::Activate(Reason::Journal),
            References::Reclaim | References::ReclaimClean => {}
        }
        self.unmap_file(core, cache, pfn, report);
        Verdict::Free
    }

    /// A dirty file page that nobody writes yet is marked, so that it is freed as soon as the flusher
    /// has written it. kswapd writes it itself if it was marked before, was not read since, and the
    /// last pass met little but such pages (MECHANISMS 6.8). Up to 3.1 whoever meets it writes it at once,
    /// unless it was read.
    fn decide_dirty<T: Trace>(
        &mut self,
        core: &mut Core<T>,
        pfn: Pfn,
        flags: PageFlags,
        references: References,
        sc: &ScanControl,
    ) -> Verdict {
        let (_, node) = core.page_place(pfn);
        let pages = u64::from(core.alloc.frames.pages(pfn));
        if core.rules().writepage == Writepage::Anyone {
            if references == References::ReclaimClean {
                return Verdict::Keep(Reason::DirtyAndRead);
            }
            if !(sc.may_fs && sc.may_writepage) {
                return Verdict::Keep(Reason::MayNotWrite);
            }
            self.pageout.push(pfn);
            core.alloc.events.add(VmEvent::NrVmscanWrite, pages);
            return Verdict::Keep(Reason::WriteStarted);
        }
        let kswapd_writes = core.rules().writepage != Writepage::Unasked
            && sc.reclaimer == Reclaimer::Kswapd
            && flags.has(PageFlags::RECLAIM)
            && self.nodes[node.index()].dirty;
        if !kswapd_writes {
            core.alloc.frames.set_flags(pfn, PageFlags::RECLAIM);
            core.alloc.events.add(VmEvent::NrVmscanImmediateReclaim, pages);
            return Verdict::Activate(Reason::Dirty);
        }
        if references == References::ReclaimClean {
            return Verdict::Keep(Reason::DirtyAndRead);
        }
        if !sc.may_writepage {
            return Verdict::Keep(Reason::MayNotWrite);
        }
        if !self.has_writepage_hook {
            return Verdict::Activate(Reason::NoWritepage);
        }
        self.pageout.push(pfn);
        core.alloc.events.add(VmEvent::NrVmscanWrite, pages);
        Verdict::Keep(Reason::WriteStarted)
    }

    fn decide_writeback<T: Trace>(
        &mut self,
        core: &mut Core<T>,
        pfn: Pfn,
        flags: PageFlags,
        sc: &ScanControl,
        report: &mut ChunkReport,
    ) -> Verdict {
        let (_, node) = core.page_place(pfn);
        let pages = core.alloc.frames.pages(pfn);
        let again = flags.has(PageFlags::RECLAIM);
        if sc.reclaimer == Reclaimer::Kswapd && again && self.nodes[node.index()].writeback {
            report.immediate += pages;
        } else {
            core.alloc.frames.set_flags(pfn, PageFlags::RECLAIM);
            report.writeback += pages;
        }
        Verdict::Activate(Reason::Writeback)
    }

    pub(super) fn shrink_active<T: Trace>(
        &mut self,
        core: &mut Core<T>,
        lru: &mut Lru,
        cache: &mut PageCache,
        cpu: CpuId,
        list: LruList,
        chunk: u64,
        memcg: MemcgId,
        node: NodeId,
        sc: &ScanControl,
    ) -> ChunkReport {
        lru.drain(core, cpu);
        let (taken, skipped) = self.isolate(core, lru, list, chunk, memcg, node, sc);
        let scanned = taken + skipped;
        let (mut deactivated, mut referenced) = (0, 0);
        let mut report = ChunkReport::default();
        let mut isolated = core::mem::take(&mut self.isolated);
        for &pfn in &isolated {
            let pages = core.alloc.frames.pages(pfn);
            if core.alloc.frames.flags(pfn).has(PageFlags::YOUNG) {
                referenced += pages;
                core.alloc.frames.clear_flags(pfn, PageFlags::YOUNG);
                core.note_aged(pfn);
                self.remap(core, pfn, &mut report);
            }
            if core.alloc.frames.flags(pfn).has(PageFlags::MAPPED) {
                let seen = cache.folio_referenced(core, pfn);
                if seen.areas > 0 {
                    self.remap(core, pfn, &mut report);
                }
                let counts = seen.executable || core.rules().lru_cost == LruCost::Rotations;
                referenced += if seen.areas > 0 && counts { pages } else { 0 };
                if seen.executable {
                    self.insert_later(core, lru, pfn);
                    tell_rotated(core, pfn, Reason::Executable, sc);
                    continue;
                }
            }
            deactivated += pages;
            core.alloc.frames.clear_flags(pfn, PageFlags::ACTIVE);
            core.alloc.frames.set_flags(pfn, PageFlags::WORKINGSET);
            self.insert_later(core, lru, pfn);
            core.tell_page(pfn, |page| TraceEvent::PageDeactivated { page, scan: sc.scan_for() });
        }
        self.put_kept_back(core, lru);
        isolated.clear();
        self.isolated = isolated;
        if vmstat_counts(core, sc) || core.rules().reclaim_counts == ReclaimCounts::GlobalAndRefill {
            core.alloc.events.add(VmEvent::PgRefill, u64::from(scanned));
        }
        core.alloc.events.add(VmEvent::PgDeactivate, u64::from(deactivated));
        core.cgroups.add_stat(memcg, node, MemcgStat::PgRefill, u64::from(scanned));
        core.cgroups.add_stat(memcg, node, MemcgStat::PgDeactivate, u64::from(deactivated));
        core.tell(|_| TraceEvent::VmscanLruShrinkActive {
            nid: node,
            memcg: memcg.0,
            nr_scanned: scanned,
            nr_deactivated: deactivated,
            scan: sc.scan_for(),
            file: list.is_file(),
        });
        let taken = Taken { pages: taken, file: if list.is_file() { taken } else { 0 } };
        ChunkReport { scanned, deactivated, referenced, taken, ..report }
    }

    pub(super) fn count_stolen<T: Trace>(
        &mut self,
        core: &mut Core<T>,
        memcg: MemcgId,
        node: NodeId,
        sc: &ScanControl,
        list: LruList,
        pages: u32,
    ) {
        let pages = u64::from(pages);
        let (event, stat) = match sc.reclaimer {
            Reclaimer::Kswapd => (VmEvent::PgStealKswapd, MemcgStat::PgStealKswapd),
            _ if counts_by_itself(core, sc) => (VmEvent::PgStealProactive, MemcgStat::PgStealProactive),
            Reclaimer::Direct | Reclaimer::Limit => (VmEvent::PgStealDirect, MemcgStat::PgStealDirect),
        };
        if vmstat_counts(core, sc) {
            core.alloc.events.add(event, pages);
        }
        let kind = if list.is_file() { VmEvent::PgStealFile } else { VmEvent::PgStealAnon };
        core.alloc.events.add(kind, pages);
        core.cgroups.add_stat(memcg, node, stat, pages);
    }
}

#[inline(always)]
pub(super) fn tell_rotated<T: Trace>(core: &mut Core<T>, pfn: Pfn, reason: Reason, sc: &ScanControl) {
    let scan = Some(sc.scan_for());
    core.tell_page(pfn, |page| TraceEvent::PageRotated { page, reason, scan });
}

#[inline(always)]
fn tell_reclaimed<T: Trace>(core: &mut Core<T>, pfn: Pfn, flags: PageFlags, sc: &ScanControl) {
    let is_referenced = flags.has(PageFlags::REFERENCED);
    let has_tier = || access::tier(flags, core.rules().gen_access) > 0;
    let reason = match core.rules().lru {
        LruKind::Generations if has_tier() => Reason::TierNotKept,
        _ if is_referenced => Reason::ReadOnce,
        _ => Reason::NotReferenced,
    };
    let scan = sc.scan_for();
    core.tell_page(pfn, |page| TraceEvent::PageReclaimed { page, reason, scan });
}

pub(super) fn count_scanned<T: Trace>(
    core: &mut Core<T>,
    memcg: MemcgId,
    node: NodeId,
    sc: &mut ScanControl,
    list: LruList,
    pages: u32,
) {
    let pages = u64::from(pages);
    sc.nr_scanned += pages;
    let (event, stat) = match sc.reclaimer {
        Reclaimer::Kswapd => (VmEvent::PgScanKswapd, MemcgStat::PgScanKswapd),
        _ if counts_by_itself(core, sc) => (VmEvent::PgScanProactive, MemcgStat::PgScanProactive),
        Reclaimer::Direct | Reclaimer::Limit => (VmEvent::PgScanDirect, MemcgStat::PgScanDirect),
    };
    if vmstat_counts(core, sc) {
        core.alloc.events.add(event, pages);
    }
    let kind = if list.is_file() { VmEvent::PgScanFile } else { VmEvent::PgScanAnon };
    core.alloc.events.add(kind, pages);
    core.cgroups.add_stat(memcg, node, stat, pages);
}

/// Whether `/proc/vmstat` counts what a run scans and frees.
pub(super) fn vmstat_counts<T: Trace>(core: &Core<T>, sc: &ScanControl) -> bool {
    sc.is_global() || core.rules().reclaim_counts == ReclaimCounts::All
}

/// Whether a run is counted as one that somebody asked for.
fn counts_by_itself<T: Trace>(core: &Core<T>, sc: &ScanControl) -> bool {
    sc.proactive && core.rules().proactive_counts == ProactiveCounts::Proactive
}

/// The event that counts pages passed over in a zone of `kind`.
const fn pgskip(kind: ZoneKind) -> VmEvent {
    match kind {
        ZoneKind::Dma => VmEvent::PgSkipDma,
        ZoneKind::Dma32 => VmEvent::PgSkipDma32,
        ZoneKind::Normal => VmEvent::PgSkipNormal,
        ZoneKind::Movable => VmEvent::PgSkipMovable,
    }
}
