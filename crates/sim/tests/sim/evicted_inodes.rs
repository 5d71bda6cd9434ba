//! Reclaimers that wait for inodes of XFS, up to 5.8: for a lock or a write, and not for each other's looks.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use kernel::{Filesystem, WaitReason};
use pagetide_sim::run::run;
use pagetide_sim::{Program, SimRun, machines};
use units::Bytes;
use workload::Workload;

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
    let spec = SimRun { filesystem, ..SimRun::new(program, kernel, hardware, layout) };
    let result = run(&spec, Arc::new(AtomicBool::new(false)), |_| {}).expect("it ends");
    let waits = result.stalls.iter().filter(|stall| stall.reason == WaitReason::InodeReclaim);
    let count: u64 = waits.map(|stall| stall.count).sum();
    assert!((1..FILES).contains(&count), "{count} waits for inodes of {FILES} files");
}
