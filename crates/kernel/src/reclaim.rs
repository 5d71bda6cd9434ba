//! Direct reclaim, limit reclaim, and the pass that they share with kswapd (MECHANISMS 4.6, 6.7,
//! MECHANISMS-6X 4 and 5.3).
//!
//! [`Kernel::shrink_node`] visits the cgroups of a node once; [`Kernel::try_to_free_pages`] goes
//! through the priorities. Each chunk of 32 pages is one step of `mm`; between chunks the task
//! pays for its CPU time and may be scheduled away, so nothing is remembered across but the run's
//! own [`ScanControl`].

use mm::MemcgId;
use mm::event::{Trace, TraceEvent};
use mm::feature::Feature;
use mm::gfp::Gfp;
use mm::page_alloc::class_of;
use mm::scan::{Reclaimer, ScanControl};
use mm::shrink::ChunkReport;
use mm::vmstat::VmEvent;
use mm::zone::ZoneKind;
use units::{Nanos, NodeId, Order};

use crate::kernel::{JIFFY, Kernel};
use crate::machine::{CostOp, Machine, WaitReason};

impl<M: Machine, T: Trace> Kernel<M, T> {
    /// One pass over a node at the run's priority (`shrink_node`).
    pub(crate) async fn shrink_node(&self, node: NodeId, sc: &mut ScanControl) {
        let mut walk = self.mem(|mem| mem.begin_pass(node, sc));
        let mut visited = None;
        while let Some(memcg) = self.mem(|mem| mem.next_memcg(&mut walk, visited, sc)) {
            visited = Some(memcg);
            self.machine().charge(CostOp::WalkMemcg, 1);
            self.shrink_memcg(memcg, node, sc).await;
        }
    }

    async fn shrink_memcg(&self, memcg: MemcgId, node: NodeId, sc: &mut ScanControl) {
        let Some(mut scan) = self.mem(|mem| mem.begin_lruvec(memcg, node, sc)) else { return };
        loop {
            let cpu = self.machine().current_cpu();
            let Some(report) = self.mem(|mem| mem.shrink_chunk(cpu, &mut scan, sc)) else { break };
            self.pay_for_chunk(report);
            self.machine().cond_resched().await; // shrink_lruvec and shrink_folio_list
        }
        let Some(mut plan) = self.mem(|mem| mem.begin_slab(memcg, sc)) else { return };
        loop {
            let cpu = self.machine().current_cpu();
            let batch = self.mem(|mem| mem.shrink_slab_batch(cpu, memcg, &mut plan, sc));
            let Some(objects) = batch else { break };
            self.machine().charge(CostOp::SlabScanObject, objects);
            self.machine().cond_resched().await; // do_shrink_slab
        }
    }

    fn pay_for_chunk(&self, report: ChunkReport) {
        let machine = self.machine();
        machine.charge(CostOp::ScanPage, u64::from(report.scanned));
        machine.charge(CostOp::ReclaimPage, u64::from(report.reclaimed));
        machine.charge(CostOp::DeactivatePage, u64::from(report.deactivated));
    }

    /// Direct reclaim for a request (`__perform_reclaim`): returns the pages freed.
    pub(crate) async fn direct_reclaim(&self, gfp: Gfp, order: Order) -> u64 {
        let class = class_of(gfp);
        let cpu = self.machine().current_cpu();
        let node = self.mem(|mem| mem.alloc.node_of(cpu));
        self.throttle_direct_reclaim(node, gfp, class).await;
        let mut sc = ScanControl::direct(class);
        self.trace_begin(order, MemcgId::ROOT);
        let reclaimed = self.try_to_free_pages(&mut sc).await;
        self.trace_end(reclaimed, MemcgId::ROOT);
        self.machine().cond_resched().await; // after direct reclaim; others may take the pages
        reclaimed
    }

    /// Limit reclaim at `target` for a charge of `pages`: returns the pages freed.
    pub(crate) async fn limit_reclaim(&self, target: MemcgId, pages: u64) -> u64 {
        let mut sc = ScanControl::limit(target, pages);
        self.trace_begin(Order(0), target);
        let reclaimed = self.try_to_free_pages(&mut sc).await;
        self.trace_end(reclaimed, target);
        reclaimed
    }

    /// `do_try_to_free_pages`: the priorities from 12 to 0 until enough is freed, and again with
    /// fewer scruples if nothing was.
    async fn try_to_free_pages(&self, sc: &mut ScanControl) -> u64 {
        loop {
            if sc.reclaimer == Reclaimer::Direct {
                self.mem(|mem| mem.alloc.events.add(allocstall(sc.reclaim_idx), 1));
            }
            self.run_priorities(sc).await;
            self.mem(|mem| {
                for node in mem.nodes() {
                    mem.snapshot_refaults(sc.target, node);
                }
            });
            if sc.nr_reclaimed > 0 || !self.can_try_harder(sc) {
                return sc.nr_reclaimed;
            }
        }
    }

    async fn run_priorities(&self, sc: &mut ScanControl) {
        loop {
            sc.nr_scanned = 0;
            for node in self.mem(|mem| mem.nodes()) {
                self.shrink_node(node, sc).await;
                self.throttle_without_progress(node, sc).await;
            }
            if sc.nr_reclaimed >= sc.nr_to_reclaim || sc.priority == 0 {
                return;
            }
            sc.priority -= 1;
        }
    }

    /// A run that freed nothing is repeated: over the whole tree if it walked a part, opening the
    /// active lists if it left them alone, ignoring `memory.low` if it respected it.
    fn can_try_harder(&self, sc: &mut ScanControl) -> bool {
        let features = self.mem(|mem| mem.alloc.features);
        if features.has(Feature::PartialMemcgWalk) && !sc.memcg_full_walk {
            sc.memcg_full_walk = true;
        } else if features.has(Feature::RootAging) && sc.skipped_deactivate && !sc.force_deactivate {
            sc.force_deactivate = true;
            sc.skipped_deactivate = false;
        } else if sc.memcg_low_skipped && !sc.memcg_low_reclaim {
            sc.memcg_low_reclaim = true;
            sc.memcg_low_skipped = false;
            sc.force_deactivate = false;
        } else {
            return false;
        }
        sc.priority = mm::scan::DEF_PRIORITY;
        true
    }

    /// `throttle_direct_reclaim`: waits until kswapd has restored half of the min marks. Without
    /// FS at most one second, as the caller may hold what kswapd needs.
    async fn throttle_direct_reclaim(&self, node: NodeId, gfp: Gfp, class: ZoneKind) {
        if self.allow_direct_reclaim(node) {
            return;
        }
        self.mem(|mem| mem.alloc.events.add(VmEvent::PgScanDirectThrottle, 1));
        let timeout = (!gfp.has(Gfp::FS)).then_some(Nanos::from_secs(1));
        let queue = self.shared.queues[node.index()].pfmemalloc;
        while !self.allow_direct_reclaim(node) {
            self.wakeup_kswapd_for_reserve(node, class);
            let _ = self.machine().wait(queue, WaitReason::DirectReclaimThrottle, timeout).await;
            if timeout.is_some() || self.mem(|mem| mem.node_reclaim[node.index()].kswapd_failures) > 0 {
                return;
            }
        }
    }

    /// `consider_reclaim_throttle` (5.16+, MECHANISMS 4.5): a run that frees well wakes those that
    /// do not; a run at its last priority without any page sleeps a tick.
    async fn throttle_without_progress(&self, node: NodeId, sc: &ScanControl) {
        if !self.mem(|mem| mem.alloc.features.has(Feature::ReclaimThrottle)) || !sc.is_global() {
            return;
        }
        let queue = self.shared.queues[node.index()].no_progress;
        if sc.nr_reclaimed > (sc.nr_scanned >> 3) {
            if self.machine().has_waiters(queue) {
                self.machine().wake_all(queue);
            }
        } else if sc.reclaimer == Reclaimer::Direct && sc.priority == 1 && sc.nr_reclaimed == 0 {
            let _ = self.machine().wait(queue, WaitReason::ThrottleNoProgress, Some(JIFFY)).await;
        }
    }

    fn trace_begin(&self, order: Order, memcg: MemcgId) {
        self.mem(|mem| mem.alloc.trace.event(TraceEvent::VmscanReclaimBegin { order, memcg: memcg.0 }));
    }

    fn trace_end(&self, nr_reclaimed: u64, memcg: MemcgId) {
        self.mem(|mem| {
            mem.alloc.trace.event(TraceEvent::VmscanReclaimEnd { nr_reclaimed, memcg: memcg.0 });
        });
    }
}

const fn allocstall(class: ZoneKind) -> VmEvent {
    match class {
        ZoneKind::Dma => VmEvent::AllocStallDma,
        ZoneKind::Dma32 => VmEvent::AllocStallDma32,
        ZoneKind::Normal => VmEvent::AllocStallNormal,
        ZoneKind::Movable => VmEvent::AllocStallMovable,
    }
}
