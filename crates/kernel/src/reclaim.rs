//! Direct reclaim, limit reclaim, and the pass that they share with kswapd (MECHANISMS 4.6, 6.7,
//! MECHANISMS-6X 4 and 5.3).
//!
//! [`Kernel::shrink_node`] visits the cgroups of a node once; [`Kernel::try_to_free_pages`] goes
//! through the priorities. Each chunk of 32 pages is one step of `mm`; between chunks the task
//! pays for its CPU time and may be scheduled away, so nothing is remembered across but the run's
//! own [`ScanControl`].

use mm::MemcgId;
use mm::alloc::flags::class_of;
use mm::base::event::{Trace, TraceEvent};
use mm::base::gfp::Gfp;
use mm::base::layout::ZoneKind;
use mm::base::vmstat::VmEvent;
use mm::reclaim::plan::Shrinker;
use mm::reclaim::run::{ChunkReport, MAX_RECLAIM_RETRIES, Reclaimer, ScanControl};
use mm::version::feature::Feature;
use units::{Nanos, NodeId, Order};

use crate::allocate::COSTLY_ORDER;
use crate::kernel::{JIFFY, Kernel, ticks_from};
use crate::machine::{CostOp, Machine, WaitReason};

impl<M: Machine, T: Trace> Kernel<M, T> {
    /// One pass over a node at the run's priority (`shrink_node`).
    pub(crate) async fn shrink_node(&self, node: NodeId, sc: &mut ScanControl) {
        self.put_closed();
        loop {
            let before = sc.nr_reclaimed;
            let mut walk = self.mem(|mem| mem.begin_pass(node, sc));
            let mut visited = None;
            while let Some(memcg) = self.mem(|mem| mem.next_memcg(&mut walk, visited, sc)) {
                visited = Some(memcg);
                self.machine().charge(CostOp::WalkMemcg, 1);
                self.shrink_memcg(memcg, node, sc).await;
            }
            let freed = sc.nr_reclaimed - before;
            if !self.mem(|mem| mem.should_continue_reclaim(node, sc, freed)) {
                break;
            }
        }
        self.heed_writeback(node, sc).await;
    }

    async fn shrink_memcg(&self, memcg: MemcgId, node: NodeId, sc: &mut ScanControl) {
        let Some(mut scan) = self.mem(|mem| mem.begin_lruvec(memcg, node, sc)) else { return };
        loop {
            let cpu = self.machine().current_cpu();
            let Some(report) = self.mem(|mem| mem.shrink_chunk(cpu, &mut scan, sc)) else { break };
            self.pay_for_chunk(report);
            if report.unqueued_dirty > 0 {
                self.write_for_reclaim(report);
            }
            self.machine().cond_resched().await; // shrink_lruvec and shrink_folio_list
        }
        for shrinker in Shrinker::ALL {
            self.shrink_slab(shrinker, memcg, node, sc).await;
        }
    }

    async fn shrink_slab(&self, shrinker: Shrinker, memcg: MemcgId, node: NodeId, sc: &mut ScanControl) {
        let Some(mut scan) = self.mem(|mem| mem.begin_slab(shrinker, memcg, node, sc)) else { return };
        loop {
            let cpu = self.machine().current_cpu();
            let Some(report) = self.mem(|mem| mem.shrink_slab_batch(cpu, &mut scan, sc)) else { break };
            self.machine().charge(CostOp::SlabScanObject, report.scanned);
            self.machine().charge(CostOp::InodeEvict, report.evicted);
            self.machine().cond_resched().await; // do_shrink_slab
        }
    }

    /// A chunk held dirty pages that nobody writes: if it held nothing else, the flusher is kicked;
    /// pages that kswapd chose are written one by one.
    fn write_for_reclaim(&self, report: ChunkReport) {
        if report.unqueued_dirty == report.taken.pages {
            self.kick_flusher();
        }
        let pages = self.mem(|mem| mem.take_pageout());
        if !pages.is_empty() {
            self.pageout(pages);
        }
    }

    /// What a pass met tells kswapd, and those who reclaim beside it, about the state of writeback
    /// (the end of `shrink_node`; MECHANISMS 6.8).
    async fn heed_writeback(&self, node: NodeId, sc: &ScanControl) {
        let met = sc.met;
        let all_congested = met.all_congested();
        if sc.reclaimer == Reclaimer::Kswapd {
            self.mem(|mem| mem.reclaim.note_pass(node, &met));
            if met.immediate > 0 {
                self.throttle_for_writeback(node).await;
            }
            return;
        }
        let congested = match sc.reclaimer {
            Reclaimer::Limit => all_congested,
            _ => self.mem(|mem| mem.reclaim.node(node).congested),
        };
        // Up to 5.15 `wait_iff_congested` looks for a congested device, which none is any more.
        if congested && self.has_throttle() && !self.skips_throttle(node) {
            self.machine().sleep(JIFFY, WaitReason::Congestion).await;
        }
    }

    fn has_throttle(&self) -> bool {
        self.mem(|mem| mem.core.alloc.features().has(Feature::ReclaimThrottle))
    }

    /// Waits for pages to be written: 100 ms, or (5.16+) until enough are.
    async fn throttle_for_writeback(&self, node: NodeId) {
        let length = Nanos::from_millis(100);
        if !self.has_throttle() {
            self.machine().sleep(length, WaitReason::Congestion).await;
            return;
        }
        {
            let mut throttled = self.shared.throttled.borrow_mut();
            let throttled = &mut throttled[node.index()];
            if throttled.tasks == 0 {
                throttled.written = 0;
            }
            throttled.tasks += 1;
        }
        let queue = self.shared.queues[node.index()].writeback;
        let _ = self.machine().wait(queue, WaitReason::ThrottleWriteback, Some(length)).await;
        self.shared.throttled.borrow_mut()[node.index()].tasks -= 1;
    }

    /// Waiting makes no sense: kswapd has given up, or few of the pages are dirty
    /// (`skip_throttle_noprogress`).
    fn skips_throttle(&self, node: NodeId) -> bool {
        self.mem(|mem| {
            let reclaimable: u64 =
                ZoneKind::ALL.iter().map(|&kind| mem.zone_reclaimable_pages(node, kind)).sum();
            mem.reclaim.node(node).kswapd_failures >= MAX_RECLAIM_RETRIES
                || 2 * mem.cache.pending(node) <= reclaimable
        })
    }

    /// Up to 5.15, a request that reclaim did not help waits 100 ms before it tries again if most
    /// pages that it could get are dirty (`should_reclaim_retry`).
    pub(crate) async fn wait_for_dirty_pages(&self, progress: u64) {
        if progress > 0 || self.has_throttle() {
            return;
        }
        let mostly_dirty = self.mem(|mem| mem.nodes()).any(|node| {
            self.mem(|mem| {
                let reclaimable: u64 =
                    ZoneKind::ALL.iter().map(|&kind| mem.zone_reclaimable_pages(node, kind)).sum();
                2 * mem.cache.pending(node) > reclaimable
            })
        });
        if mostly_dirty {
            self.machine().sleep(Nanos::from_millis(100), WaitReason::Congestion).await;
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
        let node = self.mem(|mem| mem.core.alloc.node_of(cpu));
        self.throttle_direct_reclaim(node, gfp, class).await;
        let mut sc = ScanControl::direct(class).for_order(order);
        sc.may_fs = gfp.has(Gfp::FS);
        self.trace_begin(order, MemcgId::ROOT);
        let reclaimed = self.try_to_free_pages(&mut sc).await;
        self.trace_end(reclaimed, MemcgId::ROOT);
        self.machine().cond_resched().await; // after direct reclaim; others may take the pages
        reclaimed
    }

    /// Limit reclaim at `target` for a charge of `pages`: returns the pages freed.
    pub(crate) async fn limit_reclaim(&self, target: MemcgId, pages: u64, gfp: Gfp) -> u64 {
        let mut sc = ScanControl::limit(target, pages);
        sc.may_fs = gfp.has(Gfp::FS);
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
                self.mem(|mem| mem.core.alloc.events.add(allocstall(sc.reclaim_idx), 1));
            }
            let ready = self.run_priorities(sc).await;
            self.mem(|mem| {
                for node in mem.nodes() {
                    mem.snapshot_refaults(sc.target, node);
                }
            });
            if ready && sc.nr_reclaimed == 0 {
                return 1; // Compaction has what it needs: that counts as progress.
            }
            if sc.nr_reclaimed > 0 || !self.can_try_harder(sc) {
                return sc.nr_reclaimed;
            }
        }
    }

    /// Nodes in the order of the task's zonelist, and whether one of their zones is ready for
    /// compaction. A node of which every zone is ready is left out (`shrink_zones`).
    fn nodes_to_shrink(&self, sc: &ScanControl) -> (Vec<NodeId>, bool) {
        let cpu = self.machine().current_cpu();
        let checks = sc.order > COSTLY_ORDER && sc.reclaimer == Reclaimer::Direct;
        self.mem(|mem| {
            let (mut nodes, mut any_ready) = (Vec::new(), false);
            let here = mem.core.alloc.node_of(cpu);
            for &id in &mem.core.alloc.nodes()[here.index()].zonelists[sc.reclaim_idx as usize] {
                let node = mem.core.alloc.zone(id).node;
                if checks && mem.compaction_ready(id, sc.order, sc.reclaim_idx) {
                    any_ready = true;
                } else if !nodes.contains(&node) {
                    nodes.push(node);
                }
            }
            (nodes, any_ready)
        })
    }

    /// True when it ended because some zone is ready for compaction.
    async fn run_priorities(&self, sc: &mut ScanControl) -> bool {
        loop {
            sc.nr_scanned = 0;
            let (nodes, ready) = self.nodes_to_shrink(sc);
            for &node in &nodes {
                self.shrink_node(node, sc).await;
                self.throttle_without_progress(node, sc).await;
            }
            if ready || sc.nr_reclaimed >= sc.nr_to_reclaim || sc.priority == 0 {
                return ready;
            }
            sc.priority -= 1;
        }
    }

    /// A run that freed nothing is repeated: over the whole tree if it walked a part, opening the
    /// active lists if it left them alone, ignoring `memory.low` if it respected it.
    fn can_try_harder(&self, sc: &mut ScanControl) -> bool {
        let features = self.mem(|mem| mem.core.alloc.features());
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
        sc.priority = mm::reclaim::run::DEF_PRIORITY;
        true
    }

    /// `throttle_direct_reclaim`: waits until kswapd has restored half of the min marks. Without
    /// FS at most one second, as the caller may hold what kswapd needs.
    async fn throttle_direct_reclaim(&self, node: NodeId, gfp: Gfp, class: ZoneKind) {
        if self.allow_direct_reclaim(node) {
            return;
        }
        self.mem(|mem| mem.core.alloc.events.add(VmEvent::PgScanDirectThrottle, 1));
        let timeout = (!gfp.has(Gfp::FS)).then_some(Nanos::from_secs(1));
        let queue = self.shared.queues[node.index()].pfmemalloc;
        while !self.allow_direct_reclaim(node) {
            self.wakeup_kswapd_for_reserve(node, class);
            let _ = self.machine().wait(queue, WaitReason::DirectReclaimThrottle, timeout).await;
            if timeout.is_some() || self.mem(|mem| mem.reclaim.node(node).kswapd_failures) > 0 {
                return;
            }
        }
    }

    /// `consider_reclaim_throttle` (5.16+, MECHANISMS 4.5): a run that frees well wakes those that
    /// do not; a run at its last priority without any page sleeps a tick.
    async fn throttle_without_progress(&self, node: NodeId, sc: &ScanControl) {
        if !self.mem(|mem| mem.core.alloc.features().has(Feature::ReclaimThrottle)) || !sc.is_global() {
            return;
        }
        let queue = self.shared.queues[node.index()].no_progress;
        if sc.nr_reclaimed > (sc.nr_scanned >> 3) {
            self.wake_queue(queue);
        } else if sc.reclaimer == Reclaimer::Direct
            && sc.priority == 1
            && sc.nr_reclaimed == 0
            && !self.skips_throttle(node)
        {
            let tick = ticks_from(self.machine().now(), 1);
            let _ = self.machine().wait(queue, WaitReason::ThrottleNoProgress, Some(tick)).await;
        }
    }

    fn trace_begin(&self, order: Order, memcg: MemcgId) {
        self.mem(|mem| mem.core.alloc.trace.event(TraceEvent::VmscanReclaimBegin { order, memcg: memcg.0 }));
    }

    fn trace_end(&self, nr_reclaimed: u64, memcg: MemcgId) {
        self.mem(|mem| {
            mem.core.alloc.trace.event(TraceEvent::VmscanReclaimEnd { nr_reclaimed, memcg: memcg.0 });
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
