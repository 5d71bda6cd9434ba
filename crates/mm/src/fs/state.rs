//! What filesystems keep in memory.
//!
//! Neighbours: [`crate::fs::inode`], [`crate::fs::xfs`].

use crate::fs::inode::Vfs;
use crate::fs::xfs::buf::XfsBuffers;
use crate::fs::xfs::log::XfsLog;

/// Dentries, inodes, and what XFS has beside them.
#[derive(Debug, Clone)]
pub struct Fs {
    /// Dentries and inodes.
    pub vfs: Vfs,
    /// Buffers of XFS metadata.
    pub xfs_buffers: XfsBuffers,
    /// Log vectors of XFS.
    pub xfs_log: XfsLog,
}

impl Fs {
    /// Nothing yet, on a machine of so many nodes.
    pub fn new(nodes: usize) -> Self {
        Self { vfs: Vfs::new(nodes), xfs_buffers: XfsBuffers::new(nodes), xfs_log: XfsLog::default() }
    }
}
