//! Draining the per-CPU lists of all CPUs (`drain_all_pages`).
//!
//! ```text
//!   up to 4.10, since 5.19   the caller takes the pages off them
//!   4.11 to 5.18             a worker of each CPU that has some does, and the caller sleeps until all have: kswapd
//!                            may run in the meantime
//! ```
//! Who comes while lists are being drained goes on (`pcpu_drain_mutex`). Next: [`super::slow_path`], which asks.

use mm::base::event::Trace;
use mm::version::rules::ListDrain;
use units::CpuId;

use crate::handle::Kernel;
use crate::machine::{CostOp, Machine, WaitReason};

impl<M: Machine, T: Trace> Kernel<M, T> {
    pub(crate) fn start_drainers(&self) {
        if self.mem(|mem| mem.core.rules().list_drain) == ListDrain::Workers {
            for cpu in (0..self.machine().cpu_count()).map(CpuId) {
                let kernel = self.clone();
                let work = async move { kernel.run_drainer(cpu).await };
                self.machine().spawn(&format!("drain{}", cpu.0), None, work);
            }
        }
    }

    /// A worker.
    async fn run_drainer(&self, cpu: CpuId) {
        let drains = &self.shared.drains;
        let (queue, asked) = &drains.workers[cpu.index()];
        loop {
            // It may be asked before it first runs.
            while !asked.replace(false) {
                let _ = self.machine().wait(*queue, WaitReason::Periodic, None).await;
            }
            let _ = self.mem(|mem| mem.core.alloc.drain_cpu(cpu));
            self.machine().charge(CostOp::DrainCpu, 1);
            drains.left.set(drains.left.get() - 1);
            if drains.left.get() == 0 {
                self.wake_queue(drains.done);
            }
        }
    }

    /// The per-CPU lists of all CPUs are drained.
    pub(crate) async fn drain_lists(&self) {
        let drains = &self.shared.drains;
        if self.mem(|mem| mem.core.rules().list_drain) == ListDrain::Caller {
            let _ = self.mem(|mem| mem.core.alloc.drain_all());
            self.machine().charge(CostOp::DrainCpu, u64::from(self.machine().cpu_count()));
            return;
        }
        if drains.left.get() > 0 {
            return;
        }
        for cpu in (0..self.machine().cpu_count()).map(CpuId) {
            if self.mem(|mem| mem.core.alloc.has_listed(cpu)) {
                drains.left.set(drains.left.get() + 1);
                let (queue, asked) = &drains.workers[cpu.index()];
                asked.set(true);
                self.wake_queue(*queue);
            }
        }
        while drains.left.get() > 0 {
            let _ = self.machine().wait(drains.done, WaitReason::ListDrain, None).await;
        }
    }
}
