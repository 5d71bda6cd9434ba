//! Waits in a recording: they come back equal, and a file of them that is missing or changed is told.

use std::collections::BTreeMap;
use std::path::Path;

use pagetide_recording::files::Files;
use pagetide_recording::{Recording, RecordingError, WITHIN, Wait, WaitEnd, WaitKind};

use crate::example::example;

fn waits() -> Vec<Wait> {
    let wait = |task: &str, wait: &str, kind, ended, futile, count: u64, each_ns: u64| Wait {
        phase: "read".into(),
        task: task.into(),
        wait: wait.into(),
        kind,
        ended,
        futile,
        count,
        requested_ns: (kind == WaitKind::Writes).then_some(count * 20_000_000),
        spent_ns: count * each_ns,
        longest_ns: each_ns,
        lengths: BTreeMap::from([(15, count)]),
        ..Wait::default()
    };
    use WaitEnd::{Run, Timeout, Wake};
    vec![
        wait("reader-3", "congestion_wait", WaitKind::Writes, Timeout, Some(true), 8979, 20_000_000),
        wait("reader-3", "congestion_wait", WaitKind::Writes, Wake, Some(false), 2, 3_000_000),
        wait("a,\"b\"\n", "wait_iff_congested", WaitKind::Writes, Timeout, None, 1, 20_000_000),
        wait("kswapd0", "kswapd asleep", WaitKind::Idle, Run, Some(false), 1, 900_000_000),
    ]
}

fn decode_files(files: &Files) -> Result<Recording, RecordingError> {
    files.decode(Path::new("runs/first"))
}

#[test]
fn waits_read_back_equal_with_what_tasks_were_in_the_middle_of() {
    let mut told = waits();
    told[0].within = format!("allocation stall{WITHIN}super-block shrinker");
    told[0].on = "any write, \"or\" none".into();
    for waits in [waits(), told] {
        let waited = example().waited(waits);
        assert_eq!(decode_files(&Files::encode(&waited)).unwrap(), waited);
    }
}

#[test]
fn without_waits_there_is_no_file() {
    let files = Files::encode(&example().waited(Vec::new()));
    assert_eq!(files, Files::encode(&example()));
    let parent = tempfile::tempdir().unwrap();
    example().waited(Vec::new()).write(&parent.path().join("first")).unwrap();
    assert!(!parent.path().join("first/waits.parquet").exists());
    assert_eq!(decode_files(&files).unwrap().waits, []);
}

#[test]
fn a_missing_or_changed_file_of_waits_is_told() {
    let parent = tempfile::tempdir().unwrap();
    let target = parent.path().join("first");
    let waited = example().waited(waits());
    waited.write(&target).unwrap();
    assert_eq!(Recording::read(&target).unwrap(), waited);
    let path = target.join("waits.parquet");
    let mut bytes = std::fs::read(&path).unwrap();
    bytes[20] ^= 1;
    std::fs::write(&path, bytes).unwrap();
    let error = Recording::read(&target).unwrap_err();
    assert!(matches!(error, RecordingError::Changed { .. }), "{error}");
    std::fs::remove_file(&path).unwrap();
    let error = Recording::read(&target).unwrap_err();
    assert!(matches!(error, RecordingError::Missing { path } if path.ends_with("waits.parquet")));
}
