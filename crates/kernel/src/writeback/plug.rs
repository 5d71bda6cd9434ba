//! Requests to write: pages that lie one behind the other on the disk are merged into one, and are
//! clean when it is complete (MECHANISMS 10.4).
//!
//! Next: [`super::pages`] fills them for the flusher; kswapd writes single pages.

use std::future::Future;

use mm::base::event::Trace;
use mm::base::ids::MappingId;
use mm::base::vmstat::VmEvent;
use mm::pages::tree::Slot;
use mm::version::rules::Writepage;
use units::{Bytes, NodeId, PAGE_SIZE, Pfn};

use crate::cache::in_flight::{PageRange, Transfer};
use crate::files::inode::Inode;
use crate::fs::Filesystem;
use crate::handle::Kernel;
use crate::machine::{IoKind, IoRequest, Machine, WaitReason};
use crate::writeback::request::{Plug, Request};

/// The longest request: 512 KiB.
pub(crate) const REQUEST_PAGES: u32 = 128;

/// Writes that most disks' queues hold before the submitter sleeps (`nr_requests`).
const REQUESTS_MAX: u32 = 128;

impl<M: Machine, T: Trace> Kernel<M, T> {
    /// Gives blocks to pages that are about to be written, and to the rest of the file with them.
    pub(crate) fn allocate_blocks(&self, inode: &Inode, first: u32, count: u32) {
        if first + count > inode.mapped_pages() {
            let pages = u32::try_from(inode.size.get().div_ceil(PAGE_SIZE)).expect("sizes are checked");
            let kept = self.shared.filesystem == Filesystem::Ext4 && inode.opens.get() > 0;
            self.shared.files.borrow_mut().allocate(inode, pages.max(first + count), kept);
        }
    }

    pub(crate) fn add_to_plug(&self, inode: &Inode, first: u32, count: u32, plug: &mut Plug) {
        let (mut first, end) = (first, first + count);
        let mut noted = first;
        while first < end {
            let (offset, contiguous) = inode.place(first).expect("blocks were just allocated");
            let Some(request) = plug.request(inode.device, offset, REQUEST_PAGES, self.shared.gathers) else {
                self.submit_plug(plug);
                continue;
            };
            let count = contiguous.min(end - first).min(REQUEST_PAGES - request.pages);
            let added = PageRange { mapping: inode.mapping, first, count };
            let (segments, last_frame) = self.segments(added, request.last_frame);
            request.pages += count;
            request.segments += segments;
            request.last_frame = last_frame;
            first += count;
            let whole = if first < end { self.folio_start(inode, first) } else { end };
            if whole > noted {
                request.ranges.push(PageRange { mapping: inode.mapping, first: noted, count: whole - noted });
                noted = whole;
            }
        }
    }

    /// The first page of the folio that page `index`, which is being written, belongs to.
    fn folio_start(&self, inode: &Inode, index: u32) -> u32 {
        match self.mem(|mem| mem.cache.find(inode.mapping, index)) {
            Slot::Page(pfn) => self.mem(|mem| mem.core.alloc.frames.index(pfn)),
            _ => index,
        }
    }

    /// Sends off what was gathered.
    pub(crate) fn submit_plug(&self, plug: &mut Plug) {
        plug.sort();
        for request in plug.requests.drain(..) {
            self.submit_write(request);
        }
    }

    pub(crate) fn submit_write(&self, request: Request) {
        let Request { device, offset, pages, segments, ranges, runs, bios, ends, .. } = request;
        let len = u64::from(pages) * PAGE_SIZE;
        self.flusher_of(device, |flusher| flusher.requests += 1);
        self.mem(|mem| mem.core.alloc.events.add(VmEvent::PgPgOut, len / 1024));
        let tag = self.shared.in_flight.borrow_mut().add_write(|number| Transfer::Write {
            device,
            ranges,
            runs,
            bios,
            ends,
            number,
        });
        self.shared.congestion.borrow_mut().submitted(device);
        self.start_io(IoRequest { device, kind: IoKind::Write, offset, len: Bytes(len), segments, tag });
    }

    /// Waits for `work`, which may take memory. If that has to wait, the task's plug is sent off first:
    /// it may sleep until some of those pages are clean.
    pub(crate) async fn with_plug<R>(&self, plug: &mut Plug, work: impl Future<Output = R>) -> R {
        let task = self.machine().current_task();
        {
            let mut plugs = self.shared.plugs.borrow_mut();
            assert!(plugs.iter().all(|(other, _)| *other != task), "a task has one plug");
            plugs.push((task, std::mem::take(plug)));
        }
        let done = work.await;
        let mut plugs = self.shared.plugs.borrow_mut();
        let place = plugs.iter().position(|(other, _)| *other == task).expect("it was put there");
        *plug = plugs.swap_remove(place).1;
        done
    }

    /// The running task is about to sleep (`sched_submit_work`).
    #[inline]
    pub(crate) fn flush_plug(&self) {
        if self.shared.plugs.borrow().is_empty() {
            return;
        }
        let task = self.machine().current_task();
        let plug = {
            let mut plugs = self.shared.plugs.borrow_mut();
            plugs.iter_mut().find(|(other, _)| *other == task).map(|(_, plug)| std::mem::take(plug))
        };
        if let Some(mut plug) = plug {
            self.submit_plug(&mut plug);
        }
    }

    /// Pages are clean: whoever waits for that runs.
    pub(crate) fn pages_written(&self, ranges: &[PageRange]) {
        let mut written = Vec::new();
        self.mem(|mem| {
            for range in ranges {
                mem.end_writeback(range.mapping, range.first, range.count, &mut written);
            }
        });
        let now = self.machine().now();
        for (node, memcg, pages) in written {
            self.note_written(node, pages);
            self.shared.shares.borrow_mut().add(self.worker_of(memcg), now, pages);
        }
        self.wake_queue(self.shared.wait.page_writeback);
    }

    /// A device has one write less to do: others may wait for it to have fewer.
    pub(crate) fn write_left_queue(&self, device: u16) {
        self.flusher_of(device, |flusher| flusher.requests -= 1);
        self.wake_queue(self.shared.wait.requests);
        let rule = self.mem(|mem| mem.core.rules().device_congestion);
        if self.shared.congestion.borrow_mut().completed(device, rule) {
            self.wake_queue(self.shared.wait.congestion);
        }
    }

    /// Reclaimers may wait for what was written.
    fn note_written(&self, node: NodeId, pages: u64) {
        if self.shared.writeback_waiters.borrow_mut()[node.index()].note_written(pages) {
            self.machine().wake_all(self.shared.queues[node.index()].writeback);
        }
    }

    /// Whether the queue of an inode's disk holds all the writes that it can.
    pub(crate) fn is_queue_full(&self, inode: &Inode) -> bool {
        self.is_queue_of_device_full(inode.device)
    }

    /// Whether that of a device does.
    pub(crate) fn is_queue_of_device_full(&self, device: u16) -> bool {
        let most = self.machine().build().requests_max.unwrap_or(REQUESTS_MAX);
        self.flusher_of(device, |flusher| flusher.requests >= most)
    }

    /// Sleeps until a request is complete.
    pub(crate) async fn wait_for_a_request(&self) {
        let queue = self.shared.wait.requests;
        let _ = self.machine().wait(queue, WaitReason::RequestQueue, None).await;
    }

    /// Reclaim writes single dirty pages (`pageout`), as long as the device is not congested. XFS gives kswapd
    /// the blocks that are still to be allocated; ext4 takes no page without one, which then loses its mark: to
    /// reclaim it is a page that was never met. Left out: the transaction of these blocks, that XFS up to 2.6.35
    /// allocates them for every reclaimer, and that kswapd writes to a congested device, too.
    pub(crate) fn pageout(&self, pages: Vec<Pfn>) {
        let mut plug = Plug::default();
        let rules = self.mem(|mem| *mem.core.rules());
        for pfn in pages {
            let (mapping, index) = self
                .mem(|mem| (MappingId(mem.core.alloc.frames.owner(pfn)), mem.core.alloc.frames.index(pfn)));
            let Some(inode) = self.shared.files.borrow().by_mapping(mapping) else { continue };
            let marked = self.shared.congestion.borrow().is_marked(inode.device, rules.device_congestion);
            let congested = marked && rules.writepage == Writepage::Anyone;
            if congested || self.is_queue_full(&inode) {
                continue;
            }
            if self.shared.filesystem == Filesystem::Xfs && rules.writepage == Writepage::Kswapd {
                self.allocate_blocks(&inode, index, 1);
            }
            if inode.place(index).is_none() {
                self.mem(|mem| mem.refuse_pageout(pfn));
                continue;
            }
            if let Some((first, count)) = self.mem(|mem| mem.start_pageout(mapping, index)) {
                self.add_to_plug(&inode, first, count, &mut plug);
            }
        }
        self.submit_plug(&mut plug);
    }
}
