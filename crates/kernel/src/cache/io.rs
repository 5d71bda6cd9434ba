//! Sending requests for pages off to the data disk, and what happens when they have arrived.
//!
//! Left out: errors of the device. Next: [`super::readahead`] decides what to read,
//! [`crate::writeback`] what to write.

use mm::base::event::Trace;
use mm::pages::tree::Slot;
use units::{Bytes, PAGE_SIZE};

use crate::cache::in_flight::{PageRange, Transfer};
use crate::files::inode::Inode;
use crate::handle::Kernel;
use crate::machine::{CostOp, IoKind, IoRequest, Machine};

impl<M: Machine, T: Trace> Kernel<M, T> {
    /// Starts reading pages that were just added, locked, to `inode`'s mapping. Pages without
    /// blocks are zeroes at once.
    pub(crate) fn submit_read(&self, inode: &Inode, first: u32, count: u32) {
        let (mut first, end) = (first, first + count);
        while first < end {
            let Some((offset, contiguous)) = inode.place(first) else {
                self.unlock_pages(PageRange { mapping: inode.mapping, first, count: end - first });
                return;
            };
            let count = contiguous.min(end - first);
            let range = PageRange { mapping: inode.mapping, first, count };
            let tag = self.shared.in_flight.borrow_mut().add(Transfer::Read(range));
            let len = u64::from(count) * PAGE_SIZE;
            self.mem(|mem| mem.core.alloc.events.add(mm::base::vmstat::VmEvent::PgPgIn, len / 1024));
            self.start_io(IoRequest { device: 0, kind: IoKind::Read, offset, len: Bytes(len), tag });
            first += count;
        }
    }

    /// Starts reading the pages of a window from `first` to `end`.
    pub(crate) fn submit_run(&self, inode: &Inode, first: u32, end: u32) {
        if end > first {
            self.machine().charge(CostOp::ReadaheadPage, u64::from(end - first));
            self.submit_read(inode, first, end - first);
        }
    }

    /// Hands a request to its device. All that the kernel does for it as a whole is charged here, also
    /// what comes with its completion.
    pub(crate) fn start_io(&self, request: IoRequest) {
        self.machine().charge(CostOp::IoRequest, 1);
        self.machine().submit(request);
    }

    /// Pages become valid and their waiters run.
    pub(crate) fn unlock_pages(&self, range: PageRange) {
        self.mem(|mem| {
            for index in range.first..range.first + range.count {
                if let Slot::Page(pfn) = mem.cache.find(range.mapping, index) {
                    mem.core.unlock_page(pfn);
                }
            }
        });
        self.wake_readers(range);
        self.put_closed();
    }
}
