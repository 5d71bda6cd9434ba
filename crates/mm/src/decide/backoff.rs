//! The pauses of those who found no memory, and what they wait for (MECHANISMS 4.1 to 4.3, 4.6, 5.5).
//!
//! ```text
//!                                      congestion-wait     pressure-wait        wait-iff-congested
//!   a request between two rounds       congestion_wait     the zone's queue     congestion_wait, or nothing
//!   direct reclaim, hard pressed       congestion_wait     congestion_wait      congestion_wait, or nothing
//!   kswapd, hard pressed               congestion_wait     its own queue        congestion_wait, or nothing
//! ```
//! `congestion_wait` ends when a device that was written to has room again, or its time is over: with nothing
//! but reads in flight it always lasts to its end. On the queue of a zone (`zonepressure_wait` of source 1)
//! tasks sleep until whoever reclaimed finds the zone above its low mark.
//!
//! Left out: signals, which would end the wait on a zone. Neighbours: [`super::retry_paused`],
//! [`super::priority`] and [`super::balance_zones`] ask for pauses; [`super::congestion`] for devices.

use units::{Nanos, Order};

use crate::alloc::watermark::Mark;
use crate::base::event::Trace;
use crate::base::layout::{ZoneId, ZoneKind};
use crate::base::vmstat::VmEvent;
use crate::memory::Memory;
use crate::version::rules::Backoff;

/// The pause of a request: `HZ` / 50.
const SHORT: Nanos = Nanos::from_millis(20);
/// The pause of a reclaimer: `HZ` / 10.
const LONG: Nanos = Nanos::from_millis(100);

/// Where a task pauses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Site {
    /// `__alloc_pages_high_priority`: it may take the last page, must not fail, and found none.
    HighPriority,
    /// `__alloc_pages_slowpath`, between two rounds.
    SlowPath,
    /// `do_try_to_free_pages`, between two priorities.
    DirectReclaim,
    /// `balance_pgdat`, between two priorities.
    Kswapd,
}

/// What a pause is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub enum Pause {
    /// Sleep on the queue for congested devices, at most as long.
    Congestion(Nanos),
    /// Sleep on the queue of the zone, at most as long.
    Pressure(Nanos),
    /// kswapd sleeps on its own queue, at most as long.
    OwnQueue(Nanos),
    /// Let others run.
    Rest,
}

impl<T: Trace> Memory<T> {
    /// What a pause at `site` for want of pages of `zone` is, and counts it; `any_congested`: some device is.
    pub fn pause(&mut self, site: Site, zone: ZoneId, any_congested: bool) -> Pause {
        let events = &mut self.core.alloc.events;
        let length = match site {
            Site::HighPriority => {
                events.add(VmEvent::PerfPauseHighPriority, 1);
                SHORT
            }
            Site::SlowPath => {
                events.add(VmEvent::PerfPauseSlowPath, 1);
                SHORT
            }
            Site::DirectReclaim | Site::Kswapd => LONG,
        };
        match (self.core.rules().backoff, site) {
            (Backoff::CongestionWait, _) | (Backoff::PressureWait, Site::DirectReclaim) => {
                Pause::Congestion(length)
            }
            (Backoff::PressureWait, Site::Kswapd) => Pause::OwnQueue(length),
            (Backoff::PressureWait, Site::HighPriority | Site::SlowPath) => Pause::Pressure(length),
            (Backoff::WaitIffCongested, _) => {
                let node = self.core.alloc.zone(zone).node;
                let waits = any_congested && self.reclaim.node(node).congested;
                if waits { Pause::Congestion(length) } else { Pause::Rest }
            }
        }
    }

    /// Whether those who wait on the queue of a zone may go on (`check_zone_pressure`): it is above its low
    /// mark for single pages.
    pub fn pressure_is_over(&self, zone: ZoneId) -> bool {
        self.core.alloc.zone(zone).above(Mark::Low, Order(0), ZoneKind::Dma)
    }
}

#[cfg(test)]
mod tests {
    use std_alloc::format;

    use units::NodeId;

    use super::*;
    use crate::decide::scene::{Zones, machine};

    const ZONE: ZoneId = ZoneId(0);

    fn pauses(kernel: &str, any_congested: bool, node_congested: bool) -> [Pause; 4] {
        let mut mem = machine(kernel);
        if node_congested {
            mem.reclaim.note_congested(NodeId(0));
        }
        [Site::HighPriority, Site::SlowPath, Site::DirectReclaim, Site::Kswapd]
            .map(|site| mem.pause(site, ZONE, any_congested))
    }

    #[test]
    fn each_back_off_sleeps_where_it_says_for_as_long_as_the_site_does() {
        use Pause::{Congestion, OwnQueue, Pressure, Rest};
        let kernel = |backoff| machine(backoff).core.rules().backoff;
        assert_eq!(kernel("linux-2.6.32"), Backoff::CongestionWait);
        assert_eq!(
            pauses("linux-2.6.32", false, false),
            [Congestion(SHORT), Congestion(SHORT), Congestion(LONG), Congestion(LONG)]
        );
        let pressure = "linux-2.6.32+pressure-wait";
        assert_eq!(kernel(pressure), Backoff::PressureWait);
        assert_eq!(
            pauses(pressure, true, true),
            [Pressure(SHORT), Pressure(SHORT), Congestion(LONG), OwnQueue(LONG)]
        );
        let iff = "linux-2.6.32+wait-iff-congested";
        assert_eq!(kernel(iff), Backoff::WaitIffCongested);
        assert_eq!(pauses(iff, true, false), [Rest; 4], "dirty pages do not wait for that device");
        assert_eq!(pauses(iff, false, true), [Rest; 4], "it is not congested any more");
        assert_eq!(pauses(iff, true, true), pauses("linux-2.6.32", true, true));
    }

    #[test]
    fn the_pauses_of_requests_are_counted_by_where_they_are_whatever_they_are() {
        for kernel in ["linux-2.6.32", "linux-2.6.32+pressure-wait", "linux-2.6.32+wait-iff-congested"] {
            let mut mem = machine(kernel);
            let sites = [Site::SlowPath, Site::HighPriority, Site::SlowPath, Site::Kswapd];
            sites.map(|site| mem.pause(site, ZONE, false)).into_iter().for_each(drop);
            let count = |event| mem.core.alloc.events.get(event);
            let counted = [VmEvent::PerfPauseSlowPath, VmEvent::PerfPauseHighPriority].map(count);
            assert_eq!(counted, [2, 1], "{kernel}");
        }
    }

    #[test]
    fn pressure_is_over_above_the_low_mark_though_the_zone_keeps_a_reserve() {
        let kinds = [ZoneKind::Dma32, ZoneKind::Normal];
        let mut zones = Zones::full("linux-2.6.32+pressure-wait", &kinds);
        let low = zones.mark(ZoneKind::Dma32, Mark::Low);
        let zone = zones.zone(ZoneKind::Dma32);
        zones.free(ZoneKind::Dma32, 0, low);
        assert!(!zones.mem.pressure_is_over(zone));
        zones.free(ZoneKind::Dma32, 0, 1);
        assert!(zones.mem.pressure_is_over(zone));
        assert!(!zones.mem.pressure_is_over(zones.zone(ZoneKind::Normal)), "{}", format!("{low}"));
    }
}
