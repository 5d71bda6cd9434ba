//! Decisions of Memory cgroups: the walk over them, statistics, protection and charges.

use crate::version::decision::decisions;

decisions! {
    /// Where active and inactive lists are balanced and refaults detected (5.5; source 2, MECHANISMS
    /// 7.2 and 7.3).
    Aging = "the balance of active and inactive lists" {
        /// In each cgroup by itself.
        PerCgroup,
        /// At the root of the reclaim run, over its whole tree.
        Root,
    }

    /// Which cgroup an eviction ages, with all above it, where lists are balanced at the root (MECHANISMS
    /// 7.3).
    EvictionAge = "which cgroup an eviction ages" {
        /// The one that owned the page (up to 5.7).
        Owner,
        /// The one that reclaim works for (5.8).
        Target,
    }

    /// Which activations age a cgroup and all above it, where lists are balanced at the root: each takes a page off
    /// the inactive list, as an eviction does (MECHANISMS 7.2).
    ActivationAge = "which activations age the lists" {
        /// Those by an access or a refault (up to 5.7).
        Accesses,
        /// Those by a scan of the inactive list, too: pages that page tables refer to, or that are dirty (5.8).
        Scans,
    }

    /// How far a reclaimer walks the cgroup tree (MECHANISMS 6.7, MECHANISMS-6X 4.2).
    MemcgWalk = "the walk over the cgroup tree" {
        /// Through the whole tree at every priority (5.5 to 6.11).
        Full,
        /// Reclaimers share a saved position per cgroup and priority; reclaim of a limit stops once its
        /// target is met (up to 5.4).
        Shared,
        /// Direct and limit reclaim continue at one saved position and stop once their target is met
        /// (6.12).
        Partial,
    }

    /// Which cgroup counters reclaim looks at (MECHANISMS-6X 4.3, MECHANISMS-510-72 4.2).
    StatFreshness = "when cgroup statistics are flushed" {
        /// Always exact: stands for the counters of kernels before 5.16 other than 5.10, a few pages off at most.
        Live,
        /// Off by at most 32 for each cgroup; what is more, all above see at once (5.0 to 5.12; MECHANISMS-510-72 4.2).
        Batched,
        /// Flushed, the whole tree, once about 64 updates per CPU are pending (5.16).
        Threshold,
        /// As the 2 s worker or the last reader of `memory.stat` left them (6.8).
        Periodic,
    }

    /// What becomes of tasks whose cgroup stays above `memory.high` though they reclaimed.
    HighPause = "pauses above memory.high" {
        /// Nothing (up to 5.3).
        None,
        /// They sleep, the longer the more it is above, up to 2 s (5.4).
        Once,
        /// They reclaim on while that frees anything, and have failed 16 times before they sleep (5.9).
        Insistent,
    }

    /// When a task pays that has charged more than a batch above `memory.high` in one call.
    HighOvercharge = "large charges above memory.high" {
        /// On its way to user mode (up to 5.17).
        AtReturn,
        /// With the charge (5.18).
        AtOnce,
    }

    /// Whether a cgroup's writers have a share of dirty pages of their own, beside that of the machine: what
    /// `vm.dirty_ratio` and `vm.dirty_background_ratio` are of what it could make dirty.
    CgroupWriteback = "dirty pages of cgroups" {
        /// The machine's thresholds are all (up to 4.1).
        Absent,
        /// The more restrictive of both is kept (4.2, cgroup-v2.rst).
        OwnShare,
    }

    /// How a parent's effective protection is shared out among its children, each of which claims what
    /// it uses of its own setting (MECHANISMS 8.3).
    SiblingShares = "how siblings share memory.low" {
        /// All of it in proportion to their claims, to none more than its setting (up to 5.6).
        ByUse,
        /// Each gets its claim; where the parent has too little for all, in proportion (5.7).
        ByClaim,
    }

    /// What `memory.low` and `memory.min` take off the scan of a cgroup that uses more (MECHANISMS 6.5,
    /// MECHANISMS-6X 3.2).
    ProtectedScan = "the scan of cgroups above their protection" {
        /// Nothing (up to 5.3).
        Whole,
        /// The protected part of each list (5.4).
        Scaled,
        /// The same, a little less; a cgroup scaled for its `memory.low` counts as skipped, so that a
        /// run without success tries again without (5.14, its divisor 5.15).
        ScaledAndSkipped,
    }

    /// How kernel objects are charged to cgroups (MECHANISMS 8.1, MECHANISMS-6X 4.1).
    ObjectCharge = "the charge of kernel objects" {
        /// Each cgroup has slabs of its own, and pays for their pages (up to 5.8).
        BySlab,
        /// By the bytes of each object, wherever it lies (5.9).
        ByObject,
    }

    /// Whether there are memory cgroups as modelled here (MECHANISMS 8).
    Cgroups = "memory cgroups" {
        /// There are none: the lists of the first controller were beside those of the zones, which is not
        /// modelled.
        Off,
        /// Version 2 (4.5).
        V2,
    }

    /// For how many cgroups a CPU keeps pages, and bytes of kernel objects, that are charged in advance
    /// (MECHANISMS 8.2, MECHANISMS-510-72 4.1).
    ChargeStock = "whom a CPU's stocks are for" {
        /// One cgroup; the next one gives its stock back.
        OneGroup,
        /// Seven cgroups, five for kernel objects, in turns where there are more (6.16).
        SevenGroups,
    }

    /// What becomes of the pages and objects of a cgroup that is removed (MECHANISMS-510-72 4.5).
    RemovedGroup = "pages of a removed cgroup" {
        /// They stay charged to it, and reclaim visits it until they are gone.
        Keeps,
        /// They become its parent's, as the oldest ones of its lists (7.1).
        HandsOver,
    }
}
