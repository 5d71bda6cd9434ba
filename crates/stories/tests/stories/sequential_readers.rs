//! `sequential-readers` through the whole simulator: several disks, and when the order of pages in memory
//! matters to them.

use kernel::Filesystem;
use sim::run::{Checks, verify_watched};
use sim::{DeviceCounters, Program, SimResult, SimRun, Statistics, machines};
use std::cell::RefCell;
use std::rc::Rc;
use units::{Bytes, Nanos};
use workload::Workload;

const MIB: u64 = 1 << 20;

/// A run on `machine` with 64 MiB, and what its disks did.
struct Played {
    result: SimResult,
    statistics: Statistics,
    disks: Vec<DeviceCounters>,
}

fn play(machine: &str, kernel: &str, params: &[(&str, &str)]) -> Played {
    play_on(Filesystem::Ext4, machine, kernel, params)
}

fn play_on(filesystem: Filesystem, machine: &str, kernel: &str, params: &[(&str, &str)]) -> Played {
    let kernel = mm::Version::parse(kernel).expect("a kernel");
    let (hardware, layout) = machines::build(machine, Bytes(64 * MIB), &kernel).expect("a machine");
    let workload = Workload::new("sequential-readers", params.iter().copied()).expect("its parameters");
    let program = Program::Workload(workload);
    let spec = SimRun {
        filesystem,
        sample_period: Nanos::from_secs(1),
        ..SimRun::new(program.clone(), kernel, hardware.clone(), layout)
    };
    let disks = Rc::new(RefCell::new(Vec::new()));
    let seen = Rc::clone(&disks);
    let devices = 0..u16::try_from(hardware.devices.len()).expect("few");
    let watch = move |kernel: &kernel::Kernel<sim::Sim, _>| {
        let counters = devices.clone().filter_map(|device| kernel.machine().device_counters(device));
        *seen.borrow_mut() = counters.collect();
    };
    let (result, statistics) =
        verify_watched(&spec, Checks::Spread(16), watch, |system| program.run(system)).expect("it ends");
    let disks = disks.borrow().clone();
    Played { result, statistics, disks }
}

fn seconds(played: &Played) -> f64 {
    played.result.outcome.metrics["read_seconds"]
}

const FOUR: [(&str, &str); 2] = [("readers", "4"), ("file", "8M")];

/// ```text
///   64 MiB of a file: 12 pages | indirect: 1024 pages | double indirect -> 15 indirect: the rest
/// ```
/// 17 pages of each file's disk are read, where ext4 reads a block of extents. More than one window needs each
/// of them, so they become active, as far as they are not in a CPU's batch any more, and none is evicted.
#[test]
fn readers_of_ext3_read_indirect_blocks_which_become_active() {
    let params = [FOUR[0], ("file", "64M"), ("prepare", "laid-out")];
    let play = |filesystem| play_on(filesystem, "s390-fcp", "linux-2.6.32", &params);
    let (ext3, ext4) = (play(Filesystem::Ext3), play(Filesystem::Ext4));
    let read = |played: &Played| played.disks.iter().map(|disk| disk.read_bytes.0).sum::<u64>() / 4096;
    assert_eq!(read(&ext3) - read(&ext4), 4 * (17 - 1));
    let active = |played: &Played| played.result.vmstat["nr_active_file"];
    assert!(active(&ext3) >= active(&ext4) + 14, "{} and {}", active(&ext3), active(&ext4));
}

#[test]
fn the_same_run_is_the_same_run_and_another_seed_is_not() {
    let run = |machine| play(machine, "linux-2.6.32", &FOUR).statistics;
    assert_eq!(run("s390-fcp"), run("s390-fcp"));
    let seeds = |seed| {
        let kernel = mm::Version::parse("linux-2.6.32").expect("a preset");
        let (hardware, layout) = machines::build("s390-fcp", Bytes(64 * MIB), &kernel).expect("a machine");
        let workload = Workload::new("sequential-readers", FOUR).expect("its parameters");
        let spec = SimRun { seed, ..SimRun::new(Program::Workload(workload), kernel, hardware, layout) };
        let stop = std::sync::Arc::default();
        sim::run::run(&spec, stop, |_| {}).expect("it ends").outcome
    };
    assert_eq!(seeds(7), seeds(7));
    assert_ne!(seeds(7), seeds(8), "readers begin at other times");
}

#[test]
fn each_reader_has_its_own_disk_which_works_beside_the_others() {
    let params = |disks| [&FOUR[..], &[("disks", disks)]].concat();
    let (one, four) =
        (play("s390-fcp", "linux-2.6.32", &params("1")), play("s390-fcp", "linux-2.6.32", &params("4")));
    let bytes = |played: &Played| -> Vec<(u64, u64)> {
        let moved = |disk: &DeviceCounters| (disk.read_bytes.get() / MIB, disk.write_bytes.get() / MIB);
        played.disks.iter().map(moved).filter(|&moved| moved != (0, 0)).collect()
    };
    assert_eq!(bytes(&one), [(32, 32)]);
    assert_eq!(bytes(&four), [(8, 8); 4]);
    // 100 MB/s each, and the readers begin within 2 ms.
    let (alone, shared) = (8.0 * 1.048_576 / 100.0, 32.0 * 1.048_576 / 100.0);
    assert!(seconds(&four) > alone && seconds(&four) < alone * 1.2, "{}", seconds(&four));
    assert!(seconds(&one) > shared && seconds(&one) < shared * 1.2, "{}", seconds(&one));
}

#[test]
fn the_adapter_that_all_disks_share_is_the_limit_of_sixteen() {
    let sixteen =
        play("s390-fcp", "linux-6.12", &[("readers", "16"), ("file", "8M"), ("prepare", "laid-out")]);
    let least = 128.0 * 1.048_576 / 1400.0;
    assert!(seconds(&sixteen) > least && seconds(&sixteen) < least * 1.4, "{}", seconds(&sixteen));
    assert_eq!(sixteen.disks.iter().filter(|disk| disk.reads > 0).count(), 16);
    assert_eq!(sixteen.disks.iter().map(|disk| disk.writes).sum::<u64>(), 0, "they were there before");
}

/// With e084b a cold reader gets ascending frames from its per-CPU list, without it descending ones: no
/// two of a request are adjacent. Whether that matters is the device's affair.
#[test]
fn the_order_of_pages_matters_only_to_a_disk_that_pays_for_segments() {
    let params = [&FOUR[..], &[("prepare", "laid-out")]].concat();
    let run = |machine, kernel| play(machine, kernel, &params);
    let segments = |played: &Played| played.disks.iter().map(|disk| disk.segments).sum::<u64>();
    let pages = 32 * MIB / units::PAGE_SIZE;

    let free = ["linux-2.6.32", "linux-2.6.32-pcp-cold-order"].map(|kernel| run("s390-fcp", kernel));
    assert!(segments(&free[0]) < pages / 4, "{} of {pages} pages", segments(&free[0]));
    assert!(segments(&free[1]) > pages / 2, "{} of {pages} pages", segments(&free[1]));
    assert!((seconds(&free[0]) - seconds(&free[1])).abs() < 0.001);

    let dear =
        ["linux-2.6.32", "linux-2.6.32-pcp-cold-order"].map(|kernel| run("s390-fcp+segment=20us", kernel));
    assert!(seconds(&dear[1]) > seconds(&dear[0]) * 1.2, "{} and {}", seconds(&dear[1]), seconds(&dear[0]));
}

/// The workload was added with files of any size on machines of any size.
#[test]
fn a_file_that_is_no_whole_record_and_a_single_reader_are_read_to_the_end() {
    let params = [("readers", "1"), ("file", "1000001"), ("record", "100k")];
    let played = play("vm-2cpu", "linux-6.1", &params);
    let kib = 1_000_001.0 / 1024.0;
    let metrics = &played.result.outcome.metrics;
    let close = (metrics["throughput_kb_per_sec"] * metrics["read_seconds"] / kib - 1.0).abs() < 1e-9;
    assert!(close, "{metrics:?}");
    assert_eq!(metrics["slowest_reader_seconds"], metrics["fastest_reader_seconds"]);
    let phases: Vec<&str> = played.result.phases.iter().map(|phase| phase.name.as_str()).collect();
    assert_eq!(phases, ["files_written", "caches_dropped", "read_done"]);
}
