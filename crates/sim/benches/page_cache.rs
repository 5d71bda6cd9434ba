//! How many page cache accesses per second a whole simulated kernel makes with reclaim active:
//! `hot-and-stream` on small machines. One item is one page that the workload reads.
//!
//! Each scene's result hash is printed once: two builds that print the same hashes simulate the
//! same, and only then are their rates comparable.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use divan::Bencher;
use divan::counter::ItemsCount;
use kernel::Filesystem;
use mm::sysctl::Sysctls;
use pagetide_sim::run::run;
use pagetide_sim::{Program, SimResult, SimRun, machines};
use units::{Bytes, Nanos};
use workload::Workload;

/// MiB of the hot file, which is read three times in all, and of the stream.
const HOT_MIB: u64 = 16;
const STREAM_MIB: u64 = 1024;
const PAGES_PER_MIB: u64 = 256;

fn main() {
    divan::main();
}

fn scene(kernel: &str, filesystem: &str, topology: &str) -> SimRun {
    let kernel = mm::Kernel::parse(kernel).expect("a preset");
    let (hardware, layout) = machines::build("vm-2cpu", Bytes(64 << 20), &kernel).expect("a machine");
    let (hot, stream) = (format!("{HOT_MIB}M"), format!("{STREAM_MIB}M"));
    let mut params = vec![("hot", hot.as_str()), ("stream", stream.as_str()), ("topology", topology)];
    if topology == "parent" {
        params.push(("limit", "40M"));
    }
    SimRun {
        program: Program::Workload(Workload::new("hot-and-stream", params).expect("its parameters")),
        kernel,
        sysctls: Sysctls::default(),
        hardware,
        layout,
        filesystem: Filesystem::by_name(filesystem).expect("a filesystem"),
        readahead_pages: 32,
        seed: 1,
        time_limit: Nanos::from_secs(10_000),
        sample_period: Nanos::from_secs(1),
    }
}

fn play(spec: &SimRun) -> SimResult {
    run(spec, Arc::new(AtomicBool::new(false)), |_| {}).expect("it ends")
}

/// FNV-1a of everything that a run leaves.
fn hash(result: &SimResult) -> u64 {
    format!("{result:?}")
        .bytes()
        .fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

#[allow(clippy::print_stdout)] // The hash belongs to the figures.
fn measure(bencher: Bencher<'_, '_>, name: &str, spec: &SimRun) {
    println!("{name}: result {:016x}", hash(&play(spec)));
    let pages = (3 * HOT_MIB + STREAM_MIB) * PAGES_PER_MIB;
    bencher.counter(ItemsCount::new(pages)).bench_local(|| play(spec));
}

/// kswapd and direct reclaim, the hot set in a sibling cgroup.
#[divan::bench(args = ["linux-5.4", "linux-5.5", "linux-6.1", "linux-6.12"])]
fn global_reclaim(bencher: Bencher<'_, '_>, kernel: &str) {
    measure(bencher, kernel, &scene(kernel, "ext4", "siblings"));
}

/// Reclaim at a cgroup's limit.
#[divan::bench(args = ["linux-5.4", "linux-6.1", "linux-6.12"])]
fn limit_reclaim(bencher: Bencher<'_, '_>, kernel: &str) {
    measure(bencher, kernel, &scene(kernel, "ext4", "parent"));
}

/// Folios of 32 pages.
#[divan::bench]
fn large_folios(bencher: Bencher<'_, '_>) {
    measure(bencher, "linux-6.12 xfs", &scene("linux-6.12", "xfs", "parent"));
}
