//! Closing: what a dropped descriptor held, and when an unlinked file goes.
//!
//! Nobody waits here: reclaim and interrupts take note of closed files, too.

use std::rc::Rc;

use mm::base::event::Trace;

use crate::files::inode::Inode;
use crate::handle::Kernel;
use crate::machine::Machine;

impl<M: Machine, T: Trace> Kernel<M, T> {
    /// Takes note of descriptors that were dropped, and removes orphans whose last page is there.
    /// The kernel does so at its next step; whoever drops an [`OpenFile`](crate::OpenFile) and wants it closed at
    /// once, as `close(2)` is, calls this.
    pub fn put_closed(&self) {
        loop {
            let Some(inode) = self.shared.closed.borrow_mut().pop() else { break };
            self.put_descriptor(&inode);
        }
        if self.shared.files.borrow().orphans.is_empty() {
            return;
        }
        let orphans = std::mem::take(&mut self.shared.files.borrow_mut().orphans);
        for inode in orphans {
            self.remove_or_remember(&inode);
        }
    }

    pub(crate) fn put_descriptor(&self, inode: &Rc<Inode>) {
        inode.opens.set(inode.opens.get() - 1);
        self.mem(|mem| {
            if mem.fs.vfs.is_cached(inode.mapping).0 {
                mem.dentry_put(inode.mapping);
            }
        });
        if inode.is_orphan() {
            self.remove_or_remember(inode);
        }
    }

    pub(crate) fn is_in_transfer(&self, inode: &Inode) -> bool {
        self.mem(|mem| mem.cache.trees().writeback_pages(inode.mapping)) > 0
            || self.shared.in_flight.borrow().reads(inode.mapping)
    }

    pub(crate) fn remove_or_remember(&self, inode: &Rc<Inode>) {
        if inode.gone.get() {
            return;
        }
        if self.is_in_transfer(inode) {
            self.shared.files.borrow_mut().orphans.push(Rc::clone(inode));
            return;
        }
        inode.gone.set(true);
        self.shared.files.borrow_mut().by_mapping[inode.mapping.0 as usize] = None;
        let cpu = self.machine().current_cpu();
        self.mem(|mem| mem.mapping_remove(cpu, inode.mapping));
    }
}
