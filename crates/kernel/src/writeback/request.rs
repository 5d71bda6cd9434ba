//! Writing pages: runs of dirty pages become requests to the disk, and are clean when these are
//! complete (MECHANISMS 10.4).
//!
//! Where pages go on the disk is decided when they are first written: files that are written one
//! after the other lie one behind the other, so their pages are merged into one request.

use std::rc::Rc;

use mm::event::Trace;
use mm::mapping::MappingId;
use mm::vmstat::VmEvent;
use units::{Bytes, NodeId, PAGE_SIZE, Pfn};

use crate::cache::in_flight::PageRange;
use crate::files::inode::Inode;
use crate::handle::Kernel;
use crate::machine::{CostOp, IoKind, IoRequest, Machine, WaitReason};

/// The longest request: 512 KiB.
const REQUEST_PAGES: u32 = 128;

/// Writes that the disk's queue holds before the submitter sleeps (`nr_requests`).
const REQUESTS_MAX: u32 = 128;

/// A request in the making: pages that lie one behind the other on the disk.
#[derive(Debug, Default)]
pub(crate) struct Plug {
    offset: u64,
    pages: u32,
    ranges: Vec<PageRange>,
}

impl<M: Machine, T: Trace> Kernel<M, T> {
    /// Starts writing up to `max` dirty pages of an inode, on from where the last call ended.
    pub(crate) async fn write_pages(&self, inode: &Rc<Inode>, max: u64, plug: &mut Plug) -> u64 {
        let mut written = 0;
        let mut wrapped = inode.writeback_index.get() == 0;
        while written < max {
            self.wait_for_request_slot(plug).await;
            if inode.is_orphan() {
                break;
            }
            let run = u32::try_from((max - written).min(u64::from(REQUEST_PAGES))).expect("at most 128");
            let from = inode.writeback_index.get();
            let Some((first, count)) = self.mem(|mem| mem.start_writeback(inode.mapping, from, run)) else {
                if std::mem::replace(&mut wrapped, true) {
                    break;
                }
                inode.writeback_index.set(0);
                continue;
            };
            inode.writeback_index.set(first + count);
            let grows = first + count > inode.mapped_pages();
            self.allocate_blocks(inode, first, count);
            self.add_to_plug(inode, first, count, plug);
            if grows {
                self.log_inode(None, inode).await;
            }
            written += u64::from(count);
            self.machine().charge(CostOp::WritebackPage, u64::from(count));
            self.machine().cond_resched().await; // write_cache_pages
        }
        written
    }

    async fn wait_for_request_slot(&self, plug: &mut Plug) {
        while self.shared.flusher.borrow().requests >= REQUESTS_MAX {
            self.submit_plug(plug);
            let queue = self.shared.wait.requests;
            let _ = self.machine().wait(queue, WaitReason::RequestQueue, None).await;
        }
    }

    fn add_to_plug(&self, inode: &Inode, first: u32, count: u32, plug: &mut Plug) {
        let (mut first, end) = (first, first + count);
        while first < end {
            let (offset, contiguous) = inode.place(first).expect("blocks were just allocated");
            let follows = plug.pages > 0 && plug.offset + (u64::from(plug.pages) * PAGE_SIZE) == offset;
            if !follows || plug.pages >= REQUEST_PAGES {
                self.submit_plug(plug);
                plug.offset = offset;
            }
            let count = contiguous.min(end - first).min(REQUEST_PAGES - plug.pages);
            plug.ranges.push(PageRange { mapping: inode.mapping, first, count });
            plug.pages += count;
            first += count;
        }
    }

    pub(crate) fn submit_plug(&self, plug: &mut Plug) {
        let Plug { offset, pages, ranges } = std::mem::take(plug);
        if pages == 0 {
            return;
        }
        let len = u64::from(pages) * PAGE_SIZE;
        self.shared.flusher.borrow_mut().requests += 1;
        self.mem(|mem| mem.alloc.events.add(VmEvent::PgPgOut, len / 1024));
        let tag = self.shared.in_flight.borrow_mut().add_write(ranges);
        self.start_io(IoRequest { device: 0, kind: IoKind::Write, offset, len: Bytes(len), tag });
    }

    /// A write is complete: its pages are clean, and whoever waits for that runs.
    pub(crate) fn write_done(&self, ranges: &[PageRange]) {
        self.shared.flusher.borrow_mut().requests -= 1;
        for range in ranges {
            let written = self.mem(|mem| mem.end_writeback(range.mapping, range.first, range.count));
            for (node, pages) in written {
                self.note_written(node, pages);
            }
        }
        for queue in [self.shared.wait.page_writeback, self.shared.wait.requests] {
            self.wake_queue(queue);
        }
    }

    /// Reclaimers that wait for writeback run once 32 pages for each of them are written
    /// (`acct_reclaim_writeback`).
    fn note_written(&self, node: NodeId, pages: u64) {
        let enough = {
            let mut throttled = self.shared.throttled.borrow_mut();
            let throttled = &mut throttled[node.index()];
            throttled.written += pages;
            throttled.tasks > 0 && throttled.written > 32 * throttled.tasks
        };
        if enough {
            self.machine().wake_all(self.shared.queues[node.index()].writeback);
        }
    }

    /// Waits until no page of a file is being written.
    pub(crate) async fn wait_for_writeback(&self, mapping: MappingId) {
        while self.mem(|mem| mem.mappings.writeback_pages(mapping)) > 0 {
            let queue = self.shared.wait.page_writeback;
            let _ = self.machine().wait(queue, WaitReason::PageWriteback, None).await;
        }
    }

    /// kswapd writes single dirty pages whose place on the disk is known (`pageout`). ext4 takes
    /// none whose blocks are still to be allocated.
    pub(crate) fn pageout(&self, pages: Vec<Pfn>) {
        let mut plug = Plug::default();
        for pfn in pages {
            self.mem(|mem| mem.alloc.events.add(VmEvent::NrVmscanWrite, 1));
            let (mapping, index) =
                self.mem(|mem| (MappingId(mem.alloc.frames.owner(pfn)), mem.alloc.frames.index(pfn)));
            let Some(inode) = self.shared.files.borrow().by_mapping(mapping) else { continue };
            if inode.place(index).is_none() || self.shared.flusher.borrow().requests >= REQUESTS_MAX {
                continue;
            }
            if let Some((first, count)) = self.mem(|mem| mem.start_writeback(mapping, index, 1)) {
                self.add_to_plug(&inode, first, count, &mut plug);
            }
        }
        self.submit_plug(&mut plug);
    }
}
