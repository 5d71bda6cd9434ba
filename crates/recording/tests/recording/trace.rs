//! Stories about traces on disk: they come back equal, also what is left of them when something ends too early.

use std::fs;
use std::path::Path;
use std::sync::LazyLock;

use pagetide_recording::trace::TRACE_SCHEMA;
use pagetide_recording::{TraceError, TraceWriter, is_trace, read_trace, write_trace};
use proptest::prelude::*;
use trace::{NONE, Operation, OperationKind, Trace, TraceFile, TraceMapping, TraceTask, open};

use crate::example::{Column, table};

/// An operation at a microsecond, after a think time and a length of some.
fn operation(at_us: u64, task: u32, kind: OperationKind, object: u32) -> Operation {
    Operation {
        at_ns: at_us * 1000,
        think_ns: at_us / 3 * 1000,
        took_ns: 9000,
        task,
        kind,
        object,
        offset: 0,
        len: 0,
        detail: 0,
    }
}

/// A number that has nothing in common with its neighbours: the end of SplitMix64.
fn mixed(number: u64) -> u64 {
    let number =
        (number.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0x5bd1_e995).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    (number ^ (number >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb) ^ (number >> 31)
}

/// A service of two processes that reads a database and its own log, with so many reads.
fn service(reads: u64) -> Trace {
    let task = |tid, parent, process, name: &str| TraceTask { tid, parent, process, name: name.to_owned() };
    let file = |path: &str, size_bytes, in_memory| TraceFile { path: path.to_owned(), size_bytes, in_memory };
    let mapping = |file, len, executable: bool| TraceMapping {
        file,
        file_offset: 4096,
        len,
        shared: file != NONE,
        writable: !executable,
        executable,
    };
    let mut operations = vec![
        Operation { detail: open::READ, ..operation(10, 0, OperationKind::Open, 0) },
        operation(20, 0, OperationKind::Spawn, 1),
        Operation { len: 1 << 20, ..operation(30, 1, OperationKind::Map, 1) },
        Operation { offset: 4096, len: 8192, ..operation(40, 1, OperationKind::Dirty, 1) },
    ];
    operations.extend((0..reads).map(|number| {
        let drawn = mixed(number);
        Operation {
            offset: drawn % 76_800 * 4096,
            len: 4096 + drawn % 3 * 100,
            took_ns: (1 + (drawn >> 17) % 5) * 1000,
            think_ns: (drawn >> 32) % 1700 * 1000,
            ..operation(
                100 + number * 1000 + (drawn >> 24) % 900,
                (drawn >> 40) as u32 % 2,
                OperationKind::Read,
                ((drawn >> 50) % 7 / 6) as u32,
            )
        }
    }));
    operations.push(operation(2000 + reads * 1000, 0, OperationKind::Exit, NONE));
    Trace {
        source: "capture".to_owned(),
        command: "serve --db größe.db".to_owned(),
        length_ns: (3000 + reads * 1000) * 1000,
        sampled_every_ns: 50_000_000,
        gaps: vec!["2 events were lost".to_owned()],
        tasks: vec![task(100, NONE, 0, "serve"), task(101, 0, 1, "worker \"a\"")],
        files: vec![file("/srv/größe.db", 300 << 20, false), file("/dev/shm/log", 0, true)],
        mappings: vec![mapping(0, 8192, true), mapping(NONE, 1 << 20, false)],
        operations,
    }
}

fn told(error: &TraceError, parent: &Path) -> String {
    let told = format!("{error}\n{}", error.hint());
    told.replace(&parent.display().to_string(), "P")
}

#[test]
fn a_trace_reads_back_equal_and_leaves_nothing_else() {
    let parent = tempfile::tempdir().unwrap();
    for reads in [0, 1, 30_000] {
        let path = parent.path().join(format!("{reads}.trace"));
        write_trace(&path, &service(reads)).unwrap();
        assert!(is_trace(&path).unwrap());
        assert_eq!(read_trace(&path).unwrap(), service(reads));
    }
    let nothing = parent.path().join("nothing.trace");
    write_trace(&nothing, &Trace::default()).unwrap();
    assert_eq!(read_trace(&nothing).unwrap(), Trace::default());
    assert_eq!(fs::read_dir(parent.path()).unwrap().count(), 4);
}

/// Tables that grow while operations come, and a task that gets another name.
#[test]
fn the_same_operations_give_the_same_bytes_however_they_are_handed_over() {
    let parent = tempfile::tempdir().unwrap();
    let whole = service(20_000);
    let [at_once, by_and_by] = ["at once", "by and by"].map(|name| parent.path().join(name));
    write_trace(&at_once, &whole).unwrap();
    let mut writer = TraceWriter::create(&by_and_by).unwrap();
    whole.operations.chunks(333).for_each(|some| writer.append(&whole, some).unwrap());
    writer.finish(&whole).unwrap();
    assert_eq!(fs::read(&at_once).unwrap(), fs::read(by_and_by).unwrap());

    let mut so_far = Trace { files: whole.files[..1].to_vec(), mappings: vec![], ..whole.clone() };
    so_far.tasks[0].name = "sh".to_owned();
    let path = parent.path().join("grew");
    let mut writer = TraceWriter::create(&path).unwrap();
    writer.append(&so_far, &whole.operations[..2]).unwrap();
    writer.flush(&so_far).unwrap();
    writer.append(&whole, &whole.operations[2..]).unwrap();
    writer.finish(&whole).unwrap();
    assert_eq!(read_trace(&path).unwrap(), whole);
}

#[test]
fn operations_are_put_in_order_of_time() {
    let parent = tempfile::tempdir().unwrap();
    let path = parent.path().join("a.trace");
    let whole = service(10_000);
    let mut mixed = whole.clone();
    mixed.operations.chunks_mut(10).for_each(<[Operation]>::reverse);
    write_trace(&path, &mixed).unwrap();
    assert_eq!(read_trace(&path).unwrap(), whole);
}

#[test]
fn times_are_rounded_to_microseconds() {
    let parent = tempfile::tempdir().unwrap();
    let path = parent.path().join("a.trace");
    let mut trace = service(0);
    let first = &mut trace.operations[0];
    (first.at_ns, first.think_ns, first.took_ns) = (1_499, 1_500, u64::MAX);
    write_trace(&path, &trace).unwrap();
    let read = read_trace(&path).unwrap().operations[0];
    assert_eq!((read.at_ns, read.think_ns, read.took_ns), (1000, 2000, u64::MAX));
}

/// Wherever the file was cut, each operation that is read is one that was written, in order, from the first one.
#[test]
fn a_trace_that_was_cut_short_is_read_up_to_its_last_complete_group() {
    let parent = tempfile::tempdir().unwrap();
    let path = parent.path().join("a.trace");
    let whole = service(30_000);
    write_trace(&path, &whole).unwrap();
    let bytes = fs::read(&path).unwrap();
    let mut lengths = std::collections::BTreeSet::new();
    for parts in 1..60 {
        fs::write(&path, &bytes[..bytes.len() * parts / 60]).unwrap();
        match read_trace(&path) {
            Ok(read) => {
                let count = read.operations.len();
                assert_eq!(read.operations, whole.operations[..count]);
                assert_eq!((&read.tasks, &read.files), (&whole.tasks, &whole.files));
                assert_eq!(read.gaps.len(), 2, "{:?}", read.gaps);
                lengths.insert(count);
            }
            Err(error) => assert!(matches!(error, TraceError::Cut { .. }), "{error}"),
        }
    }
    assert_eq!(lengths.into_iter().collect::<Vec<_>>(), [4096, 12_288, 28_672]);
    fs::write(&path, &bytes[..bytes.len() - 1]).unwrap();
    let read = read_trace(&path).unwrap();
    assert_eq!(read.operations, whole.operations);
    insta::assert_snapshot!(read.gaps[1], @"the trace was cut short: it goes up to 30.003 s, where its last complete part ends");
    fs::write(&path, &bytes[..1000]).unwrap();
    insta::assert_snapshot!(told(&read_trace(&path).unwrap_err(), parent.path()), @"
    `P/a.trace` was cut short before anything in it was complete
    copy the file again, or make the trace again
    ");
}

#[test]
fn a_writer_that_ended_too_early_leaves_what_was_complete() {
    let parent = tempfile::tempdir().unwrap();
    let path = parent.path().join("a.trace");
    let whole = service(10_000);
    drop(TraceWriter::create(&path).unwrap());
    assert_eq!(fs::read_dir(parent.path()).unwrap().count(), 0);
    let mut writer = TraceWriter::create(&path).unwrap();
    writer.append(&whole, &whole.operations[..5000]).unwrap();
    drop(writer);
    insta::assert_snapshot!(told(&read_trace(&path).unwrap_err(), parent.path()), @"
    there is no trace at `P/a.trace`, but what was captured up to some point, in `P/a.trace.partial`
    name what is left to read it as far as it goes, or make the trace again
    ");
    let left = read_trace(&parent.path().join("a.trace.partial")).unwrap();
    assert_eq!(left.operations, whole.operations[..4096]);

    let mut writer = TraceWriter::create(&path).unwrap();
    assert_eq!(writer.path(), parent.path().join("a.trace.partial-2"));
    writer.append(&whole, &whole.operations[..5000]).unwrap();
    let broken = operation(9_000_000, 7, OperationKind::Exit, NONE);
    insta::assert_snapshot!(told(&writer.append(&whole, &[broken]).unwrap_err(), parent.path()), @"
    `P/a.trace` is no trace that can be replayed: operation 5000: task 7 is not in the trace, which has 2; what was complete by then is in `P/a.trace.partial-2`
    what is there can be replayed as far as it goes
    ");
    fs::write(&path, "theirs").unwrap();
    insta::assert_snapshot!(told(&writer.finish(&whole).unwrap_err(), parent.path()), @"
    `P/a.trace` exists already; what was complete by then is in `P/a.trace.partial-2`
    what is there can be replayed as far as it goes
    ");
    assert_eq!(
        read_trace(&parent.path().join("a.trace.partial-2")).unwrap().operations,
        whole.operations[..5000]
    );
    insta::assert_snapshot!(told(&TraceWriter::create(&path).unwrap_err(), parent.path()), @"
    `P/a.trace` exists already
    name a new file, or remove this one first
    ");
}

#[test]
fn what_is_no_trace_is_refused() {
    let parent = tempfile::tempdir().unwrap();
    let path = parent.path().join("a.trace");
    let refused = |bytes: &[u8]| {
        fs::write(&path, bytes).unwrap();
        told(&read_trace(&path).unwrap_err(), parent.path())
    };
    insta::assert_snapshot!(refused(b""), @"
    `P/a.trace` is no trace of a program: it does not begin as Parquet does
    `pagetide capture -o FILE -- COMMAND` makes a trace
    ");
    insta::assert_snapshot!(refused(b"time,key\n1,2\n"), @"
    `P/a.trace` is no trace of a program: it does not begin as Parquet does
    `pagetide capture -o FILE -- COMMAND` makes a trace
    ");
    insta::assert_snapshot!(refused(b"PAR1 half"), @"
    `P/a.trace` was cut short before anything in it was complete
    copy the file again, or make the trace again
    ");
    let other = table(&[Column::Numbers("time_ns", vec![1, 2])], None);
    insta::assert_snapshot!(refused(&other), @"
    `P/a.trace` is no trace of a program: it is Parquet of another program, without the key `pagetide.trace`
    `pagetide capture -o FILE -- COMMAND` makes a trace
    ");
    insta::assert_snapshot!(refused(&of_schema(TRACE_SCHEMA, "source")), @"
    `P/a.trace` is damaged: it has no column `time_us`
    copy the file again, or make the trace again
    ");
    insta::assert_snapshot!(refused(&of_schema(TRACE_SCHEMA + 1, "source")), @"
    `P/a.trace` has schema 2, this program reads up to schema 1
    read it with the pagetide that wrote it, or make the trace again
    ");
    insta::assert_snapshot!(refused(&of_schema(TRACE_SCHEMA, "other")), @"
    `P/a.trace` is damaged: `pagetide.trace`: missing field `source`
    copy the file again, or make the trace again
    ");
    fs::remove_file(&path).unwrap();
    insta::assert_snapshot!(told(&read_trace(&path).unwrap_err(), parent.path()), @"
    there is no trace at `P/a.trace`
    check the path; `pagetide capture -o FILE -- COMMAND` makes a trace
    ");
}

/// A file of one wrong column that says to be a trace.
fn of_schema(schema: u32, source: &str) -> Vec<u8> {
    let about = format!(
        r#"{{"schema":{schema},"{source}":"","command":"","length_ns":0,"sampled_every_ns":0,"gaps":[],"complete":true}}"#
    );
    table(&[Column::Numbers("time_ns", vec![1, 2])], Some(("pagetide.trace", about)))
}

/// Rows that a hand changed, or a bug of a writer: known at once, and told by the reader, too.
#[test]
fn rows_that_contradict_each_other_are_refused() {
    let parent = tempfile::tempdir().unwrap();
    let path = parent.path().join("a.trace");
    let mut broken = service(1);
    broken.mappings[1].len = 5000;
    insta::assert_snapshot!(told(&write_trace(&path, &broken).unwrap_err(), parent.path()), @"
    `P/a.trace` is no trace that can be replayed: operation 2: bytes 0 to 1048576 are outside of its mapping of 5000 bytes
    make the trace again; whatever wrote this one wrote a wrong row
    ");
    let mut broken = service(1);
    broken.mappings[0].file = 2;
    insta::assert_snapshot!(told(&write_trace(&path, &broken).unwrap_err(), parent.path()), @"
    `P/a.trace` is no trace that can be replayed: mapping 0: file 2 is not in the trace, which has 2
    make the trace again; whatever wrote this one wrote a wrong row
    ");
    let mut broken = service(1);
    broken.files[0].size_bytes = u64::MAX;
    insta::assert_snapshot!(told(&write_trace(&path, &broken).unwrap_err(), parent.path()), @"
    `P/a.trace` is no trace that can be replayed: file 0: bytes 0 and 18446744073709551615 more are beyond what a file can have
    make the trace again; whatever wrote this one wrote a wrong row
    ");
    assert_eq!(fs::read_dir(parent.path()).unwrap().count(), 0);
}

/// The file of a trace without damage.
static GOOD: LazyLock<Vec<u8>> = LazyLock::new(|| {
    let parent = tempfile::tempdir().unwrap();
    let path = parent.path().join("a.trace");
    write_trace(&path, &service(300)).unwrap();
    fs::read(path).unwrap()
});

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    /// Whatever happens to a file, its reader neither panics nor tells what was not written.
    #[test]
    fn a_damaged_trace_is_an_error_or_a_beginning(place in 0.0..1.0_f64, byte: u8, cut in 0.5..1.0_f64) {
        let parent = tempfile::tempdir().unwrap();
        let path = parent.path().join("a.trace");
        let mut bytes = GOOD.clone();
        let at = (bytes.len() as f64 * place) as usize;
        bytes[at] = byte;
        bytes.truncate((bytes.len() as f64 * cut) as usize);
        fs::write(&path, bytes).unwrap();
        if let Ok(read) = read_trace(&path) {
            prop_assert!(read.operations.len() <= service(300).operations.len());
        }
    }
}

/// A thousand operations a second for a day are below a gigabyte: random reads, of which nothing is alike.
#[test]
fn a_day_of_a_busy_service_is_below_a_gigabyte() {
    let parent = tempfile::tempdir().unwrap();
    let path = parent.path().join("a.trace");
    let reads = 300_000;
    write_trace(&path, &service(reads)).unwrap();
    let bytes = fs::metadata(&path).unwrap().len();
    assert!(bytes * 86_400_000 / reads < 1_000_000_000, "{} bytes an operation", bytes as f64 / reads as f64);
}
