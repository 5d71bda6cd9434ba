//! Features: changes of the kernel that have a name on the command line.
//!
//! A [`Feature`] is an edit of one rule: `+root-aging` gives the rule a new answer, `-root-aging` the one
//! that was there before. Changes that nobody would switch by themselves are rules without a feature.
//!
//! Source of each row: MECHANISMS sections 0 and 6.x of `docs/mechanisms`. Neighbours:
//! [`crate::version::parse`] for names with features added and taken away,
//! [`crate::version::presets`] for what each version has, [`crate::base::sysctl`] for what an
//! administrator can change.

use core::fmt;

use crate::version::presets::presets;
use crate::version::rules::*;

macro_rules! features {
    ($($(#[$doc:meta])* $variant:ident = $name:literal, $help:literal, $source:literal,
        $rule:ident: $off:ident => $on:ident;)*) => {
        /// One behavioural change of the kernel.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Feature {
            $($(#[$doc])* $variant,)*
        }

        impl Feature {
            /// Every feature, in the order of their declaration.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)*];

            /// The name on the command line.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)* }
            }

            /// One line on what it changes.
            pub const fn help(self) -> &'static str {
                match self { $(Self::$variant => $help,)* }
            }

            /// Where it comes from: a version of Linux, or a posting.
            pub const fn source(self) -> &'static str {
                match self { $(Self::$variant => $source,)* }
            }

            /// The answer of a kernel that has it.
            pub const fn on(self) -> Rule {
                match self { $(Self::$variant => Rule::$rule($rule::$on),)* }
            }

            /// The answer of a kernel from which it was taken away: what was there before it.
            pub const fn off(self) -> Rule {
                match self { $(Self::$variant => Rule::$rule($rule::$off),)* }
            }
        }
    };
}

features! {
    /// [`Aging::Root`]
    RootAging = "root-aging",
        "balance active and inactive lists over the whole reclaimed tree, not per cgroup",
        "5.5", Aging: PerCgroup => Root;
    /// [`EvictionAge::Target`]
    EvictionAgesTarget = "eviction-ages-target",
        "an eviction ages the cgroup that is reclaimed and those above it, not the page's owner",
        "5.8", EvictionAge: Owner => Target;
    /// [`BoostedSlab::Shrunk`]
    ShrinkSlabWhenBoosted = "shrink-slab-when-boosted",
        "kswapd shrinks slab also while it reclaims for a watermark boost",
        "5.4", BoostedSlab: Spared => Shrunk;
    /// [`Spread::Dma32`]
    NoFragment = "nofragment",
        "spread to the DMA32 zone before mixing mobility types in a pageblock",
        "5.0", Spread: Off => Dma32;
    /// [`WatermarkBoost::Merged`]
    WatermarkBoost = "watermark-boost",
        "a fragmenting fallback raises watermarks for a while",
        "5.0", WatermarkBoost: Off => Merged;
    /// [`WatermarkBoost::V2`]
    WatermarkBoostV2 = "watermark-boost-v2",
        "watermark-boost as posted for 4.20-rc1: cap from the boosted mark, wakes kswapd always, reclaims slab",
        "posted 7 Nov 2018", WatermarkBoost: Off => V2;
    /// [`FragmentStall::V2`]
    FragmentStall = "fragment-stall",
        "movable requests wait for kswapd before a badly fragmenting fallback, up to 100 ms (v2)",
        "posted 7 Nov 2018", FragmentStall: Off => V2;
    /// [`FragmentStall::V1`]
    FragmentStallV1 = "fragment-stall-v1",
        "fragment-stall as first posted: for each zone tried, no faster boost, no counter",
        "posted 31 Oct 2018", FragmentStall: Off => V1;
    /// [`FragmentStall::V3`]
    FragmentStallV3 = "fragment-stall-v3",
        "fragment-stall that waits up to 20 ms",
        "posted 21 Nov 2018", FragmentStall: Off => V3;
    /// [`FragmentStall::V5`]
    FragmentStallV5 = "fragment-stall-v5",
        "fragment-stall-v3, also woken while kswapd works a boost off",
        "posted 23 Nov 2018", FragmentStall: Off => V5;
    /// [`MemcgWalk::Shared`]
    SharedMemcgWalk = "shared-memcg-walk",
        "reclaimers share a saved position in the cgroup tree",
        "up to 5.4", MemcgWalk: Full => Shared;
    /// [`MemcgWalk::Partial`]
    PartialMemcgWalk = "partial-memcg-walk",
        "direct and limit reclaim walk part of the cgroup tree from a saved position",
        "6.12", MemcgWalk: Full => Partial;
    /// [`SiblingShares::ByClaim`]
    SiblingProtection = "sibling-protection",
        "siblings keep what they claim of memory.low while their parent has enough for all",
        "5.7", SiblingShares: ByUse => ByClaim;
    /// [`WriteAccess::Access`]
    WritesAreAccesses = "writes-are-accesses",
        "pages that are written twice become active, as pages that are read twice do",
        "up to 4.6", WriteAccess: None => Access;
    /// [`ProtectedScan::Scaled`]
    ScaledProtection = "scaled-protection",
        "memory.low and memory.min shorten scans of cgroups above them in proportion",
        "5.4", ProtectedScan: Whole => Scaled;
    /// [`ProtectedScan::ScaledAndSkipped`]
    ScaledProtectionSkips = "scaled-protection-skips",
        "a run without success ignores memory.low also where it only shortened scans",
        "5.14", ProtectedScan: Scaled => ScaledAndSkipped;
    /// [`AnonStart::Inactive`]
    AnonStartsInactive = "anon-starts-inactive",
        "new anonymous pages start on the inactive list",
        "5.9", AnonStart: Active => Inactive;
    /// [`MappedReferences::SecondActivates`]
    MappedTwiceActivates = "mapped-twice-activates",
        "a mapped page of a file becomes active when page tables saw accesses to it twice, not once",
        "2.6.34", MappedReferences: FirstActivates => SecondActivates;
    /// [`FaultAround::Sixteen`]
    FaultAround = "fault-around",
        "a read fault maps what is in memory of the 16 pages around it",
        "3.15", FaultAround: None => Sixteen;
    /// [`AdvisedAccess::NeitherCounts`]
    RandomAdviceUncounted = "random-advice-uncounted",
        "accesses to a mapping that are said to be random do not keep its pages",
        "6.3", AdvisedAccess: RandomCounts => NeitherCounts;
    /// [`FaultCount::Completed`]
    FaultsCountOnce = "faults-count-once",
        "pgfault counts a fault that had to wait once, not twice",
        "6.4", FaultCount: Tries => Completed;
    /// [`MappedHits::Wanted`]
    OneMappedHit = "one-mapped-hit",
        "a fault counts its own page as found, not all around it, nor what it has just read itself",
        "7.2", MappedHits: Around => Wanted;
    /// [`CodeReadahead::Forward`]
    ExecReadahead = "exec-readahead",
        "a miss in an executable mapping reads a window from there on, whatever was said of accesses",
        "7.2", CodeReadahead: Around => Forward;
    /// [`DeferredSlab::ByPriority`]
    DeferredSlabDecay = "deferred-slab-decay",
        "deferred slab scanning is paid back by priority",
        "5.13", DeferredSlab: AtOnce => ByPriority;
    /// [`SlabFloor::Batch`]
    SmallSlabPressure = "small-slab-pressure",
        "a pass asks of a shrinker a batch at least, or all objects that it has",
        "4.19", SlabFloor: None => Batch;
    /// [`PcpGeneration::HighOrder`]
    PcpHighOrder = "pcp-high-order",
        "per-CPU page lists hold orders 0 to 3, sized from the low watermark",
        "5.13", PcpGeneration: Classic => HighOrder;
    /// [`PcpGeneration::AutoSize`]
    PcpAutoSize = "pcp-auto-size",
        "per-CPU page lists size themselves, refills double",
        "6.7", PcpGeneration: HighOrder => AutoSize;
    /// [`OomReaper::TakesLocked`]
    OomReapsLocked = "oom-reaps-locked",
        "the OOM reaper takes memory that is locked by mlock, too",
        "5.18", OomReaper: SparesLocked => TakesLocked;
    /// [`AtomicMark::Unboosted`]
    AtomicIgnoresBoost = "atomic-ignores-boost",
        "atomic requests ignore the watermark boost",
        "5.9", AtomicMark: Boosted => Unboosted;
    /// [`FallbackPolicy::ClaimThenSteal`]
    ClaimThenSteal = "claim-then-steal",
        "fallback claims a pageblock whole or steals a single page",
        "6.12", FallbackPolicy: StealAndClaim => ClaimThenSteal;
    /// [`CompactFolios::Large`]
    CompactLargeFolios = "compact-large-folios",
        "compaction moves large folios smaller than the wanted block",
        "6.12", CompactFolios: Single => Large;
    /// [`HighatomicReserve::LargeZones`]
    SmallZoneNoHighatomic = "small-zone-no-highatomic",
        "no highatomic reserve in small zones",
        "6.12", HighatomicReserve: AllZones => LargeZones;
    /// [`ReadaheadFolios::Large`]
    LargeFolioReadahead = "large-folio-readahead",
        "readahead allocates large folios on XFS",
        "5.18", ReadaheadFolios: Single => Large;
    /// [`WriteFolios::Large`]
    LargeFolioWrite = "large-folio-write",
        "buffered writes allocate large folios on XFS",
        "6.6", WriteFolios: Single => Large;
    /// [`StatFreshness::Threshold`]
    MemcgStatThreshold = "memcg-stat-threshold",
        "cgroup statistics are flushed for reclaim when many updates are pending",
        "5.16", StatFreshness: Live => Threshold;
    /// [`StatFreshness::Periodic`]
    MemcgStatPeriodic = "memcg-stat-periodic",
        "cgroup statistics are flushed for reclaim every 2 s only",
        "6.8", StatFreshness: Threshold => Periodic;
    /// [`Throttle::ReclaimThrottle`]
    ReclaimThrottle = "reclaim-throttle",
        "direct reclaim without progress sleeps a tick",
        "5.16", Throttle: CongestionWait => ReclaimThrottle;
    /// [`Writepage::Kswapd`]
    WritepageHook = "writepage-hook",
        "kswapd may write single dirty pages (ext4 up to 6.2, XFS up to 5.17)",
        "up to 6.2", Writepage: Never => Kswapd;
    /// [`InodeLru::WithoutPages`]
    InodeLruWithoutPages = "inode-lru-without-pages",
        "inodes with cached pages are not on the inode LRU",
        "5.16", InodeLru: WithPages => WithoutPages;
    /// [`Scheduler::Eevdf`]
    Eevdf = "eevdf",
        "tasks share CPUs by lag and deadline; a woken one waits until the running one had its request",
        "6.6", Scheduler: Cfs => Eevdf;
    /// [`Preemption::Lazy`]
    PreemptLazy = "preempt-lazy",
        "kernel code gives way on its way back to a program or at the next tick, not at cond_resched()",
        "6.13", Preemption: Voluntary => Lazy;
    /// [`SlabCredit::GlobalOnly`]
    SlabCreditGlobalOnly = "slab-credit-global-only",
        "freed slab pages do not count for limit reclaim",
        "6.12", SlabCredit: AllReclaim => GlobalOnly;
    /// [`PcpLists::PerType`]
    PcpPerMigratetype = "pcp-per-migratetype",
        "per-CPU page lists have a list for each mobility type (5f8dcc21)",
        "2.6.32", PcpLists: Single => PerType;
    /// [`ColdOrder::Rising`]
    PcpColdOrder = "pcp-cold-order",
        "cold requests get pages of a refill in rising order (e084b)",
        "2.6.31", ColdOrder: Falling => Rising;
    /// [`PcpFallback::Taken`]
    PcpCrossFallback = "pcp-cross-fallback",
        "a request takes a page of another type from its CPU's lists before it refills",
        "proposed 8 Feb 2010", PcpFallback: Left => Taken;
    /// [`Backoff::PressureWait`]
    PressureWait = "pressure-wait",
        "pauses of the slow path and of kswapd end once the zone is above its low mark",
        "posted 8 Feb 2010", Backoff: CongestionWait => PressureWait;
    /// [`Backoff::WaitIffCongested`]
    WaitIffCongested = "wait-iff-congested",
        "no pauses of the slow path and of kswapd unless a device is congested",
        "2.6.36", Backoff: CongestionWait => WaitIffCongested;
    /// [`FailedReclaim::Drains`]
    DrainAfterFailedReclaim = "drain-after-failed-reclaim",
        "a request whose reclaim freed pages for others drains all CPUs and tries again",
        "2.6.36", FailedReclaim: GoesOn => Drains;
    /// [`SlowPath::WhileItHelps`]
    ReclaimRetry = "reclaim-retry",
        "requests are repeated while reclaim can help, without a pause",
        "4.7", SlowPath: Paused => WhileItHelps;
    /// [`FileBalance::MoreThanInactive`]
    EvictOnceRatio = "evict-once-ratio",
        "active file pages are scanned only when there are more of them than inactive ones (56e49d21)",
        "2.6.31", FileBalance: Always => MoreThanInactive;
    /// [`InodeReclaim::PassesBy`]
    AsyncInodeReclaim = "async-inode-reclaim",
        "the shrinker of XFS passes by inodes that are not clean instead of writing them",
        "5.9", InodeReclaim: Waits => PassesBy;
    /// [`InodeCluster::Pinned`]
    PinInodeCluster = "pin-inode-cluster",
        "XFS holds the buffer of a changed inode until the inode is clean",
        "5.9", InodeCluster: MayGo => Pinned;
    /// [`BufferCredit::Reclaimer`]
    XfsBufferCredit = "xfs-buffer-credit",
        "pages of freed XFS buffers count as reclaimed",
        "5.7", BufferCredit: Nobody => Reclaimer;
    /// [`FreeObjects::Sheaves`]
    SlabSheaves = "slab-sheaves",
        "free slab objects wait in arrays per CPU and node instead of on partial slabs",
        "7.0", FreeObjects: PartialSlabs => Sheaves;
    /// [`SuperBlockBatch::Of128`]
    SuperBlockBatch128 = "super-block-batch-128",
        "dentries and inodes are scanned 128 at a time instead of 1024: a what-if, in no kernel",
        "never merged", SuperBlockBatch: Of1024 => Of128;
    /// [`BoostEffort::Any`]
    BoostWithoutFloor = "boost-without-floor",
        "kswapd goes beyond priority 10 for a watermark boost: a what-if, in no kernel",
        "never merged", BoostEffort: UpToPriority10 => Any;
    /// [`Ext4Folios::Large`]
    LargeFolioExt4 = "large-folio-ext4",
        "ext4 has large folios, too, where readahead and buffered writes make them on XFS",
        "6.16", Ext4Folios: Single => Large;
    /// [`ReadaheadOrder::OfFile`]
    ReadaheadOrderKept = "readahead-order-kept",
        "readahead raises the folio order by window, from single pages, and aligns the ends of windows",
        "6.17", ReadaheadOrder: OfMarker => OfFile;
    /// [`CompactGap::Chunk`]
    SmallCompactGap = "small-compact-gap",
        "compaction needs 32 free pages above the mark, not twice the block",
        "7.2", CompactGap: TwiceBlock => Chunk;
    /// [`FirstCompaction::Never`]
    CompactBeforeReclaimLoop = "compact-before-reclaim-loop",
        "a costly request that compacts in vain reclaims at least once, also if it wants no retries",
        "7.0", FirstCompaction: NotRun => Never;
    /// [`ChargeStock::SevenGroups`]
    MemcgMultiStock = "memcg-multi-stock",
        "each CPU keeps charged pages in stock for seven cgroups, not one",
        "6.16", ChargeStock: OneGroup => SevenGroups;
    /// [`RemovedGroup::HandsOver`]
    ReparentLru = "reparent-lru",
        "removing a cgroup hands its pages to the parent",
        "7.1", RemovedGroup: Keeps => HandsOver;
    /// [`ReclaimCounts::All`]
    LimitReclaimInVmstat = "limit-reclaim-in-vmstat",
        "/proc/vmstat counts pages scanned and freed for cgroup limits, too",
        "7.1", ReclaimCounts: Global => All;
    /// [`BoostFailure::Forgiven`]
    BoostFailureForgiven = "boost-failure-forgiven",
        "a run of kswapd for a boost that freed nothing does not count towards giving up",
        "7.0", BoostFailure: Counts => Forgiven;
    /// [`KswapdHope::Balanced`]
    KswapdHopeNeedsBalance = "kswapd-hope-needs-balance",
        "progress revives a kswapd that gave up only once the node is balanced",
        "7.0", KswapdHope: AnyProgress => Balanced;
    /// [`ZoneSkips::Capped`]
    IsolateSkipCap = "isolate-skip-cap",
        "at most 32768 folios of too high zones are passed over in one step",
        "6.13", ZoneSkips: Unlimited => Capped;
    /// [`Writepage::Unasked`]
    NoFileWritebackInReclaim = "no-file-writeback-in-reclaim",
        "reclaim never writes file pages, whatever the filesystem",
        "6.17", Writepage: Never => Unasked;
    /// [`DefaultReadahead::Rotational`]
    ReadaheadRotational = "readahead-rotational",
        "default readahead of rotating disks is twice the largest request (8 MiB), not 128 KiB",
        "6.17", DefaultReadahead: Fixed => Rotational;
    /// [`NodeChoice::SparesKswapd`]
    SkipNodesWithKswapd = "skip-nodes-with-kswapd",
        "requests prefer nodes whose kswapd sleeps",
        "6.18", NodeChoice: Nearest => SparesKswapd;
    /// [`DefragMode::Sysctl`]
    DefragMode = "defrag-mode",
        "the sysctl vm.defrag_mode, which keeps pageblocks whole until reclaim and compaction failed",
        "6.15", DefragMode: None => Sysctl;
    /// [`LruCost::Io`]
    CostModel = "cost-model",
        "anonymous and file pages are weighed by the I/O that reclaim of them causes, not by rotations",
        "5.8", LruCost: Rotations => Io;
    /// [`LruCost::IoAndRotations`]
    RotationCost = "rotation-cost",
        "pages that were scanned in vain count as a cost of their kind, too",
        "6.2", LruCost: Io => IoAndRotations;
    /// [`SwappinessRange::UpTo200`]
    SwappinessMax = "swappiness-max",
        "vm.swappiness goes up to 200, which spares files",
        "5.8", SwappinessRange: UpTo100 => UpTo200;
    /// [`WatermarkScaleRange::UpTo3000`]
    WatermarkScaleMax = "watermark-scale-max",
        "vm.watermark_scale_factor goes up to 3000",
        "5.17", WatermarkScaleRange: UpTo1000 => UpTo3000;
    /// [`QuotaRest::Dropped`]
    NoSwapFlood = "no-swap-flood",
        "a reclaimer that has met its target leaves the rest of its quotas alone",
        "6.1", QuotaRest: Spent => Dropped;
    /// [`ProactiveReclaim::Whole`]
    MemoryReclaim = "memory-reclaim",
        "the cgroup file memory.reclaim",
        "5.19", ProactiveReclaim: None => Whole;
    /// [`ProactiveReclaim::Quarters`]
    MemoryReclaimSwappiness = "memory-reclaim-swappiness",
        "memory.reclaim takes swappiness= and frees a quarter of what is asked at a time",
        "6.11", ProactiveReclaim: Whole => Quarters;
    /// [`ProactiveReclaim::QuartersOrAnon`]
    MemoryReclaimAnonOnly = "memory-reclaim-anon-only",
        "memory.reclaim takes swappiness=max, which frees anonymous memory alone",
        "6.16", ProactiveReclaim: Quarters => QuartersOrAnon;
    /// [`ProactiveCounts::Proactive`]
    ProactiveReclaimCounted = "proactive-reclaim-counted",
        "pages scanned and freed because somebody asked for it are counted by themselves",
        "6.15", ProactiveCounts: Direct => Proactive;
    /// [`NodeReclaim::File`]
    NodeReclaimFile = "node-reclaim-file",
        "the file reclaim of a node, as memory.reclaim is of a cgroup",
        "6.17", NodeReclaim: None => File;
    /// [`SwapHigh::Sleep`]
    MemorySwapHigh = "memory-swap-high",
        "the cgroup file memory.swap.high: tasks of a cgroup that uses more swap sleep, up to 2 s a fault",
        "5.8", SwapHigh: None => Sleep;
    /// [`HighPause::Once`]
    HighPause = "high-pause",
        "tasks of a cgroup that stays above memory.high sleep on their way to user mode, up to 2 s a batch of charges",
        "5.4", HighPause: None => Once;
    /// [`ZramRequests::Counted`]
    ZramRequests = "zram-requests",
        "what goes to zram and comes back is counted by pgpgout and pgpgin, as with any disk",
        "6.3", ZramRequests: None => Counted;
    /// [`CgroupWriteback::OwnShare`]
    CgroupWriteback = "cgroup-writeback",
        "writers of a cgroup also keep to its share of dirty pages, and flushers to its background threshold",
        "4.2", CgroupWriteback: Absent => OwnShare;
    /// [`HighPause::Insistent`]
    HighPauseRetries = "high-pause-retries",
        "above memory.high a task reclaims on while that frees anything, and sleeps after 16 failures",
        "5.9", HighPause: Once => Insistent;
    /// [`HighOvercharge::AtOnce`]
    HighOverchargeAtOnce = "high-overcharge-at-once",
        "a call that charges more than a batch above memory.high pays for it at once",
        "5.18", HighOvercharge: AtReturn => AtOnce;
    /// [`LruKind::Generations`]
    LruGen = "lru-gen",
        "the multi-gen LRU: pages by generations and tiers instead of active and inactive lists",
        "6.1", LruKind: TwoLists => Generations;
    /// [`GenTiers::Protect`]
    MglruTiers = "mglru-tiers",
        "pages of a tier that comes back more often than the lowest stay in the multi-gen LRU",
        "6.1", GenTiers: Nothing => Protect;
    /// [`GenTypes::ByRefaults`]
    MglruTypes = "mglru-types",
        "refaults decide whether the multi-gen LRU evicts files or anonymous memory, not files first",
        "6.1", GenTypes: FilesFirst => ByRefaults;
    /// [`GenTables::Walked`]
    MglruWalk = "mglru-walk",
        "page tables are walked for a new generation of the multi-gen LRU",
        "6.1", GenTables: None => Walked;
    /// [`GenFilter::Dense`]
    MglruBloom = "mglru-bloom",
        "walks for a new generation pass page tables by of which less than an eighth is accessed",
        "6.1", GenFilter: All => Dense;
    /// [`GenAround::Entries`]
    MglruAround = "mglru-around",
        "around a page that eviction finds accessed, the multi-gen LRU looks at 64 entries of the page table",
        "6.1", GenAround: Nothing => Entries;
    /// [`GenAccess::Accesses`]
    MglruRefs = "mglru-refs",
        "tiers of the multi-gen LRU are by accesses, and the second sight of a page table promotes",
        "6.14", GenAccess: Reads => Accesses;
    /// [`GenQuota::Once`]
    MglruLimitStop = "mglru-limit-stop",
        "limit reclaim by generations stops at its target and honours memory.low in proportion",
        "7.2", GenQuota: EachRound => Once;
    /// [`LruKind::S3Fifo`]
    FileLruS3Fifo = "file-lru-s3fifo",
        "file pages on a small FIFO queue on trial before a main one, by hits, not by two lists",
        "never merged: Yang et al., SOSP 2023", LruKind: TwoLists => S3Fifo;
    /// [`LruKind::Sieve`]
    FileLruSieve = "file-lru-sieve",
        "file pages on one FIFO queue with a hand that takes those without a hit, not on two lists",
        "never merged: Zhang et al., NSDI 2024", LruKind: TwoLists => Sieve;
}

impl Feature {
    /// Changes that the sources name and that are not modelled, each with the reason.
    pub const UNMODELLED: &'static [(&'static str, &'static str)] = &[(
        "wb-share-floor",
        "a disk's share of the dirty threshold would have a floor (Linux 6.16), and the model has no shares of disks",
    )];

    /// The feature of this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|feature| feature.name() == name)
    }

    /// The feature that gives a rule this answer, if the answer has a name.
    pub fn giving(rule: Rule) -> Option<Self> {
        Self::ALL.iter().copied().find(|feature| feature.on() == rule)
    }

    /// The oldest modelled kernel that has it; none for a feature that was never merged.
    pub fn first_kernel(self) -> Option<&'static str> {
        presets().find(|preset| preset.rules.has(self.on())).map(|preset| preset.name)
    }
}

impl fmt::Display for Feature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_feature_edits_one_rule_and_no_two_give_the_same_answer() {
        for &feature in Feature::ALL {
            assert_eq!(feature.on().decision(), feature.off().decision(), "{feature}");
            assert_ne!(feature.on(), feature.off(), "{feature}");
            assert_eq!(Feature::giving(feature.on()), Some(feature));
            assert_eq!(Feature::named(feature.name()), Some(feature));
        }
    }

    #[test]
    fn a_feature_knows_the_oldest_kernel_that_has_it() {
        assert_eq!(Feature::RootAging.first_kernel(), Some("linux-5.5"));
        assert_eq!(Feature::PcpHighOrder.first_kernel(), Some("linux-6.1"));
        assert_eq!(Feature::SharedMemcgWalk.first_kernel(), Some("linux-2.6.32"));
        assert_eq!(Feature::FragmentStallV5.first_kernel(), None);
    }
}
