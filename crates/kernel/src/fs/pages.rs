//! What pages of files ask of their filesystem.
//!
//! Next: [`super::ext3`], [`super::ext4_extents`]; XFS keeps extents with the inode, and nothing with a dirty page.

use std::ops::Range;

use mm::base::event::Trace;

use crate::errno::Errno;
use crate::files::inode::Inode;
use crate::fs::Filesystem;
use crate::handle::Kernel;
use crate::machine::Machine;
use crate::tasks::process::Process;

impl<M: Machine, T: Trace> Kernel<M, T> {
    /// Where these pages of a file lie is looked up.
    pub(crate) async fn map_blocks(
        &self,
        process: &Process,
        inode: &Inode,
        pages: Range<u32>,
    ) -> Result<(), Errno> {
        match self.shared.filesystem {
            Filesystem::Ext3 => self.read_indirect(process, inode, pages).await,
            Filesystem::Ext4 => self.read_extents(process, inode, pages).await,
            Filesystem::Xfs => Ok(()),
        }
    }

    /// A page of the cache is about to be made dirty.
    pub(crate) async fn prepare_dirty(
        &self,
        process: &Process,
        inode: &Inode,
        index: u32,
    ) -> Result<(), Errno> {
        match self.shared.filesystem {
            Filesystem::Ext3 => {
                self.give_block(process, inode, index).await?;
                self.give_buffer(Some(process), inode, index).await
            }
            Filesystem::Ext4 => {
                self.note_extents(process, inode, index).await?;
                self.give_buffer(Some(process), inode, index).await
            }
            Filesystem::Xfs => Ok(()),
        }
    }
}
