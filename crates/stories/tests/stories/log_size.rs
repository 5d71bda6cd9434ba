//! The size of XFS's log decides how many inodes cannot be freed (MECHANISMS-6X 8.3).

use kernel::Filesystem;
use sim::run::SimResult;
use sim::{Program, SimRun, machines};
use units::Bytes;
use workload::Workload;

use crate::ended;

/// One task makes 60,000 files of 4 KiB in a guest of 256 MB, as `b_xfs_log64` of the reference does, and as
/// fast (3100 a second; the guest is emulated, so how fast depends on its host).
fn run_guest(kernel: &str, log: &str) -> SimResult {
    let kernel = mm::Version::parse(kernel).expect("a preset");
    let machine = format!("guest-tcg+cpu_percent=350+log={log}");
    let (hardware, layout) = machines::build(&machine, Bytes(256 << 20), &kernel).expect("a machine");
    let params = [
        ("processes", "1"),
        ("per_directory", "1000"),
        ("files", "60000"),
        ("loops", "1"),
        ("names", "off"),
        ("delete", "off"),
    ];
    let program = Program::Workload(Workload::new("small-files", params).expect("its parameters"));
    let filesystem = Filesystem::Xfs;
    let spec = SimRun { filesystem, ..SimRun::new(program, kernel, hardware, layout) };
    ended(&spec)
}

/// Reference: an OOM kill on 6.1 and 6.12 with 64 MiB, with 44,400 and 45,300 inodes in memory; none with 16.
#[test]
fn a_guest_of_256_mb_is_out_of_memory_with_a_log_of_64_mib_and_not_with_one_of_16() {
    for kernel in ["linux-6.1", "linux-6.12"] {
        let [large, small] = ["64M", "16M"].map(|log| run_guest(kernel, log));
        let found = (!large.oom_kills.is_empty(), small.oom_kills.len());
        assert_eq!(found, (true, 0), "{kernel}");
        let inodes = large.vmstat["nr_dirtied"];
        assert!((40_000..60_000).contains(&inodes), "{kernel}: {inodes} files before the kill");
    }
}
