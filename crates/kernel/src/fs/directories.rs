//! What directories ask of their filesystem when names are looked for and change.
//!
//! ext4 sorts entries by hash (`ext4_dx_find_entry`), XFS has them in the order in which they were made, and
//! pointers to them by hash. On XFS a change of a directory logs its inode, whose times change; so the inodes of
//! directories in which files are made are nearly always in the AIL and pinned, and whoever has the AIL pushed has
//! the log forced ([`mm::fs::xfs::ail`]). Roots have numbers from the end of 32 bits downwards.
//!
//! Left out: what XFS keeps in memory of those blocks, and their cost; directories of ext3. Next:
//! [`super::ext4_table`].

use std::rc::Rc;

use mm::base::event::Trace;
use mm::fs::dentry::Name;
use mm::fs::xfs::log::Change;

use crate::errno::Errno;
use crate::files::inode::Inode;
use crate::fs::Filesystem;
use crate::handle::Kernel;
use crate::machine::Machine;
use crate::tasks::process::Process;

impl<M: Machine, T: Trace> Kernel<M, T> {
    /// A name is looked for in a directory.
    pub(crate) async fn read_directory(
        &self,
        process: &Process,
        directory: &Rc<Inode>,
        name: Name,
    ) -> Result<(), Errno> {
        match self.shared.filesystem {
            Filesystem::Ext4 => self.read_entry(process, directory, name).await,
            Filesystem::Ext3 | Filesystem::Xfs => Ok(()),
        }
    }

    /// All names in a block of a directory are read.
    pub(crate) async fn read_directory_block(
        &self,
        process: &Process,
        directory: &Rc<Inode>,
        block: u32,
    ) -> Result<(), Errno> {
        match self.shared.filesystem {
            Filesystem::Ext4 => self.read_entries(process, directory, block).await,
            Filesystem::Ext3 | Filesystem::Xfs => Ok(()),
        }
    }

    /// A name is about to be added to a directory, or to be removed, in the transaction that creates or removes
    /// the file.
    pub(crate) async fn change_directory(
        &self,
        process: &Process,
        directory: &Rc<Inode>,
        name: Name,
    ) -> Result<(), Errno> {
        match self.shared.filesystem {
            Filesystem::Ext4 => self.change_entry(process, directory, name).await,
            Filesystem::Ext3 => Ok(()),
            Filesystem::Xfs => {
                if !self.mem(|mem| mem.fs.xfs_log.is_in_open_checkpoint(directory.mapping)) {
                    self.log_change(Some(process), directory, Change::Core).await;
                }
                Ok(())
            }
        }
    }
}
