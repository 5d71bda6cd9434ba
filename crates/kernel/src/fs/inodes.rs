//! What inodes ask of their filesystem, and the filesystem's own threads.
//!
//! Next: [`super::flush`], [`super::ext4_table`], [`super::xfs`], [`super::xfs_checkpoint`],
//! [`super::xfs_ail`], [`super::xfs_reclaim`].

use mm::base::event::Trace;
use units::Nanos;

use crate::errno::Errno;
use crate::files::inode::{Inode, Metadata};
use crate::fs::Filesystem;
use crate::fs::xfs_reclaim::RECLAIM_PERIOD;
use crate::handle::Kernel;
use crate::machine::{Machine, WaitReason};
use crate::tasks::process::Process;

impl<M: Machine, T: Trace> Kernel<M, T> {
    /// Starts the filesystem's own threads. `phase` draws when one with this name and period first runs.
    pub(crate) fn start_filesystem(&self, phase: impl Fn(&'static str, Nanos) -> Nanos) {
        match self.shared.filesystem {
            Filesystem::Ext3 | Filesystem::Ext4 => {}
            Filesystem::Xfs => {
                let kernel = self.clone();
                self.machine().spawn("xfs-log", None, async move { kernel.log_worker().await });
                let kernel = self.clone();
                self.machine().spawn("xfs-cil", None, async move { kernel.checkpoint_worker().await });
                let kernel = self.clone();
                self.machine().spawn("xfs-log-io", None, async move { kernel.commit_worker().await });
                let kernel = self.clone();
                self.machine().spawn("xfs-conv", None, async move { kernel.end_worker().await });
                let kernel = self.clone();
                self.machine().spawn("xfsaild", None, async move { kernel.ail_pusher().await });
                let (kernel, first) = (self.clone(), phase("xfs-reclaim", RECLAIM_PERIOD));
                self.machine().spawn("xfs-reclaim", None, async move { kernel.inode_worker(first).await });
            }
        }
    }

    /// An inode comes into memory: its place on the disk is read, or made if the file is created.
    pub(crate) async fn touch_metadata(
        &self,
        process: &Process,
        inode: &Inode,
        create: bool,
    ) -> Result<(), Errno> {
        match self.shared.filesystem {
            Filesystem::Ext4 if inode.metadata == Metadata::LaidOut => self.read_inode(process, inode).await,
            _ if inode.metadata != Metadata::Table => Ok(()),
            Filesystem::Ext3 => self.touch_ext3_table(process, inode, create).await,
            Filesystem::Ext4 if create => self.create_in_tables(process, inode).await,
            Filesystem::Ext4 => self.read_inode(process, inode).await,
            Filesystem::Xfs if create => self.make_clusters(process, inode.number).await,
            Filesystem::Xfs => self.read_cluster(Some(process), inode.number).await,
        }
    }

    /// All metadata up to now is written, and waited for: what `fsync` ends with.
    pub(crate) async fn commit_metadata(&self) {
        match self.shared.filesystem {
            Filesystem::Ext3 => {}
            Filesystem::Ext4 => self.commit_all().await,
            Filesystem::Xfs => self.force_log(WaitReason::LogWrite).await,
        }
    }
}
