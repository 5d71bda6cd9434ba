//! Slab caches and how large their objects and slabs are, by version (MECHANISMS 9.1,
//! MECHANISMS-6X 7.1, MECHANISMS-510-72 7.1).
//!
//! Left out: caches that files do not need. Neighbours: [`crate::slab::caches`] allocates from
//! them.

/// A slab cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Cache {
    /// `radix_tree_node`: a node of a page cache tree.
    TreeNode,
    /// `dentry`.
    Dentry,
    /// `ext4_inode_cache`.
    Ext4Inode,
    /// `xfs_inode`.
    XfsInode,
    /// `xfs_ili`: the log item of an inode that was changed.
    XfsLogItem,
    /// `buffer_head`.
    BufferHead,
    /// What else an inode of ext4 has: security blob, `jbd2_inode`. Not reclaimable by itself.
    Ext4Extra,
    /// What else an inode of XFS has: spare log vector, security blob, extent roots.
    XfsExtra,
    /// What a changed inode of XFS is in the log, until that is written (`xfs_log_vec`).
    XfsLogVector,
    /// `ext4_extent_status`: an extent of a file, or a hole between two.
    ExtentStatus,
}

/// How a cache lays its objects out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Geometry {
    /// Bytes of one object, padding included.
    pub object_size: u16,
    /// log2 of the pages of a slab; order 0 is tried when there is no such block.
    pub order: u8,
    /// `SLAB_RECLAIM_ACCOUNT`: its pages are of the reclaimable type.
    pub reclaimable: bool,
    /// `SLAB_ACCOUNT`: charged to the cgroup of the task that allocates.
    pub accounted: bool,
}

pub(crate) const fn geometry(object_size: u16, order: u8, reclaimable: bool, accounted: bool) -> Geometry {
    Geometry { object_size, order, reclaimable, accounted }
}

/// Geometries of all caches but that of tree nodes, in the order of [`Cache`].
pub type FileCaches = [Geometry; Cache::COUNT - 1];

/// 720 bytes with the share of the buffers that change with an inode. Measured on a guest of 6.1 with
/// 4 GiB that created files: before its first checkpoint it had 5015 unreclaimable slab pages more
/// for 28,460 inodes than it kept for as many after its last one.
const LOG_VECTOR: Geometry = geometry(720, 2, false, false);

/// 102 to a page, as was measured: [`crate::fs::ext4::extents`].
const EXTENT_STATUS: Geometry = geometry(40, 0, true, false);

/// Linux 5.x (MECHANISMS 9.1): `xfs_ili` was not yet marked reclaimable.
pub const FILE_CACHES_5X: FileCaches = [
    geometry(192, 0, true, true),
    geometry(1088, 3, true, true),
    geometry(963, 3, true, true),
    geometry(192, 0, false, false),
    geometry(104, 0, true, true),
    // MECHANISMS-6X 7.1 gives 115 to 170 bytes per file, measured on 6.x; the middle.
    geometry(136, 0, false, false),
    // 1.13 KB per file.
    geometry(1136, 1, false, false),
    LOG_VECTOR,
    EXTENT_STATUS,
];

/// Linux 5.10 (MECHANISMS-510-72 7.1). `xfs_ili` is reclaimable: in six measured guests of 5.10,
/// `nr_slab_reclaimable` less the other caches that `/proc/slabinfo` names grew by 1.1 pages for each of its
/// pages, from 2048 with 152 to 3456 with 1402. What an inode has beside its own caches: as in 6.x.
pub const FILE_CACHES_510: FileCaches = {
    let mut caches = FILE_CACHES_61;
    caches[Cache::Ext4Inode as usize - 1].object_size = 1184;
    caches[Cache::XfsLogItem as usize - 1].object_size = 192;
    caches
};

/// Linux 6.1 (MECHANISMS-6X 7.1).
pub const FILE_CACHES_61: FileCaches = [
    geometry(192, 0, true, true),
    geometry(1192, 2, true, true),
    geometry(1024, 2, true, true),
    geometry(200, 0, true, false),
    geometry(104, 0, true, true),
    geometry(136, 0, false, false),
    geometry(1136, 1, false, false),
    LOG_VECTOR,
    EXTENT_STATUS,
];

/// Linux 6.12 (MECHANISMS-6X 7.1).
pub const FILE_CACHES_612: FileCaches = {
    let mut caches = FILE_CACHES_61;
    caches[Cache::Ext4Inode as usize - 1].object_size = 1168;
    caches
};

impl Cache {
    /// Every cache.
    pub const ALL: [Self; 10] = [
        Self::TreeNode,
        Self::Dentry,
        Self::Ext4Inode,
        Self::XfsInode,
        Self::XfsLogItem,
        Self::BufferHead,
        Self::Ext4Extra,
        Self::XfsExtra,
        Self::XfsLogVector,
        Self::ExtentStatus,
    ];
    /// How many there are.
    pub const COUNT: usize = Self::ALL.len();

    /// The name in `/proc/slabinfo`, or of the general-purpose caches that it stands for.
    pub const fn name(self) -> &'static str {
        match self {
            Self::TreeNode => "radix_tree_node",
            Self::Dentry => "dentry",
            Self::Ext4Inode => "ext4_inode_cache",
            Self::XfsInode => "xfs_inode",
            Self::XfsLogItem => "xfs_ili",
            Self::BufferHead => "buffer_head",
            Self::Ext4Extra => "kmalloc (ext4)",
            Self::XfsExtra => "kmalloc (xfs)",
            Self::XfsLogVector => "kmalloc (xfs log)",
            Self::ExtentStatus => "ext4_extent_status",
        }
    }
}

// The table is indexed by the cache.
const _: () = {
    let mut index = 0;
    while index < Cache::COUNT {
        assert!(Cache::ALL[index] as usize == index);
        index += 1;
    }
};
