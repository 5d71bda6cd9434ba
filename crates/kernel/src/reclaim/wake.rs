//! Waking kswapd: whoever finds memory short asks it for an order and a highest zone.
//!
//! Next: [`super::kswapd`] takes the requests.

use mm::base::event::Trace;
use mm::base::layout::ZoneKind;
use mm::decide::kswapd::Request;
use units::{NodeId, Order};

use crate::handle::Kernel;
use crate::machine::Machine;

impl<M: Machine, T: Trace> Kernel<M, T> {
    /// One step on what kswapd of a node is asked for.
    pub(crate) fn kswapd_request<R>(&self, node: NodeId, step: impl FnOnce(&mut Request) -> R) -> R {
        step(&mut self.shared.kswapd_requests.borrow_mut()[node.index()])
    }

    /// Wakes those of all nodes for single pages.
    pub(crate) fn wakeup_kswapds(&self) {
        for node in 0..self.shared.queues.len() {
            let node = NodeId(u8::try_from(node).expect("few nodes"));
            let _ = self.wakeup_kswapd(node, Order(0), ZoneKind::Normal);
        }
    }

    /// `wakeup_kswapd`: notes the request; wakes if it sleeps and there is something to do. False
    /// when it sleeps on, as reclaim would not help.
    pub(crate) fn wakeup_kswapd(&self, node: NodeId, order: Order, highest_zoneidx: ZoneKind) -> bool {
        self.kswapd_request(node, |request| request.add(order, highest_zoneidx));
        let queue = self.shared.queues[node.index()].kswapd;
        if !self.machine().has_waiters(queue) {
            return true;
        }
        let wakes = self.mem(|mem| mem.has_work_for_kswapd(node, order, highest_zoneidx));
        if wakes {
            self.machine().wake_all(queue);
        }
        wakes
    }

    /// `allow_direct_reclaim` found the reserve low: kswapd must be awake.
    pub(crate) fn wakeup_kswapd_for_reserve(&self, node: NodeId) {
        let queue = self.shared.queues[node.index()].kswapd;
        if self.machine().has_waiters(queue) {
            self.kswapd_request(node, Request::add_for_reserve);
            self.machine().wake_all(queue);
        }
    }
}
