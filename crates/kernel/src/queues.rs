//! What the threads of a kernel wait on and were asked for.
//!
//! Plain state: the drivers of each mechanism, all above [`crate::handle`], read and write it.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;

use mm::base::ids::{MappingId, MemcgId};
use mm::base::layout::ZoneKind;
use mm::version::rules::Cgroups;
use units::{Nanos, Order};

use crate::machine::{Machine, QueueId};

/// The wait queues of a node.
#[derive(Debug, Clone, Copy)]
pub(crate) struct NodeQueues {
    pub(crate) kswapd: QueueId,
    pub(crate) pfmemalloc: QueueId,
    pub(crate) no_progress: QueueId,
    pub(crate) writeback: QueueId,
}

impl NodeQueues {
    pub(crate) fn new(machine: &impl Machine) -> Self {
        Self {
            kswapd: machine.new_queue(),
            pfmemalloc: machine.new_queue(),
            no_progress: machine.new_queue(),
            writeback: machine.new_queue(),
        }
    }
}

/// The wait queues around the data disks.
#[derive(Debug, Clone, Copy)]
pub(crate) struct WriteQueues {
    pub(crate) requests: QueueId,
    pub(crate) page_writeback: QueueId,
    pub(crate) log: QueueId,
    /// For those who wait for room in the log of XFS.
    pub(crate) log_space: QueueId,
    /// For its threads: who closes checkpoints, who commits them, who pushes the AIL.
    pub(crate) checkpoint: QueueId,
    pub(crate) commit: QueueId,
    /// New ends of files are to be logged.
    pub(crate) ends: QueueId,
    pub(crate) ail: QueueId,
    /// For those who wait for clusters of XFS inodes, and for allocation groups.
    pub(crate) clusters: QueueId,
    pub(crate) inode_groups: QueueId,
    /// Who makes kernel threads.
    pub(crate) kthreadd: QueueId,
    /// For those who wait for congested devices.
    pub(crate) congestion: QueueId,
}

impl WriteQueues {
    pub(crate) fn new(machine: &impl Machine) -> Self {
        Self {
            requests: machine.new_queue(),
            page_writeback: machine.new_queue(),
            log: machine.new_queue(),
            log_space: machine.new_queue(),
            checkpoint: machine.new_queue(),
            commit: machine.new_queue(),
            ends: machine.new_queue(),
            ail: machine.new_queue(),
            clusters: machine.new_queue(),
            inode_groups: machine.new_queue(),
            kthreadd: machine.new_queue(),
            congestion: machine.new_queue(),
        }
    }
}

/// What the journal thread of a disk waits on and was asked for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct JournalThread {
    pub(crate) queue: QueueId,
    /// For those who wait for a commit, and for writes of the journal.
    pub(crate) done: QueueId,
    /// When the running transaction is committed at the latest.
    pub(crate) due: Nanos,
    /// Transactions up to this one are wanted in the log at once (`j_commit_request`).
    pub(crate) asked: Option<u64>,
    /// Where in the log the next block goes.
    pub(crate) head: u32,
}

/// What kcompactd of a node was asked for since it last looked.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct KcompactdRequest {
    pub(crate) order: Order,
    pub(crate) highest_zoneidx: Option<ZoneKind>,
}

/// What kcompactd of each node waits on and was asked for.
#[derive(Debug)]
pub(crate) struct CompactionThreads {
    pub(crate) queues: Vec<QueueId>,
    pub(crate) requests: RefCell<Vec<KcompactdRequest>>,
}

impl CompactionThreads {
    pub(crate) fn new(machine: &impl Machine, nodes: usize) -> Self {
        let queues = (0..nodes).map(|_| machine.new_queue()).collect();
        Self { queues, requests: RefCell::new(vec![KcompactdRequest::default(); nodes]) }
    }
}

/// What was scanned, and who tells of that: see [`crate::reclaim::vmpressure`].
#[derive(Debug)]
pub(crate) struct Vmpressure {
    /// Of each cgroup since its worker ran.
    pub(crate) scanned: RefCell<Vec<u64>>,
    /// Of each CPU: its worker, and the cgroups that this one is to look at.
    pub(crate) workers: Vec<(QueueId, RefCell<Vec<MemcgId>>)>,
}

impl Vmpressure {
    /// Nobody tells where there is no memory controller.
    pub(crate) fn new(machine: &impl Machine, cgroups: Cgroups) -> Self {
        let cpus = if cgroups == Cgroups::Off { 0 } else { machine.cpu_count() };
        let workers = (0..cpus).map(|_| (machine.new_queue(), RefCell::default())).collect();
        Self { scanned: RefCell::default(), workers }
    }
}

/// Who drains per-CPU lists, where workers do: see [`crate::alloc::drain`].
#[derive(Debug)]
pub(crate) struct Drains {
    /// The worker of each CPU, and whether it was asked.
    pub(crate) workers: Vec<(QueueId, Cell<bool>)>,
    /// Of those who were asked, how many are not done.
    pub(crate) left: Cell<u16>,
    pub(crate) done: QueueId,
}

impl Drains {
    pub(crate) fn new(machine: &impl Machine) -> Self {
        let workers = (0..machine.cpu_count()).map(|_| (machine.new_queue(), Cell::new(false))).collect();
        Self { workers, left: Cell::new(0), done: machine.new_queue() }
    }
}

/// The wait queues of reads. Linux hashes pages to 256 queues, but wakes only those of a queue who wait for
/// the page (`wake_page_function`; `wake_bit_function` up to 4.9): as if each had its own.
#[derive(Debug)]
pub(crate) struct ReadQueues {
    /// For each page that somebody sleeps on: the queue, and how many do.
    pages: RefCell<BTreeMap<(MappingId, u32), (QueueId, u32)>>,
    /// Queues that were some page's.
    idle: RefCell<Vec<QueueId>>,
    pub(crate) any: QueueId,
}

impl ReadQueues {
    pub(crate) fn new(machine: &impl Machine) -> Self {
        Self { pages: RefCell::default(), idle: RefCell::default(), any: machine.new_queue() }
    }

    /// The queue of a page, for one more who is about to sleep on it.
    pub(crate) fn enter(&self, machine: &impl Machine, mapping: MappingId, index: u32) -> QueueId {
        let fresh = || (self.idle.borrow_mut().pop().unwrap_or_else(|| machine.new_queue()), 0);
        let mut pages = self.pages.borrow_mut();
        let (queue, sleepers) = pages.entry((mapping, index)).or_insert_with(fresh);
        *sleepers += 1;
        *queue
    }

    /// One who slept on a page runs again.
    pub(crate) fn leave(&self, mapping: MappingId, index: u32) {
        let mut pages = self.pages.borrow_mut();
        let (queue, sleepers) = pages.get_mut(&(mapping, index)).expect("it was entered");
        *sleepers -= 1;
        if *sleepers == 0 {
            self.idle.borrow_mut().push(*queue);
            pages.remove(&(mapping, index));
        }
    }

    /// Calls `wake` with the queue of each page of a file among `count` from `first` that somebody sleeps on.
    pub(crate) fn each(&self, mapping: MappingId, first: u32, count: u32, mut wake: impl FnMut(QueueId)) {
        let pages = self.pages.borrow();
        if pages.is_empty() {
            return;
        }
        pages.range((mapping, first)..(mapping, first + count)).for_each(|(_, &(queue, _))| wake(queue));
    }
}
