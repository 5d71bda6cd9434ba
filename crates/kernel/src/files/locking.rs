//! The lock of a file (`i_rwsem`): one task writes to it at a time.
//!
//! Whoever writes holds it for the whole call, also while it is paused for dirty pages or reclaims memory, so writers
//! of one file wait in line for each other's pauses. On XFS readers share it, and wait for writers. Measured by
//! `writeback:balance_dirty_pages` in guests of 5.10: four writers of one file below a limit are paused one after the
//! other, 20 ms each, and never two at once.
//!
//! Waiters get it in the order in which they came. Left out: that a running task may take it before the first waiter
//! runs, spinning on its owner, and the lock of directories. Next: [`crate::cache::filemap`], which takes it.

use std::cell::Cell;
use std::rc::Rc;

use mm::base::event::Trace;

use crate::files::inode::Inode;
use crate::files::lock::{Hold, Waiter};
use crate::fs::Filesystem;
use crate::handle::Kernel;
use crate::machine::{Machine, WaitReason};

impl<M: Machine, T: Trace> Kernel<M, T> {
    /// `inode_lock`, `inode_lock_shared`.
    pub(crate) async fn lock_file(&self, inode: &Inode, hold: Hold) {
        if !inode.lock.take_at_once(hold) {
            self.wait_for_file(inode, hold).await;
        }
    }

    /// Lets go of the lock: the first in line get it.
    #[inline]
    pub(crate) fn unlock_file(&self, inode: &Inode) {
        inode.lock.give_back();
        if inode.lock.awaited.get() {
            self.pass_file_on(inode);
        }
    }

    /// Whether readers of this filesystem lock files.
    pub(crate) fn readers_lock(&self) -> bool {
        self.shared.filesystem == Filesystem::Xfs
    }

    pub(crate) async fn wait_for_file(&self, inode: &Inode, hold: Hold) {
        let has_it = Rc::new(Cell::new(false));
        let queue = {
            let mut waiters = self.shared.file_waiters.borrow_mut();
            let queue = waiters.queues.pop().unwrap_or_else(|| self.machine().new_queue());
            let waiter = Waiter { hold, queue, has_it: Rc::clone(&has_it) };
            waiters.lines.entry(inode.number).or_default().push_back(waiter);
            queue
        };
        inode.lock.awaited.set(true);
        while !has_it.get() {
            let _ = self.machine().wait(queue, WaitReason::FileLock, None).await;
        }
        self.shared.file_waiters.borrow_mut().queues.push(queue);
    }

    fn pass_file_on(&self, inode: &Inode) {
        let mut waiters = self.shared.file_waiters.borrow_mut();
        let line = waiters.lines.get_mut(&inode.number).expect("somebody waits for the file");
        while let Some(first) = line.front()
            && inode.lock.try_take(first.hold)
        {
            first.has_it.set(true);
            self.machine().wake_all(first.queue);
            line.pop_front();
        }
        if line.is_empty() {
            waiters.lines.remove(&inode.number);
            inode.lock.awaited.set(false);
        }
    }
}
