//! Direct reclaim: a task that found no free page frees some itself (MECHANISMS 4.6).
//!
//! Next: [`super::run`], which it shares with [`super::limit`].

use mm::alloc::flags::gfp_zone;
use mm::base::event::Trace;
use mm::base::gfp::Gfp;
use mm::decide::priority::Escalation;
use units::Order;

use crate::handle::Kernel;
use crate::machine::Machine;

impl<M: Machine, T: Trace> Kernel<M, T> {
    /// Direct reclaim for a request (`__perform_reclaim`): returns the pages freed.
    pub(crate) async fn direct_reclaim(&self, gfp: Gfp, order: Order) -> u64 {
        let cpu = self.machine().current_cpu();
        let node = self.mem(|mem| mem.core.alloc.node_of(cpu));
        self.throttle_direct_reclaim(node, gfp, gfp_zone(gfp)).await;
        let reclaimed = self.try_to_free_pages(Escalation::direct(gfp, order)).await;
        self.machine().cond_resched().await; // after direct reclaim; others may take the pages
        reclaimed
    }
}
