//! What the threads of a kernel wait on and were asked for.
//!
//! Plain state: the drivers of each mechanism, all above [`crate::handle`], read and write it.

use std::cell::{Cell, RefCell};

use mm::base::ids::MappingId;
use mm::base::layout::ZoneKind;
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
    /// Somebody wants a commit at once.
    pub(crate) asked: bool,
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

/// log2 of the queues in the table.
const TABLE_BITS: u32 = 8;

/// The wait queues of reads.
#[derive(Debug)]
pub(crate) struct ReadQueues {
    pages: Vec<QueueId>,
    /// Tasks that sleep on the table.
    pub(crate) sleepers: Cell<u32>,
    pub(crate) any: QueueId,
}

impl ReadQueues {
    pub(crate) fn new(machine: &impl Machine) -> Self {
        let pages = (0..1 << TABLE_BITS).map(|_| machine.new_queue()).collect();
        Self { pages, sleepers: Cell::new(0), any: machine.new_queue() }
    }

    pub(crate) fn of_page(&self, mapping: MappingId, index: u32) -> QueueId {
        let place = (u64::from(mapping.0) << 32) | u64::from(index);
        // The golden ratio in 64 bits (`GOLDEN_RATIO_64`).
        let hash = place.wrapping_mul(0x61C8_8646_80B5_83EB) >> (64 - TABLE_BITS);
        self.pages[usize::try_from(hash).expect("8 bits")]
    }
}
