//! The worker of zswap: writes entries back once the pool was full, until it has fallen to its threshold (SWAP 4.4).
//!
//! It is started by whoever swaps out and finds the pool full, and ends with its work. Next: [`super::write`].

use mm::base::event::Trace;
use mm::base::gfp::Gfp;
use units::Order;

use crate::alloc::purpose::Purpose;
use crate::handle::Kernel;
use crate::machine::{CostOp, Machine};

impl<M: Machine, T: Trace> Kernel<M, T> {
    /// After pages were swapped out: starts the worker if one of them met the limit of the pool and none is at work.
    pub(crate) fn kick_zswap(&self) {
        let due = self.mem(|mem| mem.take_zswap_hit());
        if due && !self.shared.zswap_works.replace(true) {
            let kernel = self.clone();
            self.machine().spawn("zswap-shrink", None, async move { kernel.shrink_zswap().await });
        }
    }

    async fn shrink_zswap(&self) {
        while let Some(slot) = self.mem(|mem| mem.next_zswap_write()) {
            let page = self.alloc_pages_for(Purpose::SwapIn, None, Gfp::HIGHUSER_MOVABLE, Order(0)).await;
            let Some(pfn) = page else { break };
            let cpu = self.machine().current_cpu();
            if self.mem(|mem| mem.zswap_write_back(cpu, slot, pfn)) {
                self.machine().charge(CostOp::DecompressPage, 1);
                self.machine().charge(CostOp::SwapCache, 1);
                self.write_to_swap();
            } else {
                self.mem(|mem| mem.core.alloc.free(cpu, pfn, Order(0)));
            }
            self.machine().cond_resched().await; // shrink_worker
        }
        self.shared.zswap_works.set(false);
    }
}
