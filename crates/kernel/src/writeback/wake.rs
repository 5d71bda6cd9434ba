//! Waking the flusher: inodes become dirty, writers and reclaim ask for more.
//!
//! Next: [`super::flusher`].

use std::rc::Rc;

use mm::base::event::Trace;

use crate::files::inode::{DirtyList, Inode};
use crate::handle::Kernel;
use crate::machine::Machine;

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

    pub(crate) fn start_background_writeback(&self) {
        self.shared.flusher.borrow_mut().background = true;
        self.wake_flusher();
    }

    /// Reclaim wants so many pages written, or as many as are dirty (`wakeup_flusher_threads`). What is asked
    /// before the flusher has begun is not added up.
    pub(crate) fn kick_flusher(&self, pages: u64) {
        {
            let mut flusher = self.shared.flusher.borrow_mut();
            if flusher.kicked.is_some() || flusher.inodes.is_empty() {
                return;
            }
            flusher.kicked = Some(pages);
        }
        self.wake_flusher();
    }
}
