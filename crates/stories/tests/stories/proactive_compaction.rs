//! kcompactd makes blocks of 2 MiB by itself where free memory is fragmented (5.9). Small files with 206 MiB in a guest
//! of 6.1 migrate 6,875 pages, and 1,952 and 3,320 with `vm.compaction_proactiveness=0`. There
//! `compact_daemon_migrate_scanned` is 14,081 of 48,222, in 6.12 it is all of it.

use kernel::Filesystem;
use mm::base::sysctl::{Sysctl, Sysctls};
use sim::{Program, SimResult, SimRun, machines};
use units::Bytes;
use workload::Workload;

use crate::ended;

fn small_files(kernel: &str, proactiveness: u64) -> SimResult {
    let kernel = mm::Version::parse(kernel).expect("a preset");
    let machine = "guest-uml+cpu_percent=400";
    let (hardware, layout) = machines::build(machine, Bytes(100 << 20), &kernel).expect("a machine");
    let params = [("processes", "3"), ("files", "3000"), ("file_size", "16k"), ("loops", "2")];
    let workload = Workload::new("small-files", params).expect("its parameters");
    let mut sysctls = Sysctls::default();
    sysctls.set(Sysctl::CompactionProactiveness, proactiveness);
    let spec = SimRun {
        sysctls,
        filesystem: Filesystem::Ext4,
        ..SimRun::new(Program::Workload(workload), kernel, hardware, layout)
    };
    ended(&spec)
}

/// Frames that the migrate scanner looked at: all, and those that kcompactd's counter has.
fn scanned(result: &SimResult) -> [u64; 2] {
    ["compact_migrate_scanned", "compact_daemon_migrate_scanned"].map(|name| result.vmstat[name])
}

#[test]
fn kcompactd_works_by_itself_as_eagerly_as_it_is_told_and_counts_that_since_6_12() {
    let [all, daemon] = scanned(&small_files("linux-6.1", 0));
    assert!(all == daemon && all > 0, "nobody compacts but kcompactd, which was woken: {all}, {daemon}");
    let [all, daemon] = scanned(&small_files("linux-6.1", 100));
    assert!(all > 2 * daemon, "what it does by itself it does not count: {all}, {daemon}");
    let [all, daemon] = scanned(&small_files("linux-6.12", 100));
    assert!(all == daemon && all > 0, "{all}, {daemon}");
    let [all, daemon] = scanned(&small_files("linux-5.7", 100));
    assert!(all == daemon, "it is woken alone: {all}, {daemon}");
}
