//! `kthreadd`: makes a worker when those that there are sleep for want of memory (`maybe_create_worker`).
//!
//! The flusher and the threads of filesystems are work items of a pool. When one of them finds nothing
//! to reclaim, what else is to be done needs a worker of its own, whose stack is four pages. That
//! request may enter filesystems, unlike those of the sleepers: so it is the one that ends in an OOM
//! kill when every other task waits without being allowed to (`kthreadd invoked oom-killer` in the
//! reference guests with a log of 64 MiB).
//!
//! Left out: how many workers a pool has, and all else that makes threads: here at most one worker is
//! made in five minutes, the time after which an idle one goes (`IDLE_WORKER_TIMEOUT`).

use mm::base::event::Trace;
use mm::base::gfp::Gfp;
use units::{Nanos, Order, Pfn};

use crate::handle::Kernel;
use crate::machine::{Machine, WaitReason};

/// Pages of a kernel stack.
const STACK_PAGES: usize = 4;

/// How long a worker stays with nothing to do.
const IDLE_TIMEOUT: Nanos = Nanos::from_secs(300);

impl<M: Machine, T: Trace> Kernel<M, T> {
    /// The thread.
    pub(crate) async fn kthreadd(&self) {
        loop {
            let _ = self.machine().wait(self.shared.wait.kthreadd, WaitReason::Periodic, None).await;
            let mut stack: Vec<Pfn> = Vec::new();
            for _ in 0..STACK_PAGES {
                stack.extend(self.alloc_pages(None, Gfp::KERNEL, Order(0)).await);
            }
            self.machine().sleep(IDLE_TIMEOUT, WaitReason::Periodic).await;
            let cpu = self.machine().current_cpu();
            self.mem(|mem| stack.into_iter().for_each(|pfn| mem.core.alloc.free(cpu, pfn, Order(0))));
        }
    }
}
