//! Attribution of waits in whole runs: nothing is lost and nothing told twice. Which are futile is told
//! in scenes, beside the mechanism.

use std::collections::BTreeMap;

use kernel::section::{Shrinker, Site, Whom};
use kernel::{Filesystem, WaitReason};
use sim::{Ended, Program, SimResult, SimRun, WaitKind, Within, machines};
use units::Bytes;
use workload::Workload;

use crate::ended;

const MIB: u64 = 1 << 20;

fn play(kernel: &str) -> SimResult {
    let kernel = mm::Version::parse(kernel).expect("a kernel");
    let (hardware, layout) = machines::build("s390-fcp", Bytes(64 * MIB), &kernel).expect("a machine");
    let params = [("readers", "8"), ("file", "16M")];
    let workload = Workload::new("sequential-readers", params).expect("its parameters");
    let spec = SimRun::new(Program::Workload(workload), kernel, hardware, layout);
    ended(&spec)
}

#[test]
fn each_wait_is_in_one_sum_and_in_the_stall_of_its_task() {
    for kernel in ["linux-2.6.32", "linux-6.1"] {
        let result = play(kernel);
        let mut sums: BTreeMap<_, (u64, u64)> = BTreeMap::new();
        for waits in &result.waits {
            assert!(waits.phase <= result.phases.len());
            assert!(waits.longest <= waits.spent && waits.count > 0, "{waits:?}");
            let counted: u64 = waits.lengths.iter().map(|&count| u64::from(count)).sum();
            assert_eq!(counted, waits.count, "{waits:?}");
            if waits.futile {
                let kind = WaitKind::of(waits.reason);
                assert_eq!(waits.ended, Ended::TimedOut);
                assert!(matches!(kind, WaitKind::Writes | WaitKind::Reclaim), "{waits:?}");
            }
            let sum = sums.entry((waits.task, waits.reason)).or_default();
            *sum = (sum.0 + waits.count, sum.1 + waits.spent.get());
        }
        let idle = |reason| WaitKind::of(reason) == WaitKind::Idle;
        sums.retain(|&(_, reason), _| !idle(reason));
        let stalls: BTreeMap<_, _> = (result.stalls.iter())
            .map(|stall| ((stall.task, stall.reason), (stall.count, stall.total.get())))
            .collect();
        assert_eq!(sums, stalls, "{kernel}");
        assert!(result.waits.iter().any(|waits| idle(waits.reason)), "idleness is told, too");
    }
}

/// A run of `small-files` on XFS in a memory that is always full.
fn create(kernel: &str) -> SimResult {
    let kernel = mm::Version::parse(kernel).expect("a kernel");
    let (hardware, layout) = machines::build("evo-ssd", Bytes(64 * MIB), &kernel).expect("a machine");
    let params = [("processes", "4"), ("files", "3000"), ("loops", "3"), ("delete", "off")];
    let program = Program::Workload(Workload::new("small-files", params).expect("its parameters"));
    let filesystem = Filesystem::Xfs;
    let spec = SimRun { filesystem, ..SimRun::new(program, kernel, hardware, layout) };
    ended(&spec)
}

/// Seconds of all tasks in the sections, or the waits in them, that are of interest.
fn seconds(times: impl Iterator<Item = units::Nanos>) -> f64 {
    times.map(|time| time.get()).sum::<u64>() as f64 / 1e9
}

#[test]
fn what_is_told_of_a_section_is_no_more_than_the_section() {
    let result = create("linux-5.7");
    let mut times: BTreeMap<_, u64> = BTreeMap::new();
    for time in &result.sections {
        assert!(time.longest <= time.spent && time.count > 0 && time.within.whom.is_none(), "{time:?}");
        *times.entry((time.task, time.within)).or_default() += time.spent.get();
    }
    let mut parts: BTreeMap<_, u64> = BTreeMap::new();
    for waits in result.waits.iter().filter(|waits| waits.within.site.is_some()) {
        *parts.entry((waits.task, Within { whom: None, ..waits.within })).or_default() += waits.spent.get();
    }
    for (&(task, within), &time) in times.iter().filter(|((_, within), _)| within.shrinker.is_some()) {
        assert!(parts.get(&(task, within)).is_none_or(|&waited| waited <= time), "{task:?} {within:?}");
        *parts.entry((task, Within { shrinker: None, ..within })).or_default() += time;
    }
    assert!(parts.len() > 5, "many wait");
    for (key, part) in parts {
        assert!(part <= times[&key], "{key:?}: {part} of {}", times[&key]);
    }
    let stalls =
        result.sections.iter().filter(|time| time.within == STALL).map(|time| time.count).sum::<u64>();
    let counted = |name: &str| result.vmstat[name] - result.vmstat_before[name];
    let counted: u64 =
        ["dma", "dma32", "normal", "movable"].map(|zone| counted(&format!("allocstall_{zone}"))).iter().sum();
    assert!((1..=counted).contains(&stalls), "{stalls} stalls, and {counted} rounds: some runs have several");
}

const STALL: Within = Within { site: Some(Site::AllocationStall), shrinker: None, whom: None };

/// Source 3: allocation stalls wait for inodes that are written inside the shrinker; where reclaim passes
/// such inodes by, nobody does.
#[test]
fn allocation_stalls_wait_for_inodes_in_the_shrinker_and_with_both_changes_nobody_does() {
    for (kernel, waits_for_inodes) in
        [("linux-5.7", true), ("linux-5.7+pin-inode-cluster+async-inode-reclaim", false)]
    {
        let result = create(kernel);
        let stalled =
            seconds(result.sections.iter().filter(|time| time.within == STALL).map(|time| time.spent));
        let inodes = || result.waits.iter().filter(|waits| waits.reason == WaitReason::InodeReclaim);
        for waits in inodes() {
            assert_eq!(waits.within.shrinker, Some(Shrinker::SuperBlock), "{waits:?}");
            assert!(waits.within.whom.is_some(), "{waits:?}");
        }
        let in_stalls = inodes().filter(|waits| waits.within.site == STALL.site);
        let waited = seconds(in_stalls.map(|waits| waits.spent));
        if waits_for_inodes {
            assert!(waited > 0.5 * stalled, "{waited} of {stalled} s");
            let whom: std::collections::BTreeSet<_> = inodes().map(|waits| waits.within.whom).collect();
            assert!(whom.contains(&Some(Whom::OwnInodeWrite)), "{whom:?}");
            assert!(whom.contains(&Some(Whom::GroupLock(Some(Site::Kswapd)))), "{whom:?}");
        } else {
            assert_eq!(inodes().count(), 0);
            assert!(stalled < 0.1, "{stalled} s, that is computing");
        }
    }
}
