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
//! Left out: the journal of ext4, a disk's own share of the thresholds, a worker of its own for each cgroup,
//! `sync_file_range`. Neighbours: `inodes` for the lists, [`super::work`] for a piece of its work,
//! [`super::pause`] for writers.

use mm::base::event::Trace;
use mm::base::sysctl::Sysctl;
use units::Nanos;

use crate::handle::Kernel;
use crate::machine::{Machine, WaitReason};
use crate::writeback::work::Work;

impl<M: Machine, T: Trace> Kernel<M, T> {
    /// The flusher thread of a data disk (`wb_workfn`).
    pub(crate) async fn flusher(&self, device: u16) {
        let queue = self.flusher_of(device, |flusher| flusher.queue);
        loop {
            self.put_closed();
            let period = self.centisecs(Sysctl::DirtyWritebackCentisecs);
            let (asked, idle) = self.flusher_of(device, |flusher| {
                (flusher.kicked.is_some() || !flusher.background.is_empty(), flusher.inodes.is_empty())
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
            let asked = self.flusher_of(device, |flusher| std::mem::take(&mut flusher.background));
            self.write_back(device, Work::Background).await;
            for memcg in asked {
                self.write_back(device, Work::Group(memcg)).await;
            }
        }
    }
}
