//! kswapd: the background reclaimer of a node (MECHANISMS 5, MECHANISMS-6X 5.1, 5.2, 6.2).
//!
//! ```text
//!   sleep until woken --> balance: priorities 12..1 until some zone is above its high mark
//!        ^                         (a boosted zone first costs the boost, at priority 10 at most)
//!        +-- doze 100 ms <---------+
//! ```
//! kcompactd is woken after a boosted run and before dozing. Left out: hibernation.

use mm::MemcgId;
use mm::alloc::watermark::Mark;
use mm::alloc::zone::Zone;
use mm::base::event::{Trace, TraceEvent};
use mm::base::layout::{ZoneId, ZoneKind};
use mm::base::vmstat::VmEvent;
use mm::reclaim::run::{DEF_PRIORITY, MAX_RECLAIM_RETRIES, ScanControl};
use mm::version::feature::{Feature, FragmentStall, WatermarkBoost};
use units::{NodeId, Order, Pages};

use crate::kernel::{HZ, Kernel, KswapdRequest, ticks_from};
use crate::machine::{CostOp, Machine, WaitReason, Woken};

/// Ticks that kswapd dozes before it sleeps for good.
const DOZE_TICKS: u64 = HZ / 10;

/// Whether the end of a pass wakes those on `pfmemalloc_wait`: when enough of the reserve is free
/// for direct reclaimers, and with the last posting of the stall also when the pass worked off a
/// boost and scanned enough, whatever is free (MECHANISMS 2.9 e).
fn wakes_waiters(stall: Option<FragmentStall>, works_boost_off: bool, allow_direct_reclaim: bool) -> bool {
    allow_direct_reclaim || (works_boost_off && stall == Some(FragmentStall::V5))
}

impl<M: Machine, T: Trace> Kernel<M, T> {
    /// The thread.
    pub(crate) async fn kswapd(&self, node: NodeId) {
        let mut last = KswapdRequest { order: Order(0), class: Some(ZoneKind::Movable) };
        let mut reclaim_order = last.order;
        loop {
            let class = last.class.unwrap_or(ZoneKind::Movable);
            self.kswapd_try_to_sleep(node, last.order, reclaim_order, class).await;
            // Take over what was asked for, and reset it for the next requests.
            let request = self.take_request(node);
            last = KswapdRequest { order: request.order, class: Some(request.class.unwrap_or(class)) };
            self.trace(TraceEvent::VmscanKswapdWake { nid: node, order: last.order });
            reclaim_order =
                self.balance_pgdat(node, last.order, last.class.unwrap_or(ZoneKind::Movable)).await;
        }
    }

    fn trace(&self, event: TraceEvent) {
        self.mem(|mem| mem.core.alloc.trace.event(event));
    }

    fn take_request(&self, node: NodeId) -> KswapdRequest {
        std::mem::take(&mut self.shared.kswapd_requests.borrow_mut()[node.index()])
    }

    fn add_request(&self, node: NodeId, order: Order, class: ZoneKind) {
        let request = &mut self.shared.kswapd_requests.borrow_mut()[node.index()];
        request.order = request.order.max(order);
        request.class = request.class.max(Some(class));
    }

    async fn kswapd_try_to_sleep(&self, node: NodeId, order: Order, reclaim_order: Order, class: ZoneKind) {
        let queue = self.shared.queues[node.index()].kswapd;
        let mut woken_early = false;
        if self.prepare_to_sleep(node, reclaim_order, class) {
            let zones = self.zones_up_to(node, ZoneKind::Movable);
            self.mem(|mem| zones.iter().for_each(|&zone| mem.reset_skip_bits(zone)));
            self.wakeup_kcompactd(node, order, class);
            let doze = ticks_from(self.machine().now(), DOZE_TICKS);
            let woken = self.machine().wait(queue, WaitReason::KswapdDoze, Some(doze)).await;
            if woken == Woken::Signalled {
                woken_early = true;
                self.add_request(node, reclaim_order, class);
            }
        }
        if !woken_early && self.prepare_to_sleep(node, order, class) {
            self.trace(TraceEvent::VmscanKswapdSleep { nid: node });
            let _ = self.machine().wait(queue, WaitReason::KswapdIdle, None).await;
            return;
        }
        let quickly =
            if woken_early { VmEvent::KswapdLowWmarkHitQuickly } else { VmEvent::KswapdHighWmarkHitQuickly };
        self.mem(|mem| mem.core.alloc.events.add(quickly, 1));
    }

    /// `prepare_kswapd_sleep`: nobody is left behind, and the node is balanced or hopeless.
    fn prepare_to_sleep(&self, node: NodeId, order: Order, class: ZoneKind) -> bool {
        self.machine().wake_all(self.shared.queues[node.index()].pfmemalloc);
        let failures = self.mem(|mem| mem.reclaim.node(node).kswapd_failures);
        if failures < MAX_RECLAIM_RETRIES && !self.balanced(node, order, class) {
            return false;
        }
        self.mem(|mem| mem.reclaim.note_sleep(node));
        true
    }

    pub(crate) fn zones_up_to(&self, node: NodeId, class: ZoneKind) -> Vec<ZoneId> {
        self.mem(|mem| {
            mem.core.alloc.nodes()[node.index()]
                .zones
                .iter()
                .copied()
                .filter(|&id| mem.core.alloc.zone(id).kind <= class)
                .collect()
        })
    }

    /// Whether some zone of the node up to `class` is as `holds` says.
    fn any_zone(&self, node: NodeId, class: ZoneKind, holds: impl Fn(&Zone) -> bool) -> bool {
        self.mem(|mem| {
            let zones = mem.core.alloc.nodes()[node.index()].zones.iter().map(|&id| mem.core.alloc.zone(id));
            zones.take_while(|zone| zone.kind <= class).any(holds)
        })
    }

    /// `pgdat_balanced`: some zone up to `class` is above its high mark, boost included.
    fn balanced(&self, node: NodeId, order: Order, class: ZoneKind) -> bool {
        self.any_zone(node, class, |zone| zone.above(Mark::High, order, class))
    }

    fn boosted(&self, node: NodeId, class: ZoneKind) -> bool {
        self.any_zone(node, class, |zone| zone.watermarks.boost() > Pages::ZERO)
    }

    /// `wakeup_kswapd`: notes the request; wakes if it sleeps and there is something to do. False
    /// when it sleeps on, as reclaim would not help.
    pub(crate) fn wakeup_kswapd(&self, node: NodeId, order: Order, class: ZoneKind) -> bool {
        self.add_request(node, order, class);
        let queue = self.shared.queues[node.index()].kswapd;
        if !self.machine().has_waiters(queue) {
            return true;
        }
        let hopeless = self.mem(|mem| mem.reclaim.node(node).kswapd_failures) >= MAX_RECLAIM_RETRIES;
        if hopeless || (self.balanced(node, order, class) && !self.boosted(node, class)) {
            return false;
        }
        self.machine().wake_all(queue);
        true
    }

    /// `allow_direct_reclaim` found the reserve low: kswapd must be awake, for zones up to Normal.
    pub(crate) fn wakeup_kswapd_for_reserve(&self, node: NodeId, class: ZoneKind) {
        let queue = self.shared.queues[node.index()].kswapd;
        if self.machine().has_waiters(queue) {
            self.add_request(node, Order(0), class.min(ZoneKind::Normal));
            self.machine().wake_all(queue);
        }
    }

    fn set_reclaim_active(&self, zones: &[ZoneId], active: bool) {
        self.mem(|mem| zones.iter().for_each(|&id| mem.core.alloc.set_reclaim_active(id, active)));
    }

    /// `balance_pgdat`: returns the order that it still reclaims for.
    async fn balance_pgdat(&self, node: NodeId, mut order: Order, class: ZoneKind) -> Order {
        let zones = self.zones_up_to(node, class);
        let boosts: Vec<Pages> =
            self.mem(|mem| zones.iter().map(|&id| mem.core.alloc.zone(id).watermarks.boost()).collect());
        let mut boost_left: u64 = boosts.iter().map(|boost| boost.0).sum();
        let was_boosted = boost_left > 0;
        self.mem(|mem| mem.core.alloc.events.add(VmEvent::PageOutRun, 1));
        self.set_reclaim_active(&zones, true);
        let mut sc = ScanControl::kswapd(class);
        loop {
            let balanced = self.balanced(node, order, class);
            if !balanced && boost_left > 0 {
                // Ordinary reclaim has precedence; the marks stay boosted until the end.
                boost_left = 0;
                sc.priority = DEF_PRIORITY;
                continue;
            }
            if boost_left == 0 && balanced {
                break;
            }
            let before = sc.nr_reclaimed;
            let met_target = self.kswapd_pass(node, &zones, &mut order, boost_left > 0, &mut sc).await;
            let freed = sc.nr_reclaimed - before;
            let boost_was = boost_left;
            boost_left = boost_left.saturating_sub(freed);
            if boost_left > 0 && freed == 0 {
                break;
            }
            // Boost reclaim never goes below priority 10.
            let held = met_target || (boost_was > 0 && sc.priority == DEF_PRIORITY - 2);
            if !held || freed == 0 {
                sc.priority -= 1;
                if sc.priority < 1 {
                    break;
                }
            }
        }
        self.finish_balance(node, &zones, was_boosted.then_some(&boosts), &sc);
        if was_boosted {
            // A pageblock that was mixed may be made whole again.
            self.wakeup_kcompactd(node, mm::alloc::pageblock::PAGEBLOCK_ORDER, class);
        }
        order
    }

    /// One pass of kswapd over its node (`kswapd_shrink_node`): true when it scanned as much as
    /// the high marks add up to, so that the priority need not be raised.
    async fn kswapd_pass(
        &self,
        node: NodeId,
        zones: &[ZoneId],
        order: &mut Order,
        boosting: bool,
        sc: &mut ScanControl,
    ) -> bool {
        let features = self.mem(|mem| mem.core.alloc.features());
        let spare_slab = boosting
            && features.watermark_boost() != Some(WatermarkBoost::V2)
            && !features.has(Feature::ShrinkSlabWhenBoosted);
        sc.may_writepage = !boosting;
        sc.may_shrinkslab = !spare_slab;
        sc.nr_to_reclaim = self.mem(|mem| {
            zones.iter().map(|&id| mem.core.alloc.zone(id).watermarks.mark(Mark::High).max(32)).sum()
        });
        sc.nr_scanned = 0;
        sc.order = *order;
        self.shrink_node(node, sc).await;
        if *order > Order(0) && sc.nr_reclaimed >= (2 << order.0) {
            *order = Order(0);
            // Enough for compaction; go on for single pages.
        }
        let queue = self.shared.queues[node.index()].pfmemalloc;
        let met_target = sc.nr_scanned >= sc.nr_to_reclaim;
        let works_boost_off = boosting && met_target;
        let stall = features.fragment_stall();
        if self.machine().has_waiters(queue)
            && wakes_waiters(stall, works_boost_off, self.allow_direct_reclaim(node))
        {
            self.machine().wake_all(queue);
        }
        self.machine().cond_resched().await; // kthread_freezable_should_stop
        met_target
    }

    fn finish_balance(&self, node: NodeId, zones: &[ZoneId], boosts: Option<&Vec<Pages>>, sc: &ScanControl) {
        self.mem(|mem| {
            if sc.nr_reclaimed == 0 && sc.priority < 1 {
                mem.reclaim.note_failure(node);
            }
            for (&id, &boost) in zones.iter().zip(boosts.into_iter().flatten()) {
                // What was boosted meanwhile stays for the next run.
                mem.core.alloc.reduce_boost(id, boost);
            }
            mem.snapshot_refaults(MemcgId::ROOT, node);
        });
        self.set_reclaim_active(zones, false);
        self.machine().charge(CostOp::WalkMemcg, 1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_last_posting_wakes_stalled_tasks_while_the_reserve_is_low() {
        use FragmentStall::{V1, V2, V3, V5};
        for (stall, wakes) in
            [(None, false), (Some(V1), false), (Some(V2), false), (Some(V3), false), (Some(V5), true)]
        {
            assert_eq!(wakes_waiters(stall, true, false), wakes, "{stall:?}");
            assert!(!wakes_waiters(stall, false, false), "{stall:?}: no boost, or too little scanned");
            assert!(wakes_waiters(stall, true, true) && wakes_waiters(stall, false, true), "{stall:?}");
        }
    }
}
