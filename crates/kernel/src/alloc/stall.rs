//! Stalling on fragmentation: a movable request waits for kswapd before it breaks into a pageblock
//! of another mobility type (source 4; MECHANISMS 2.9).
//!
//! Only the first attempt of the slow path may stall. The request boosts its preferred zone once
//! more, wakes kswapd if that sleeps, and queues on `pfmemalloc_wait`, which kswapd wakes after a
//! pass that left enough of the reserve free, and before it sleeps. Then it goes on, and may mix.
//!
//! Huge page requests stall like any other movable one when no zone has a block for them: the
//! posted code does not look at the order there. Left out: the exemption of tasks that reclaim
//! themselves (none of them makes movable requests here). Next: [`super::slow_path`],
//! [`crate::reclaim::kswapd`].

use mm::alloc::flags::AllocFlags;
use mm::alloc::page_alloc::Stall;
use mm::base::event::{Trace, TraceEvent};
use mm::base::gfp::Gfp;
use mm::base::layout::ZoneId;
use mm::base::sysctl::Sysctl;
use mm::base::vmstat::VmEvent;
use mm::version::rules::FragmentStall;
use units::{Nanos, NodeId, Order, Pfn};

use crate::handle::Kernel;
use crate::machine::{Machine, WaitReason};
use crate::section::{Section, Site};

/// The longest stall.
const fn longest(form: FragmentStall) -> Nanos {
    match form {
        FragmentStall::Off => Nanos::ZERO,
        FragmentStall::V1 | FragmentStall::V2 => Nanos::from_millis(100),
        FragmentStall::V3 | FragmentStall::V5 => Nanos::from_millis(20),
    }
}

impl<M: Machine, T: Trace> Kernel<M, T> {
    /// The first attempt of the slow path.
    pub(crate) async fn try_or_stall(&self, gfp: Gfp, order: Order, flags: AllocFlags) -> Option<Pfn> {
        let form = self.mem(|mem| {
            let is_on = mem.core.alloc.sysctls().get(Sysctl::FragmentStallOrder) > 0;
            if is_on { mem.core.rules().fragment_stall } else { FragmentStall::Off }
        });
        let may_stall = gfp.has(Gfp::MOVABLE_BIT) && gfp.has(Gfp::DIRECT_RECLAIM);
        let stalls = may_stall && form != FragmentStall::Off;
        let flags = if stalls { flags | AllocFlags::FRAGMENT_STALL } else { flags };
        let cpu = self.machine().current_cpu();
        let outcome = self.mem(|mem| mem.core.alloc.alloc(cpu, gfp, order, flags));
        let page = self.settle_outcome(&outcome, order);
        let Some(stall) = outcome.stall.filter(|_| stalls) else { return page };
        self.stall(form, stall).await;
        let cpu = self.machine().current_cpu();
        let outcome = self.mem(|mem| mem.core.alloc.alloc_after_stall(cpu, gfp, order, flags, stall));
        self.settle_outcome(&outcome, order)
    }

    async fn stall(&self, form: FragmentStall, stall: Stall) {
        if form == FragmentStall::V1 {
            for zone in stall.tried.iter() {
                self.stall_on(form, zone).await;
            }
            return;
        }
        self.mem(|mem| mem.core.alloc.boost_for_stall(stall.zone));
        self.stall_on(form, stall.zone).await;
    }

    /// `stall_fragmentation`
    async fn stall_on(&self, form: FragmentStall, zone: ZoneId) {
        let machine = self.machine();
        let node = self.mem(|mem| mem.core.alloc.zone(zone).node);
        let queues = self.shared.queues[node.index()];
        self.wake_queue(queues.kswapd);
        let begin = machine.now();
        let timeout = self.timeout(longest(form));
        machine.enter(Section::Site(Site::AllocationPause));
        let _ = machine.wait(queues.pfmemalloc, WaitReason::FragmentStall, Some(timeout)).await;
        machine.leave(Section::Site(Site::AllocationPause));
        let jiffy = self.jiffy().0;
        // The timeout less what is left of it: its timer may have been late.
        let ticks = ((machine.now().0 / jiffy) - (begin.0 / jiffy)).min(longest(form).0 / jiffy);
        if ticks > 0 && form != FragmentStall::V1 {
            self.note_stall(node, ticks * jiffy / 1000);
        }
    }

    fn note_stall(&self, nid: NodeId, duration: u64) {
        self.shared.fragment_stalls.borrow_mut().push(duration);
        self.mem(|mem| {
            mem.core.alloc.events.add(VmEvent::FragmentStall, 1);
            mem.core.alloc.events.add(VmEvent::FragmentStallUsec, duration);
            mem.core.tell(|_| TraceEvent::FragmentationStall { nid, duration });
        });
    }

    /// Length of every stall on fragmentation so far, in microseconds and whole ticks: what the
    /// tracepoint `mm_fragmentation_stall` would have said.
    pub fn fragment_stalls(&self) -> Vec<u64> {
        self.shared.fragment_stalls.borrow().clone()
    }
}
