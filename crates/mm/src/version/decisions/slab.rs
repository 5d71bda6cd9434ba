//! Decisions of Slab: its shrinkers, objects, inodes and XFS.

use crate::version::decision::decisions;

decisions! {
    /// Whether slab pages that shrinkers free count as reclaimed (MECHANISMS-6X 0 row 6).
    SlabCredit = "who is credited with freed slab pages" {
        /// For every reclaimer.
        AllReclaim,
        /// Not for reclaim of a limit (6.12).
        GlobalOnly,
    }

    /// How deferred slab work is paid back (5.13, MECHANISMS 9.2, MECHANISMS-6X 7.2).
    DeferredSlab = "how deferred slab scanning is paid back" {
        /// All of it at the next chance, within a cap.
        AtOnce,
        /// The fraction 2^-priority of it.
        ByPriority,
    }

    /// Who owes deferred slab work (5.13, MECHANISMS 9.2, MECHANISMS-6X 7.2).
    SlabDebt = "who owes deferred slab scanning" {
        /// All cgroups of a node together: one inherits what another left.
        PerNode,
        /// Each cgroup on each node (5.13).
        PerCgroup,
    }

    /// Whether kswapd shrinks slab while it reclaims for a watermark boost (5.4; source 0).
    BoostedSlab = "slab during a watermark boost" {
        /// Slab is left alone.
        Spared,
        /// Slab is shrunk, too.
        Shrunk,
    }

    /// Whether inodes with cached pages are on the inode LRU (5.16, MECHANISMS 9.4, MECHANISMS-6X 7.4).
    InodeLru = "inodes with cached pages" {
        /// They are, and the inode shrinker frees their pages.
        WithPages,
        /// An inode is put there only once its pages are gone (5.16).
        WithoutPages,
    }

    /// How hard slab is pressed (MECHANISMS 4.6, 9.2).
    SlabPressure = "the pressure on slab" {
        /// In proportion to the part of the lists that was scanned, once for all zones (up to 4.11).
        ByScan,
        /// By priority (4.12).
        ByPriority,
    }

    /// What a pass asks of a shrinker at least ("mm: slowly shrink slabs with a relatively small number of objects",
    /// 4.19, taken back in 5.0; MECHANISMS 9.2). A real 4.19 loses a hot file with its inode so.
    SlabFloor = "the least that is asked of a shrinker" {
        /// Nothing: at a low priority few objects are left alone.
        None,
        /// A batch, or all that there is (4.19 and 4.20).
        Batch,
    }

    /// What the shrinker of XFS does with inodes that are not clean (MECHANISMS 11.5).
    InodeReclaim = "reclaim of XFS inodes that are not clean" {
        /// It writes them and waits for that (up to 5.8).
        Waits,
        /// It passes them by: only the thread of the log writes inodes (5.9).
        PassesBy,
    }

    /// What becomes of the cluster buffer of a dirty XFS inode (MECHANISMS 11.3).
    InodeCluster = "the buffer of a dirty XFS inode" {
        /// It may be freed, and is read again when the inode is to be written (up to 5.8).
        MayGo,
        /// It is held from the first change until the inode is clean (5.9).
        Pinned,
    }

    /// Whether pages of XFS buffers count as reclaimed ("Account metadata buffers correctly for memory reclaim", in
    /// the notes on what is new in XFS of 5.7).
    BufferCredit = "who is credited with freed XFS buffers" {
        /// Nobody (up to 5.6).
        Nobody,
        /// The reclaimer that frees them (5.7).
        Reclaimer,
    }

    /// How the log of XFS asks for the memory of a changed inode. Traced in guests of 5.10, 6.1 and 6.12; the change is
    /// `xlog_kvmalloc` (5.17).
    LogVectors = "memory for what XFS is to log" {
        /// With reclaim at once.
        Reclaims,
        /// Without it at first (5.17).
        TriesFirst,
    }

    /// Where a CPU keeps free objects of a slab cache (MECHANISMS-510-72 7.1).
    FreeObjects = "free slab objects near a CPU" {
        /// On slabs of its own: the current one and a few partial ones (2.6.23, 3.2).
        PartialSlabs,
        /// In arrays by CPU and node, whichever slabs they are of (7.0).
        Sheaves,
    }

    /// How many dentries and inodes are looked at in one step (MECHANISMS 9.2, MECHANISMS-6X 6.5).
    SuperBlockBatch = "the batch of the super-block shrinker" {
        /// 1024; fewer than that are left for later.
        Of1024,
        /// As other shrinkers have: 128. No kernel does so.
        Of128,
    }
}
