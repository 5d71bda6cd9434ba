//! Quantities over time in small bars: what falls into which.

use recording::{Recording, Series};

use super::text_of;
use crate::document::Section;
use crate::document::timeline::{Kind, Line, Timeline};
use crate::views::timeline as of;

fn timeline(recording: &Recording, width: usize) -> String {
    text_of(Section::untitled().with(of(recording)), width)
}

fn run(columns: &[&str], rows: Vec<(u64, Vec<u64>)>) -> Recording {
    let series = Series::new(columns.iter().map(|&name| name.to_owned()).collect(), rows);
    let simulated_ns = series.times_ns().last().unwrap_or(0);
    Recording { series, simulated_ns, ..Recording::new("", "", "sim", "", 1) }
}

const SECOND: u64 = 1_000_000_000;

#[test]
fn events_fall_into_the_part_in_which_they_happened() {
    let rows =
        (0..=8).map(|i| (i * 500_000_000, vec![1000 - 100 * i, if i < 4 { 0 } else { 640 }])).collect();
    insta::assert_snapshot!(timeline(&run(&["nr_free_pages", "pgscan_kswapd"], rows), 80), @r"
over time, 8 parts of 0.5 s
                         least to most
 free          ██▇▆▅▄▃▂  200 to 900     pages
 kswapd scans  ···█····  0 to 1280      per s
");
}

/// Readings at the ends of phases are dense, the monitor's own are rare: bars between two of
/// the monitor's used to show 0, and the next one all that had been counted meanwhile.
#[test]
fn a_part_without_a_reading_shows_the_rate_of_the_interval_that_covers_it_and_not_zero() {
    let readings = [0, 1, 2, 3, 4, 5, 6, 7, 8, 96, 104];
    let rows = readings.map(|tenths| (tenths * SECOND / 10, vec![tenths * 32])).to_vec();
    insta::assert_snapshot!(timeline(&run(&["pgscan_kswapd"], rows), 80), @r"
over time, 10 parts of 1.04 s
                           least to most
 kswapd scans  ██████████  320 to 320     per s
");
}

#[test]
fn the_axis_ends_with_the_run_and_what_was_not_read_is_blank() {
    let rows = (0..=5).map(|second| (second * SECOND, vec![second * 100, 7 + second])).collect();
    let recording = run(&["nr_written", "nr_free_pages"], rows);
    let longer = Recording { simulated_ns: 10 * SECOND, ..recording };
    insta::assert_snapshot!(timeline(&longer, 80), @r"
over time, 5 parts of 2 s; blank: not read
                       least to most
 free           ▆██    9 to 12        pages
 pages written  ███    100 to 100     per s
");
}

/// Whatever the readings' distances: rate times length is what was counted.
#[test]
fn all_bars_together_hold_what_was_counted() {
    let times = [3, 4, 10, 11, 12, 40, 41, 77].map(|second| second * SECOND);
    let values = [5.0, 5.0, 9.0, 100.0, 101.0, 101.0, 400.0, 407.0];
    let line = Line { name: String::new(), unit: "", kind: Kind::Events, values: values.to_vec() };
    let (start, end) = (times[0], 90 * SECOND);
    let timeline = Timeline { times_ns: times.to_vec(), end_ns: end, lines: Vec::new() };
    for bars in 1..=60 {
        let at = |bar: usize| start as f64 + (end - start) as f64 * bar as f64 / bars as f64;
        let shown = timeline.shown(&line, bars);
        let held = |bar: usize| {
            let length = (at(bar + 1).min(times[7] as f64) - at(bar)) / 1e9;
            shown[bar].map_or(0.0, |rate| rate * length)
        };
        let total: f64 = (0..bars).map(held).sum();
        assert!((total - 402.0).abs() < 1e-6, "{total} in {bars} bars");
    }
}

#[test]
fn too_little_to_show_is_nothing() {
    assert_eq!(timeline(&Recording::new("", "", "sim", "", 1), 80), "");
    assert_eq!(timeline(&run(&["nr_free_pages"], vec![(5, vec![1])]), 80), "");
}

/// A hand-made series need not be in order; it must not stop the report.
#[test]
fn time_that_runs_backwards_does_no_harm() {
    let rows = vec![(5, vec![3]), (1, vec![9]), (u64::MAX, vec![0])];
    assert_eq!(timeline(&run(&["pgscan_kswapd"], rows), 80), "");
    let _ = timeline(&run(&["pgscan_kswapd"], vec![(5, vec![3]), (5, vec![9]), (u64::MAX, vec![0])]), 80);
}
