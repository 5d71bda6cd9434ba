//! Every answer to every decision shows: a switch that nobody reads cannot exist.
//!
//! The test takes [`Rule::ALL`], so it covers a rule that is added without being told. Any two
//! answers to one decision are put into the same version, and some scene of [`scenes`] must
//! run otherwise with one than with the other: in a counter, in `memory.stat`, or in time alone.
//! `cargo test -p pagetide-stories -- --nocapture every_answer` prints which scene tells
//! which pair apart, and by what.
//!
//! Versions are tried in this order: those that have one of the two answers, then any, both in the order of
//! [`bases`]; all scenes of one before the next, as most pairs show in some scene of the first. What [`TRIED_FIRST`]
//! says of a pair goes before that. A pair that no scene tells apart is either dead or a case that the scenes lack.
//! What must show nowhere is looked for in a few scenes; `PAGETIDE_WORLDS`, which `cargo xtask test full` sets, takes
//! all.

mod scenes;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

use mm::Version;
use mm::version::feature::Feature;
use mm::version::parse::ChangeError;
use mm::version::rules::Rule;

use scenes::{SCENES, Scene, Trace};

/// Versions beside the presets: the series of 2018 as it was posted, whose parts need each other, and those with the
/// multi-gen LRU that are not in [`FIRST`].
const SERIES: [&str; 4] = [
    "linux-6.12+lru-gen",
    "linux-6.1+lru-gen",
    "linux-4.20-rc1+nofragment+watermark-boost-v2+fragment-stall",
    "linux-4.20-rc1+nofragment+watermark-boost+fragment-stall-v5",
];

/// The versions that are tried first: the newest with each way of reclaim, and the oldest.
const FIRST: [&str; 3] = ["linux-7.2", "linux-7.2+lru-gen", "linux-2.6.32"];

/// Where pairs show that do not in the first scene on the first version, by how their text begins: a scene and a
/// version. It only saves time: where it is wrong, all are tried as if it was not there, and the table tells how many
/// tries it took.
#[rustfmt::skip] // A table.
const TRIED_FIRST: &[(&str, &str, &str)] = &[
    ("EvictionAge(", "limits and protection", "linux-6.1"),
    ("ActivationAge(", "small files on XFS", "linux-5.10"),
    ("MemcgWalk(Full) / MemcgWalk(Shared)", "page cache on ext4", "linux-6.1"),
    ("StatFreshness(Live) / StatFreshness(Batched)", "page cache on ext4", "linux-2.6.32"),
    ("StatFreshness(Live) / StatFreshness(Threshold)", "limits and protection", "linux-6.1"),
    ("StatFreshness(Batched) / StatFreshness(Threshold)", "page cache on ext4", "linux-6.1"),
    ("ProtectedScan(Whole) / ProtectedScan(Scaled)", "limits and protection", "linux-5.10"),
    ("ProtectedScan(Whole) / ProtectedScan(ScaledAndSkipped)", "limits and protection", "linux-7.2"),
    ("ProtectedScan(Scaled) / ProtectedScan(ScaledAndSkipped)", "limits and protection", "linux-7.2"),
    ("SlabCredit(AllReclaim) / SlabCredit(GlobalOnly)", "small files on ext4", "linux-6.12"),
    ("SlabCredit(", "small files on ext4", "linux-7.2"),
    ("DeferredSlab(", "limits and protection", "linux-7.2"),
    ("SlabDebt(", "limits and protection", "linux-7.2"),
    ("BoostedSlab(", "limits and protection", "linux-5.10"),
    ("CgroupWriteback(", "small files on ext4", "linux-7.2"),
    ("HighOvercharge(", "limits and protection", "linux-5.7"),
    ("WatermarkBoost(Off) / WatermarkBoost(V2)", "page cache on ext4", "linux-2.6.32"),
    ("BoostedZones(", "atomic requests in small zones", "linux-7.2"),
    ("FragmentStall(V1) / FragmentStall(V2)", "page cache on ext4", SERIES[2]),
    ("FragmentStall(V1) / FragmentStall(V5)", "page cache on ext4", SERIES[3]),
    ("FragmentStall(V2) / FragmentStall(V3)", "writes on XFS", SERIES[2]),
    ("FragmentStall(V2) / FragmentStall(V5)", "writes on XFS", SERIES[2]),
    ("FallbackPolicy(LargestFirst) / FallbackPolicy(StealAndClaim)", "page cache on ext4", "linux-2.6.32"),
    ("PcpGeneration(Classic) / PcpGeneration(HighOrder)", "page cache on ext4", "linux-2.6.32"),
    ("AtomicMark(", "atomic requests", "linux-7.2"),
    ("HighatomicReserve(Blocks) / HighatomicReserve(AllZones)", "page cache on ext4", "linux-2.6.32"),
    ("HighatomicReserve(AllZones) / HighatomicReserve(LargeZones)", "atomic requests", "linux-7.2"),
    ("FirstCompaction(PutOff) / FirstCompaction(NotRun)", "page cache on XFS", "linux-6.12"),
    ("WriteFolios(", "writes on ext4", "linux-7.2"),
    ("WriteAccess(", "limits and protection", "linux-7.2+lru-gen"),
    ("AnonStart(", "anonymous memory", "linux-7.2"),
    ("MappedReferences(", "mapped files", "linux-7.2"),
    ("AdvisedAccess(", "mapped files", "linux-7.2"),
    ("FaultAround(", "mapped files", "linux-7.2"),
    ("FaultCount(", "mapped files", "linux-7.2"),
    ("ListDrain(", "page cache on ext4", "linux-6.1"),
    ("Timers(", "writes on ext4", "linux-7.2"),
    ("WriteFault(", "mapped files", "linux-6.1"),
    ("MappedHits(", "mapped files", "linux-7.2"),
    ("InodeLru(", "limits and protection", "linux-7.2"),
    ("Throttle(", "small files on XFS", "linux-7.2"),
    ("PassMeasure(Scanned) / PassMeasure(ScannedOrFreed)", "small files on ext4", "linux-7.2+lru-gen"),
    ("PassMeasure(", "small files on ext4", "linux-6.12"),
    ("Writepage(Anyone) / Writepage(Never)", "limits and protection", "linux-2.6.32"),
    ("Writepage(Anyone) / Writepage(Kswapd)", "limits and protection", "linux-2.6.32"),
    ("Writepage(Anyone) / Writepage(Unasked)", "limits and protection", "linux-7.2"),
    ("Writepage(Never) / Writepage(Kswapd)", "writes on ext4", "linux-6.12"),
    ("Writepage(Never) / Writepage(Unasked)", "small files on XFS", "linux-7.2"),
    ("Writepage(Kswapd) / Writepage(Unasked)", "small files on XFS", "linux-7.2"),
    ("PcpLists(", "page cache on ext4", "linux-2.6.32"),
    ("ColdOrder(", "page cache on a disk that pays for segments", "linux-2.6.32"),
    ("PcpReserve(", "page cache on ext4", "linux-2.6.32"),
    ("ReadaheadReclaim(", "limits and protection", "linux-7.2"),
    ("ReadaheadHistory(", "swapping below limits", "linux-7.2"),
    ("DirtySpread(", "small files on XFS", "linux-7.2"),
    ("MarkGap(", "mixed types", "linux-7.2"),
    ("Backoff(", "page cache on ext4", "linux-2.6.32"),
    ("DeviceCongestion(", "limits and protection", "linux-2.6.32"),
    ("DirectPause(", "limits and protection", "linux-7.2"),
    ("FileBalance(Always) / FileBalance(MoreThanInactive)", "page cache on ext4", "linux-2.6.32"),
    ("ScanStop(", "small files on XFS", "linux-7.2"),
    ("SlabPressure(", "limits and protection", "linux-7.2"),
    ("SlabFloor(", "limits and protection", "linux-7.2"),
    ("DirtyPause(", "small files on ext4", "linux-7.2"),
    ("InodeReclaim(", "small files on XFS", "linux-7.2"),
    ("InodeCluster(", "small files on XFS", "linux-7.2"),
    ("BufferCredit(", "small files on XFS", "linux-7.2"),
    ("SuperBlockBatch(", "small files on ext4", "linux-7.2"),
    ("SyncSwap(", "swapping below limits", "linux-7.2"),
    ("SwapReadahead(", "swapping below limits", "linux-2.6.32"),
    ("SlotCache(", "swapping below limits", "linux-7.2"),
    ("ZeroPages(", "swapping below limits", "linux-7.2"),
    ("ZramRequests(", "swapping below limits", "linux-7.2"),
    ("SwapShadows(", "swapping below limits", "linux-7.2"),
    ("LazyFree(", "swapping below limits", "linux-7.2"),
    ("ColdAdvice(", "swapping below limits", "linux-7.2"),
    ("SwapHigh(", "swapping below limits", "linux-6.12"),
    ("RemovedGroup(", "limits and protection", "linux-7.2"),
    ("ReclaimCounts(GlobalAndRefill) / ReclaimCounts(Global)", "writes on ext4", "linux-6.12"),
    ("ReclaimCounts(", "limits and protection", "linux-7.2"),
    ("KswapdHope(", "small files on XFS", "linux-5.10"),
    ("LruCost(Rotations) / LruCost(Io)", "swapping below limits", "linux-2.6.32"),
    ("LruCost(Rotations) / LruCost(IoAndRotations)", "swapping below limits", "linux-7.2"),
    ("LruCost(Io) / LruCost(IoAndRotations)", "swapping below limits", "linux-7.2"),
    ("SwappinessRange(", "swapping below limits", "linux-7.2"),
    ("WatermarkScaleRange(", "swapping below limits", "linux-7.2"),
    ("ProactiveReclaim(None) / ProactiveReclaim(Whole)", "swapping below limits", "linux-6.1"),
    ("ProactiveReclaim(None) / ProactiveReclaim(Quarters)", "swapping below limits", "linux-6.12"),
    ("ProactiveReclaim(Whole) / ProactiveReclaim(Quarters)", "swapping below limits", "linux-6.12"),
    ("ProactiveReclaim(Whole) / ProactiveReclaim(QuartersOrAnon)", "swapping below limits", "linux-7.2"),
    ("ProactiveReclaim(Quarters) / ProactiveReclaim(QuartersOrAnon)", "swapping below limits", "linux-7.2"),
    ("NodeReclaim(", "swapping below limits", "linux-7.2"),
    ("LruKind(Generations) / LruKind(S3Fifo)", "page cache on ext4", "linux-7.2+lru-gen"),
    ("LruKind(Generations) / LruKind(Sieve)", "page cache on ext4", "linux-7.2+lru-gen"),
    ("GenForm(NotBuilt) / GenForm(First)", "page cache on ext4", "linux-6.1+lru-gen"),
    ("GenForm(NotBuilt) / GenForm(Settled)", "page cache on ext4", "linux-7.2+lru-gen"),
    ("GenForm(First) / GenForm(Settled)", "page cache on ext4", "linux-7.2+lru-gen"),
    ("GenWalk(", "page cache on ext4", "linux-7.2+lru-gen"),
    ("GenAccess(", "page cache on ext4", "linux-7.2+lru-gen"),
    ("GenQuota(", "page cache on ext4", "linux-7.2+lru-gen"),
    ("GenTiers(", "page cache on ext4", "linux-7.2+lru-gen"),
    ("GenTypes(", "swapping below limits", "linux-7.2+lru-gen"),
    ("GenTables(", "mapped files", "linux-7.2+lru-gen"),
    ("GenAround(", "mapped files", "linux-7.2+lru-gen"),
    ("CodeReadahead(", "mapped files", "linux-7.2"),
    ("GenFilter(", "swapping below limits", "linux-7.2+lru-gen"),
    ("ReserveUsers(Atomic) / ReserveUsers(NonBlocking)", "small files on XFS", "linux-6.1"),
    ("ReserveCount(", "atomic requests", "linux-6.1"),
    ("CompactSearch(None) / CompactSearch(Any)", "huge pages on ext4", "linux-5.10"),
    ("CompactSearch(None) / CompactSearch(UpperHalf)", "writes on XFS", "linux-6.1"),
    ("CompactSearch(Any) / CompactSearch(UpperHalf)", "writes on XFS", "linux-6.1"),
    ("ProactiveCompaction(None) / ProactiveCompaction(Uncounted)", "small files on XFS", "linux-6.1"),
    ("ProactiveCompaction(None) / ProactiveCompaction(Counted)", "swapping below limits", "linux-6.12"),
    ("ProactiveCompaction(Uncounted) / ProactiveCompaction(Counted)", "small files on XFS", "linux-6.1+lru-gen"),
    ("RangeReadahead(Whole) / RangeReadahead(Request1280K)", "mapped files", "linux-2.6.32"),
    ("RangeReadahead(Whole) / RangeReadahead(Request4M)", "mapped files", "linux-7.2+lru-gen"),
    ("RangeReadahead(", "mapped files", "linux-7.2"),
    ("ReadaheadGap(", "page cache on ext4", "linux-7.2+lru-gen"),
    ("ReadaheadPosition(LastPage) / ReadaheadPosition(EndOfBatch)", "page cache on XFS", "linux-2.6.32"),
    ("ReadaheadPosition(EndOfBatch) / ReadaheadPosition(EndOfCall)", "limits and protection", "linux-7.2"),
    ("LogVectors(", "small files on XFS", "linux-7.2"),
    ("BoostFailure(", "small files on XFS", "linux-7.2"),
    ("QuotaRest(", "swapping below limits", "linux-7.2"),
];

/// A run that somebody makes once, and others wait for.
type Once = Arc<OnceLock<Trace>>;

/// Runs of scenes, each made once, whoever of several threads and tests asks first.
static RUNS: Runs = Runs { traces: Mutex::new(BTreeMap::new()) };

struct Runs {
    traces: Mutex<BTreeMap<(&'static str, String), Once>>,
}

impl Runs {
    fn once(&self, scene: &Scene, version: &Version) -> Once {
        let key = (scene.name, format!("{:?} {:?}", version.rules, version.tuning));
        Arc::clone(self.traces.lock().expect("no thread panicked").entry(key).or_default())
    }

    /// What differs between two versions in a scene, if anything does.
    fn difference(&self, scene: &Scene, one: &Version, other: &Version) -> Option<String> {
        let (first, second) = (self.once(scene, one), self.once(scene, other));
        let first = first.get_or_init(|| scene.run(one));
        first.difference(second.get_or_init(|| scene.run(other)))
    }
}

/// In the order in which they are tried.
fn bases() -> Vec<Version> {
    let mut presets: Vec<&str> = Version::presets().map(|(name, _)| name).collect();
    presets.retain(|name| !FIRST.contains(name));
    presets.reverse();
    let names = FIRST.into_iter().chain(presets).chain(SERIES);
    names.map(|name| Version::parse(name).expect("a version")).collect()
}

/// The decisions in order, with the answers to each.
fn decisions() -> Vec<(&'static str, Vec<Rule>)> {
    let mut decisions: Vec<(&str, Vec<Rule>)> = Vec::new();
    for &rule in Rule::ALL {
        match decisions.last_mut() {
            Some((decision, rules)) if *decision == rule.decision() => rules.push(rule),
            _ => decisions.push((rule.decision(), vec![rule])),
        }
    }
    decisions
}

/// Any two answers to one decision, with the decision.
fn pairs() -> Vec<(&'static str, Rule, Rule)> {
    let of = |(decision, rules): (&'static str, Vec<Rule>)| {
        let rest = |(index, &one): (usize, &Rule)| {
            rules[index + 1..].iter().map(move |&other| (decision, one, other)).collect::<Vec<_>>()
        };
        rules.iter().enumerate().flat_map(rest).collect::<Vec<_>>()
    };
    decisions().into_iter().flat_map(of).collect()
}

/// Pairs that no scene tells apart, by how their text begins, and who holds them instead.
const UNSEEN: [(&str, &str); 17] = [
    // MECHANISMS 8.3 counts at most a group's usage as claimed, in both. So siblings never claim more
    // than their parent has, unless they grow between two steps of one walk.
    ("SiblingShares(", "mm::cgroup::protection"),
    // kswapd would have to work a boost off, which it does only while a zone is above its high mark, and
    // to find at the end of a pass that half of the reserve is gone.
    ("FragmentStall(V3) / FragmentStall(V5)", "mm::decide::balance"),
    // A block of order 1 to 3 would have to be missing although reclaim frees pages, after compaction put
    // itself off or broke off: no scene breaks memory up that far.
    ("CompactRetry(", "mm::decide::retry"),
    // They differ where a gigabyte and more is on the lists: a scene has 16 MiB.
    ("FileBalance(MoreThanInactive) / FileBalance(ByMemorySize)", "mm::reclaim::pass"),
    // A boost of these zones is worked off by passes that meet their targets, before the priority gets to 10.
    ("BoostEffort(", "mm::decide::kswapd_scenes"),
    // One cgroup would have to be out of swap and another, for which reclaim works, not, at a refault.
    ("RefaultSwap(", "mm::lru::anon_scenes"),
    // More pages than a scene has.
    ("ZoneSkips(", "mm::reclaim_scenes"),
    // A scene has one node.
    ("NodeChoice(", "mm::decide::kswapd"),
    // A scene says how much is read ahead.
    ("DefaultReadahead(", "sim::machines"),
    // Somebody with locked memory would have to be killed, and a scene goes on.
    ("OomReaper(", "sim::out_of_memory"),
    // kswapd would have to free nothing of many inactive file pages.
    ("TrimFailure(", "mm::decide::balance"),
    // No scene swaps more than fits into a cluster or two, nor huge pages, which 16 MiB hardly have.
    ("SwapClusters(", "mm::swap::areas"),
    ("HugeSwap(", "mm::swap_scenes"),
    // No scene swaps to zram pages that compress so that the longer chains waste less.
    ("ZspageChain(", "mm::swap::zram"),
    ("HighPause(", "mm::decide::over_high"),
    // No scene switches it on.
    ("Zswap(", "mm::zswap"),
    // A scene has one area.
    ("SwapTurns(", "mm::swap::areas"),
];

/// Scenes in which what must not show is looked for: three, and all where somebody asks for many worlds.
fn scenes_without() -> &'static [Scene] {
    if crate::worlds::asked().is_some() { SCENES } else { &SCENES[..3] }
}

/// Which scene tells two answers apart, on which version, and by what.
fn telling(bases: &[Version], one: Rule, other: Rule) -> Option<String> {
    let owns = |base: &&Version| base.rules.has(one) || base.rules.has(other);
    let (own, foreign): (Vec<&Version>, Vec<&Version>) = bases.iter().partition(owns);
    let mut bases: Vec<&Version> = own.into_iter().chain(foreign).collect();
    let mut scenes = SCENES;
    if unseen(one, other).is_some() {
        bases.truncate(1);
        scenes = scenes_without();
    }
    let all = || bases.iter().flat_map(|&base| scenes.iter().map(move |scene| (scene, base)));
    let pair = pair(one, other);
    let known = TRIED_FIRST.iter().find(|(begin, ..)| pair.starts_with(begin));
    let is_known = |(scene, base): &(&Scene, &Version)| {
        known.is_some_and(|&(_, name, on)| (name, on) == (scene.name, &*base.name))
    };
    all().filter(is_known).chain(all()).zip(1..).find_map(|((scene, base), tries)| {
        let with = |rule| Version { rules: base.rules.with(rule), ..base.clone() };
        let what = RUNS.difference(scene, &with(one), &with(other))?;
        let late = if tries > 1 { format!(" (try {tries})") } else { String::new() };
        Some(format!("{} on {}: {what}{late}", scene.name, base.name))
    })
}

fn pair(one: Rule, other: Rule) -> String {
    format!("{one:?} / {other:?}")
}

/// Who holds a pair that no scene tells apart.
fn unseen(one: Rule, other: Rule) -> Option<&'static str> {
    let pair = pair(one, other);
    UNSEEN.iter().find(|(begin, _)| pair.starts_with(begin)).map(|&(_, holder)| holder)
}

#[test]
#[allow(clippy::print_stdout)] // The table, for whoever asks with `--nocapture`.
fn every_answer_to_every_decision_shows() {
    let bases = bases();
    let pairs: Vec<(&str, Rule, Rule)> = pairs();
    let told: Vec<OnceLock<Option<String>>> = pairs.iter().map(|_| OnceLock::new()).collect();
    let next = AtomicUsize::new(0);
    let work = || {
        while let Some((place, &(_, one, other))) =
            Some(next.fetch_add(1, Ordering::Relaxed)).and_then(|place| Some((place, pairs.get(place)?)))
        {
            told[place].get_or_init(|| telling(&bases, one, other));
        }
    };
    std::thread::scope(|scope| {
        scope.spawn(work);
        work();
    });
    let (mut table, mut wrong, mut of) = (String::new(), Vec::new(), "");
    for (&(decision, one, other), told) in pairs.iter().zip(told) {
        if std::mem::replace(&mut of, decision) != decision {
            let _ = writeln!(table, "{decision}");
        }
        let (pair, holder) = (pair(one, other), unseen(one, other));
        let told = told.into_inner().flatten();
        match (&told, holder) {
            (None, None) => wrong.push(format!("no scene tells {pair} apart")),
            (Some(told), Some(_)) => wrong.push(format!("{pair} shows after all: {told}")),
            _ => {}
        }
        let told = told.or_else(|| holder.map(|holder| format!("(held by tests of {holder})")));
        let _ = writeln!(table, "  {pair:<50} {}", told.unwrap_or_else(|| "NOTHING".to_owned()));
    }
    println!("{table}{} runs", RUNS.traces.lock().expect("no thread panicked").len());
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn a_change_that_is_refused_for_want_of_effect_shows_in_no_scene() {
    let mut checked = 0;
    let presets: Vec<&str> = Version::presets().map(|(name, _)| name).collect();
    for &feature in Feature::ALL {
        let refused = presets.iter().rev().find_map(|base| {
            let version = Version::parse(base).expect("a preset");
            let on = !version.rules.has(feature.on());
            let error = Version::check_changes(base, &[(feature, on)]).err()?;
            matches!(error, ChangeError::NoEffect { .. }).then_some((version, on, error))
        });
        let Some((version, on, error)) = refused else { continue };
        checked += 1;
        let rule = if on { feature.on() } else { feature.off() };
        let changed = Version { rules: version.rules.with(rule), ..version.clone() };
        for scene in scenes_without() {
            let difference = RUNS.difference(scene, &version, &changed);
            assert_eq!(difference, None, "{error}, but {}", scene.name);
        }
    }
    let in_need = Feature::ALL.iter().filter(|feature| !feature.needs().is_empty()).count();
    assert!(
        checked + 1 >= in_need,
        "{checked} of {in_need}: only one is refused for another reason throughout"
    );
}

#[test]
fn a_name_shows_in_no_scene() {
    let names: BTreeSet<&str> = SCENES.iter().map(|scene| scene.name).collect();
    assert_eq!(names.len(), SCENES.len(), "each has its own name");
    let version = Version::parse("linux-6.1").expect("a version");
    let renamed = Version { name: "linux by another name".to_owned(), ..version.clone() };
    for scene in SCENES {
        let (first, second) = (scene.run(&version), scene.run(&renamed));
        assert_eq!(
            first.difference(&second),
            None,
            "{}: what differs is nothing that is decided",
            scene.name
        );
    }
}
