//! One run of compaction on one zone: the steps of [`mm::compact::run`], one after the other.

use mm::base::event::{Trace, TraceEvent};
use mm::base::layout::ZoneId;
use mm::base::vmstat::VmEvent;
use mm::compact::state::{CompactPriority, CompactRequest, CompactResult, CompactStep};
use mm::version::rules::ProactiveCompaction;
use units::NodeId;

use crate::handle::Kernel;
use crate::machine::{CostOp, Machine};

impl<M: Machine, T: Trace> Kernel<M, T> {
    /// One run on one zone.
    pub(crate) async fn compact_zone(&self, zone: ZoneId, request: CompactRequest) -> CompactResult {
        let cpu = self.machine().current_cpu();
        let mut run = match self.mem(|mem| mem.begin_compact(cpu, zone, request)) {
            Ok(run) => run,
            Err(result) => return result,
        };
        self.mem(|mem| {
            mem.core.tell(|core| {
                let nid = core.alloc.zone(zone).node;
                let sync = request.priority != CompactPriority::Async;
                TraceEvent::CompactionBegin { nid, order: request.order, sync }
            });
        });
        let mut moved = 0;
        let by_itself = !request.has_order();
        let node = self.mem(|mem| mem.core.alloc.zone(zone).node);
        let result = loop {
            if by_itself && !self.kswapd_sleeps(node) {
                break CompactResult::PartialSkipped;
            }
            let cpu = self.machine().current_cpu();
            let step = self.mem(|mem| mem.compact_step(cpu, &mut run));
            self.pay_for_compaction(&step, request);
            moved += step.moved_file + step.moved_anon;
            if let Some(result) = step.done {
                break result;
            }
            self.machine().cond_resched().await; // isolate_migratepages and migrate_pages
        };
        let cpu = self.machine().current_cpu();
        self.mem(|mem| {
            mem.end_compact(cpu, run);
            mem.core.tell(|core| {
                let nid = core.alloc.zone(zone).node;
                let (order, status) = (request.order, result.text());
                TraceEvent::CompactionEnd { nid, order, status, moved }
            });
        });
        result
    }

    /// Whether kswapd of a node has nothing to do. A wait for a disk counts as work here, which it does not there.
    pub(super) fn kswapd_sleeps(&self, node: NodeId) -> bool {
        self.machine().has_waiters(self.shared.queues[node.index()].kswapd)
    }

    fn pay_for_compaction(&self, step: &CompactStep, request: CompactRequest) {
        let machine = self.machine();
        machine.charge(CostOp::CompactScanMigrate, step.migrate_scanned);
        machine.charge(CostOp::CompactScanFree, step.free_scanned);
        machine.charge(CostOp::MigratePage, step.moved_file + step.failed);
        machine.charge(CostOp::MigrateMappedPage, step.moved_anon);
        machine.charge(CostOp::PcpRefillPage, step.drained);
        let counts = request.has_order()
            || self.mem(|mem| mem.core.rules().proactive_compaction == ProactiveCompaction::Counted);
        if !request.direct && counts {
            self.mem(|mem| {
                mem.core.alloc.events.add(VmEvent::CompactDaemonMigrateScanned, step.migrate_scanned);
                mem.core.alloc.events.add(VmEvent::CompactDaemonFreeScanned, step.free_scanned);
            });
        }
    }
}
