//! How processes start, and what their parent's memory costs them. Guests of 6.12 with one CPU: of 40 readers of a page
//! each, started one after the other, most have ended before the next one starts; a child of a parent that holds
//! 256 MiB has 128 pages of tables more, and takes 8.5 ms longer.

use sim::{Program, SimResult, SimRun, machines};
use units::Bytes;
use workload::{Workload, WorkloadSpec};

use crate::ended;

const READERS: u64 = 20;

fn play(machine: &str, workload: &str, params: &[(&str, &str)]) -> SimResult {
    run(machine, Workload::new(workload, params.iter().copied()).expect("its parameters"))
}

fn run(machine: &str, workload: Workload) -> SimResult {
    let kernel = mm::Version::parse("linux-6.12").expect("a preset");
    let (hardware, layout) = machines::build(machine, Bytes(400 << 20), &kernel).expect("a machine");
    ended(&SimRun::new(Program::Workload(workload), kernel, hardware, layout))
}

fn readers(held: &str) -> SimResult {
    let count = READERS.to_string();
    let params = [
        ("readers", count.as_str()),
        ("file", "4k"),
        ("record", "4k"),
        ("prepare", "laid-out"),
        ("held", held),
    ];
    play("guest-uml+costs=start_process:7ms,fork_page:130ns", "sequential-readers", &params)
}

fn metric(result: &SimResult, name: &str) -> f64 {
    result.outcome.metrics[name]
}

#[test]
fn the_next_process_starts_when_the_one_before_runs_in_its_cgroup() {
    let result = readers("0");
    let [all, slowest] = ["read_seconds", "slowest_reader_seconds"].map(|name| metric(&result, name));
    assert!(all > 0.007 * (READERS - 1) as f64, "each start takes 7 ms, after the other: {all}");
    assert!(slowest < all / 4.0, "so they are not there at the same time: {slowest} of {all}");
}

#[test]
fn a_child_has_a_table_for_each_of_its_parents_and_shares_its_pages() {
    let [without, with] = ["0", "256M"].map(readers);
    let allocated = |result: &SimResult| result.vmstat["pgalloc_normal"];
    let more = allocated(&with) - allocated(&without);
    let held = 256 * 256;
    let notes = 19;
    assert_eq!(more, held + 128 + READERS * 128 + notes, "its pages and tables, and tables of its children");
    let seconds = metric(&with, "read_seconds") - metric(&without, "read_seconds");
    let of_pages = (held * (READERS - 1)) as f64 * 130e-9;
    assert!((seconds / of_pages - 1.0).abs() < 0.1, "{seconds} s for {of_pages}");
}

/// The driver of a real kernel asks for `MADV_DONTFORK` then. Measured: guests of 5.10 and 6.12, 64 processes eleven
/// times beside 213 MiB.
#[test]
fn a_child_has_no_table_of_what_its_parent_has_locked() {
    let allocated = |step: &str, all: &str| {
        let params = [
            ("files", "64"),
            ("processes", "8"),
            ("programs", "0"),
            ("pin_from", "4M"),
            ("pin_to", all),
            ("pin_step", step),
        ];
        play("guest-uml", "inode-storm", &params).vmstat["pgalloc_normal"]
    };
    // Processes are started three times.
    let more = 56 * 256;
    let notes = 19 - (12_u64 * 256).div_ceil(510);
    assert_eq!(
        allocated("32M", "68M") - allocated("4M", "12M"),
        more + more / 512 + notes,
        "its pages and tables"
    );
}

/// Guests of 6.1 and 6.12: each of 64 that tell that they are there takes 153 and 89 faults, as one of the programs of
/// the catalog does; those that also read took 246 and 105.
#[test]
fn a_task_of_a_file_that_only_tells_has_not_used_what_works() {
    let faults = |step: &str| {
        let text = format!(
            "name = \"x\"\nphases = [\"there\"]\n[files]\npage = {{ size = \"4k\" }}\n\
             [tasks.many]\ncount = 20\nsteps = [{step}{{ end = \"there\" }}]\n"
        );
        let spec = WorkloadSpec::of_file(&text).expect("a workload");
        run("guest-uml", spec.build(spec.defaults()).expect("its parameters")).vmstat["pgfault"]
    };
    let wait = "{ sleep = \"1ms\" }, ";
    assert_eq!(faults(wait), faults(""));
    assert_eq!(faults("{ read = \"page\" }, ") - faults(""), 20 * (16 + 1), "and one for the buffer");
}

/// A file of a guest that one task maps and reads in order, twice, beside one that nobody reads.
fn mapped(hot: &str, stream: &str) -> SimResult {
    let params =
        [("hot", hot), ("stream", stream), ("topology", "global"), ("limit", "300M"), ("loops", "0")];
    play("guest-uml", "mapped-and-stream", &params)
}

/// Guests of 6.12 take 1,742 faults for a mapping of 58,000 KiB that is read in order, one for each 64 KiB and one for
/// each marker of readahead beside 382, and 1,344 for one of 60 MiB.
#[test]
fn a_long_mapping_of_a_guest_begins_where_no_marker_takes_a_fault_of_its_own() {
    let faults = |hot: &str| mapped(hot, "1M").vmstat["pgfault"];
    let [shorter, longer, longest] = ["56M", "60M", "64M"].map(faults);
    assert_eq!(longest - longer, 64);
    assert!((longest - 128 + 440..longest - 128 + 450).contains(&shorter), "{shorter} and {longest}");
}

/// A guest of 6.12 that maps 4 KiB, 20, 40 and 80 MiB of a file frees 22, 21 and 23 pages more: a table for each 512,
/// and a page of notes for each 510, up to 19 of them.
#[test]
fn unmapping_takes_a_page_of_notes_for_each_510_pages_up_to_19() {
    let freed = |hot: &str| mapped(hot, "4k").vmstat["pgfree"];
    let [none, few, most, more] = ["4k", "20M", "40M", "80M"].map(freed);
    for (found, measured) in [(few - none, 22), (most - few, 21), (more - most, 23_u64)] {
        assert!(found.abs_diff(measured) <= 2, "{found} for {measured}");
    }
}
