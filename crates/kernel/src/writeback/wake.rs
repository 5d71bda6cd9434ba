//! Waking the flusher: inodes become dirty, writers and reclaim ask for more.
//!
//! Next: [`super::flusher`].

use std::rc::Rc;

use mm::MemcgId;
use mm::base::event::Trace;

use crate::files::inode::{DirtyList, Inode};
use crate::handle::Kernel;
use crate::machine::Machine;

impl<M: Machine, T: Trace> Kernel<M, T> {
    /// A page or the inode itself was made dirty, for a cgroup.
    pub(crate) fn note_dirty_inode(&self, inode: &Rc<Inode>, memcg: MemcgId) {
        inode.writer.set(memcg);
        if inode.list.get() != DirtyList::None {
            return;
        }
        let now = self.machine().now();
        let was_idle = self.flusher_of(inode.device, |flusher| {
            let was_idle = flusher.inodes.is_empty();
            flusher.inodes.note_dirty(inode, now);
            was_idle
        });
        if was_idle {
            self.wake_flusher(inode.device); // It starts to look at the clock.
        }
    }

    fn wake_flusher(&self, device: u16) {
        let queue = self.flusher_of(device, |flusher| flusher.queue);
        self.wake_queue(queue);
    }

    /// A writer to a disk found more dirty than the background threshold of the machine or of a cgroup.
    pub(crate) fn start_background_writeback(&self, device: u16, memcg: MemcgId) {
        self.flusher_of(device, |flusher| flusher.background.insert(memcg));
        self.wake_flusher(device);
    }

    /// Reclaim wants so many pages written on each disk, or as many as are dirty
    /// (`wakeup_flusher_threads`). What is asked before a flusher has begun is not added up.
    pub(crate) fn kick_flushers(&self, pages: u64) {
        for device in self.disks() {
            let kicked = self.flusher_of(device, |flusher| {
                let kicked = flusher.kicked.is_none() && !flusher.inodes.is_empty();
                if kicked {
                    flusher.kicked = Some(pages);
                }
                kicked
            });
            if kicked {
                self.wake_flusher(device);
            }
        }
    }
}
