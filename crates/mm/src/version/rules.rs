//! The rules of a kernel: one answer to each of the decisions that Linux made differently at different times.
//!
//! A kernel is resolved to its rules once, when it is named; mechanisms compare a field. Numbers that changed in
//! passing are [`crate::version::presets::Tuning`]; names on the command line [`crate::version::feature::Feature`]s,
//! each an edit of one rule. A new rule is a decision in `decisions`, a line in the table below and an answer in the
//! oldest preset; a test walks every variant and fails where nothing observable depends on it.

pub use crate::version::decisions::alloc::*;
pub use crate::version::decisions::cgroups::*;
pub use crate::version::decisions::files::*;
pub use crate::version::decisions::generations::*;
pub use crate::version::decisions::reclaim::*;
pub use crate::version::decisions::slab::*;
pub use crate::version::decisions::swap::*;

macro_rules! rules {
    ($($field:ident: $name:ident,)*) => {
        /// One answer to every decision.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub struct Rules {
            $(#[doc = concat!("See [`", stringify!($name), "`].")] pub $field: $name,)*
        }

        /// One answer to one decision: an edit of [`Rules`].
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Rule {
            $(#[doc = concat!("An answer of [`", stringify!($name), "`].")] $name($name),)*
        }

        /// How many answers there are to all decisions together.
        const ANSWERS: usize = 0 $(+ $name::ANSWERS.len())*;

        const fn all() -> [Rule; ANSWERS] {
            let mut all = [Rule::Aging(Aging::PerCgroup); ANSWERS];
            let mut next = 0;
            $(
                let mut index = 0;
                while index < $name::ANSWERS.len() {
                    all[next] = Rule::$name($name::ANSWERS[index]);
                    next += 1;
                    index += 1;
                }
            )*
            assert!(next == ANSWERS);
            all
        }

        impl Rule {
            /// Every answer to every decision, in the order of the table.
            pub const ALL: &'static [Self] = &all();

            /// What is decided, in words: `the watermark boost`.
            pub const fn decision(self) -> &'static str {
                match self { $(Self::$name(_) => $name::DECISION,)* }
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
    aging: Aging,
    eviction_age: EvictionAge,
    activation_age: ActivationAge,
    memcg_walk: MemcgWalk,
    stat_freshness: StatFreshness,
    sibling_shares: SiblingShares,
    protected_scan: ProtectedScan,
    slab_credit: SlabCredit,
    deferred_slab: DeferredSlab,
    slab_debt: SlabDebt,
    boosted_slab: BoostedSlab,
    spread: Spread,
    spread_retry: SpreadRetry,
    watermark_boost: WatermarkBoost,
    boosted_zones: BoostedZones,
    fragment_stall: FragmentStall,
    fallback: FallbackPolicy,
    pcp: PcpGeneration,
    oom_reaper: OomReaper,
    atomic_mark: AtomicMark,
    highatomic: HighatomicReserve,
    reserve_users: ReserveUsers,
    reserve_count: ReserveCount,
    compact_folios: CompactFolios,
    compact_search: CompactSearch,
    proactive_compaction: ProactiveCompaction,
    compact_retry: CompactRetry,
    first_compaction: FirstCompaction,
    readahead_folios: ReadaheadFolios,
    write_folios: WriteFolios,
    write_access: WriteAccess,
    anon_start: AnonStart,
    mapped_references: MappedReferences,
    advised_access: AdvisedAccess,
    fault_around: FaultAround,
    fault_count: FaultCount,
    write_fault: WriteFault,
    mapped_hits: MappedHits,
    code_readahead: CodeReadahead,
    inode_lru: InodeLru,
    throttle: Throttle,
    pass_measure: PassMeasure,
    writepage: Writepage,
    pcp_lists: PcpLists,
    cold_order: ColdOrder,
    pcp_fallback: PcpFallback,
    cold_pages: ColdPages,
    pcp_reserve: PcpReserve,
    likely_merges: LikelyMerges,
    readahead_effort: ReadaheadEffort,
    readahead_reclaim: ReadaheadReclaim,
    readahead_history: ReadaheadHistory,
    range_readahead: RangeReadahead,
    readahead_miss: ReadaheadMiss,
    readahead_gap: ReadaheadGap,
    readahead_position: ReadaheadPosition,
    dirty_spread: DirtySpread,
    watermark_test: WatermarkTest,
    mark_gap: MarkGap,
    failed_reclaim: FailedReclaim,
    slow_path: SlowPath,
    backoff: Backoff,
    device_congestion: DeviceCongestion,
    direct_pause: DirectPause,
    list_drain: ListDrain,
    timers: Timers,
    reserve_throttle: ReserveThrottle,
    kswapd_done: KswapdDone,
    kswapd_sleep: KswapdSleep,
    file_balance: FileBalance,
    spared_scan: SparedScan,
    small_scans: SmallScans,
    scan_stop: ScanStop,
    refaults: Refaults,
    slab_pressure: SlabPressure,
    slab_floor: SlabFloor,
    dirty_pause: DirtyPause,
    compaction: Compaction,
    huge_pages: HugePages,
    scheduler: Scheduler,
    preemption: Preemption,
    inode_reclaim: InodeReclaim,
    inode_cluster: InodeCluster,
    buffer_credit: BufferCredit,
    log_vectors: LogVectors,
    object_charge: ObjectCharge,
    free_objects: FreeObjects,
    super_block_batch: SuperBlockBatch,
    boost_effort: BoostEffort,
    cgroups: Cgroups,
    sync_swap: SyncSwap,
    swap_readahead: SwapReadahead,
    slot_cache: SlotCache,
    swap_clusters: SwapClusters,
    swap_turns: SwapTurns,
    zero_pages: ZeroPages,
    zram_requests: ZramRequests,
    huge_swap: HugeSwap,
    swap_shadows: SwapShadows,
    lazy_free: LazyFree,
    cold_advice: ColdAdvice,
    zspage_chain: ZspageChain,
    swap_high: SwapHigh,
    high_pause: HighPause,
    high_overcharge: HighOvercharge,
    cgroup_writeback: CgroupWriteback,
    zswap: Zswap,
    ext4_folios: Ext4Folios,
    readahead_order: ReadaheadOrder,
    compact_gap: CompactGap,
    charge_stock: ChargeStock,
    removed_group: RemovedGroup,
    reclaim_counts: ReclaimCounts,
    boost_failure: BoostFailure,
    kswapd_hope: KswapdHope,
    zone_skips: ZoneSkips,
    default_readahead: DefaultReadahead,
    node_choice: NodeChoice,
    defrag_mode: DefragMode,
    lru_cost: LruCost,
    swappiness_range: SwappinessRange,
    watermark_scale_range: WatermarkScaleRange,
    quota_rest: QuotaRest,
    trim_failure: TrimFailure,
    refault_swap: RefaultSwap,
    proactive_reclaim: ProactiveReclaim,
    proactive_counts: ProactiveCounts,
    node_reclaim: NodeReclaim,
    lru: LruKind,
    gen_form: GenForm,
    gen_walk: GenWalk,
    gen_access: GenAccess,
    gen_quota: GenQuota,
    gen_tiers: GenTiers,
    gen_types: GenTypes,
    gen_tables: GenTables,
    gen_filter: GenFilter,
    gen_around: GenAround,
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
