//! How long things took, by percentiles of all of them: samples that are times, and waits.
//!
//! Samples of all runs of a side are put together: percentiles of single runs have no mean that says
//! anything. Of waits recordings tell in which power of two a length lies, so their percentiles are bounds from
//! above. Left out: whether tails differ by more than chance; [`crate::views::compare`] tests means.
//! Next: [`crate::views::waits`], who waited for what.

use std::collections::{BTreeMap, BTreeSet};

use recording::{Recording, Wait, WaitKind};
use serde_json::{Map, Value, json};
use stats::percentile::{Histogram, of_counts, of_samples};

use crate::document::number::duration;
use crate::document::{Cell, Table};
use crate::judge::{Direction, Group, View, direction, unit};

/// Percentiles that are shown.
pub(crate) const PERCENTILES: [(&str, f64); 5] =
    [("p50", 50.0), ("p90", 90.0), ("p95", 95.0), ("p99", 99.0), ("p99.9", 99.9)];

/// A p99 needs so many values; fewer have no tail that is worth a table.
const SAMPLES_MIN: u64 = 100;

/// A row for each kind of samples that are times, for each of `groups`; without rows where there are few.
pub(crate) fn latencies(groups: &[Group<'_>], view: &View) -> Table {
    let recordings = || groups.iter().flat_map(|group| group.recordings.iter().copied());
    let names: BTreeSet<&String> = recordings().flat_map(|recording| recording.samples.keys()).collect();
    let mut table = table("latency", groups.len() > 1);
    for name in names {
        let Some(nanoseconds) = in_nanoseconds(name, view) else { continue };
        let histograms: Vec<Histogram> =
            groups.iter().map(|group| of_group(name, group, nanoseconds)).collect();
        if histograms.iter().any(|histogram| histogram.count() >= SAMPLES_MIN) {
            let sides: Vec<Side> = histograms.iter().map(Side::of_histogram).collect();
            push(&mut table, name, groups, &sides, "");
        }
    }
    table
}

/// The same of waits: of all tasks together, those that were idle aside.
pub(crate) fn wait_lengths(groups: &[Group<'_>]) -> Table {
    let waits = |group: &Group<'_>| -> BTreeMap<String, Bounds> {
        let mut by_wait: BTreeMap<String, Bounds> = BTreeMap::new();
        let all = group.recordings.iter().flat_map(|recording| &recording.waits);
        for wait in all.filter(|wait| wait.kind != WaitKind::Idle) {
            add_wait(by_wait.entry(wait.wait.clone()).or_default(), wait);
        }
        by_wait
    };
    let sides: Vec<BTreeMap<String, Bounds>> = groups.iter().map(waits).collect();
    let names: BTreeSet<&String> = sides.iter().flat_map(BTreeMap::keys).collect();
    let mut table = table("lengths of waits", groups.len() > 1);
    for name in names {
        let of = |side: &BTreeMap<String, Bounds>| side.get(name).map(Side::of_bounds).unwrap_or_default();
        push(&mut table, name, groups, &sides.iter().map(of).collect::<Vec<_>>(), "≤");
    }
    table
}

/// How many waits were not longer than so many nanoseconds.
type Bounds = BTreeMap<u64, u64>;

/// What a row shows.
#[derive(Default)]
struct Side {
    count: u64,
    percentiles: [Option<u64>; PERCENTILES.len()],
    longest: Option<u64>,
}

impl Side {
    fn of_histogram(histogram: &Histogram) -> Self {
        let percentiles = PERCENTILES.map(|(_, percent)| histogram.percentile(percent));
        Self { count: histogram.count(), percentiles, longest: histogram.longest() }
    }

    fn of_bounds(bounds: &Bounds) -> Self {
        let percentiles = PERCENTILES.map(|(_, percent)| of_counts(bounds, percent));
        Self { count: bounds.values().sum(), percentiles, longest: bounds.keys().next_back().copied() }
    }
}

/// Percentiles of one run's samples by name, each with those that it has enough values for; in their own unit.
pub(crate) fn percentiles_json(recording: &Recording) -> Value {
    let of = |samples: &Vec<f64>| -> Map<String, Value> {
        let known =
            PERCENTILES.iter().filter_map(|(name, percent)| Some((name, of_samples(samples, *percent)?)));
        known.map(|(name, value)| ((*name).to_owned(), json!(value))).collect()
    };
    recording.samples.iter().map(|(name, samples)| (name.clone(), Value::Object(of(samples)))).collect()
}

/// How many nanoseconds the unit of these samples has, if it is a time and less of it is better.
fn in_nanoseconds(name: &str, view: &View) -> Option<f64> {
    let known = view.headlines.iter().find(|headline| headline.name == name);
    let (unit, way) =
        known.map_or_else(|| (unit(name), direction(name)), |headline| (headline.unit, headline.direction));
    let nanoseconds = match unit {
        "ns" => 1.0,
        "µs" => 1e3,
        "ms" => 1e6,
        "s" => 1e9,
        _ => return None,
    };
    (way == Direction::Lower).then_some(nanoseconds)
}

fn of_group(name: &str, group: &Group<'_>, nanoseconds: f64) -> Histogram {
    let mut histogram = Histogram::default();
    let samples = group.recordings.iter().filter_map(|recording| recording.samples.get(name)).flatten();
    for sample in samples.filter(|sample| **sample >= 0.0 && sample.is_finite()) {
        histogram.add((sample * nanoseconds).round() as u64, 1);
    }
    histogram
}

/// Adds the waits by their classes, none longer than the longest.
fn add_wait(bounds: &mut Bounds, wait: &Wait) {
    for (&class, &count) in &wait.lengths {
        // Class n is below 2^n microseconds.
        let below = 1_u64.checked_shl(class.into()).and_then(|micros| micros.checked_mul(1000));
        *bounds.entry(below.unwrap_or(u64::MAX).min(wait.longest_ns)).or_default() += count;
    }
}

fn table(heading: &str, has_runs: bool) -> Table {
    let table = Table::new()
        .texts([heading])
        .texts(has_runs.then_some("run"))
        .numbers(["n"])
        .amounts(PERCENTILES.map(|(name, _)| name))
        .amounts(["longest"]);
    table.named_by(1 + usize::from(has_runs)).grouped([7])
}

fn push(table: &mut Table, name: &str, groups: &[Group<'_>], sides: &[Side], bound: &str) {
    for (group, side) in groups.iter().zip(sides) {
        let told = |value: Option<u64>| value.map_or_else(|| "-".to_owned(), |ns| duration(ns as f64));
        let mut cells = vec![Cell::from(name)];
        if groups.len() > 1 {
            cells.push(Cell::from(&group.label));
        }
        cells.push(Cell::from(side.count));
        cells.extend(side.percentiles.map(|value| {
            let bound = if value.is_some() && value != side.longest { bound } else { "" };
            Cell::from(format!("{bound}{}", told(value)))
        }));
        cells.push(Cell::from(told(side.longest)));
        table.push(cells);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::Section;
    use crate::tests::text_of;

    fn run(label: &str, scale: f64) -> Recording {
        let mut recording = Recording::new(label, "huge-faults", "sim", label, 1);
        let times = (1..=1000).map(|i| f64::from(i) * scale).collect();
        recording.samples.insert("fault_base_us".to_owned(), times);
        recording.samples.insert("files_per_sec".to_owned(), vec![1.0; 500]);
        recording.samples.insert("few_us".to_owned(), vec![1.0; 99]);
        recording.waited(vec![Wait {
            task: "reader".to_owned(),
            wait: "page lock".to_owned(),
            kind: WaitKind::Io,
            futile: Some(false),
            count: 300,
            spent_ns: 9,
            longest_ns: 3_700_000,
            lengths: BTreeMap::from([(5, 290), (12, 10)]),
            ..Wait::default()
        }])
    }

    #[test]
    fn tails_are_told_where_there_are_enough_values_and_rates_have_none() {
        let (base, new) = (run("base", 1.0), run("new", 2.5));
        let of =
            |recording| Group { label: String::new(), command: String::new(), recordings: vec![recording] };
        let mut groups = [of(&base), of(&new)];
        groups[0].label = "base".to_owned();
        groups[1].label = "new".to_owned();
        let view = View::default();
        insta::assert_snapshot!(text_of(Section::untitled().with(latencies(&groups, &view)), 90), @"
        latency        run      n       p50       p90       p95       p99     p99.9  longest
        fault_base_us  base  1000  500.1 µs  899.8 µs    950 µs    990 µs  999.2 µs     1 ms
        fault_base_us  new   1000   1.25 ms   2.25 ms  2.375 ms  2.475 ms  2.498 ms   2.5 ms
        ");
        insta::assert_snapshot!(text_of(Section::untitled().with(wait_lengths(&groups[..1])), 90), @"
        lengths of waits    n     p50     p90     p95     p99  p99.9  longest
        page lock         300  ≤32 µs  ≤32 µs  ≤32 µs  3.7 ms      -   3.7 ms
        ");
        let json = percentiles_json(&base);
        assert_eq!((&json["fault_base_us"]["p99"], &json["few_us"]["p99"]), (&990.0.into(), &Value::Null));
    }
}
