//! Waits of reclaimers that are too fast for writeback or for kswapd, as [`mm::decide::throttle`]
//! decides.

use mm::base::event::Trace;
use mm::base::gfp::Gfp;
use mm::decide::throttle::{AfterNode, AfterPass, ReserveNext, ReserveWait};
use mm::reclaim::run::ScanControl;
use units::{Nanos, NodeId};

use crate::handle::Kernel;
use crate::machine::{Machine, WaitReason};
use crate::tasks::process::Process;

impl<M: Machine, T: Trace> Kernel<M, T> {
    /// After a pass over a node that freed so many pages.
    pub(crate) async fn heed_writeback(&self, node: NodeId, sc: &ScanControl, freed: u64) {
        if self.any_congested() {
            self.mem(|mem| mem.note_congestion(node, sc));
        }
        match self.mem(|mem| mem.after_pass(node, sc, freed)) {
            AfterPass::GoOn => {}
            AfterPass::UntilWritten(longest) => self.wait_until_written(node, longest).await,
            AfterPass::CongestionWait(length) => self.congestion_wait(length).await,
            AfterPass::CongestionTick => self.machine().sleep(self.jiffy(), WaitReason::Congestion).await,
        }
    }

    /// Waits until enough pages are written.
    async fn wait_until_written(&self, node: NodeId, longest: Nanos) {
        let waiters = &self.shared.writeback_waiters;
        waiters.borrow_mut()[node.index()].begin();
        let queue = self.shared.queues[node.index()].writeback;
        let _ = self.machine().wait(queue, WaitReason::ThrottleWriteback, Some(longest)).await;
        waiters.borrow_mut()[node.index()].end();
    }

    /// `throttle_direct_reclaim`, as [`ReserveWait`] decides; no process: a kernel thread.
    pub(crate) async fn throttle_direct_reclaim(&self, process: Option<&Process>, node: NodeId, gfp: Gfp) {
        let queue = self.shared.queues[node.index()].pfmemalloc;
        let mut wait = ReserveWait::new(node, gfp, process.is_none());
        loop {
            let (now, dying) = (self.machine().now(), process.is_some_and(Process::is_killed));
            match self.mem(|mem| wait.step(mem, now, dying)) {
                ReserveNext::GoOn => return,
                ReserveNext::Wait(timeout) => {
                    self.wakeup_kswapd_for_reserve(node);
                    let _ = self.machine().wait(queue, WaitReason::DirectReclaimThrottle, timeout).await;
                }
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
                let tick = Some(self.ticks(1));
                let _ = self.machine().wait(queue, WaitReason::ThrottleNoProgress, tick).await;
            }
        }
    }
}
