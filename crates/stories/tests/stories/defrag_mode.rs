//! `vm.defrag_mode`: requests of the kernel come into blocks of movable pages only when nothing else helps, and
//! kcompactd makes pageblocks whole (MECHANISMS-510-72 1.7).

use kernel::Filesystem;
use mm::base::sysctl::{Sysctl, Sysctls};
use sim::{Program, SimResult, SimRun, machines};
use units::Bytes;
use workload::Workload;

use crate::ended;

/// Many small files beside page cache that is written back, in 64 MiB.
fn small_files(mode: u64) -> SimResult {
    let kernel = mm::Version::parse("linux-7.2").expect("a preset");
    let (hardware, layout) = machines::build("evo-ssd", Bytes(64 << 20), &kernel).expect("a machine");
    let params = [("processes", "3"), ("files", "3000"), ("loops", "3")];
    let workload = Workload::new("small-files", params).expect("its parameters");
    let mut sysctls = Sysctls::default();
    sysctls.set(Sysctl::DefragMode, mode);
    let spec = SimRun {
        sysctls,
        filesystem: Filesystem::Ext4,
        ..SimRun::new(Program::Workload(workload), kernel, hardware, layout)
    };
    ended(&spec)
}

#[test]
fn in_defrag_mode_types_mix_in_fewer_blocks_and_the_program_ends_all_the_same() {
    let [off, on] = [0, 1].map(small_files);
    let of = |result: &SimResult, name: &str| result.vmstat[name];
    let mixed = [&off, &on].map(|result| of(result, "extfrag_events"));
    assert!(mixed[0] > 0 && mixed[1] < mixed[0], "{mixed:?} times types were mixed");
    let woken = [&off, &on].map(|result| of(result, "compact_daemon_wake"));
    assert!(woken[1] > woken[0], "kswapd works for whole blocks: kcompactd was woken {woken:?} times");
    assert!(on.vmstat.contains_key("nr_free_pages_blocks"));
}
