//! `sync` and `fsync`: writing what is dirty and waiting for it.

use std::rc::Rc;

use mm::base::event::Trace;
use mm::base::ids::MappingId;

use crate::errno::Errno;
use crate::files::descriptor::OpenFile;
use crate::files::inode::Inode;
use crate::handle::Kernel;
use crate::machine::{CostOp, Machine};
use crate::tasks::process::Process;
use crate::writeback::request::Plug;

impl<M: Machine, T: Trace> Kernel<M, T> {
    /// Writes the pages of a file that are dirty now, and waits for all that are being written then. What others dirty
    /// in the meantime, or write, is not waited for (`filemap_write_and_wait`).
    pub(crate) async fn write_and_wait(&self, inode: &Rc<Inode>) {
        let mut plug = Plug::default();
        let tagged = self.mem(|mem| mem.cache.dirty_ranges(inode.mapping));
        self.write_tagged(inode, tagged, &mut plug).await;
        self.submit_plug(&mut plug);
        if inode.gone.get() {
            return;
        }
        self.wait_for_writes_so_far(inode.mapping).await;
        // It stays on the flusher's list, where the next round finds it clean.
        if !inode.is_orphan() && self.mem(|mem| mem.cache.trees().dirty_pages(inode.mapping)) == 0 {
            self.mem(|mem| mem.set_inode_dirty(inode.mapping, false));
        }
    }

    /// `sync`: writes everything that is dirty now and waits for it.
    pub async fn sync(&self) {
        self.put_closed();
        if self.disks().len() > 1 {
            self.kick_flushers(u64::MAX); // This task takes one disk after the other.
        }
        let inodes: Vec<Rc<Inode>> = {
            let flushers = self.shared.flushers.borrow();
            flushers.iter().flat_map(|flusher| flusher.all_inodes()).collect()
        };
        let mut plug = Plug::default();
        for inode in &inodes {
            self.write_pages(inode, u64::MAX, &mut plug).await;
        }
        self.submit_plug(&mut plug);
        for inode in inodes {
            self.write_and_wait(&inode).await;
        }
        let flushed: Vec<MappingId> = self.shared.in_flight.borrow().written_mappings();
        for mapping in flushed {
            self.wait_for_writeback(mapping).await;
        }
        self.commit_metadata().await;
        // Then the block devices (`sync_bdevs`): what the commit made dirty.
        for disk in self.disks() {
            let device = self.shared.files.borrow().device(disk);
            if self.mem(|mem| mem.cache.trees().dirty_pages(device.mapping)) > 0 {
                self.write_and_wait(&device).await;
            }
        }
    }

    /// `fsync(2)`: writes the dirty pages of a file and waits until they are on the disk.
    ///
    /// # Errors
    /// `Killed`.
    pub async fn fsync(&self, process: &Process, file: &OpenFile) -> Result<(), Errno> {
        process.check_alive()?;
        self.machine().charge(CostOp::Syscall, 1);
        self.write_and_wait(&file.inode).await;
        self.commit_metadata().await;
        self.return_to_user(process).await;
        Ok(())
    }
}
