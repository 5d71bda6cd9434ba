//! A run of direct or limit reclaim (`do_try_to_free_pages`): the passes that
//! [`mm::decide::priority`] asks for.

use mm::MemcgId;
use mm::base::event::{Trace, TraceEvent};
use mm::decide::priority::{Escalation, Next};
use mm::reclaim::run::{SWAP_CLUSTER_MAX, ScanControl};
use mm::version::rules::Writepage;
use units::Order;

use crate::handle::Kernel;
use crate::machine::Machine;

impl<M: Machine, T: Trace> Kernel<M, T> {
    /// Goes through with a run; returns the pages freed.
    pub(crate) async fn try_to_free_pages(&self, mut run: Escalation) -> u64 {
        let (order, target) = (run.sc.order, run.sc.target);
        self.trace_begin(order, target);
        let freed = loop {
            let cpu = self.machine().current_cpu();
            match self.mem(|mem| run.step(mem, cpu)) {
                Next::Shrink(node) => {
                    self.shrink_node(node, &mut run.sc).await;
                    self.write_by_scan(&run.sc);
                    self.throttle_without_progress(node, &run.sc).await;
                }
                Next::Done(freed) => break freed,
            }
        };
        self.trace_end(freed, target);
        freed
    }

    /// Up to 3.1 a run that has looked at more than one and a half chunks has as many pages written.
    fn write_by_scan(&self, sc: &ScanControl) {
        let writes = self.mem(|mem| mem.core.rules().writepage) == Writepage::Anyone;
        if writes && sc.total_scanned > SWAP_CLUSTER_MAX + (SWAP_CLUSTER_MAX / 2) {
            self.kick_flushers(sc.total_scanned);
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
