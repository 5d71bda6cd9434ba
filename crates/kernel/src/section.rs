//! Which part of the kernel a task is in: what its waits and its time are attributed to.
//!
//! A wait alone does not tell who suffers from it: `xfs_reclaim_inode` may hold up kswapd, which nobody
//! notices, or a program that asked for a page. So a driver says where it begins and ends; sections nest,
//! a [`Site`] outside and a [`Shrinker`] within. Where the reason of a wait leaves open who could end it,
//! the driver names that, too: [`Whom`].
//!
//! None of it decides anything. Neighbours: [`crate::machine`], which keeps it by task.

pub use mm::reclaim::plan::Shrinker;

/// Who reclaims, and for whom.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Site {
    /// A task that found no free page frees some itself (`__perform_reclaim`): an allocation stall. It
    /// includes the wait for kswapd before (`throttle_direct_reclaim`), as the kernel's pressure stall
    /// information has it.
    AllocationStall,
    /// A task whose allocation got no page pauses before it tries again (`congestion_wait` of the slow path,
    /// the lock of the OOM killer), or before it breaks into a block of another mobility type.
    AllocationPause,
    /// A charge that hit a limit frees pages below it (`try_to_free_mem_cgroup_pages`).
    LimitReclaim,
    /// A task compacts for its block (`__alloc_pages_direct_compact`).
    DirectCompaction,
    /// A task sleeps because its cgroup is above `memory.swap.high`, which counts as pressure
    /// (`mem_cgroup_handle_over_high`).
    OverHigh,
    /// kswapd from its wake-up until it sleeps again (`balance_pgdat`).
    Kswapd,
}

/// A part of the kernel that a task enters and leaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Section {
    /// Nothing else is around it.
    Site(Site),
    /// A shrinker works on a cgroup, mostly within a site (`do_shrink_slab`).
    Shrinker(Shrinker),
}

/// Who could end a wait whose reason leaves that open.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Whom {
    /// The write of an inode cluster that the task itself sent (`xfs_iflush`, `xfs_bwrite`).
    OwnInodeWrite,
    /// The write of an inode cluster that another reclaimer sent.
    ReclaimersInodeWrite,
    /// The write of an inode cluster that the AIL's thread sends (`xfsaild`).
    AilInodeWrite,
    /// The read of an inode cluster that was evicted, so that it can be written (`xfs_imap_to_bp`).
    InodeRead,
    /// The log: an inode is pinned until its changes are on the disk (`xfs_iunpin_wait`).
    Log,
    /// Who holds the lock of an allocation group (`pag_ici_reclaim_lock`): one in this site; none is the
    /// worker, or a request to drop caches.
    GroupLock(Option<Site>),
}
