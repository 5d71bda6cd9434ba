//! Golden texts of whole reports, and the promise that no recording stops one.

use std::collections::BTreeMap;

use proptest::prelude::*;
use recording::{Phase, Recording, Series, Stall};
use stats::ops::OpsRules;
use stats::{Better, Rules};

use super::*;
use crate::document::Section;
use crate::views::{compare, metrics, mmtests_text, ops_text, run as run_view};

/// A section as text.
pub(crate) fn text_of(section: Section, width: usize) -> String {
    Document::new("").section(section).render(Format::Text, width)
}

/// A run of a hot set beside a stream; `kept` of its 6400 hot pages stay cached.
fn run(label: &str, seed: u64, kept: f64) -> Recording {
    let counts = |pairs: &[(&str, u64)]| {
        pairs.iter().map(|&(name, count)| (name.to_owned(), count)).collect::<BTreeMap<_, _>>()
    };
    let names = ["nr_free_pages", "pgscan_kswapd", "workingset_refault_file"].map(String::from).to_vec();
    let rows = (0..=20_u64)
        .map(|i| {
            (
                i * 1_000_000_000,
                vec![50_000 - 2_000 * i, 7_850 * i.saturating_sub(5), if i == 20 { 4_690 } else { 0 }],
            )
        })
        .collect();
    let stall = |task: &str, reason: &str, count, total_ns| Stall {
        task: task.into(),
        reason: reason.into(),
        count,
        total_ns,
        max_ns: total_ns / 2,
    };
    Recording {
        metrics: BTreeMap::from([
            ("hot_pages_cached".into(), kept),
            ("reread_ms".into(), 476.0 - kept / 20.0),
        ]),
        samples: BTreeMap::from([("read_latency_us".into(), vec![80.5, 95.0 + seed as f64, 120.25])]),
        vmstat: counts(&[
            ("allocstall_movable", 147),
            ("allocstall_normal", 3),
            ("nr_free_pages", 5_000),
            ("pgscan_direct", 4_881),
            ("pgscan_direct_throttle", 2),
            ("pgscan_kswapd", 157_036 + seed),
            ("pgsteal_direct", 4_881),
            ("pgsteal_kswapd", 150_000),
            ("workingset_refault_file", 6_400 - kept as u64),
        ]),
        memcg: BTreeMap::from([
            ("P/A".into(), counts(&[("inactive_file", kept as u64 * 4096), ("pgscan", 4_690)])),
            ("P/B".into(), counts(&[("inactive_file", 429_871_104), ("pgscan", 157_227), ("oom", 0)])),
        ]),
        phases: vec![
            Phase { name: "hot_ready".into(), at_ns: 703_000_000, vmstat: counts(&[("pgscan_kswapd", 0)]) },
            Phase {
                name: "stream_done".into(),
                at_ns: 22_666_000_000,
                vmstat: counts(&[("pgscan_kswapd", 157_036), ("allocstall_movable", 147)]),
            },
        ],
        series: Series::new(names, rows),
        stalls: vec![
            stall("reader-0", "page read", 40, 900_000_000),
            stall("reader-1", "page read", 38, 880_000_000),
            stall("stream", "direct reclaim throttle", 2, 3_100_000),
        ],
        events: 123_456,
        simulated_ns: 23_142_000_000,
        ..Recording::new(label, "hot-and-stream", "sim", label, seed)
    }
}

pub(crate) fn group<'a>(label: &str, recordings: &'a [Recording]) -> Group<'a> {
    Group {
        label: label.into(),
        command: format!("pagetide run hot-and-stream --kernel {label}"),
        recordings: recordings.iter().collect(),
    }
}

#[test]
fn one_run_reads_from_the_question_to_the_waits() {
    insta::assert_snapshot!(run_view(&run("linux-6.12", 7, 1710.0), None, &View::default()).render(Format::Text, 80), @"
    hot-and-stream on linux-6.12 (sim, seed 7), 23.14 s simulated

     metric                   value  unit
     hot_pages_cached        1710    pages
     reread_ms                390.5  ms
     read_latency_us (mean)   100.9  µs

     counter (/proc/vmstat)              total
     allocstall_movable                 147
     allocstall_normal                    3
     pgscan_kswapd                   157043
     pgscan_direct                     4881
     pgsteal_kswapd                  150000
     pgsteal_direct                    4881
     workingset_refault_file           4690
     kswapd reclaimed of scanned, %      95.52
     direct reclaimed of scanned, %     100.00

     phase               ends at     took   kswapd   direct  refaults  alloc stalls
                                           scanned  scanned
     hot_ready           0.703 s   703 ms        0        -         -             -
     stream_done        22.666 s  21.96 s   157036        -         -           147
     after stream_done  23.142 s   476 ms        7     4881      4690             3

    over time, 20 parts of 1.157 s; blank: not read
                                         least to most
     free          ███▇▇▇▆▆▅▅▅▄▄▃▃▃▂▂    10000 to 48000  pages
     kswapd scans  ····▆█████████████    0 to 7850       per s
     refaults      ················▅█    0 to 4690       per s

     who                 waited for               times  in all      mean  longest
     reader-* (2 tasks)  page read                   78  1.78 s  22.82 ms   450 ms
     stream              direct reclaim throttle      2  3.1 ms   1.55 ms  1.55 ms

    2 more counters, 2 cgroups with `--all`
    ");
}

#[test]
fn one_seed_a_side_is_exact_and_claims_nothing_more() {
    let (base, new) = ([run("linux-6.1", 1, 1710.0)], [run("linux-6.1+root-aging", 1, 6400.0)]);
    let groups = [group("linux-6.1", &base), group("linux-6.1+root-aging", &new)];
    insta::assert_snapshot!(compare(&groups, &View::default()).unwrap().render(Format::Text, 100), @r"
    hot-and-stream: linux-6.1 against linux-6.1+root-aging

     metric                  unit   linux-6.1  linux-6.1+root-aging    change  verdict
     hot_pages_cached        pages    1710                  6400     +274 %    better
     reread_ms               ms        390.5                 156      -60.1 %  better
     read_latency_us (mean)  µs         98.92                 98.92     0 %    same
    one seed: exact for it, says nothing of others; `--seeds 10` shows the spread

    what the runs say
     counter (/proc/vmstat)   linux-6.1  linux-6.1+root-aging  change
     workingset_refault_file       4690                     0  -100 %
    all 9 counters with `--all`

    made by
      linux-6.1: pagetide run hot-and-stream --kernel linux-6.1
      linux-6.1+root-aging: pagetide run hot-and-stream --kernel linux-6.1+root-aging
    ");
}

#[test]
fn several_seeds_give_intervals_and_verdicts() {
    let base = [1, 2, 3, 4].map(|seed| run("base", seed, 1700.0 + 10.0 * (seed % 3) as f64));
    let new = [1, 2, 3, 4].map(|seed| run("patched", seed, 2500.0 + 13.0 * (seed % 2) as f64));
    let groups = [group("base", &base), group("patched", &new)];
    insta::assert_snapshot!(compare(&groups, &View::default()).unwrap().render(Format::Text, 100), @"
    hot-and-stream: base against patched

     metric                  unit           base       patched          change [95 %]  verdict
     hot_pages_cached        pages  1710   ± 8    2506   ± 8    +47 % [+45, +48]       better
     reread_ms               ms      390.5 ± 0.4   350.7 ± 0.4  -10.2 % [-10.6, -9.8]  better
     read_latency_us (mean)  µs       99.4 ± 0.4    99.4 ± 0.4    0 %                  same
    4 paired seeds: mean ± standard deviation; paired t test; intervals and verdicts hold at 95 % over
      all 2 rows together (Bonferroni)
    a t test takes the mean over runs for normal; 7 runs a side are enough to test without that
    without an interval: the difference is the same in all 4 seeds, so judged by size

    what the runs say
     counter (/proc/vmstat)   base  patched   change
     workingset_refault_file  4690     3894  -17.0 %
    all 9 counters with `--all`

    made by
      base: pagetide run hot-and-stream --kernel base
      patched: pagetide run hot-and-stream --kernel patched
    ");
    insta::assert_snapshot!(compare(&groups, &View::default()).unwrap().render(Format::Markdown, 80), @"
    ## hot-and-stream: base against patched

    | metric | unit | base | patched | change [95 %] | verdict |
    | --- | --- | ---: | ---: | ---: | --- |
    | hot_pages_cached | pages | 1710 ± 8 | 2506 ± 8 | +47 % [+45, +48] | better |
    | reread_ms | ms | 390.5 ± 0.4 | 350.7 ± 0.4 | -10.2 % [-10.6, -9.8] | better |
    | read_latency_us (mean) | µs | 99.4 ± 0.4 | 99.4 ± 0.4 | 0 % | same |

    4 paired seeds: mean ± standard deviation; paired t test; intervals and verdicts hold at 95 % over all 2 rows together (Bonferroni)

    a t test takes the mean over runs for normal; 7 runs a side are enough to test without that

    without an interval: the difference is the same in all 4 seeds, so judged by size

    ### what the runs say

    | counter (/proc/vmstat) | base | patched | change |
    | --- | ---: | ---: | ---: |
    | workingset_refault_file | 4690 | 3894 | -17.0 % |

    all 9 counters with `--all`

    ```sh
    pagetide run hot-and-stream --kernel base  # base
    pagetide run hot-and-stream --kernel patched  # patched
    ```
    ");
}

#[test]
fn a_missing_metric_is_not_zero_and_one_real_run_is_no_evidence() {
    let mut real = run("6.12.117", 1, 1650.0);
    real.backend = "vm:6.12".into();
    real.metrics.remove("reread_ms");
    let (base, new) = ([run("linux-6.12", 1, 1710.0)], [real]);
    let text = compare(&[group("linux-6.12", &base), group("6.12.117", &new)], &View::default())
        .unwrap()
        .render(Format::Text, 100);
    let table: String =
        text.lines().take_while(|line| !line.starts_with("what")).map(|l| format!("{l}\n")).collect();
    insta::assert_snapshot!(table, @r"
    hot-and-stream: linux-6.12 against 6.12.117

     metric                  unit   linux-6.12     6.12.117  change  verdict
     hot_pages_cached        pages     1710         1650     -3.5 %  one run
     reread_ms               ms         390.5   not counted   -      -
     read_latency_us (mean)  µs          98.92        98.92   0 %    one run
    one run a side: how much repeats vary is not known; make more runs for a verdict
    ");
}

#[test]
fn runs_pair_by_seed_whatever_their_order() {
    let base = [1, 2, 3].map(|seed| run("base", seed, 1000.0 + 100.0 * seed as f64));
    let new = [3, 1, 2].map(|seed| run("new", seed, 1010.0 + 100.0 * seed as f64));
    let text = compare(&[group("base", &base), group("new", &new)], &View::default())
        .unwrap()
        .render(Format::Text, 100);
    assert!(text.contains("the same in all 3 seeds") && text.contains("better"), "{text}");
}

#[test]
fn an_interval_without_work_counts_and_stalls_may_be_zero() {
    let with = |samples: &[f64]| {
        let mut run = Recording::new("k", "w", "sim", "k", 1);
        run.samples.insert("files_per_s".into(), samples.to_vec());
        run.samples.insert("stalls_per_s".into(), samples.to_vec());
        run
    };
    let (base, new) = ([with(&[4.0, 12.0])], [with(&[0.0, 8.0])]);
    insta::assert_snapshot!(compare(&[group("base", &base), group("new", &new)], &View::default()).unwrap().render(Format::Markdown, 80), @r"
    ## w: base against new

    | metric | unit | base | new | change | verdict |
    | --- | --- | ---: | ---: | ---: | --- |
    | files_per_s (harmonic mean) | files/s | 6 | 0 | -100 % | worse |
    | stalls_per_s (mean) | 1/s | 8 | 4 | -50 % | better |

    one seed: exact for it, says nothing of others; `--seeds 10` shows the spread

    ```sh
    pagetide run hot-and-stream --kernel base  # base
    pagetide run hot-and-stream --kernel new  # new
    ```
    ");
}

#[test]
fn notes_stand_below_the_figures_that_they_are_about() {
    let (base, mut new) = ([run("base", 1, 1710.0)], [run("new", 1, 1700.0)]);
    new[0].notes.push("the CPU was emulated: trust counters, not times".into());
    let groups = [group("base", &base), group("new", &new)];
    assert!(
        run_view(&new[0], None, &View::default())
            .render(Format::Text, 100)
            .ends_with("\nnote: the CPU was emulated: trust counters, not times\n")
    );
    let text = compare(&groups, &View::default()).unwrap().render(Format::Text, 100);
    assert!(
        text.contains("\n\nnote: new: the CPU was emulated: trust counters, not times\n\nmade by\n"),
        "{text}"
    );
    let text = compare(&groups, &View::default()).unwrap().render(Format::Markdown, 80);
    assert!(text.contains("\n\n- note: new: the CPU was emulated"), "{text}");
    let text = metrics(&[&base[0], &new[0]], &View::default()).unwrap().render(Format::Text, 100);
    assert!(text.ends_with("\n\nnote: new: the CPU was emulated: trust counters, not times\n"), "{text}");
    let json: serde_json::Value =
        serde_json::from_str(&metrics(&[&new[0]], &View::default()).unwrap().render(Format::Json, 80))
            .unwrap();
    assert_eq!(json["runs"][0]["notes"][0], "the CPU was emulated: trust counters, not times");
}

#[test]
fn json_keeps_the_contract() {
    let mut recording = run("linux-6.12", 7, 1710.0);
    recording.metrics.insert("undefined".into(), f64::NAN);
    let parsed: serde_json::Value =
        serde_json::from_str(&metrics(&[&recording], &View::default()).unwrap().render(Format::Json, 80))
            .unwrap();
    assert_eq!(parsed["schema"], 1);
    assert_eq!(parsed["workload"], "hot-and-stream");
    let run = &parsed["runs"][0];
    let keys: Vec<&str> = run.as_object().unwrap().keys().map(String::as_str).collect();
    for key in [
        "label",
        "backend",
        "kernel",
        "seed",
        "metrics",
        "samples",
        "vmstat",
        "wall_seconds",
        "simulated_seconds",
        "events",
    ] {
        assert!(keys.contains(&key), "{key} is missing from {keys:?}");
    }
    assert_eq!(run["metrics"]["hot_pages_cached"], 1710.0);
    assert_eq!(run["metrics"]["undefined"], serde_json::Value::Null);
    assert_eq!(run["samples"]["read_latency_us"], serde_json::json!([80.5, 102.0, 120.25]));
    assert_eq!(run["vmstat"]["pgscan_kswapd"], 157_043);
    assert_eq!(run["simulated_seconds"], 23.142);
    assert_eq!(run["wall_seconds"], serde_json::Value::Null);
}

#[test]
fn csv_has_one_row_for_each_number() {
    let mut recording = Recording::new("a,b", "w", "sim", "k", 3);
    recording.metrics.insert("m".into(), 0.5);
    recording.samples.insert("s".into(), vec![1.0, f64::NAN]);
    recording.memcg.insert("A".into(), BTreeMap::from([("pgscan".into(), 2)]));
    insta::assert_snapshot!(metrics(&[&recording], &View::default()).unwrap().render(Format::Csv, 80), @r#"
workload,label,backend,kernel,seed,kind,name,index,value
w,"a,b",sim,k,3,metric,m,,0.5
w,"a,b",sim,k,3,sample,s,0,1
w,"a,b",sim,k,3,sample,s,1,
w,"a,b",sim,k,3,memcg:A,pgscan,,2
"#);
}

/// Stalls last whole ticks; a side without any has none of each length.
#[test]
fn samples_of_few_values_are_counted_side_by_side() {
    let with = |label: &str, stalls: &[f64]| {
        let mut run = run(label, 1, 6_400.0);
        run.samples = BTreeMap::from([
            ("fragment_stall_us".into(), stalls.to_vec()),
            ("fault_base_us".into(), (0..30).map(|i| 600.0 + f64::from(i)).collect()),
        ]);
        run
    };
    let (none, some) = ([with("v2", &[])], [with("v3", &[4000.0, 20_000.0, 4000.0, 4000.0])]);
    let text = text_of(
        Section::untitled().with(crate::views::histogram(&[group("v2", &none), group("v3", &some)])),
        80,
    );
    insta::assert_snapshot!(text, @r"
    samples            value  unit  v2  v3
    fragment_stall_us   4000  µs     0   3
    fragment_stall_us  20000  µs     0   1
    ");
    let all = View { all: true, ..View::default() };
    assert!(
        run_view(&some[0], None, &all)
            .render(Format::Text, 80)
            .contains(" fragment_stall_us  20000  µs        1\n")
    );
}

#[test]
fn the_mmtests_table_pools_the_samples_of_a_group() {
    let base = [1, 2].map(|seed| run("5.3.0-vanilla", seed, 0.0));
    let new = [1, 2].map(|seed| run("5.3.0-patched", seed, 0.0));
    let groups = [group("5.3.0-vanilla", &base), group("5.3.0-patched", &new)];
    let text =
        mmtests_text(&groups, Rules::G19, stats::mmtests::RowSet::Multiops, &|_| Better::Lower).unwrap();
    insta::assert_snapshot!(text, @"
    hot-and-stream
                                               5.3.0                  5.3.0
                                             vanilla                patched
    Min       read_latency_us       80.50 (   0.00%)       80.50 (   0.00%)
    Amean     read_latency_us       99.08 (   0.00%)       99.08 (   0.00%)
    Stddev    read_latency_us       17.89 (   0.00%)       17.89 (   0.00%)
    CoeffVar  read_latency_us       18.06 (   0.00%)       18.06 (   0.00%)
    Max       read_latency_us      120.25 (   0.00%)      120.25 (   0.00%)
    BAmean-50 read_latency_us       85.67 (   0.00%)       85.67 (   0.00%)
    BAmean-95 read_latency_us       94.85 (   0.00%)       94.85 (   0.00%)
    BAmean-99 read_latency_us       94.85 (   0.00%)       94.85 (   0.00%)
    ");
    insta::assert_snapshot!(ops_text(&groups, OpsRules::Repaired).unwrap(), @r"
                                     5.3.0          5.3.0
                                   vanilla        patched
Ops Allocation stalls               150.00         150.00
Ops Direct pages scanned           4881.00        4881.00
Ops Kswapd pages scanned         157037.50      157037.50
Ops Kswapd pages reclaimed       150000.00      150000.00
Ops Direct pages reclaimed         4881.00        4881.00
Ops Kswapd efficiency %              95.52          95.52
Ops Kswapd velocity                6785.82        6785.82
Ops Direct efficiency %             100.00         100.00
Ops Direct velocity                 210.92         210.92
Ops Percentage direct scans           3.01           3.01
");
}

#[test]
fn what_cannot_be_compared_is_said() {
    let one = [run("a", 1, 1.0)];
    let mut other = [run("b", 1, 1.0)];
    other[0].workload = "small-files".into();
    assert_eq!(compare(&[], &View::default()).err(), Some(ReportError::NoRecordings));
    assert_eq!(
        compare(&[group("a", &one)], &View::default()).err(),
        Some(ReportError::OneGroup { label: "a".into() })
    );
    assert_eq!(
        compare(&[group("a", &[])], &View::default()).err(),
        Some(ReportError::EmptyGroup { label: "a".into() })
    );
    let error = compare(&[group("a", &one), group("b", &other)], &View::default()).err().unwrap();
    assert_eq!(
        error.to_string(),
        "recordings of `hot-and-stream` and of `small-files` cannot be put side by side"
    );
    assert_eq!(error.hint(), "compare recordings of the same workload");
    assert_eq!(metrics(&[], &View::default()).err(), Some(ReportError::NoRecordings));
}

fn any_number() -> impl Strategy<Value = f64> {
    prop_oneof![
        any::<f64>(),
        Just(f64::NAN),
        Just(f64::INFINITY),
        Just(0.0),
        Just(-0.0),
        0.0..1e-9,
        -5.0..5.0
    ]
}

prop_compose! {
    fn any_recording()(
        backend in prop_oneof![Just("sim"), Just("host")],
        seed in 0_u64..3,
        metrics in prop::collection::btree_map("\\PC{0,12}|a|b_ms", any_number(), 0..4),
        samples in prop::collection::btree_map("c_per_s|d", prop::collection::vec(any_number(), 0..4), 0..2),
        vmstat in prop::collection::btree_map("pgscan_direct|allocstall_dma|pgscan_kswapd|.{0,9}", any::<u64>(), 0..5),
        rows in prop::collection::vec((any::<u64>(), prop::collection::vec(any::<u64>(), 2)), 0..6),
        waits in prop::collection::vec((".{0,6}", any::<u64>(), any::<u64>()), 0..4),
        wall_ns: Option<u64>,
    ) -> Recording {
        let stall = |(task, count, total_ns): (String, u64, u64)| {
            Stall { task, reason: "r\u{1b}[1m".into(), count, total_ns, max_ns: total_ns }
        };
        Recording {
            phases: vec![Phase { name: "p\n".into(), at_ns: seed, vmstat: vmstat.clone() }],
            memcg: BTreeMap::from([("A|B".into(), vmstat.clone())]),
            series: Series::new(vec!["nr_free_pages".into(), "pgscan_kswapd".into()], rows),
            stalls: waits.into_iter().map(stall).collect(),
            notes: vec!["n\u{1b}[1m".into()],
            metrics, samples, vmstat, wall_ns,
            ..Recording::new("l", "w", backend, "k", seed)
        }
    }
}

proptest! {
    /// Recordings come from anywhere: every report of any of them is made, keeps to its width, and
    /// carries no control character to the terminal.
    #[test]
    fn no_recording_stops_a_report(
        base in prop::collection::vec(any_recording(), 1..4),
        new in prop::collection::vec(any_recording(), 1..4),
        width in 0_usize..300,
    ) {
        let groups = [group("base", &base), group("new", &new)];
        let texts = [
            run_view(&base[0], None, &View::default()).render(Format::Text, width),
            compare(&groups, &View::default()).unwrap().render(Format::Text, width),
            compare(&groups, &View::default()).unwrap().render(Format::Markdown, 80),
            metrics(&[&base[0], &new[0]], &View::default()).unwrap().render(Format::Json, 80),
            metrics(&[&base[0], &new[0]], &View::default()).unwrap().render(Format::Csv, 80),
            ops_text(&groups, OpsRules::Repaired).unwrap(),
        ];
        let _ = mmtests_text(&groups, Rules::Head, stats::mmtests::RowSet::Variable, &|_| Better::Higher);
        for text in &texts[..3] {
            prop_assert!(!text.contains('\u{1b}'), "{:?}", text);
        }
        for line in texts[..2].iter().flat_map(|text| text.lines()) {
            prop_assert!(line.chars().count() <= width.max(60), "{} columns: {line:?}", width);
        }
    }
}

mod blocking;
mod columns;
pub(crate) mod golden;
mod judging;
mod timeline;
mod waited;
