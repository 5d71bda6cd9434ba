//! Regression: the flusher slept for memory on top of the pages that would have been that memory.
//!
//! 1. Nearly all memory that could be reclaimed is dirty, and less is free than the min marks.
//! 2. Whoever writes it back starts writeback of the pages of a file that grew, and holds the request
//!    back for more pages to come (the plug).
//! 3. The growth of the file is logged on XFS, which takes memory: the task goes round in the slow path,
//!    and nobody else can clean a page, as all are in the plug.
//!
//! A task that goes to sleep sends its plug off first, as `schedule` does.

use kernel::{Filesystem, Kernel, KernelConfig, Machine, Process, WaitReason};
use mm::MemcgId;
use mm::base::layout::{HugeSupport, MemoryLayout, NodeLayout, ZoneKind, ZoneLayout};
use mm::base::sysctl::{Sysctl, Sysctls};
use sim::{DeviceModel, Hardware, SimKernel, SimTrace, Simulation};
use units::{Bytes, Nanos, Pages, Seed};

const PAGE: u64 = 4096;
const MACHINE_PAGES: u64 = 2048;
/// One request's worth: all of it fits into the plug.
const DIRTY_PAGES: u64 = 120;

/// A task in the place of the flusher, which is left to sleep: `fsync` goes the same way.
async fn sync_without_memory(linux: SimKernel) {
    let process = linux.process_start("writer", MemcgId::ROOT).await.expect("all memory is free");
    let file = linux.open(&process, "file", true).await.expect("memory");
    // The first page is logged with the file itself; once that is written, growth is logged anew.
    linux.write(&process, &file, 0, PAGE).await.expect("memory");
    linux.fsync(&process, &file).await.expect("it lives");
    linux.write(&process, &file, PAGE, DIRTY_PAGES * PAGE).await.expect("memory");
    raise_marks(&linux, &process).await;
    linux.fsync(&process, &file).await.expect("it lives");
}

/// Locks memory, then puts the marks where all file pages together would lift what is free above them.
async fn raise_marks(linux: &SimKernel, process: &Process) {
    let locked = linux.map_anonymous(process, Bytes(MACHINE_PAGES * PAGE)).expect("addresses");
    linux.lock_memory(process, locked, 0, MACHINE_PAGES / 2).await.expect("memory");
    let free = linux.mem(|mem| mem.core.alloc.zones().iter().map(|zone| zone.free_pages().0).sum::<u64>());
    let min_free_kbytes = (free + (DIRTY_PAGES / 2)) * 4;
    linux.sysctl_write("vm.min_free_kbytes", &min_free_kbytes.to_string()).expect("a sysctl");
    linux.machine().sleep(Nanos::from_millis(1), WaitReason::UserSleep).await;
}

#[test]
fn a_task_that_sleeps_for_memory_sends_off_the_pages_that_it_writes_back_first() {
    let zone = ZoneLayout::new(ZoneKind::Normal, Pages(MACHINE_PAGES));
    let mut sysctls = Sysctls::default();
    for (sysctl, value) in [(Sysctl::DirtyRatio, 90), (Sysctl::DirtyBackgroundRatio, 90)] {
        sysctls.set(sysctl, value);
    }
    for version in ["linux-4.19", "linux-5.5", "linux-6.1", "linux-6.12"] {
        let hardware = Hardware::with_cpus(1).with_device(DeviceModel::NVME);
        let mut simulation = Simulation::new(hardware).expect("a machine");
        let config = KernelConfig {
            version: mm::Version::parse(version).expect("a version"),
            sysctls: sysctls.clone(),
            layout: MemoryLayout {
                nodes: vec![NodeLayout { zones: vec![zone] }],
                cpus: 1,
                huge_pages: HugeSupport::Off,
            },
            filesystem: Filesystem::Xfs,
            xfs_log_size: Bytes(64 << 20),
            gathers: 16,
            readahead_pages: 32,
            policy: None,
            seed: Seed(1),
        };
        let linux = Kernel::boot(simulation.machine(), config, SimTrace::default()).expect("it boots");
        let task = simulation.machine().spawn("writer", None, sync_without_memory(linux));
        let ended = simulation.run_until_task_done(task, Nanos::from_secs(2));
        assert!(ended.is_ok(), "{version}: {}", ended.expect_err("just seen"));
    }
}
