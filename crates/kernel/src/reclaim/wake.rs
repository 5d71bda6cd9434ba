//! Waking kswapd: whoever finds memory short asks it for an order and a highest zone.
//!
//! Next: [`super::kswapd`] takes the requests.

use mm::base::event::Trace;
use mm::base::layout::ZoneKind;
use units::{NodeId, Order};

use crate::handle::Kernel;
use crate::machine::Machine;

impl<M: Machine, T: Trace> Kernel<M, T> {
    pub(crate) fn add_request(&self, node: NodeId, order: Order, highest_zoneidx: ZoneKind) {
        let request = &mut self.shared.kswapd_requests.borrow_mut()[node.index()];
        request.order = request.order.max(order);
        request.highest_zoneidx = request.highest_zoneidx.max(Some(highest_zoneidx));
    }

    /// `wakeup_kswapd`: notes the request; wakes if it sleeps and there is something to do. False
    /// when it sleeps on, as reclaim would not help.
    pub(crate) fn wakeup_kswapd(&self, node: NodeId, order: Order, highest_zoneidx: ZoneKind) -> bool {
        self.add_request(node, order, highest_zoneidx);
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

    /// `allow_direct_reclaim` found the reserve low: kswapd must be awake, for zones up to Normal.
    pub(crate) fn wakeup_kswapd_for_reserve(&self, node: NodeId, highest_zoneidx: ZoneKind) {
        let queue = self.shared.queues[node.index()].kswapd;
        if self.machine().has_waiters(queue) {
            self.add_request(node, Order(0), highest_zoneidx.min(ZoneKind::Normal));
            self.machine().wake_all(queue);
        }
    }
}
