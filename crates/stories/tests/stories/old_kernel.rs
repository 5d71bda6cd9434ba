//! What Linux 2.6.32 does not have fails as it would there, and what it does otherwise shows in small runs.

use std::cell::Cell;
use std::rc::Rc;

use kernel::{Errno, Filesystem, HugeAdvice, Kernel, KernelConfig, Machine, WaitReason};
use mm::base::layout::{HugeSupport, MemoryLayout};
use mm::base::sysctl::{Sysctl, Sysctls};
use mm::base::vmstat::VmEvent;
use mm::version::rules::{Cgroups, Compaction, DirtyPause, HugePages, Rule, Writepage};
use mm::{MemcgId, Version};
use sim::{DeviceModel, Hardware, SimKernel, SimTrace, Simulation};
use units::{Bytes, Nanos, Pages, Seed};

const MIB: u64 = 1 << 20;

/// A machine of 16 MiB with a SATA SSD, and its kernel.
fn boot(kernel: &str, answers: &[Rule], left_out: Option<&'static str>) -> (Simulation, SimKernel) {
    let mut version = Version::parse(kernel).expect("a preset");
    version.rules = version.rules.edited(answers);
    let config = KernelConfig {
        version,
        sysctls: Sysctls::default(),
        layout: MemoryLayout { huge_pages: HugeSupport::On, ..MemoryLayout::flat(Pages(16 << 8), 2) },
        filesystem: Filesystem::Ext4,
        xfs_log_size: Bytes(64 * MIB),
        gathers: 16,
        readahead_pages: 32,
        policy: None,
        seed: Seed(1),
    };
    let hardware = Hardware::with_cpus(2).with_device(DeviceModel::SATA_EVO);
    let mut simulation = Simulation::new(hardware).expect("a machine");
    left_out.into_iter().for_each(|task| simulation.leave_out(task));
    let linux = Kernel::boot(simulation.machine(), config, SimTrace::default()).expect("it boots");
    (simulation, linux)
}

/// Which of these threads sleep somewhere after a while.
fn threads(kernel: &str, answers: &[Rule]) -> Vec<String> {
    let (mut simulation, linux) = boot(kernel, answers, None);
    let task = simulation.machine().spawn("nap", None, async move {
        linux.machine().sleep(Nanos::from_secs(1), WaitReason::UserSleep).await;
    });
    simulation.run_until_task_done(task, Nanos::from_secs(2)).expect("it ends");
    let names = simulation.machine().stalls().into_iter().map(|stall| stall.name);
    let mut names: Vec<String> =
        names.filter(|name| name.starts_with("kcompactd") || name.starts_with("khugepaged")).collect();
    names.sort();
    names
}

#[test]
fn threads_for_huge_pages_came_with_them() {
    assert_eq!(threads("linux-2.6.32", &[]), Vec::<String>::new());
    assert_eq!(threads("linux-6.1", &[]), ["kcompactd0", "khugepaged"]);
    assert_eq!(threads("linux-6.1", &[Rule::Compaction(Compaction::Off)]), ["khugepaged"]);
    assert_eq!(threads("linux-6.1", &[Rule::HugePages(HugePages::Off)]), ["kcompactd0"]);
}

/// How calls end that an old kernel does not know: a cgroup is made and read, huge pages are asked for, and
/// `thp.enabled` is set.
fn calls(kernel: &str, answers: &[Rule]) -> [Result<(), Errno>; 4] {
    let (mut simulation, linux) = boot(kernel, answers, None);
    let results = Rc::new(Cell::new([Ok(()); 4]));
    let told = Rc::clone(&results);
    let task = simulation.machine().spawn("program", None, async move {
        let process = linux.process_start("program", MemcgId::ROOT).await.expect("memory");
        let mapping = linux.map_anonymous(&process, Bytes(4 * MIB)).expect("addresses");
        told.set([
            linux.cgroup_create(&process, "A").await.map(drop),
            linux.cgroup_read("", "memory.stat").map(drop),
            linux.advise_huge(&process, mapping, HugeAdvice::Huge),
            linux.sysctl_write("thp.enabled", "always"),
        ]);
        // Whatever was said, the memory can be used.
        linux.touch(&process, mapping, 0, 1024).await.expect("memory");
    });
    simulation.run_until_task_done(task, Nanos::from_secs(10)).expect("it ends");
    results.get()
}

#[test]
fn calls_that_came_later_fail_as_unknown_ones_do() {
    let (ok, unsupported, unknown) = (Ok(()), Err(Errno::NotSup), [Err(Errno::Inval), Err(Errno::NoEnt)]);
    assert_eq!(calls("linux-6.1", &[]), [ok; 4]);
    assert_eq!(calls("linux-2.6.32", &[]), [unsupported, unsupported, unknown[0], unknown[1]]);
    let without_groups = [Rule::Cgroups(Cgroups::Off)];
    assert_eq!(calls("linux-6.1", &without_groups), [unsupported, unsupported, ok, ok]);
    assert_eq!(calls("linux-2.6.32", &[Rule::Cgroups(Cgroups::V2)])[..2], [ok; 2]);
    assert_eq!(calls("linux-2.6.32", &[Rule::HugePages(HugePages::On)])[2..], [ok; 2]);
}

#[test]
fn reserves_are_not_raised_for_huge_pages_that_there_are_not() {
    let min_free = |kernel, answers: &[Rule]| {
        boot(kernel, answers, None).1.mem(|mem| mem.core.alloc.sysctls().get(Sysctl::MinFreeKbytes))
    };
    assert_eq!(min_free("linux-2.6.32", &[]), 512, "4 * sqrt(16384)");
    assert!(min_free("linux-2.6.32", &[Rule::HugePages(HugePages::On)]) > 512);
}

/// Pages that are written although there is no flusher, and whether the writer comes to the end of its file,
/// which is larger than memory.
fn write_without_flusher(answer: DirtyPause) -> (bool, u64) {
    let (mut simulation, linux) =
        boot("linux-2.6.32", &[Rule::DirtyPause(answer), Rule::Writepage(Writepage::Never)], Some("flusher"));
    let writer = linux.clone();
    let task = simulation.machine().spawn("writer", None, async move {
        let process = writer.process_start("writer", MemcgId::ROOT).await.expect("memory");
        let file = writer.open(&process, "file", true).await.expect("memory");
        for at in 0..24 {
            writer.write(&process, &file, at * MIB, MIB).await.expect("memory");
        }
    });
    let ended = simulation.run_until_task_done(task, Nanos::from_secs(60)).is_ok();
    (ended, linux.mem(|mem| mem.core.alloc.events.get(VmEvent::NrWritten)))
}

#[test]
fn up_to_3_1_a_writer_needs_no_flusher() {
    let (ended, written) = write_without_flusher(DirtyPause::Writes);
    assert!(ended && written > 2048, "{written} pages");
    assert_eq!(write_without_flusher(DirtyPause::Sleeps), (false, 0));
}
