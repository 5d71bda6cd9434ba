//! A pass over a node, which all reclaimers share (`shrink_node`; MECHANISMS 6.7).
//!
//! It visits the cgroups of the node once. Each chunk of 32 pages is one step of `mm`; between
//! chunks the task pays for its CPU time and may be scheduled away, so nothing is remembered across
//! but the run's own [`ScanControl`].

use mm::MemcgId;
use mm::base::event::{Trace, TraceEvent};
use mm::reclaim::plan::Shrinker;
use mm::reclaim::run::ChunkReport;
use mm::reclaim::run::{Reclaimer, ScanControl, SwapWork};
use mm::reclaim::shrinker::SlabScan;
use mm::version::rules::{SlabPressure, Writepage};
use units::NodeId;

use crate::handle::Kernel;
use crate::machine::{CostOp, Machine};
use crate::section::{Section, Site};

impl<M: Machine, T: Trace> Kernel<M, T> {
    /// One pass over a node at the run's priority (`shrink_node`).
    pub(crate) async fn shrink_node(&self, node: NodeId, sc: &mut ScanControl) {
        self.put_closed();
        sc.note_time(self.machine().now());
        let (start, scanned) = (sc.nr_reclaimed, sc.nr_scanned);
        loop {
            let (before, scanned) = (sc.nr_reclaimed, sc.nr_scanned);
            let mut walk = self.mem(|mem| mem.begin_pass(node, sc));
            let mut visited = None;
            while let Some(memcg) = self.mem(|mem| mem.next_memcg(&mut walk, visited, sc)) {
                visited = Some(memcg);
                self.machine().charge(CostOp::WalkMemcg, walk.take_steps());
                self.shrink_memcg(memcg, node, sc).await;
            }
            self.machine().charge(CostOp::WalkMemcg, walk.take_steps());
            self.mem(|mem| mem.credit_slab(sc));
            self.note_vmpressure(sc, sc.nr_scanned - scanned);
            let freed = sc.nr_reclaimed - before;
            if !self.mem(|mem| mem.should_continue_reclaim(node, sc, freed)) {
                break;
            }
        }
        self.mem(|mem| mem.note_scanned(node, sc.reclaim_idx, sc.nr_scanned - scanned));
        self.shrink_slab_by_scan(node, sc.nr_scanned - scanned, sc).await;
        self.mem(|mem| mem.credit_slab(sc));
        self.heed_writeback(node, sc, sc.nr_reclaimed - start).await;
    }

    /// Before a pass of kswapd: a chunk of active anonymous pages of each cgroup, where there are too few inactive
    /// ones (`age_active_anon`).
    pub(crate) async fn age_active_anon(&self, node: NodeId, sc: &ScanControl) {
        for memcg in self.mem(|mem| mem.anon_to_age(node, sc)) {
            let cpu = self.machine().current_cpu();
            let report = self.mem(|mem| mem.age_anon(cpu, memcg, node, sc));
            self.pay_for_chunk(report);
            self.machine().cond_resched().await; // shrink_active_list
        }
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
            if report.swap.cached > 0 || self.mem(|mem| mem.has_swap_writes()) {
                self.write_to_swap().await;
            }
            self.machine().cond_resched().await; // shrink_lruvec and shrink_folio_list
        }
        if self.mem(|mem| mem.core.rules().slab_pressure) == SlabPressure::ByPriority {
            self.shrink_slabs(memcg, node, sc).await;
        }
    }

    async fn shrink_slabs(&self, memcg: MemcgId, node: NodeId, sc: &mut ScanControl) {
        let mut next = 0;
        while let Some((place, scan)) = self.mem(|mem| mem.next_slab(next, memcg, node, sc)) {
            next = place + 1;
            self.shrink_slab(Shrinker::ALL[place], scan, memcg, node, sc).await;
        }
    }

    /// After the lists of a node, where slab is pressed by what part of them was scanned: slab of the whole
    /// machine (`shrink_slab` up to 4.11). Left out: that direct reclaim does so once for all nodes.
    async fn shrink_slab_by_scan(&self, node: NodeId, scanned: u64, sc: &mut ScanControl) {
        if !self.mem(|mem| mem.slab_after_pass(node, scanned, sc)) {
            return;
        }
        let (nodes, groups): (Vec<NodeId>, Vec<MemcgId>) =
            self.mem(|mem| (mem.nodes().collect(), mem.core.cgroups.ids().collect()));
        for node in nodes {
            for &memcg in &groups {
                self.shrink_slabs(memcg, node, sc).await;
            }
        }
    }

    async fn shrink_slab(
        &self,
        shrinker: Shrinker,
        mut scan: SlabScan,
        memcg: MemcgId,
        node: NodeId,
        sc: &mut ScanControl,
    ) {
        let mut section = None; // Most of the time there is too little to be looked at.
        let mut total_scan = 0;
        let (target, name) = (sc.scan_for(), shrinker as u8);
        loop {
            let cpu = self.machine().current_cpu();
            let Some(report) = self.mem(|mem| mem.shrink_slab_batch(cpu, &mut scan, sc)) else { break };
            if section.is_none() {
                self.machine().enter(*section.insert(Section::Shrinker(shrinker)));
                let begin =
                    TraceEvent::ShrinkSlabStart { nid: node, memcg: memcg.0, shrinker: name, scan: target };
                self.mem(|mem| mem.core.tell(|_| begin));
            }
            total_scan += report.scanned;
            self.machine().charge(CostOp::SlabScanObject, report.scanned);
            self.machine().charge(CostOp::InodeEvict, report.evicted);
            if shrinker == Shrinker::Zswap {
                self.machine().charge(CostOp::DecompressPage, report.freed);
                self.write_to_swap().await;
            }
            self.machine().cond_resched().await; // do_shrink_slab
            if report.evicted_share > 0 {
                self.reclaim_inodes(report.evicted_share, site_of(sc)).await;
            }
        }
        if let Some(section) = section {
            self.machine().leave(section);
            let (nid, memcg) = (node, memcg.0);
            let end = TraceEvent::ShrinkSlabEnd { nid, memcg, shrinker: name, total_scan, scan: target };
            self.mem(|mem| mem.core.tell(|_| end));
        }
    }

    /// A chunk held dirty pages that nobody writes: if it held nothing else, the flusher is kicked
    /// (since 3.2); pages that reclaim chose are written one by one.
    fn write_for_reclaim(&self, report: ChunkReport) {
        let kicks = self.mem(|mem| mem.core.rules().writepage) != Writepage::Anyone;
        if kicks && report.unqueued_dirty == report.taken.pages {
            self.kick_flushers(u64::MAX);
        }
        let pages = self.mem(|mem| mem.take_pageout());
        if !pages.is_empty() {
            self.pageout(pages);
        }
    }

    pub(crate) fn pay_for_chunk(&self, report: ChunkReport) {
        let machine = self.machine();
        // MADV_PAGEOUT does not scan.
        machine.charge(CostOp::ScanPage, u64::from(report.scanned.saturating_sub(report.tails)));
        machine.charge(CostOp::ReclaimPage, u64::from(report.reclaimed - report.tails));
        machine.charge(CostOp::ReclaimTail, u64::from(report.tails));
        machine.charge(CostOp::ReclaimLeaf, u64::from(report.leaf_tails));
        machine.charge(CostOp::DeactivatePage, u64::from(report.deactivated));
        if report.swap != SwapWork::default() {
            self.pay_for_swap(report.swap);
        }
    }
}

impl<M: Machine, T: Trace> Kernel<M, T> {
    /// What swapping pages out took.
    fn pay_for_swap(&self, work: SwapWork) {
        for (op, count) in [
            (CostOp::SwapSlot, work.slots),
            (CostOp::SwapSlotFetch, work.fetched),
            (CostOp::UnmapPage, work.unmapped),
            (CostOp::Remap, work.remapped),
            (CostOp::SwapCache, work.cached),
            (CostOp::SameFilledTest, work.tested),
            (CostOp::CompressPage, work.compressed),
        ] {
            self.machine().charge(op, u64::from(count));
        }
    }
}

/// Where a reclaimer is.
const fn site_of(sc: &ScanControl) -> Site {
    match sc.reclaimer {
        _ if sc.proactive => Site::LimitReclaim,
        Reclaimer::Direct => Site::AllocationStall,
        Reclaimer::Kswapd => Site::Kswapd,
        Reclaimer::Limit => Site::LimitReclaim,
    }
}
