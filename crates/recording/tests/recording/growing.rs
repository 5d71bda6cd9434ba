//! Recordings that grow: what is left of a run that did not end, and that nothing differs at the end.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use pagetide_recording::{Recording, RecordingError, RecordingWriter, Series};

use crate::example::example;

/// What is known of [`example`]'s run with so many chunks of two rows each.
fn known(chunks: u64) -> Recording {
    let done = chunks > 0;
    let phases = if done { example().phases } else { Vec::new() };
    Recording { phases, ..Recording::new("linux-6.12", "hot-and-stream", "sim", "linux-6.12", 7) }
}

fn chunk(number: u64) -> Series {
    let more = if number == 1 { vec!["cg_A_file"] } else { vec![] };
    let columns = [more, vec!["nr_free_pages", "pgscan_kswapd"]].concat();
    let row = |time: u64| (time, columns.iter().map(|name| name.len() as u64 + time).collect());
    let rows = vec![row(number * 200), row(number * 200 + 200)];
    Series { columns: columns.iter().map(|name| (*name).to_owned()).collect(), rows, ..Series::default() }
}

/// A recording of two chunks, left as a kill leaves it.
fn killed(parent: &Path) -> PathBuf {
    let mut writer = RecordingWriter::begin(&parent.join("first"), &known(0)).unwrap();
    (0..2).for_each(|number| writer.sampled(&known(number + 1), &chunk(number)).unwrap());
    let folder = writer.path().to_owned();
    std::mem::forget(writer); // Nothing is dropped by a kill.
    folder
}

#[test]
fn what_is_left_of_a_run_that_was_killed_reads_up_to_its_last_chunk() {
    let parent = tempfile::tempdir().unwrap();
    let folder = killed(parent.path());
    assert_eq!(folder, parent.path().join("first.partial"));
    fs::write(folder.join("series/00002.partial"), b"PAR1 half").unwrap();
    let read = Recording::read(&folder).unwrap();
    assert!(read.incomplete);
    assert_eq!(read.phases, example().phases);
    assert_eq!(read.series.columns, ["cg_A_file", "nr_free_pages", "pgscan_kswapd"]);
    let rows = [(0, [0, 13, 13]), (200, [209, 213, 213]), (400, [409, 413, 413])];
    assert_eq!(read.series.rows, rows.map(|(time, row)| (time, row.to_vec())));
    insta::assert_snapshot!(read.notes[0], @"the run did not end: this goes up to 0.000 s, where its last complete chunk ends; metrics, samples and waits come at the end of a run and are missing");
    let error = Recording::read(&parent.path().join("first")).unwrap_err();
    let told = error.to_string().replace(&parent.path().display().to_string(), "P");
    insta::assert_snapshot!(format!("{told}\n{}", error.hint()), @"
    there is no recording at `P/first`, but what a run left that did not end, in `P/first.partial`
    name what is left to read it as far as it goes, or make the run again
    ");
}

/// A machine that lost power may have files that are empty or half.
#[test]
fn a_damaged_chunk_ends_what_is_read() {
    let parent = tempfile::tempdir().unwrap();
    let folder = killed(parent.path());
    let chunk = folder.join("series/00001.parquet");
    let good = fs::read(&chunk).unwrap();
    for damaged in [&good[..good.len() / 2], b""] {
        fs::write(&chunk, damaged).unwrap();
        let read = Recording::read(&folder).unwrap();
        assert_eq!(read.series.times_ns().collect::<Vec<_>>(), [0, 200]);
    }
    fs::remove_dir_all(folder.join("series")).unwrap();
    fs::create_dir(folder.join("series")).unwrap();
    let read = Recording::read(&folder).unwrap();
    assert!(read.notes[0].contains("nothing but its scenario"), "{:?}", read.notes);
}

#[test]
fn a_recording_that_grew_is_the_one_that_is_written_at_once() {
    let parent = tempfile::tempdir().unwrap();
    let [grown, at_once] = ["grown", "at-once"].map(|name| parent.path().join(name));
    let mut writer = RecordingWriter::begin(&grown, &known(0)).unwrap();
    writer.sampled(&known(1), &chunk(0)).unwrap();
    assert_eq!(writer.finish(&example()).unwrap(), example().write(&at_once).unwrap());
    let names = |folder: &Path| {
        let names = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name());
        names.collect::<BTreeSet<_>>()
    };
    assert_eq!(names(&grown), names(&at_once));
    for name in names(&grown) {
        assert_eq!(fs::read(grown.join(&name)).unwrap(), fs::read(at_once.join(&name)).unwrap());
    }
}

#[test]
fn a_run_that_failed_leaves_nothing() {
    let parent = tempfile::tempdir().unwrap();
    let mut writer = RecordingWriter::begin(&parent.path().join("first"), &known(0)).unwrap();
    writer.sampled(&known(1), &chunk(0)).unwrap();
    drop(writer);
    assert_eq!(fs::read_dir(parent.path()).unwrap().count(), 0);
}

/// The system refuses in the middle, at the end, and to give the folder its name.
#[test]
fn what_was_written_before_the_system_refused_stays() {
    let parent = tempfile::tempdir().unwrap();
    for (run, refuse) in ["middle", "end", "name"].into_iter().zip(0..) {
        let target = parent.path().join(run);
        let mut writer = RecordingWriter::begin(&target, &known(0)).unwrap();
        writer.sampled(&known(1), &chunk(0)).unwrap();
        let error = match refuse {
            0 => {
                fs::create_dir_all(writer.path().join("series/00001.parquet").join("in the way")).unwrap();
                let error = writer.sampled(&known(2), &chunk(1)).unwrap_err();
                writer.refused(error)
            }
            1 => {
                fs::create_dir_all(writer.path().join("series.parquet").join("in the way")).unwrap();
                writer.finish(&example()).unwrap_err()
            }
            _ => {
                fs::create_dir_all(target.join("theirs")).unwrap();
                writer.finish(&example()).unwrap_err()
            }
        };
        let RecordingError::Partial { path, .. } = &error else { panic!("{error}") };
        assert_eq!(*path, parent.path().join(format!("{run}.partial")));
        let read = Recording::read(path).unwrap();
        assert_eq!((read.incomplete, read.series.rows.len()), (refuse < 2, 2));
    }
}
