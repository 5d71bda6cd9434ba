//! The flusher threads, one for each data disk, and their order of inodes (`wb_workfn`; MECHANISMS 10.4).
//!
//! ```text
//!   write --> dirty list, by the time of the first dirty page
//!                 |  older than 30 s, or all when above the background threshold or kicked
//!                 v
//!             io list --one chunk of each inode in turn--> requests of up to 512 KiB --> disk
//!                 ^                                                                       |
//!                 +-- more-io list: inodes with pages left              pages are clean <-+
//! ```
//! Left out: the journal of ext4, a disk's own share of the thresholds, cgroup writeback, `sync_file_range`. Neighbours:
//! `inodes` for the lists, [`super::pages`] for what is sent, [`super::pause`] for writers.

use std::rc::Rc;

use mm::base::event::Trace;
use mm::base::sysctl::Sysctl;
use units::Nanos;

use crate::files::inode::{DirtyList, Inode};
use crate::handle::Kernel;
use crate::machine::{Machine, WaitReason};
use crate::writeback::request::Plug;

/// Pages of one inode before the next has its turn, and the unit in which that grows
/// (`MIN_WRITEBACK_PAGES`).
const CHUNK_PAGES: u64 = 1024;

const CENTISECOND: u64 = 10_000_000;

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

impl<M: Machine, T: Trace> Kernel<M, T> {
    fn centisecs(&self, sysctl: Sysctl) -> Nanos {
        Nanos(self.mem(|mem| mem.core.alloc.sysctls().get(sysctl)) * CENTISECOND)
    }

    /// The flusher thread of a data disk (`wb_workfn`).
    pub(crate) async fn flusher(&self, device: u16) {
        let queue = self.flusher_of(device, |flusher| flusher.queue);
        loop {
            self.put_closed();
            let period = self.centisecs(Sysctl::DirtyWritebackCentisecs);
            let (asked, idle) = self.flusher_of(device, |flusher| {
                (flusher.kicked.is_some() || flusher.background, flusher.inodes.is_empty())
            });
            if !asked {
                let timeout = (!idle && period > Nanos::ZERO).then_some(period);
                let _ = self.machine().wait(queue, WaitReason::FlusherIdle, timeout).await;
            }
            if let Some(pages) = self.flusher_of(device, |flusher| flusher.kicked.take()) {
                let dirty = self.mem(|mem| mem.cache.dirty());
                self.write_back(device, Work::Pages(pages.min(dirty))).await;
            }
            let due = self.flusher_of(device, |flusher| flusher.last_old_flush + period);
            let now = self.machine().now();
            if period > Nanos::ZERO && now >= due {
                self.flusher_of(device, |flusher| flusher.last_old_flush = now);
                self.write_back(device, Work::Old).await;
            }
            self.flusher_of(device, |flusher| flusher.background = false);
            self.write_back(device, Work::Background).await;
        }
    }

    pub(crate) fn is_over_background(&self) -> bool {
        let limits = self.mem(|mem| mem.dirty_limits());
        limits.dirty > limits.background
    }

    /// One piece of work: rounds over the inodes, a chunk of each in turn (`wb_writeback`).
    async fn write_back(&self, device: u16, work: Work) {
        let mut plug = Plug::default();
        let mut left = if let Work::Pages(pages) = work { pages } else { u64::MAX };
        let expire = self.centisecs(Sysctl::DirtyExpireCentisecs);
        while left > 0 && (work != Work::Background || self.is_over_background()) {
            let now = self.machine().now();
            let cutoff = if work == Work::Old { now.saturating_sub(expire) } else { now };
            let round = self.flusher_of(device, |flusher| {
                flusher.inodes.queue_io(cutoff);
                flusher.inodes.due()
            });
            let mut progress = false;
            for _ in 0..round {
                let next = self.flusher_of(device, |flusher| flusher.inodes.next());
                let Some(inode) = next else { break };
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
            self.with_plug(plug, self.prepare_flush(inode)).await;
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
        self.flusher_of(inode.device, |flusher| flusher.inodes.put_last(inode, list));
        written
    }
}
