//! Decisions that Linux made differently at different times: one closed enum each, and [`Rules`], one answer each.
//!
//! A kernel is resolved to its rules once, when it is named; mechanisms compare a field. Numbers that changed in
//! passing are [`crate::version::presets::Tuning`]; names on the command line [`crate::version::feature::Feature`]s,
//! each an edit of one rule. A new rule is an entry below and an answer in the oldest preset; a test walks every
//! variant and fails where nothing observable depends on it.

macro_rules! rules {
    ($(
        $(#[$doc:meta])*
        $field:ident: $name:ident = $words:literal {
            $($(#[$variant_doc:meta])* $variant:ident,)*
        }
    )*) => {
        $(
            $(#[$doc])*
            #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
            pub enum $name { $($(#[$variant_doc])* $variant,)* }
        )*

        /// One answer to every decision.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub struct Rules {
            $(#[doc = concat!("Rule for ", $words, ".")] pub $field: $name,)*
        }

        /// One answer to one decision: an edit of [`Rules`].
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Rule {
            $(#[doc = concat!("An answer to ", $words, ".")] $name($name),)*
        }

        impl Rule {
            /// Every answer to every decision, in the order of their declaration.
            pub const ALL: &'static [Self] = &[$($(Self::$name($name::$variant),)*)*];

            /// What is decided, in words: `the watermark boost`.
            pub const fn decision(self) -> &'static str {
                match self { $(Self::$name(_) => $words,)* }
            }
        }

        impl Rules {
            /// These rules with one answer changed.
            #[must_use]
            pub const fn with(mut self, rule: Rule) -> Self {
                match rule { $(Rule::$name(answer) => self.$field = answer,)* }
                self
            }

            /// These rules with several answers changed, in order.
            #[must_use]
            pub const fn edited(mut self, edits: &[Rule]) -> Self {
                let mut index = 0;
                while index < edits.len() {
                    self = self.with(edits[index]);
                    index += 1;
                }
                self
            }

            /// Whether `rule` is the answer here.
            pub fn has(&self, rule: Rule) -> bool {
                match rule { $(Rule::$name(answer) => self.$field == answer,)* }
            }
        }
    };
}

rules! {
    /// Where active and inactive lists are balanced and refaults detected (5.5; source 2, MECHANISMS
    /// 7.2 and 7.3).
    aging: Aging = "the balance of active and inactive lists" {
        /// In each cgroup by itself.
        PerCgroup,
        /// At the root of the reclaim run, over its whole tree.
        Root,
    }

    /// Which cgroup an eviction ages, with all above it, where lists are balanced at the root (MECHANISMS
    /// 7.3).
    eviction_age: EvictionAge = "which cgroup an eviction ages" {
        /// The one that owned the page (up to 5.7).
        Owner,
        /// The one that reclaim works for (5.8).
        Target,
    }

    /// How far a reclaimer walks the cgroup tree (MECHANISMS 6.7, MECHANISMS-6X 4.2).
    memcg_walk: MemcgWalk = "the walk over the cgroup tree" {
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
    stat_freshness: StatFreshness = "when cgroup statistics are flushed" {
        /// Always exact: stands for the counters of kernels before 5.16 other than 5.10, a few pages off at most.
        Live,
        /// Off by at most 32 for each cgroup; what is more, all above see at once (5.0 to 5.12; MECHANISMS-510-72 4.2).
        Batched,
        /// Flushed, the whole tree, once about 64 updates per CPU are pending (5.16).
        Threshold,
        /// As the 2 s worker or the last reader of `memory.stat` left them (6.8).
        Periodic,
    }

    /// How a parent's effective protection is shared out among its children, each of which claims what
    /// it uses of its own setting (MECHANISMS 8.3).
    sibling_shares: SiblingShares = "how siblings share memory.low" {
        /// All of it in proportion to their claims, to none more than its setting (up to 5.6).
        ByUse,
        /// Each gets its claim; where the parent has too little for all, in proportion (5.7).
        ByClaim,
    }

    /// What `memory.low` and `memory.min` take off the scan of a cgroup that uses more (MECHANISMS 6.5,
    /// MECHANISMS-6X 3.2).
    protected_scan: ProtectedScan = "the scan of cgroups above their protection" {
        /// Nothing (up to 5.3).
        Whole,
        /// The protected part of each list (5.4).
        Scaled,
        /// The same, a little less; a cgroup scaled for its `memory.low` counts as skipped, so that a
        /// run without success tries again without (5.14, its divisor 5.15).
        ScaledAndSkipped,
    }

    /// Whether slab pages that shrinkers free count as reclaimed (MECHANISMS-6X 0 row 6).
    slab_credit: SlabCredit = "who is credited with freed slab pages" {
        /// For every reclaimer.
        AllReclaim,
        /// Not for reclaim of a limit (6.12).
        GlobalOnly,
    }

    /// How deferred slab work is paid back (5.13, MECHANISMS 9.2, MECHANISMS-6X 7.2).
    deferred_slab: DeferredSlab = "how deferred slab scanning is paid back" {
        /// All of it at the next chance, within a cap.
        AtOnce,
        /// The fraction 2^-priority of it.
        ByPriority,
    }

    /// Who owes deferred slab work (5.13, MECHANISMS 9.2, MECHANISMS-6X 7.2).
    slab_debt: SlabDebt = "who owes deferred slab scanning" {
        /// All cgroups of a node together: one inherits what another left.
        PerNode,
        /// Each cgroup on each node (5.13).
        PerCgroup,
    }

    /// Whether kswapd shrinks slab while it reclaims for a watermark boost (5.4; source 0).
    boosted_slab: BoostedSlab = "slab during a watermark boost" {
        /// Slab is left alone.
        Spared,
        /// Slab is shrunk, too.
        Shrunk,
    }

    /// Whether a request that prefers the Normal zone goes to DMA32 before it mixes mobility types
    /// (5.0, MECHANISMS 2.6).
    spread: Spread = "spreading to the DMA32 zone" {
        /// Types are mixed at once.
        Off,
        /// DMA32 is tried first.
        Dma32,
    }

    /// What a walk over the zones does that kept types apart in vain (MECHANISMS 2.6).
    spread_retry: SpreadRetry = "where a walk goes on that kept types apart in vain" {
        /// Goes on where it ended, as the patch was posted: on a machine of one node such a request
        /// takes the slow path.
        GoesOn,
        /// Starts over (5.1).
        StartsOver,
    }

    /// What a fragmenting fallback does to the zone's watermarks (MECHANISMS 2.8).
    watermark_boost: WatermarkBoost = "the watermark boost" {
        /// Nothing.
        Off,
        /// As posted on 7 Nov 2018 (v2; v1 is the same): the cap comes from the boosted high mark and
        /// grows with the boost, every request that mixes types wakes kswapd, slab is reclaimed during
        /// a boost. Requests that may not wake kswapd are not spread (source 4; MECHANISMS 2.6).
        V2,
        /// As merged in 5.0: the cap comes from the mark without boost.
        Merged,
    }

    /// Which zones are boosted (MECHANISMS 2.8).
    boosted_zones: BoostedZones = "which zones are boosted" {
        /// All.
        All,
        /// Those of four pageblocks and more (5.7).
        FourPageblocks,
    }

    /// Whether a movable request that would fragment badly waits for kswapd first (source 4, MECHANISMS
    /// 2.9), by posting; never merged.
    fragment_stall: FragmentStall = "the stall on fragmentation" {
        /// It does not.
        Off,
        /// 31 Oct 2018: waits for each zone that was tried, no faster boost, counts nothing.
        V1,
        /// 7 Nov 2018: boosts faster, waits up to 100 ms.
        V2,
        /// 21 Nov 2018: waits up to 20 ms.
        V3,
        /// 23 Nov 2018: also woken while kswapd works a boost off.
        V5,
    }

    /// What a request takes when its own type has no block (MECHANISMS 2.4, MECHANISMS-6X 9.3).
    fallback: FallbackPolicy = "the fallback to other mobility types" {
        /// Always the largest block of another type; the free pages of its pageblock go along if the block
        /// is large or the request reclaimable (2.6.32; MECHANISMS 2.4).
        LargestFirst,
        /// The largest block of another type, and its pageblock if half of it suits.
        StealAndClaim,
        /// A pageblock whole, or else the smallest block, whose rest stays what it was (6.12).
        ClaimThenSteal,
    }

    /// Which orders the per-CPU lists hold and how large they are (MECHANISMS 3.1, MECHANISMS-6X 1.4).
    pcp: PcpGeneration = "the per-CPU page lists" {
        /// Order 0 only, high = 6 * batch.
        Classic,
        /// Orders 0 to 3 and huge pages, high from the low watermark (5.13).
        HighOrder,
        /// The same orders; high sizes itself, refills double (6.7).
        AutoSize,
    }

    /// What the OOM reaper takes of a victim before that ends (`__oom_reap_task_mm`; MECHANISMS 13.1).
    oom_reaper: OomReaper = "what the OOM reaper takes" {
        /// All but what is locked by `mlock`, which comes free when the victim ends (up to 5.17).
        SparesLocked,
        /// That, too (5.18).
        TakesLocked,
    }

    /// Which minimum mark an order-0 atomic request must pass (MECHANISMS 2.8).
    atomic_mark: AtomicMark = "the mark of atomic requests" {
        /// With the boost.
        Boosted,
        /// Without it at the second test (5.9).
        Unboosted,
    }

    /// Which zones keep a reserve for high-order atomic requests (MECHANISMS-6X 0 row 10).
    highatomic: HighatomicReserve = "the highatomic reserve" {
        /// All, as a few pageblocks set aside at boot that every request may use last (`MIGRATE_RESERVE`,
        /// up to 4.3; MECHANISMS 2.4).
        Blocks,
        /// All.
        AllZones,
        /// Not those of which 1 % is less than a pageblock (6.12).
        LargeZones,
    }

    /// What compaction moves (MECHANISMS-6X 9.2).
    compact_folios: CompactFolios = "what compaction moves" {
        /// Single pages.
        Single,
        /// Folios smaller than the block it works for, too; free targets by order (6.12).
        Large,
    }

    /// What a request does after compaction withdrew, that is, was put off, saw a part of a zone only or
    /// had no targets, while reclaim makes progress (`should_compact_retry`, MECHANISMS 4.4; 5.4,
    /// "mm, compaction: raise compaction priority after it withdrawns").
    compact_retry: CompactRetry = "retries after compaction withdrew" {
        /// Repeats it as it is, as long as some zone could be compacted.
        AsItWas,
        /// Compacts harder, and ends once that is not possible (5.4).
        Harder,
    }

    /// When a costly request that wants no retries fails after its first compaction, before any reclaim
    /// (MECHANISMS 4.4; 5.4, "mm, page_alloc: avoid expensive reclaim when
    /// compaction may not succeed"). Left out: 5.4 asks for whole pageblocks, with retries or without.
    first_compaction: FirstCompaction = "requests that end with their first compaction" {
        /// When compaction is put off.
        PutOff,
        /// Also when there is too little memory for it (5.4).
        NotRun,
    }

    /// What readahead allocates on XFS (MECHANISMS-6X 2.2).
    readahead_folios: ReadaheadFolios = "folios of readahead" {
        /// Single pages.
        Single,
        /// Large folios (5.18).
        Large,
    }

    /// What buffered writes allocate on XFS (MECHANISMS-6X 2.2).
    write_folios: WriteFolios = "folios of buffered writes" {
        /// Single pages.
        Single,
        /// Large folios (6.6).
        Large,
    }

    /// Whether a buffered write is an access to its page, as a read is (MECHANISMS 6.2).
    write_access: WriteAccess = "what a buffered write is to its page" {
        /// No access: a page that is only written never becomes active (4.7).
        None,
        /// An access: the second one makes it active (up to 4.6).
        Access,
    }

    /// Which list new anonymous pages start on (5.9).
    anon_start: AnonStart = "where anonymous pages start" {
        /// The active list.
        Active,
        /// The inactive list (5.9).
        Inactive,
    }

    /// Whether inodes with cached pages are on the inode LRU (5.16, MECHANISMS 9.4, MECHANISMS-6X 7.4).
    inode_lru: InodeLru = "inodes with cached pages" {
        /// They are, and the inode shrinker frees their pages.
        WithPages,
        /// An inode is put there only once its pages are gone (5.16).
        WithoutPages,
    }

    /// How a reclaimer without success waits (MECHANISMS 4.5).
    throttle: Throttle = "waits of reclaimers without success" {
        /// For the disk, by `congestion_wait` and `wait_iff_congested`.
        CongestionWait,
        /// For progress of writeback or of other reclaimers, by `reclaim_throttle` (5.16).
        ReclaimThrottle,
    }

    /// What decides whether a pass of kswapd did enough to stay at its priority (MECHANISMS 5.3,
    /// MECHANISMS-6X 5.1).
    pass_measure: PassMeasure = "the measure of a pass of kswapd" {
        /// Pages of LRU lists that it scanned.
        Scanned,
        /// The same, or all that it freed, slab included, if that is more (6.12).
        ScannedOrFreed,
    }

    /// Whether kswapd may write a single dirty page where the filesystem lets it: ext4 up to 6.2, XFS up
    /// to 5.17 (MECHANISMS 6.8, MECHANISMS-6X 0 row 9).
    writepage: Writepage = "writes of single dirty pages" {
        /// Every reclaimer that may writes them, whatever the filesystem (up to 3.1).
        Anyone,
        /// It only marks them.
        Never,
        /// It writes them.
        Kswapd,
    }
    /// How the per-CPU lists keep mobility types apart while they hold single pages (MECHANISMS 3.4; source
    /// 1).
    pcp_lists: PcpLists = "mobility types on the per-CPU lists" {
        /// One list for all, searched for a page of the right type (up to 2.6.31).
        Single,
        /// One list for each type ("page-allocator: split per-cpu list into one-list-per-migrate-type",
        /// 2.6.32).
        PerType,
    }

    /// How a refill lines up its pages for a cold request, which takes them from the tail (MECHANISMS 3.4;
    /// source 1).
    cold_order: ColdOrder = "the order of a cold refill" {
        /// As for a hot one: from the tail, frame numbers fall.
        Falling,
        /// The other way round: from the tail, frame numbers rise ("page-allocator: preserve PFN ordering
        /// when `__GFP_COLD` is set", 2.6.31).
        Rising,
    }

    /// Whether a request takes a page of another type from its CPU's lists before it refills from the zone
    /// (source 1; MECHANISMS 3.4). Never merged.
    pcp_fallback: PcpFallback = "pages of other types on the per-CPU lists" {
        /// They are left there.
        Left,
        /// They are taken, in the order of the fallback table.
        Taken,
    }

    /// Whether pages count as hot or cold in the cache of a CPU (MECHANISMS 3.2, 3.3).
    cold_pages: ColdPages = "pages that are cold in the cache" {
        /// Readahead takes cold pages, from the tail of the per-CPU list, and reclaim frees there (up to 4.14).
        Tail,
        /// All pages are alike (4.15).
        Alike,
    }

    /// Where a bulk free puts pages of the blocks set aside at boot (MECHANISMS 3.4). On a single list they
    /// keep their type.
    pcp_reserve: PcpReserve = "reserved pages on the per-CPU lists" {
        /// With those of the list that they were on, the movable ones: the reserve leaks (2.6.32, a bug of
        /// the lists by type).
        Leaks,
        /// Where they came from (a7016235, 2.6.33).
        Stays,
    }

    /// Where a block goes whose buddy is likely to come free, too (MECHANISMS 2.3).
    likely_merges: LikelyMerges = "free blocks that are likely to grow" {
        /// Where all go: the next request takes it (up to 2.6.34).
        Head,
        /// The tail of its list, to be taken last (2.6.35).
        Tail,
    }

    /// What readahead does when memory is short.
    readahead_effort: ReadaheadEffort = "readahead when memory is short" {
        /// What every request for page cache does: it is repeated (up to 2.6.39).
        Insists,
        /// It gives up after its first failure ("readahead: readahead page allocations are OK to fail", 3.0;
        /// MECHANISMS-6X 2.2).
        GivesUp,
    }

    /// Where requests for pages that are about to be written go (MECHANISMS 1.9, 10.2).
    dirty_spread: DirtySpread = "zones for pages that are about to be dirty" {
        /// Where all go (up to 3.2).
        Any,
        /// Past nodes that hold their share of dirty pages, at first (3.3).
        BelowLimit,
    }

    /// How a watermark is tested for a block of several pages (MECHANISMS 1.7).
    watermark_test: WatermarkTest = "the watermark test of large blocks" {
        /// At each smaller order its free pages do not count, and the mark is halved (up to 4.3).
        HalvedByOrder,
        /// One free block that is large enough will do (4.4).
        AnyBlock,
    }

    /// How far the marks of a zone are apart (MECHANISMS 1.4).
    mark_gap: MarkGap = "the distance between watermarks" {
        /// A quarter of the min mark (up to 4.5).
        QuarterOfMin,
        /// The same, or `watermark_scale_factor` of the zone, if that is more (4.6).
        Scaled,
    }

    /// What a request does whose reclaim freed pages that it cannot have (MECHANISMS 3.6).
    failed_reclaim: FailedReclaim = "reclaim that freed pages for others" {
        /// Goes on. All lists are drained only for blocks of several pages, before they are tried for (up
        /// to 2.6.35).
        GoesOn,
        /// Drains the per-CPU lists of all CPUs and tries once more (2.6.36).
        Drains,
    }

    /// When a request in the slow path is repeated (MECHANISMS 4.1, 4.4).
    slow_path: SlowPath = "rounds of the slow path" {
        /// For ever where the block is small, with a pause after each round (up to 4.6).
        Paused,
        /// As long as reclaim or compaction can still help (4.7).
        WhileItHelps,
    }

    /// What the pause between two rounds is, where there is one, and the one of kswapd between two
    /// priorities (MECHANISMS 4.1 to 4.3).
    backoff: Backoff = "the pause of the slow path" {
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
    device_congestion: DeviceCongestion = "the congestion of devices" {
        /// By its request queue (up to 4.20, for devices with a single one).
        Marked,
        /// Nobody marks it: queues of blk-mq do not, which devices of virtual machines have since 3.13 and all
        /// since 5.0.
        Never,
    }

    /// What direct reclaim does between two priorities (MECHANISMS 4.6).
    direct_pause: DirectPause = "direct reclaim between two priorities" {
        /// Once it is hard pressed it waits by `congestion_wait`, or since 2.6.36 `wait_iff_congested`, up to
        /// 100 ms, and has the flusher write when it scans much (up to 4.6).
        Paused,
        /// It goes straight on.
        None,
    }

    /// Whether direct reclaimers wait for kswapd while the reserve is nearly gone (MECHANISMS 4.4).
    reserve_throttle: ReserveThrottle = "direct reclaim while the reserve is nearly gone" {
        /// They do not.
        Off,
        /// On `pfmemalloc_wait` (3.6).
        Waits,
    }

    /// When kswapd is done (MECHANISMS 5.2, 5.5).
    kswapd_done: KswapdDone = "when kswapd is done" {
        /// Every zone is above its high mark (up to 4.7).
        EveryZone,
        /// Some zone is (4.8).
        SomeZone,
    }

    /// How kswapd goes to sleep (MECHANISMS 5.4, 5.5).
    kswapd_sleep: KswapdSleep = "how kswapd goes to sleep" {
        /// At once.
        AtOnce,
        /// It dozes first, and looks again (2.6.33).
        Dozes,
    }

    /// When active file pages are scanned (MECHANISMS 6.4).
    file_balance: FileBalance = "when active file pages are scanned" {
        /// Always (up to 2.6.30).
        Always,
        /// When there are more of them than inactive ones ("vmscan: evict use-once pages first", 2.6.31).
        MoreThanInactive,
        /// When they are too many for memory of its size: as many as inactive ones in a small one (4.7).
        ByMemorySize,
    }

    /// What becomes of the scan of active file pages that are spared (MECHANISMS 6.4).
    spared_scan: SparedScan = "the scan of active pages that are spared" {
        /// It is spent on the inactive list (2.6.31 and 2.6.32).
        OnInactive,
        /// It is dropped (2.6.33).
        Dropped,
    }

    /// What becomes of a scan of less than a chunk of 32 pages ("memcg: fix `get_scan_count()` for small
    /// targets", 3.0).
    small_scans: SmallScans = "scans of less than a chunk" {
        /// It is put off until several of them, over priorities and runs, make a chunk, and an inactive list
        /// is scanned in whole chunks (up to 2.6.39).
        Saved,
        /// It is made (3.0).
        Made,
    }

    /// When a pass over the lists of a cgroup is over (MECHANISMS 6.6).
    scan_stop: ScanStop = "the end of a pass over the lists" {
        /// Once more than a chunk is freed, unless it is kswapd's or at the first priority (up to 3.11).
        AfterChunk,
        /// Once the target is met, after the lists were brought back into proportion (3.12).
        InProportion,
    }

    /// Whether the kernel remembers what it evicted (MECHANISMS 7).
    refaults: Refaults = "the memory of evicted pages" {
        /// It does not (up to 3.14).
        None,
        /// By shadow entries in the page cache (3.15).
        Shadows,
    }

    /// How hard slab is pressed (MECHANISMS 4.6, 9.2).
    slab_pressure: SlabPressure = "the pressure on slab" {
        /// In proportion to the part of the lists that was scanned, once for all zones (up to 4.11).
        ByScan,
        /// By priority (4.12).
        ByPriority,
    }

    /// What a writer does when too much is dirty (MECHANISMS 10).
    dirty_pause: DirtyPause = "writers when too much is dirty" {
        /// It writes back itself (up to 3.1).
        Writes,
        /// It is paused (3.2).
        Sleeps,
    }

    /// Whether memory can be compacted (MECHANISMS 12).
    compaction: Compaction = "compaction" {
        /// It cannot.
        Off,
        /// By requests, and since 4.6 by kcompactd (2.6.35).
        On,
    }

    /// Whether anonymous memory comes in huge pages (MECHANISMS 12).
    huge_pages: HugePages = "transparent huge pages" {
        /// It does not.
        Off,
        /// It does (2.6.38).
        On,
    }

    /// How tasks share a CPU, which decides when kswapd runs beside those that it works for. Not memory
    /// management, but a part of which Linux this is.
    scheduler: Scheduler = "which task a CPU runs" {
        /// The one that ran least; one that wakes up preempts one that is well ahead of it (2.6.23 to 6.5).
        Cfs,
        /// One that is owed time, until its request is done (6.6).
        Eevdf,
    }

    /// What the shrinker of XFS does with inodes that are not clean (MECHANISMS 11.5).
    inode_reclaim: InodeReclaim = "reclaim of XFS inodes that are not clean" {
        /// It writes them and waits for that (up to 5.8).
        Waits,
        /// It passes them by: only the thread of the log writes inodes (5.9).
        PassesBy,
    }

    /// What becomes of the cluster buffer of a dirty XFS inode (MECHANISMS 11.3).
    inode_cluster: InodeCluster = "the buffer of a dirty XFS inode" {
        /// It may be freed, and is read again when the inode is to be written (up to 5.8).
        MayGo,
        /// It is held from the first change until the inode is clean (5.9).
        Pinned,
    }

    /// Whether pages of XFS buffers count as reclaimed ("Account metadata buffers correctly for memory reclaim", in
    /// the notes on what is new in XFS of 5.7).
    buffer_credit: BufferCredit = "who is credited with freed XFS buffers" {
        /// Nobody (up to 5.6).
        Nobody,
        /// The reclaimer that frees them (5.7).
        Reclaimer,
    }

    /// How kernel objects are charged to cgroups (MECHANISMS 8.1, MECHANISMS-6X 4.1).
    object_charge: ObjectCharge = "the charge of kernel objects" {
        /// Each cgroup has slabs of its own, and pays for their pages (up to 5.8).
        BySlab,
        /// By the bytes of each object, wherever it lies (5.9).
        ByObject,
    }

    /// Where a CPU keeps free objects of a slab cache (MECHANISMS-510-72 7.1).
    free_objects: FreeObjects = "free slab objects near a CPU" {
        /// On slabs of its own: the current one and a few partial ones (2.6.23, 3.2).
        PartialSlabs,
        /// In arrays by CPU and node, whichever slabs they are of (7.0).
        Sheaves,
    }

    /// How many dentries and inodes are looked at in one step (MECHANISMS 9.2, MECHANISMS-6X 6.5).
    super_block_batch: SuperBlockBatch = "the batch of the super-block shrinker" {
        /// 1024; fewer than that are left for later.
        Of1024,
        /// As other shrinkers have: 128. No kernel does so.
        Of128,
    }

    /// How hard kswapd tries for a watermark boost (MECHANISMS 5.3).
    boost_effort: BoostEffort = "kswapd's effort for a watermark boost" {
        /// It stays at priority 10 (5.0).
        UpToPriority10,
        /// As hard as it needs to. No kernel does so.
        Any,
    }

    /// Whether there are memory cgroups as modelled here (MECHANISMS 8).
    cgroups: Cgroups = "memory cgroups" {
        /// There are none: the lists of the first controller were beside those of the zones, which is not
        /// modelled.
        Off,
        /// Version 2 (4.5).
        V2,
    }
}

#[cfg(test)]
mod tests {
    use std_alloc::collections::BTreeSet;

    use super::*;
    use crate::version::presets::Version;

    #[test]
    fn an_edit_changes_its_own_rule_and_no_other() {
        let before = Version::parse("linux-6.12").unwrap().rules;
        for &rule in Rule::ALL {
            let after = before.with(rule);
            let changed = Rule::ALL.iter().filter(|other| after.has(**other) && !before.has(**other));
            let expected: &[Rule] = if before.has(rule) { &[] } else { &[rule] };
            assert!(after.has(rule));
            assert!(changed.eq(expected), "{rule:?}");
        }
    }

    #[test]
    fn every_decision_has_its_own_words_and_one_answer() {
        let rules = Version::parse("linux-4.19").unwrap().rules;
        let decisions: BTreeSet<_> = Rule::ALL.iter().map(|rule| rule.decision()).collect();
        let answers = Rule::ALL.iter().filter(|rule| rules.has(**rule)).count();
        assert_eq!(decisions.len(), answers);
    }
}
