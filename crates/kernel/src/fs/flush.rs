//! What inodes ask of their filesystem when they change.
//!
//! Next: [`super::ext4_table`], [`super::xfs_log`]; an inode of ext4 is written with its table.

use mm::base::event::Trace;
use mm::fs::xfs::log::Change;

use crate::files::inode::Inode;
use crate::fs::Filesystem;
use crate::handle::Kernel;
use crate::machine::Machine;
use crate::tasks::process::Process;

impl<M: Machine, T: Trace> Kernel<M, T> {
    /// A file was made. ext4 noted that with its metadata.
    pub(crate) async fn log_create(&self, process: &Process, inode: &Inode) {
        self.log_inode(Some(process), inode, Change::Create).await;
    }

    /// Blocks were given to a file.
    pub(crate) async fn log_extend(&self, inode: &Inode) {
        let extents = inode.extents.borrow().count();
        self.log_inode(None, inode, Change::Extend { extents }).await;
    }

    /// The first bytes of a file are in memory.
    pub(crate) async fn log_begun(&self, process: &Process, inode: &Inode) {
        self.log_change(Some(process), inode, Change::Core).await;
    }

    /// A file has lost its last name.
    pub(crate) async fn log_remove(&self, inode: &Inode) {
        let last = self.shared.files.borrow().is_chunk_empty(inode.number);
        self.log_inode(None, inode, if last { Change::RemoveLast } else { Change::Remove }).await;
    }

    async fn log_inode(&self, process: Option<&Process>, inode: &Inode, change: Change) {
        match self.shared.filesystem {
            Filesystem::Ext3 => {}
            Filesystem::Ext4 => match change {
                Change::Create | Change::Core => {}
                Change::Extend { .. } => self.map_in_tables(inode).await,
                Change::Remove | Change::RemoveLast => self.remove_from_tables(inode).await,
            },
            Filesystem::Xfs => self.log_change(process, inode, change).await,
        }
    }
}
