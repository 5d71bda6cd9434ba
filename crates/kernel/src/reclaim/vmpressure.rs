//! Telling of memory pressure (`vmpressure`; since 3.10).
//!
//! ```text
//!   passes of a cgroup --512 pages scanned--> a worker of the reclaimer's CPU is woken --> nobody listens
//! ```
//! What counts is that it is woken: it runs at once, and then it is decided anew who has the CPU. Under EEVDF that is
//! often not the reclaimer that woke it: kswapd loses the CPU to a task that then reclaims directly (traced: guests of
//! 5.10 to 7.2 wake it 350 to 450 times in 300,000 pages scanned).
//!
//! Left out: listeners, and sockets that take less; that a worker stays on its CPU where another one is idle: it is so
//! short that the reclaimer would go on where it was. Next: [`super::pass`], which counts.

use mm::base::event::Trace;
use mm::reclaim::run::ScanControl;
use units::CpuId;

use crate::handle::Kernel;
use crate::machine::{Machine, WaitReason};

/// Pages scanned before anybody is told (`vmpressure_win`).
const WINDOW_PAGES: u64 = 512;

impl<M: Machine, T: Trace> Kernel<M, T> {
    pub(crate) fn start_vmpressure(&self) {
        let workers = self.shared.vmpressure.workers.len();
        for cpu in (0..).map(CpuId).take(workers) {
            let kernel = self.clone();
            let work = async move { kernel.run_vmpressure(cpu).await };
            self.machine().spawn(&format!("vmpressure{}", cpu.0), None, work);
        }
    }

    /// A worker.
    async fn run_vmpressure(&self, cpu: CpuId) {
        let vmpressure = &self.shared.vmpressure;
        let (queue, asked) = &vmpressure.workers[cpu.index()];
        loop {
            // It may be asked before it first runs.
            while asked.borrow().is_empty() {
                let _ = self.machine().wait(*queue, WaitReason::Periodic, None).await;
            }
            for memcg in asked.take() {
                vmpressure.scanned.borrow_mut()[memcg.index()] = 0;
            }
        }
    }

    /// A pass scanned so many pages of its target.
    pub(crate) fn note_vmpressure(&self, sc: &ScanControl, scanned: u64) {
        let vmpressure = &self.shared.vmpressure;
        if scanned == 0 || sc.proactive || vmpressure.workers.is_empty() {
            return;
        }
        let mut of_groups = vmpressure.scanned.borrow_mut();
        let group = sc.target.index();
        if group >= of_groups.len() {
            of_groups.resize(group + 1, 0);
        }
        let before = of_groups[group];
        of_groups[group] += scanned;
        if before >= WINDOW_PAGES || of_groups[group] < WINDOW_PAGES {
            return; // Its work is queued, or there is not enough.
        }
        let (queue, asked) = &vmpressure.workers[self.machine().current_cpu().index()];
        asked.borrow_mut().push(sc.target);
        self.wake_queue(*queue);
    }
}
