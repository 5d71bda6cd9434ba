//! The flusher thread of the data disk, and its order of inodes (`wb_workfn`; MECHANISMS 10.4).
//!
//! ```text
//!   write --> dirty list, by the time of the first dirty page
//!                 |  older than 30 s, or all when above the background threshold or kicked
//!                 v
//!             io list --one chunk of each inode in turn--> requests of up to 512 KiB --> disk
//!                 ^                                                                       |
//!                 +-- more-io list: inodes with pages left              pages are clean <-+
//! ```
//! Left out: the journal of ext4, several devices, cgroup writeback, `sync_file_range`. Neighbours:
//! `inodes` for the lists, [`super::work`] for a piece of its work, [`super::pause`] for writers.

use mm::base::event::Trace;
use mm::base::sysctl::Sysctl;
use units::Nanos;

use crate::handle::Kernel;
use crate::machine::{Machine, WaitReason};
use crate::writeback::work::Work;

impl<M: Machine, T: Trace> Kernel<M, T> {
    /// The flusher thread of the data disk (`wb_workfn`).
    pub(crate) async fn flusher(&self) {
        loop {
            self.put_closed();
            let period = self.centisecs(Sysctl::DirtyWritebackCentisecs);
            let (asked, idle) = {
                let flusher = self.shared.flusher.borrow();
                (flusher.kicked.is_some() || flusher.background, flusher.inodes.is_empty())
            };
            if !asked {
                let timeout = (!idle && period > Nanos::ZERO).then_some(period);
                let _ = self.machine().wait(self.shared.wait.flusher, WaitReason::FlusherIdle, timeout).await;
            }
            let kicked = self.shared.flusher.borrow_mut().kicked.take();
            if let Some(pages) = kicked {
                let dirty = self.mem(|mem| mem.cache.dirty());
                self.write_back(Work::Pages(pages.min(dirty))).await;
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
}
