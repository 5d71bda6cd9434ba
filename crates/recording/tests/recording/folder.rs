//! Recordings on disk: a folder is complete or not there, and nothing else is touched.

use std::fs;
use std::path::Path;

use pagetide_recording::folder::{check_new_folder, remove_left};
use pagetide_recording::{Recording, RecordingError, RecordingWriter};

use crate::example::example;

fn names_in(folder: &Path) -> Vec<String> {
    let mut names: Vec<String> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

#[test]
fn what_a_run_left_that_did_not_end_goes_and_nothing_else() {
    let parent = tempfile::tempdir().unwrap();
    let target = parent.path().join("run");
    for _ in 0..2 {
        std::mem::forget(RecordingWriter::begin(&target, &example()).unwrap()); // Killed.
    }
    let foreign = parent.path().join("run.partial-3");
    fs::create_dir(&foreign).unwrap();
    fs::write(foreign.join("thesis"), b"x").unwrap();
    remove_left(&target).unwrap();
    assert_eq!(names_in(parent.path()), ["run.partial-3"]);
    remove_left(&parent.path().join("never")).unwrap();
}

#[test]
fn a_written_folder_reads_back_and_leaves_nothing_else_behind() {
    let parent = tempfile::tempdir().unwrap();
    let target = parent.path().join("first");
    let hash = example().write(&target).unwrap();
    assert_eq!(hash, example().content_hash());
    assert_eq!(Recording::read(&target).unwrap(), example());
    assert_eq!(names_in(parent.path()), ["first"]);
    assert_eq!(
        names_in(&target),
        ["MANIFEST", "recording.json", "samples.parquet", "scenario.toml", "series.parquet"]
    );
}

#[test]
fn an_existing_folder_is_never_touched_even_when_empty() {
    let parent = tempfile::tempdir().unwrap();
    let target = parent.path().join("mine");
    fs::create_dir(&target).unwrap();
    let error = example().write(&target).unwrap_err();
    assert_eq!(error.to_string(), format!("`{}` exists already", target.display()));
    assert_eq!(error.hint(), "name a new folder, or remove this one first");
    assert_eq!(names_in(parent.path()), ["mine"]);
    assert!(names_in(&target).is_empty());
}

/// `--out a/b` was refused where there was no `a`.
#[test]
fn missing_parents_are_made_and_go_away_with_what_fails() {
    let parent = tempfile::tempdir().unwrap();
    let target = parent.path().join("a/b/first");
    let partial = RecordingWriter::begin(&target, &example()).unwrap();
    assert_eq!(names_in(&parent.path().join("a/b")), ["first.partial"]);
    drop(partial);
    assert!(names_in(parent.path()).is_empty(), "a run that failed leaves no folders behind");
    example().write(&target).unwrap();
    example().write(&parent.path().join("a/b/second")).unwrap();
    assert!(example().write(&target).is_err());
    assert_eq!(names_in(&parent.path().join("a/b")), ["first", "second"]);
    check_new_folder(Path::new("no-such-folder/below")).unwrap();
    assert!(!Path::new("no-such-folder").exists());
}

#[test]
fn a_target_can_be_checked_before_the_run() {
    let parent = tempfile::tempdir().unwrap();
    check_new_folder(&parent.path().join("later")).unwrap();
    check_new_folder(&parent.path().join("much/later/still")).unwrap();
    assert!(names_in(parent.path()).is_empty());
    for (target, kind) in [
        ("a-file/below", "is not a folder"),
        ("a-file/far/below", "is not a folder"),
        ("..", "does not name"),
    ] {
        fs::write(parent.path().join("a-file"), b"").unwrap();
        let error = check_new_folder(&parent.path().join(target)).unwrap_err();
        assert!(error.to_string().contains(kind), "{target}: {error}");
    }
    assert!(matches!(check_new_folder(Path::new("")), Err(RecordingError::NotAName { .. })));
}

#[test]
fn a_name_that_is_too_long_is_the_systems_refusal() {
    let parent = tempfile::tempdir().unwrap();
    let error = example().write(&parent.path().join("x".repeat(300))).unwrap_err();
    assert!(matches!(error, RecordingError::Unwritable { .. }), "{error}");
}

#[test]
fn what_is_not_a_recording_is_told_apart() {
    let parent = tempfile::tempdir().unwrap();
    let target = parent.path().join("first");
    let read = |path: &Path| Recording::read(path).unwrap_err();
    assert!(matches!(read(&target), RecordingError::NoFolder { .. }));
    assert!(matches!(read(parent.path()), RecordingError::Foreign { .. }));
    example().write(&target).unwrap();
    assert!(matches!(read(&target.join("MANIFEST")), RecordingError::NotAFolder { .. }));
    fs::remove_file(target.join("series.parquet")).unwrap();
    assert!(matches!(read(&target), RecordingError::Missing { path } if path.ends_with("series.parquet")));
    fs::create_dir(target.join("series.parquet")).unwrap();
    assert!(
        matches!(read(&target), RecordingError::Unreadable { path, .. } if path.ends_with("series.parquet"))
    );
}
