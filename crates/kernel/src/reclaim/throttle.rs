//! Waits of reclaimers that are too fast for writeback or for kswapd (MECHANISMS 4.5, 6.8).

use mm::event::Trace;
use mm::feature::Feature;
use mm::gfp::Gfp;
use mm::scan::{Reclaimer, ScanControl};
use mm::vmstat::VmEvent;
use mm::zone::ZoneKind;
use units::{Nanos, NodeId};

use crate::handle::Kernel;
use crate::machine::{Machine, WaitReason};
use crate::time::{JIFFY, ticks_from};

impl<M: Machine, T: Trace> Kernel<M, T> {
    /// What a pass met tells kswapd, and those who reclaim beside it, about the state of writeback
    /// (the end of `shrink_node`; MECHANISMS 6.8).
    pub(crate) async fn heed_writeback(&self, node: NodeId, sc: &ScanControl) {
        let met = sc.met;
        let all_congested = met.dirty > 0 && met.dirty == met.congested;
        if sc.reclaimer == Reclaimer::Kswapd {
            self.mem(|mem| {
                let flags = &mut mem.node_reclaim[node.index()];
                flags.writeback |= met.writeback > 0 && met.writeback == met.taken;
                flags.dirty |= met.unqueued_dirty == met.file_taken;
                flags.congested |= all_congested;
            });
            if met.immediate > 0 {
                self.throttle_for_writeback(node).await;
            }
            return;
        }
        let congested = match sc.reclaimer {
            Reclaimer::Limit => all_congested,
            _ => self.mem(|mem| mem.node_reclaim[node.index()].congested),
        };
        // Up to 5.15 `wait_iff_congested` looks for a congested device, which none is any more.
        if congested && self.has_throttle() && !self.skips_throttle(node) {
            self.machine().sleep(JIFFY, WaitReason::Congestion).await;
        }
    }

    fn has_throttle(&self) -> bool {
        self.mem(|mem| mem.alloc.features.has(Feature::ReclaimThrottle))
    }

    /// Waits for pages to be written: 100 ms, or (5.16+) until enough are.
    async fn throttle_for_writeback(&self, node: NodeId) {
        let length = Nanos::from_millis(100);
        if !self.has_throttle() {
            self.machine().sleep(length, WaitReason::Congestion).await;
            return;
        }
        {
            let mut throttled = self.shared.throttled.borrow_mut();
            let throttled = &mut throttled[node.index()];
            if throttled.tasks == 0 {
                throttled.written = 0;
            }
            throttled.tasks += 1;
        }
        let queue = self.shared.queues[node.index()].writeback;
        let _ = self.machine().wait(queue, WaitReason::ThrottleWriteback, Some(length)).await;
        self.shared.throttled.borrow_mut()[node.index()].tasks -= 1;
    }

    /// Waiting makes no sense: kswapd has given up, or few of the pages are dirty
    /// (`skip_throttle_noprogress`).
    fn skips_throttle(&self, node: NodeId) -> bool {
        self.mem(|mem| {
            let reclaimable: u64 =
                ZoneKind::ALL.iter().map(|&kind| mem.zone_reclaimable_pages(node, kind)).sum();
            mem.is_hopeless(node) || 2 * mem.writeback.pending(node) <= reclaimable
        })
    }

    /// `throttle_direct_reclaim`: waits until kswapd has restored half of the min marks. Without
    /// FS at most one second, as the caller may hold what kswapd needs.
    pub(crate) async fn throttle_direct_reclaim(&self, node: NodeId, gfp: Gfp, class: ZoneKind) {
        if self.mem(|mem| mem.allow_direct_reclaim(node)) {
            return;
        }
        self.mem(|mem| mem.alloc.events.add(VmEvent::PgScanDirectThrottle, 1));
        let timeout = (!gfp.has(Gfp::FS)).then_some(Nanos::from_secs(1));
        let queue = self.shared.queues[node.index()].pfmemalloc;
        while !self.mem(|mem| mem.allow_direct_reclaim(node)) {
            self.wakeup_kswapd_for_reserve(node, class);
            let _ = self.machine().wait(queue, WaitReason::DirectReclaimThrottle, timeout).await;
            if timeout.is_some() || self.mem(|mem| mem.node_reclaim[node.index()].kswapd_failures) > 0 {
                return;
            }
        }
    }

    /// `consider_reclaim_throttle` (5.16+, MECHANISMS 4.5): a run that frees well wakes those that
    /// do not; a run at its last priority without any page sleeps a tick.
    pub(crate) async fn throttle_without_progress(&self, node: NodeId, sc: &ScanControl) {
        if !self.mem(|mem| mem.alloc.features.has(Feature::ReclaimThrottle)) || !sc.is_global() {
            return;
        }
        let queue = self.shared.queues[node.index()].no_progress;
        if sc.nr_reclaimed > (sc.nr_scanned >> 3) {
            self.wake_queue(queue);
        } else if sc.reclaimer == Reclaimer::Direct
            && sc.priority == 1
            && sc.nr_reclaimed == 0
            && !self.skips_throttle(node)
        {
            let tick = ticks_from(self.machine().now(), 1);
            let _ = self.machine().wait(queue, WaitReason::ThrottleNoProgress, Some(tick)).await;
        }
    }
}
