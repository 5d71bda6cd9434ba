//! A kernel: memory, files and processes on a machine.
//!
//! One `Kernel` is shared by all tasks of a run; clones are handles. State lives in `RefCell`s that
//! are borrowed for one step at a time. Drivers are methods of [`Kernel`], in the room of their
//! mechanism; [`crate::boot`] starts a kernel.

use std::cell::{Cell, RefCell, RefMut};
use std::rc::Rc;

use mm::base::event::Trace;
use mm::decide::congestion::Congestion;
use mm::decide::kswapd::Request;
use mm::decide::pause::CpuPace;
use mm::decide::throttle::WritebackWaiters;
use mm::fs::xfs::reclaimable::GROUPS;
use mm::{MemcgId, Memory};
use units::{Nanos, NodeId};

use crate::alloc::kills::OomKill;
use crate::alloc::oom_watch::OomWatch;
use crate::alloc::used_frames::UsedFrames;
use crate::anon::area::UsedPages;
use crate::anon::shared_file::SharedFiles;
use crate::cache::in_flight::InFlight;
use crate::files::descriptor::Closed;
use crate::files::lock::FileWaiters;
use crate::files::table::Files;
use crate::fs::Filesystem;
use crate::machine::{Machine, QueueId, TaskId};
use crate::queues::{
    CompactionThreads, Drains, JournalThread, NodeQueues, ReadQueues, Vmpressure, WriteQueues,
};
use crate::section::Site;
use crate::tasks::process::Processes;
use crate::time::{jiffy, ticks_from};
use crate::writeback::inodes::Flusher;
use crate::writeback::request::Plug;
use crate::writeback::shares::Shares;

pub(crate) struct Shared<M: Machine, T: Trace> {
    pub(crate) machine: M,
    pub(crate) mem: RefCell<Memory<T>>,
    pub(crate) filesystem: Filesystem,
    pub(crate) readahead_pages: u32,
    /// Requests to write that a task gathers, at least 1.
    pub(crate) gathers: usize,
    pub(crate) queues: Vec<NodeQueues>,
    pub(crate) kswapd_requests: RefCell<Vec<Request>>,
    pub(crate) compaction: CompactionThreads,
    pub(crate) khugepaged: QueueId,
    /// The worker of zswap, and whether it was started.
    pub(crate) zswap: QueueId,
    pub(crate) zswap_works: Cell<bool>,
    /// For the thread that ends grace periods.
    pub(crate) rcu: QueueId,
    pub(crate) files: RefCell<Files>,
    pub(crate) file_waiters: RefCell<FileWaiters>,
    pub(crate) in_flight: RefCell<InFlight>,
    pub(crate) reads: ReadQueues,
    pub(crate) wait: WriteQueues,
    /// Who locked an allocation group of inodes last: a reclaimer in this site, or the worker.
    pub(crate) inode_group_holders: [Cell<Option<Site>>; GROUPS],
    /// Writes of each device.
    pub(crate) congestion: RefCell<Congestion>,
    /// How writers of each CPU go on.
    pub(crate) cpu_paces: RefCell<Vec<CpuPace>>,
    /// By zone: those who wait for pressure on it to ease.
    pub(crate) pressure: Vec<QueueId>,
    pub(crate) vmpressure: Vmpressure,
    pub(crate) drains: Drains,
    /// One for each disk.
    pub(crate) flushers: RefCell<Vec<Flusher>>,
    pub(crate) shares: RefCell<Shares>,
    /// Plugs of tasks that may have to wait for memory.
    pub(crate) plugs: RefCell<Vec<(TaskId, Plug)>>,
    /// Of ext4, by disk.
    pub(crate) journal_threads: RefCell<Vec<JournalThread>>,
    pub(crate) writeback_waiters: RefCell<Vec<WritebackWaiters>>,
    pub(crate) closed: Closed,
    pub(crate) shared_files: RefCell<SharedFiles>,
    pub(crate) processes: RefCell<Processes>,
    /// Nodes whose memory somebody has asked for and is waiting for.
    pub(crate) nodes_asked: RefCell<Vec<NodeId>>,
    pub(crate) oom_lock: Cell<bool>,
    pub(crate) oom_kills: RefCell<Vec<OomKill>>,
    pub(crate) oom_watch: OomWatch<T>,
    /// Length of every stall on fragmentation in microseconds, in whole ticks.
    pub(crate) fragment_stalls: RefCell<Vec<u64>>,
    pub(crate) used_frames: RefCell<UsedFrames>,
    /// Pages that all processes have from `fork` and read.
    pub(crate) inherited: Cell<Option<UsedPages>>,
}

/// A handle on a running kernel.
pub struct Kernel<M: Machine, T: Trace> {
    pub(crate) shared: Rc<Shared<M, T>>,
}

impl<M: Machine, T: Trace> Clone for Kernel<M, T> {
    fn clone(&self) -> Self {
        Self { shared: Rc::clone(&self.shared) }
    }
}

impl<M: Machine, T: Trace> Kernel<M, T> {
    /// The machine that it runs on.
    pub fn machine(&self) -> &M {
        &self.shared.machine
    }

    /// One step on the memory state. Nothing can happen in between: `step` cannot wait.
    #[inline]
    pub fn mem<R>(&self, step: impl FnOnce(&mut Memory<T>) -> R) -> R {
        let mut mem = self.shared.mem.borrow_mut();
        let result = step(&mut mem);
        if mem.core.slabs.has_rcu_request() {
            self.start_grace_period(mem);
        }
        result
    }

    /// Wakes the thread that ends grace periods: out of the way of all other steps.
    #[cold]
    #[inline(never)]
    fn start_grace_period(&self, mut mem: RefMut<'_, Memory<T>>) {
        let _ = mem.core.slabs.take_rcu_request();
        drop(mem);
        self.wake_queue(self.shared.rcu);
    }

    /// The disks: as many as the machine has devices, or one that no request may reach.
    pub(crate) fn disks(&self) -> std::ops::Range<u16> {
        0..self.machine().device_count().max(1)
    }

    /// One step on what is to be written to a disk.
    pub(crate) fn flusher_of<R>(&self, device: u16, step: impl FnOnce(&mut Flusher) -> R) -> R {
        step(&mut self.shared.flushers.borrow_mut()[usize::from(device)])
    }

    /// The cgroup with this path below the root; the root for the empty path.
    pub fn find_memcg(&self, path: &str) -> Option<MemcgId> {
        if path.is_empty() { Some(MemcgId::ROOT) } else { self.mem(|mem| mem.core.cgroups.find(path)) }
    }

    /// One tick.
    pub(crate) fn jiffy(&self) -> Nanos {
        jiffy(self.machine().hz())
    }

    /// How long a timeout of `ticks` ticks that is set now lasts.
    pub(crate) fn ticks(&self, ticks: u64) -> Nanos {
        let timers = self.mem(|mem| mem.core.rules().timers);
        ticks_from(self.machine().now(), ticks, self.jiffy(), timers)
    }

    /// How long a timeout lasts that is set now for `length`, a whole number of ticks: `HZ` / 10 for
    /// 100 ms.
    pub(crate) fn timeout(&self, length: Nanos) -> Nanos {
        self.ticks(length.0 / self.jiffy().0)
    }

    /// Wakes a queue if anybody sleeps on it.
    pub(crate) fn wake_queue(&self, queue: QueueId) {
        if self.machine().has_waiters(queue) {
            self.machine().wake_all(queue);
        }
    }
}
