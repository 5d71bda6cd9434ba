//! Closing: what a dropped descriptor held, when an unlinked file goes, and inodes that left memory.
//!
//! Nobody waits here: reclaim and interrupts take note of closed files, too.

use std::rc::Rc;

use mm::base::event::Trace;
use mm::base::ids::DentryId;

use crate::files::inode::Inode;
use crate::files::table::Files;
use crate::handle::Kernel;
use crate::machine::Machine;

impl<M: Machine, T: Trace> Kernel<M, T> {
    /// Takes note of descriptors that were dropped and of inodes that left memory, and removes orphans whose
    /// last page is there.
    /// The kernel does so at its next step; whoever drops an [`OpenFile`](crate::OpenFile) and wants it closed at
    /// once, as `close(2)` is, calls this.
    pub fn put_closed(&self) {
        loop {
            let Some(inode) = self.shared.closed.borrow_mut().pop() else { break };
            self.put_inode(&inode);
        }
        self.put_released();
        if self.shared.files.borrow().orphans.is_empty() {
            return;
        }
        let orphans = std::mem::take(&mut self.shared.files.borrow_mut().orphans);
        for inode in orphans {
            self.remove_or_remember(&inode);
        }
    }

    /// The dentry of an inode, if it is in memory.
    pub(crate) fn dentry_of(&self, inode: &Inode) -> Option<DentryId> {
        if inode.is_root() {
            return Some(Files::root_dentry(inode));
        }
        self.mem(|mem| mem.fs.vfs.dentry_of(inode.mapping))
    }

    /// Keeps an inode that has a dentry in memory until [`put_inode`](Self::put_inode).
    pub(crate) fn hold_inode(&self, inode: &Inode) {
        inode.opens.set(inode.opens.get() + 1);
        if let Some(dentry) = self.dentry_of(inode) {
            self.mem(|mem| mem.hold_dentry(dentry));
        }
    }

    /// A descriptor of an inode, or a task that used it, is gone.
    pub(crate) fn put_inode(&self, inode: &Rc<Inode>) {
        let dentry = self.dentry_of(inode);
        self.put_inode_and(inode, dentry);
    }

    /// [`put_inode`](Self::put_inode) for an inode that has lost its dentry since.
    pub(crate) fn put_inode_and(&self, inode: &Rc<Inode>, dentry: Option<DentryId>) {
        inode.opens.set(inode.opens.get() - 1);
        if inode.is_root() {
            return;
        }
        if let Some(dentry) = dentry {
            let cpu = self.machine().current_cpu();
            self.mem(|mem| mem.put_dentry(cpu, dentry));
        }
        if inode.is_orphan() {
            self.remove_or_remember(inode);
        } else if dentry.is_none() && inode.opens.get() == 0 {
            if self.mem(|mem| mem.fs.vfs.has_objects(inode.mapping)) {
                self.mem(|mem| mem.put_inode(inode.mapping));
            } else {
                self.drop_inode(inode); // It never came into memory.
            }
        }
    }

    pub(crate) fn is_in_transfer(&self, inode: &Inode) -> bool {
        self.mem(|mem| mem.cache.trees().writeback_pages(inode.mapping)) > 0
            || self.shared.in_flight.borrow().reads(inode.mapping)
    }

    /// Removes a file that has neither name nor descriptors, now or when none of its pages is on its way.
    pub(crate) fn remove_or_remember(&self, inode: &Rc<Inode>) {
        if inode.gone.get() {
            return;
        }
        if self.is_in_transfer(inode) {
            self.shared.files.borrow_mut().orphans.push(Rc::clone(inode));
            return;
        }
        self.drop_inode(inode);
    }

    fn drop_inode(&self, inode: &Inode) {
        inode.gone.set(true);
        let cpu = self.machine().current_cpu();
        let (was_cached, stays) = self.mem(|mem| {
            let was_cached = mem.fs.vfs.has_objects(inode.mapping);
            mem.mapping_remove(cpu, inode.mapping);
            (was_cached, mem.fs.vfs.has_objects(inode.mapping))
        });
        if stays {
            self.shared.files.borrow_mut().inactivate(inode);
        }
        if was_cached {
            self.put_released();
        } else {
            self.shared.files.borrow_mut().release(inode.mapping);
        }
    }

    /// Checks that names, inodes on the disks and inodes in memory agree. For tests, while no task is in a
    /// system call.
    ///
    /// # Errors
    /// What is wrong.
    pub fn check_files(&self) -> Result<(), String> {
        self.put_closed();
        self.shared.files.borrow().check()
    }

    /// Takes note of inodes that left memory: they are written, and their numbers in memory are free.
    pub(crate) fn put_released(&self) {
        while self.mem(|mem| mem.fs.vfs.has_released()) {
            let Some(mapping) = self.mem(|mem| mem.take_released()) else { return };
            self.shared.files.borrow_mut().release(mapping);
        }
    }
}
