//! Versions of Linux: which rules and which numbers each of them has.
//!
//! Each version is the one before it and a list of edits. Only what this crate implements is listed;
//! `docs/mechanisms` says what else changed. Neighbours: [`crate::version::rules`] for the decisions,
//! [`crate::version::parse`] for names with features added and taken away,
//! [`crate::version::geometry`] for sizes of kernel objects.

use std_alloc::string::String;

use units::{Bytes, Nanos};

use crate::version::geometry::{
    CpuPartialUnit, FILE_CACHES_5X, FILE_CACHES_57, FILE_CACHES_61, FILE_CACHES_72, FILE_CACHES_510,
    FILE_CACHES_612, FileCaches, GroupCost, SlabBuild,
};
use crate::version::rules::*;

/// Numbers that differ between versions and that nobody switches by themselves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tuning {
    /// Pages in a per-CPU LRU batch (pagevec, folio_batch): 15, since 6.8 31.
    pub lru_batch: u8,
    /// Pages that a cgroup charge takes in advance for the CPU's stock: 32, since 5.16 64.
    pub charge_batch: u32,
    /// Rounds of limit reclaim before a charge gives up: 5, since 5.9 16.
    pub charge_retries: u8,
    /// What the cgroup above a new one is charged for it.
    pub group_cost: GroupCost,
    /// Size of a page cache tree node in bytes (`radix_tree_node`).
    pub tree_node_size: u16,
    /// Largest part of a slab that may be left over, as 1 / n: a quarter, since 6.8 a half.
    pub slab_waste: u32,
    /// What is counted of the partial slabs that a CPU keeps.
    pub cpu_partial: CpuPartialUnit,
    /// Slab caches of dentries, inodes and what belongs to them.
    pub file_caches: FileCaches,
    /// Bytes per object that accounting adds for its own pointer: 0, since 5.9 8.
    pub object_cgroup_overhead: u16,
    /// Whether a slab has the pointers to who pays for its objects in what is left of it, if there is room.
    pub payers_in_rest: bool,
    /// Most pages of a thousandth of a zone that count for the batch of its per-CPU lists: 128 (512 KiB), since
    /// 4.19 256 (1 MiB).
    pub pcp_share_max: u16,
    /// Pages of notes that unmapping takes at most, see [`crate::gather`]: 19; 0 before 3.0, where a CPU had a fixed
    /// array.
    pub gather_pages_max: u8,
    /// Upper bound of `min_free_kbytes` as computed at boot: 65536, since 5.8 262144.
    pub min_free_kbytes_max: u64,
    /// Largest checkpoint of the XFS log: unlimited before 5.7, then 32 MiB.
    pub xfs_checkpoint_max: Bytes,
    /// How long the thread that pushes the AIL of XFS rests between two walks that get on: 10 ms; in 6.12 0.
    pub xfs_push_pause: Nanos,
    /// Each run of pages that is written has a bio with a vector of the largest size. Measured from 5.10 on; before,
    /// nobody has looked.
    pub large_bios: bool,
    /// Runs of new pages that ext4 writes at once, with a journal of 64 MiB: each has a part of a transaction reserved
    /// for when it is there. Unlimited before 5.6. Measured: guests that write files of 4, 8 and 16 KiB.
    pub ext4_runs_in_flight: u32,
}

/// A version of Linux with features switched on or off.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Version {
    /// The name as written: `linux-5.4+root-aging`.
    pub name: String,
    /// The version that it starts from: `linux-5.4`.
    pub base: &'static str,
    /// What it decides, and how.
    pub rules: Rules,
    /// The version's numbers.
    pub tuning: Tuning,
}

/// A version as it was released.
#[derive(Debug, Clone, Copy)]
pub(super) struct Preset {
    pub name: &'static str,
    pub help: &'static str,
    pub rules: Rules,
    pub tuning: Tuning,
}

const TUNING_5X: Tuning = Tuning {
    lru_batch: 15,
    charge_batch: 32,
    charge_retries: 5,
    group_cost: GroupCost::NONE,
    tree_node_size: 576,
    slab_waste: 4,
    cpu_partial: CpuPartialUnit::FreeObjects,
    file_caches: FILE_CACHES_5X,
    object_cgroup_overhead: 0,
    payers_in_rest: false,
    pcp_share_max: 256,
    gather_pages_max: 19,
    min_free_kbytes_max: 65536,
    xfs_checkpoint_max: Bytes(u64::MAX),
    xfs_push_pause: Nanos::from_millis(10),
    large_bios: false,
    ext4_runs_in_flight: u32::MAX,
};

const TUNING_61: Tuning = Tuning {
    charge_batch: 64,
    charge_retries: 16,
    group_cost: GroupCost::LINUX_6_1,
    tree_node_size: 584,
    cpu_partial: CpuPartialUnit::Slabs,
    file_caches: FILE_CACHES_61,
    object_cgroup_overhead: 8,
    min_free_kbytes_max: 262_144,
    xfs_checkpoint_max: Bytes(32 << 20),
    large_bios: true,
    ext4_runs_in_flight: 256,
    ..TUNING_5X
};

const RULES_2632: Rules = Rules {
    aging: Aging::PerCgroup,
    eviction_age: EvictionAge::Owner,
    activation_age: ActivationAge::Accesses,
    memcg_walk: MemcgWalk::Shared,
    stat_freshness: StatFreshness::Live,
    sibling_shares: SiblingShares::ByUse,
    protected_scan: ProtectedScan::Whole,
    slab_credit: SlabCredit::AllReclaim,
    deferred_slab: DeferredSlab::AtOnce,
    slab_debt: SlabDebt::PerNode,
    boosted_slab: BoostedSlab::Spared,
    spread: Spread::Off,
    spread_retry: SpreadRetry::GoesOn,
    watermark_boost: WatermarkBoost::Off,
    boosted_zones: BoostedZones::All,
    fragment_stall: FragmentStall::Off,
    fallback: FallbackPolicy::LargestFirst,
    pcp: PcpGeneration::Classic,
    oom_reaper: OomReaper::SparesLocked,
    atomic_mark: AtomicMark::Boosted,
    highatomic: HighatomicReserve::Blocks,
    reserve_users: ReserveUsers::Atomic,
    reserve_count: ReserveCount::Whole,
    compact_folios: CompactFolios::Single,
    compact_search: CompactSearch::None,
    proactive_compaction: ProactiveCompaction::None,
    compact_retry: CompactRetry::AsItWas,
    first_compaction: FirstCompaction::PutOff,
    readahead_folios: ReadaheadFolios::Single,
    write_folios: WriteFolios::Single,
    write_access: WriteAccess::Access,
    anon_start: AnonStart::Active,
    mapped_references: MappedReferences::FirstActivates,
    advised_access: AdvisedAccess::RandomCounts,
    fault_around: FaultAround::None,
    fault_count: FaultCount::Tries,
    write_fault: WriteFault::Holding,
    mapped_hits: MappedHits::Around,
    code_readahead: CodeReadahead::Around,
    inode_lru: InodeLru::WithPages,
    throttle: Throttle::CongestionWait,
    pass_measure: PassMeasure::Scanned,
    writepage: Writepage::Anyone,
    pcp_lists: PcpLists::PerType,
    cold_order: ColdOrder::Rising,
    pcp_fallback: PcpFallback::Left,
    cold_pages: ColdPages::Tail,
    pcp_reserve: PcpReserve::Leaks,
    likely_merges: LikelyMerges::Head,
    readahead_effort: ReadaheadEffort::Insists,
    readahead_reclaim: ReadaheadReclaim::AsFile,
    readahead_history: ReadaheadHistory::AnyPage,
    range_readahead: RangeReadahead::Whole,
    readahead_miss: ReadaheadMiss::Continues,
    readahead_gap: ReadaheadGap::AtLast,
    readahead_position: ReadaheadPosition::LastPage,
    dirty_spread: DirtySpread::Any,
    watermark_test: WatermarkTest::HalvedByOrder,
    mark_gap: MarkGap::QuarterOfMin,
    failed_reclaim: FailedReclaim::GoesOn,
    slow_path: SlowPath::Paused,
    backoff: Backoff::CongestionWait,
    device_congestion: DeviceCongestion::Marked,
    direct_pause: DirectPause::Paused,
    list_drain: ListDrain::Caller,
    timers: Timers::AtEdge,
    reserve_throttle: ReserveThrottle::Off,
    kswapd_done: KswapdDone::EveryZone,
    kswapd_sleep: KswapdSleep::AtOnce,
    file_balance: FileBalance::MoreThanInactive,
    spared_scan: SparedScan::OnInactive,
    small_scans: SmallScans::Saved,
    scan_stop: ScanStop::AfterChunk,
    refaults: Refaults::None,
    slab_pressure: SlabPressure::ByScan,
    slab_floor: SlabFloor::None,
    dirty_pause: DirtyPause::Writes,
    compaction: Compaction::Off,
    huge_pages: HugePages::Off,
    scheduler: Scheduler::Cfs,
    preemption: Preemption::Voluntary,
    inode_reclaim: InodeReclaim::Waits,
    inode_cluster: InodeCluster::MayGo,
    buffer_credit: BufferCredit::Nobody,
    log_vectors: LogVectors::Reclaims,
    object_charge: ObjectCharge::BySlab,
    free_objects: FreeObjects::PartialSlabs,
    super_block_batch: SuperBlockBatch::Of1024,
    boost_effort: BoostEffort::UpToPriority10,
    cgroups: Cgroups::Off,
    sync_swap: SyncSwap::ThroughCache,
    swap_readahead: SwapReadahead::Cluster,
    slot_cache: SlotCache::Off,
    swap_clusters: SwapClusters::Scan,
    swap_turns: SwapTurns::PerCall,
    zero_pages: ZeroPages::Written,
    zram_requests: ZramRequests::None,
    huge_swap: HugeSwap::Split,
    swap_shadows: SwapShadows::Kept,
    lazy_free: LazyFree::Unknown,
    cold_advice: ColdAdvice::Unknown,
    zspage_chain: ZspageChain::UpToFour,
    swap_high: SwapHigh::None,
    high_pause: HighPause::None,
    high_overcharge: HighOvercharge::AtReturn,
    cgroup_writeback: CgroupWriteback::Absent,
    zswap: Zswap::Absent,
    ext4_folios: Ext4Folios::Single,
    readahead_order: ReadaheadOrder::OfMarker,
    compact_gap: CompactGap::TwiceBlock,
    charge_stock: ChargeStock::OneGroup,
    removed_group: RemovedGroup::Keeps,
    reclaim_counts: ReclaimCounts::GlobalAndRefill,
    boost_failure: BoostFailure::Counts,
    kswapd_hope: KswapdHope::AnyProgress,
    zone_skips: ZoneSkips::Unlimited,
    default_readahead: DefaultReadahead::Fixed,
    node_choice: NodeChoice::Nearest,
    defrag_mode: DefragMode::None,
    lru_cost: LruCost::Rotations,
    swappiness_range: SwappinessRange::UpTo100,
    watermark_scale_range: WatermarkScaleRange::UpTo1000,
    quota_rest: QuotaRest::Spent,
    trim_failure: TrimFailure::GivesUp,
    refault_swap: RefaultSwap::OfPage,
    proactive_reclaim: ProactiveReclaim::None,
    proactive_counts: ProactiveCounts::Direct,
    node_reclaim: NodeReclaim::None,
    lru: LruKind::TwoLists,
    gen_form: GenForm::NotBuilt,
    gen_walk: GenWalk::Tree,
    gen_access: GenAccess::Reads,
    gen_quota: GenQuota::EachRound,
    gen_tiers: GenTiers::Nothing,
    gen_types: GenTypes::FilesFirst,
    gen_tables: GenTables::None,
    gen_filter: GenFilter::All,
    gen_around: GenAround::Nothing,
};

const RULES_419: Rules = RULES_2632.edited(&[
    Rule::FallbackPolicy(FallbackPolicy::StealAndClaim),
    Rule::HighatomicReserve(HighatomicReserve::AllZones),
    Rule::WriteAccess(WriteAccess::None),
    Rule::MappedReferences(MappedReferences::SecondActivates),
    Rule::FaultAround(FaultAround::Sixteen),
    Rule::Writepage(Writepage::Kswapd),
    Rule::ColdPages(ColdPages::Alike),
    Rule::PcpReserve(PcpReserve::Stays),
    Rule::LikelyMerges(LikelyMerges::Tail),
    Rule::ReadaheadEffort(ReadaheadEffort::GivesUp),
    Rule::ReadaheadHistory(ReadaheadHistory::MoreThanAsked),
    Rule::RangeReadahead(RangeReadahead::Request1280K),
    Rule::DirtySpread(DirtySpread::BelowLimit),
    Rule::WatermarkTest(WatermarkTest::AnyBlock),
    Rule::MarkGap(MarkGap::Scaled),
    Rule::FailedReclaim(FailedReclaim::Drains),
    Rule::SlowPath(SlowPath::WhileItHelps),
    Rule::Backoff(Backoff::WaitIffCongested),
    Rule::DeviceCongestion(DeviceCongestion::Never),
    Rule::DirectPause(DirectPause::None),
    Rule::ListDrain(ListDrain::Workers),
    Rule::Timers(Timers::Behind),
    Rule::ReserveThrottle(ReserveThrottle::Waits),
    Rule::KswapdDone(KswapdDone::SomeZone),
    Rule::KswapdSleep(KswapdSleep::Dozes),
    Rule::FileBalance(FileBalance::ByMemorySize),
    Rule::SparedScan(SparedScan::Dropped),
    Rule::SmallScans(SmallScans::Made),
    Rule::ScanStop(ScanStop::InProportion),
    Rule::Refaults(Refaults::Shadows),
    Rule::SlabPressure(SlabPressure::ByPriority),
    Rule::SlabFloor(SlabFloor::Batch),
    Rule::DirtyPause(DirtyPause::Sleeps),
    Rule::Compaction(Compaction::On),
    Rule::HugePages(HugePages::On),
    Rule::Cgroups(Cgroups::V2),
    Rule::CgroupWriteback(CgroupWriteback::OwnShare),
    Rule::SyncSwap(SyncSwap::Bypassed),
    Rule::SwapReadahead(SwapReadahead::Mapping),
    Rule::SlotCache(SlotCache::PerCpu),
    Rule::HugeSwap(HugeSwap::Whole),
    Rule::LazyFree(LazyFree::Heeded),
]);

const RULES_53: Rules = RULES_419.edited(&[
    Rule::Spread(Spread::Dma32),
    Rule::SpreadRetry(SpreadRetry::StartsOver),
    Rule::CompactSearch(CompactSearch::Any),
    Rule::WatermarkBoost(WatermarkBoost::Merged),
    Rule::SlabFloor(SlabFloor::None),
]);

const RULES_54: Rules = RULES_53.edited(&[
    Rule::HighPause(HighPause::Once),
    Rule::BoostedSlab(BoostedSlab::Shrunk),
    Rule::ProtectedScan(ProtectedScan::Scaled),
    Rule::CompactRetry(CompactRetry::Harder),
    Rule::FirstCompaction(FirstCompaction::NotRun),
    Rule::ColdAdvice(ColdAdvice::Heeded),
]);

const RULES_55: Rules = RULES_54.edited(&[
    Rule::Aging(Aging::Root),
    Rule::MemcgWalk(MemcgWalk::Full),
    Rule::WriteFault(WriteFault::TriedAgain),
]);

const RULES_57: Rules = RULES_55.edited(&[
    Rule::SiblingShares(SiblingShares::ByClaim),
    Rule::BoostedZones(BoostedZones::FourPageblocks),
    Rule::BufferCredit(BufferCredit::Reclaimer),
]);

const RULES_510: Rules = RULES_57.edited(&[
    Rule::StatFreshness(StatFreshness::Batched),
    Rule::ProactiveCompaction(ProactiveCompaction::Uncounted),
    Rule::EvictionAge(EvictionAge::Target),
    Rule::ActivationAge(ActivationAge::Scans),
    Rule::ReadaheadReclaim(ReadaheadReclaim::SparesFilesystems),
    Rule::AnonStart(AnonStart::Inactive),
    Rule::AtomicMark(AtomicMark::Unboosted),
    Rule::InodeReclaim(InodeReclaim::PassesBy),
    Rule::InodeCluster(InodeCluster::Pinned),
    Rule::ObjectCharge(ObjectCharge::ByObject),
    Rule::LruCost(LruCost::Io),
    Rule::SwappinessRange(SwappinessRange::UpTo200),
    Rule::SwapHigh(SwapHigh::Sleep),
    Rule::HighPause(HighPause::Insistent),
    Rule::ReclaimCounts(ReclaimCounts::Global),
]);

const RULES_61: Rules = RULES_510.edited(&[
    Rule::ListDrain(ListDrain::Caller),
    Rule::WriteFault(WriteFault::Completed),
    Rule::CompactSearch(CompactSearch::UpperHalf),
    Rule::WatermarkScaleRange(WatermarkScaleRange::UpTo3000),
    Rule::HighOvercharge(HighOvercharge::AtOnce),
    Rule::ProtectedScan(ProtectedScan::ScaledAndSkipped),
    Rule::DeferredSlab(DeferredSlab::ByPriority),
    Rule::SlabDebt(SlabDebt::PerCgroup),
    Rule::PcpGeneration(PcpGeneration::HighOrder),
    Rule::ReadaheadFolios(ReadaheadFolios::Large),
    Rule::ReadaheadPosition(ReadaheadPosition::EndOfBatch),
    Rule::StatFreshness(StatFreshness::Threshold),
    Rule::Throttle(Throttle::ReclaimThrottle),
    Rule::InodeLru(InodeLru::WithoutPages),
    Rule::LogVectors(LogVectors::TriesFirst),
    Rule::OomReaper(OomReaper::TakesLocked),
    Rule::QuotaRest(QuotaRest::Dropped),
    Rule::ProactiveReclaim(ProactiveReclaim::Whole),
    Rule::GenForm(GenForm::First),
    Rule::GenTiers(GenTiers::Protect),
    Rule::GenTypes(GenTypes::ByRefaults),
    Rule::GenTables(GenTables::Walked),
    Rule::GenFilter(GenFilter::Dense),
    Rule::GenAround(GenAround::Entries),
    Rule::Zswap(Zswap::OneList),
]);

const RULES_612: Rules = RULES_61.edited(&[
    Rule::ProactiveCompaction(ProactiveCompaction::Counted),
    Rule::StatFreshness(StatFreshness::Periodic),
    Rule::ReadaheadMiss(ReadaheadMiss::LooksBack),
    Rule::ReadaheadGap(ReadaheadGap::Beyond),
    Rule::ReadaheadPosition(ReadaheadPosition::EndOfCall),
    Rule::AdvisedAccess(AdvisedAccess::NeitherCounts),
    Rule::FaultCount(FaultCount::Completed),
    Rule::Writepage(Writepage::Never),
    Rule::MemcgWalk(MemcgWalk::Partial),
    Rule::PcpGeneration(PcpGeneration::AutoSize),
    Rule::FallbackPolicy(FallbackPolicy::ClaimThenSteal),
    Rule::CompactFolios(CompactFolios::Large),
    Rule::CompactSearch(CompactSearch::Counted),
    Rule::HighatomicReserve(HighatomicReserve::LargeZones),
    Rule::ReserveUsers(ReserveUsers::NonBlocking),
    Rule::ReserveCount(ReserveCount::Free),
    Rule::WriteFolios(WriteFolios::Large),
    Rule::SlabCredit(SlabCredit::GlobalOnly),
    Rule::PassMeasure(PassMeasure::ScannedOrFreed),
    Rule::Scheduler(Scheduler::Eevdf),
    Rule::SwapClusters(SwapClusters::Lists),
    Rule::ZeroPages(ZeroPages::Bitmap),
    Rule::ZramRequests(ZramRequests::Counted),
    Rule::SwapShadows(SwapShadows::Shrunk),
    Rule::LruCost(LruCost::IoAndRotations),
    Rule::TrimFailure(TrimFailure::TriesAnon),
    Rule::RefaultSwap(RefaultSwap::OfEviction),
    Rule::ProactiveReclaim(ProactiveReclaim::Quarters),
    Rule::GenForm(GenForm::Settled),
    Rule::GenWalk(GenWalk::Bins),
    Rule::ZspageChain(ZspageChain::UpToEight),
    Rule::Zswap(Zswap::ListPerGroup),
]);

/// Left out of what 7.2 does otherwise than 6.12: the floor of a device's share of the dirty threshold, as shares are
/// (MECHANISMS-510-72 8), the larger reach of unmovable and whole-block compaction (9.2), and that a high-order atomic
/// request does not refill its per-CPU list (1.3).
const RULES_72: Rules = RULES_612.edited(&[
    Rule::FreeObjects(FreeObjects::Sheaves),
    Rule::Preemption(Preemption::Lazy),
    Rule::SlotCache(SlotCache::Off),
    Rule::SwapTurns(SwapTurns::PerCluster),
    Rule::SwapShadows(SwapShadows::InTables),
    Rule::Ext4Folios(Ext4Folios::Large),
    Rule::ReadaheadOrder(ReadaheadOrder::OfFile),
    Rule::RangeReadahead(RangeReadahead::Request4M),
    Rule::CompactGap(CompactGap::Chunk),
    Rule::FirstCompaction(FirstCompaction::Never),
    Rule::ChargeStock(ChargeStock::SevenGroups),
    Rule::RemovedGroup(RemovedGroup::HandsOver),
    Rule::ReclaimCounts(ReclaimCounts::All),
    Rule::BoostFailure(BoostFailure::Forgiven),
    Rule::KswapdHope(KswapdHope::Balanced),
    Rule::ZoneSkips(ZoneSkips::Capped),
    Rule::DefaultReadahead(DefaultReadahead::Rotational),
    Rule::NodeChoice(NodeChoice::SparesKswapd),
    Rule::DefragMode(DefragMode::Sysctl),
    Rule::Writepage(Writepage::Unasked),
    Rule::MappedHits(MappedHits::Wanted),
    Rule::CodeReadahead(CodeReadahead::Forward),
    Rule::GenAccess(GenAccess::Accesses),
    Rule::GenQuota(GenQuota::Once),
    Rule::ProactiveReclaim(ProactiveReclaim::QuartersOrAnon),
    Rule::ProactiveCounts(ProactiveCounts::Proactive),
    Rule::NodeReclaim(NodeReclaim::File),
    Rule::Zswap(Zswap::StoresAll),
]);

const TUNING_612: Tuning = Tuning {
    lru_batch: 31,
    group_cost: GroupCost::LINUX_6_12,
    slab_waste: 2,
    file_caches: FILE_CACHES_612,
    xfs_push_pause: Nanos::ZERO,
    ext4_runs_in_flight: 339,
    ..TUNING_61
};

/// Batches and charges are as in 6.12 (MECHANISMS-510-72 2.7, 4.1).
const TUNING_72: Tuning = Tuning {
    group_cost: GroupCost::LINUX_7_2,
    file_caches: FILE_CACHES_72,
    payers_in_rest: true,
    ..TUNING_612
};

const TUNING_2632: Tuning = Tuning {
    lru_batch: 14,
    pcp_share_max: 128,
    gather_pages_max: 0,
    cpu_partial: CpuPartialUnit::None,
    ..TUNING_5X
};

const TUNING_57: Tuning =
    Tuning { xfs_checkpoint_max: Bytes(32 << 20), file_caches: FILE_CACHES_57, ..TUNING_5X };

const TUNING_510: Tuning = Tuning {
    charge_retries: 16,
    group_cost: GroupCost::LINUX_5_10,
    tree_node_size: 584,
    file_caches: FILE_CACHES_510,
    object_cgroup_overhead: 8,
    min_free_kbytes_max: 262_144,
    large_bios: true,
    ext4_runs_in_flight: 910,
    ..TUNING_57
};

const PRESETS: &[Preset] = &[
    Preset {
        name: "linux-2.6.32",
        help: "Linux 2.6.32 (2009): timed waits in the slow path; no cgroups, no huge pages",
        rules: RULES_2632,
        tuning: TUNING_2632,
    },
    Preset { name: "linux-4.19", help: "Linux 4.19 (2018)", rules: RULES_419, tuning: TUNING_5X },
    Preset {
        name: "linux-4.20-rc1",
        help: "Linux 4.20-rc1 (Nov 2018): what the fragmentation avoidance series was posted for",
        rules: RULES_419,
        tuning: TUNING_5X,
    },
    Preset { name: "linux-5.3", help: "Linux 5.3 (2019)", rules: RULES_53, tuning: TUNING_5X },
    Preset {
        name: "linux-5.4",
        help: "Linux 5.4: 5.3 + shrink-slab-when-boosted + scaled-protection",
        rules: RULES_54,
        tuning: TUNING_5X,
    },
    Preset {
        name: "linux-5.5",
        help: "Linux 5.5: 5.4 + root-aging, without shared-memcg-walk",
        rules: RULES_55,
        tuning: TUNING_5X,
    },
    Preset {
        name: "linux-5.7",
        help: "Linux 5.7 (2020): the shrinker of XFS still writes inodes and waits for them",
        rules: RULES_57,
        tuning: TUNING_57,
    },
    Preset {
        name: "linux-5.10",
        help: "Linux 5.10 (2020), as packaged by Debian 11",
        rules: RULES_510,
        tuning: TUNING_510,
    },
    Preset {
        name: "linux-6.1",
        help: "Linux 6.1 (2022), classic LRU, as packaged by Debian 12; the multi-gen LRU, built there, too, is `+lru-gen`",
        rules: RULES_61,
        tuning: TUNING_61,
    },
    Preset {
        name: "linux-6.12",
        help: "Linux 6.12 (2024), classic LRU, as packaged by Debian 13; the multi-gen LRU, built there, too, is `+lru-gen`",
        rules: RULES_612,
        tuning: TUNING_612,
    },
    Preset {
        name: "linux-7.2",
        help: "Linux 7.2 (2026), classic LRU, as packaged by Debian 14 but for that: it starts with the multi-gen LRU, `+lru-gen`",
        rules: RULES_72,
        tuning: TUNING_72,
    },
];

/// The versions that are modelled, oldest first.
pub(super) fn presets() -> impl Iterator<Item = &'static Preset> {
    PRESETS.iter()
}

impl Version {
    /// The same version, built so.
    #[must_use]
    pub fn built_with(mut self, slab: &SlabBuild) -> Self {
        self.tuning.file_caches = slab.caches.unwrap_or(self.tuning.file_caches);
        if slab.uniprocessor {
            self.tuning.cpu_partial = CpuPartialUnit::None;
        }
        self
    }

    /// The newest version that is maintained for long: what a run is of that names none.
    pub const NEWEST_LONG_TERM: &str = "linux-6.12";

    /// Names and one-line descriptions of the versions that are modelled, oldest first.
    pub fn presets() -> impl Iterator<Item = (&'static str, &'static str)> {
        PRESETS.iter().map(|preset| (preset.name, preset.help))
    }
}
