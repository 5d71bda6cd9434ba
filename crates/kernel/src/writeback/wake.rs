//! Waking the flusher: inodes become dirty, writers and reclaim ask for more.
//!
//! Next: [`super::flusher`].

use std::rc::Rc;

use mm::MemcgId;
use mm::base::event::Trace;
use mm::base::sysctl::Sysctl;
use mm::version::rules::CgroupWriteback;
use units::Nanos;

use crate::files::inode::{DirtyList, Inode};
use crate::handle::Kernel;
use crate::machine::Machine;

const CENTISECOND: u64 = 10_000_000;

impl<M: Machine, T: Trace> Kernel<M, T> {
    pub(crate) fn centisecs(&self, sysctl: Sysctl) -> Nanos {
        Nanos(self.mem(|mem| mem.core.alloc.sysctls().get(sysctl)) * CENTISECOND)
    }

    /// A page or the inode itself was made dirty, for a cgroup. An inode that was clean is that one's from here on.
    pub(crate) fn note_dirty_inode(&self, inode: &Rc<Inode>, memcg: MemcgId) {
        if inode.list.get() != DirtyList::None {
            return;
        }
        let memcg = self.worker_of(memcg);
        inode.writer.set(memcg);
        let now = self.machine().now();
        let looks_at = now + self.centisecs(Sysctl::DirtyWritebackCentisecs);
        let was_idle = self.flusher_of(inode.device, |flusher| {
            let worker = flusher.worker(memcg);
            let was_idle = worker.inodes.is_empty();
            worker.inodes.note_dirty(inode, now);
            if was_idle {
                worker.looks_at.get_or_insert(looks_at);
            }
            was_idle
        });
        if was_idle {
            self.wake_flusher(inode.device); // It starts to look at the clock.
        }
    }

    /// The cgroup whose worker writes what one makes dirty.
    pub(crate) fn worker_of(&self, memcg: MemcgId) -> MemcgId {
        match self.mem(|mem| mem.core.rules().cgroup_writeback) {
            CgroupWriteback::Absent => MemcgId::ROOT,
            _ => memcg,
        }
    }

    fn wake_flusher(&self, device: u16) {
        let queue = self.flusher_of(device, |flusher| flusher.queue);
        self.wake_queue(queue);
    }

    /// A writer to a disk found more dirty than the background threshold of the machine or of its cgroup: its worker is
    /// asked, or all where that one has nothing to write. (Linux leaves the others to the clock.)
    pub(crate) fn start_background_writeback(&self, device: u16, memcg: MemcgId) {
        let memcg = self.worker_of(memcg);
        self.flusher_of(device, |flusher| {
            let has_none = flusher.worker(memcg).inodes.is_empty();
            for (&of, worker) in &mut flusher.workers {
                worker.is_asked |= has_none || of == memcg;
            }
        });
        self.wake_flusher(device);
    }

    /// Reclaim wants so many pages written on each disk, or as many as are dirty
    /// (`wakeup_flusher_threads`). What is asked before a flusher has begun is not added up.
    pub(crate) fn kick_flushers(&self, pages: u64) {
        for device in self.disks() {
            let kicked = self.flusher_of(device, |flusher| {
                let kicked = flusher.kicked.is_none() && !flusher.is_idle();
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
