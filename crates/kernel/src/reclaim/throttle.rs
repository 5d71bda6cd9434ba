//! Waits of reclaimers that are too fast for writeback or for kswapd, as [`mm::decide::throttle`]
//! decides.

use mm::base::event::Trace;
use mm::base::gfp::Gfp;
use mm::base::layout::ZoneKind;
use mm::base::vmstat::VmEvent;
use mm::decide::throttle::{AfterNode, AfterPass};
use mm::reclaim::run::ScanControl;
use units::{Nanos, NodeId};

use crate::handle::Kernel;
use crate::machine::{Machine, WaitReason};
use crate::time::{JIFFY, ticks_from};

/// How long a reclaimer waits for the disk at most.
const LONG_WAIT: Nanos = Nanos::from_millis(100);

impl<M: Machine, T: Trace> Kernel<M, T> {
    /// After a pass over a node.
    pub(crate) async fn heed_writeback(&self, node: NodeId, sc: &ScanControl) {
        match self.mem(|mem| mem.after_pass(node, sc)) {
            AfterPass::GoOn => {}
            AfterPass::UntilWritten => self.wait_until_written(node).await,
            AfterPass::CongestionWait => self.machine().sleep(LONG_WAIT, WaitReason::Congestion).await,
            AfterPass::CongestionTick => self.machine().sleep(JIFFY, WaitReason::Congestion).await,
        }
    }

    /// Waits at most 100 ms until enough pages are written.
    async fn wait_until_written(&self, node: NodeId) {
        {
            let mut throttled = self.shared.throttled.borrow_mut();
            let throttled = &mut throttled[node.index()];
            if throttled.tasks == 0 {
                throttled.written = 0;
            }
            throttled.tasks += 1;
        }
        let queue = self.shared.queues[node.index()].writeback;
        let _ = self.machine().wait(queue, WaitReason::ThrottleWriteback, Some(LONG_WAIT)).await;
        self.shared.throttled.borrow_mut()[node.index()].tasks -= 1;
    }

    /// `throttle_direct_reclaim`: waits until kswapd has restored half of the min marks. Without
    /// FS at most one second, as the caller may hold what kswapd needs.
    pub(crate) async fn throttle_direct_reclaim(&self, node: NodeId, gfp: Gfp, highest_zoneidx: ZoneKind) {
        if self.mem(|mem| mem.allow_direct_reclaim(node)) {
            return;
        }
        self.mem(|mem| mem.core.alloc.events.add(VmEvent::PgScanDirectThrottle, 1));
        let timeout = (!gfp.has(Gfp::FS)).then_some(Nanos::from_secs(1));
        let queue = self.shared.queues[node.index()].pfmemalloc;
        while !self.mem(|mem| mem.allow_direct_reclaim(node)) {
            self.wakeup_kswapd_for_reserve(node, highest_zoneidx);
            let _ = self.machine().wait(queue, WaitReason::DirectReclaimThrottle, timeout).await;
            if timeout.is_some() || self.mem(|mem| mem.reclaim.node(node).kswapd_failures) > 0 {
                return;
            }
        }
    }

    /// After the passes over a node at one priority.
    pub(crate) async fn throttle_without_progress(&self, node: NodeId, sc: &ScanControl) {
        let queue = self.shared.queues[node.index()].no_progress;
        match self.mem(|mem| mem.after_node(node, sc)) {
            AfterNode::GoOn => {}
            AfterNode::WakeOthers => self.wake_queue(queue),
            AfterNode::Wait => {
                let tick = ticks_from(self.machine().now(), 1);
                let _ = self.machine().wait(queue, WaitReason::ThrottleNoProgress, Some(tick)).await;
            }
        }
    }
}
