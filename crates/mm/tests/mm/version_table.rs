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
      Aging(PerCgroup): 4.19 4.20-rc1 5.3 5.4
      Aging(Root): 5.5 6.1 6.12 +root-aging
    which cgroup an eviction ages
      EvictionAge(Owner): 4.19 4.20-rc1 5.3 5.4 5.5
      EvictionAge(Target): 6.1 6.12 +eviction-ages-target
    the walk over the cgroup tree
      MemcgWalk(Full): 5.5 6.1
      MemcgWalk(Shared): 4.19 4.20-rc1 5.3 5.4 +shared-memcg-walk
      MemcgWalk(Partial): 6.12 +partial-memcg-walk
    when cgroup statistics are flushed
      StatFreshness(Live): 4.19 4.20-rc1 5.3 5.4 5.5
      StatFreshness(Threshold): 6.1 +memcg-stat-threshold
      StatFreshness(Periodic): 6.12 +memcg-stat-periodic
    how siblings share memory.low
      SiblingShares(ByUse): 4.19 4.20-rc1 5.3 5.4 5.5
      SiblingShares(ByClaim): 6.1 6.12 +sibling-protection
    the scan of cgroups above their protection
      ProtectedScan(Whole): 4.19 4.20-rc1 5.3
      ProtectedScan(Scaled): 5.4 5.5 +scaled-protection
      ProtectedScan(ScaledAndSkipped): 6.1 6.12 +scaled-protection-skips
    who is credited with freed slab pages
      SlabCredit(AllReclaim): 4.19 4.20-rc1 5.3 5.4 5.5 6.1
      SlabCredit(GlobalOnly): 6.12 +slab-credit-global-only
    how deferred slab scanning is paid back
      DeferredSlab(AtOnce): 4.19 4.20-rc1 5.3 5.4 5.5
      DeferredSlab(ByPriority): 6.1 6.12 +deferred-slab-decay
    who owes deferred slab scanning
      SlabDebt(PerNode): 4.19 4.20-rc1 5.3 5.4 5.5
      SlabDebt(PerCgroup): 6.1 6.12
    slab during a watermark boost
      BoostedSlab(Spared): 4.19 4.20-rc1 5.3
      BoostedSlab(Shrunk): 5.4 5.5 6.1 6.12 +shrink-slab-when-boosted
    spreading to the DMA32 zone
      Spread(Off): 4.19 4.20-rc1
      Spread(Dma32): 5.3 5.4 5.5 6.1 6.12 +nofragment
    where a walk goes on that kept types apart in vain
      SpreadRetry(GoesOn): 4.19 4.20-rc1
      SpreadRetry(StartsOver): 5.3 5.4 5.5 6.1 6.12
    the watermark boost
      WatermarkBoost(Off): 4.19 4.20-rc1
      WatermarkBoost(V2): +watermark-boost-v2
      WatermarkBoost(Merged): 5.3 5.4 5.5 6.1 6.12 +watermark-boost
    which zones are boosted
      BoostedZones(All): 4.19 4.20-rc1 5.3 5.4 5.5
      BoostedZones(FourPageblocks): 6.1 6.12
    the stall on fragmentation
      FragmentStall(Off): 4.19 4.20-rc1 5.3 5.4 5.5 6.1 6.12
      FragmentStall(V1): +fragment-stall-v1
      FragmentStall(V2): +fragment-stall
      FragmentStall(V3): +fragment-stall-v3
      FragmentStall(V5): +fragment-stall-v5
    the fallback to other mobility types
      FallbackPolicy(StealAndClaim): 4.19 4.20-rc1 5.3 5.4 5.5 6.1
      FallbackPolicy(ClaimThenSteal): 6.12 +claim-then-steal
    the per-CPU page lists
      PcpGeneration(Classic): 4.19 4.20-rc1 5.3 5.4 5.5
      PcpGeneration(HighOrder): 6.1 +pcp-high-order
      PcpGeneration(AutoSize): 6.12 +pcp-auto-size
    the mark of atomic requests
      AtomicMark(Boosted): 4.19 4.20-rc1 5.3 5.4 5.5
      AtomicMark(Unboosted): 6.1 6.12 +atomic-ignores-boost
    the highatomic reserve
      HighatomicReserve(AllZones): 4.19 4.20-rc1 5.3 5.4 5.5 6.1
      HighatomicReserve(LargeZones): 6.12 +small-zone-no-highatomic
    what compaction moves
      CompactFolios(Single): 4.19 4.20-rc1 5.3 5.4 5.5 6.1
      CompactFolios(Large): 6.12 +compact-large-folios
    retries after compaction withdrew
      CompactRetry(AsItWas): 4.19 4.20-rc1 5.3
      CompactRetry(Harder): 5.4 5.5 6.1 6.12
    requests that end with their first compaction
      FirstCompaction(PutOff): 4.19 4.20-rc1 5.3
      FirstCompaction(NotRun): 5.4 5.5 6.1 6.12
    folios of readahead
      ReadaheadFolios(Single): 4.19 4.20-rc1 5.3 5.4 5.5
      ReadaheadFolios(Large): 6.1 6.12 +large-folio-readahead
    folios of buffered writes
      WriteFolios(Single): 4.19 4.20-rc1 5.3 5.4 5.5 6.1
      WriteFolios(Large): 6.12 +large-folio-write
    what a buffered write is to its page
      WriteAccess(None): 4.19 4.20-rc1 5.3 5.4 5.5 6.1 6.12
      WriteAccess(Access): +writes-are-accesses
    where anonymous pages start
      AnonStart(Active): 4.19 4.20-rc1 5.3 5.4 5.5
      AnonStart(Inactive): 6.1 6.12 +anon-starts-inactive
    inodes with cached pages
      InodeLru(WithPages): 4.19 4.20-rc1 5.3 5.4 5.5
      InodeLru(WithoutPages): 6.1 6.12 +inode-lru-without-pages
    waits of reclaimers without success
      Throttle(CongestionWait): 4.19 4.20-rc1 5.3 5.4 5.5
      Throttle(ReclaimThrottle): 6.1 6.12 +reclaim-throttle
    the measure of a pass of kswapd
      PassMeasure(Scanned): 4.19 4.20-rc1 5.3 5.4 5.5 6.1
      PassMeasure(ScannedOrFreed): 6.12
    writes of single dirty pages
      Writepage(Never): 6.12
      Writepage(Kswapd): 4.19 4.20-rc1 5.3 5.4 5.5 6.1 +writepage-hook
    ");
}
