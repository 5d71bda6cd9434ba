//! A run of direct or limit reclaim (`do_try_to_free_pages`): the passes that
//! [`mm::decide::priority`] asks for.

use mm::MemcgId;
use mm::alloc::pcp::COSTLY_ORDER;
use mm::base::event::{Trace, TraceEvent};
use mm::decide::priority::{Escalation, Next};
use units::Order;

use crate::handle::Kernel;
use crate::machine::{CostOp, Machine};

impl<M: Machine, T: Trace> Kernel<M, T> {
    /// Goes through with a run; returns the pages freed.
    pub(crate) async fn try_to_free_pages(&self, run: &mut Escalation) -> u64 {
        let (order, target) = (run.sc.order, run.sc.target);
        self.trace_begin(order, target);
        if self.run_idle(run) {
            self.trace_end(0, target);
            return 0;
        }
        let freed = loop {
            let cpu = self.machine().current_cpu();
            match self.mem(|mem| run.step(mem, cpu)) {
                Next::Shrink(node) => {
                    self.shrink_node(node, &mut run.sc).await;
                    self.check_node_pressure(node);
                    self.throttle_without_progress(node, &run.sc).await;
                }
                Next::WakeFlusher(pages) => self.kick_flushers(pages),
                Next::Pause(site, zone) => self.pause(site, zone).await,
                Next::Done(freed) => break freed,
            }
        };
        self.trace_end(freed, target);
        freed
    }

    /// A run that has nothing to free, at once ([`mm::decide::idle_run`]); false when it may have something.
    fn run_idle(&self, run: &mut Escalation) -> bool {
        if run.sc.order > COSTLY_ORDER || self.any_congested() {
            return false;
        }
        self.put_closed();
        let cpu = self.machine().current_cpu();
        let passes = self.mem(|mem| mem.run_idle(run, cpu));
        self.machine().charge(CostOp::WalkMemcg, passes.unwrap_or(0));
        passes.is_some()
    }

    fn trace_begin(&self, order: Order, memcg: MemcgId) {
        self.mem(|mem| mem.core.tell(|_| TraceEvent::VmscanReclaimBegin { order, memcg: memcg.0 }));
    }

    fn trace_end(&self, nr_reclaimed: u64, memcg: MemcgId) {
        self.mem(|mem| mem.core.tell(|_| TraceEvent::VmscanReclaimEnd { nr_reclaimed, memcg: memcg.0 }));
    }
}
