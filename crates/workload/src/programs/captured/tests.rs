//! What is known of a replay before it runs.

use trace::{NONE, Operation, OperationKind, TraceFile, TraceMapping, TraceTask, open};

use std::collections::BTreeMap;

use super::*;

fn operation(at_us: u64, task: u32, kind: OperationKind, object: u32, offset: u64, len: u64) -> Operation {
    let (at_ns, think_ns, took_ns, detail) = (at_us * 1000, 700, 1000, 0);
    Operation { at_ns, think_ns, took_ns, task, kind, object, offset, len, detail }
}

/// A process of two threads and its child, with so many files of 1 MiB.
fn plan(files: usize, operations: Vec<Operation>) -> Plan {
    let task = |(parent, process)| TraceTask { parent, process, ..TraceTask::default() };
    let tasks = [(NONE, 0), (0, 0), (0, 2)].map(task).to_vec();
    let files = vec![TraceFile { size_bytes: 1 << 20, ..TraceFile::default() }; files];
    let (file, file_offset, len) = (NONE, 0, 1 << 20);
    let (shared, writable, executable) = (false, true, false);
    let mut mappings = vec![TraceMapping { file, file_offset, len, shared, writable, executable }; 2];
    mappings[1].shared = true;
    let trace = Trace { tasks, files, mappings, operations, ..Trace::default() };
    trace.check().expect("it can be replayed");
    Plan::of(Arc::new(trace))
}

#[test]
fn what_threads_do_to_memory_their_first_one_does_after_as_much_time() {
    let plan = plan(
        1,
        vec![
            operation(10, 0, OperationKind::Map, 0, 0, 8192),
            operation(20, 0, OperationKind::Spawn, 1, 0, 0),
            operation(30, 1, OperationKind::Dirty, 0, 0, 4096),
            operation(40, 1, OperationKind::Read, 0, 0, 4096),
            operation(55, 0, OperationKind::Read, 0, 0, 4096),
            operation(56, 0, OperationKind::Read, 0, 0, 4096),
        ],
    );
    assert_eq!(plan.steps, [vec![0, 1, 2, 4, 5], vec![3], vec![]]);
    assert_eq!((plan.roots.clone(), plan.spawns.clone()), (vec![0, 2], BTreeMap::from([(1, 1)])));
    assert_eq!(plan.think(2), 700 * 9 / 34, "its share of what the first one thought meanwhile");
    assert_eq!(plan.think(4), 700 * 25 / 34, "the rest of it");
    assert_eq!(plan.think(5), 700, "as it was captured");
    assert_eq!((plan.first_think(0, 0), plan.first_think(1, 20_000)), (10_000, 20_000));
}

#[test]
fn a_task_waits_for_a_child_that_ended_while_it_did_nothing() {
    let waits = |end: u64| {
        let plan = plan(
            1,
            vec![
                operation(10, 0, OperationKind::Spawn, 2, 0, 0),
                operation(20, 0, OperationKind::Read, 0, 0, 4096),
                operation(21, 2, OperationKind::Read, 0, 0, 4096),
                operation(end, 2, OperationKind::Exit, NONE, 0, 0),
                operation(60, 0, OperationKind::Read, 0, 0, 4096),
            ],
        );
        plan.waits.get(&4).map(|(children, _)| (children.clone(), plan.think(4)))
    };
    assert_eq!(waits(50), Some((vec![2], 10_000)));
    assert_eq!(waits(60), Some((vec![2], 0)));
    // A child that ends last is waited for at the end of all.
    let plan = plan(
        0,
        vec![
            operation(10, 0, OperationKind::Spawn, 2, 0, 0),
            operation(90, 2, OperationKind::Exit, NONE, 0, 0),
        ],
    );
    assert_eq!(plan.waits, BTreeMap::new());
}

/// ```text
///   process 0 maps, begins child 2: both touch what they share
///   process 0 maps, its thread 1 begins child 2, or it was begun before: process 0 touches for both, and that is said
/// ```
#[test]
fn who_shares_memory_touches_it_if_it_comes_of_who_mapped_it() {
    let steps = |map_us: u64, parent: u32| {
        let plan = plan(
            0,
            vec![
                operation(5, 0, OperationKind::Spawn, 1, 0, 0),
                operation(map_us.min(10), 0, OperationKind::Map, 1, 0, 8192),
                operation(20, parent, OperationKind::Spawn, 2, 0, 0),
                operation(map_us.max(20), 0, OperationKind::Map, 1, 0, 8192),
                operation(40, 2, OperationKind::Dirty, 1, 0, 4096),
            ]
            .into_iter()
            .filter(|operation| operation.kind != OperationKind::Map || operation.at_ns == map_us * 1000)
            .collect(),
        );
        (plan.steps[2].len(), plan.is_mapped_by(1, 2), plan.remarks().count())
    };
    assert_eq!(steps(10, 0), (1, true, 0));
    assert_eq!(steps(10, 1), (0, false, 1), "a thread is a process here, and has it not");
    assert_eq!(steps(30, 0), (0, false, 1));
}

#[test]
fn files_are_laid_out_unless_the_program_makes_them() {
    let made = |kind, object, offset, len| operation(10, 0, kind, object, offset, len);
    let created = Operation { detail: open::CREATED, ..made(OperationKind::Open, 1, 0, 0) };
    let plan = plan(
        4,
        vec![
            made(OperationKind::Read, 0, 0, 4096),
            created,
            made(OperationKind::Write, 1, 0, 10 << 20),
            made(OperationKind::Write, 2, 1 << 20, 1 << 20),
        ],
    );
    let files: Vec<(u32, u64)> = plan.files().map(|(number, file)| (number, file.laid_out.get())).collect();
    assert_eq!(files, [(0, 1 << 20), (2, 1 << 20)], "the fourth one is never used");
    assert_eq!(plan.footprint().files, Bytes((2 + 10 + 1) << 20));
}

/// ```text
///   0     reads at 0, is seen to touch at 10 and at 60, reads at 100: 80 thought
///   a child ends at 60: what was thought before goes, it was a wait
/// ```
#[test]
fn memory_is_touched_while_a_task_thinks_and_a_wait_is_no_thought() {
    let kinds = [
        (0, OperationKind::Read),
        (10, OperationKind::Touch),
        (60, OperationKind::Touch),
        (100, OperationKind::Read),
    ];
    let mut operations: Vec<Operation> = kinds
        .map(|(at, kind)| Operation { took_ns: 0, think_ns: 0, ..operation(at, 0, kind, 0, 0, 4096) })
        .to_vec();
    operations[3].think_ns = 80_000;
    let alone = plan(1, operations.clone());
    assert_eq!([1, 2, 3].map(|step| alone.think(step)), [8_000, 40_000, 32_000]);
    operations.insert(1, operation(5, 0, OperationKind::Spawn, 2, 0, 0));
    operations.insert(3, operation(58, 2, OperationKind::Exit, NONE, 0, 0));
    let waits = plan(1, operations);
    assert_eq!([4, 5].map(|step| waits.think(step)), [2_000, 80_000 * 40 / 94]);
}
