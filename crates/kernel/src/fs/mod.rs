//! Filesystems: what ext3, ext4 and XFS do differently, as far as memory management sees it.
//!
//! What can be said at once is here, by [`Filesystem`]; what waits is in [`pages`], [`inodes`], [`directories`] and
//! [`flush`], which everybody calls and which turn to [`ext3`], [`ext4`] or [`xfs`]. Left out: any other
//! filesystem, journals but the log of XFS, a full disk.

pub mod directories;
pub mod ext3;
pub mod ext3_table;
pub mod ext4;
pub mod ext4_change;
pub mod ext4_commit;
pub mod ext4_extents;
pub mod ext4_table;
pub mod flush;
pub mod inodes;
pub mod pages;
pub mod xfs;
pub mod xfs_ail;
pub mod xfs_checkpoint;
pub mod xfs_ends;
pub mod xfs_io;
pub mod xfs_log;
pub mod xfs_reclaim;

use mm::base::gfp::Gfp;
use mm::fs::xfs::reclaimable::GROUPS;
use mm::version::geometry::Cache;
use mm::version::rules::{Ext4Folios, ReadaheadFolios, Rules, WriteFolios, Writepage};

/// The filesystem of the data disk: what matters to memory management.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Filesystem {
    /// As ext4, but blocks of files are found by indirect blocks.
    Ext3,
    /// Single pages in the cache, large folios from 6.16 on; metadata blocks are pages of the block device's own
    /// mapping.
    Ext4,
    /// Large folios from 5.18 on; metadata in buffers outside of the page cache.
    Xfs,
}

impl Filesystem {
    /// Every one, with its name.
    pub const ALL: [(&'static str, Self); 3] =
        [("ext3", Self::Ext3), ("ext4", Self::Ext4), ("xfs", Self::Xfs)];

    /// Finds one by name.
    pub fn by_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|(other, _)| *other == name).map(|(_, filesystem)| filesystem)
    }

    /// Flags for pages of files: XFS forbids reclaim to enter the filesystem (MECHANISMS 9.7).
    pub(crate) const fn page_gfp(self) -> Gfp {
        match self {
            Self::Ext3 | Self::Ext4 => Gfp::HIGHUSER_MOVABLE,
            Self::Xfs => Gfp::HIGHUSER_MOVABLE.without(Gfp::FS),
        }
    }

    /// Whether its regular files may have large folios at all. Its directories and the block device never have.
    const fn has_large_folios(self, rules: &Rules) -> bool {
        match self {
            Self::Ext3 => false,
            Self::Ext4 => matches!(rules.ext4_folios, Ext4Folios::Large),
            Self::Xfs => true,
        }
    }

    /// Whether readahead may make large folios.
    pub(crate) const fn reads_large_folios(self, rules: &Rules) -> bool {
        matches!(rules.readahead_folios, ReadaheadFolios::Large) && self.has_large_folios(rules)
    }

    /// Whether buffered writes may make large folios.
    pub(crate) const fn writes_large_folios(self, rules: &Rules) -> bool {
        matches!(rules.write_folios, WriteFolios::Large) && self.has_large_folios(rules)
    }

    /// Whether a changed inode is written by the flusher: XFS has the thread of its log do so.
    pub(crate) const fn flusher_writes_inodes(self) -> bool {
        match self {
            Self::Ext3 | Self::Ext4 => true,
            Self::Xfs => false,
        }
    }

    /// Whether it writes single pages for kswapd: ext4 until its hook went, XFS until it had large
    /// folios.
    pub(crate) const fn lets_reclaim_write(self, rules: &Rules) -> bool {
        matches!(rules.writepage, Writepage::Kswapd) && !self.reads_large_folios(rules)
    }

    /// Which of [`GROUPS`] groups of the disk the files of a directory have their blocks in: XFS puts every new
    /// directory in the next one (MECHANISMS 11.1). So of files that several processes make at a time few lie
    /// beside each other. Left out: block groups of ext4.
    pub(crate) const fn group_of(self, directory: Option<u32>) -> u8 {
        match (self, directory) {
            (Self::Xfs, Some(directory)) => (directory as usize % GROUPS) as u8,
            (Self::Xfs | Self::Ext3 | Self::Ext4, _) => 0,
        }
    }

    /// The objects that an inode in memory is made of, and how they are allocated. On XFS a create is
    /// inside a transaction: no FS, and one object more.
    pub(crate) const fn inode_objects(self, create: bool) -> (&'static [Cache], Gfp) {
        match (self, create) {
            (Self::Ext3 | Self::Ext4, _) => (&[Cache::Ext4Inode, Cache::Ext4Extra], Gfp::KERNEL),
            (Self::Xfs, false) => (&[Cache::XfsInode, Cache::XfsExtra], Gfp::KERNEL),
            (Self::Xfs, true) => (&[Cache::XfsInode, Cache::XfsExtra, Cache::XfsLogItem], Gfp::NOFS),
        }
    }
}
