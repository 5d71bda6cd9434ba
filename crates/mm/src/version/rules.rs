//! Decisions that Linux made differently at different times: one closed enum each, and [`Rules`],
//! which holds one answer to every one of them.
//!
//! A kernel is resolved to its rules once, when it is named; mechanisms compare a field. Numbers that
//! changed in passing are [`crate::version::presets::Tuning`]; names on the command line are
//! [`crate::version::feature::Feature`]s, each an edit of one rule. A new rule is an entry below and an
//! answer in the oldest preset; a test walks every variant and fails where nothing observable
//! depends on it.

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

    /// Which cgroup counters reclaim looks at (MECHANISMS-6X 4.3).
    stat_freshness: StatFreshness = "when cgroup statistics are flushed" {
        /// Always exact (before 5.16: counters that are at most a few pages off).
        Live,
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

    /// Which minimum mark an order-0 atomic request must pass (MECHANISMS 2.8).
    atomic_mark: AtomicMark = "the mark of atomic requests" {
        /// With the boost.
        Boosted,
        /// Without it at the second test (5.9).
        Unboosted,
    }

    /// Which zones keep a reserve for high-order atomic requests (MECHANISMS-6X 0 row 10).
    highatomic: HighatomicReserve = "the highatomic reserve" {
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
        /// It only marks them.
        Never,
        /// It writes them.
        Kswapd,
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
