//! Inodes of XFS that were evicted and are still in memory: reclaimers that wait for them up to 5.8 (for a lock or a
//! write, and not for each other's looks), and tasks that find them.

use kernel::{Filesystem, WaitReason};
use sim::run::{Checks, verify};
use sim::{Program, SimRun, machines};
use units::Bytes;
use workload::Workload;

use crate::ended;

/// Whoever looked at a locked group woke all others that waited for one, and these looked again: a run of
/// 960,000 files had 107 million waits.
#[test]
fn who_finds_a_group_of_inodes_locked_wakes_nobody() {
    const FILES: u64 = 2 * 20_000;
    let kernel = mm::Version::parse("linux-5.3").expect("a preset");
    let (hardware, layout) = machines::build("evo-ssd", Bytes(96 << 20), &kernel).expect("a machine");
    let params = [("files", "20000"), ("loops", "2"), ("delete", "off")];
    let program = Program::Workload(Workload::new("small-files", params).expect("its parameters"));
    let filesystem = Filesystem::Xfs;
    let spec = SimRun { filesystem, ..SimRun::new(program.clone(), kernel, hardware, layout) };
    let result = ended(&spec);
    let waits = result.stalls.iter().filter(|stall| stall.reason == WaitReason::InodeReclaim);
    let count: u64 = waits.map(|stall| stall.count).sum();
    assert!((1..FILES).contains(&count), "{count} waits for inodes of {FILES} files");
}

/// Two tasks brought in one inode. While the second waited for memory, the first had no more use for it; what the
/// second was handed then was evicted (worlds 3240 and 4558 of the model).
#[test]
fn an_inode_that_was_evicted_while_a_look_up_waited_for_memory_is_in_use_again() {
    let kernel = mm::Version::parse("linux-4.19").expect("a preset");
    let (hardware, layout) = machines::build("vm-2cpu+cpus=4", Bytes(8 << 20), &kernel).expect("a machine");
    let params = [
        ("file_size", "1"),
        ("per_directory", "9"),
        ("pin_from", "908k"),
        ("pin_step", "1988k"),
        ("pin_to", "4568k"),
        ("processes", "21"),
    ];
    let workload = Workload::new("inode-storm", params).expect("its parameters");
    let program = Program::Workload(workload);
    let swap = "zram:15M,disk:1M".parse().expect("areas");
    let filesystem = Filesystem::Xfs;
    let spec = SimRun { swap, filesystem, ..SimRun::new(program.clone(), kernel, hardware, layout) };
    verify(&spec, Checks::EveryEvent, |system| program.run(system)).expect("no invariant is broken");
}
