//! Stories about recordings as bytes: they come back equal, and damage never goes unseen.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use pagetide_recording::files::Files;
use pagetide_recording::{MANIFEST, OomKill, Phase, Recording, RecordingError, SCHEMA, Series};
use proptest::prelude::*;
use xxhash_rust::xxh3::xxh3_128;

use crate::example::{Column, example, table};

fn decode(files: &Files) -> Result<Recording, RecordingError> {
    files.decode(Path::new("runs/first"))
}

/// What is written in a folder, by name: that of `MANIFEST` last.
type Written = Vec<(String, Vec<u8>)>;

fn written(recording: &Recording) -> Written {
    let parent = tempfile::tempdir().unwrap();
    let folder = parent.path().join("first");
    recording.write(&folder).unwrap();
    let names = ["recording.json", "scenario.toml", "series.parquet", "samples.parquet", MANIFEST];
    names.map(|name| (name.to_owned(), fs::read(folder.join(name)).unwrap())).to_vec()
}

fn text(written: &Written, file: usize) -> String {
    String::from_utf8(written[file].1.clone()).unwrap()
}

/// A recording, or the error as if the folder were `runs/first`, and what is said of it.
fn read(written: &Written) -> Result<Recording, (RecordingError, String)> {
    let folder = tempfile::tempdir().unwrap();
    for (name, bytes) in written {
        fs::write(folder.path().join(name), bytes).unwrap();
    }
    Recording::read(folder.path()).map_err(|error| {
        let told = error.to_string().replace(&folder.path().display().to_string(), "runs/first");
        (error, told)
    })
}

#[test]
fn a_recording_reads_back_equal() {
    let recording = example();
    assert_eq!(decode(&Files::encode(&recording)).unwrap(), recording);
}

#[test]
fn notes_are_kept_and_take_no_place_where_there_are_none() {
    let noted = Recording { notes: vec!["the CPU was emulated".into()], ..example() };
    assert_eq!(decode(&Files::encode(&noted)).unwrap(), noted);
    let plain = text(&written(&example()), 0);
    assert!(!plain.contains("notes"), "{plain}");
}

#[test]
fn what_the_oom_killer_took_is_kept() {
    let kill = OomKill {
        at_ns: 3_200_000_000,
        task: "stream".into(),
        cgroup: "P/B".into(),
        by_limit: true,
        anon_pages: Some(45),
        memory: vec!["memory: usage 1024kB, limit 1024kB, failcnt 7".into()],
        ..OomKill::default()
    };
    let why = vec!["no zone would pass".into()];
    let gauges = BTreeMap::from([("nr_free_pages".into(), 7)]);
    let panicked = OomKill { panicked: true, ..OomKill::default() };
    for kill in [kill.clone(), OomKill { why, ..kill.clone() }, OomKill { gauges, ..kill }, panicked] {
        let killed = example().killed(vec![kill]);
        assert_eq!(decode(&Files::encode(&killed)).unwrap(), killed);
    }
    assert_eq!(Files::encode(&example().killed(Vec::new())), Files::encode(&example()));
}

/// Whoever kept a recording of an older pagetide reads it with a newer one, and what it is written as again is
/// of the newest version.
#[test]
fn recordings_of_all_older_versions_are_read() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/recordings");
    let read = |schema: u32| Recording::read(&folder.join(format!("schema-{schema}"))).unwrap();
    let first = read(1);
    assert_eq!(first, Recording { schema: 1, version: String::new(), ..example() });
    let told = |schema: u32| {
        let recording = read(schema);
        let Recording { oom_kills, waits, sections, notes, wall_ns, .. } = &recording;
        let again = decode(&Files::encode(&recording)).unwrap();
        assert_eq!(again, Recording { schema: SCHEMA, ..recording.clone() });
        let kill = oom_kills.first().map(|kill| (kill.task.as_str(), kill.panicked));
        let within: Vec<&str> = waits.iter().map(|wait| wait.within.as_str()).collect();
        format!("{}: {kill:?} {within:?} {} {notes:?} {wall_ns:?}", recording.schema, sections.len())
    };
    insta::assert_snapshot!([1, 2, 3, 4, 5].map(told).join("\n"), @r#"
    1: None [] 0 [] None
    2: Some(("stream", false)) [] 0 [] None
    3: Some(("stream", false)) ["", ""] 0 [] None
    4: Some(("stream", true)) ["allocation stall > super-block shrinker", ""] 1 ["the CPU was emulated"] Some(5)
    5: None ["", "", "", "", "", "", "", "allocation stall", "", "", "", "", "", "", "", "", "", "", "", ""] 2 [] None
    "#);
}

/// A workload whose task is killed may go on: its metrics are worth as much as ever.
#[test]
fn a_run_ended_by_a_kill_or_a_panic_is_told_from_one_that_went_on() {
    let kill = |task: &str, panicked| OomKill { task: task.into(), panicked, ..OomKill::default() };
    let went_on = example().killed(vec![kill("creator", false)]);
    assert!(!went_on.metrics.is_empty());
    assert_eq!(went_on.ended_by(), None);
    let ended = Recording { metrics: BTreeMap::new(), ..went_on };
    assert_eq!(ended.ended_by(), ended.oom_kills.first());
    let deadlocked = ended.killed(vec![kill("creator", false), kill("kthreadd", true)]);
    assert_eq!(deadlocked.ended_by(), deadlocked.oom_kills.last());
}

#[test]
fn what_came_after_the_last_phase_belongs_to_the_run_too() {
    let counters = |pairs: [(&str, u64); 2]| pairs.map(|(name, count)| (name.to_owned(), count)).into();
    let recording = Recording {
        vmstat: counters([("pgactivate", 240), ("nr_free_pages", 70)]),
        phases: vec![Phase {
            name: "faulted".into(),
            at_ns: 5,
            vmstat: counters([("pgactivate", 176), ("nr_free_pages", 90)]),
        }],
        simulated_ns: 9,
        ..Recording::new("", "", "sim", "", 1)
    };
    let rest = recording.phases_to_the_end().pop().unwrap();
    let expected: std::collections::BTreeMap<_, _> = counters([("pgactivate", 64), ("nr_free_pages", 70)]);
    assert_eq!((rest.name.as_str(), rest.at_ns, rest.vmstat), ("after faulted", 9, expected));
    let ends_with_its_phase =
        Recording { vmstat: recording.phases[0].vmstat.clone(), simulated_ns: 5, ..recording };
    assert_eq!(ends_with_its_phase.phases_to_the_end().len(), 1);
}

#[test]
fn an_empty_recording_reads_back_equal() {
    let recording = Recording::new("", "", "host", "", 0);
    assert_eq!(decode(&Files::encode(&recording)).unwrap(), recording);
}

#[test]
fn wall_time_is_kept_for_real_kernels_only() {
    let with = |backend: &str| Recording { wall_ns: Some(5), backend: backend.into(), ..example() };
    assert_eq!(decode(&Files::encode(&with("vm:6.12"))).unwrap().wall_ns, Some(5));
    assert_eq!(decode(&Files::encode(&with("sim"))).unwrap().wall_ns, None);
    assert_eq!(with("sim").content_hash(), example().content_hash());
}

#[test]
fn numbers_that_json_does_not_have_survive() {
    let mut recording = example();
    recording.metrics.insert("limit".into(), f64::INFINITY);
    recording.metrics.insert("nothing".into(), -0.0);
    recording.samples.insert("undefined".into(), vec![f64::NAN, f64::NEG_INFINITY]);
    let back = decode(&Files::encode(&recording)).unwrap();
    assert_eq!(back.metrics, recording.metrics);
    assert!(back.metrics["nothing"].is_sign_negative());
    assert!(back.samples["undefined"][0].is_nan());
    assert_eq!(back.content_hash(), recording.content_hash());
}

#[test]
fn the_bytes_of_a_recording_never_change() {
    let files = written(&example());
    let json = text(&files, 0);
    insta::assert_snapshot!(text(&files, 4), @"
    pagetide recording
    schema 5
    file recording.json 741 ecb3574510be19a16ef718300f6dab0f
    file scenario.toml 37 862ee67b738fb27ecd26c11d8e72c3c4
    file series.parquet 346 d9c3b42a26decb090f8ec3e831ee960d
    file samples.parquet 265 0b8a76462c2030c5d78e0307f935c48e
    content f823039acac4b56ec342e63452d7d899
    ");
    insta::assert_snapshot!(json, @r#"
    {
      "schema": 5,
      "version": "0.1.0",
      "label": "linux-6.12",
      "workload": "hot-and-stream",
      "backend": "sim",
      "kernel": "linux-6.12",
      "seed": 7,
      "metrics": {
        "a_third": 0.3333333333333333,
        "hot_pages_cached": 1710.0
      },
      "vmstat": {
        "nr_free_pages": 5000,
        "pgscan_kswapd": 157036
      },
      "memcg": {
        "P/A": {
          "inactive_file": 4096
        }
      },
      "phases": [
        {
          "name": "hot_ready",
          "at_ns": 703000000,
          "vmstat": {}
        }
      ],
      "series_constant": {
        "nr_zone_unevictable": 7
      },
      "stalls": [
        {
          "task": "stream",
          "reason": "page read",
          "count": 3,
          "total_ns": 900000,
          "max_ns": 500000
        }
      ],
      "events": 1234,
      "simulated_ns": 23142000000
    }
    "#);
}

/// The example with other bytes in one file, as `MANIFEST` then says: by somebody who writes the format himself.
fn with_file(file: usize, bytes: &[u8]) -> Result<Recording, (RecordingError, String)> {
    let mut files = written(&example());
    files[file].1 = bytes.to_vec();
    let line =
        |(name, bytes): &(String, Vec<u8>)| format!("file {name} {} {:032x}\n", bytes.len(), xxh3_128(bytes));
    let lines: String = files[..4].iter().map(line).collect();
    let listed = format!("pagetide recording\nschema {SCHEMA}\n{lines}");
    files[4].1 = format!("{listed}content {:032x}\n", xxh3_128(listed.as_bytes())).into_bytes();
    read(&files)
}

#[test]
fn every_broken_file_is_named_with_the_place() {
    let changed = |file: usize, change: fn(&mut Vec<u8>)| {
        let mut files = written(&example());
        change(&mut files[file].1);
        read(&files).unwrap_err()
    };
    let manifest = |change: fn(String) -> String| {
        let mut files = written(&example());
        files[4].1 = change(text(&files, 4)).into_bytes();
        read(&files).unwrap_err()
    };
    let no_time = table(&[Column::Numbers("nr_free_pages", vec![900])], None);
    let texts = [Column::Numbers("time_ns", vec![0]), Column::Texts("nr_dirty", vec!["x"])];
    let errors = [
        with_file(0, b"{\"schema\": 1,\n \"label\": oops}").unwrap_err(),
        with_file(0, b"[]").unwrap_err(),
        with_file(0, b"").unwrap_err(),
        with_file(1, b"name = \"\xff\"").unwrap_err(),
        with_file(2, b"time_ns,nr_free_pages\n0,900\n100").unwrap_err(),
        with_file(2, b"").unwrap_err(),
        with_file(2, &no_time).unwrap_err(),
        with_file(2, &table(&texts, None)).unwrap_err(),
        with_file(3, &no_time).unwrap_err(),
        changed(1, |bytes| bytes.extend(b"# a thought\n")),
        changed(2, |bytes| bytes.truncate(bytes.len() / 2)),
        changed(2, |bytes| bytes[20] ^= 1),
        manifest(|text| text.replace("schema 5", "schema 6")),
        manifest(|text| text.replace("schema 5", "schema five")),
        manifest(|text| text[..90].to_owned()),
        manifest(|text| text.replace("samples.parquet", "/etc/passwd")),
        manifest(|text| text.replace("content ", "content 0")),
        manifest(|text| text + "file events/00000.parquet 7 0123\n"),
        manifest(|_| "a diary\n".to_owned()),
    ];
    let texts: Vec<&str> = errors.iter().map(|(_, told)| told.as_str()).collect();
    insta::assert_snapshot!(texts.join("\n"), @"
    `runs/first/recording.json`, line 2, column 11: expected value
    `runs/first/recording.json`, line 1, column 2: invalid length 0, expected an object with the keys of a recording
    `runs/first/recording.json`, line 1, column 1: EOF while parsing a value
    `runs/first/scenario.toml`, line 1, column 9: byte 0xff is not UTF-8 text
    `runs/first/series.parquet` is no table that can be read: Invalid Parquet file. Corrupt footer
    `runs/first/series.parquet` is no table that can be read: Parquet file too small. Size is 0 but need 8
    `runs/first/series.parquet` is no table that can be read: its first column is not `time_ns`
    `runs/first/series.parquet` is no table that can be read: `nr_dirty` has no whole numbers
    `runs/first/samples.parquet` is no table that can be read: expected `name`, a text, and `value`, a float
    `runs/first/scenario.toml` was changed after it was written: it has 49 bytes, `MANIFEST` says 37
    `runs/first/series.parquet` was changed after it was written: it has 173 bytes, `MANIFEST` says 346
    `runs/first/series.parquet` was changed after it was written: its hash is cba09662d813faef55552d8b51b3d344, `MANIFEST` says d9c3b42a26decb090f8ec3e831ee960d
    `runs/first/MANIFEST` has schema 6, this program reads up to schema 5
    `runs/first/MANIFEST`, line 2, column 1: expected `schema` and a number
    `runs/first/MANIFEST`, line 4, column 1: expected `file scenario.toml`, its length and its hash
    `runs/first/MANIFEST`, line 6, column 1: expected no `/etc/passwd` there
    `runs/first/MANIFEST`, line 7, column 1: expected `content` and the hash of the lines above
    `runs/first/MANIFEST`, line 8, column 1: expected `file events/00000.parquet 7 00000000000000000000000000000123`
    `runs/first/MANIFEST`, line 1, column 1: expected `pagetide recording`
    ");
    insta::assert_snapshot!(format!("{}\nhint: {}", errors[0].1, errors[0].0.hint()), @r"
`runs/first/recording.json`, line 2, column 11: expected value
hint: it was cut short or edited: copy the folder again, or make the run again
");
    assert_eq!(errors[12].0.hint(), "read it with the pagetide that wrote it, or make the run again");
}

#[test]
fn column_names_with_commas_and_quotes_survive() {
    let mut recording = example();
    recording.series.columns = vec!["a,b.c".into(), "c\"d\n".into()];
    assert_eq!(decode(&Files::encode(&recording)).unwrap(), recording);
}

#[test]
fn names_without_samples_survive() {
    for samples in [
        BTreeMap::from([("none".to_owned(), vec![])]),
        BTreeMap::from([("none".to_owned(), vec![]), ("one".to_owned(), vec![1.0])]),
    ] {
        let recording = Recording { samples, ..example() };
        assert_eq!(decode(&Files::encode(&recording)).unwrap(), recording);
    }
}

proptest! {
    /// Whatever happens to a byte of any file: the reader says so, and never panics.
    #[test]
    fn no_damage_goes_unseen(file in 0_usize..5, place in any::<prop::sample::Index>(), byte: u8, cut: bool) {
        let good = written(&example());
        let mut bad = good.clone();
        let bytes = &mut bad[file].1;
        let place = place.index(bytes.len());
        if cut { bytes.truncate(place) } else { bytes[place] = byte }
        prop_assume!(bad != good);
        let (error, told) = read(&bad).expect_err("the bytes differ");
        prop_assert!(told.contains("runs/first"), "{}", told);
        let of_manifest = matches!(error, RecordingError::Malformed { .. } | RecordingError::Schema { .. });
        prop_assert!(file < 4 || of_manifest, "{}", told);
    }

    /// Somebody else's writer: hashes agree, contents are anything.
    #[test]
    fn arbitrary_files_never_panic(file in 0_usize..4, bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = with_file(file, &bytes).map(|recording| Files::encode(&recording));
    }

    #[test]
    fn floats_and_series_read_back_to_the_bit(
        numbers in prop::collection::vec(any::<f64>().prop_filter("NaN has many bits", |x| !x.is_nan()), 0..20),
        rows in prop::collection::vec((any::<u64>(), prop::collection::vec(any::<u64>(), 3)), 0..10),
    ) {
        let mut recording = example();
        recording.samples.insert("drawn".into(), numbers);
        let names = ["a", "b", "c"].map(String::from).to_vec();
        recording.series = Series::new(names, rows);
        prop_assert_eq!(decode(&Files::encode(&recording)).unwrap(), recording);
    }
}
