//! New ends of files on XFS: they are logged once the disk has what was written behind the old ones, by a worker
//! (`xfs_end_io`).
//!
//! Until then those pages are under writeback, and their bios in use. So a wave of small files that is on the disk is
//! followed by one of log vectors. Left out: that the worker takes all writes to a file together, and that another one
//! goes on where it waits: of a request, files whose ends take no new memory come first. Next: [`super::xfs_log`],
//! [`crate::writeback::plug`].

use std::rc::Rc;

use mm::base::event::Trace;
use mm::fs::xfs::log::Change;

use crate::cache::in_flight::Transfer;
use crate::files::inode::Inode;
use crate::fs::Filesystem;
use crate::handle::Kernel;
use crate::machine::{Machine, WaitReason};
use crate::writeback::request::Plug;

impl<M: Machine, T: Trace> Kernel<M, T> {
    /// What was added to a plug last lies behind the end that a file has on the disk.
    pub(crate) fn note_end(&self, inode: &Rc<Inode>, plug: &mut Plug) {
        if self.shared.filesystem == Filesystem::Xfs
            && let Some(request) = plug.requests.last_mut()
        {
            request.ends.push(Rc::clone(inode));
        }
    }

    /// The worker.
    pub(crate) async fn end_worker(&self) {
        loop {
            let next = self.shared.in_flight.borrow_mut().take_put_off();
            let Some((tag, mut ends)) = next else {
                let _ = self.machine().wait(self.shared.wait.ends, WaitReason::Periodic, None).await;
                continue;
            };
            ends.retain(|inode| !inode.is_orphan() && !self.log_core_at_once(inode));
            let written = self.shared.in_flight.borrow_mut().remove(tag);
            if let Transfer::Write { device, ranges, runs, bios, .. } = written {
                self.runs_done(device, runs, bios);
                self.pages_written(&ranges);
            }
            // They may need memory that those pages and bios had.
            for inode in ends {
                self.log_change(None, &inode, Change::Core).await;
            }
            self.machine().cond_resched().await; // xfs_end_io
        }
    }
}
