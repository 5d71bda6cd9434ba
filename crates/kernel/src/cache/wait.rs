//! Sleeping until a page has been read (`folio_wait_locked`, `folio_wake_bit`) or written.
//!
//! Who sleeps on a page is woken by its own and by no other. Whoever waits for anything else that is read (a
//! cluster of inodes, all reads of a file) is woken by every read; writeback has one queue. Next:
//! [`super::filemap`], [`super::io`], [`crate::queues::ReadQueues`].

use mm::base::event::Trace;
use mm::base::frame::PageFlags;
use mm::base::ids::MappingId;
use mm::pages::tree::Slot;

use crate::cache::in_flight::PageRange;
use crate::handle::Kernel;
use crate::machine::{Machine, WaitReason};

impl<M: Machine, T: Trace> Kernel<M, T> {
    /// Sleeps until the page at `index` may have been read: reclaim leaves it alone until it has. If it was in
    /// use when it was evicted, that is a stall on memory (`folio_wait_bit_common`).
    pub(crate) async fn wait_for_page(&self, mapping: MappingId, index: u32) {
        let reads = &self.shared.reads;
        let thrashing = self.is_of_workingset(mapping, index);
        if thrashing {
            self.machine().stall(true);
        }
        let queue = reads.enter(self.machine(), mapping, index);
        let _ = self.machine().wait(queue, WaitReason::PageRead, None).await;
        reads.leave(mapping, index);
        if thrashing {
            self.machine().stall(false);
        }
    }

    /// Whether the page at `index` was active when it was evicted before.
    fn is_of_workingset(&self, mapping: MappingId, index: u32) -> bool {
        self.mem(|mem| match mem.cache.find(mapping, index) {
            Slot::Page(pfn) => mem.core.alloc.frames.flags(pfn).has(PageFlags::WORKINGSET),
            _ => false,
        })
    }

    /// Sleeps until any read is complete.
    pub(crate) async fn wait_for_any_read(&self) {
        let _ = self.machine().wait(self.shared.reads.any, WaitReason::PageRead, None).await;
    }

    /// Pages have been read: whoever sleeps until then runs.
    pub(crate) fn wake_readers(&self, range: PageRange) {
        let PageRange { mapping, first, count } = range;
        self.shared.reads.each(mapping, first, count, |queue| self.wake_queue(queue));
        self.wake_any_read();
    }

    /// Something else has been read.
    pub(crate) fn wake_any_read(&self) {
        self.wake_queue(self.shared.reads.any);
    }

    /// Waits until no page of a file is being written.
    pub(crate) async fn wait_for_writeback(&self, mapping: MappingId) {
        while self.mem(|mem| mem.cache.trees().writeback_pages(mapping)) > 0 {
            self.wait_for_written_pages().await;
        }
    }

    /// Waits until pages of a file that are being written now are clean, or are written again. Left out: those that
    /// another task has not sent off yet.
    pub(crate) async fn wait_for_writes_so_far(&self, mapping: MappingId) {
        let now = self.shared.in_flight.borrow().writes();
        while self.mem(|mem| mem.cache.trees().writeback_pages(mapping)) > 0
            && self.shared.in_flight.borrow().writes_of_before(mapping, now)
        {
            self.wait_for_written_pages().await;
        }
    }

    /// Sleeps until pages of any file have been written.
    pub(crate) async fn wait_for_written_pages(&self) {
        let queue = self.shared.wait.page_writeback;
        let _ = self.machine().wait(queue, WaitReason::PageWriteback, None).await;
    }
}
