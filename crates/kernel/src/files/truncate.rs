//! Cutting and growing files: `ftruncate(2)`.
//!
//! What lies behind the new end is dropped, dirty or not, once nothing of it is on its way to or from the disk; its
//! blocks go. The page that the new end is in is read and made dirty, as its rest becomes zeroes. What a file grows by
//! is a hole, which reads as zeroes and gets blocks when the file is next written back.
//!
//! Left out: that a large folio over the new end is split: one that is clean goes whole, one that is dirty stays whole;
//! blocks that are freed are given to nobody. Next: [`super::names`] removes files.

use std::rc::Rc;

use mm::base::event::Trace;
use units::{Order, PAGE_SIZE};

use crate::errno::Errno;
use crate::files::advice::page;
use crate::files::descriptor::OpenFile;
use crate::files::inode::Inode;
use crate::files::lock::Hold;
use crate::files::names::FILE_PAGES_MAX;
use crate::handle::Kernel;
use crate::machine::{CostOp, Machine};
use crate::tasks::process::Process;

impl<M: Machine, T: Trace> Kernel<M, T> {
    /// Makes a file `len` bytes long.
    ///
    /// # Errors
    /// `Inval` beyond what a file can have; `NoMem` for the page that the new end is in; `Killed`.
    pub async fn truncate(&self, process: &Process, file: &OpenFile, len: u64) -> Result<(), Errno> {
        process.check_alive()?;
        self.machine().charge(CostOp::Syscall, 1);
        if len.div_ceil(PAGE_SIZE) > FILE_PAGES_MAX {
            return Err(Errno::Inval);
        }
        self.lock_file(&file.inode, Hold::Exclusive).await;
        let resized = self.resize(process, &file.inode, len).await;
        self.unlock_file(&file.inode);
        resized?;
        self.return_to_user(process).await;
        Ok(())
    }

    async fn resize(&self, process: &Process, inode: &Rc<Inode>, len: u64) -> Result<(), Errno> {
        let before = inode.size.get();
        if len < before && !len.is_multiple_of(PAGE_SIZE) {
            let keeps_some = true;
            self.write_folio(process, inode, page(len / PAGE_SIZE), keeps_some, Order(0)).await?;
        }
        inode.size.set(len);
        if len < before {
            self.cut(inode, page(len.div_ceil(PAGE_SIZE))).await;
        }
        if len != before && !inode.is_orphan() {
            self.mem(|mem| mem.set_inode_dirty(inode.mapping, true));
            self.note_dirty_inode(inode, process.memcg());
            self.log_extend(inode).await;
        }
        Ok(())
    }

    /// Drops the pages from `first` on, and their blocks.
    async fn cut(&self, inode: &Rc<Inode>, first: u32) {
        loop {
            let cpu = self.machine().current_cpu();
            if self.mem(|mem| mem.mapping_truncate(cpu, inode.mapping, first)) {
                break;
            }
            if self.shared.in_flight.borrow().reads(inode.mapping) {
                self.wait_for_any_read().await;
            } else if self.mem(|mem| mem.cache.trees().writeback_pages(inode.mapping)) > 0 {
                self.wait_for_writeback(inode.mapping).await;
            } else {
                self.commit_metadata().await; // A transaction holds one of them.
            }
        }
        inode.extents.borrow_mut().cut(first);
        inode.room.set(0);
        let cpu = self.machine().current_cpu();
        self.mem(|mem| mem.forget_extents(cpu, inode.mapping, first));
    }
}
