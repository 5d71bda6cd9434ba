//! A run of kswapd: for which order and how hard it reclaims, and how it works a boost off (MECHANISMS
//! 5.1 to 5.3, MECHANISMS-6X 5.1, 5.2, 6.2).
//!
//! ```text
//!   Balance: passes at priorities 12..1 until some zone is above its high mark
//!            (a boosted zone first costs the boost, at priority 10 at most)
//! ```
//! Left out: hibernation. Neighbours: [`super::kswapd`] for what comes between runs,
//! [`super::priority`] for tasks that reclaim themselves.

use std_alloc::vec::Vec;

use units::{NodeId, Order, Pages};

use crate::alloc::suitable::compact_gap;
use crate::alloc::watermark::Mark;
use crate::alloc::zone::Zone;
use crate::base::event::Trace;
use crate::base::ids::MemcgId;
use crate::base::layout::{ZoneId, ZoneKind};
use crate::base::vmstat::VmEvent;
use crate::decide::backoff::Site;
use crate::memory::Memory;
use crate::reclaim::run::{DEF_PRIORITY, MAX_RECLAIM_RETRIES, ScanControl};
use crate::version::rules::{
    BoostEffort, BoostFailure, BoostedSlab, FragmentStall, KswapdDone, PassMeasure, Rules, TrimFailure,
    WatermarkBoost,
};

impl<T: Trace> Memory<T> {
    /// Zones of a node up to `highest_zoneidx`.
    pub fn zones_up_to(&self, node: NodeId, highest_zoneidx: ZoneKind) -> Vec<ZoneId> {
        let zones = self.core.alloc.nodes()[node.index()].zones.iter().copied();
        zones.filter(|&id| self.core.alloc.zone(id).kind <= highest_zoneidx).collect()
    }

    /// Whether some zone of the node up to `highest_zoneidx` is as `holds` says.
    fn any_zone(&self, node: NodeId, highest_zoneidx: ZoneKind, holds: impl Fn(&Zone) -> bool) -> bool {
        let zones = self.core.alloc.nodes()[node.index()].zones.iter().map(|&id| self.core.alloc.zone(id));
        zones.take_while(|zone| zone.kind <= highest_zoneidx).any(holds)
    }

    /// `pgdat_balanced`: some zone up to `highest_zoneidx` is above its high mark, boost included; or all of
    /// the node are, other than exhausted ones (up to 4.7).
    pub fn is_balanced(&self, node: NodeId, order: Order, highest_zoneidx: ZoneKind) -> bool {
        match self.core.rules().kswapd_done {
            KswapdDone::SomeZone => {
                // A block is worth its keep only if there is room for more: once the order is given up, pages are.
                let whole = order > Order(0) && self.core.alloc.keeps_whole();
                self.any_zone(node, highest_zoneidx, |zone| match whole {
                    true => zone.above_in_whole_blocks(order, highest_zoneidx),
                    false => zone.above(Mark::High, order, highest_zoneidx),
                })
            }
            KswapdDone::EveryZone => self.core.alloc.nodes()[node.index()].zones.iter().all(|&id| {
                let zone = self.core.alloc.zone(id);
                self.is_unreclaimable(id) || zone.above(Mark::High, order, ZoneKind::Dma)
            }),
        }
    }

    fn is_boosted(&self, node: NodeId, highest_zoneidx: ZoneKind) -> bool {
        self.any_zone(node, highest_zoneidx, |zone| zone.watermarks.boost() > Pages::ZERO)
    }

    /// Whether kswapd has failed so often that it leaves the node to others; or all its zones are exhausted
    /// (up to 4.7).
    pub fn is_hopeless(&self, node: NodeId) -> bool {
        match self.core.rules().kswapd_done {
            KswapdDone::SomeZone => self.reclaim.node(node).kswapd_failures >= MAX_RECLAIM_RETRIES,
            KswapdDone::EveryZone => {
                self.core.alloc.nodes()[node.index()].zones.iter().all(|&id| self.is_unreclaimable(id))
            }
        }
    }

    /// Whether a sleeping kswapd is worth waking for a request (`wakeup_kswapd`; MECHANISMS 5.1): up to 4.7
    /// as soon as a zone is below its low mark.
    pub fn has_work_for_kswapd(&self, node: NodeId, order: Order, highest_zoneidx: ZoneKind) -> bool {
        match self.core.rules().kswapd_done {
            KswapdDone::SomeZone => {
                !self.is_hopeless(node)
                    && (!self.is_balanced(node, order, highest_zoneidx)
                        || self.is_boosted(node, highest_zoneidx))
            }
            KswapdDone::EveryZone => {
                self.any_zone(node, highest_zoneidx, |zone| !zone.above(Mark::Low, order, ZoneKind::Dma))
            }
        }
    }

    /// Whether a zone counts as exhausted (`zone_is_all_unreclaimable`, up to 4.7).
    pub(super) fn is_unreclaimable(&self, zone: ZoneId) -> bool {
        self.reclaim.scans.is_unreclaimable(zone, self.core.alloc.zone(zone).free_area.given_back())
    }

    /// `allow_direct_reclaim`: more than half of the min marks is free, or kswapd has given up, so that
    /// direct reclaimers go on (MECHANISMS 4.4). Left out: that updates of 6.1 and 6.12 count a zone
    /// without pages to reclaim as well if it has free ones (MECHANISMS-6X 5.5).
    pub fn allow_direct_reclaim(&self, node: NodeId) -> bool {
        let (mut free, mut reserve) = (0, 0);
        for &id in &self.core.alloc.nodes()[node.index()].zones {
            let zone = self.core.alloc.zone(id);
            if zone.kind <= ZoneKind::Normal && self.zone_reclaimable_pages(node, zone.kind) > 0 {
                free += zone.free_pages().0;
                reserve += zone.watermarks.mark(Mark::Min);
            }
        }
        reserve == 0 || free > reserve / 2 || self.is_hopeless(node)
    }
}

/// A boost is worked off at this priority at most; harder passes write dirty pages.
const BOOST_PRIORITY: u8 = DEF_PRIORITY - 2;

/// What kswapd does next in a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub enum BalanceNext {
    /// One pass over the node with [`Balance::sc`].
    Shrink,
    /// Let others run, after waking those who wait for the reserve if `wake`.
    Rest {
        /// Whether they may go on.
        wake: bool,
    },
    /// Wake those who wait for pressure on this zone to ease, if it has.
    Relieve(ZoneId),
    /// Pause here, for want of pages of this zone.
    Pause(Site, ZoneId),
    /// The run is over.
    Done {
        /// A boost was worked off: a pageblock that was mixed may be made whole again by kcompactd.
        boosted: bool,
    },
}

/// The zones of a run, and what is held on to from its begin to its end.
#[derive(Debug, Clone)]
pub(super) struct Span {
    node: NodeId,
    /// The lowest one first.
    pub(super) zones: Vec<ZoneId>,
    /// Their boosts when the run began.
    boosts: Vec<Pages>,
}

impl Span {
    pub(super) fn begin<T: Trace>(mem: &mut Memory<T>, node: NodeId, highest_zoneidx: ZoneKind) -> Self {
        let zones = mem.zones_up_to(node, highest_zoneidx);
        let boosts: Vec<Pages> = zones.iter().map(|&id| mem.core.alloc.zone(id).watermarks.boost()).collect();
        mem.core.alloc.events.add(VmEvent::PageOutRun, 1);
        mem.core.alloc.set_kswapd_busy(node, true);
        zones.iter().for_each(|&id| mem.core.alloc.set_reclaim_active(id, true));
        Self { node, zones, boosts }
    }

    pub(super) fn end<T: Trace>(&self, mem: &mut Memory<T>) -> BalanceNext {
        for (&id, &boost) in self.zones.iter().zip(&self.boosts) {
            mem.core.alloc.reduce_boost(id, boost); // What was boosted meanwhile stays for the next run.
        }
        mem.snapshot_refaults(MemcgId::ROOT, self.node);
        self.zones.iter().for_each(|&id| mem.core.alloc.set_reclaim_active(id, false));
        BalanceNext::Done { boosted: self.boosts.iter().any(|&boost| boost > Pages::ZERO) }
    }
}

/// A run of kswapd over its node (`balance_pgdat`).
#[derive(Debug, Clone)]
pub struct Balance {
    node: NodeId,
    order: Order,
    highest_zoneidx: ZoneKind,
    span: Span,
    /// Pages to free before the boosts are worked off; 0: ordinary reclaim.
    boost_left: u64,
    /// The run, for the passes.
    pub sc: ScanControl,
    freed_before: u64,
    met_target: bool,
    at: Balancing,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Balancing {
    Look,
    Passed,
    Rested,
}

impl Balance {
    /// Begins a run for a block of `order` in zones up to `highest_zoneidx`.
    pub fn begin<T: Trace>(
        mem: &mut Memory<T>,
        node: NodeId,
        order: Order,
        highest_zoneidx: ZoneKind,
    ) -> Self {
        let span = Span::begin(mem, node, highest_zoneidx);
        let boost_left = span.boosts.iter().map(|boost| boost.0).sum();
        let sc = ScanControl::kswapd(highest_zoneidx);
        let at = Balancing::Look;
        Self { node, order, highest_zoneidx, span, boost_left, sc, freed_before: 0, met_target: false, at }
    }

    /// The order that it still reclaims for: 0 once compaction has what it needs.
    pub const fn order(&self) -> Order {
        self.order
    }

    /// The next step; `waiters`: somebody waits for the reserve.
    pub fn step<T: Trace>(&mut self, mem: &mut Memory<T>, waiters: bool) -> BalanceNext {
        match self.at {
            Balancing::Look => self.look(mem),
            Balancing::Passed => {
                self.at = Balancing::Rested;
                BalanceNext::Rest { wake: self.settle_pass(mem, waiters) }
            }
            Balancing::Rested => {
                if self.ends(mem.core.rules().boost_effort) && !self.begins_again(mem.core.rules()) {
                    let for_boost = self.boost_left > 0;
                    let forgiven = mem.core.rules().boost_failure == BoostFailure::Forgiven;
                    if self.sc.nr_reclaimed == 0 && !(for_boost && forgiven) {
                        mem.reclaim.note_failure(self.node);
                    }
                    self.finish(mem)
                } else {
                    self.look(mem)
                }
            }
        }
    }

    /// Is another pass due, and for what?
    fn look<T: Trace>(&mut self, mem: &mut Memory<T>) -> BalanceNext {
        let balanced = mem.is_balanced(self.node, self.order, self.highest_zoneidx);
        if !balanced && self.boost_left > 0 {
            // Ordinary reclaim has precedence; the marks stay boosted until the end.
            self.boost_left = 0;
            self.sc.priority = DEF_PRIORITY;
        }
        if self.boost_left == 0 && balanced {
            return self.finish(mem);
        }
        let boosting = self.boost_left > 0;
        let rules = mem.core.rules();
        let spare_slab = boosting
            && rules.watermark_boost != WatermarkBoost::V2
            && rules.boosted_slab == BoostedSlab::Spared;
        self.freed_before = self.sc.nr_reclaimed;
        self.sc.may_writepage = !boosting || self.sc.priority < BOOST_PRIORITY;
        self.sc.may_shrinkslab = !spare_slab;
        self.sc.may_swap = !boosting;
        let high = |&id: &ZoneId| mem.core.alloc.zone(id).watermarks.mark(Mark::High).max(32);
        self.sc.nr_to_reclaim = self.span.zones.iter().map(high).sum();
        self.sc.nr_scanned = 0;
        self.sc.order = self.order;
        self.at = Balancing::Passed;
        BalanceNext::Shrink
    }

    /// After a pass (the end of `kswapd_shrink_node`): whether those who wait for the reserve may go on.
    fn settle_pass<T: Trace>(&mut self, mem: &Memory<T>, waiters: bool) -> bool {
        if self.sc.nr_reclaimed >= compact_gap(mem.core.rules().compact_gap, self.order) {
            self.order = Order(0); // Enough for compaction; go on for single pages.
        }
        let freed = match mem.core.rules().pass_measure {
            PassMeasure::Scanned => 0,
            PassMeasure::ScannedOrFreed => self.sc.nr_reclaimed - self.freed_before,
        };
        self.met_target = self.sc.nr_scanned.max(freed) >= self.sc.nr_to_reclaim;
        let works_boost_off = self.boost_left > 0 && self.met_target;
        let stall = mem.core.rules().fragment_stall;
        waiters && wakes_waiters(stall, works_boost_off, || mem.allow_direct_reclaim(self.node))
    }

    /// Accounts for the pass: raises the priority if it found too little; true when there is no sense in
    /// another one.
    fn ends(&mut self, effort: BoostEffort) -> bool {
        let freed = self.sc.nr_reclaimed - self.freed_before;
        self.sc.cache_trim_failed |= freed == 0 && self.sc.at_target.cache_trim;
        let boost_was = self.boost_left;
        self.boost_left = self.boost_left.saturating_sub(freed);
        if self.boost_left > 0 && freed == 0 {
            return true;
        }
        let hardest = effort == BoostEffort::UpToPriority10 && self.sc.priority == BOOST_PRIORITY;
        let held = self.met_target || (boost_was > 0 && hardest);
        if !held || freed == 0 {
            self.sc.priority -= 1;
        }
        self.sc.priority < 1
    }

    /// Whether a run that freed nothing of file pages alone, but left anonymous ones out for all of those, starts
    /// over with both.
    fn begins_again(&mut self, rules: &Rules) -> bool {
        let again = rules.trim_failure == TrimFailure::TriesAnon
            && self.sc.nr_reclaimed == 0
            && self.sc.priority < 1
            && self.sc.cache_trim_failed
            && !self.sc.no_cache_trim;
        if again {
            self.sc.no_cache_trim = true;
            self.sc.priority = DEF_PRIORITY;
        }
        again
    }

    fn finish<T: Trace>(&self, mem: &mut Memory<T>) -> BalanceNext {
        self.span.end(mem)
    }
}

/// Whether the end of a pass wakes those who wait for the reserve: when enough of it is free for
/// direct reclaimers, and with the last posting of the stall also when the pass worked off a boost
/// and scanned enough, whatever is free (MECHANISMS 2.9 e).
fn wakes_waiters(
    stall: FragmentStall,
    works_boost_off: bool,
    allow_direct_reclaim: impl FnOnce() -> bool,
) -> bool {
    (works_boost_off && stall == FragmentStall::V5) || allow_direct_reclaim()
}

#[cfg(test)]
mod tests {
    use units::CpuId;

    use super::*;
    use crate::alloc::flags::AllocFlags;
    use crate::base::event::NoTrace;
    use crate::base::gfp::Gfp;
    use crate::decide::scene::machine;

    const NODE: NodeId = NodeId(0);

    /// A machine without a free page.
    fn full(kernel: &str) -> Memory<NoTrace> {
        let (mut mem, flags) = (machine(kernel), AllocFlags::NO_WATERMARKS);
        while mem.core.alloc.alloc(CpuId(0), Gfp::KERNEL, Order(0), flags).page.is_some() {}
        mem
    }

    fn boost(mem: &mut Memory<NoTrace>) {
        let zone = mem.zones_up_to(NODE, ZoneKind::Normal)[0];
        mem.core.alloc.boost_for_stall(zone);
        assert!(mem.is_boosted(NODE, ZoneKind::Normal));
    }

    /// Walks a run by a script of passes, (pages freed, whether as much as wanted was scanned);
    /// returns the priority of each pass, and how the run ended.
    fn walk(mem: &mut Memory<NoTrace>, order: Order, script: &[(u64, bool)]) -> (Vec<u8>, Balance) {
        let mut run = Balance::begin(mem, NODE, order, ZoneKind::Normal);
        let mut priorities = Vec::new();
        loop {
            match run.step(mem, false) {
                BalanceNext::Shrink => {
                    let (freed, met) = script.get(priorities.len()).copied().unwrap_or((0, false));
                    priorities.push(run.sc.priority);
                    run.sc.nr_reclaimed += freed;
                    run.sc.nr_scanned = if met { run.sc.nr_to_reclaim } else { 0 };
                }
                BalanceNext::Rest { .. } => {}
                BalanceNext::Relieve(_) | BalanceNext::Pause(..) => panic!("no step of this run"),
                BalanceNext::Done { .. } => return (priorities, run),
            }
        }
    }

    #[test]
    fn a_balanced_node_needs_no_pass() {
        let mut mem = machine("linux-6.1");
        assert_eq!(walk(&mut mem, Order(0), &[]).0, []);
        assert_eq!(mem.reclaim.node(NODE).kswapd_failures, 0);
    }

    #[test]
    fn a_run_that_frees_nothing_goes_through_all_priorities_and_counts_as_failure() {
        let mut mem = full("linux-6.1");
        let all: Vec<u8> = (1..=12).rev().collect();
        assert_eq!(walk(&mut mem, Order(0), &[]).0, all);
        assert_eq!(mem.reclaim.node(NODE).kswapd_failures, 1);
        assert_eq!(walk(&mut mem, Order(0), &[(1, false)]).0, all, "a page is progress, but not enough");
        assert_eq!(mem.reclaim.node(NODE).kswapd_failures, 1, "a run that freed a page has not failed");
    }

    #[test]
    fn in_6_12_a_run_that_left_anonymous_pages_alone_in_vain_starts_over_with_them() {
        let walk = |kernel, trims: bool| {
            let mut mem = full(kernel);
            let mut run = Balance::begin(&mut mem, NODE, Order(0), ZoneKind::Normal);
            let mut priorities = Vec::new();
            loop {
                match run.step(&mut mem, false) {
                    BalanceNext::Shrink => {
                        priorities.push((run.sc.priority, run.sc.no_cache_trim));
                        run.sc.at_target.cache_trim = trims && !run.sc.no_cache_trim;
                    }
                    BalanceNext::Done { .. } => return (priorities, mem.reclaim.node(NODE).kswapd_failures),
                    _ => {}
                }
            }
        };
        let round = |no_cache_trim| (1..=12).rev().map(move |priority| (priority, no_cache_trim));
        let (once, twice): (Vec<_>, Vec<_>) =
            (round(false).collect(), round(false).chain(round(true)).collect());
        assert_eq!(walk("linux-6.12", true), (twice, 1));
        assert_eq!(walk("linux-6.12", false), (once.clone(), 1));
        assert_eq!(walk("linux-6.1", true), (once, 1), "{:?}", TrimFailure::GivesUp);
    }

    #[test]
    fn the_priority_stays_while_passes_scan_enough_and_free_something() {
        let mut mem = full("linux-6.1");
        let script = [(8, true), (8, true), (8, false), (0, true), (8, true)];
        let (priorities, _) = walk(&mut mem, Order(0), &script);
        assert_eq!(priorities[..6], [12, 12, 12, 11, 10, 10]);
    }

    #[test]
    fn enough_for_compaction_turns_a_run_for_a_block_into_one_for_pages() {
        let mut mem = full("linux-6.1");
        let (_, run) = walk(&mut mem, Order(3), &[(15, true)]);
        assert_eq!(run.order(), Order(3), "15 pages are fewer than twice a block of 8");
        let (_, run) = walk(&mut mem, Order(3), &[(15, true), (1, true)]);
        assert_eq!(run.order(), Order(0));
    }

    #[test]
    fn since_7_2_a_chunk_is_enough_for_compaction_of_any_block() {
        for (kernel, enough) in [("linux-6.12", 1024), ("linux-6.12+small-compact-gap", 32)] {
            let mut mem = full(kernel);
            let (_, run) = walk(&mut mem, Order(9), &[(enough - 1, true)]);
            assert_eq!(run.order(), Order(9), "{kernel}");
            let (_, run) = walk(&mut mem, Order(9), &[(enough - 1, true), (1, true)]);
            assert_eq!(run.order(), Order(0), "{kernel}");
        }
    }

    #[test]
    fn a_boost_that_nothing_was_freed_for_is_no_failure_since_7_0() {
        for (kernel, failures) in [("linux-6.12", 1), ("linux-6.12+boost-failure-forgiven", 0)] {
            let mut mem = machine(kernel);
            boost(&mut mem);
            let (priorities, _) = walk(&mut mem, Order(0), &[(0, false)]);
            assert_eq!(priorities, [12], "{kernel}");
            assert_eq!(mem.reclaim.node(NODE).kswapd_failures, failures, "{kernel}");
            let mut mem = full(kernel);
            let _ = walk(&mut mem, Order(0), &[]);
            assert_eq!(mem.reclaim.node(NODE).kswapd_failures, 1, "{kernel}: for a mark it is one");
        }
    }

    #[test]
    fn a_boost_is_worked_off_without_writing_and_at_priority_10_at_most() {
        let mut mem = machine("linux-5.4+fragment-stall");
        boost(&mut mem);
        let mut run = Balance::begin(&mut mem, NODE, Order(0), ZoneKind::Normal);
        let boosted = run.boost_left;
        assert!(boosted > 6, "{boosted}");
        let mut priorities = Vec::new();
        let end = loop {
            match run.step(&mut mem, true) {
                BalanceNext::Shrink => {
                    assert!(!run.sc.may_writepage && !run.sc.may_swap);
                    priorities.push(run.sc.priority);
                    run.sc.nr_reclaimed += if priorities.len() < 6 { 1 } else { boosted };
                }
                BalanceNext::Rest { wake } => assert!(wake, "enough is free"),
                BalanceNext::Relieve(_) | BalanceNext::Pause(..) => panic!("no step of this run"),
                end @ BalanceNext::Done { .. } => break end,
            }
        };
        assert_eq!(priorities, [12, 11, 10, 10, 10, 10]);
        assert_eq!(end, BalanceNext::Done { boosted: true });
        assert!(!mem.is_boosted(NODE, ZoneKind::Normal), "it is gone");
    }

    #[test]
    fn a_boost_round_that_frees_nothing_ends_the_run_which_has_failed_if_no_other_did() {
        for (script, priorities, failures) in [(&[(1, false)][..], &[12, 11][..], 0), (&[], &[12], 1)] {
            let mut mem = machine("linux-5.4+fragment-stall");
            boost(&mut mem);
            assert_eq!(walk(&mut mem, Order(0), script).0, priorities);
            assert_eq!(mem.reclaim.node(NODE).kswapd_failures, failures);
        }
    }

    #[test]
    fn slab_is_spared_while_a_boost_is_worked_off_before_5_4() {
        for (kernel, shrinks) in [
            ("linux-5.4-shrink-slab-when-boosted+fragment-stall", false),
            ("linux-5.4+fragment-stall", true),
            ("linux-4.20-rc1+nofragment+watermark-boost-v2+fragment-stall", true),
        ] {
            let mut mem = machine(kernel);
            boost(&mut mem);
            let mut run = Balance::begin(&mut mem, NODE, Order(0), ZoneKind::Normal);
            assert_eq!(run.step(&mut mem, false), BalanceNext::Shrink);
            assert_eq!(run.sc.may_shrinkslab, shrinks, "{kernel}");
        }
    }

    #[test]
    fn only_the_last_posting_wakes_stalled_tasks_while_the_reserve_is_low() {
        use FragmentStall::{Off, V1, V2, V3, V5};
        for (stall, wakes) in [(Off, false), (V1, false), (V2, false), (V3, false), (V5, true)] {
            assert_eq!(wakes_waiters(stall, true, || false), wakes, "{stall:?}");
            assert!(!wakes_waiters(stall, false, || false), "{stall:?}: no boost, or too little scanned");
            assert!(wakes_waiters(stall, true, || true) && wakes_waiters(stall, false, || true));
        }
    }
}
