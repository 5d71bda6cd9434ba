//! Machines as runs see them: the same at every size of memory, and what they are called.

use std::{env, fs, process};

use kernel::machine::CostOp;
use sim::machines::{self, GUEST};
use sim::{Program, SimResult, SimRun};
use units::Bytes;
use workload::replay::ReplayOptions;
use workload::{Replay, Workload};

use crate::ended;

const KERNELS: [&str; 3] = ["linux-5.5", "linux-6.1", "linux-6.12"];

fn play(program: Program, machine: &str, kernel: &str, mib: u64) -> SimResult {
    let kernel = mm::Version::parse(kernel).expect("a preset");
    let (hardware, layout) = machines::build(machine, Bytes(mib << 20), &kernel).expect("a machine");
    let spec = SimRun::new(program, kernel, hardware, layout);
    ended(&spec)
}

/// A stream of 300 MiB beside a hot set of 128 MiB: just more than the machine holds.
fn hot_and_stream() -> Program {
    let params = [("hot", "128M"), ("stream", "300M")];
    Program::Workload(Workload::new("hot-and-stream", params).expect("parameters of the workload"))
}

/// With exactly 256M, 512M or 1G the first machine was the emulated guest: 43 times as slow, with
/// zones of its own. So the value at 256 MiB was far from those at 255 and 257, which are alike.
#[test]
fn a_curve_over_memory_has_no_step_at_a_power_of_two() {
    for kernel in KERNELS {
        let figures = [255, 256, 257].map(|mib| {
            let metrics = play(hot_and_stream(), "vm-2cpu", kernel, mib).outcome.metrics;
            // How the reader meets the disk may halve the speed of a short stream.
            [("stream_seconds", 3.0), ("hot_pages_cached", 1.03), ("memcg_pgscan", 1.03)]
                .map(|(name, near)| (metrics[name], near))
        });
        let [less, exact, more] = figures;
        for (index, (exact, near)) in exact.into_iter().enumerate() {
            let (less, more) = (less[index].0, more[index].0);
            let alike = (less.min(more) / near)..=(less.max(more) * near);
            assert!(alike.contains(&exact), "{kernel}: {figures:?}");
        }
    }
}

/// The same of the pages that a replay finds in memory.
#[test]
fn a_replay_has_no_step_at_a_power_of_two() {
    const REQUEST: u64 = 512 << 10;
    let path = env::temp_dir().join(format!("pagetide-three-rounds-{}.csv", process::id()));
    // Rounds through 280 MiB, and as often somewhere in the first 40 MiB.
    let line = |index: u64| {
        let (cold, hot) = ((index / 2) % 560, (index * 7) % 80);
        let place = if index.is_multiple_of(2) { cold } else { hot };
        format!("1,{index},28,{REQUEST},{}\n", place * (REQUEST / 512))
    };
    let rows: String = (0..2400).map(line).collect();
    fs::write(&path, format!("version,time,op,size,lbn\n{rows}")).expect("a folder for temporary files");
    for kernel in KERNELS {
        let hits = [255, 256, 257].map(|mib| {
            let source = fs::File::open(&path).expect("it was written");
            let trace = Replay::new(&path, source, ReplayOptions::default()).expect("a trace");
            play(Program::Replay(trace), "vm-2cpu", kernel, mib).outcome.metrics["page_hits"]
        });
        let (low, high) = (hits[0].min(hits[2]), hits[0].max(hits[2]));
        assert!((0.97 * low..=1.03 * high).contains(&hits[1]), "{kernel}: {hits:?}");
    }
    fs::remove_file(&path).expect("it is there");
}

/// Readahead that failed left a window of which the first page has the marker; a look at that page
/// took the marker away, so every later window was waited for. With this memory and no other near it
/// the stream took twice as long.
#[test]
fn a_reader_that_lost_its_window_gets_ahead_of_the_disk_again() {
    let params = [("hot", "179M"), ("stream", "768M")];
    let seconds = [255, 256, 257].map(|mib| {
        let program = Program::Workload(Workload::new("hot-and-stream", params).expect("its parameters"));
        play(program, "vm-2cpu", "linux-6.1", mib).outcome.metrics["stream_seconds"]
    });
    let (low, high) = (seconds[0].min(seconds[2]), seconds[0].max(seconds[2]));
    assert!((0.9 * low..=1.1 * high).contains(&seconds[1]), "{seconds:?}");
}

#[test]
fn the_emulated_guest_is_slow_at_every_size() {
    let seconds =
        |machine, mib| play(hot_and_stream(), machine, "linux-6.1", mib).outcome.metrics["stream_seconds"];
    let fast = seconds("vm-2cpu", 300);
    for mib in [300, 512] {
        let slow = seconds(GUEST, mib);
        assert!(slow > 30.0 * fast, "{mib} MiB: {slow} s, {fast} s on vm-2cpu");
    }
}

/// MECHANISMS-510-72 2.4.
#[test]
fn rotating_disks_read_8_mib_ahead_since_6_17_where_nobody_says_otherwise() {
    let readahead = |machine: &str, kernel: &str| {
        let kernel = mm::Version::parse(kernel).expect("a version");
        let (hardware, _) = machines::build(machine, Bytes(16 << 30), &kernel).expect("a machine");
        hardware.readahead_pages
    };
    for (machine, pages) in [
        ("vm-2cpu", 2048),
        ("skylake-1s", 2048),
        ("evo-ssd", 32),
        ("quad-node-16g", 32),
        ("guest-tcg", 32),
        ("guest-uml", 32),
        ("guest-tcg+readahead=8M", 2048),
        ("vm-2cpu+readahead=128k", 32),
    ] {
        for kernel in ["linux-7.2", "linux-6.12+readahead-rotational"] {
            assert_eq!(readahead(machine, kernel), pages, "{machine} under {kernel}");
        }
        let before = if machine.ends_with("8M") { 2048 } else { 32 };
        assert_eq!(readahead(machine, "linux-6.12"), before, "{machine}");
    }
}

/// On `guest-uml` one that read took 1.5 us and one that did not 20.6: whatever a fault is for, the program stops.
#[test]
fn a_fault_that_reads_costs_no_less_than_one_that_does_not() {
    let kernel = mm::Version::parse("linux-6.12").expect("a preset");
    for machine in ["vm-2cpu", machines::GUEST, workload::scenario::UML_MACHINE] {
        let (hardware, _) = machines::build(machine, Bytes(256 << 20), &kernel).expect("a machine");
        let [minor, major] = [CostOp::MinorFault, CostOp::MajorFault].map(|op| hardware.costs.get(op));
        assert!(minor <= major, "{machine}: {minor} and {major}");
    }
}

fn workload(name: &str, params: &[(&str, &str)]) -> Program {
    Program::Workload(Workload::new(name, params.iter().copied()).expect("parameters of the workload"))
}

/// Processes of User-Mode Linux fault their pages in; on other machines they do not. Faults are those of guests of 187
/// MiB.
#[test]
fn processes_of_user_mode_linux_take_faults() {
    let program =
        || workload("sequential-readers", &[("readers", "40"), ("file", "11M"), ("prepare", "laid-out")]);
    for (kernel, faults) in [("linux-6.1", 6503_u64), ("linux-6.12", 3871)] {
        for mib in [167, 172, 177, 182, 187] {
            let [guest, machine] =
                ["guest-uml", "vm-2cpu"].map(|name| play(program(), name, kernel, mib).vmstat);
            assert!(guest["pgfault"].abs_diff(faults) < faults / 12, "{}", guest["pgfault"]);
            assert!(machine["pgfault"] < 40, "{}", machine["pgfault"]);
        }
    }
}

/// The statistics of 6.12 are fresh until the worker that flushes them has run, two seconds after boot. On a machine
/// that has been up for long a shorter stream goes by those from before it, and its hot file is deactivated.
#[test]
fn statistics_of_6_12_are_fresh_in_the_first_two_seconds_after_boot() {
    let params = [("limit", "60M"), ("hot", "10M"), ("stream", "200M"), ("topology", "parent")];
    let kernel = mm::Version::parse("linux-6.12").expect("a preset");
    let deactivated = |is_fresh: bool| {
        let (mut hardware, layout) =
            machines::build("guest-uml", Bytes(256 << 20), &kernel).expect("a machine");
        if !is_fresh {
            hardware.build.since_boot = None;
        }
        let spec = SimRun::new(workload("hot-and-stream", &params), kernel.clone(), hardware, layout);
        let result = ended(&spec);
        assert!(result.simulated.as_secs_f64() < 1.9, "{:?}", result.simulated);
        result.vmstat["pgdeactivate"]
    };
    let [fresh, stale] = [true, false].map(deactivated);
    assert!(fresh == 0 && stale > 1000, "{fresh} and {stale}");
}

/// Two seconds of little work; so many threads with so large a working set each, and so many burning tasks.
fn small_service(burners: &str, threads: &str, working_set: &str) -> Program {
    let params = [
        ("burners", burners),
        ("threads", threads),
        ("working_set", working_set),
        ("seconds", "2"),
        ("interval", "1"),
        ("warmup", "1"),
        ("file_size", "64k"),
        ("read_size", "64k"),
        ("write_size", "64k"),
        ("files", "10"),
        ("tree_files", "10"),
        ("walkers", "0"),
    ];
    workload("simoop", &params)
}

/// A task that is busy until some time asks for its CPU time again and again; where its own work costs nothing, as in
/// User-Mode Linux, the calls let time pass. They were free, and the task looped for ever.
#[test]
fn burners_end_where_user_time_is_free() {
    let result = play(small_service("2", "1", "16M"), "guest-uml", "linux-6.12", 256);
    assert!(result.simulated.as_secs_f64() >= 1.0);
}

/// Guests of 7.2 keep no pages for their CPU. Those of 6.12 do, and nobody tends the list; but stacks of processes that
/// were waited for together let go of hundreds of pages each, before the monitor looks.
#[test]
fn what_processes_had_is_free_again_in_kernels_for_one_cpu() {
    let free = |kernel: &str, is_for_one: bool| {
        let kernel = mm::Version::parse(kernel).expect("a preset");
        let (mut hardware, layout) =
            machines::build("guest-uml", Bytes(512 << 20), &kernel).expect("a machine");
        if !is_for_one {
            hardware.build.uniprocessor = None;
        }
        let spec = SimRun::new(small_service("1", "4", "24M"), kernel, hardware, layout);
        let result = ended(&spec);
        result.vmstat["nr_free_pages"]
    };
    let [short_lists, none] = ["linux-6.1", "linux-7.2"].map(|kernel| free(kernel, true));
    assert!(short_lists.abs_diff(none) < 1000, "{short_lists} and {none}");
    let [one, many] = [true, false].map(|is_for_one| free("linux-6.12", is_for_one));
    assert!(one >= many + 800, "{one} and {many}");
}
