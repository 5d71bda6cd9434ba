//! What inodes ask of their filesystem when they change and when they are written.
//!
//! Next: [`super::ext4_table`], [`super::xfs`], [`super::xfs_log`]; an inode of ext4 is written with its table.

use mm::base::event::Trace;

use crate::files::inode::Inode;
use crate::fs::Filesystem;
use crate::handle::Kernel;
use crate::machine::Machine;
use crate::tasks::process::Process;

impl<M: Machine, T: Trace> Kernel<M, T> {
    /// An inode changes in a transaction.
    pub(crate) async fn log_inode(&self, process: Option<&Process>, inode: &Inode) {
        match self.shared.filesystem {
            Filesystem::Ext3 => {}
            // A create was noted with its metadata.
            Filesystem::Ext4 if process.is_some() => {}
            Filesystem::Ext4 => self.map_in_tables(inode).await,
            Filesystem::Xfs => self.log_change(process, inode).await,
        }
    }

    /// The inode itself is to be written. Without memory for that it is taken as written all the same.
    pub(crate) async fn prepare_flush(&self, inode: &Inode) {
        match self.shared.filesystem {
            Filesystem::Ext3 | Filesystem::Ext4 => {}
            Filesystem::Xfs if !inode.is_in_table() || inode.is_orphan() => {}
            // Into the buffer of its cluster.
            Filesystem::Xfs => {
                let _ = self.read_cluster(None, inode.number).await;
            }
        }
    }
}
