//! Runs that would not end, and end in words.

use std::sync::Arc;

use mm::base::layout::MemoryLayout;
use sim::run::{Watch, run_watched};
use sim::{DeviceModel, Hardware, Program, RunError, SimError, SimRun, machines};
use units::{Bytes, Nanos, Pages};
use workload::Workload;

use crate::small_files;

/// Two readers of files that do not fit into 16 MiB.
fn readers(device: DeviceModel) -> SimRun {
    let params = [("readers", "2"), ("file", "64M")];
    let program = Program::Workload(Workload::new("sequential-readers", params).expect("a workload"));
    let version = mm::Version::parse("linux-6.1").expect("a version");
    let hardware = Hardware::with_cpus(1).with_device(device);
    SimRun::new(program, version, hardware, MemoryLayout::flat(Pages(16 << 8), 1))
}

fn error(spec: &SimRun, watch: Watch) -> SimError {
    run_watched(spec, Arc::default(), |_| {}, watch).expect_err("it does not end")
}

/// A request that is never answered would be waited for a day, with ten samples a second.
#[test]
fn a_run_whose_disk_never_answers_says_who_waits_for_what() {
    let mut device = DeviceModel::NVME;
    device.read.latency = Nanos::from_secs(365 * 24 * 60 * 60);
    let error = error(&readers(device), Watch::default());
    let text = error.to_string();
    assert!(
        text.starts_with("no progress since ") && text.contains("` waits in folio_wait_locked; "),
        "{text}"
    );
    assert!(matches!(error, SimError::Run(RunError::NoProgress { hope: true, .. })), "{error:?}");
    assert!(error.hint().is_some_and(|hint| hint.contains("--mem")), "{error:?}");
}

#[test]
fn a_run_ends_soon_after_the_events_that_it_may_take() {
    let error = error(&readers(DeviceModel::NVME), Watch { events_max: Some(1000), ..Watch::default() });
    let SimError::Run(RunError::EventLimit { events, .. }) = error else { panic!("{error}") };
    assert!((1000..10_000).contains(&events), "{events}");
}

/// Who writes back needs pages to do so, all are dirty, and kswapd waits for an inode: a request of XFS goes round,
/// gets two pages, and gives them back. Where that was progress, the run went on for an hour of simulated time.
#[test]
fn a_run_in_which_pages_are_only_taken_and_given_back_ends_in_words() {
    let params = [("file_size", "1"), ("files", "60"), ("processes", "6"), ("subdirectories", "39")];
    let error = error(&small_files::spec("linux-2.6.32", 21, 1, &params), Watch::default());
    let SimError::Run(RunError::NoProgress { since, why, .. }) = &error else { panic!("{error}") };
    assert!(*since < Nanos::from_secs(60) && why.contains("pages are free"), "{error}");
}

/// A page that comes back from zram wants a node for its tree, too. Where there was no second page, the fault gave the
/// first one back and looked again, for ever and without an event, so that nothing could stop the run.
#[test]
fn a_fault_that_finds_no_page_for_a_node_of_the_swap_tree_reclaims_one() {
    let params = [
        ("files", "247"),
        ("per_directory", "132"),
        ("pin_from", "2132k"),
        ("pin_step", "312k"),
        ("pin_to", "3188k"),
        ("processes", "29"),
        ("programs", "192k"),
    ];
    let program = Program::Workload(Workload::new("inode-storm", params).expect("a workload"));
    let kernel = mm::Version::parse("linux-2.6.32").expect("a version");
    let (hardware, layout) = machines::build("vm-2cpu", Bytes(8 << 20), &kernel).expect("a machine");
    let swap = "zram:7M".parse().expect("an area");
    let spec = SimRun { swap, seed: 2, ..SimRun::new(program, kernel, hardware, layout) };
    let result = run_watched(&spec, Arc::default(), |_| {}, Watch::default());
    assert!(result.is_ok(), "{}", result.err().map(|error| error.to_string()).unwrap_or_default());
}
