//! A run over time on a few lines: one line of small bars for each quantity.
//!
//! The series holds raw readings. A level is shown as last read; of events the rate is shown, taken
//! from the readings around a bar: between two of them it counts as even, so that a bar into which
//! no reading fell shows the rate of the interval that covers it, and all bars together hold what
//! was counted. A bar's height is its share of the line's largest value, a dot means none, and a
//! blank that nothing was read: the axis ends with the run, not with the last reading.

use recording::{Recording, Series};

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

/// Columns of the terminal that names and figures take.
const BESIDE_BARS: usize = 50;

/// How readings become bars.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// How much there is.
    Level,
    /// What has happened, as a rate.
    Events,
}

/// A line of its own: name, unit, how to read it, and a value for each reading.
pub(crate) type Line = (String, &'static str, Kind, Vec<f64>);

/// The time line for `width` columns; empty when there are fewer than two readings or none of the
/// quantities.
pub(crate) fn timeline(recording: &Recording, width: usize) -> String {
    let line = |(name, kind, counters): (&str, Kind, &[&str])| {
        let unit = if kind == Kind::Level { "pages" } else { "per s" };
        Some((name.to_owned(), unit, kind, summed(&recording.series, counters)?))
    };
    timeline_of(recording, LINES.into_iter().filter_map(line), width)
}

/// As [`timeline`], of these lines; those that are 0 throughout are left out.
pub(crate) fn timeline_of(recording: &Recording, lines: impl Iterator<Item = Line>, width: usize) -> String {
    let series = &recording.series;
    let times: Vec<u64> = series.times_ns().collect();
    let (Some(&start), Some(&last)) = (times.first(), times.last()) else { return String::new() };
    let axis = Axis { start, end: last.max(recording.duration_ns().unwrap_or(0)) };
    if last <= start || !times.is_sorted() {
        return String::new();
    }
    // More bars than readings would look like more than is known.
    let bars = width.saturating_sub(BESIDE_BARS).clamp(10, 60).min(times.len() - 1);
    let mut table = Table::new(["", "", "least to most", ""].map(|text| (text.to_owned(), Align::Left)));
    let mut has_blanks = false;
    for (name, unit, kind, values) in lines {
        let shown: Vec<Option<f64>> =
            (0..bars).map(|bar| value_of_bar(&times, &values, axis.bar(bar, bars), kind)).collect();
        let known = || shown.iter().flatten().copied();
        let (least, most) = known().fold((f64::MAX, 0.0_f64), |(l, m), x| (l.min(x), m.max(x)));
        if most > 0.0 {
            has_blanks |= shown.contains(&None);
            table.push([
                name,
                drawn(&shown, most),
                format!("{} to {}", plain(least), plain(most)),
                unit.into(),
            ]);
        }
    }
    if let Some(share) = slab_share(recording) {
        let shown: Vec<Option<f64>> =
            (0..bars).map(|bar| value_of_bar(&times, &share, axis.bar(bar, bars), Kind::Level)).collect();
        let known = || shown.iter().flatten().copied();
        let (least, most) = known().fold((1.0_f64, 0.0_f64), |(l, m), x| (l.min(x), m.max(x)));
        let cells =
            ["slab share".into(), drawn(&shown, 1.0), format!("{least:.2} to {most:.2}"), String::new()];
        table.push(cells);
    }
    if table.is_empty() {
        return String::new();
    }
    format!(
        "over time, {bars} {} of {} s{}\n{}",
        if bars == 1 { "part" } else { "parts" },
        plain((axis.end - axis.start) as f64 / 1e9 / bars as f64),
        if has_blanks { "; blank: not read" } else { "" },
        table.to_text(width)
    )
}

/// Slab of slab and file pages on LRU lists, for runs that are about it; its bars are shares of 1.
fn slab_share(recording: &Recording) -> Option<Vec<f64>> {
    recording.metrics.get("slab_share")?;
    let slab = summed(&recording.series, &["nr_slab_reclaimable", "nr_slab_unreclaimable"])?;
    let file = summed(&recording.series, &["nr_active_file", "nr_inactive_file"])?;
    Some(slab.iter().zip(file).map(|(slab, file)| slab / (slab + file).max(1.0)).collect())
}

/// From the first reading to the end of the run, in nanoseconds.
#[derive(Debug, Clone, Copy)]
struct Axis {
    start: u64,
    end: u64,
}

impl Axis {
    /// Where bar `number` of `bars` begins and ends.
    fn bar(self, number: usize, bars: usize) -> (f64, f64) {
        let length = (self.end - self.start) as f64;
        let at = |number: usize| self.start as f64 + length * number as f64 / bars as f64;
        (at(number), at(number + 1))
    }
}

/// The level at the end of a bar, or the events of a second in it; `None` where nothing was read.
fn value_of_bar(times: &[u64], values: &[f64], (from, to): (f64, f64), kind: Kind) -> Option<f64> {
    let last = *times.last()? as f64;
    if from >= last {
        return None;
    }
    let to = to.min(last);
    Some(match kind {
        Kind::Level => values[last_reading(times, to)],
        Kind::Events => {
            let events = counted(times, values, to) - counted(times, values, from);
            events.max(0.0) / ((to - from) / 1e9)
        }
    })
}

/// Index of the last reading at or before `at`, which is not before the first.
fn last_reading(times: &[u64], at: f64) -> usize {
    times.partition_point(|&time| time as f64 <= at).saturating_sub(1)
}

/// What a counter had counted by `at`, if it went evenly between two readings.
fn counted(times: &[u64], values: &[f64], at: f64) -> f64 {
    let before = last_reading(times, at);
    let Some(&next) = times.get(before + 1) else { return values[before] };
    let past = (at - times[before] as f64) / (next - times[before]) as f64;
    values[before] + (values[before + 1] - values[before]) * past
}

/// A value for each reading: these counters together; `None` where the series has none of them.
pub(crate) fn summed(series: &Series, counters: &[&str]) -> Option<Vec<f64>> {
    let columns = counters.iter().filter_map(|name| series.column(name));
    columns
        .map(|column| column.into_iter().map(|value| value as f64).collect::<Vec<_>>())
        .reduce(|a, b| a.iter().zip(b).map(|(a, b)| a + b).collect())
}

fn drawn(values: &[Option<f64>], most: f64) -> String {
    const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let bar = |value: &Option<f64>| match *value {
        None => ' ',
        Some(value) if value <= 0.0 => '·',
        Some(value) => BARS[((value / most * 8.0).ceil() as usize).clamp(1, 8) - 1],
    };
    values.iter().map(bar).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

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
        let axis = Axis { start: times[0], end: 90 * SECOND };
        for bars in 1..=60 {
            let held = |bar: usize| {
                let (from, to) = axis.bar(bar, bars);
                let length = (to.min(times[7] as f64) - from) / 1e9;
                value_of_bar(&times, &values, (from, to), Kind::Events).map_or(0.0, |rate| rate * length)
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
}
