//! The race and the pause of source 1, through the whole simulator: a request reclaims, others take the
//! pages, and it sleeps for a write that nobody makes; and what was or could have been done about it.
//!
//! ```text
//!   CPU 0   reclaims 32 pages ----------> finds none -> pause, 20 ms -> again
//!   CPU 1                     takes them
//! ```
//! The readers of these tests wait for nothing but memory and their disks.

use kernel::{Filesystem, WaitReason};
use mm::base::layout::{MemoryLayout, NodeLayout, ZoneKind, ZoneLayout};
use pagetide_sim::run::{Checks, verify};
use pagetide_sim::{DeviceModel, Hardware, Program, SimResult, SimRun};
use units::{Bytes, Nanos};
use workload::Workload;

const MIB: u64 = 1 << 20;

/// Two readers, a CPU and a disk for each, that read faster than kswapd can free memory for them: one zone
/// of so many MiB.
fn play(kernel: &str, mib: u64) -> SimResult {
    let kernel = mm::Version::parse(kernel).expect("a kernel");
    let zone = ZoneLayout::new(ZoneKind::Dma, Bytes(mib * MIB).to_pages_floor());
    let layout = MemoryLayout { nodes: vec![NodeLayout { zones: vec![zone] }], cpus: 2, huge_pages: false };
    let disk = DeviceModel::INSTANT;
    let hardware = Hardware { hz: 100, ..Hardware::with_cpus(2).with_device(disk.clone()).with_device(disk) };
    let file = format!("{}M", mib);
    let params = [("readers", "2"), ("file", &file)];
    let workload = Workload::new("sequential-readers", params).expect("its parameters");
    let spec = SimRun {
        filesystem: Filesystem::Ext4,
        ..SimRun::new(Program::Workload(workload.clone()), kernel, hardware, layout)
    };
    verify(&spec, Checks::AtTheEnd, |system| async move { workload.run(system).await }).expect("it ends").0
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

#[test]
fn print_it() {
    for readers in [64, 128, 256] {
        for kernel in [
            "linux-2.6.32",
            "linux-2.6.32+pressure-wait",
            "linux-2.6.32+wait-iff-congested",
            "linux-2.6.32+drain-after-failed-reclaim",
            "linux-2.6.32+reclaim-retry",
          
        ] {
            let run = play(kernel, readers);
            println!("{readers} {kernel}: {:?} {:?}", run.simulated, run.outcome.metrics.get("throughput_kb_per_sec"));
            for name in [ENTRIES, FAILED, IN_VAIN, PAUSES, WAITS, "pgscan_kswapd", "pgscan_direct", "pgsteal_kswapd", "pgsteal_direct", "pageoutrun", "oom_kill", "kswapd_skip_congestion_wait", "allocstall_movable"] {
                println!("   {name} {}", count(&run, name));
            }
            for reason in [WaitReason::Congestion, WaitReason::PressureWait, WaitReason::PageRead] {
                println!("   {reason:?} {:?}", slept(&run, reason));
            }
        }
    }
}
