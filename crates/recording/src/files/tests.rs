//! Stories about recordings as bytes: they come back equal, and damage never goes unseen.

use std::collections::BTreeMap;
use std::path::Path;

use proptest::prelude::*;

use super::*;
use crate::{OomKill, Phase, Stall};

/// A small recording that has something everywhere.
pub(crate) fn example() -> Recording {
    let names = ["nr_free_pages", "pgscan_kswapd", "nr_zone_unevictable"].map(String::from).to_vec();
    Recording {
        scenario_toml: "workload = \"hot-and-stream\"\nseed = 7\n".into(),
        metrics: BTreeMap::from([("hot_pages_cached".into(), 1710.0), ("a_third".into(), 1.0 / 3.0)]),
        samples: BTreeMap::from([("files_per_s".into(), vec![4444.8, 5003.7])]),
        vmstat: BTreeMap::from([("pgscan_kswapd".into(), 157_036), ("nr_free_pages".into(), 5000)]),
        memcg: BTreeMap::from([("P/A".into(), BTreeMap::from([("inactive_file".into(), 4096)]))]),
        phases: vec![Phase { name: "hot_ready".into(), at_ns: 703_000_000, vmstat: BTreeMap::new() }],
        series: Series::new(names, vec![(0, vec![900, 0, 7]), (100_000_000, vec![800, 32, 7])]),
        stalls: vec![Stall {
            task: "stream".into(),
            reason: "page read".into(),
            count: 3,
            total_ns: 900_000,
            max_ns: 500_000,
        }],
        events: 1234,
        simulated_ns: 23_142_000_000,
        ..Recording::new("linux-6.12", "hot-and-stream", "sim", "linux-6.12", 7)
    }
}

fn decode(files: &Files) -> Result<Recording, RecordingError> {
    files.decode(Path::new("runs/first"))
}

fn message(error: &RecordingError) -> String {
    format!("{error}\nhint: {}", error.hint())
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
    let plain = String::from_utf8(Files::encode(&example()).files[0].1.clone()).unwrap();
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
    let files = Files::encode(&example());
    let json = String::from_utf8(files.files[0].1.clone()).unwrap();
    insta::assert_snapshot!(String::from_utf8(files.manifest.encode()).unwrap(), @"
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

/// Changes one file and repairs `MANIFEST`, as somebody would who writes the format himself.
/// The example with other bytes in one file, as `MANIFEST` then says.
fn with_file(file: usize, bytes: &[u8]) -> Result<Recording, RecordingError> {
    let mut files = Files::encode(&example());
    files.files[file].1 = bytes.to_vec();
    files.manifest = Manifest::new(files.files.iter().map(|(name, bytes)| (name.as_str(), bytes.as_slice())));
    decode(&files)
}

fn decode_manifest(bytes: &[u8]) -> Result<Manifest, RecordingError> {
    Manifest::decode(bytes, Path::new("runs/first/MANIFEST"))
}

#[test]
fn every_broken_file_is_named_with_the_place() {
    let changed = |file: usize, change: fn(&mut Vec<u8>)| {
        let mut files = Files::encode(&example());
        change(&mut files.files[file].1);
        decode(&files).unwrap_err()
    };
    let manifest = |change: fn(String) -> String| {
        let text = String::from_utf8(Files::encode(&example()).manifest.encode()).unwrap();
        decode_manifest(change(text).as_bytes()).unwrap_err()
    };
    let no_time = table::encode(&[Column::of_u64("nr_free_pages", [900].into_iter())]);
    let texts = [Column::of_u64("time_ns", [0].into_iter()), Column::of_texts("nr_dirty", ["x"].into_iter())];
    let errors = [
        with_file(0, b"{\"schema\": 1,\n \"label\": oops}").unwrap_err(),
        with_file(0, b"[]").unwrap_err(),
        with_file(0, b"").unwrap_err(),
        with_file(1, b"name = \"\xff\"").unwrap_err(),
        with_file(2, b"time_ns,nr_free_pages\n0,900\n100").unwrap_err(),
        with_file(2, b"").unwrap_err(),
        with_file(2, &no_time).unwrap_err(),
        with_file(2, &table::encode(&texts)).unwrap_err(),
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
    let texts: Vec<String> = errors.iter().map(ToString::to_string).collect();
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
    insta::assert_snapshot!(message(&errors[0]), @r"
`runs/first/recording.json`, line 2, column 11: expected value
hint: it was cut short or edited: copy the folder again, or make the run again
");
    assert_eq!(errors[12].hint(), "read it with the pagetide that wrote it, or make the run again");
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
        let good = Files::encode(&example());
        let mut bad = good.clone();
        let mut manifest = good.manifest.encode();
        let bytes = if file == 4 { &mut manifest } else { &mut bad.files[file].1 };
        let place = place.index(bytes.len());
        if cut { bytes.truncate(place) } else { bytes[place] = byte }
        prop_assume!(bad != good || manifest != good.manifest.encode());
        let error = decode_manifest(&manifest).and_then(|_| decode(&bad)).expect_err("the bytes differ");
        prop_assert!(error.to_string().contains("runs/first"), "{}", error);
    }

    /// Somebody else's writer: hashes agree, contents are anything.
    #[test]
    fn arbitrary_files_never_panic(file in 0_usize..4, bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = with_file(file, &bytes).map(|recording| Files::encode(&recording));
    }

    #[test]
    fn arbitrary_manifests_never_panic(text in "(pagetide recording\n)?(schema [0-9]{1,22}\n)?(file [ a-z.]{0,20}\n){0,3}\\PC*") {
        prop_assert!(decode_manifest(text.as_bytes()).is_err());
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
