//! What a small file costs the simulator: `small-files` on the source's machine with a part of its memory,
//! so that files are created, written, written back, reclaimed and deleted.
//!
//! `cargo bench -p pagetide-sim --bench small_files [-- SIZE...]` runs it with so much memory in MiB (256
//! and 1024 when none is given), and prints nanoseconds of processor time per file created, with and
//! without the deletion, the best of a few runs. The source's own size has 31 million files, 16384 MiB.
//! Two builds that print the same hashes simulate the same.

use std::time::{Duration, Instant};

use kernel::Filesystem;
use pagetide_sim::run::{Checks, verify};
use pagetide_sim::{Program, SimRun, Statistics, machines};
use units::{Bytes, Nanos};
use workload::Workload;

const KERNELS: [&str; 2] = ["linux-5.3", "linux-5.3+shrink-slab-when-boosted"];
const SIZES_MIB: [u64; 2] = [256, 1024];
/// What the tests run once.
const TEST_MIB: u64 = 128;
/// Runs of a scene, of which the best counts; large ones take long, and one is enough.
const RUNS: usize = 3;
const ONE_RUN_FROM_MIB: u64 = 4096;

#[allow(clippy::print_stdout)] // The figures.
fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let only_once = words.iter().any(|word| word == "--test");
    let named: Vec<u64> = words.iter().filter_map(|word| word.parse().ok()).collect();
    let sizes = match named.is_empty() {
        true if only_once => vec![TEST_MIB],
        true => SIZES_MIB.to_vec(),
        false => named,
    };
    for (mib, kernel) in sizes.into_iter().flat_map(|mib| KERNELS.map(|kernel| (mib, kernel))) {
        let figures = ["off", "on"].map(|delete| {
            let runs = if only_once || mib >= ONE_RUN_FROM_MIB { 1 } else { RUNS };
            let best = (0..runs).map(|_| play(kernel, mib, delete)).min_by_key(|figures| figures.cost);
            best.expect("there are runs")
        });
        let [created, deleted] = &figures;
        let per_file = |figures: &Figures| figures.cost.as_nanos() as f64 / figures.files;
        println!(
            "{mib:>6} MiB {kernel:<36} {:>9} files {:>7.0} ns/file {:>7.0} with deletion   result {:016x}",
            created.files,
            per_file(created),
            per_file(deleted),
            deleted.statistics.event_hash,
        );
    }
}

struct Figures {
    files: f64,
    cost: Duration,
    statistics: Statistics,
}

/// Runs it once, from boot to the end.
fn play(kernel: &str, mib: u64, delete: &str) -> Figures {
    let workload = Workload::new("small-files", [("delete", delete)]).expect("its parameters");
    let kernel = mm::Version::parse(kernel).expect("a kernel");
    let (hardware, layout) = machines::build("evo-ssd", Bytes(mib << 20), &kernel).expect("a machine");
    let spec = SimRun {
        filesystem: Filesystem::Xfs,
        sample_period: Nanos::from_secs(1),
        ..SimRun::new(Program::Workload(workload.clone()), kernel, hardware, layout)
    };
    let begin = processor_time();
    let program = move |system| async move { workload.run(system).await };
    let (result, statistics) = verify(&spec, Checks::Sample, program).expect("it ends");
    let cost = processor_time().saturating_sub(begin);
    Figures { files: result.outcome.metrics["files_created"], cost, statistics }
}

/// Processor time of this thread where the system tells, else time on a clock.
fn processor_time() -> Duration {
    thread_local! {
        static START: Instant = Instant::now();
    }
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let nanos = text.split(' ').next().and_then(|word| word.parse().ok());
    nanos.map_or_else(|| START.with(Instant::elapsed), Duration::from_nanos)
}
