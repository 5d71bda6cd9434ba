//! kswapd: the background reclaimer of a node. What it does is decided by [`mm::decide::balance`].
//!
//! kcompactd is woken after a boosted run and before dozing. Neighbours: [`super::pass`],
//! [`crate::compact::kcompactd`].

use mm::base::event::{Trace, TraceEvent};
use mm::base::layout::ZoneKind;
use mm::decide::balance::{Balance, BalanceNext, FallAsleep, SleepNext};
use units::{NodeId, Order};

use crate::handle::Kernel;
use crate::machine::{CostOp, Machine, WaitReason, Woken};
use crate::queues::KswapdRequest;
use crate::time::{HZ, ticks_from};

/// Ticks that kswapd dozes before it sleeps for good.
const DOZE_TICKS: u64 = HZ / 10;

impl<M: Machine, T: Trace> Kernel<M, T> {
    /// The thread.
    pub(crate) async fn kswapd(&self, node: NodeId) {
        let mut last = KswapdRequest { order: Order(0), highest_zoneidx: Some(ZoneKind::Movable) };
        let mut reclaim_order = last.order;
        loop {
            let highest_zoneidx = last.highest_zoneidx.unwrap_or(ZoneKind::Movable);
            self.kswapd_try_to_sleep(node, last.order, reclaim_order, highest_zoneidx).await;
            // Take over what was asked for, and reset it for the next requests.
            let request = self.take_request(node);
            last = KswapdRequest {
                order: request.order,
                highest_zoneidx: Some(request.highest_zoneidx.unwrap_or(highest_zoneidx)),
            };
            let wake = TraceEvent::VmscanKswapdWake { nid: node, order: last.order };
            self.mem(|mem| mem.core.alloc.trace.event(wake));
            reclaim_order =
                self.balance_pgdat(node, last.order, last.highest_zoneidx.unwrap_or(ZoneKind::Movable)).await;
        }
    }

    fn take_request(&self, node: NodeId) -> KswapdRequest {
        std::mem::take(&mut self.shared.kswapd_requests.borrow_mut()[node.index()])
    }

    async fn kswapd_try_to_sleep(
        &self,
        node: NodeId,
        order: Order,
        reclaim_order: Order,
        highest_zoneidx: ZoneKind,
    ) {
        let (machine, queues) = (self.machine(), self.shared.queues[node.index()]);
        let mut fall = FallAsleep::new(node, order, reclaim_order, highest_zoneidx);
        let mut woken = Woken::TimedOut;
        loop {
            match self.mem(|mem| fall.step(mem, woken == Woken::Signalled)) {
                SleepNext::LetWaitersGo => {
                    machine.wake_all(queues.pfmemalloc);
                }
                SleepNext::Doze => {
                    self.wakeup_kcompactd(node, order, highest_zoneidx);
                    let doze = ticks_from(machine.now(), DOZE_TICKS);
                    woken = machine.wait(queues.kswapd, WaitReason::KswapdDoze, Some(doze)).await;
                    if woken == Woken::Signalled {
                        self.add_request(node, reclaim_order, highest_zoneidx);
                    }
                }
                SleepNext::Sleep => {
                    let _ = machine.wait(queues.kswapd, WaitReason::KswapdIdle, None).await;
                    return;
                }
                SleepNext::Stay => return,
            }
        }
    }

    /// `balance_pgdat`: returns the order that it still reclaims for.
    async fn balance_pgdat(&self, node: NodeId, order: Order, highest_zoneidx: ZoneKind) -> Order {
        let machine = self.machine();
        let waiters = self.shared.queues[node.index()].pfmemalloc;
        let mut run = self.mem(|mem| Balance::begin(mem, node, order, highest_zoneidx));
        loop {
            let anybody_waits = machine.has_waiters(waiters);
            match self.mem(|mem| run.step(mem, anybody_waits)) {
                BalanceNext::Shrink => self.shrink_node(node, &mut run.sc).await,
                BalanceNext::Rest { wake } => {
                    if wake {
                        machine.wake_all(waiters);
                    }
                    machine.cond_resched().await; // kthread_freezable_should_stop
                }
                BalanceNext::Done { boosted } => {
                    machine.charge(CostOp::WalkMemcg, 1);
                    if boosted {
                        self.wakeup_kcompactd(node, mm::alloc::pageblock::PAGEBLOCK_ORDER, highest_zoneidx);
                    }
                    return run.order();
                }
            }
        }
    }
}
