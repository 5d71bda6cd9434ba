//! Direct reclaim: a task that found no free page frees some itself (MECHANISMS 4.6).
//!
//! Next: [`super::run`], which it shares with [`super::limit`].

use mm::base::event::Trace;
use mm::base::gfp::Gfp;
use mm::decide::effort::Passes;
use mm::decide::priority::Escalation;
use units::Order;

use crate::handle::Kernel;
use crate::machine::Machine;
use crate::section::{Section, Site};
use crate::tasks::process::Process;

impl<M: Machine, T: Trace> Kernel<M, T> {
    /// Direct reclaim for a request (`__perform_reclaim`) of a process, or else of a kernel thread:
    /// returns the pages freed, and what was done at each priority.
    pub(crate) async fn direct_reclaim(
        &self,
        process: Option<&Process>,
        gfp: Gfp,
        order: Order,
    ) -> (u64, Passes) {
        let stall = Section::Site(Site::AllocationStall);
        self.machine().enter(stall);
        let cpu = self.machine().current_cpu();
        let node = self.mem(|mem| mem.core.alloc.node_of(cpu));
        self.throttle_direct_reclaim(process, node, gfp).await;
        let mut run = Escalation::direct(gfp, order).by_kernel_thread(process.is_none());
        let reclaimed = self.try_to_free_pages(&mut run).await;
        self.machine().cond_resched().await; // after direct reclaim; others may take the pages
        self.machine().leave(stall);
        (reclaimed, run.passes())
    }
}
