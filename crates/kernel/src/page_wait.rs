//! Sleeping until a page has been read (`folio_wait_locked`, `folio_wake_bit`).
//!
//! Pages share a table of wait queues by a hash of their place, as in Linux (`PAGE_WAIT_TABLE_SIZE`,
//! 256), so a sleeper is woken by its own page and seldom by another. Whoever waits for anything
//! else that is read (a cluster of inodes, all reads of a file) is woken by every read.
//!
//! Left out: waiting for more than the lock of a read; writeback has a queue of its own. Next:
//! [`crate::filemap`], `file/in_flight.rs`.

use std::cell::Cell;

use mm::base::event::Trace;
use mm::base::ids::MappingId;

use crate::file::PageRange;
use crate::kernel::Kernel;
use crate::machine::{Machine, QueueId, WaitReason};

/// log2 of the queues in the table.
const TABLE_BITS: u32 = 8;

/// The wait queues of reads.
#[derive(Debug)]
pub(crate) struct ReadQueues {
    pages: Vec<QueueId>,
    /// Tasks that sleep on the table.
    sleepers: Cell<u32>,
    any: QueueId,
}

impl ReadQueues {
    pub(crate) fn new(machine: &impl Machine) -> Self {
        let pages = (0..1 << TABLE_BITS).map(|_| machine.new_queue()).collect();
        Self { pages, sleepers: Cell::new(0), any: machine.new_queue() }
    }

    fn of_page(&self, mapping: MappingId, index: u32) -> QueueId {
        let place = (u64::from(mapping.0) << 32) | u64::from(index);
        // The golden ratio in 64 bits (`GOLDEN_RATIO_64`).
        let hash = place.wrapping_mul(0x61C8_8646_80B5_83EB) >> (64 - TABLE_BITS);
        self.pages[usize::try_from(hash).expect("8 bits")]
    }
}

impl<M: Machine, T: Trace> Kernel<M, T> {
    /// Sleeps until the page at `index` may have been read: reclaim leaves it alone until it has.
    pub(crate) async fn wait_for_page(&self, mapping: MappingId, index: u32) {
        let reads = &self.shared.reads;
        reads.sleepers.set(reads.sleepers.get() + 1);
        let _ = self.machine().wait(reads.of_page(mapping, index), WaitReason::PageRead, None).await;
        reads.sleepers.set(reads.sleepers.get() - 1);
    }

    /// Sleeps until any read is complete.
    pub(crate) async fn wait_for_any_read(&self) {
        let _ = self.machine().wait(self.shared.reads.any, WaitReason::PageRead, None).await;
    }

    /// Pages have been read: whoever sleeps until then runs.
    pub(crate) fn wake_readers(&self, range: PageRange) {
        if self.shared.reads.sleepers.get() > 0 {
            for index in range.first..range.first + range.count {
                self.wake_queue(self.shared.reads.of_page(range.mapping, index));
            }
        }
        self.wake_any_read();
    }

    /// Something else has been read.
    pub(crate) fn wake_any_read(&self) {
        self.wake_queue(self.shared.reads.any);
    }

    /// Wakes a queue if anybody sleeps on it.
    pub(crate) fn wake_queue(&self, queue: QueueId) {
        if self.machine().has_waiters(queue) {
            self.machine().wake_all(queue);
        }
    }
}
