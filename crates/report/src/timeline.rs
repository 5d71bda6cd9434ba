//! A run over time on a few lines: one line of small bars for each quantity.
//!
//! The series holds raw samples; here levels are shown as the last sample of each interval, and
//! events as how many fell into it. A bar's height is its share of the line's largest value; a
//! dot means none.

use recording::Series;

use crate::number::plain;
use crate::table::{Align, Table};

/// What is shown, if the series has it: name, how to read it, counters to sum.
const LINES: [(&str, Kind, &[&str]); 9] = [
    ("free", Kind::Level, &["nr_free_pages"]),
    ("file pages", Kind::Level, &["nr_file_pages"]),
    ("dirty", Kind::Level, &["nr_dirty"]),
    ("slab, reclaimable", Kind::Level, &["nr_slab_reclaimable"]),
    ("kswapd scans", Kind::Events, &["pgscan_kswapd"]),
    ("direct scans", Kind::Events, &["pgscan_direct"]),
    ("refaults", Kind::Events, &["workingset_refault", "workingset_refault_file", "workingset_refault_anon"]),
    ("slab scans", Kind::Events, &["slabs_scanned"]),
    ("pages written", Kind::Events, &["nr_written"]),
];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Level,
    Events,
}

/// The time line for `width` columns; empty when the series is shorter than two samples or has
/// none of the quantities.
pub(crate) fn timeline(series: &Series, width: usize) -> String {
    let times: Vec<u64> = series.times_ns().collect();
    let (Some(&start), Some(&end)) = (times.first(), times.last()) else { return String::new() };
    if end <= start {
        return String::new();
    }
    let intervals = width.saturating_sub(44).clamp(10, 60).min(times.len().saturating_sub(1)).max(1);
    let last_samples = last_sample_of_each(&times, intervals);
    let mut table = Table::new(["", "", "per interval"].map(String::from).into_iter().zip([
        Align::Left,
        Align::Left,
        Align::Left,
    ]));
    for (name, kind, counters) in LINES {
        let Some(values) = summed(series, counters) else { continue };
        let shown = per_interval(&values, &last_samples, kind);
        let (least, most) = shown.iter().fold((f64::MAX, 0.0_f64), |(l, m), &x| (l.min(x), m.max(x)));
        if most > 0.0 {
            table.push([name.into(), bars(&shown, most), format!("{} to {}", plain(least), plain(most))]);
        }
    }
    if table.is_empty() {
        return String::new();
    }
    let seconds = |nanoseconds: u64| nanoseconds as f64 / 1e9;
    format!(
        "over time, {} intervals of {} s\n{}",
        intervals,
        plain(seconds(end - start) / intervals as f64),
        table.to_text(width)
    )
}

/// Index of the last sample at or before the end of each interval.
fn last_sample_of_each(times: &[u64], intervals: usize) -> Vec<usize> {
    let (start, end) = (times[0], times[times.len() - 1]);
    (1..=intervals)
        .map(|number| {
            let share = u128::from(end - start) * number as u128 / intervals as u128;
            times.partition_point(|&time| u128::from(time.saturating_sub(start)) <= share).saturating_sub(1)
        })
        .collect()
}

fn summed(series: &Series, counters: &[&str]) -> Option<Vec<f64>> {
    let columns = counters.iter().filter_map(|name| series.column(name));
    columns
        .map(|column| column.into_iter().map(|value| value as f64).collect::<Vec<_>>())
        .reduce(|a, b| a.iter().zip(b).map(|(a, b)| a + b).collect())
}

fn per_interval(values: &[f64], last_samples: &[usize], kind: Kind) -> Vec<f64> {
    let mut before = values[0];
    last_samples
        .iter()
        .map(|&sample| {
            let now = values[sample];
            let events = (now - before).max(0.0);
            before = now;
            if kind == Kind::Level { now } else { events }
        })
        .collect()
}

fn bars(values: &[f64], most: f64) -> String {
    const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let bar = |&value: &f64| {
        if value <= 0.0 {
            return '·';
        }
        BARS[((value / most * 8.0).ceil() as usize).clamp(1, 8) - 1]
    };
    values.iter().map(bar).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_fall_into_the_interval_in_which_they_happened() {
        let rows =
            (0..=8).map(|i| (i * 500_000_000, vec![1000 - 100 * i, if i < 4 { 0 } else { 640 }])).collect();
        let series = Series::new(["nr_free_pages", "pgscan_kswapd"].map(String::from).to_vec(), rows);
        insta::assert_snapshot!(timeline(&series, 80), @r"
over time, 8 intervals of 0.5 s
                         per interval
 free          ██▇▆▅▄▃▂  200 to 900
 kswapd scans  ···█····  0 to 640
");
    }

    #[test]
    fn too_little_to_show_is_nothing() {
        assert_eq!(timeline(&Series::default(), 80), "");
        let one = Series::new(vec!["nr_free_pages".into()], vec![(5, vec![1])]);
        assert_eq!(timeline(&one, 80), "");
    }

    /// A hand-made series need not be in order; it must not stop the report.
    #[test]
    fn time_that_runs_backwards_does_no_harm() {
        let rows = vec![(5, vec![3]), (1, vec![9]), (u64::MAX, vec![0])];
        let _ = timeline(&Series::new(vec!["pgscan_kswapd".into()], rows), 80);
    }
}
