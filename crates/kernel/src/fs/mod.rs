//! Filesystems: what ext4 and XFS do differently, as far as memory management sees it.
//!
//! Left out: any other filesystem, journals but the log of XFS, a full disk.

pub mod ext4;
pub mod xfs;
pub mod xfs_log;

/// The filesystem of the data disk: what matters to memory management.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Filesystem {
    /// Single pages in the cache; metadata blocks are pages of the block device's own mapping.
    Ext4,
    /// Large folios from 5.18 on; metadata in buffers outside of the page cache.
    Xfs,
}

impl Filesystem {
    /// Every one, with its name.
    pub const ALL: [(&'static str, Self); 2] = [("ext4", Self::Ext4), ("xfs", Self::Xfs)];

    /// Finds one by name.
    pub fn by_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|(other, _)| *other == name).map(|(_, filesystem)| filesystem)
    }
}
