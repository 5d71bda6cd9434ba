//! The worker of zswap: writes entries back once the pool was full, until it has fallen to its threshold (SWAP 4.4).
//!
//! Whoever swaps out and finds the pool full wakes it. It is there once zswap was switched on. Next: [`super::write`].

use mm::base::event::Trace;
use mm::base::gfp::Gfp;
use mm::base::sysctl::Sysctl;
use units::Order;

use crate::alloc::purpose::Purpose;
use crate::handle::Kernel;
use crate::machine::{CostOp, Machine, WaitReason};

/// Entries that cannot be written back, after which the worker waits until it is woken again.
const FAILURES_MAX: u32 = 16;

impl<M: Machine, T: Trace> Kernel<M, T> {
    /// Starts the worker if zswap is on, at most once.
    pub(crate) fn start_zswap(&self) {
        let on = self.mem(|mem| mem.core.alloc.sysctls().get(Sysctl::ZswapEnabled)) > 0;
        if on && !self.shared.zswap_works.replace(true) {
            let kernel = self.clone();
            self.machine().spawn("zswap-shrink", None, async move { kernel.zswap_worker().await });
        }
    }

    async fn zswap_worker(&self) {
        loop {
            self.shrink_zswap().await;
            let _ = self.machine().wait(self.shared.zswap, WaitReason::Periodic, None).await;
        }
    }

    async fn shrink_zswap(&self) {
        let mut failures = 0;
        while failures < FAILURES_MAX
            && let Some(slot) = self.mem(|mem| mem.next_zswap_write())
        {
            let page = self.alloc_pages_for(Purpose::SwapIn, None, Gfp::HIGHUSER_MOVABLE, Order(0)).await;
            let Some(pfn) = page else { break };
            let cpu = self.machine().current_cpu();
            if self.mem(|mem| mem.zswap_write_back(cpu, slot, pfn)) {
                self.machine().charge(CostOp::DecompressPage, 1);
                self.machine().charge(CostOp::SwapCache, 1);
                self.write_to_swap().await;
            } else {
                failures += 1; // Somebody reads it, or nobody needs it any more.
                self.mem(|mem| mem.core.alloc.free(cpu, pfn, Order(0)));
            }
            self.machine().cond_resched().await; // shrink_worker
        }
    }
}
