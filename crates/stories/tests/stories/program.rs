//! A captured program, made again on a simulated machine: stories about its tasks, files and memory.

use std::sync::Arc;

use mm::base::layout::MemoryLayout;
use mm::version::rules::{HighOvercharge, HighPause};
use sim::{DeviceModel, Hardware, Program, SimResult, SimRun};
use trace::{NONE, Operation, OperationKind, Trace, TraceFile, TraceMapping, TraceTask, advice, open};
use units::{Nanos, Pages};
use workload::Workload;

use crate::ended;

/// Operations of a trace, a millisecond apart.
#[derive(Default)]
struct Story(Trace);

impl Story {
    fn of(tasks: &[(u32, u32)]) -> Self {
        let task = |(number, &(parent, process)): (usize, &(u32, u32))| TraceTask {
            tid: number as u32 + 100,
            parent,
            process,
            name: format!("task {number}"),
        };
        let tasks = tasks.iter().enumerate().map(task).collect();
        Self(Trace { source: "capture".to_owned(), tasks, ..Trace::default() })
    }

    fn file(&mut self, size_bytes: u64) -> u32 {
        self.0.files.push(TraceFile { path: "/srv/file".to_owned(), size_bytes, in_memory: false });
        self.0.files.len() as u32 - 1
    }

    fn anonymous(&mut self, len: u64, shared: bool) -> u32 {
        let (file, file_offset, writable, executable) = (NONE, 0, true, false);
        self.0.mappings.push(TraceMapping { file, file_offset, len, shared, writable, executable });
        self.0.mappings.len() as u32 - 1
    }

    fn then(&mut self, task: u32, kind: OperationKind, object: u32, offset: u64, len: u64) -> &mut Operation {
        let at_ns = self.0.operations.len() as u64 * 1_000_000;
        let (think_ns, took_ns, detail) = (900_000, 100_000, 0);
        self.0.operations.push(Operation {
            at_ns,
            think_ns,
            took_ns,
            task,
            kind,
            object,
            offset,
            len,
            detail,
        });
        self.0.operations.last_mut().expect("it was just pushed")
    }

    fn told(&self, params: &[(&'static str, &'static str)]) -> SimResult {
        self.told_by("linux-6.12", params)
    }

    fn told_by(&self, kernel: &str, params: &[(&'static str, &'static str)]) -> SimResult {
        self.0.check().expect("the story makes sense");
        let workload = Workload::new("program", params.iter().copied()).expect("its parameters");
        let workload = workload.with_trace(Arc::new(self.0.clone()));
        let hardware = Hardware::with_cpus(2).with_device(DeviceModel::NVME);
        let kernel = mm::Version::parse(kernel).expect("a preset");
        let spec = SimRun {
            time_limit: Nanos::from_secs(600),
            ..SimRun::new(
                Program::Workload(workload),
                kernel,
                hardware,
                MemoryLayout::flat(Pages(64 << 8), 2),
            )
        };
        ended(&spec)
    }
}

fn metric(result: &SimResult, name: &str) -> u64 {
    result.outcome.metrics[name] as u64
}

const MIB: u64 = 1 << 20;

/// Two passes over 8 MiB: the second finds all, unless the limit is lower than that.
#[test]
fn a_limit_decides_what_the_second_pass_finds() {
    let mut story = Story::of(&[(NONE, 0)]);
    let file = story.file(8 * MIB);
    for step in 0..128 {
        story.then(0, OperationKind::Read, file, step % 64 * 128 * 1024, 128 * 1024);
    }
    let free = story.told(&[]);
    assert_eq!((metric(&free, "pages_accessed"), metric(&free, "refaults")), (4096, 0));
    assert!(metric(&free, "page_hits") >= 2048, "{:?}", free.outcome.metrics);
    assert_eq!(metric(&free, "pages_scanned"), 0);
    let limited = story.told(&[("limit", "6M")]);
    assert!(metric(&limited, "page_hits") < metric(&free, "page_hits"), "{:?}", limited.outcome.metrics);
    assert!(metric(&limited, "refaults") > 0);
    assert!(limited.outcome.metrics["replay_seconds"] > free.outcome.metrics["replay_seconds"]);
    let protected = story.told(&[("high", "6M")]);
    assert!(metric(&protected, "pages_scanned") > 0);
}

/// 12 MiB of a heap, without swap, above a `memory.high` of 10 MiB: a brake that holds it for longer the farther it is
/// above, and none before 5.4. File cache is reclaimed instead, and nobody waits.
#[test]
fn above_memory_high_a_heap_is_held_and_a_file_is_not() {
    let mut heap = Story::of(&[(NONE, 0)]);
    let memory = heap.anonymous(12 * MIB, false);
    heap.then(0, OperationKind::Map, memory, 0, 0);
    for step in 0..48 {
        heap.then(0, OperationKind::Dirty, memory, step * 256 * 1024, 256 * 1024);
    }
    let seconds = |run: &SimResult| run.outcome.metrics["replay_seconds"];
    let held = |kernel: &str, high| seconds(&heap.told_by(kernel, &[("high", high)]));
    let (free, near, far) =
        (held("linux-6.12", "none"), held("linux-6.12", "11M"), held("linux-6.12", "10M"));
    assert!(near > 2.0 * free && far > 3.0 * near, "{free} {near} {far}");
    assert!(far < 2.0 * 512.0 / 32.0, "2 s for a batch at most: {far}");
    assert!(held("linux-5.3", "10M") < 1.5 * free, "no sleeps before 5.4");
    let mut file = Story::of(&[(NONE, 0)]);
    let read = file.file(16 * MIB);
    for step in 0..64 {
        file.then(0, OperationKind::Read, read, step * 256 * 1024, 256 * 1024);
    }
    let (free, limited) = (file.told(&[]), file.told(&[("high", "10M")]));
    assert!(metric(&limited, "pages_scanned") > 0 && seconds(&limited) < 1.5 * seconds(&free));
}

/// The features of 5.4, 5.9 and 5.18 are what decides, on a kernel that has the rest: without pauses a heap goes on,
/// and a read of 8 MiB in one call pays for all of it at its end or for each batch.
#[test]
fn what_a_task_pays_above_memory_high_is_a_feature_of_its_kernel() {
    let rules = |kernel: &str| {
        let rules = mm::Version::parse(kernel).expect("a kernel").rules;
        (rules.high_pause, rules.high_overcharge)
    };
    let at_return = "linux-6.12-high-overcharge-at-once";
    assert_eq!(rules("linux-6.12"), (HighPause::Insistent, HighOvercharge::AtOnce));
    assert_eq!(rules(at_return), (HighPause::Insistent, HighOvercharge::AtReturn));
    assert_eq!(rules("linux-5.4"), (HighPause::Once, HighOvercharge::AtReturn));
    assert_eq!(rules("linux-5.4+high-pause-retries").0, HighPause::Insistent);
    assert_eq!(rules("linux-5.4-high-pause").0, HighPause::None);
    assert_eq!(rules("linux-5.3+high-pause").0, HighPause::Once);
    assert_eq!(rules("linux-5.10+high-overcharge-at-once").1, HighOvercharge::AtOnce);
    let mut story = Story::of(&[(NONE, 0)]);
    let file = story.file(8 * MIB);
    story.then(0, OperationKind::Read, file, 0, 8 * MIB);
    let scanned = |kernel: &str| metric(&story.told_by(kernel, &[("high", "4M")]), "pages_scanned");
    let (at_once, at_return) = (scanned("linux-6.12"), scanned(at_return));
    assert!(at_once > 0 && at_return > 0 && at_once != at_return, "{at_once} {at_return}");
}

#[test]
fn a_closed_loop_takes_the_captured_think_times_and_an_open_one_the_captured_times() {
    let mut story = Story::of(&[(NONE, 0)]);
    let file = story.file(MIB);
    for step in 0..100 {
        story.then(0, OperationKind::Read, file, step * 4096, 4096);
    }
    let seconds = |pace| story.told(&[("pace", pace)]).outcome.metrics["replay_seconds"];
    let (think, recorded, asap) = (seconds("think"), seconds("recorded"), seconds("asap"));
    assert!((0.09..0.10).contains(&think), "{think}");
    assert!((0.099..0.10).contains(&recorded), "{recorded}");
    assert!(asap < 0.01, "{asap}");
}

/// A shell that begins two programs one after the other: the second one begins when the first one has ended, also
/// where that takes longer than it did.
#[test]
fn who_waited_for_the_end_of_a_task_waits_for_it_again() {
    let mut story = Story::of(&[(NONE, 0), (0, 1), (0, 2)]);
    let file = story.file(16 * MIB);
    story.then(0, OperationKind::Spawn, 1, 0, 0);
    for step in 0..256 {
        story.then(1, OperationKind::Read, file, (step * 37 % 256) * 65536, 65536);
    }
    story.then(1, OperationKind::Exit, NONE, 0, 0);
    story.then(0, OperationKind::Spawn, 2, 0, 0);
    for step in 0..256 {
        story.then(2, OperationKind::Read, file, (step * 37 % 256) * 65536, 65536);
    }
    story.then(2, OperationKind::Exit, NONE, 0, 0);
    let result = story.told(&[("pace", "asap")]);
    assert_eq!(metric(&result, "tasks"), 3);
    // Had both begun at once, each would have read half of the file for the other.
    let (hits, pages) = (metric(&result, "page_hits"), metric(&result, "pages_accessed"));
    assert_eq!((pages, hits >= 4096), (8192, true), "{hits}");
    assert_eq!(metric(&result, "operations"), 516);
}

#[test]
fn memory_is_touched_taken_back_in_parts_and_shared() {
    let mut story = Story::of(&[(NONE, 0), (0, 0), (0, 2)]);
    let (own, shared) = (story.anonymous(64 * MIB, false), story.anonymous(4 * MIB, true));
    story.then(0, OperationKind::Map, own, 0, 64 * MIB);
    story.then(0, OperationKind::Map, shared, 0, 4 * MIB);
    story.then(0, OperationKind::Dirty, own, 32 * MIB, 8 * MIB);
    // A thread of the process gives a half of it back.
    story.then(0, OperationKind::Spawn, 1, 0, 0);
    story.then(1, OperationKind::AdviseMapping, own, 32 * MIB, 4 * MIB).detail = advice::DONT_NEED;
    story.then(1, OperationKind::Exit, NONE, 0, 0);
    // A child reads what it shares, and writes to memory of all.
    story.then(0, OperationKind::Spawn, 2, 0, 0);
    story.then(2, OperationKind::Touch, own, 36 * MIB, 4 * MIB);
    story.then(2, OperationKind::Dirty, shared, 0, 2 * MIB);
    story.then(0, OperationKind::Dirty, shared, MIB, 2 * MIB);
    story.then(0, OperationKind::Unmap, own, 0, 64 * MIB);
    story.then(0, OperationKind::Sync, NONE, 0, 0);
    let result = story.told(&[]);
    assert_eq!(metric(&result, "pages_dirtied"), (8 + 2 + 2) << 8);
    assert_eq!(metric(&result, "operations_left_out"), 1, "what a child only reads is its parent's");
    let faults = result.vmstat["pgfault"] - result.vmstat_before["pgfault"];
    assert!(faults >= 11 << 8, "{faults}: 8 MiB and 3 MiB of what is shared");
}

/// ```text
///   limit 6 MiB    a process and its child write to 4 MiB: the same pages, or a copy each
/// ```
/// What a linker relocated is protected when a running program is attached to, and its pages are copies.
#[test]
fn pages_of_a_private_file_mapping_that_was_protected_since_are_copied() {
    let mut story = Story::of(&[(NONE, 0)]);
    let file = story.file(64 << 10);
    let (len, shared, writable, executable) = (64 << 10, false, false, false);
    story.0.mappings.push(TraceMapping { file, file_offset: 0, len, shared, writable, executable });
    story.then(0, OperationKind::Map, 0, 0, len);
    story.then(0, OperationKind::Dirty, 0, 0, 16 << 10);
    let result = story.told(&[]);
    assert_eq!((metric(&result, "pages_dirtied"), metric(&result, "operations_left_out")), (4, 0));
}

#[test]
fn memory_that_processes_share_is_there_once() {
    let killed = |shared: bool, part: u64| {
        let mut story = Story::of(&[(NONE, 0), (0, 1)]);
        let memory = story.anonymous(4 * MIB, shared);
        story.then(0, OperationKind::Map, memory, 0, 4 * MIB);
        story.then(0, OperationKind::Spawn, 1, 0, 0);
        story.then(1, OperationKind::Dirty, memory, 0, part);
        story.then(0, OperationKind::Dirty, memory, 0, 4 * MIB);
        story.then(1, OperationKind::Dirty, memory, 0, part);
        story.then(0, OperationKind::Unmap, memory, 0, 4 * MIB);
        story.then(1, OperationKind::Exec, NONE, 0, 0);
        let result = story.told(&[("limit", "6M")]);
        let counts = ["operations_left_out", "operations_out_of_order", "tasks_killed"];
        (counts.map(|name| metric(&result, name)), result.vmstat.get("nr_shmem").copied())
    };
    assert_eq!(killed(true, 4 * MIB), ([0, 0, 0], Some(0)), "it fits, and goes with those that had it");
    assert_eq!(killed(true, 0), ([0, 0, 0], Some(0)), "what one never touches it still has, and leaves");
    assert_eq!(killed(false, 4 * MIB).0, [0, 0, 1], "two copies do not fit");
}

#[test]
fn files_that_it_makes_are_made_and_those_that_are_gone_are_told() {
    let mut story = Story::of(&[(NONE, 0)]);
    let (log, lost) = (story.file(0), story.file(4096));
    story.then(0, OperationKind::Open, log, 0, 0).detail = open::CREATED | open::WRITE;
    story.then(0, OperationKind::Write, log, 0, 10_000);
    story.then(0, OperationKind::Fsync, log, 0, 0);
    story.then(0, OperationKind::Truncate, log, 0, 5000);
    story.then(0, OperationKind::Read, log, 0, 10_000);
    story.then(0, OperationKind::AdviseFile, log, 0, 0).detail = advice::DONT_NEED;
    story.then(0, OperationKind::Unlink, lost, 0, 0);
    story.then(0, OperationKind::Read, lost, 0, 4096);
    story.then(0, OperationKind::Open, log, 0, 0).detail = open::DIRECT | open::READ;
    story.then(0, OperationKind::Read, log, 0, 4096);
    let result = story.told(&[]);
    let metrics = ["written_bytes", "read_bytes", "operations_out_of_order", "operations_left_out"];
    assert_eq!(metrics.map(|name| metric(&result, name)), [10_000, 5000, 1, 1]);
}

/// Tasks that a broken trace lets spawn each other run once.
#[test]
fn every_task_runs_once_whatever_the_trace_says_of_its_parents() {
    let mut story = Story::of(&[(1, 0), (0, 1), (2, 2)]);
    let file = story.file(MIB);
    story.then(0, OperationKind::Spawn, 1, 0, 0);
    story.then(1, OperationKind::Spawn, 0, 0, 0);
    story.then(2, OperationKind::Spawn, 2, 0, 0);
    for task in 0..3 {
        story.then(task, OperationKind::Read, file, 0, 4096);
    }
    let result = story.told(&[]);
    assert_eq!((metric(&result, "tasks"), metric(&result, "requests_read")), (3, 3));
}

/// What a look saw used ten times is touched ten times while its task thinks; what it saw once, once.
#[test]
fn pages_that_were_used_often_are_touched_as_often() {
    let mut story = Story::of(&[(NONE, 0)]);
    let mapping = story.anonymous(MIB, false);
    story.then(0, OperationKind::Map, mapping, 0, MIB);
    story.then(0, OperationKind::Dirty, mapping, 0, MIB);
    story.then(0, OperationKind::Touch, mapping, 0, MIB / 2).detail = 10;
    story.then(0, OperationKind::Touch, mapping, MIB / 2, MIB / 2);
    let told = story.told(&[]);
    assert_eq!(metric(&told, "pages_touched"), 128 * 10 + 128);
    assert_eq!(metric(&told, "operations"), 4);
}
