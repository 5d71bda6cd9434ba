//! The race and the pause of source 1, through the whole simulator: a request reclaims, others take the
//! pages, and it sleeps for a write that nobody makes; and what was or could have been done about it.
//!
//! ```text
//!   CPU 0   reclaims 32 pages ----------> finds none -> pause, 20 ms -> again
//!   CPU 1                     takes them
//! ```
//! The readers of these tests wait for nothing but memory and their disks.

use kernel::{Filesystem, Kernel, KernelConfig, Machine, WaitReason};
use mm::base::gfp::Gfp;
use mm::base::layout::{HugeSupport, MemoryLayout, NodeLayout, ZoneKind, ZoneLayout};
use mm::base::sysctl::Sysctls;
use mm::version::rules::{DeviceCongestion, Rule};
use sim::run::{Checks, verify};
use sim::{DeviceModel, Hardware, Program, RunError, SimResult, SimRun, SimTrace, Simulation};
use units::{Bytes, Nanos, Order, Seed};
use workload::Workload;

const MIB: u64 = 1 << 20;

/// Two readers, a CPU and a disk for each, that read faster than kswapd can free memory for them: one zone
/// of so many MiB.
fn play(kernel: &str, mib: u64) -> SimResult {
    play_version(mm::Version::parse(kernel).expect("a kernel"), mib, DeviceModel::INSTANT)
}

fn play_version(kernel: mm::Version, mib: u64, disk: DeviceModel) -> SimResult {
    let zone = ZoneLayout::new(ZoneKind::Dma, Bytes(mib * MIB).to_pages_floor());
    let layout =
        MemoryLayout { nodes: vec![NodeLayout { zones: vec![zone] }], cpus: 2, huge_pages: HugeSupport::Off };
    let hardware = Hardware { hz: 100, ..Hardware::with_cpus(2).with_device(disk.clone()).with_device(disk) };
    let file = format!("{mib}M");
    let params = [("readers", "2"), ("file", &file)];
    let program = Program::Workload(Workload::new("sequential-readers", params).expect("its parameters"));
    let spec =
        SimRun { filesystem: Filesystem::Ext4, ..SimRun::new(program.clone(), kernel, hardware, layout) };
    verify(&spec, Checks::AtTheEnd, |system| program.run(system)).expect("it ends").0
}

/// What happened since the program began.
fn count(run: &SimResult, name: &str) -> u64 {
    run.vmstat[name] - run.vmstat_before[name]
}

fn slept(run: &SimResult, reason: WaitReason) -> (u64, Nanos, Nanos) {
    let stalls = run.stalls.iter().filter(|stall| stall.reason == reason);
    stalls.fold((0, Nanos(0), Nanos(0)), |(count, total, longest), stall| {
        (count + stall.count, Nanos(total.0 + stall.total.0), longest.max(stall.longest))
    })
}

const ENTRIES: &str = "perf_count_pages_direct_reclaim";
const FAILED: &str = "perf_count_failed_pages_direct_reclaim";
const IN_VAIN: &str = "perf_count_failed_pages_direct_reclaim_but_progress";
const PAUSES: &str = "perf_count_call_congestion_wait_from_alloc_pages_slowpath";
const WAITS: &str = "perf_count_congestion_wait";

fn throughput(run: &SimResult) -> f64 {
    run.outcome.metrics["throughput_kb_per_sec"]
}

/// From this size on a CPU keeps up to 186 free pages to itself: what six runs of reclaim free.
const MIB_OF_RACE: u64 = 512;

#[test]
fn a_task_that_freed_pages_finds_none_and_sleeps_for_a_write_that_nobody_makes() {
    let run = play("linux-2.6.32", MIB_OF_RACE);
    let [entries, failed, in_vain] = [ENTRIES, FAILED, IN_VAIN].map(|name| count(&run, name));
    assert!(in_vain * 10 > entries && entries > in_vain, "{in_vain} of {entries}");
    assert_eq!(failed, in_vain, "there always was something to free");
    // But for slabs, which a request that does not try again asks for first, in the order that suits the number of
    // CPUs (`calculate_order`).
    let pauses = count(&run, PAUSES);
    assert!(pauses <= failed && failed < pauses + 10, "each failure is a pause: {failed}, {pauses}");
    let (sleeps, total, longest) = slept(&run, WaitReason::Congestion);
    let waits = count(&run, WAITS);
    assert!(sleeps == waits || sleeps + 1 == waits, "one may go on when the run ends: {sleeps} of {waits}");
    // 100 ticks a second: two of them, begun somewhere in the first one.
    assert!(longest > Nanos::from_millis(19) && longest <= Nanos::from_millis(20), "{longest}");
    assert!(total > Nanos::from_millis(100), "{total}");
    assert_eq!(count(&run, "oom_kill"), 0);
}

#[test]
fn who_waits_for_the_zone_instead_goes_on_as_soon_as_somebody_has_freed_enough() {
    let (before, after) =
        (play("linux-2.6.32", MIB_OF_RACE), play("linux-2.6.32+pressure-wait", MIB_OF_RACE));
    assert!(count(&after, IN_VAIN) > 100, "the race is there as before");
    assert_eq!(count(&after, WAITS), 0);
    let (_, asleep, _) = slept(&before, WaitReason::Congestion);
    let (sleeps, awaited, longest) = slept(&after, WaitReason::PressureWait);
    assert!(sleeps >= count(&after, PAUSES));
    assert!(longest < Nanos::from_millis(10), "{longest}: none ran to its end");
    assert!(awaited.0 * 10 < asleep.0, "{awaited} instead of {asleep}");
    assert!(throughput(&after) > 1.2 * throughput(&before));
}

#[test]
fn later_kernels_do_not_pause_for_nothing_or_find_the_pages_first() {
    let before = play("linux-2.6.32", MIB_OF_RACE);
    let iff = play("linux-2.6.32+wait-iff-congested", MIB_OF_RACE);
    assert!(count(&iff, PAUSES) > 100 && count(&iff, WAITS) == 0, "no device is congested");
    let drains = play("linux-2.6.32+drain-after-failed-reclaim", MIB_OF_RACE);
    assert!(count(&drains, IN_VAIN) * 10 < count(&before, IN_VAIN), "they were on the lists of CPUs");
    let retries = play("linux-2.6.32+reclaim-retry", MIB_OF_RACE);
    assert!(count(&retries, IN_VAIN) > 100 && count(&retries, PAUSES) == 0);
    for run in [iff, drains, retries] {
        assert!(throughput(&run) > 1.2 * throughput(&before));
    }
}

/// The readers write their files first.
#[test]
fn a_write_that_is_complete_ends_the_pause_where_queues_are_watched() {
    let waits = |rule| {
        let mut version = mm::Version::parse("linux-2.6.32").expect("a kernel");
        version.rules = version.rules.with(Rule::DeviceCongestion(rule));
        let run = play_version(version, 64, DeviceModel::NVME);
        let (sleeps, total, _) = slept(&run, WaitReason::Congestion);
        assert!(sleeps > 0);
        total.0 / sleeps
    };
    let (marked, never) = (waits(DeviceCongestion::Marked), waits(DeviceCongestion::Never));
    assert!(marked * 2 < never, "{marked} ns and {never} ns");
}

/// A kernel thread takes blocks until there are none, with nobody there to be killed: how many pages are left.
fn left_by(kernel: &str, gfp: Gfp, order: u8) -> u64 {
    let zone = ZoneLayout::new(ZoneKind::Normal, Bytes(16 * MIB).to_pages_floor());
    let config = KernelConfig {
        version: mm::Version::parse(kernel).expect("a kernel"),
        sysctls: Sysctls::default(),
        layout: MemoryLayout {
            nodes: vec![NodeLayout { zones: vec![zone] }],
            cpus: 1,
            huge_pages: HugeSupport::Off,
        },
        filesystem: Filesystem::Ext4,
        xfs_log_size: Bytes(64 * MIB),
        gathers: 16,
        readahead_pages: 32,
        policy: None,
        seed: Seed(1),
    };
    let mut simulation = Simulation::new(Hardware::with_cpus(1)).expect("a machine");
    let linux = Kernel::boot(simulation.machine(), config, SimTrace::default()).expect("it boots");
    let thread = linux.clone();
    let task = simulation.machine().spawn("thread", None, async move {
        while thread.alloc_pages(None, gfp, Order(order)).await.is_some() {}
    });
    let ended = simulation.run_until_task_done(task, Nanos::from_secs(100));
    // With nobody to kill, a request that would have somebody killed ends in a panic.
    let ends = matches!(ended, Ok(_) | Err(RunError::Halted { .. }));
    assert!(ends, "{kernel}, {gfp:?}, order {order}: {}", ended.expect_err("just seen"));
    linux.mem(|mem| mem.core.alloc.free_pages().0)
}

#[test]
fn with_nothing_to_reclaim_a_request_of_any_size_ends() {
    for change in
        ["", "+pressure-wait", "+wait-iff-congested", "+drain-after-failed-reclaim", "+reclaim-retry"]
    {
        let kernel = format!("linux-2.6.32{change}");
        for order in [0, 1, 3, 4, 9] {
            for gfp in [Gfp::KERNEL, Gfp::KERNEL | Gfp::RETRY_MAYFAIL, Gfp::KERNEL | Gfp::NORETRY] {
                // A large block must leave half of the mark at the next smaller order, and so on.
                let left = left_by(&kernel, gfp, order);
                assert!(left < 1024, "{kernel}, {gfp:?}, order {order}: {left}");
            }
        }
        assert!(left_by(&kernel, Gfp::NOFS | Gfp::NORETRY, 0) < 256);
    }
}
