//! A visit of a pass to one cgroup, by generations: batch after batch until there is enough (MGLRU 4.3, 5.6;
//! MECHANISMS-510-72 11).
//!
//! ```text
//!   quota = size >> priority          again before each batch, up to 7.1
//!   batch of 64 --> again, until the quota is spent, nothing can be had, or the pass has enough
//! ```
//! Left out: that 6.12 wakes the flusher for what a whole visit met, not a batch. Neighbours: [`super::batch`],
//! [`super::choice`]; [`super::tour`] says who is visited.

use units::{CpuId, NodeId, Order};

use crate::alloc::flags::AllocFlags;
use crate::alloc::suitable::compact_gap;
use crate::alloc::watermark::Mark;
use crate::alloc::zone::Zone;
use crate::base::event::Trace;
use crate::base::ids::MemcgId;
use crate::core::Core;
use crate::lru::lists::Lru;
use crate::lru::mglru::state::Evictable;
use crate::pages::anon::AnonMaps;
use crate::pages::cache::PageCache;
use crate::reclaim::mglru::choice::{self, BATCH, Quota};
use crate::reclaim::pass::LruvecScan;
use crate::reclaim::run::{ChunkReport, DEF_PRIORITY, Outcome, Reclaimer, ScanControl};
use crate::reclaim::state::Reclaim;
use crate::version::rules::{GenQuota, GenWalk, LruKind};

/// A visit to one cgroup, by the lists of the kernel.
#[derive(Debug, Clone)]
pub enum Visit {
    /// Quotas of active and inactive lists.
    TwoLists(LruvecScan),
    /// Batches of the oldest generations.
    Generations(GenVisit),
}

/// A visit by generations.
#[derive(Debug, Clone)]
pub struct GenVisit {
    memcg: MemcgId,
    node: NodeId,
    /// Pages that counted so far.
    scanned: u64,
    /// What a quota that is reckoned once came to.
    quota: Option<u64>,
    /// The youngest generation when it began.
    max_seq: u64,
    /// Pages that its run had freed by then.
    freed_before: u64,
    /// A new generation was due.
    needs_aging: bool,
    over: bool,
}

impl GenVisit {
    fn begin(lru: &Lru, memcg: MemcgId, node: NodeId, sc: &mut ScanControl) -> Self {
        sc.gens.outcome = Outcome::Evicted;
        Self {
            memcg,
            node,
            scanned: 0,
            quota: None,
            max_seq: lru.lruvec(memcg, node).gens().expect("a kernel with generations").max_seq(),
            freed_before: sc.nr_reclaimed,
            needs_aging: false,
            over: false,
        }
    }

    /// The cgroup and node that are visited.
    pub const fn at(&self) -> (MemcgId, NodeId) {
        (self.memcg, self.node)
    }
}

impl Reclaim {
    /// Starts on one cgroup; none when it is protected.
    pub fn begin_visit<T: Trace>(
        &mut self,
        core: &mut Core<T>,
        lru: &mut Lru,
        memcg: MemcgId,
        node: NodeId,
        sc: &mut ScanControl,
    ) -> Option<Visit> {
        if core.rules().lru != LruKind::Generations {
            return self.begin_lruvec(core, lru, memcg, node, sc).map(Visit::TwoLists);
        }
        // The tour over the memcg LRU has looked at the protection already.
        let by_bins = core.rules().gen_walk == GenWalk::Bins && sc.is_global();
        let may_visit = by_bins || self.may_visit(core, memcg, node, sc);
        may_visit.then(|| Visit::Generations(GenVisit::begin(lru, memcg, node, sc)))
    }

    /// Goes on with a visit by generations, by one batch; none when it is over.
    pub fn shrink_batch<T: Trace>(
        &mut self,
        core: &mut Core<T>,
        lru: &mut Lru,
        cache: &mut PageCache,
        anon: &mut AnonMaps,
        cpu: CpuId,
        visit: &mut GenVisit,
        sc: &mut ScanControl,
    ) -> Option<ChunkReport> {
        if visit.over {
            return None;
        }
        lru.drain(core, cpu);
        let Some(quota) = self.reckon(core, lru, cache, anon, visit, sc) else {
            end(visit, sc);
            return None;
        };
        let left = quota.saturating_sub(visit.scanned);
        let batch = self.evict_batch(core, lru, cache, anon, cpu, visit.at(), left, sc);
        visit.scanned += batch.delta;
        let spent = batch.delta == 0 || visit.scanned >= quota;
        if spent || has_enough(core, lru, visit, sc) {
            end(visit, sc);
        }
        Some(batch.report)
    }

    /// How many pages the visit may count; none: it is over. Makes a new generation if one is due.
    fn reckon<T: Trace>(
        &self,
        core: &mut Core<T>,
        lru: &mut Lru,
        cache: &mut PageCache,
        anon: &mut AnonMaps,
        visit: &mut GenVisit,
        sc: &mut ScanControl,
    ) -> Option<u64> {
        let at = visit.at();
        let rule = core.rules().advised_access;
        let types = choice::types_of(core, visit.memcg, sc);
        let quota = choice::quota(core, lru, at, sc);
        visit.needs_aging |= quota != Quota::Leave && is_due(lru, at, types, sc);
        let pages = match quota {
            Quota::Leave => {
                visit.needs_aging = true;
                return None;
            }
            Quota::AgeAndLeave => {
                let young = cache.young_of(core, lru, at);
                lru.age(core, at, types, sc.gens.now, young, |id| anon.was_accessed(id, rule));
                sc.gens.outcome = Outcome::Aged;
                return None;
            }
            Quota::AgeThen(pages) => {
                let young = cache.young_of(core, lru, at);
                lru.age(core, at, types, sc.gens.now, young, |id| anon.was_accessed(id, rule));
                sc.gens.outcome = Outcome::Aged;
                pages
            }
            Quota::Pages(pages) => pages,
        };
        let pages = match core.rules().gen_quota {
            GenQuota::EachRound => pages,
            GenQuota::Once => *visit.quota.get_or_insert(pages),
        };
        (pages > visit.scanned).then_some(pages)
    }
}

fn is_due(lru: &Lru, (memcg, node): (MemcgId, NodeId), types: Evictable, sc: &ScanControl) -> bool {
    let gens = lru.lruvec(memcg, node).gens().expect("a kernel with generations");
    gens.needs_aging(types, sc.priority == DEF_PRIORITY)
}

/// A visit is over. Up to 6.2 one that freed a batch of a cgroup with generations enough spares kswapd to make new
/// ones before its next pass.
fn end(visit: &mut GenVisit, sc: &mut ScanControl) {
    visit.over = true;
    if sc.nr_reclaimed - visit.freed_before >= BATCH && !visit.needs_aging {
        sc.gens.makes_new = false;
    }
}

/// Whether a visit ends before its quota is spent (`should_abort_scan`).
fn has_enough<T: Trace>(core: &Core<T>, lru: &Lru, visit: &GenVisit, sc: &mut ScanControl) -> bool {
    let met = sc.nr_reclaimed >= sc.nr_to_reclaim;
    match core.rules().gen_walk {
        GenWalk::Tree => {
            let gens = lru.lruvec(visit.memcg, visit.node).gens().expect("a kernel with generations");
            let kswapd = sc.reclaimer == Reclaimer::Kswapd;
            if !kswapd && gens.max_seq() > visit.max_seq + 1 {
                return true;
            }
            let asks = sc.is_global() && sc.priority <= DEF_PRIORITY - 2 && (!kswapd || met);
            let mark = if kswapd { Mark::High } else { Mark::Low };
            let has = |zone: &Zone| zone.free_pages().0 >= zone.watermarks.mark(mark);
            let enough = asks && all_zones(core, visit.node, sc, has);
            if enough {
                sc.nr_reclaimed += BATCH; // The pass has enough by that, whatever it freed.
            }
            enough
        }
        GenWalk::Bins if !sc.is_global() => core.rules().gen_quota == GenQuota::Once && met,
        GenWalk::Bins => tour_has_enough(core, visit.node, sc),
    }
}

/// Whether a pass of global reclaim over the memcg LRU has enough.
pub(super) fn tour_has_enough<T: Trace>(core: &Core<T>, node: NodeId, sc: &ScanControl) -> bool {
    if sc.nr_reclaimed >= sc.nr_to_reclaim.max(compact_gap(core.rules().compact_gap, sc.order)) {
        return true;
    }
    // A zone passes its mark and a batch beside what it reserves for itself, as for a request of all these zones.
    let passes = |zone: &Zone| {
        let mark = zone.watermarks.mark(Mark::High) + BATCH;
        zone.watermark_ok(Order(0), mark, sc.reclaim_idx, AllocFlags::NO_WATERMARKS, zone.free_pages().0)
    };
    sc.reclaimer == Reclaimer::Kswapd && sc.order == Order(0) && all_zones(core, node, sc, passes)
}

fn all_zones<T: Trace>(
    core: &Core<T>,
    node: NodeId,
    sc: &ScanControl,
    holds: impl FnMut(&Zone) -> bool,
) -> bool {
    let zones = core.alloc.nodes()[node.index()].zones.iter().map(|&id| core.alloc.zone(id));
    zones.filter(|zone| zone.kind <= sc.reclaim_idx).all(holds)
}
