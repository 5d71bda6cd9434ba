//! Stories about events on disk: they come back equal, chunk by chunk, whoever was killed in between.

use std::fs;
use std::path::Path;

use pagetide_recording::{
    Chunk, Event, EventReader, MANIFEST, NameId, Names, Recording, RecordingError, RecordingWriter,
};

use crate::example::example;

fn event_file(number: usize) -> String {
    format!("events/{number:05}.parquet")
}

/// `count` events of which each has something that the one before does not have.
fn events(names: &mut Names, from: u64, count: u64) -> Chunk {
    let mut event = |number: u64| {
        let mut name = |stem: &str| names.intern(&format!("{stem}{}", number % 7));
        let some = !number.is_multiple_of(3);
        Event {
            time_ns: number * 1000,
            duration_ns: number % 2 * 500,
            event: name("mm_vmscan_"),
            task: some.then(|| name("reader-")),
            cgroup: some.then(|| name("P/")),
            by_cgroup: None,
            file: (!some).then(|| name("größe ")),
            reason: some.then(|| name("\"quoted\", ")),
            page: some.then_some(number * 31),
            pages: 4000 - number as u32 % 4000,
            node: some.then_some(number as u8),
            priority: (!some).then_some(12),
            order: Some(9),
            value: some.then_some(-(number as i64)),
        }
    };
    Chunk { events: (from..from + count).map(&mut event).collect() }
}

/// An event with its texts instead of their numbers, which differ between a writer and its reader.
fn spelt(event: &Event, names: &Names) -> String {
    let text = |id: Option<NameId>| id.map(|id| names.text(id).to_owned());
    let texts = [event.task, event.cgroup, event.by_cgroup, event.file, event.reason]
        .map(text)
        .map(|text| format!("{text:?}"));
    let Event { time_ns, duration_ns, page, pages, node, priority, order, value, .. } = event;
    let name = names.text(event.event);
    format!(
        "{time_ns} {duration_ns} {name} {texts:?} {page:?} {pages} {node:?} {priority:?} {order:?} {value:?}"
    )
}

fn all(chunk: &Chunk, names: &Names) -> Vec<String> {
    chunk.events.iter().map(|event| spelt(event, names)).collect()
}

fn read_all(folder: &Path) -> Vec<String> {
    let (names, events) = EventReader::open(folder).unwrap().expect("there are events").read_all().unwrap();
    all(&Chunk { events }, &names)
}

#[test]
fn events_read_back_equal_however_they_were_handed_over() {
    let parent = tempfile::tempdir().unwrap();
    let mut names = Names::default();
    let whole = events(&mut names, 0, 20_000);
    for (target, pieces) in [("one", 20_000), ("many", 333)] {
        let mut writer = RecordingWriter::begin(&parent.path().join(target), &example()).unwrap();
        let (mut names, mut from) = (Names::default(), 0);
        while from < 20_000 {
            let count = pieces.min(20_000 - from);
            let chunk = events(&mut names, from, count);
            writer.events().unwrap().append(&chunk, &names).unwrap();
            from += count;
        }
        let hash = writer.finish(&example()).unwrap();
        assert_eq!(hash, example().content_hash(), "events do not change what a run is called");
    }
    let [one, many] = ["one", "many"].map(|target| parent.path().join(target));
    assert_eq!(read_all(&one), all(&whole, &names));
    assert_eq!(Recording::read(&one).unwrap(), example());
    for number in 0..3 {
        let [one, many] = [&one, &many].map(|folder| fs::read(folder.join(event_file(number))).unwrap());
        assert_eq!(one, many, "file {number}");
    }
    assert!(!one.join(event_file(3)).exists() && one.join(MANIFEST).is_file());
}

#[test]
fn a_recording_without_events_has_none_and_one_of_no_events_has_an_empty_table() {
    let parent = tempfile::tempdir().unwrap();
    let [without, empty] = ["without", "empty"].map(|target| parent.path().join(target));
    example().write(&without).unwrap();
    assert!(EventReader::open(&without).unwrap().is_none());
    assert!(matches!(EventReader::open(&parent.path().join("none")), Err(RecordingError::NoFolder { .. })));
    let mut writer = RecordingWriter::begin(&empty, &example()).unwrap();
    writer.events().unwrap();
    writer.finish(&example()).unwrap();
    assert_eq!(read_all(&empty), Vec::<String>::new());
}

/// A run that is killed leaves all chunks but the last one; what was being written then is not read.
#[test]
fn events_of_a_run_that_was_killed_are_read_up_to_the_last_complete_chunk() {
    let parent = tempfile::tempdir().unwrap();
    let mut writer = RecordingWriter::begin(&parent.path().join("killed"), &example()).unwrap();
    let mut names = Names::default();
    let chunk = events(&mut names, 0, 15_000);
    writer.events().unwrap().append(&chunk, &names).unwrap();
    let folder = writer.path().to_owned();
    std::mem::forget(writer); // Nothing is dropped by a kill.
    fs::write(folder.join("events/00002.partial"), b"PAR1 half").unwrap();
    let read = read_all(&folder);
    assert_eq!(read.len(), 4096 + 8192);
    assert_eq!(read, all(&chunk, &names)[..read.len()]);
}

/// A short run whose events had reached the disk, and nothing else, lost them when the disk was full at its end.
#[test]
fn events_that_were_written_stay_where_the_system_refuses_the_end_of_a_run() {
    let parent = tempfile::tempdir().unwrap();
    let mut writer = RecordingWriter::begin(&parent.path().join("full"), &example()).unwrap();
    let mut names = Names::default();
    let chunk = events(&mut names, 0, 5000);
    writer.events().unwrap().append(&chunk, &names).unwrap();
    fs::create_dir_all(writer.path().join("series.parquet").join("in the way")).unwrap();
    let error = writer.finish(&example()).unwrap_err();
    let RecordingError::Partial { path, .. } = &error else { panic!("{error}") };
    assert!(read_all(path).len() >= 4096, "the first chunk is there");
}

/// Whoever takes pages one by one took hours, and filled memory or a disk.
#[test]
fn events_of_more_pages_than_those_of_any_run_are_refused() {
    let parent = tempfile::tempdir().unwrap();
    let read = |name: &str, pages: u32| {
        let mut writer = RecordingWriter::begin(&parent.path().join(name), &example()).unwrap();
        let mut names = Names::default();
        let mut chunk = events(&mut names, 0, 20);
        chunk.events.iter_mut().for_each(|event| event.pages = 0);
        chunk.events[7].pages = pages;
        writer.events().unwrap().append(&chunk, &names).unwrap();
        writer.finish(&example()).unwrap();
        EventReader::open(&parent.path().join(name)).unwrap().expect("there are events").read_all()
    };
    assert_eq!(read("all-of-64-gib", 1 << 24).unwrap().1[7].pages, 1 << 24);
    let error = read("billions", u32::MAX).unwrap_err();
    let RecordingError::Damaged { path, problem } = &error else { panic!("{error}") };
    assert!(path.ends_with("billions/events/00000.parquet"), "{error}");
    assert_eq!(problem, "row 8 is of 4294967295 pages, and no run has so many at once");
}

#[test]
fn a_damaged_chunk_is_told_and_ends_the_reading() {
    let parent = tempfile::tempdir().unwrap();
    let target = parent.path().join("first");
    let mut writer = RecordingWriter::begin(&target, &example()).unwrap();
    let mut names = Names::default();
    let chunk = events(&mut names, 0, 30_000);
    writer.events().unwrap().append(&chunk, &names).unwrap();
    writer.finish(&example()).unwrap();
    let path = target.join(event_file(1));
    let good = fs::read(&path).unwrap();
    let outcomes = || {
        let reader = EventReader::open(&target).unwrap().unwrap();
        reader.map(|chunk| chunk.map(|chunk| chunk.events.len())).collect::<Vec<_>>()
    };
    fs::write(&path, &good[..good.len() / 2]).unwrap();
    let [first, second] = &outcomes()[..] else { panic!("reading goes on after damage") };
    assert_eq!(*first.as_ref().unwrap(), 4096);
    assert!(matches!(second, Err(RecordingError::Changed { path, .. }) if path.ends_with("00001.parquet")));
    fs::remove_file(&path).unwrap();
    assert!(matches!(&outcomes()[1], Err(RecordingError::Missing { .. })));
    // Without a manifest nobody knows what a damaged file was.
    fs::write(&path, b"PAR1").unwrap();
    fs::rename(target.join(MANIFEST), target.join("MANIFEST.lost")).unwrap();
    fs::create_dir(target.join("series")).unwrap();
    assert!(matches!(&outcomes()[1], Err(RecordingError::Damaged { .. })));
}

#[test]
fn a_page_beyond_the_largest_file_is_damage() {
    let mut names = Names::default();
    let mut chunk = events(&mut names, 0, 4096);
    for (page, fits) in [((1 << 51) - 7, true), ((1 << 51) - 6, false), (u64::MAX, false)] {
        (chunk.events[1].page, chunk.events[1].pages) = (Some(page), 7);
        let parent = tempfile::tempdir().unwrap();
        let mut writer = RecordingWriter::begin(&parent.path().join("first"), &example()).unwrap();
        writer.events().unwrap().append(&chunk, &names).unwrap();
        let read = EventReader::open(writer.path()).unwrap().unwrap().next().unwrap();
        assert_eq!(read.is_ok(), fits, "{page}: {:?}", read.err());
    }
}
