//! A piece of writeback: rounds over the inodes that have something to write, a chunk of each in turn
//! (`wb_writeback`; MECHANISMS 10.4).
//!
//! The flusher does it, and up to 3.1 a writer itself when too much is dirty. Neighbours:
//! [`super::flusher`], [`super::pause`], [`super::pages`] for what is sent.

use std::rc::Rc;

use mm::MemcgId;
use mm::base::event::Trace;
use mm::base::sysctl::Sysctl;
use mm::pages::pace::{DirtyDomains, DirtyLimits};
use mm::version::rules::DirtyPause;
use units::Nanos;

use crate::files::inode::{DirtyList, Inode};
use crate::handle::Kernel;
use crate::machine::Machine;
use crate::writeback::request::Plug;

/// Pages of one inode before the next has its turn, and the unit in which that grows
/// (`MIN_WRITEBACK_PAGES`).
const CHUNK_PAGES: u64 = 1024;

/// Why the flusher writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Work {
    /// Down to the background thresholds, and to the cgroup's share of that of the machine.
    Background,
    /// What is older than `dirty_expire_centisecs`.
    Old,
    /// So many pages, for reclaim or for a writer.
    Pages(u64),
}

impl<M: Machine, T: Trace> Kernel<M, T> {
    /// Whether there is more to write than may be left dirty (`wb_over_bg_thresh`).
    fn is_needed(&self, memcg: MemcgId, work: Work) -> bool {
        if work != Work::Background {
            return true;
        }
        let over = |limits: DirtyLimits| limits.dirty > limits.background;
        let (DirtyDomains { machine, group }, own, has_share) = self.mem(|mem| {
            let has_share = mem.core.rules().dirty_pause == DirtyPause::Sleeps;
            (mem.dirty_domains(memcg), mem.dirty_of(memcg), has_share)
        });
        let part = || self.shared.shares.borrow().part(memcg, self.machine().now(), machine.background);
        over(machine) || (has_share && own > part()) || group.is_some_and(over)
    }

    /// Whether a round is over before all its inodes had their turn: after a tenth of a second (`writeback_sb_inodes`;
    /// measured, guests of 6.12), so what is dirty then may be far below the threshold; up to 3.1 with the chunk
    /// that brings it there.
    fn ends_round(&self, memcg: MemcgId, work: Work, enough: Nanos) -> bool {
        match self.mem(|mem| mem.core.rules().dirty_pause) {
            DirtyPause::Sleeps => self.machine().now() >= enough,
            DirtyPause::Writes => work == Work::Background && !self.is_needed(memcg, work),
        }
    }

    /// A writer writes back up to so many pages of a disk itself; returns how many it did.
    pub(crate) async fn write_back_for_writer(&self, device: u16, pages: u64) -> u64 {
        self.write_back(device, MemcgId::ROOT, Work::Pages(pages)).await
    }

    /// One piece of a worker's work: rounds over its inodes, a chunk of each in turn (`wb_writeback`). Returns the
    /// pages.
    pub(crate) async fn write_back(&self, device: u16, memcg: MemcgId, work: Work) -> u64 {
        let mut plug = Plug::default();
        let asked = if let Work::Pages(pages) = work { pages } else { u64::MAX };
        let mut left = asked;
        let expire = self.centisecs(Sysctl::DirtyExpireCentisecs);
        while left > 0 && self.is_needed(memcg, work) {
            let now = self.machine().now();
            let cutoff = if work == Work::Old { now.saturating_sub(expire) } else { now };
            let enough = now + self.ticks(self.machine().hz() / 10 + 1);
            self.flusher_of(device, |flusher| flusher.worker(memcg).inodes.queue_io(cutoff));
            let mut progress = false;
            while let Some(inode) = self.flusher_of(device, |flusher| flusher.worker(memcg).inodes.next()) {
                let written = self.write_chunk(&inode, left, &mut plug).await;
                progress |= written > 0 || inode.list.get() == DirtyList::None;
                left = left.saturating_sub(written);
                if left == 0 || self.ends_round(memcg, work, enough) {
                    break;
                }
            }
            if !progress {
                break;
            }
        }
        self.submit_plug(&mut plug);
        asked - left
    }

    /// Writes a chunk of an inode, and the inode itself with its last page; then puts it on the
    /// list where it belongs. Returns the pages.
    async fn write_chunk(&self, inode: &Rc<Inode>, left: u64, plug: &mut Plug) -> u64 {
        let chunk = self.mem(|mem| {
            if mem.cache.trees().dirty_pages(inode.mapping) <= CHUNK_PAGES {
                return CHUNK_PAGES; // The least that it can be.
            }
            let half_second = mem.cache.pace().bandwidth() / 2;
            half_second.min(mem.dirty_limits().threshold / 8) / CHUNK_PAGES * CHUNK_PAGES + CHUNK_PAGES
        });
        let written = self.write_pages(inode, chunk.min(left), plug).await;
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
        self.flusher_of(inode.device, |flusher| {
            flusher.worker(inode.writer.get()).inodes.put_last(inode, list)
        });
        written
    }
}
