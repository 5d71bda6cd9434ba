//! Pauses of requests and reclaimers that found no memory, as [`mm::decide::backoff`] decides, and who ends
//! them (MECHANISMS 4.1 to 4.3).
//!
//! `congestion_wait` sleeps on one queue for all devices, which the completion of a write wakes
//! ([`mm::decide::congestion`]). Each zone has a queue of its own for those who wait for pressure on it to ease;
//! whoever reclaimed looks at the zone and wakes them. Next: [`super::run`], [`super::kswapd`],
//! [`crate::alloc::slow_path`].

use mm::base::event::Trace;
use mm::base::layout::ZoneId;
use mm::base::vmstat::VmEvent;
use mm::decide::backoff::{Pause, Site};
use units::{Nanos, NodeId};

use crate::handle::Kernel;
use crate::machine::{Machine, WaitReason};

impl<M: Machine, T: Trace> Kernel<M, T> {
    /// A pause at `site`, for want of pages of `zone`.
    pub(crate) async fn pause(&self, site: Site, zone: ZoneId) {
        let any_congested = self.any_congested();
        match self.mem(|mem| mem.pause(site, zone, any_congested)) {
            Pause::Congestion(longest) => self.congestion_wait(longest).await,
            Pause::Pressure(longest) => {
                let (queue, timeout) = (self.shared.pressure[zone.index()], self.timeout(longest));
                let _ = self.machine().wait(queue, WaitReason::PressureWait, Some(timeout)).await;
            }
            Pause::OwnQueue(longest) => {
                let node = self.mem(|mem| mem.core.alloc.zone(zone).node);
                let (queue, timeout) = (self.shared.queues[node.index()].kswapd, self.timeout(longest));
                let _ = self.machine().wait(queue, WaitReason::PressureWait, Some(timeout)).await;
            }
            Pause::Rest => self.machine().cond_resched().await,
        }
    }

    /// `congestion_wait`: until a device that was written to has room, or `longest` has passed.
    pub(crate) async fn congestion_wait(&self, longest: Nanos) {
        self.mem(|mem| mem.core.alloc.events.add(VmEvent::PerfCongestionWait, 1));
        let (queue, timeout) = (self.shared.wait.congestion, self.timeout(longest));
        let _ = self.machine().wait(queue, WaitReason::Congestion, Some(timeout)).await;
    }

    /// Whether some device is marked as congested.
    pub(crate) fn any_congested(&self) -> bool {
        let rule = self.mem(|mem| mem.core.rules().device_congestion);
        self.shared.congestion.borrow().is_any(rule)
    }

    /// `check_zone_pressure`
    pub(crate) fn check_zone_pressure(&self, zone: ZoneId) {
        let queue = self.shared.pressure[zone.index()];
        if self.machine().has_waiters(queue) && self.mem(|mem| mem.pressure_is_over(zone)) {
            self.machine().wake_all(queue);
        }
    }

    /// [`Kernel::check_zone_pressure`] for all zones of a node.
    pub(crate) fn check_node_pressure(&self, node: NodeId) {
        let zone_of = |place| self.mem(|mem| mem.core.alloc.nodes()[node.index()].zones.get(place).copied());
        (0..).map_while(zone_of).for_each(|zone| self.check_zone_pressure(zone));
    }
}
