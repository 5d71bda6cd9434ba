//! A run of direct or limit reclaim: passes at rising priority until enough is freed
//! (`do_try_to_free_pages`; MECHANISMS 4.6).

use mm::MemcgId;
use mm::event::{Trace, TraceEvent};
use mm::feature::Feature;
use mm::pcp::COSTLY_ORDER;
use mm::scan::{Reclaimer, ScanControl};
use mm::vmstat::VmEvent;
use mm::zone::ZoneKind;
use units::{NodeId, Order};

use crate::handle::Kernel;
use crate::machine::Machine;

impl<M: Machine, T: Trace> Kernel<M, T> {
    /// `do_try_to_free_pages`: the priorities from 12 to 0 until enough is freed, and again with
    /// fewer scruples if nothing was.
    pub(crate) async fn try_to_free_pages(&self, sc: &mut ScanControl) -> u64 {
        loop {
            if sc.reclaimer == Reclaimer::Direct {
                self.mem(|mem| mem.alloc.events.add(allocstall(sc.reclaim_idx), 1));
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
            let here = mem.alloc.node_of(cpu);
            for &id in &mem.alloc.nodes[here.index()].zonelists[sc.reclaim_idx as usize] {
                let node = mem.alloc.zone(id).node;
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

    pub(crate) fn trace_begin(&self, order: Order, memcg: MemcgId) {
        self.mem(|mem| mem.alloc.trace.event(TraceEvent::VmscanReclaimBegin { order, memcg: memcg.0 }));
    }

    pub(crate) fn trace_end(&self, nr_reclaimed: u64, memcg: MemcgId) {
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
