//! How many page cache accesses per second a whole simulated kernel makes with reclaim active:
//! `hot-and-stream` on small machines. One item is one page that the workload reads.
//!
//! Each scene's result hash is printed first: two builds that print the same hashes simulate the
//! same, and only then are their rates comparable.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use divan::Bencher;
use divan::counter::ItemsCount;
use kernel::Filesystem;
use pagetide_sim::run::run;
use pagetide_sim::{Program, SimResult, SimRun, machines};
use units::{Bytes, Nanos};
use workload::Workload;

/// MiB of the hot file, which is read three times in all, and of the stream.
const HOT_MIB: u64 = 16;
const STREAM_MIB: u64 = 1024;
const PAGES_PER_MIB: u64 = 256;

const GLOBAL: [&str; 4] = ["linux-5.4", "linux-5.5", "linux-6.1", "linux-6.12"];
const LIMIT: [&str; 3] = ["linux-5.4", "linux-6.1", "linux-6.12"];

#[allow(clippy::print_stdout)] // The hashes belong to the figures.
fn main() {
    let global = GLOBAL.map(|kernel| ("global_reclaim", scene(kernel, "ext4", "siblings")));
    let limit = LIMIT.map(|kernel| ("limit_reclaim", scene(kernel, "ext4", "parent")));
    let large = [("large_folios", scene("linux-6.12", "xfs", "parent"))];
    for (name, spec) in global.iter().chain(&limit).chain(&large) {
        println!("{name} {}: result {:016x}", spec.kernel.name, hash(&play(spec)));
    }
    divan::main();
}

fn scene(kernel: &str, filesystem: &str, topology: &str) -> SimRun {
    let kernel = mm::Version::parse(kernel).expect("a preset");
    let (hardware, layout) = machines::build("vm-2cpu", Bytes(64 << 20), &kernel).expect("a machine");
    let (hot, stream) = (format!("{HOT_MIB}M"), format!("{STREAM_MIB}M"));
    let mut params = vec![("hot", hot.as_str()), ("stream", stream.as_str()), ("topology", topology)];
    if topology == "parent" {
        params.push(("limit", "40M"));
    }
    let program = Program::Workload(Workload::new("hot-and-stream", params).expect("its parameters"));
    SimRun {
        filesystem: Filesystem::by_name(filesystem).expect("a filesystem"),
        sample_period: Nanos::from_secs(1),
        ..SimRun::new(program, kernel, hardware, layout)
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

fn measure(bencher: Bencher<'_, '_>, spec: &SimRun) {
    let pages = (3 * HOT_MIB + STREAM_MIB) * PAGES_PER_MIB;
    bencher.counter(ItemsCount::new(pages)).bench_local(|| play(spec));
}

/// kswapd and direct reclaim, the hot set in a sibling cgroup.
#[divan::bench(args = GLOBAL, sample_count = 20)]
fn global_reclaim(bencher: Bencher<'_, '_>, kernel: &str) {
    measure(bencher, &scene(kernel, "ext4", "siblings"));
}

/// Reclaim at a cgroup's limit.
#[divan::bench(args = LIMIT, sample_count = 20)]
fn limit_reclaim(bencher: Bencher<'_, '_>, kernel: &str) {
    measure(bencher, &scene(kernel, "ext4", "parent"));
}

/// Folios of 32 pages.
#[divan::bench(sample_count = 20)]
fn large_folios(bencher: Bencher<'_, '_>) {
    measure(bencher, &scene("linux-6.12", "xfs", "parent"));
}
