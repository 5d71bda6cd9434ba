//! Decisions of Reclaim: kswapd, the lists, pauses and throttles.

use crate::version::decision::decisions;

decisions! {
    /// How a reclaimer without success waits (MECHANISMS 4.5).
    Throttle = "waits of reclaimers without success" {
        /// For the disk, by `congestion_wait` and `wait_iff_congested`.
        CongestionWait,
        /// For progress of writeback or of other reclaimers, by `reclaim_throttle` (5.16).
        ReclaimThrottle,
    }

    /// What decides whether a pass of kswapd did enough to stay at its priority (MECHANISMS 5.3,
    /// MECHANISMS-6X 5.1).
    PassMeasure = "the measure of a pass of kswapd" {
        /// Pages of LRU lists that it scanned.
        Scanned,
        /// The same, or all that it freed, slab included, if that is more (6.12).
        ScannedOrFreed,
    }

    /// What the pause between two rounds is, where there is one, and the one of kswapd between two
    /// priorities (MECHANISMS 4.1 to 4.3).
    Backoff = "the pause of the slow path" {
        /// `congestion_wait`: until a device is no longer congested by writes, or the time is over (up to
        /// 2.6.35).
        CongestionWait,
        /// Until the zone is above its low mark, or the time is over (source 1; posted 8 Feb 2010).
        PressureWait,
        /// `wait_iff_congested`: none unless some device is congested (2.6.36).
        WaitIffCongested,
    }

    /// Whether a device that has many writes to do is known as congested, which ends and begins waits
    /// (MECHANISMS 4.1, MECHANISMS-510-72 3.4).
    DeviceCongestion = "the congestion of devices" {
        /// By its request queue (up to 4.20, for devices with a single one).
        Marked,
        /// Nobody marks it: queues of blk-mq do not, which devices of virtual machines have since 3.13 and all
        /// since 5.0.
        Never,
    }

    /// What direct reclaim does between two priorities (MECHANISMS 4.6).
    DirectPause = "direct reclaim between two priorities" {
        /// Once it is hard pressed it waits by `congestion_wait`, or since 2.6.36 `wait_iff_congested`, up to
        /// 100 ms, and has the flusher write when it scans much (up to 4.6).
        Paused,
        /// It goes straight on.
        None,
    }

    /// Whether direct reclaimers wait for kswapd while the reserve is nearly gone (MECHANISMS 4.4).
    ReserveThrottle = "direct reclaim while the reserve is nearly gone" {
        /// They do not.
        Off,
        /// On `pfmemalloc_wait` (3.6).
        Waits,
    }

    /// When kswapd is done (MECHANISMS 5.2, 5.5).
    KswapdDone = "when kswapd is done" {
        /// Every zone is above its high mark (up to 4.7).
        EveryZone,
        /// Some zone is (4.8).
        SomeZone,
    }

    /// How kswapd goes to sleep (MECHANISMS 5.4, 5.5).
    KswapdSleep = "how kswapd goes to sleep" {
        /// At once.
        AtOnce,
        /// It dozes first, and looks again (2.6.33).
        Dozes,
    }

    /// When active file pages are scanned (MECHANISMS 6.4).
    FileBalance = "when active file pages are scanned" {
        /// Always (up to 2.6.30).
        Always,
        /// When there are more of them than inactive ones ("vmscan: evict use-once pages first", 2.6.31).
        MoreThanInactive,
        /// When they are too many for memory of its size: as many as inactive ones in a small one (4.7).
        ByMemorySize,
    }

    /// What becomes of the scan of active file pages that are spared (MECHANISMS 6.4).
    SparedScan = "the scan of active pages that are spared" {
        /// It is spent on the inactive list (2.6.31 and 2.6.32).
        OnInactive,
        /// It is dropped (2.6.33).
        Dropped,
    }

    /// What becomes of a scan of less than a chunk of 32 pages ("memcg: fix `get_scan_count()` for small
    /// targets", 3.0).
    SmallScans = "scans of less than a chunk" {
        /// It is put off until several of them, over priorities and runs, make a chunk, and an inactive list
        /// is scanned in whole chunks (up to 2.6.39).
        Saved,
        /// It is made (3.0).
        Made,
    }

    /// When a pass over the lists of a cgroup is over (MECHANISMS 6.6).
    ScanStop = "the end of a pass over the lists" {
        /// Once more than a chunk is freed, unless it is kswapd's or at the first priority (up to 3.11).
        AfterChunk,
        /// Once the target is met, after the lists were brought back into proportion (3.12).
        InProportion,
    }

    /// Whether the kernel remembers what it evicted (MECHANISMS 7).
    Refaults = "the memory of evicted pages" {
        /// It does not (up to 3.14).
        None,
        /// By shadow entries in the page cache (3.15).
        Shadows,
    }

    /// How hard kswapd tries for a watermark boost (MECHANISMS 5.3).
    BoostEffort = "kswapd's effort for a watermark boost" {
        /// It stays at priority 10 (5.0).
        UpToPriority10,
        /// As hard as it needs to. No kernel does so.
        Any,
    }

    /// What `/proc/vmstat` counts as scanned, stolen and refilled (MECHANISMS-510-72 0.2, 3.6).
    ReclaimCounts = "what /proc/vmstat counts of reclaim" {
        /// Global reclaim, by kswapd and tasks; of limits `pgrefill` alone (until 5.8).
        GlobalAndRefill,
        /// Global reclaim only (5.9).
        Global,
        /// That at the limit of a cgroup, too, as by tasks (7.1).
        All,
    }

    /// Whether a run of kswapd that freed nothing for a boost counts towards giving up (MECHANISMS 5.3,
    /// MECHANISMS-510-72 3.8).
    BoostFailure = "runs for a boost that freed nothing" {
        /// As any other.
        Counts,
        /// They do not (7.0).
        Forgiven,
    }

    /// When a kswapd that gave up has hope again (MECHANISMS 5.3, MECHANISMS-510-72 3.8).
    KswapdHope = "what gives kswapd hope again" {
        /// Anybody frees something on its node.
        AnyProgress,
        /// That, and the node is balanced (7.0).
        Balanced,
    }

    /// How many pages of too high zones a reclaimer passes over in one step (MECHANISMS 6.4, MECHANISMS-510-72 3.3).
    ZoneSkips = "pages of too high zones that are passed over" {
        /// As many as there are.
        Unlimited,
        /// 32768 folios; those after them are taken all the same (6.13).
        Capped,
    }

    /// What weighs anonymous pages against those of files, where both could be scanned (SWAP 1.3, 1.4).
    LruCost = "what weighs anonymous pages against file pages" {
        /// How many of the pages scanned lately went back to an active list, in each cgroup (up to 5.7).
        Rotations,
        /// Pages that reclaim had written, and refaults of pages that had been active, in a cgroup and those
        /// below it (5.8).
        Io,
        /// The same, each as 32 pages, and pages scanned in vain (6.2).
        IoAndRotations,
    }

    /// The largest `vm.swappiness` (SWAP 0).
    SwappinessRange = "the range of vm.swappiness" {
        /// 100: as many anonymous pages as pages of files.
        UpTo100,
        /// 200: anonymous pages only (5.8).
        UpTo200,
    }

    /// The largest `vm.watermark_scale_factor`.
    WatermarkScaleRange = "the range of vm.watermark_scale_factor" {
        /// 1000: a tenth of a zone between two marks.
        UpTo1000,
        /// 3000 (5.17).
        UpTo3000,
    }

    /// What becomes of quotas after the target is met and they were brought into proportion (SWAP 1.5).
    QuotaRest = "the rest of quotas in proportion" {
        /// It is spent ("swap flood"; up to 6.0).
        Spent,
        /// One round more, unless it is missing pages to reclaim (6.1).
        Dropped,
    }

    /// Whether kswapd, having freed nothing of file pages alone, tries anonymous ones before it gives up
    /// (MECHANISMS-6X 5.1).
    TrimFailure = "kswapd when file pages alone give nothing" {
        /// It does not.
        GivesUp,
        /// It does, from the first priority on (6.12).
        TriesAnon,
    }

    /// Whose free swap decides whether a refault is held against anonymous pages, too (SWAP 2.5).
    RefaultSwap = "whose free swap a refault asks for" {
        /// That of the cgroup that pays for the page now.
        OfPage,
        /// That of the cgroup that its eviction was for (6.12).
        OfEviction,
    }

    /// Whether memory can be reclaimed by a write to `memory.reclaim` (SWAP 6.4; MECHANISMS-510-72 10).
    ProactiveReclaim = "memory.reclaim" {
        /// There is no such file.
        None,
        /// All that is left to free is the target of one run (5.19).
        Whole,
        /// A quarter of it is, and `swappiness=` sets the balance of anonymous and file pages (6.11).
        Quarters,
        /// The same, and `swappiness=max` takes anonymous pages alone (6.16).
        QuartersOrAnon,
    }

    /// Under which names reclaim that somebody asked for is counted (MECHANISMS-510-72 3.6).
    ProactiveCounts = "what proactive reclaim counts as" {
        /// As that of a charge at a limit.
        Direct,
        /// By itself: `pgscan_proactive`, `pgsteal_proactive` (6.15).
        Proactive,
    }

    /// Whether memory of a node can be reclaimed by a write to `/sys/devices/system/node/nodeN/reclaim`
    /// (MECHANISMS-510-72 12).
    NodeReclaim = "reclaim of a node" {
        /// There is no such file.
        None,
        /// There is (6.17).
        File,
    }

    /// Which lists the pages of a cgroup are on (MGLRU).
    LruKind = "the lists of pages" {
        /// Active and inactive ones: the classic LRU.
        TwoLists,
        /// Up to four generations: the multi-gen LRU. A kernel that has none is not changed by it
        /// ([`crate::version::rules::GenForm::NotBuilt`]).
        Generations,
        /// Of file pages a queue on trial before a main one, both FIFO: S3-FIFO.
        S3Fifo,
        /// Of file pages one FIFO queue with a hand: SIEVE.
        Sieve,
    }
}
