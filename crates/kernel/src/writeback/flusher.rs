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
//! A cgroup has a worker of its own since 4.2, with its own lists and times.
//! Left out: the journal of ext4, a disk's own share of the thresholds, that workers run at the same time,
//! `sync_file_range`. Neighbours: `inodes` for the lists, [`super::work`] for a piece of its work,
//! [`super::pause`] for writers.

use mm::MemcgId;
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
            let now = self.machine().now();
            let (is_kicked, is_due, next) = self.flusher_of(device, |flusher| {
                (flusher.kicked.is_some(), !flusher.due(now, false).is_empty(), flusher.next_look())
            });
            if !is_kicked && !is_due {
                let timeout = next.map(|at| at.saturating_sub(now));
                let _ = self.machine().wait(queue, WaitReason::FlusherIdle, timeout).await;
            }
            let now = self.machine().now();
            let kicked = self.flusher_of(device, |flusher| flusher.kicked.take());
            let mut left = kicked.map_or(0, |pages| pages.min(self.mem(|mem| mem.cache.dirty())));
            for memcg in self.flusher_of(device, |flusher| flusher.due(now, kicked.is_some())) {
                left -= self.write_back(device, memcg, Work::Pages(left)).await;
                self.run_worker(device, memcg).await;
            }
        }
    }

    /// A worker does what there is to do.
    async fn run_worker(&self, device: u16, memcg: MemcgId) {
        let period = self.centisecs(Sysctl::DirtyWritebackCentisecs);
        let now = self.machine().now();
        let flushes_old = self.flusher_of(device, |flusher| {
            let worker = flusher.worker(memcg);
            (worker.is_asked, worker.looks_at) = (false, None);
            let flushes_old = period > Nanos::ZERO && now >= worker.last_old_flush + period;
            if flushes_old {
                worker.last_old_flush = now;
            }
            flushes_old
        });
        if flushes_old {
            self.write_back(device, memcg, Work::Old).await;
        }
        self.write_back(device, memcg, Work::Background).await;
        let now = self.machine().now();
        self.flusher_of(device, |flusher| {
            let worker = flusher.worker(memcg);
            if period > Nanos::ZERO && !worker.inodes.is_empty() {
                worker.looks_at = Some(now + period);
            }
        });
    }
}
