//! Slab caches and how large their objects are, by version (MECHANISMS 9.1, MECHANISMS-6X 7.1,
//! MECHANISMS-510-72 7.1).
//!
//! Left out: caches that files do not need. Neighbours: [`crate::slab::layout`] computes the order of slabs,
//! [`crate::slab::caches`] allocates from them.

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
    /// What else an inode of XFS has: security blob, extent roots.
    XfsExtra,
    /// What a changed inode of XFS is in the log, until that is written (`xfs_log_vec`).
    XfsLogVector,
    /// `ext4_extent_status`: an extent of a file, or a hole between two.
    ExtentStatus,
    /// The same of an inode that has extents.
    XfsLogVectorExtents,
    /// `biovec-max`: the pages of a request that a filesystem gathers, room for 256 however few they are.
    BioVec,
    /// `bio-272`: such a request.
    Bio,
    /// `xfs_efi_item`: the intent to free two extents of a file of XFS, with what else is held for it until the
    /// checkpoint is written.
    XfsExtentFree,
    /// `jbd2_journal_head`: [`crate::pages::heads`].
    JournalHead,
    /// What 64 slots of swap have of the `swap_table` of their cluster, and of what says whom they are charged to.
    SwapTable,
    /// `zswap_entry`: of each page that is stored.
    ZswapEntry,
    /// `kmalloc-32`, and so on: who pays for each object of a slab, a pointer for every place.
    Payers32,
    /// Of up to 8 objects.
    Payers64,
    /// Of up to 16.
    Payers128,
    /// Of up to 24.
    Payers192,
    /// Of up to 32.
    Payers256,
    /// Of up to 64.
    Payers512,
}

/// The objects of a cache, and who pays for them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Geometry {
    /// Bytes of one object, padding included.
    pub object_size: u16,
    /// `SLAB_RECLAIM_ACCOUNT`: its pages are of the reclaimable type.
    pub reclaimable: bool,
    /// `SLAB_ACCOUNT`: charged to the cgroup of the task that allocates.
    pub accounted: bool,
    /// The order of its slabs, if that is not computed from the size: it stands for objects of several sizes.
    pub order: Option<u8>,
}

pub(crate) const fn geometry(object_size: u16, reclaimable: bool, accounted: bool) -> Geometry {
    Geometry { object_size, reclaimable, accounted, order: None }
}

/// Objects of several sizes from general-purpose caches, taken together. Larger ones have slabs of higher
/// orders than smaller ones; `order` is between those.
const fn kmalloc(object_size: u16, order: u8) -> Geometry {
    Geometry { object_size, reclaimable: false, accounted: false, order: Some(order) }
}

/// What is counted of the partial slabs that a CPU keeps beside its current one (MECHANISMS-6X 7.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CpuPartialUnit {
    /// It keeps none (up to 3.1).
    None,
    /// Objects that were free when a slab came: 30, 13, 6 or 2 by their size (3.2 to 5.15).
    FreeObjects,
    /// Slabs, as many as 120, 52, 24 or 6 objects are on when every second place is free (5.16).
    Slabs,
}

/// Geometries of all caches but that of tree nodes and those of payers, in the order of [`Cache`].
pub type FileCaches = [Geometry; Cache::ZswapEntry as usize];

/// What the way a kernel is built makes of slab.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SlabBuild {
    /// Objects of these sizes in place of the version's, which are those of a kernel for many CPUs.
    pub caches: Option<FileCaches>,
    /// A kernel for one CPU, which keeps no partial slabs beside the current one (`SLUB_CPU_PARTIAL` needs `SMP`).
    pub uniprocessor: bool,
    /// Pages that boot leaves for good in slabs of caches which are not modelled: unreclaimable, reclaimable.
    pub kept: [u64; 2],
}

/// The vector of an inode without extents: some 360 bytes of regions and headers, from `kmalloc-512`; with
/// extents the data fork of 336 bytes counts in full, `kmalloc-1024`.
const LOG_VECTOR: Geometry = geometry(512, false, false);
const LOG_VECTOR_EXTENTS: Geometry = geometry(1024, false, false);

/// Unreclaimable slab of a file that is created and not written, without vectors and payers: measured, a guest of 6.1.
/// Of 5.x nobody has looked; there the spare vector of 512 bytes, which such a file may have, is taken to be part of
/// it.
const XFS_EXTRA_61: Geometry = kmalloc(261, 1);
const XFS_EXTRA_5X: Geometry = kmalloc(790, 1);

/// 102 to a page, as was measured: [`crate::fs::ext4::extents`].
const EXTENT_STATUS: Geometry = geometry(40, true, false);

/// Of 5.10 to 7.2; `biovec-256` had as much before.
const BIO_VEC: Geometry = geometry(4096, false, false);
const BIO: Geometry = geometry(272, false, false);

/// An intent to free extents, its end (`xfs_efd_item`) and the vectors of both (`kmalloc-128`): measured, guests of
/// 5.10 that remove 21,000 files. Since 5.19 what begins and ends in one checkpoint is not written ("intent
/// whiteouts"): in guests of 6.1, 6.12 and 7.2 the intent alone is left.
const XFS_EXTENT_FREE_5X: Geometry = kmalloc(1148, 1);
const XFS_EXTENT_FREE: Geometry = geometry(432, false, false);

/// 34 to a page: measured, guests of 5.10 to 7.2.
const JOURNAL_HEAD: Geometry = geometry(120, true, false);

/// Of guests of 7.2 that swap, each cluster of 256 slots has 2,056 bytes, 15 of which are on eight pages, and 512 more.
const SWAP_TABLE: Geometry = kmalloc(672, 3);

/// Measured: guests that store 13,000 pages on 5.10 and 11,000 on 6.1 have as many objects more of 56 and of 64 bytes;
/// of those of 6.12 and 7.2, the cache of 56 bytes grows. Of older ones nobody has looked.
const ZSWAP_ENTRY: Geometry = geometry(56, false, false);
const ZSWAP_ENTRY_61: Geometry = geometry(64, false, false);

/// Bytes of unreclaimable slab that an inode of ext4 has beside its own cache: measured, guests that create files, less
/// what its slab and that of its dentry need for payers since 5.9. 64 are its `jbd2_inode`; the rest is mostly what
/// security modules hang on it (`lsm_inode_cache`).
const EXT4_EXTRA_5X: u16 = 70;
const EXT4_EXTRA_510: u16 = 51;
const EXT4_EXTRA_61: u16 = 98;
const EXT4_EXTRA_612: u16 = 152;
const EXT4_EXTRA_72: u16 = 154;

/// Linux 5.x (MECHANISMS 9.1): `xfs_ili` was not yet marked reclaimable.
pub const FILE_CACHES_5X: FileCaches = [
    geometry(192, true, true),
    geometry(1088, true, true),
    geometry(960, true, true),
    geometry(192, false, false),
    geometry(104, true, true),
    kmalloc(EXT4_EXTRA_5X, 0),
    XFS_EXTRA_5X,
    LOG_VECTOR,
    EXTENT_STATUS,
    LOG_VECTOR_EXTENTS,
    BIO_VEC,
    BIO,
    XFS_EXTENT_FREE_5X,
    JOURNAL_HEAD,
    SWAP_TABLE,
    ZSWAP_ENTRY,
];

/// Linux 5.7: `xfs_ili` is reclaimable ("Mark slabs properly for memory reclaim", in the notes on what is new in XFS
/// of 5.7).
pub const FILE_CACHES_57: FileCaches = {
    let mut caches = FILE_CACHES_5X;
    caches[Cache::XfsLogItem as usize - 1] = geometry(192, true, false);
    caches
};

/// Linux 5.10 (MECHANISMS-510-72 7.1). `xfs_ili` is reclaimable: measured, six guests of 5.10. What an inode of XFS has
/// beside its own caches: as in 6.x.
pub const FILE_CACHES_510: FileCaches = {
    let mut caches = FILE_CACHES_61;
    caches[Cache::Ext4Inode as usize - 1].object_size = 1184;
    caches[Cache::Ext4Extra as usize - 1].object_size = EXT4_EXTRA_510;
    caches[Cache::XfsLogItem as usize - 1].object_size = 192;
    caches[Cache::XfsExtentFree as usize - 1] = XFS_EXTENT_FREE_5X;
    caches[Cache::ZswapEntry as usize - 1] = ZSWAP_ENTRY;
    caches
};

/// Linux 6.1 (MECHANISMS-6X 7.1).
pub const FILE_CACHES_61: FileCaches = [
    geometry(192, true, true),
    geometry(1192, true, true),
    geometry(1024, true, true),
    geometry(200, true, false),
    geometry(104, true, true),
    kmalloc(EXT4_EXTRA_61, 0),
    XFS_EXTRA_61,
    LOG_VECTOR,
    EXTENT_STATUS,
    LOG_VECTOR_EXTENTS,
    BIO_VEC,
    BIO,
    XFS_EXTENT_FREE,
    JOURNAL_HEAD,
    SWAP_TABLE,
    ZSWAP_ENTRY_61,
];

/// Linux 6.12 (MECHANISMS-6X 7.1).
pub const FILE_CACHES_612: FileCaches = {
    let mut caches = FILE_CACHES_61;
    caches[Cache::Ext4Inode as usize - 1].object_size = 1168;
    caches[Cache::Ext4Extra as usize - 1].object_size = EXT4_EXTRA_612;
    caches[Cache::ZswapEntry as usize - 1] = ZSWAP_ENTRY;
    caches
};

/// Linux 7.2 (MECHANISMS-510-72 7.1). What an inode of XFS has beside its own caches: as in 6.x.
pub const FILE_CACHES_72: FileCaches = {
    let mut caches = FILE_CACHES_61;
    caches[Cache::Ext4Inode as usize - 1].object_size = 1072;
    caches[Cache::Ext4Extra as usize - 1].object_size = EXT4_EXTRA_72;
    caches[Cache::XfsInode as usize - 1].object_size = 960;
    caches[Cache::XfsLogItem as usize - 1].object_size = 208;
    caches[Cache::BufferHead as usize - 1].object_size = 96;
    caches[Cache::ZswapEntry as usize - 1] = ZSWAP_ENTRY;
    caches
};

/// What a new cgroup costs the one above it, in bytes.
///
/// Since 5.9 its statistics, which it has for each CPU, are charged to the cgroup above ("mm: memcg: charge memcg
/// percpu memory to the parent cgroup"), later its own structures, too. The sizes are those that guests show of a
/// cgroup with three empty ones below: `percpu` of its `memory.stat` was 21,024 on 6.1, 18,240 on 6.12 (27,360 with
/// four CPUs) and 23,616 on 7.2, and `slab` without that of the three 0, 9,264 and 12,336.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GroupCost {
    /// Statistics for each CPU.
    per_cpu: u16,
    /// A pointer for every four of those bytes is charged with them: who pays for what is there.
    pointers: bool,
    /// Its own structures, with one node.
    objects: u16,
}

impl GroupCost {
    /// Nobody pays (up to 5.8).
    pub const NONE: Self = Self { per_cpu: 0, pointers: false, objects: 0 };
    /// Its `memory.stat` keeps back up to 32 pages for each CPU, so this is from `memory.current`: 5 pages with two
    /// CPUs.
    pub const LINUX_5_10: Self = Self { per_cpu: 3000, pointers: false, objects: 0 };
    /// 6 pages for three with two CPUs.
    pub const LINUX_6_1: Self = Self { per_cpu: 1752, pointers: true, objects: 0 };
    /// 7 pages.
    pub const LINUX_6_12: Self = Self { per_cpu: 1520, pointers: true, objects: 3088 };
    /// 9 pages.
    pub const LINUX_7_2: Self = Self { per_cpu: 1968, pointers: true, objects: 4112 };

    /// What is charged one after the other on a machine with so many CPUs.
    pub const fn parts(self, cpus: u32) -> [u32; 2] {
        let pointers = if self.pointers { self.per_cpu as u32 / 4 * 8 } else { 0 };
        [self.per_cpu as u32 * cpus + pointers, self.objects as u32]
    }
}

impl Cache {
    /// Every cache.
    pub const ALL: [Self; 23] = [
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
        Self::XfsLogVectorExtents,
        Self::BioVec,
        Self::Bio,
        Self::XfsExtentFree,
        Self::JournalHead,
        Self::SwapTable,
        Self::ZswapEntry,
        Self::Payers32,
        Self::Payers64,
        Self::Payers128,
        Self::Payers192,
        Self::Payers256,
        Self::Payers512,
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
            Self::XfsLogVectorExtents => "kmalloc (xfs log, extents)",
            Self::ExtentStatus => "ext4_extent_status",
            Self::BioVec => "biovec-max",
            Self::Bio => "bio-272",
            Self::XfsExtentFree => "xfs_efi_item and others",
            Self::JournalHead => "jbd2_journal_head",
            Self::SwapTable => "swap_table and others",
            Self::ZswapEntry => "zswap_entry",
            Self::Payers32 => "kmalloc-32 (payers)",
            Self::Payers64 => "kmalloc-64 (payers)",
            Self::Payers128 => "kmalloc-128 (payers)",
            Self::Payers192 => "kmalloc-192 (payers)",
            Self::Payers256 => "kmalloc-256 (payers)",
            Self::Payers512 => "kmalloc-512 (payers)",
        }
    }

    /// The size of its objects, if they say who pays for those of other slabs.
    pub(crate) const fn payers_size(self) -> Option<u16> {
        match self {
            Self::Payers32 => Some(32),
            Self::Payers64 => Some(64),
            Self::Payers128 => Some(128),
            Self::Payers192 => Some(192),
            Self::Payers256 => Some(256),
            Self::Payers512 => Some(512),
            _ => None,
        }
    }

    /// Whether `/proc/slabinfo` has a line for it: what stands for general-purpose caches shares theirs, and
    /// `zswap_entry` that of another cache with objects of its size.
    pub const fn has_own_line(self) -> bool {
        !matches!(
            self,
            Self::Ext4Extra
                | Self::XfsExtra
                | Self::XfsLogVector
                | Self::XfsLogVectorExtents
                | Self::XfsExtentFree
                | Self::SwapTable
                | Self::ZswapEntry
        ) && self.payers_size().is_none()
    }

    /// Its objects are freed by an RCU callback (MECHANISMS 9.1): dentries, inodes and what hangs on an inode of
    /// XFS (`xfs_inode_free_callback` frees the log item and its spare vector), nodes of trees
    /// (`radix_tree_node_rcu_free`). Of what hangs on an inode of ext4, the security blob waits, too, but not
    /// the larger part: here none of it does.
    pub const fn waits_for_rcu(self) -> bool {
        match self {
            Self::TreeNode
            | Self::Dentry
            | Self::Ext4Inode
            | Self::XfsInode
            | Self::XfsLogItem
            | Self::XfsExtra => true,
            Self::BufferHead
            | Self::Ext4Extra
            | Self::XfsLogVector
            | Self::ExtentStatus
            | Self::XfsLogVectorExtents
            | Self::BioVec
            | Self::Bio
            | Self::XfsExtentFree
            | Self::JournalHead
            | Self::SwapTable
            | Self::ZswapEntry
            | Self::Payers32
            | Self::Payers64
            | Self::Payers128
            | Self::Payers192
            | Self::Payers256
            | Self::Payers512 => false,
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
