//! Writing dirty pages back: the flusher thread, its order of inodes, requests to the disk,
//! `fsync`, and the pauses of writers (MECHANISMS 10.3, 10.4).
//!
//! ```text
//!   write --> dirty list, by the time of the first dirty page
//!                 |  older than 30 s, or all when above the background threshold or kicked
//!                 v
//!             io list --one chunk of each inode in turn--> requests of up to 512 KiB --> disk
//!                 ^                                                                       |
//!                 +-- more-io list: inodes with pages left              pages are clean <-+
//! ```
//! An inode is on one list at most. Where its pages go on the disk is decided when they are first
//! written: files that are written one after the other lie one behind the other, so their pages
//! are merged into one request.
//!
//! Left out: the journal of ext4 (a commit costs nothing, and keeps no page), several devices,
//! cgroup writeback, `sync_file_range`. Neighbours: [`mm::pages::dirty`] for thresholds and the pace
//! of writers, [`crate::file`] for extents.

use std::rc::Rc;

use mm::base::event::Trace;
use mm::base::gfp::Gfp;
use mm::base::ids::MappingId;
use mm::base::sysctl::Sysctl;
use mm::base::vmstat::VmEvent;
use mm::pages::pace::Balance;
use mm::pages::tree::Slot;
use mm::version::geometry::Cache;
use units::{Bytes, Nanos, NodeId, PAGE_SIZE, Pfn};

use crate::dirty_inodes::{DirtyInodes, DirtyList};
use crate::file::{Filesystem, Inode, PageRange};
use crate::kernel::Kernel;
use crate::machine::{CostOp, IoKind, IoRequest, Machine, WaitReason};
use crate::task::{Errno, Process};

/// The longest request: 512 KiB.
const REQUEST_PAGES: u32 = 128;
/// Writes that the disk's queue holds before the submitter sleeps (`nr_requests`).
const REQUESTS_MAX: u32 = 128;
/// Pages of one inode before the next has its turn, and the unit in which that grows
/// (`MIN_WRITEBACK_PAGES`).
const CHUNK_PAGES: u64 = 1024;
const CENTISECOND: u64 = 10_000_000;

/// What the flusher was asked for, and the writes that are on their way.
#[derive(Debug, Default)]
pub(crate) struct Flusher {
    pub(crate) inodes: DirtyInodes,
    /// Reclaim wants everything written (`wakeup_flusher_threads`).
    kicked: bool,
    /// Some writer found the background threshold exceeded.
    background: bool,
    last_old_flush: Nanos,
    requests: u32,
}

/// Why the flusher writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Work {
    /// Down to the background threshold.
    Background,
    /// What is older than `dirty_expire_centisecs`.
    Old,
    /// So many pages, for reclaim.
    Pages(u64),
}

/// A request in the making: pages that lie one behind the other on the disk.
#[derive(Debug, Default)]
struct Plug {
    offset: u64,
    pages: u32,
    ranges: Vec<PageRange>,
}

impl<M: Machine, T: Trace> Kernel<M, T> {
    /// A page or the inode itself was made dirty.
    pub(crate) fn note_dirty_inode(&self, inode: &Rc<Inode>) {
        if inode.list.get() != DirtyList::None {
            return;
        }
        let now = self.machine().now();
        let was_idle = {
            let mut flusher = self.shared.flusher.borrow_mut();
            let was_idle = flusher.inodes.is_empty();
            flusher.inodes.note_dirty(inode, now);
            was_idle
        };
        if was_idle {
            self.wake_flusher(); // It starts to look at the clock.
        }
    }

    fn wake_flusher(&self) {
        self.wake_queue(self.shared.wait.flusher);
    }

    fn start_background_writeback(&self) {
        self.shared.flusher.borrow_mut().background = true;
        self.wake_flusher();
    }

    /// Reclaim met nothing but dirty pages (`wakeup_flusher_threads`).
    pub(crate) fn kick_flusher(&self) {
        {
            let mut flusher = self.shared.flusher.borrow_mut();
            if flusher.kicked || flusher.inodes.is_empty() {
                return;
            }
            flusher.kicked = true;
        }
        self.wake_flusher();
    }

    fn centisecs(&self, sysctl: Sysctl) -> Nanos {
        Nanos(self.mem(|mem| mem.core.alloc.sysctls().get(sysctl)) * CENTISECOND)
    }

    /// The flusher thread of the data disk (`wb_workfn`).
    pub(crate) async fn flusher(&self) {
        loop {
            self.put_closed();
            let period = self.centisecs(Sysctl::DirtyWritebackCentisecs);
            let (asked, idle) = {
                let flusher = self.shared.flusher.borrow();
                (flusher.kicked || flusher.background, flusher.inodes.is_empty())
            };
            if !asked {
                let timeout = (!idle && period > Nanos::ZERO).then_some(period);
                let _ = self.machine().wait(self.shared.wait.flusher, WaitReason::FlusherIdle, timeout).await;
            }
            if std::mem::take(&mut self.shared.flusher.borrow_mut().kicked) {
                let dirty = self.mem(|mem| mem.cache.dirty());
                self.write_back(Work::Pages(dirty)).await;
            }
            let due = self.shared.flusher.borrow().last_old_flush + period;
            if period > Nanos::ZERO && self.machine().now() >= due {
                self.shared.flusher.borrow_mut().last_old_flush = self.machine().now();
                self.write_back(Work::Old).await;
            }
            self.shared.flusher.borrow_mut().background = false;
            self.write_back(Work::Background).await;
        }
    }

    fn is_over_background(&self) -> bool {
        let limits = self.mem(|mem| mem.dirty_limits());
        limits.dirty > limits.background
    }

    /// One piece of work: rounds over the inodes, a chunk of each in turn (`wb_writeback`).
    async fn write_back(&self, work: Work) {
        let mut plug = Plug::default();
        let mut left = if let Work::Pages(pages) = work { pages } else { u64::MAX };
        let expire = self.centisecs(Sysctl::DirtyExpireCentisecs);
        while left > 0 && (work != Work::Background || self.is_over_background()) {
            let now = self.machine().now();
            let cutoff = if work == Work::Old { now.saturating_sub(expire) } else { now };
            let round = {
                let mut flusher = self.shared.flusher.borrow_mut();
                flusher.inodes.queue_io(cutoff);
                flusher.inodes.due()
            };
            let mut progress = false;
            for _ in 0..round {
                let Some(inode) = self.shared.flusher.borrow_mut().inodes.next() else { break };
                let written = self.write_chunk(&inode, left, &mut plug).await;
                progress |= written > 0 || inode.list.get() == DirtyList::None;
                left = left.saturating_sub(written);
                if left == 0 || (work == Work::Background && !self.is_over_background()) {
                    break;
                }
            }
            if !progress {
                break;
            }
        }
        self.submit_plug(&mut plug);
    }

    /// Writes a chunk of an inode, and the inode itself with its last page; then puts it on the
    /// list where it belongs. Returns the pages.
    async fn write_chunk(&self, inode: &Rc<Inode>, left: u64, plug: &mut Plug) -> u64 {
        let chunk = self.mem(|mem| {
            let half_second = mem.cache.pace().bandwidth() / 2;
            half_second.min(mem.dirty_limits().threshold / 8) / CHUNK_PAGES * CHUNK_PAGES + CHUNK_PAGES
        });
        let written = self.write_pages(inode, chunk.min(left), plug).await;
        if self.mem(|mem| mem.cache.trees().dirty_pages(inode.mapping)) == 0 {
            self.prepare_flush(inode).await;
        }
        let list = if inode.is_orphan() {
            DirtyList::None
        } else if self.mem(|mem| mem.cache.trees().dirty_pages(inode.mapping)) > 0 {
            if written > 0 { DirtyList::MoreIo } else { DirtyList::Dirty }
        } else {
            self.mem(|mem| mem.set_inode_dirty(inode.mapping, false));
            DirtyList::None
        };
        if list == DirtyList::Dirty {
            inode.dirtied_when.set(self.machine().now()); // Dirtied again while it is being written.
        }
        self.shared.flusher.borrow_mut().inodes.put_last(inode, list);
        written
    }

    /// Starts writing up to `max` dirty pages of an inode, on from where the last call ended.
    async fn write_pages(&self, inode: &Rc<Inode>, max: u64, plug: &mut Plug) -> u64 {
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

    fn submit_plug(&self, plug: &mut Plug) {
        let Plug { offset, pages, ranges } = std::mem::take(plug);
        if pages == 0 {
            return;
        }
        let len = u64::from(pages) * PAGE_SIZE;
        self.shared.flusher.borrow_mut().requests += 1;
        self.mem(|mem| mem.core.alloc.events.add(VmEvent::PgPgOut, len / 1024));
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
        while self.mem(|mem| mem.cache.trees().writeback_pages(mapping)) > 0 {
            let queue = self.shared.wait.page_writeback;
            let _ = self.machine().wait(queue, WaitReason::PageWriteback, None).await;
        }
    }

    /// Writes all dirty pages of a file and waits for them.
    pub(crate) async fn write_and_wait(&self, inode: &Rc<Inode>) {
        let mut plug = Plug::default();
        while !inode.is_orphan() && self.mem(|mem| mem.cache.trees().dirty_pages(inode.mapping)) > 0 {
            let written = self.write_pages(inode, u64::MAX, &mut plug).await;
            self.submit_plug(&mut plug);
            if written == 0 {
                if inode.is_orphan() {
                    return;
                }
                // What is left is dirty and still being written from before.
                self.wait_for_writeback(inode.mapping).await;
            }
        }
        self.wait_for_writeback(inode.mapping).await;
        // It stays on the flusher's list, where the next round finds it clean.
        if !inode.is_orphan() && self.mem(|mem| mem.cache.trees().dirty_pages(inode.mapping)) == 0 {
            self.mem(|mem| mem.set_inode_dirty(inode.mapping, false));
        }
    }

    /// The inode itself is to be written: on XFS into the buffer of its cluster. Without memory for
    /// that it is taken as written all the same.
    async fn prepare_flush(&self, inode: &Inode) {
        if self.shared.filesystem == Filesystem::Xfs && inode.is_in_table() && !inode.is_orphan() {
            let _ = self.read_cluster(None, inode.number).await;
        }
    }

    /// `sync`: writes everything that is dirty now and waits for it.
    pub async fn sync(&self) {
        self.put_closed();
        let inodes = self.shared.flusher.borrow().inodes.all();
        let mut plug = Plug::default();
        for inode in &inodes {
            self.write_pages(inode, u64::MAX, &mut plug).await;
        }
        self.submit_plug(&mut plug);
        for inode in inodes {
            self.write_and_wait(&inode).await;
        }
        let flushed: Vec<MappingId> = self.shared.in_flight.borrow().written_mappings();
        for mapping in flushed {
            self.wait_for_writeback(mapping).await;
        }
        self.force_log().await;
    }

    /// After a page was made dirty: every now and then the writer looks whether it goes too fast
    /// (`balance_dirty_pages_ratelimited`).
    pub(crate) async fn balance_dirty_pages(&self, process: &Process) {
        let pace = &process.0.pace;
        pace.dirtied.set(pace.dirtied.get() + 1);
        if pace.dirtied.get() < pace.poll.get() {
            return;
        }
        loop {
            let now = self.machine().now();
            let since = now.saturating_sub(pace.paused_at.get());
            let pages = pace.dirtied.get();
            let balance = self.mem(|mem| mem.balance_dirty_pages(now, pages, since));
            if self.is_over_background() {
                self.start_background_writeback();
            }
            let (length, again) = match balance {
                Balance::Go { poll } => {
                    // What was not slept for is not forgotten, but for a writer below freerun.
                    pace.poll.set(poll);
                    pace.dirtied.set(0);
                    pace.paused_at.set(now);
                    return;
                }
                Balance::Pause { length, poll } => {
                    pace.poll.set(poll);
                    (length, false)
                }
                Balance::Wait { length } => (length, true),
            };
            self.machine().sleep(length, WaitReason::DirtyThrottle).await;
            pace.paused_at.set(self.machine().now());
            if !again || process.is_killed() {
                pace.dirtied.set(0);
                return;
            }
        }
    }

    /// kswapd writes single dirty pages whose place on the disk is known (`pageout`). ext4 takes
    /// none whose blocks are still to be allocated.
    pub(crate) fn pageout(&self, pages: Vec<Pfn>) {
        let mut plug = Plug::default();
        for pfn in pages {
            self.mem(|mem| mem.core.alloc.events.add(VmEvent::NrVmscanWrite, 1));
            let (mapping, index) = self
                .mem(|mem| (MappingId(mem.core.alloc.frames.owner(pfn)), mem.core.alloc.frames.index(pfn)));
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

    /// Makes a page of the cache dirty; on ext4 it gets a buffer head, charged with the page.
    /// False: the page is gone.
    pub(crate) async fn dirty_page(
        &self,
        process: &Process,
        inode: &Rc<Inode>,
        index: u32,
    ) -> Result<bool, Errno> {
        if self.shared.filesystem == Filesystem::Ext4 {
            self.give_buffer(process, inode, index).await?;
        }
        let found = self.mem(|mem| match mem.cache.find(inode.mapping, index) {
            Slot::Page(pfn) => {
                mem.set_dirty(pfn);
                true
            }
            _ => false,
        });
        if found {
            self.note_dirty_inode(inode);
        }
        Ok(found)
    }

    async fn give_buffer(&self, process: &Process, inode: &Inode, index: u32) -> Result<(), Errno> {
        let bare = |mem: &mut mm::Memory<T>| match mem.cache.find(inode.mapping, index) {
            Slot::Page(pfn) if !mem.core.alloc.frames.flags(pfn).has(mm::base::frame::PageFlags::PRIVATE) => {
                Some(pfn)
            }
            _ => None,
        };
        if self.mem(bare).is_none() {
            return Ok(());
        }
        let buffer = self.alloc_object(Some(process), Cache::BufferHead, Gfp::NOFS).await?;
        let cpu = self.machine().current_cpu();
        self.mem(|mem| match bare(mem) {
            Some(pfn) if mem.page_memcg(pfn) == buffer.memcg => mem.attach_buffer(cpu, pfn, buffer),
            _ => {
                mem.free_object(cpu, buffer);
            }
        });
        Ok(())
    }
}
