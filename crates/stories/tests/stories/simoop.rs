//! `simoop` through the whole simulator: what a run makes and leaves.

use std::cell::Cell;
use std::rc::Rc;

use kernel::Filesystem;
use sim::run::{Checks, verify};
use sim::{Program, SimResult, SimRun, Statistics, machines};
use units::{Bytes, Nanos};
use workload::{System, Workload};

use crate::ended;

const MIB: u64 = 1 << 20;

/// A run on a part of the source's machine; and how many files of results are there in the end.
fn play(kernel: &str, mib: u64, seed: u64, params: &[(&str, &str)]) -> (SimResult, Statistics, usize) {
    let kernel = mm::Version::parse(kernel).expect("a kernel");
    let (hardware, layout) = machines::build("quad-node-16g", Bytes(mib * MIB), &kernel).expect("a machine");
    let program = Program::Workload(Workload::new("simoop", params.iter().copied()).expect("its parameters"));
    let spec = SimRun {
        filesystem: Filesystem::Xfs,
        seed,
        sample_period: Nanos::from_millis(100),
        ..SimRun::new(program.clone(), kernel, hardware, layout)
    };
    let left = Rc::new(Cell::new(0));
    let count = left.clone();
    let (result, statistics) = verify(&spec, Checks::Spread(4), |system| async move {
        let outcome = program.run(system.clone()).await?;
        for directory in 0..16 {
            let names = system.read_dir(&format!("d{directory:03}")).await?;
            count.set(count.get() + names.iter().filter(|name| name.starts_with('w')).count());
        }
        Ok(outcome)
    })
    .expect("it ends");
    (result, statistics, left.get())
}

const SMALL: [(&str, &str); 10] = [
    ("threads", "6"),
    ("file_size", "8M"),
    ("mapped", "6M"),
    ("alloc_wait", "30"),
    ("kept", "3"),
    ("tree_files", "300"),
    ("walk_pause", "1"),
    ("seconds", "8"),
    ("warmup", "2"),
    ("interval", "2"),
];

#[test]
fn the_same_run_is_the_same_run_and_another_seed_is_not() {
    let run = |seed| {
        let (result, statistics, _) =
            play("linux-5.7", 256, seed, &[&SMALL[..], &[("seconds", "4")]].concat());
        (result.outcome, result.vmstat, statistics)
    };
    let first = run(7);
    assert_eq!(first, run(7));
    assert_ne!(first.2.event_hash, run(8).2.event_hash, "other pieces are read");
}

/// ```text
///   0 s  laid out      2 s  warm     4 s    6 s    8 s  measured
///        workers fill       |   interval each  |
///        their part         |                  |
/// ```
#[test]
fn each_interval_is_a_sample_and_its_stalls_are_those_of_the_kernel() {
    for kernel in ["linux-5.7", "linux-5.7+async-inode-reclaim+pin-inode-cluster"] {
        let (result, ..) = play(kernel, 256, 1, &SMALL);
        let names: Vec<&str> = result.phases.iter().map(|phase| phase.name.as_str()).collect();
        assert_eq!(names, ["laid_out", "warm", "measured"]);
        let of = |name: &str| result.outcome.metrics[name];
        let works = &result.outcome.samples["work_rate_of_interval"];
        assert_eq!((works.len(), result.outcome.samples["alloc_stall_rate_of_interval"].len()), (3, 3));
        assert!(works.iter().all(|&rate| rate > 1.0), "{works:?}");
        assert!((7.99..8.2).contains(&of("run_seconds")), "{}", of("run_seconds"));
        for part in ["read", "write", "alloc"] {
            let [p50, p95, p99] = ["p50", "p95", "p99"].map(|rank| of(&format!("{part}_latency_{rank}_us")));
            assert!(0.0 < p50 && p50 <= p95 && p95 <= p99, "{part}: {p50} {p95} {p99}");
        }
        // What the reports counted is what the kernel did between the two phases.
        let until = |phase: usize| -> u64 {
            let counters = result.phases[phase].vmstat.iter();
            counters.filter(|(name, _)| name.starts_with("allocstall")).map(|(_, count)| count).sum()
        };
        let stalls = until(2) - until(1);
        assert_eq!((of("alloc_stall_rate") * 6.0).round(), stalls as f64);
    }
}

/// The working set stays, and the memory of a work goes with it; of its results the last ones stay.
#[test]
fn workers_keep_their_part_of_the_working_set_and_give_back_what_a_work_took() {
    let (result, _, results) = play("linux-5.7", 256, 1, &SMALL);
    assert_eq!(results, 6 * 3 * 8, "each worker keeps 3 results of 8 files");
    let anonymous = result.columns.iter().position(|name| name == "nr_anon_pages").expect("it is sampled");
    let late = result.rows.iter().filter(|(at, _)| (3_000_000_000..7_000_000_000).contains(&at.get()));
    let pages: Vec<u64> = late.map(|(_, row)| row[anonymous]).collect();
    let kept = 256 * MIB * 98 / 100 * 6 / 10 / 4096;
    let most = kept + 6 * (6 * MIB / 4096) + 6 * 256 + 1000; // tasks have buffers and stacks
    assert!(pages.iter().all(|pages| (kept - 100..most).contains(pages)), "{kept} to {most}: {pages:?}");
}

/// Slab pages more at the end than at the beginning, with 3,000 small files that walkers look at.
fn slab_of_walks(machine: &str) -> u64 {
    let kernel = mm::Version::parse("linux-6.12").expect("a kernel");
    let (hardware, layout) = machines::build(machine, Bytes(512 * MIB), &kernel).expect("a machine");
    let changed = [
        ("threads", "1"),
        ("directories", "1"),
        ("working_set", "1M"),
        ("tree_files", "3000"),
        ("files", "2"),
    ];
    let params = [&SMALL[..], &changed].concat();
    let workload = Workload::new("simoop", params).expect("its parameters");
    let spec = SimRun::new(Program::Workload(workload), kernel, hardware, layout);
    let result = ended(&spec);
    let column = result.columns.iter().position(|name| name == "nr_slab_reclaimable").expect("it is sampled");
    let [(_, first), .., (_, last)] = &result.rows[..] else { panic!("it is sampled") };
    last[column].saturating_sub(first[column])
}

/// A guest makes its files just before a run, and their inodes and dentries are in memory when it begins. Walks over
/// 3,270 files in one of 6.12 left 14 slab pages; where files were written long ago each is read.
#[test]
fn walkers_in_a_guest_find_inodes_in_memory_that_were_made_just_before() {
    let [guest, machine] = ["guest-uml", "vm-2cpu"].map(slab_of_walks);
    // Files that workers write are new in both.
    assert!(machine > guest + 700, "{guest} pages in a guest, {machine} elsewhere");
}
