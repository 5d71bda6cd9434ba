//! What filesystems keep in memory.
//!
//! Neighbours: [`crate::fs::inode`], [`crate::fs::xfs`].

use crate::base::event::Trace;
use crate::core::Core;
use crate::fs::inode::Vfs;
use crate::fs::xfs::buf::XfsBuffers;
use crate::fs::xfs::log::XfsLog;
use crate::pages::cache::PageCache;

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

    /// Tells the inodes whose last page went in this step: from 5.16 on they may go on their LRU now
    /// (MECHANISMS-6X 7.4).
    pub(crate) fn list_emptied<T: Trace>(&mut self, core: &Core<T>, cache: &mut PageCache) {
        while let Some(mapping) = cache.take_emptied() {
            self.vfs.lost_pages(core, cache, mapping);
        }
    }
}
