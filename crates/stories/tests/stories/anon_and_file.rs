//! `anon-and-file` through the whole simulator: in which order things must come out, whatever the counts are
//! (`data/swap-reference.toml` of the crate `evidence` has those). A quarter of the measured guests: 48 MiB for 8 of
//! hot memory, 24 of cold memory and 32 of file.

use mm::base::sysctl::{Sysctl, Sysctls};
use sim::{Program, SimResult, SimRun, machines};
use units::{Bytes, Nanos};
use workload::Workload;

use crate::ended;

const QUARTER: [(&str, &str); 5] =
    [("hot", "8M"), ("cold", "24M"), ("file", "32M"), ("every", "4M"), ("limit", "48M")];
const COLD_PAGES: u64 = 6144;

pub fn play(kernel: &str, swappiness: &str, swap: &str, params: &[(&str, &str)]) -> SimResult {
    play_on(machines::GUEST, kernel, swappiness, swap, params)
}

fn play_on(machine: &str, kernel: &str, swappiness: &str, swap: &str, params: &[(&str, &str)]) -> SimResult {
    let kernel = mm::Version::parse(kernel).expect("a preset");
    let (hardware, layout) = machines::build(machine, Bytes(256 << 20), &kernel).expect("a machine");
    let params = [&QUARTER, params].concat();
    let workload = Workload::new("anon-and-file", params).expect("parameters of the workload");
    let mut sysctls = Sysctls::default();
    sysctls.set(Sysctl::Swappiness, Sysctl::Swappiness.parse_value(swappiness).expect("in range"));
    let spec = SimRun {
        sysctls,
        swap: swap.parse().expect("areas"),
        sample_period: Nanos::from_secs(1),
        ..SimRun::new(Program::Workload(workload), kernel, hardware, layout)
    };
    ended(&spec)
}

fn metric(result: &SimResult, name: &str) -> u64 {
    result.outcome.metrics[name] as u64
}

/// What `counter` counted from the end of one phase to that of the next.
fn between(result: &SimResult, from: &str, to: &str, counter: &str) -> u64 {
    let at =
        |name: &str| result.phases.iter().find(|phase| phase.name == name).expect("a phase").vmstat[counter];
    at(to) - at(from)
}

fn while_streaming(result: &SimResult, counter: &str) -> u64 {
    between(result, "hot_ready", "stream_done", counter)
}

#[test]
fn the_more_a_kernel_may_swap_the_less_often_it_reads_the_file_anew() {
    for kernel in ["linux-6.1", "linux-6.12"] {
        let [never, some, much] =
            ["0", "60", "200"].map(|swappiness| play(kernel, swappiness, "zram:64M", &[]));
        let refaults = |run| while_streaming(run, "workingset_refault_file");
        assert!(refaults(&never) > refaults(&some) && refaults(&some) > refaults(&much), "{kernel}");
        assert_eq!(while_streaming(&never, "pswpout"), 0, "{kernel}: swappiness 0 under a limit");
        let out = while_streaming(&some, "pswpout");
        assert!(out > 0 && while_streaming(&much, "pswpout") * 100 >= out * 99, "{kernel}");
        assert_eq!(metric(&some, "hot_pages_resident"), 2048, "{kernel}: what is hot stays");
        // Whoever counts them takes a page or two for the answer, at the limit: some more go.
        let gone = COLD_PAGES - metric(&some, "cold_pages_resident");
        let out = between(&some, "hot_ready", "hot_reread", "pswpout");
        assert!(gone <= out && gone * 10 > out * 9, "{kernel}: {gone} of {out} pages swapped out are cold");
    }
}

#[test]
fn a_file_that_is_read_once_is_never_worth_swapping_for() {
    // The file has 4096 inactive pages and more, so that a pass at the first priority has some to take, and
    // statistics say so: 6.12 goes by those of up to 2 s ago, and swaps as long as they know of no file.
    let wide = [("hot", "4M"), ("cold", "8M"), ("file", "160M"), ("limit", "64M"), ("flush", "yes")];
    for (kernel, swappiness) in [("linux-6.1", "200"), ("linux-6.12", "200"), ("linux-6.1", "60")] {
        let run = play(kernel, swappiness, "zram:64M", &wide);
        assert_eq!(while_streaming(&run, "pswpout"), 0, "{kernel} at {swappiness}");
        assert_eq!(metric(&run, "cold_pages_resident"), 2048, "{kernel} at {swappiness}");
    }
}

#[test]
fn a_sweep_over_cold_memory_brings_back_what_is_missing() {
    for swap in ["zram:64M", "disk:64M"] {
        let run = play("linux-6.1", "60", swap, &[]);
        let missing = COLD_PAGES - metric(&run, "cold_pages_resident");
        let swept = |counter| between(&run, "hot_reread", "cold_reread", counter);
        assert!(missing > 0, "{swap}");
        assert!(swept("pswpin") >= missing, "{swap}: {} pages for {missing}", swept("pswpin"));
        // What the count itself drove out to a disk was in memory still when it was counted.
        let on_its_way = between(&run, "stream_done", "hot_reread", "pswpout");
        assert!(
            swept("pswpin") <= missing + swept("pswpout") + on_its_way,
            "{swap}: nothing comes back twice for nothing"
        );
    }
}

#[test]
fn memory_without_swap_stays_where_it_is() {
    let run = play("linux-6.12", "200", "none", &[]);
    assert_eq!(run.vmstat.get("pswpout"), None, "without an area nothing is counted");
    assert_eq!((metric(&run, "cold_pages_resident"), metric(&run, "hot_pages_resident")), (COLD_PAGES, 2048));
}

/// With one CPU the disk was never done before the reclaimer had looked at every page at every priority: all were
/// being written, and a heap that fits swap was killed. (A guest of 6.12 below 120 MiB: 16,773 pages swapped out.)
#[test]
fn a_disk_that_is_served_on_the_only_cpu_is_done_with_what_is_swapped_out_and_nobody_is_killed_for_it() {
    for kernel in ["linux-5.10", "linux-6.12", "linux-6.12+lru-gen"] {
        let run = play_on(machines::UML, kernel, "60", "disk:128M", &[("limit", "30M")]);
        assert_eq!(run.vmstat["oom_kill"], 0, "{kernel}");
        let out = run.vmstat["pswpout"];
        assert!(out > 1_000, "{kernel}: {out} pages");
    }
}
