//! Decisions of The page allocator, its per-CPU lists, watermarks, the slow path, OOM, compaction and huge pages.

use crate::version::decision::decisions;

decisions! {
    /// Whether a request that prefers the Normal zone goes to DMA32 before it mixes mobility types
    /// (5.0, MECHANISMS 2.6).
    Spread = "spreading to the DMA32 zone" {
        /// Types are mixed at once.
        Off,
        /// DMA32 is tried first.
        Dma32,
    }

    /// What a walk over the zones does that kept types apart in vain (MECHANISMS 2.6).
    SpreadRetry = "where a walk goes on that kept types apart in vain" {
        /// Goes on where it ended, as the patch was posted: on a machine of one node such a request
        /// takes the slow path.
        GoesOn,
        /// Starts over (5.1).
        StartsOver,
    }

    /// What a fragmenting fallback does to the zone's watermarks (MECHANISMS 2.8).
    WatermarkBoost = "the watermark boost" {
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
    BoostedZones = "which zones are boosted" {
        /// All.
        All,
        /// Those of four pageblocks and more (5.7).
        FourPageblocks,
    }

    /// Whether a movable request that would fragment badly waits for kswapd first (source 4, MECHANISMS
    /// 2.9), by posting; never merged.
    FragmentStall = "the stall on fragmentation" {
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
    FallbackPolicy = "the fallback to other mobility types" {
        /// Always the largest block of another type; the free pages of its pageblock go along if the block
        /// is large or the request reclaimable (2.6.32; MECHANISMS 2.4).
        LargestFirst,
        /// The largest block of another type, and its pageblock if half of it suits.
        StealAndClaim,
        /// A pageblock whole, or else the smallest block, whose rest stays what it was (6.12).
        ClaimThenSteal,
    }

    /// Which orders the per-CPU lists hold and how large they are (MECHANISMS 3.1, MECHANISMS-6X 1.4).
    PcpGeneration = "the per-CPU page lists" {
        /// Order 0 only, high = 6 * batch.
        Classic,
        /// Orders 0 to 3 and huge pages, high from the low watermark (5.13).
        HighOrder,
        /// The same orders; high sizes itself, refills double (6.7).
        AutoSize,
    }

    /// What the OOM reaper takes of a victim before that ends (`__oom_reap_task_mm`; MECHANISMS 13.1).
    OomReaper = "what the OOM reaper takes" {
        /// All but what is locked by `mlock`, which comes free when the victim ends (up to 5.17).
        SparesLocked,
        /// That, too (5.18).
        TakesLocked,
    }

    /// Which minimum mark an order-0 atomic request must pass (MECHANISMS 2.8).
    AtomicMark = "the mark of atomic requests" {
        /// With the boost.
        Boosted,
        /// Without it at the second test (5.9).
        Unboosted,
    }

    /// Which zones keep a reserve for high-order atomic requests (MECHANISMS-6X 0 row 10).
    HighatomicReserve = "the highatomic reserve" {
        /// All, as a few pageblocks set aside at boot that every request may use last (`MIGRATE_RESERVE`,
        /// up to 4.3; MECHANISMS 2.4).
        Blocks,
        /// All.
        AllZones,
        /// Not those of which 1 % is less than a pageblock (6.12).
        LargeZones,
    }

    /// Which requests of more than a page may use the highatomic reserve ("mm/page_alloc: give GFP_ATOMIC and
    /// non-blocking allocations access to reserves", 6.3).
    ReserveUsers = "who may use the highatomic reserve" {
        /// Those that say that they are atomic.
        Atomic,
        /// All that may not wait (6.3).
        NonBlocking,
    }

    /// What of the highatomic reserve is taken off the free pages that others find ("mm/page_alloc: keep track of
    /// free highatomic", 6.12).
    ReserveCount = "what others miss of the highatomic reserve" {
        /// All pages of its pageblocks, used ones, too.
        Whole,
        /// Those that are free (6.12).
        Free,
    }

    /// What compaction moves (MECHANISMS-6X 9.2).
    CompactFolios = "what compaction moves" {
        /// Single pages.
        Single,
        /// Folios smaller than the block it works for, too; free targets by order (6.12).
        Large,
    }

    /// Whether compaction searches the lists of free blocks before it scans (5.1), which also finishes a pageblock of
    /// which it has moved pages, and looks at ever fewer frames of pageblocks that have nothing free.
    ///
    /// Measured by `mm_compaction_isolate_freepages` and `_migratepages` of 5.10.46, 6.1.176, 6.12.113 and 7.2.7.
    CompactSearch = "how compaction finds pages" {
        /// Scans pageblock after pageblock.
        None,
        /// Searches; a run that starts goes to the highest free block, wherever that is. A pageblock that the search
        /// found is marked, and the scan passes over it (5.1).
        Any,
        /// Goes to the highest free block only within the upper half (6.1, or somewhat before).
        UpperHalf,
        /// Scans what the search found; frames of free blocks and of large folios count one by one (6.3 and 6.4).
        Counted,
    }

    /// What kcompactd does that nobody woke it for ([`crate::compact::score`]; 5.9, "mm: proactive compaction"). With
    /// it, it looks each half second, also for requests: who finds that no zone can be compacted leaves one and does
    /// not wake it.
    ///
    /// Measured by `mm_compaction_kcompactd_wake` of 5.10.46 to 7.2.7: 0.51 s after the last one, and nobody woke it;
    /// by `compact_migrate_scanned` of 6.1 and 6.12 with and without `vm.compaction_proactiveness=0`.
    ProactiveCompaction = "what kcompactd does by itself" {
        /// Nothing.
        None,
        /// Compacts a fragmented node, which `compact_daemon_*_scanned` leaves out (5.9).
        Uncounted,
        /// Compacts it, and counts that as its other work (after 6.1, up to 6.12).
        Counted,
    }

    /// What a request does after compaction withdrew, that is, was put off, saw a part of a zone only or
    /// had no targets, while reclaim makes progress (`should_compact_retry`, MECHANISMS 4.4; 5.4,
    /// "mm, compaction: raise compaction priority after it withdrawns").
    CompactRetry = "retries after compaction withdrew" {
        /// Repeats it as it is, as long as some zone could be compacted.
        AsItWas,
        /// Compacts harder, and ends once that is not possible (5.4).
        Harder,
    }

    /// When a costly request that wants no retries fails after its first compaction, before any reclaim
    /// (MECHANISMS 4.4; 5.4, "mm, page_alloc: avoid expensive reclaim when
    /// compaction may not succeed"). Left out: 5.4 asks for whole pageblocks, with retries or without.
    FirstCompaction = "requests that end with their first compaction" {
        /// When compaction is put off.
        PutOff,
        /// Also when there is too little memory for it (5.4).
        NotRun,
        /// None: reclaim comes in any case (7.0, MECHANISMS-510-72 5.1).
        Never,
    }

    /// How the per-CPU lists keep mobility types apart while they hold single pages (MECHANISMS 3.4; source
    /// 1).
    PcpLists = "mobility types on the per-CPU lists" {
        /// One list for all, searched for a page of the right type (up to 2.6.31).
        Single,
        /// One list for each type ("page-allocator: split per-cpu list into one-list-per-migrate-type",
        /// 2.6.32).
        PerType,
    }

    /// How a refill lines up its pages for a cold request, which takes them from the tail (MECHANISMS 3.4;
    /// source 1).
    ColdOrder = "the order of a cold refill" {
        /// As for a hot one: from the tail, frame numbers fall.
        Falling,
        /// The other way round: from the tail, frame numbers rise ("page-allocator: preserve PFN ordering
        /// when `__GFP_COLD` is set", 2.6.31).
        Rising,
    }

    /// Whether a request takes a page of another type from its CPU's lists before it refills from the zone
    /// (source 1; MECHANISMS 3.4). Never merged.
    PcpFallback = "pages of other types on the per-CPU lists" {
        /// They are left there.
        Left,
        /// They are taken, in the order of the fallback table.
        Taken,
    }

    /// Whether pages count as hot or cold in the cache of a CPU (MECHANISMS 3.2, 3.3).
    ColdPages = "pages that are cold in the cache" {
        /// Readahead takes cold pages, from the tail of the per-CPU list, and reclaim frees there (up to 4.14).
        Tail,
        /// All pages are alike (4.15).
        Alike,
    }

    /// Where a bulk free puts pages of the blocks set aside at boot (MECHANISMS 3.4). On a single list they
    /// keep their type.
    PcpReserve = "reserved pages on the per-CPU lists" {
        /// With those of the list that they were on, the movable ones: the reserve leaks (2.6.32, a bug of
        /// the lists by type).
        Leaks,
        /// Where they came from (a7016235, 2.6.33).
        Stays,
    }

    /// Where a block goes whose buddy is likely to come free, too (MECHANISMS 2.3).
    LikelyMerges = "free blocks that are likely to grow" {
        /// Where all go: the next request takes it (up to 2.6.34).
        Head,
        /// The tail of its list, to be taken last (2.6.35).
        Tail,
    }

    /// How a watermark is tested for a block of several pages (MECHANISMS 1.7).
    WatermarkTest = "the watermark test of large blocks" {
        /// At each smaller order its free pages do not count, and the mark is halved (up to 4.3).
        HalvedByOrder,
        /// One free block that is large enough will do (4.4).
        AnyBlock,
    }

    /// How far the marks of a zone are apart (MECHANISMS 1.4).
    MarkGap = "the distance between watermarks" {
        /// A quarter of the min mark (up to 4.5).
        QuarterOfMin,
        /// The same, or `watermark_scale_factor` of the zone, if that is more (4.6).
        Scaled,
    }

    /// What a request does whose reclaim freed pages that it cannot have (MECHANISMS 3.6).
    FailedReclaim = "reclaim that freed pages for others" {
        /// Goes on. All lists are drained only for blocks of several pages, before they are tried for (up
        /// to 2.6.35).
        GoesOn,
        /// Drains the per-CPU lists of all CPUs and tries once more (2.6.36).
        Drains,
    }

    /// Who takes the pages off per-CPU lists, where all are drained.
    ListDrain = "draining of all per-CPU lists" {
        /// Who wants it (up to 4.10, and since 5.19).
        Caller,
        /// A worker on each CPU, for which the caller waits (4.11 to 5.18).
        Workers,
    }

    /// When a timeout ends that was set for some ticks (`timer_start` and `timer_expire_entry` in guests of 5.10 and
    /// 6.12: 1 tick lasted 1.0 to 2.0, 50 lasted 51.0, 201 lasted 204.4 to 207.1).
    Timers = "end of timeouts" {
        /// At the edge of the last one: they last up to a tick less (up to 4.7).
        AtEdge,
        /// Behind it, and long ones behind the next multiple of 8 ticks, 64, and so on (the timer wheel of 4.8).
        Behind,
    }

    /// When a request in the slow path is repeated (MECHANISMS 4.1, 4.4).
    SlowPath = "rounds of the slow path" {
        /// For ever where the block is small, with a pause after each round (up to 4.6).
        Paused,
        /// As long as reclaim or compaction can still help (4.7).
        WhileItHelps,
    }

    /// Whether memory can be compacted (MECHANISMS 12).
    Compaction = "compaction" {
        /// It cannot.
        Off,
        /// By requests, and since 4.6 by kcompactd (2.6.35).
        On,
    }

    /// Whether anonymous memory comes in huge pages (MECHANISMS 12).
    HugePages = "transparent huge pages" {
        /// It does not.
        Off,
        /// It does (2.6.38).
        On,
    }

    /// How many pages compaction needs above the mark (`compact_gap`, MECHANISMS 12.1, MECHANISMS-510-72 9.2).
    CompactGap = "the room that compaction needs" {
        /// Twice the block that it makes.
        TwiceBlock,
        /// The same, but no more than a chunk of 32; above the mark that the request must leave, too (7.2).
        Chunk,
    }

    /// Which node a request tries first (`get_page_from_freelist`, MECHANISMS-510-72 1.6).
    NodeChoice = "the node that a request tries first" {
        /// The nearest.
        Nearest,
        /// The nearest whose kswapd sleeps; if none of those has a page, the nearest (6.18).
        SparesKswapd,
    }

    /// Whether pageblocks can be kept whole by `vm.defrag_mode` (MECHANISMS-510-72 1.7).
    DefragMode = "vm.defrag_mode" {
        /// There is no such setting.
        None,
        /// There is (6.15).
        Sysctl,
    }
}
