//! The tables of a source that measured at several points, with that source's own figures.

use std::collections::BTreeMap;

use recording::Phase;

use super::*;
use crate::Format;

const LAYOUT: GridLayout = GridLayout {
    param: "readers",
    values: &["4", "16"],
    rows: &[
        GridRow::Counter("perf_count_congestion_wait"),
        GridRow::Share(
            "perf_count_failed_pages_direct_reclaim_but_progress",
            "perf_count_pages_direct_reclaim",
        ),
        GridRow::Counter("perf_count_pages_direct_reclaim"),
        GridRow::Metric("throughput_kb_per_sec"),
        GridRow::Metric("futile_wait_seconds"),
    ],
    phase: "read_done",
    mems: &["192M", "256M", "356M"],
    own_mem: "256M",
    metric: "throughput_kb_per_sec",
};

/// A run that counted so many waits, failed reclaims and reclaims while it read, and more while it wrote.
fn run(label: &str, seed: u64, throughput: f64, [waits, failed, reclaims]: [u64; 3]) -> Recording {
    let counts = |factor: u64| {
        BTreeMap::from([
            ("perf_count_congestion_wait".to_owned(), factor * waits),
            ("perf_count_failed_pages_direct_reclaim_but_progress".to_owned(), factor * failed),
            ("perf_count_pages_direct_reclaim".to_owned(), factor * reclaims),
        ])
    };
    let mut run = Recording::new(label, "sequential-readers", "sim", label, seed);
    run.metrics.insert("throughput_kb_per_sec".to_owned(), throughput);
    run.phases = vec![
        Phase { name: "files_written".to_owned(), at_ns: 1, vmstat: counts(7) },
        Phase { name: "read_done".to_owned(), at_ns: 2, vmstat: counts(1) },
    ];
    run.vmstat = counts(8);
    run
}

/// Runs of the plain kernel and of that with both commits reverted: at 4 readers, and with 16 at each memory.
fn runs(seeds: u64) -> Vec<Vec<Vec<Recording>>> {
    let of_seeds = |label: &str, throughput: f64, counts| -> Vec<Recording> {
        (0..seeds).map(|seed| run(label, seed, throughput * (1.0 + 0.01 * seed as f64), counts)).collect()
    };
    let bad = "linux-2.6.32";
    let good = "linux-2.6.32-pcp-cold-order-pcp-per-migratetype";
    vec![
        vec![
            of_seeds(bad, 1000.0, [305, 305, 1153]),
            of_seeds(bad, 448.9, [1, 1, 1]),
            of_seeds(bad, 1000.0, [8980, 8979, 32217]),
            of_seeds(bad, 1014.6, [1, 1, 1]),
        ],
        vec![
            of_seeds(good, 1100.0, [25, 25, 1054]),
            of_seeds(good, 1270.08, [1, 1, 1]),
            of_seeds(good, 1365.0, [1114, 1114, 62297]),
            of_seeds(good, 1401.4, [1, 1, 1]),
        ],
    ]
}

fn grid_of(runs: &[Vec<Vec<Recording>>]) -> Grid<'_> {
    fn kernel(points: &[Vec<Recording>]) -> GridKernel<'_> {
        GridKernel {
            label: points[0][0].label.clone(),
            by_value: vec![points[0].iter().collect(), points[2].iter().collect()],
            by_mem: points[1..].iter().map(|runs| runs.iter().collect()).collect(),
        }
    }
    Grid {
        layout: LAYOUT,
        kernels: runs.iter().map(|points| kernel(points)).collect(),
        recordings: runs.iter().flatten().flatten().collect(),
    }
}

fn groups(runs: &[Vec<Vec<Recording>>]) -> Vec<Group<'_>> {
    fn group(points: &[Vec<Recording>]) -> Group<'_> {
        Group {
            label: points[2][0].label.clone(),
            command: format!("pagetide run sequential-readers --kernel {}", points[2][0].label),
            recordings: points[2].iter().collect(),
        }
    }
    runs.iter().map(|points| group(points)).collect()
}

/// The part above the comparison.
fn tables(text: &str) -> String {
    text.split("sequential-readers: ").next().unwrap().to_owned()
}

/// 27.87 and 1.79 %, -55.11 and -6.95 %, 182.93 and 36.5 % are the mail's.
#[test]
fn the_figures_of_the_mail_give_the_tables_of_the_mail() {
    let runs = runs(1);
    let text = grid(&grid_of(&runs), &groups(&runs), &View::default()).unwrap().render(Format::Text, 100);
    insta::assert_snapshot!(tables(&text), @"
    linux-2.6.32
                                                          4 readers  16 readers  % portions
     perf_count_congestion_wait                                 305        8980
     perf_count_failed_pages_direct_reclaim_but_progress        305        8979     27.87 %
     perf_count_pages_direct_reclaim                           1153       32217
     throughput_kb_per_sec                                     1000        1000
     futile_wait_seconds                                          -           -

    linux-2.6.32-pcp-cold-order-pcp-per-migratetype
                                                          4 readers  16 readers  % portions
     perf_count_congestion_wait                                  25        1114
     perf_count_failed_pages_direct_reclaim_but_progress         25        1114      1.79 %
     perf_count_pages_direct_reclaim                           1054       62297
     throughput_kb_per_sec                                     1100        1365
     futile_wait_seconds                                          -           -

    % portions with 16 readers: perf_count_failed_pages_direct_reclaim_but_progress of
      perf_count_pages_direct_reclaim; counters are those of phase read_done

    throughput_kb_per_sec by memory: deviation from the same kernel's at 256M, %
     %                                                  192M  256M   356M
     linux-2.6.32                                     -55.11  =100  +1.46
     linux-2.6.32-pcp-cold-order-pcp-per-migratetype   -6.95  =100  +2.67

    throughput_kb_per_sec by memory: deviation from that of linux-2.6.32 at the same memory, %
     %                                                   192M    256M    356M
     linux-2.6.32-pcp-cold-order-pcp-per-migratetype  +182.93  +36.50  +38.12
    ");
    assert!(
        text.ends_with(&compare(&groups(&runs), &View::default()).unwrap().render(Format::Text, 100)),
        "the comparison is as it was:\n{text}"
    );
}

/// 0, 1 and 2 % more in three seeds; each seed's deviation is that of its own pair, so it has no spread.
#[test]
fn seeds_have_a_spread_and_are_paired() {
    let runs = runs(3);
    let text = grid(&grid_of(&runs), &groups(&runs), &View::default()).unwrap().render(Format::Text, 80);
    insta::assert_snapshot!(tables(&text), @"
    linux-2.6.32
                                                   4 readers  16 readers  % portions
     perf_count_congestion_wait                     305        8980
     perf_count_failed_pages_direct_reclaim_but_    305        8979          27.87 %
     progress
     perf_count_pages_direct_reclaim               1153       32217
     throughput_kb_per_sec                         1010 ± 10   1010 ± 10
     futile_wait_seconds                              -           -

    linux-2.6.32-pcp-cold-order-pcp-per-migratetype
                                                   4 readers  16 readers  % portions
     perf_count_congestion_wait                      25        1114
     perf_count_failed_pages_direct_reclaim_but_     25        1114           1.79 %
     progress
     perf_count_pages_direct_reclaim               1054       62297
     throughput_kb_per_sec                         1111 ± 11   1379 ± 14
     futile_wait_seconds                              -           -

    % portions with 16 readers:
      perf_count_failed_pages_direct_reclaim_but_progress of
      perf_count_pages_direct_reclaim; counters are those of phase read_done

    throughput_kb_per_sec by memory: deviation from the same kernel's at 256M, %
     %                                                  192M  256M   356M
     linux-2.6.32                                     -55.11  =100  +1.46
     linux-2.6.32-pcp-cold-order-pcp-per-migratetype   -6.95  =100  +2.67

    throughput_kb_per_sec by memory: deviation from that of linux-2.6.32 at the
      same memory, %
     %                                                   192M    256M    356M
     linux-2.6.32-pcp-cold-order-pcp-per-migratetype  +182.93  +36.50  +38.12

    3 seeds: mean ± standard deviation; deviations are those of runs with the same
      seed
    ");
}

#[test]
fn what_was_not_run_or_not_counted_is_no_zero() {
    let mut runs = runs(1);
    runs[1][3].clear();
    runs[0][0][0].phases.clear();
    let own = grid_of(&runs);
    let text = grid(&own, &groups(&runs), &View::default()).unwrap().render(Format::Text, 120);
    let line = |start: &str| text.lines().find(|line| line.starts_with(start)).unwrap().to_owned();
    assert_eq!(line(" perf_count_congestion_wait").split_whitespace().nth(1), Some("-"));
    assert!(text.contains("-6.95  =100   -\n"), "{text}");
}

#[test]
fn programs_get_every_point() {
    let runs = runs(2);
    let own = grid_of(&runs);
    let json: Value =
        serde_json::from_str(&grid(&own, &groups(&runs), &View::default()).unwrap().render(Format::Json, 80))
            .unwrap();
    assert_eq!(json["runs"].as_array().unwrap().len(), 16);
    assert_eq!(json["grid"]["shares"][1]["percent"], 100.0 * 1114.0 / 62297.0);
    let counts = json["grid"]["counts"].as_array().unwrap();
    assert_eq!((counts.len(), &counts[0]["mean"], &counts[0]["n"]), (20, &json!(305.0), &json!(2)));
    let memory = &json["grid"]["memory"][3];
    assert_eq!((&memory["mem"], &memory["kernel"]), (&json!("192M"), &json!(own.kernels[1].label)));
    assert!((memory["percent_of_first"].as_f64().unwrap() - 182.93).abs() < 0.01, "{memory}");
    assert_eq!(json["comparison"]["baseline"], "linux-2.6.32");
    let csv = grid(&own, &groups(&runs), &View::default()).unwrap().render(Format::Csv, 80);
    assert_eq!(csv.matches(",metric,throughput_kb_per_sec,,").count(), 16);
    let markdown = grid(&own, &groups(&runs), &View::default()).unwrap().render(Format::Markdown, 80);
    assert!(
        markdown.starts_with("### linux-2.6.32\n\n|  | 4 readers | 16 readers | % portions |\n"),
        "{markdown}"
    );
}

#[test]
fn no_line_is_wider_than_the_terminal() {
    let runs = runs(2);
    for width in [40, 60, 80, 100, 120] {
        let text =
            grid(&grid_of(&runs), &groups(&runs), &View::default()).unwrap().render(Format::Text, width);
        assert!(text.lines().all(|line| line.chars().count() <= width), "{width}:\n{text}");
    }
}
