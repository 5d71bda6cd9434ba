//! `kthreadd`: makes a worker when tasks loop for memory that they cannot get (`maybe_create_worker`).
//!
//! What reclaim and writeback have others do is done by workers; when memory is short these sleep, and
//! what else is to be done needs one more, whose stack is four pages (MECHANISMS-6X 10). That request
//! may enter filesystems, unlike the page of a file or the objects of a new one on XFS, which wait for
//! ever without killing anybody: so it is the one that ends in an OOM kill (`kthreadd invoked oom-killer`
//! in both reference guests with a log of 64 MiB).
//!
//! Left out: which workers there are and what they have to do. Here one is made when a task would have
//! killed another if it were allowed to, and while that lasts one each second (`CREATE_COOLDOWN`); a
//! worker goes after five minutes (`IDLE_WORKER_TIMEOUT`).

use std::collections::VecDeque;

use mm::base::event::Trace;
use mm::base::gfp::Gfp;
use units::{Nanos, Order, Pfn};

use crate::alloc::purpose::Purpose;
use crate::handle::Kernel;
use crate::machine::{Machine, WaitReason};
use crate::tasks::process::STACK_PAGES;

/// How long a worker stays with nothing to do.
const IDLE_TIMEOUT: Nanos = Nanos::from_secs(300);

/// The least time between two workers.
const COOLDOWN: Nanos = Nanos::from_secs(1);

impl<M: Machine, T: Trace> Kernel<M, T> {
    /// The thread.
    pub(crate) async fn kthreadd(&self) {
        let mut workers: VecDeque<(Nanos, Vec<Pfn>)> = VecDeque::new();
        loop {
            let _ = self.machine().wait(self.shared.wait.kthreadd, WaitReason::Periodic, None).await;
            self.free_idle_workers(&mut workers);
            let mut stack = Vec::new();
            for _ in 0..STACK_PAGES {
                stack.extend(self.alloc_pages_for(Purpose::Stack, None, Gfp::KERNEL, Order(0)).await);
            }
            workers.push_back((self.machine().now() + IDLE_TIMEOUT, stack));
            self.machine().sleep(COOLDOWN, WaitReason::Periodic).await;
        }
    }

    fn free_idle_workers(&self, workers: &mut VecDeque<(Nanos, Vec<Pfn>)>) {
        let (now, cpu) = (self.machine().now(), self.machine().current_cpu());
        while workers.front().is_some_and(|(end, _)| *end <= now) {
            let (_, stack) = workers.pop_front().expect("just seen");
            self.mem(|mem| stack.into_iter().for_each(|pfn| mem.core.alloc.free(cpu, pfn, Order(0))));
        }
    }
}
