//! The `huge-faults` workload on small models of its source's machine.

use std::collections::BTreeMap;

use kernel::Filesystem;
use sim::{Program, SimResult, SimRun, machines};
use units::{Bytes, Nanos};
use workload::Workload;

use crate::ended;

const SERIES: [&str; 4] = [
    "linux-4.20-rc1",
    "linux-4.20-rc1+nofragment",
    "linux-4.20-rc1+nofragment+watermark-boost-v2",
    "linux-4.20-rc1+nofragment+watermark-boost-v2+fragment-stall",
];

/// With less, `watermark-boost-v2`, which has no cap, raises a mark above what such a zone can have free: that ends
/// in an OOM kill.
const MEM: Bytes = Bytes(512 << 20);

fn simulate(kernel: &str, mem: Bytes, params: &[(&str, &str)], seed: u64) -> SimResult {
    let kernel = mm::Version::parse(kernel).unwrap();
    let (hardware, layout) = machines::build("skylake-1s", mem, &kernel).unwrap();
    let program = Program::Workload(Workload::new("huge-faults", params.iter().copied()).unwrap());
    let spec = SimRun {
        filesystem: Filesystem::Xfs,
        seed,
        time_limit: Nanos::from_secs(1000),
        sample_period: Nanos::from_secs(1),
        ..SimRun::new(program, kernel, hardware, layout)
    };
    ended(&spec)
}

#[test]
fn a_run_repeats_to_the_last_counter_and_another_seed_reads_other_files() {
    for kernel in SERIES {
        let [first, again, other] = [1, 1, 2].map(|seed| simulate(kernel, Bytes(128 << 20), &[], seed));
        assert_eq!(first.outcome, again.outcome, "{kernel}");
        assert_eq!((&first.vmstat, &first.rows, first.events), (&again.vmstat, &again.rows, again.events));
        assert_ne!(first.vmstat["pgpgin"], other.vmstat["pgpgin"], "{kernel}");
    }
}

#[test]
fn every_region_is_a_sample_of_one_kind() {
    for advice in ["default", "madvise"] {
        let result = simulate(SERIES[3], MEM, &[("advice", advice)], 1);
        let samples = |name: &str| result.outcome.samples.get(name).map_or(0, Vec::len);
        // 98 % of 512 MiB, three quarters of it in regions of 2 MiB, half of them touched.
        assert_eq!(samples("fault_base_us") + samples("fault_huge_us"), 94);
        let percent = result.outcome.metrics["percentage_huge"];
        assert_eq!(percent, 100.0 * samples("fault_huge_us") as f64 / 94.0);
        assert_eq!(result.outcome.metrics["thp_fault_alloc"], samples("fault_huge_us") as f64);
        let stalls = result.outcome.samples.get("fragment_stall_us").cloned().unwrap_or_default();
        assert_eq!(result.outcome.metrics["fragment_stalls"], stalls.len() as f64);
        let seconds = stalls.iter().sum::<f64>() / 1e6;
        assert!((result.outcome.metrics["fragment_stall_seconds"] - seconds).abs() < 1e-9);
        let names: Vec<&str> = result.phases.iter().map(|phase| phase.name.as_str()).collect();
        assert_eq!(names, ["created", "synced", "warm", "faulted"]);
    }
}

type Metrics = BTreeMap<String, f64>;

/// All files are open at once, as the reference suite's job has them.
const ORDER: (&str, &str) = ("order", "rounds");

/// The metrics on two kernels, for three seeds.
fn three_seeds(kernels: [&str; 2], mem: Bytes, params: &[(&str, &str)]) -> Vec<[Metrics; 2]> {
    let one = |kernel: &str, seed| simulate(kernel, mem, params, seed).outcome.metrics;
    std::thread::scope(|scope| {
        let runs = [1, 2, 3].map(|seed| scope.spawn(move || kernels.map(|kernel| one(kernel, seed))));
        runs.into_iter().map(|run| run.join().unwrap()).collect()
    })
}

/// With less memory `min_free_kbytes`, which huge pages raise, is so much of it that hardly a block is broken.
/// Spreading to DMA32, the first step, leaves 35 percent in the source, and here 92 to 100, by the seed.
#[test]
fn boosting_leaves_three_tenths_of_the_fragmenting_events_at_most() {
    let [before, after] = [SERIES[0], SERIES[2]]
        .map(|kernel| simulate(kernel, Bytes(4 << 30), &[ORDER], 1).outcome.metrics["extfrag_events"]);
    assert!(before >= 1000.0 && after <= before * 0.3, "{before} to {after}");
}

#[test]
fn with_stalls_nearly_all_advised_faults_get_a_huge_page() {
    let runs = three_seeds([SERIES[2], SERIES[3]], MEM, &[("advice", "madvise"), ORDER]);
    let mut gained = 0.0;
    for [without, with] in &runs {
        let (before, after) = (without["percentage_huge"], with["percentage_huge"]);
        assert!(before < after && after > 90.0, "{before} to {after} percent");
        assert_eq!(without["fragment_stalls"], 0.0);
        assert!(with["fragment_stalls"] > 0.0, "somebody stalls");
        gained += (after - before) / runs.len() as f64;
    }
    assert!(gained > 20.0, "{gained} points more");
}
