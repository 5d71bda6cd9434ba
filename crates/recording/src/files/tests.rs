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
    let plain = String::from_utf8(Files::encode(&example()).covered[0].clone()).unwrap();
    assert!(!plain.contains("notes"), "{plain}");
}

/// Programs that know schema 1 only read every recording without a kill.
#[test]
fn what_the_oom_killer_took_is_kept_and_only_then_the_schema_is_newer() {
    let kill = OomKill {
        at_ns: 3_200_000_000,
        task: "stream".into(),
        cgroup: "P/B".into(),
        by_limit: true,
        anon_pages: Some(45),
        memory: vec!["memory: usage 1024kB, limit 1024kB, failcnt 7".into()],
        ..OomKill::default()
    };
    let killed = example().killed(vec![kill.clone()]);
    let files = Files::encode(&killed);
    assert!(files.manifest.starts_with(b"pagetide recording\nschema 2\n"));
    assert_eq!(decode(&files).unwrap(), killed);
    assert_eq!(Files::encode(&example().killed(Vec::new())), Files::encode(&example()));
    let why = vec!["no zone would pass".into()];
    let gauges = BTreeMap::from([("nr_free_pages".into(), 7)]);
    let panicked = OomKill { panicked: true, ..OomKill::default() };
    for more in [OomKill { why, ..kill.clone() }, OomKill { gauges, ..kill }, panicked] {
        let killed = example().killed(vec![more]);
        let files = Files::encode(&killed);
        assert!(files.manifest.starts_with(b"pagetide recording\nschema 4\n"));
        assert_eq!(decode(&files).unwrap(), killed);
    }
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
    let [json, _, series] = files.covered.map(|bytes| String::from_utf8(bytes).unwrap());
    insta::assert_snapshot!(String::from_utf8(files.manifest).unwrap(), @r"
pagetide recording
schema 1
file recording.json 793 938b7982eb3ad1a255a517768ad88cd1
file scenario.toml 37 862ee67b738fb27ecd26c11d8e72c3c4
file series.csv 61 b62813c4a259296ae60bee63bee5fc44
content 29f636f42c349c943ec8f86d48658ae8
");
    insta::assert_snapshot!(series, @r"
time_ns,nr_free_pages,pgscan_kswapd
0,900,0
100000000,800,32
");
    insta::assert_snapshot!(json, @r#"
{
  "schema": 1,
  "label": "linux-6.12",
  "workload": "hot-and-stream",
  "backend": "sim",
  "kernel": "linux-6.12",
  "seed": 7,
  "metrics": {
    "a_third": 0.3333333333333333,
    "hot_pages_cached": 1710.0
  },
  "samples": {
    "files_per_s": [
      4444.8,
      5003.7
    ]
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
fn with_file(index: usize, bytes: &[u8]) -> RecordingError {
    let mut files = Files::encode(&example());
    files.covered[index] = bytes.to_vec();
    files.manifest = encode_manifest(1, &files.covered, None);
    decode(&files).unwrap_err()
}

#[test]
fn every_broken_file_is_named_with_the_place() {
    let mut edited = Files::encode(&example());
    edited.covered[1].extend(b"# a thought\n");
    let mut flipped = Files::encode(&example());
    flipped.covered[2] = flipped.covered[2].iter().map(|&b| if b == b'9' { b'8' } else { b }).collect();
    let mut newer = Files::encode(&example());
    newer.manifest = newer.manifest.iter().map(|&b| if b == b'1' { b'9' } else { b }).collect();
    let mut cut = Files::encode(&example());
    cut.manifest.truncate(90);
    let mut short = Files::encode(&example());
    short.covered[2].pop();
    let errors = [
        with_file(0, b"{\"schema\": 1,\n \"label\": oops}"),
        with_file(0, b"[]"),
        with_file(0, b""),
        with_file(1, b"name = \"\xff\""),
        with_file(2, b"time_ns,nr_free_pages\n0,900\n100"),
        with_file(2, b"time_ns,nr_free_pages\n0,-9\n"),
        with_file(2, b""),
        decode(&short).unwrap_err(),
        decode(&edited).unwrap_err(),
        decode(&flipped).unwrap_err(),
        decode(&newer).unwrap_err(),
        decode(&cut).unwrap_err(),
    ];
    let texts: Vec<String> = errors.iter().map(ToString::to_string).collect();
    insta::assert_snapshot!(texts.join("\n"), @r"
`runs/first/recording.json`, line 2, column 11: expected value
`runs/first/recording.json`, line 1, column 2: invalid length 0, expected an object with the keys of a recording
`runs/first/recording.json`, line 1, column 1: EOF while parsing a value
`runs/first/scenario.toml`, line 1, column 9: byte 0xff is not UTF-8 text
`runs/first/series.csv`, line 3, column 1: the row has 1 fields, the header 2
`runs/first/series.csv`, line 2, column 3: `-9` is not a whole number
`runs/first/series.csv`, line 1, column 1: expected the column `time_ns`
`runs/first/series.csv` was changed after it was written: it has 60 bytes, `MANIFEST` says 61
`runs/first/scenario.toml` was changed after it was written: it has 49 bytes, `MANIFEST` says 37
`runs/first/series.csv` was changed after it was written: its hash is 93b2be4b82cd7de854f4903eb6c0f40e, `MANIFEST` says b62813c4a259296ae60bee63bee5fc44
`runs/first/MANIFEST` has schema 9, this program reads up to schema 4
`runs/first/MANIFEST`, line 4, column 1: expected `file scenario.toml`, its length and its hash
");
    insta::assert_snapshot!(message(&errors[0]), @r"
`runs/first/recording.json`, line 2, column 11: expected value
hint: it was cut short or edited: copy the folder again, or make the run again
");
}

#[test]
fn a_recording_of_another_schema_is_refused() {
    let mut future = example();
    future.schema = 9;
    let error = decode(&Files::encode(&future)).unwrap_err();
    assert!(matches!(error, RecordingError::Schema { found: 9, .. }), "{error}");
}

#[test]
fn column_names_with_commas_and_quotes_survive() {
    let mut recording = example();
    recording.series.columns = vec!["a,b".into(), "c\"d\n".into()];
    assert_eq!(decode(&Files::encode(&recording)).unwrap(), recording);
}

proptest! {
    /// Whatever happens to a byte of any file: the reader says so, and never panics.
    #[test]
    fn no_damage_goes_unseen(file in 0_usize..4, place in any::<prop::sample::Index>(), byte: u8, cut: bool) {
        let good = Files::encode(&example());
        let mut bad = good.clone();
        let bytes = if file == 3 { &mut bad.manifest } else { &mut bad.covered[file] };
        let place = place.index(bytes.len());
        if cut { bytes.truncate(place) } else { bytes[place] = byte }
        prop_assume!(bad != good);
        let error = decode(&bad).expect_err("the bytes differ");
        prop_assert!(error.to_string().contains("runs/first"), "{}", error);
    }

    /// Somebody else's writer: hashes agree, contents are anything.
    #[test]
    fn arbitrary_files_never_panic(file in 0_usize..3, bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let mut files = Files::encode(&example());
        files.covered[file] = bytes;
        files.manifest = encode_manifest(1, &files.covered, None);
        let _ = decode(&files).map(|recording| Files::encode(&recording));
    }

    #[test]
    fn arbitrary_manifests_never_panic(text in "(pagetide recording\n)?(schema [0-9]{1,22}\n)?(file [ a-z.]{0,20}\n){0,3}\\PC*") {
        let files = Files { manifest: text.into_bytes(), ..Files::encode(&example()) };
        prop_assert!(decode(&files).is_err());
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
