//! kswapd between two runs: what it works for, and when it sleeps (`wakeup_kswapd`, `kswapd`,
//! `kswapd_try_to_sleep`; MECHANISMS 5.1, 5.4).
//!
//! ```text
//!   Request     what others asked for since it last looked: the largest order, the highest zone
//!   Job         what it works for: taken from the request before a run. A run that gave its order
//!               up lets it sleep once single pages are there; after any other it looks at the
//!               request again, so that an order which nobody asks for any more keeps it awake no longer
//!   FallAsleep  doze 100 ms --nobody came--> sleep until woken
//!               up to 2.6.32 it sleeps at once, unless a larger block is asked for than it worked for
//! ```
//! Neighbours: [`super::balance`] for the run.

use units::{Nanos, NodeId, Order};

use crate::base::event::{Trace, TraceEvent};
use crate::base::layout::ZoneKind;
use crate::base::vmstat::VmEvent;
use crate::memory::Memory;
use crate::version::rules::KswapdSleep;

/// What kswapd of a node was asked for since it last looked (`kswapd_order`, `kswapd_highest_zoneidx`).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Request {
    order: Order,
    highest_zoneidx: Option<ZoneKind>,
}

impl Request {
    /// Somebody wants a block of `order` in zones up to `highest_zoneidx`.
    pub fn add(&mut self, order: Order, highest_zoneidx: ZoneKind) {
        self.order = self.order.max(order);
        self.highest_zoneidx = self.highest_zoneidx.max(Some(highest_zoneidx));
    }

    /// Somebody waits for the reserve, which zones up to Normal add up to: higher ones do not matter
    /// now (`allow_direct_reclaim`).
    pub fn add_for_reserve(&mut self) {
        self.highest_zoneidx =
            Some(self.highest_zoneidx.map_or(ZoneKind::Normal, |zone| zone.min(ZoneKind::Normal)));
    }
}

/// What kswapd works for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Job {
    /// The order that was asked for: kcompactd is woken for it.
    pub order: Order,
    /// The order that counts before it sleeps: single pages once a run gave the block up.
    pub reclaim_order: Order,
    /// The highest zone that pages are wanted from.
    pub highest_zoneidx: ZoneKind,
}

impl Job {
    /// After boot: nobody asked for anything yet.
    pub const FIRST: Self =
        Self { order: Order(0), reclaim_order: Order(0), highest_zoneidx: ZoneKind::Movable };

    /// Takes a request over before a run, and resets it for the next ones.
    pub fn take(&mut self, request: &mut Request) {
        self.look(core::mem::take(request));
    }

    /// After a run that ended as one for `reclaim_order`.
    pub fn settle(&mut self, reclaim_order: Order, request: Request) {
        if reclaim_order < self.order {
            self.reclaim_order = reclaim_order;
        } else {
            self.look(request);
        }
    }

    /// Woken while it dozed: the order that it was about to sleep on is asked for again, in the zones
    /// that whoever woke it wants pages from.
    pub fn ask_again(&self, request: &mut Request) {
        request.order = request.order.max(self.reclaim_order);
        request.highest_zoneidx.get_or_insert(self.highest_zoneidx);
    }

    fn look(&mut self, request: Request) {
        (self.order, self.reclaim_order) = (request.order, request.order);
        self.highest_zoneidx = request.highest_zoneidx.unwrap_or(self.highest_zoneidx);
    }
}

/// How long kswapd dozes before it sleeps for good.
const DOZE: Nanos = Nanos::from_millis(100);

/// What kswapd does next on its way to sleep.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub enum SleepNext {
    /// Wake all who wait for the reserve: nobody is left behind.
    LetWaitersGo,
    /// Wake kcompactd, then sleep as long, or until woken.
    Doze(Nanos),
    /// Sleep until woken.
    Sleep,
    /// Go to work at once.
    Stay,
}

/// kswapd after a run: does it sleep, and how long (`kswapd_try_to_sleep`)?
#[derive(Debug, Clone)]
pub struct FallAsleep {
    node: NodeId,
    /// The order that both tests are for: the one that was reclaimed for, not the one asked for.
    order: Order,
    highest_zoneidx: ZoneKind,
    /// The order that the last run was begun for.
    ran: Order,
    at: Falling,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Falling {
    Start,
    AtOnce,
    First,
    Dozed,
    Second,
}

impl FallAsleep {
    /// After a run that was begun for `ran`.
    pub const fn new(node: NodeId, job: &Job, ran: Order) -> Self {
        let (order, highest_zoneidx) = (job.reclaim_order, job.highest_zoneidx);
        Self { node, order, highest_zoneidx, ran, at: Falling::Start }
    }

    /// The next step, with what is asked for by now; `woken`: the doze was cut short by a request.
    pub fn step<T: Trace>(&mut self, mem: &mut Memory<T>, asked: &mut Request, woken: bool) -> SleepNext {
        match self.at {
            Falling::Start => {
                self.at = match mem.core.rules().kswapd_sleep {
                    KswapdSleep::AtOnce => Falling::AtOnce,
                    KswapdSleep::Dozes => Falling::First,
                };
                SleepNext::LetWaitersGo
            }
            Falling::AtOnce if asked.order > self.ran => SleepNext::Stay,
            Falling::AtOnce => {
                asked.order = Order(0); // The run was for as much.
                mem.reclaim.note_sleep(self.node);
                self.sleep(mem)
            }
            Falling::First if self.may_sleep(mem) => {
                for zone in mem.zones_up_to(self.node, ZoneKind::Movable) {
                    mem.reset_skip_bits(zone);
                }
                self.at = Falling::Dozed;
                mem.core.alloc.set_kswapd_busy(self.node, false);
                SleepNext::Doze(DOZE)
            }
            Falling::Dozed if woken => {
                mem.core.alloc.events.add(VmEvent::KswapdLowWmarkHitQuickly, 1);
                SleepNext::Stay
            }
            Falling::First | Falling::Dozed => {
                self.at = Falling::Second;
                SleepNext::LetWaitersGo
            }
            Falling::Second if self.may_sleep(mem) => self.sleep(mem),
            Falling::Second => {
                mem.core.alloc.events.add(VmEvent::KswapdHighWmarkHitQuickly, 1);
                SleepNext::Stay
            }
        }
    }

    fn sleep<T: Trace>(&self, mem: &mut Memory<T>) -> SleepNext {
        mem.core.tell(|_| TraceEvent::VmscanKswapdSleep { nid: self.node });
        mem.core.alloc.set_kswapd_busy(self.node, false);
        SleepNext::Sleep
    }

    /// `prepare_kswapd_sleep`: the node is balanced or hopeless.
    fn may_sleep<T: Trace>(&self, mem: &mut Memory<T>) -> bool {
        if !mem.is_hopeless(self.node) && !mem.is_balanced(self.node, self.order, self.highest_zoneidx) {
            return false;
        }
        mem.reclaim.note_sleep(self.node);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(asked: &[(u8, ZoneKind)]) -> Request {
        let mut request = Request::default();
        asked.iter().for_each(|&(order, highest_zoneidx)| request.add(Order(order), highest_zoneidx));
        request
    }

    fn job(order: u8, reclaim_order: u8, highest_zoneidx: ZoneKind) -> Job {
        Job { order: Order(order), reclaim_order: Order(reclaim_order), highest_zoneidx }
    }

    /// MECHANISMS-510-72 1.6.
    #[test]
    fn since_6_18_requests_pass_a_node_by_whose_kswapd_works_unless_there_is_no_other_page() {
        use units::{CpuId, Pages};

        use crate::alloc::flags::AllocFlags;
        use crate::base::gfp::Gfp;
        use crate::base::layout::{HugeSupport, MemoryLayout, NodeLayout, ZoneLayout};
        use crate::decide::balance::Balance;
        use crate::decide::scene::boot;

        let zone = ZoneLayout::new(ZoneKind::Normal, Pages(2048));
        let node = NodeLayout { zones: std_alloc::vec![zone] };
        let layout = MemoryLayout {
            nodes: std_alloc::vec![node.clone(), node],
            cpus: 2,
            huge_pages: HugeSupport::Off,
        };
        for (kernel, spared) in [("linux-6.12", 0), ("linux-6.12+skip-nodes-with-kswapd", 1)] {
            let mut mem = boot(kernel, &layout);
            let cpu = CpuId(0);
            let near = mem.core.alloc.node_of(cpu);
            let take = |mem: &mut Memory<_>| {
                let page = mem.core.alloc.alloc(cpu, Gfp::KERNEL, Order(0), AllocFlags::WMARK_MIN).page?;
                Some(mem.core.alloc.zone(mem.core.alloc.zone_of(page)).node == near)
            };
            assert_eq!(take(&mut mem), Some(true));
            let _ = Balance::begin(&mut mem, near, Order(0), ZoneKind::Normal);
            assert_eq!(take(&mut mem), Some(spared == 0), "{kernel}");
            let far = NodeId(1 - near.0);
            let _ = Balance::begin(&mut mem, far, Order(0), ZoneKind::Normal);
            assert_eq!(take(&mut mem), Some(true), "{kernel}: all are at work");
            let job = Job::FIRST;
            let mut fall = FallAsleep::new(near, &job, Order(0));
            assert_eq!(fall.step(&mut mem, &mut Request::default(), false), SleepNext::LetWaitersGo);
            assert_eq!(fall.step(&mut mem, &mut Request::default(), false), SleepNext::Doze(DOZE));
            assert_eq!(take(&mut mem), Some(true), "{kernel}: the near one sleeps again");
        }
    }

    #[test]
    fn requests_add_up_to_the_largest_order_and_the_highest_zone() {
        let mut job = Job::FIRST;
        let mut asked = request(&[(3, ZoneKind::Dma), (1, ZoneKind::Normal), (2, ZoneKind::Dma32)]);
        job.take(&mut asked);
        assert_eq!(job, self::job(3, 3, ZoneKind::Normal));
        assert_eq!(asked, Request::default(), "what is taken is asked for no more");
        job.take(&mut asked);
        assert_eq!(job, self::job(0, 0, ZoneKind::Normal), "woken for nothing, it keeps its zones");
    }

    #[test]
    fn for_the_reserve_zones_up_to_normal_are_enough() {
        for (asked, highest_zoneidx) in [
            (request(&[]), ZoneKind::Normal),
            (request(&[(2, ZoneKind::Movable)]), ZoneKind::Normal),
            (request(&[(2, ZoneKind::Dma32)]), ZoneKind::Dma32),
        ] {
            let mut after = asked;
            after.add_for_reserve();
            assert_eq!(after, Request { highest_zoneidx: Some(highest_zoneidx), ..asked });
        }
    }

    #[test]
    fn after_a_run_for_a_block_kswapd_looks_at_what_is_asked_for_now() {
        for (reclaim_order, asked, after) in [
            // The run kept its order: that was all it could do for it.
            (3, request(&[]), job(0, 0, ZoneKind::Normal)),
            (3, request(&[(2, ZoneKind::Dma32)]), job(2, 2, ZoneKind::Dma32)),
            (3, request(&[(9, ZoneKind::Movable)]), job(9, 9, ZoneKind::Movable)),
            // It freed enough for compaction: kcompactd is to make the block before kswapd looks on.
            (0, request(&[]), job(3, 0, ZoneKind::Normal)),
            (0, request(&[(9, ZoneKind::Movable)]), job(3, 0, ZoneKind::Normal)),
        ] {
            let mut job = job(3, 3, ZoneKind::Normal);
            job.settle(Order(reclaim_order), asked);
            assert_eq!(job, after, "{reclaim_order} {asked:?}");
        }
    }

    #[test]
    fn a_doze_cut_short_asks_for_what_was_reclaimed_for_once_more() {
        let dozing = job(3, 0, ZoneKind::Dma32);
        let mut asked = request(&[(1, ZoneKind::Movable)]);
        dozing.ask_again(&mut asked);
        assert_eq!(asked, request(&[(1, ZoneKind::Movable)]));
        let mut asked = Request::default();
        job(3, 3, ZoneKind::Dma32).ask_again(&mut asked);
        assert_eq!(asked, request(&[(3, ZoneKind::Dma32)]), "woken without a request");
        let mut asked = request(&[(0, ZoneKind::Dma)]);
        job(3, 3, ZoneKind::Movable).ask_again(&mut asked);
        assert_eq!(asked, request(&[(3, ZoneKind::Dma)]), "a boost of DMA is worked off there");
    }
}
