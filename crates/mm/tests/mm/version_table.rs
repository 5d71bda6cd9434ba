//! Which version decides what: every answer to every decision with the versions that give it, and the feature
//! that stands for it.
//!
//! Facts of MECHANISMS and MECHANISMS-6X, and no other place where they can be seen at once. What an answer
//! does is told by the tests of its mechanism.

use std::fmt::Write;

use pagetide_mm::Version;
use pagetide_mm::version::feature::Feature;
use pagetide_mm::version::rules::Rule;

/// The decisions in order, a line for each answer: `Enum(Answer): versions +feature`.
fn table() -> String {
    let versions: Vec<Version> =
        Version::presets().map(|(name, _)| Version::parse(name).expect("a preset")).collect();
    let mut table = String::new();
    let mut decision = "";
    for &rule in Rule::ALL {
        if rule.decision() != decision {
            decision = rule.decision();
            let _ = writeln!(table, "{decision}");
        }
        let _ = write!(table, "  {rule:?}:");
        for version in versions.iter().filter(|version| version.rules.has(rule)) {
            let _ = write!(table, " {}", version.name.trim_start_matches("linux-"));
        }
        let feature = Feature::giving(rule).map(|feature| format!(" +{feature}"));
        let _ = writeln!(table, "{}", feature.unwrap_or_default());
    }
    table
}

#[test]
fn every_version_decides_as_its_sources_say() {
    insta::assert_snapshot!(table(), @"
    the balance of active and inactive lists
      Aging(PerCgroup): 2.6.32 4.19 4.20-rc1 5.3 5.4
      Aging(Root): 5.5 5.7 5.10 6.1 6.12 7.2 +root-aging
    which cgroup an eviction ages
      EvictionAge(Owner): 2.6.32 4.19 4.20-rc1 5.3 5.4 5.5 5.7
      EvictionAge(Target): 5.10 6.1 6.12 7.2 +eviction-ages-target
    which activations age the lists
      ActivationAge(Accesses): 2.6.32 4.19 4.20-rc1 5.3 5.4 5.5 5.7
      ActivationAge(Scans): 5.10 6.1 6.12 7.2
    the walk over the cgroup tree
      MemcgWalk(Full): 5.5 5.7 5.10 6.1
      MemcgWalk(Shared): 2.6.32 4.19 4.20-rc1 5.3 5.4 +shared-memcg-walk
      MemcgWalk(Partial): 6.12 7.2 +partial-memcg-walk
    when cgroup statistics are flushed
      StatFreshness(Live): 2.6.32 4.19 4.20-rc1 5.3 5.4 5.5 5.7
      StatFreshness(Batched): 5.10
      StatFreshness(Threshold): 6.1 +memcg-stat-threshold
      StatFreshness(Periodic): 6.12 7.2 +memcg-stat-periodic
    how siblings share memory.low
      SiblingShares(ByUse): 2.6.32 4.19 4.20-rc1 5.3 5.4 5.5
      SiblingShares(ByClaim): 5.7 5.10 6.1 6.12 7.2 +sibling-protection
    the scan of cgroups above their protection
      ProtectedScan(Whole): 2.6.32 4.19 4.20-rc1 5.3
      ProtectedScan(Scaled): 5.4 5.5 5.7 5.10 +scaled-protection
      ProtectedScan(ScaledAndSkipped): 6.1 6.12 7.2 +scaled-protection-skips
    who is credited with freed slab pages
      SlabCredit(AllReclaim): 2.6.32 4.19 4.20-rc1 5.3 5.4 5.5 5.7 5.10 6.1
      SlabCredit(GlobalOnly): 6.12 7.2 +slab-credit-global-only
    how deferred slab scanning is paid back
      DeferredSlab(AtOnce): 2.6.32 4.19 4.20-rc1 5.3 5.4 5.5 5.7 5.10
      DeferredSlab(ByPriority): 6.1 6.12 7.2 +deferred-slab-decay
    who owes deferred slab scanning
      SlabDebt(PerNode): 2.6.32 4.19 4.20-rc1 5.3 5.4 5.5 5.7 5.10
      SlabDebt(PerCgroup): 6.1 6.12 7.2
    slab during a watermark boost
      BoostedSlab(Spared): 2.6.32 4.19 4.20-rc1 5.3
      BoostedSlab(Shrunk): 5.4 5.5 5.7 5.10 6.1 6.12 7.2 +shrink-slab-when-boosted
    spreading to the DMA32 zone
      Spread(Off): 2.6.32 4.19 4.20-rc1
      Spread(Dma32): 5.3 5.4 5.5 5.7 5.10 6.1 6.12 7.2 +nofragment
    where a walk goes on that kept types apart in vain
      SpreadRetry(GoesOn): 2.6.32 4.19 4.20-rc1
      SpreadRetry(StartsOver): 5.3 5.4 5.5 5.7 5.10 6.1 6.12 7.2
    the watermark boost
      WatermarkBoost(Off): 2.6.32 4.19 4.20-rc1
      WatermarkBoost(V2): +watermark-boost-v2
      WatermarkBoost(Merged): 5.3 5.4 5.5 5.7 5.10 6.1 6.12 7.2 +watermark-boost
    which zones are boosted
      BoostedZones(All): 2.6.32 4.19 4.20-rc1 5.3 5.4 5.5
      BoostedZones(FourPageblocks): 5.7 5.10 6.1 6.12 7.2
    the stall on fragmentation
      FragmentStall(Off): 2.6.32 4.19 4.20-rc1 5.3 5.4 5.5 5.7 5.10 6.1 6.12 7.2
      FragmentStall(V1): +fragment-stall-v1
      FragmentStall(V2): +fragment-stall
      FragmentStall(V3): +fragment-stall-v3
      FragmentStall(V5): +fragment-stall-v5
    the fallback to other mobility types
      FallbackPolicy(LargestFirst): 2.6.32
      FallbackPolicy(StealAndClaim): 4.19 4.20-rc1 5.3 5.4 5.5 5.7 5.10 6.1
      FallbackPolicy(ClaimThenSteal): 6.12 7.2 +claim-then-steal
    the per-CPU page lists
      PcpGeneration(Classic): 2.6.32 4.19 4.20-rc1 5.3 5.4 5.5 5.7 5.10
      PcpGeneration(HighOrder): 6.1 +pcp-high-order
      PcpGeneration(AutoSize): 6.12 7.2 +pcp-auto-size
    what the OOM reaper takes
      OomReaper(SparesLocked): 2.6.32 4.19 4.20-rc1 5.3 5.4 5.5 5.7 5.10
      OomReaper(TakesLocked): 6.1 6.12 7.2 +oom-reaps-locked
    the mark of atomic requests
      AtomicMark(Boosted): 2.6.32 4.19 4.20-rc1 5.3 5.4 5.5 5.7
      AtomicMark(Unboosted): 5.10 6.1 6.12 7.2 +atomic-ignores-boost
    the highatomic reserve
      HighatomicReserve(Blocks): 2.6.32
      HighatomicReserve(AllZones): 4.19 4.20-rc1 5.3 5.4 5.5 5.7 5.10 6.1
      HighatomicReserve(LargeZones): 6.12 7.2 +small-zone-no-highatomic
    who may use the highatomic reserve
      ReserveUsers(Atomic): 2.6.32 4.19 4.20-rc1 5.3 5.4 5.5 5.7 5.10 6.1
      ReserveUsers(NonBlocking): 6.12 7.2
    what others miss of the highatomic reserve
      ReserveCount(Whole): 2.6.32 4.19 4.20-rc1 5.3 5.4 5.5 5.7 5.10 6.1
      ReserveCount(Free): 6.12 7.2
    what compaction moves
      CompactFolios(Single): 2.6.32 4.19 4.20-rc1 5.3 5.4 5.5 5.7 5.10 6.1
      CompactFolios(Large): 6.12 7.2 +compact-large-folios
    how compaction finds pages
      CompactSearch(None): 2.6.32 4.19 4.20-rc1
      CompactSearch(Any): 5.3 5.4 5.5 5.7 5.10
      CompactSearch(UpperHalf): 6.1
      CompactSearch(Counted): 6.12 7.2
    what kcompactd does by itself
      ProactiveCompaction(None): 2.6.32 4.19 4.20-rc1 5.3 5.4 5.5 5.7
      ProactiveCompaction(Uncounted): 5.10 6.1
      ProactiveCompaction(Counted): 6.12 7.2
    retries after compaction withdrew
      CompactRetry(AsItWas): 2.6.32 4.19 4.20-rc1 5.3
      CompactRetry(Harder): 5.4 5.5 5.7 5.10 6.1 6.12 7.2
    requests that end with their first compaction
      FirstCompaction(PutOff): 2.6.32 4.19 4.20-rc1 5.3
      FirstCompaction(NotRun): 5.4 5.5 5.7 5.10 6.1 6.12
      FirstCompaction(Never): 7.2 +compact-before-reclaim-loop
    folios of readahead
      ReadaheadFolios(Single): 2.6.32 4.19 4.20-rc1 5.3 5.4 5.5 5.7 5.10
      ReadaheadFolios(Large): 6.1 6.12 7.2 +large-folio-readahead
    folios of buffered writes
      WriteFolios(Single): 2.6.32 4.19 4.20-rc1 5.3 5.4 5.5 5.7 5.10 6.1
      WriteFolios(Large): 6.12 7.2 +large-folio-write
    what a buffered write is to its page
      WriteAccess(None): 4.19 4.20-rc1 5.3 5.4 5.5 5.7 5.10 6.1 6.12 7.2
      WriteAccess(Access): 2.6.32 +writes-are-accesses
    where anonymous pages start
      AnonStart(Active): 2.6.32 4.19 4.20-rc1 5.3 5.4 5.5 5.7
      AnonStart(Inactive): 5.10 6.1 6.12 7.2 +anon-starts-inactive
    accesses through page tables
      MappedReferences(FirstActivates): 2.6.32
      MappedReferences(SecondActivates): 4.19 4.20-rc1 5.3 5.4 5.5 5.7 5.10 6.1 6.12 7.2 +mapped-twice-activates
    accesses to a mapping with advice
      AdvisedAccess(RandomCounts): 2.6.32 4.19 4.20-rc1 5.3 5.4 5.5 5.7 5.10 6.1
      AdvisedAccess(NeitherCounts): 6.12 7.2 +random-advice-uncounted
    pages mapped around a fault
      FaultAround(None): 2.6.32
      FaultAround(Sixteen): 4.19 4.20-rc1 5.3 5.4 5.5 5.7 5.10 6.1 6.12 7.2 +fault-around
    what counts as a fault
      FaultCount(Tries): 2.6.32 4.19 4.20-rc1 5.3 5.4 5.5 5.7 5.10 6.1
      FaultCount(Completed): 6.12 7.2 +faults-count-once
    how a write fault on a shared mapping ends
      WriteFault(Holding): 2.6.32 4.19 4.20-rc1 5.3 5.4
      WriteFault(TriedAgain): 5.5 5.7 5.10
      WriteFault(Completed): 6.1 6.12 7.2
    pages that a fault around counts as found
      MappedHits(Around): 2.6.32 4.19 4.20-rc1 5.3 5.4 5.5 5.7 5.10 6.1 6.12
      MappedHits(Wanted): 7.2 +one-mapped-hit
    readahead of faults on code
      CodeReadahead(Around): 2.6.32 4.19 4.20-rc1 5.3 5.4 5.5 5.7 5.10 6.1 6.12
      CodeReadahead(Forward): 7.2 +exec-readahead
    inodes with cached pages
      InodeLru(WithPages): 2.6.32 4.19 4.20-rc1 5.3 5.4 5.5 5.7 5.10
      InodeLru(WithoutPages): 6.1 6.12 7.2 +inode-lru-without-pages
    waits of reclaimers without success
      Throttle(CongestionWait): 2.6.32 4.19 4.20-rc1 5.3 5.4 5.5 5.7 5.10
      Throttle(ReclaimThrottle): 6.1 6.12 7.2 +reclaim-throttle
    the measure of a pass of kswapd
      PassMeasure(Scanned): 2.6.32 4.19 4.20-rc1 5.3 5.4 5.5 5.7 5.10 6.1
      PassMeasure(ScannedOrFreed): 6.12 7.2
    writes of single dirty pages
      Writepage(Anyone): 2.6.32
      Writepage(Never): 6.12
      Writepage(Kswapd): 4.19 4.20-rc1 5.3 5.4 5.5 5.7 5.10 6.1 +writepage-hook
      Writepage(Unasked): 7.2 +no-file-writeback-in-reclaim
    mobility types on the per-CPU lists
      PcpLists(Single):
      PcpLists(PerType): 2.6.32 4.19 4.20-rc1 5.3 5.4 5.5 5.7 5.10 6.1 6.12 7.2 +pcp-per-migratetype
    the order of a cold refill
      ColdOrder(Falling):
      ColdOrder(Rising): 2.6.32 4.19 4.20-rc1 5.3 5.4 5.5 5.7 5.10 6.1 6.12 7.2 +pcp-cold-order
    pages of other types on the per-CPU lists
      PcpFallback(Left): 2.6.32 4.19 4.20-rc1 5.3 5.4 5.5 5.7 5.10 6.1 6.12 7.2
      PcpFallback(Taken): +pcp-cross-fallback
    pages that are cold in the cache
      ColdPages(Tail): 2.6.32
      ColdPages(Alike): 4.19 4.20-rc1 5.3 5.4 5.5 5.7 5.10 6.1 6.12 7.2
    reserved pages on the per-CPU lists
      PcpReserve(Leaks): 2.6.32
      PcpReserve(Stays): 4.19 4.20-rc1 5.3 5.4 5.5 5.7 5.10 6.1 6.12 7.2
    free blocks that are likely to grow
      LikelyMerges(Head): 2.6.32
      LikelyMerges(Tail): 4.19 4.20-rc1 5.3 5.4 5.5 5.7 5.10 6.1 6.12 7.2
    readahead when memory is short
      ReadaheadEffort(Insists): 2.6.32
      ReadaheadEffort(GivesUp): 4.19 4.20-rc1 5.3 5.4 5.5 5.7 5.10 6.1 6.12 7.2
    filesystems in reclaim for readahead
      ReadaheadReclaim(AsFile): 2.6.32 4.19 4.20-rc1 5.3 5.4 5.5 5.7
      ReadaheadReclaim(SparesFilesystems): 5.10 6.1 6.12 7.2
    pages before a miss that make it part of a run
      ReadaheadHistory(AnyPage): 2.6.32
      ReadaheadHistory(MoreThanAsked): 4.19 4.20-rc1 5.3 5.4 5.5 5.7 5.10 6.1 6.12 7.2
    reading of a range that will be needed
      RangeReadahead(Whole): 2.6.32
      RangeReadahead(Request1280K): 4.19 4.20-rc1 5.3 5.4 5.5 5.7 5.10 6.1 6.12
      RangeReadahead(Request4M): 7.2
    a miss where the next window was to begin
      ReadaheadMiss(Continues): 2.6.32 4.19 4.20-rc1 5.3 5.4 5.5 5.7 5.10 6.1
      ReadaheadMiss(LooksBack): 6.12 7.2
    a gap that readahead does not find
      ReadaheadGap(AtLast): 2.6.32 4.19 4.20-rc1 5.3 5.4 5.5 5.7 5.10 6.1
      ReadaheadGap(Beyond): 6.12 7.2
    the position that makes a miss sequential
      ReadaheadPosition(LastPage): 2.6.32 4.19 4.20-rc1 5.3 5.4 5.5 5.7 5.10
      ReadaheadPosition(EndOfBatch): 6.1
      ReadaheadPosition(EndOfCall): 6.12 7.2
    zones for pages that are about to be dirty
      DirtySpread(Any): 2.6.32
      DirtySpread(BelowLimit): 4.19 4.20-rc1 5.3 5.4 5.5 5.7 5.10 6.1 6.12 7.2
    the watermark test of large blocks
      WatermarkTest(HalvedByOrder): 2.6.32
      WatermarkTest(AnyBlock): 4.19 4.20-rc1 5.3 5.4 5.5 5.7 5.10 6.1 6.12 7.2
    the distance between watermarks
      MarkGap(QuarterOfMin): 2.6.32
      MarkGap(Scaled): 4.19 4.20-rc1 5.3 5.4 5.5 5.7 5.10 6.1 6.12 7.2
    reclaim that freed pages for others
      FailedReclaim(GoesOn): 2.6.32
      FailedReclaim(Drains): 4.19 4.20-rc1 5.3 5.4 5.5 5.7 5.10 6.1 6.12 7.2 +drain-after-failed-reclaim
    rounds of the slow path
      SlowPath(Paused): 2.6.32
      SlowPath(WhileItHelps): 4.19 4.20-rc1 5.3 5.4 5.5 5.7 5.10 6.1 6.12 7.2 +reclaim-retry
    the pause of the slow path
      Backoff(CongestionWait): 2.6.32
      Backoff(PressureWait): +pressure-wait
      Backoff(WaitIffCongested): 4.19 4.20-rc1 5.3 5.4 5.5 5.7 5.10 6.1 6.12 7.2 +wait-iff-congested
    the congestion of devices
      DeviceCongestion(Marked): 2.6.32
      DeviceCongestion(Never): 4.19 4.20-rc1 5.3 5.4 5.5 5.7 5.10 6.1 6.12 7.2
    direct reclaim between two priorities
      DirectPause(Paused): 2.6.32
      DirectPause(None): 4.19 4.20-rc1 5.3 5.4 5.5 5.7 5.10 6.1 6.12 7.2
    draining of all per-CPU lists
      ListDrain(Caller): 2.6.32 6.1 6.12 7.2
      ListDrain(Workers): 4.19 4.20-rc1 5.3 5.4 5.5 5.7 5.10
    end of timeouts
      Timers(AtEdge): 2.6.32
      Timers(Behind): 4.19 4.20-rc1 5.3 5.4 5.5 5.7 5.10 6.1 6.12 7.2
    direct reclaim while the reserve is nearly gone
      ReserveThrottle(Off): 2.6.32
      ReserveThrottle(Waits): 4.19 4.20-rc1 5.3 5.4 5.5 5.7 5.10 6.1 6.12 7.2
    when kswapd is done
      KswapdDone(EveryZone): 2.6.32
      KswapdDone(SomeZone): 4.19 4.20-rc1 5.3 5.4 5.5 5.7 5.10 6.1 6.12 7.2
    how kswapd goes to sleep
      KswapdSleep(AtOnce): 2.6.32
      KswapdSleep(Dozes): 4.19 4.20-rc1 5.3 5.4 5.5 5.7 5.10 6.1 6.12 7.2
    when active file pages are scanned
      FileBalance(Always):
      FileBalance(MoreThanInactive): 2.6.32 +evict-once-ratio
      FileBalance(ByMemorySize): 4.19 4.20-rc1 5.3 5.4 5.5 5.7 5.10 6.1 6.12 7.2
    the scan of active pages that are spared
      SparedScan(OnInactive): 2.6.32
      SparedScan(Dropped): 4.19 4.20-rc1 5.3 5.4 5.5 5.7 5.10 6.1 6.12 7.2
    scans of less than a chunk
      SmallScans(Saved): 2.6.32
      SmallScans(Made): 4.19 4.20-rc1 5.3 5.4 5.5 5.7 5.10 6.1 6.12 7.2
    the end of a pass over the lists
      ScanStop(AfterChunk): 2.6.32
      ScanStop(InProportion): 4.19 4.20-rc1 5.3 5.4 5.5 5.7 5.10 6.1 6.12 7.2
    the memory of evicted pages
      Refaults(None): 2.6.32
      Refaults(Shadows): 4.19 4.20-rc1 5.3 5.4 5.5 5.7 5.10 6.1 6.12 7.2
    the pressure on slab
      SlabPressure(ByScan): 2.6.32
      SlabPressure(ByPriority): 4.19 4.20-rc1 5.3 5.4 5.5 5.7 5.10 6.1 6.12 7.2
    the least that is asked of a shrinker
      SlabFloor(None): 2.6.32 5.3 5.4 5.5 5.7 5.10 6.1 6.12 7.2
      SlabFloor(Batch): 4.19 4.20-rc1 +small-slab-pressure
    writers when too much is dirty
      DirtyPause(Writes): 2.6.32
      DirtyPause(Sleeps): 4.19 4.20-rc1 5.3 5.4 5.5 5.7 5.10 6.1 6.12 7.2
    compaction
      Compaction(Off): 2.6.32
      Compaction(On): 4.19 4.20-rc1 5.3 5.4 5.5 5.7 5.10 6.1 6.12 7.2
    transparent huge pages
      HugePages(Off): 2.6.32
      HugePages(On): 4.19 4.20-rc1 5.3 5.4 5.5 5.7 5.10 6.1 6.12 7.2
    which task a CPU runs
      Scheduler(Cfs): 2.6.32 4.19 4.20-rc1 5.3 5.4 5.5 5.7 5.10 6.1
      Scheduler(Eevdf): 6.12 7.2 +eevdf
    preemption inside the kernel
      Preemption(Voluntary): 2.6.32 4.19 4.20-rc1 5.3 5.4 5.5 5.7 5.10 6.1 6.12
      Preemption(Lazy): 7.2 +preempt-lazy
    reclaim of XFS inodes that are not clean
      InodeReclaim(Waits): 2.6.32 4.19 4.20-rc1 5.3 5.4 5.5 5.7
      InodeReclaim(PassesBy): 5.10 6.1 6.12 7.2 +async-inode-reclaim
    the buffer of a dirty XFS inode
      InodeCluster(MayGo): 2.6.32 4.19 4.20-rc1 5.3 5.4 5.5 5.7
      InodeCluster(Pinned): 5.10 6.1 6.12 7.2 +pin-inode-cluster
    who is credited with freed XFS buffers
      BufferCredit(Nobody): 2.6.32 4.19 4.20-rc1 5.3 5.4 5.5
      BufferCredit(Reclaimer): 5.7 5.10 6.1 6.12 7.2 +xfs-buffer-credit
    memory for what XFS is to log
      LogVectors(Reclaims): 2.6.32 4.19 4.20-rc1 5.3 5.4 5.5 5.7 5.10
      LogVectors(TriesFirst): 6.1 6.12 7.2
    the charge of kernel objects
      ObjectCharge(BySlab): 2.6.32 4.19 4.20-rc1 5.3 5.4 5.5 5.7
      ObjectCharge(ByObject): 5.10 6.1 6.12 7.2
    free slab objects near a CPU
      FreeObjects(PartialSlabs): 2.6.32 4.19 4.20-rc1 5.3 5.4 5.5 5.7 5.10 6.1 6.12
      FreeObjects(Sheaves): 7.2 +slab-sheaves
    the batch of the super-block shrinker
      SuperBlockBatch(Of1024): 2.6.32 4.19 4.20-rc1 5.3 5.4 5.5 5.7 5.10 6.1 6.12 7.2
      SuperBlockBatch(Of128): +super-block-batch-128
    kswapd's effort for a watermark boost
      BoostEffort(UpToPriority10): 2.6.32 4.19 4.20-rc1 5.3 5.4 5.5 5.7 5.10 6.1 6.12 7.2
      BoostEffort(Any): +boost-without-floor
    memory cgroups
      Cgroups(Off): 2.6.32
      Cgroups(V2): 4.19 4.20-rc1 5.3 5.4 5.5 5.7 5.10 6.1 6.12 7.2
    swap-in from devices without waits
      SyncSwap(ThroughCache): 2.6.32
      SyncSwap(Bypassed): 4.19 4.20-rc1 5.3 5.4 5.5 5.7 5.10 6.1 6.12 7.2
    readahead of swap
      SwapReadahead(Cluster): 2.6.32
      SwapReadahead(Mapping): 4.19 4.20-rc1 5.3 5.4 5.5 5.7 5.10 6.1 6.12 7.2
    swap slots that CPUs keep
      SlotCache(Off): 2.6.32 7.2
      SlotCache(PerCpu): 4.19 4.20-rc1 5.3 5.4 5.5 5.7 5.10 6.1 6.12
    slots when no cluster is free
      SwapClusters(Scan): 2.6.32 4.19 4.20-rc1 5.3 5.4 5.5 5.7 5.10 6.1
      SwapClusters(Lists): 6.12 7.2
    turns of swap areas of equal priority
      SwapTurns(PerCall): 2.6.32 4.19 4.20-rc1 5.3 5.4 5.5 5.7 5.10 6.1 6.12
      SwapTurns(PerCluster): 7.2
    swapped-out pages of zeroes
      ZeroPages(Written): 2.6.32 4.19 4.20-rc1 5.3 5.4 5.5 5.7 5.10 6.1
      ZeroPages(Bitmap): 6.12 7.2
    requests of zram
      ZramRequests(None): 2.6.32 4.19 4.20-rc1 5.3 5.4 5.5 5.7 5.10 6.1
      ZramRequests(Counted): 6.12 7.2 +zram-requests
    huge pages at swap-out
      HugeSwap(Split): 2.6.32
      HugeSwap(Whole): 4.19 4.20-rc1 5.3 5.4 5.5 5.7 5.10 6.1 6.12 7.2
    shadows of swapped-out pages
      SwapShadows(Kept): 2.6.32 4.19 4.20-rc1 5.3 5.4 5.5 5.7 5.10 6.1
      SwapShadows(Shrunk): 6.12
      SwapShadows(InTables): 7.2
    MADV_FREE
      LazyFree(Unknown): 2.6.32
      LazyFree(Heeded): 4.19 4.20-rc1 5.3 5.4 5.5 5.7 5.10 6.1 6.12 7.2
    MADV_COLD and MADV_PAGEOUT
      ColdAdvice(Unknown): 2.6.32 4.19 4.20-rc1 5.3
      ColdAdvice(Heeded): 5.4 5.5 5.7 5.10 6.1 6.12 7.2
    chains of pages in compressed memory
      ZspageChain(UpToFour): 2.6.32 4.19 4.20-rc1 5.3 5.4 5.5 5.7 5.10 6.1
      ZspageChain(UpToEight): 6.12 7.2
    memory.swap.high
      SwapHigh(None): 2.6.32 4.19 4.20-rc1 5.3 5.4 5.5 5.7
      SwapHigh(Sleep): 5.10 6.1 6.12 7.2 +memory-swap-high
    pauses above memory.high
      HighPause(None): 2.6.32 4.19 4.20-rc1 5.3
      HighPause(Once): 5.4 5.5 5.7 +high-pause
      HighPause(Insistent): 5.10 6.1 6.12 7.2 +high-pause-retries
    large charges above memory.high
      HighOvercharge(AtReturn): 2.6.32 4.19 4.20-rc1 5.3 5.4 5.5 5.7 5.10
      HighOvercharge(AtOnce): 6.1 6.12 7.2 +high-overcharge-at-once
    dirty pages of cgroups
      CgroupWriteback(Absent): 2.6.32
      CgroupWriteback(OwnShare): 4.19 4.20-rc1 5.3 5.4 5.5 5.7 5.10 6.1 6.12 7.2 +cgroup-writeback
    zswap
      Zswap(Absent): 2.6.32 4.19 4.20-rc1 5.3 5.4 5.5 5.7 5.10
      Zswap(OneList): 6.1
      Zswap(ListPerGroup): 6.12
      Zswap(StoresAll): 7.2
    folios of ext4
      Ext4Folios(Single): 2.6.32 4.19 4.20-rc1 5.3 5.4 5.5 5.7 5.10 6.1 6.12
      Ext4Folios(Large): 7.2 +large-folio-ext4
    the order of readahead folios
      ReadaheadOrder(OfMarker): 2.6.32 4.19 4.20-rc1 5.3 5.4 5.5 5.7 5.10 6.1 6.12
      ReadaheadOrder(OfFile): 7.2 +readahead-order-kept
    the room that compaction needs
      CompactGap(TwiceBlock): 2.6.32 4.19 4.20-rc1 5.3 5.4 5.5 5.7 5.10 6.1 6.12
      CompactGap(Chunk): 7.2 +small-compact-gap
    whom a CPU's stocks are for
      ChargeStock(OneGroup): 2.6.32 4.19 4.20-rc1 5.3 5.4 5.5 5.7 5.10 6.1 6.12
      ChargeStock(SevenGroups): 7.2 +memcg-multi-stock
    pages of a removed cgroup
      RemovedGroup(Keeps): 2.6.32 4.19 4.20-rc1 5.3 5.4 5.5 5.7 5.10 6.1 6.12
      RemovedGroup(HandsOver): 7.2 +reparent-lru
    what /proc/vmstat counts of reclaim
      ReclaimCounts(GlobalAndRefill): 2.6.32 4.19 4.20-rc1 5.3 5.4 5.5 5.7
      ReclaimCounts(Global): 5.10 6.1 6.12
      ReclaimCounts(All): 7.2 +limit-reclaim-in-vmstat
    runs for a boost that freed nothing
      BoostFailure(Counts): 2.6.32 4.19 4.20-rc1 5.3 5.4 5.5 5.7 5.10 6.1 6.12
      BoostFailure(Forgiven): 7.2 +boost-failure-forgiven
    what gives kswapd hope again
      KswapdHope(AnyProgress): 2.6.32 4.19 4.20-rc1 5.3 5.4 5.5 5.7 5.10 6.1 6.12
      KswapdHope(Balanced): 7.2 +kswapd-hope-needs-balance
    pages of too high zones that are passed over
      ZoneSkips(Unlimited): 2.6.32 4.19 4.20-rc1 5.3 5.4 5.5 5.7 5.10 6.1 6.12
      ZoneSkips(Capped): 7.2 +isolate-skip-cap
    the readahead that nobody set
      DefaultReadahead(Fixed): 2.6.32 4.19 4.20-rc1 5.3 5.4 5.5 5.7 5.10 6.1 6.12
      DefaultReadahead(Rotational): 7.2 +readahead-rotational
    the node that a request tries first
      NodeChoice(Nearest): 2.6.32 4.19 4.20-rc1 5.3 5.4 5.5 5.7 5.10 6.1 6.12
      NodeChoice(SparesKswapd): 7.2 +skip-nodes-with-kswapd
    vm.defrag_mode
      DefragMode(None): 2.6.32 4.19 4.20-rc1 5.3 5.4 5.5 5.7 5.10 6.1 6.12
      DefragMode(Sysctl): 7.2 +defrag-mode
    what weighs anonymous pages against file pages
      LruCost(Rotations): 2.6.32 4.19 4.20-rc1 5.3 5.4 5.5 5.7
      LruCost(Io): 5.10 6.1 +cost-model
      LruCost(IoAndRotations): 6.12 7.2 +rotation-cost
    the range of vm.swappiness
      SwappinessRange(UpTo100): 2.6.32 4.19 4.20-rc1 5.3 5.4 5.5 5.7
      SwappinessRange(UpTo200): 5.10 6.1 6.12 7.2 +swappiness-max
    the range of vm.watermark_scale_factor
      WatermarkScaleRange(UpTo1000): 2.6.32 4.19 4.20-rc1 5.3 5.4 5.5 5.7 5.10
      WatermarkScaleRange(UpTo3000): 6.1 6.12 7.2 +watermark-scale-max
    the rest of quotas in proportion
      QuotaRest(Spent): 2.6.32 4.19 4.20-rc1 5.3 5.4 5.5 5.7 5.10
      QuotaRest(Dropped): 6.1 6.12 7.2 +no-swap-flood
    kswapd when file pages alone give nothing
      TrimFailure(GivesUp): 2.6.32 4.19 4.20-rc1 5.3 5.4 5.5 5.7 5.10 6.1
      TrimFailure(TriesAnon): 6.12 7.2
    whose free swap a refault asks for
      RefaultSwap(OfPage): 2.6.32 4.19 4.20-rc1 5.3 5.4 5.5 5.7 5.10 6.1
      RefaultSwap(OfEviction): 6.12 7.2
    memory.reclaim
      ProactiveReclaim(None): 2.6.32 4.19 4.20-rc1 5.3 5.4 5.5 5.7 5.10
      ProactiveReclaim(Whole): 6.1 +memory-reclaim
      ProactiveReclaim(Quarters): 6.12 +memory-reclaim-swappiness
      ProactiveReclaim(QuartersOrAnon): 7.2 +memory-reclaim-anon-only
    what proactive reclaim counts as
      ProactiveCounts(Direct): 2.6.32 4.19 4.20-rc1 5.3 5.4 5.5 5.7 5.10 6.1 6.12
      ProactiveCounts(Proactive): 7.2 +proactive-reclaim-counted
    reclaim of a node
      NodeReclaim(None): 2.6.32 4.19 4.20-rc1 5.3 5.4 5.5 5.7 5.10 6.1 6.12
      NodeReclaim(File): 7.2 +node-reclaim-file
    the lists of pages
      LruKind(TwoLists): 2.6.32 4.19 4.20-rc1 5.3 5.4 5.5 5.7 5.10 6.1 6.12 7.2
      LruKind(Generations): +lru-gen
      LruKind(S3Fifo): +file-lru-s3fifo
      LruKind(Sieve): +file-lru-sieve
    the form of the multi-gen LRU
      GenForm(NotBuilt): 2.6.32 4.19 4.20-rc1 5.3 5.4 5.5 5.7 5.10
      GenForm(First): 6.1
      GenForm(Settled): 6.12 7.2
    whom global reclaim by generations visits
      GenWalk(Tree): 2.6.32 4.19 4.20-rc1 5.3 5.4 5.5 5.7 5.10 6.1
      GenWalk(Bins): 6.12 7.2
    what an access is to generations
      GenAccess(Reads): 2.6.32 4.19 4.20-rc1 5.3 5.4 5.5 5.7 5.10 6.1 6.12
      GenAccess(Accesses): 7.2 +mglru-refs
    what a visit of generations takes
      GenQuota(EachRound): 2.6.32 4.19 4.20-rc1 5.3 5.4 5.5 5.7 5.10 6.1 6.12
      GenQuota(Once): 7.2 +mglru-limit-stop
    what tiers are good for
      GenTiers(Nothing): 2.6.32 4.19 4.20-rc1 5.3 5.4 5.5 5.7 5.10
      GenTiers(Protect): 6.1 6.12 7.2 +mglru-tiers
    the type that generations evict
      GenTypes(FilesFirst): 2.6.32 4.19 4.20-rc1 5.3 5.4 5.5 5.7 5.10
      GenTypes(ByRefaults): 6.1 6.12 7.2 +mglru-types
    walks of page tables for a new generation
      GenTables(None): 2.6.32 4.19 4.20-rc1 5.3 5.4 5.5 5.7 5.10
      GenTables(Walked): 6.1 6.12 7.2 +mglru-walk
    which page tables a walk looks at
      GenFilter(All): 2.6.32 4.19 4.20-rc1 5.3 5.4 5.5 5.7 5.10
      GenFilter(Dense): 6.1 6.12 7.2 +mglru-bloom
    what eviction looks at around an accessed page
      GenAround(Nothing): 2.6.32 4.19 4.20-rc1 5.3 5.4 5.5 5.7 5.10
      GenAround(Entries): 6.1 6.12 7.2 +mglru-around
    ");
}
