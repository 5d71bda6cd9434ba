//! Requests that are on their way to and from the data disk: made by reads and by writeback, ended
//! by the device.
//!
//! Left out: errors of the device. Next: [`crate::readahead`] decides what to read,
//! [`crate::writeback`] what to write.

use mm::base::event::Trace;
use mm::base::frame::PageFlags;
use mm::base::ids::MappingId;
use mm::fs::xfs::log::CheckpointId;
use mm::pages::tree::Slot;
use units::{Bytes, PAGE_SIZE};

use super::Inode;
use crate::kernel::Kernel;
use crate::machine::{CostOp, IoKind, IoRequest, Machine};

/// A request on its way.
#[derive(Debug, Clone)]
pub(crate) enum Transfer {
    Read(PageRange),
    /// A cluster of XFS inodes is read.
    Cluster(mm::fs::xfs::buf::ClusterId),
    Write(Vec<PageRange>),
    /// A record of the log of XFS is written.
    Log(CheckpointId),
}

/// Requests that are on their way, by tag.
#[derive(Debug, Default)]
pub(crate) struct InFlight {
    transfers: Vec<Option<Transfer>>,
    free: Vec<u32>,
}

/// Consecutive pages of a mapping.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PageRange {
    pub(crate) mapping: MappingId,
    pub(crate) first: u32,
    pub(crate) count: u32,
}

impl InFlight {
    /// Notes a request; returns its tag.
    pub(crate) fn add(&mut self, transfer: Transfer) -> u64 {
        match self.free.pop() {
            Some(tag) => {
                self.transfers[tag as usize] = Some(transfer);
                u64::from(tag)
            }
            None => {
                self.transfers.push(Some(transfer));
                (self.transfers.len() - 1) as u64
            }
        }
    }

    /// Notes a write of these pages.
    pub(crate) fn add_write(&mut self, ranges: Vec<PageRange>) -> u64 {
        self.add(Transfer::Write(ranges))
    }

    fn remove(&mut self, tag: u64) -> Transfer {
        let tag = u32::try_from(tag).expect("a tag that was handed out");
        self.free.push(tag);
        self.transfers[tag as usize].take().expect("a transfer completes once")
    }

    /// Whether pages of a mapping are being read.
    pub(super) fn reads(&self, mapping: MappingId) -> bool {
        let is_read = |transfer: &Transfer| match transfer {
            Transfer::Read(range) => range.mapping == mapping,
            Transfer::Write(_) | Transfer::Cluster(_) | Transfer::Log(_) => false,
        };
        self.transfers.iter().flatten().any(is_read)
    }

    /// Whether records of a checkpoint are being written.
    pub(crate) fn logs(&self, checkpoint: CheckpointId) -> bool {
        self.transfers
            .iter()
            .flatten()
            .any(|transfer| matches!(transfer, Transfer::Log(id) if *id == checkpoint))
    }

    /// Mappings with pages being written.
    pub(crate) fn written_mappings(&self) -> Vec<MappingId> {
        let ranges = |transfer: &Transfer| match transfer {
            Transfer::Read(_) | Transfer::Cluster(_) | Transfer::Log(_) => Vec::new(),
            Transfer::Write(ranges) => ranges.iter().map(|range| range.mapping).collect(),
        };
        self.transfers.iter().flatten().flat_map(ranges).collect()
    }
}

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

    /// Hands a request to its device. All that the kernel does for it as a whole is charged here, also
    /// what comes with its completion.
    pub(crate) fn start_io(&self, request: IoRequest) {
        self.machine().charge(CostOp::IoRequest, 1);
        self.machine().submit(request);
    }

    /// A request is complete.
    pub(crate) fn io_done(&self, tag: u64) {
        let transfer = self.shared.in_flight.borrow_mut().remove(tag);
        match transfer {
            Transfer::Read(range) => self.unlock_pages(range),
            Transfer::Cluster(cluster) => self.cluster_arrived(cluster),
            Transfer::Write(ranges) => self.write_done(&ranges),
            Transfer::Log(_) => self.log_arrived(),
        }
    }

    /// Pages become valid and their waiters run.
    pub(crate) fn unlock_pages(&self, range: PageRange) {
        self.mem(|mem| {
            for index in range.first..range.first + range.count {
                if let Slot::Page(pfn) = mem.cache.find(range.mapping, index) {
                    mem.core.alloc.frames.clear_flags(pfn, PageFlags::LOCKED);
                }
            }
        });
        self.wake_readers(range);
        self.put_closed();
    }
}
