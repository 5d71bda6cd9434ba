//! One run: its metrics, what the kernel counted, when, and who waited for what.
//!
//! What matters most comes first; other metrics, samples, all counters and what the cgroups saw are
//! shown on demand.

use std::collections::{BTreeMap, BTreeSet};

use recording::{Phase, Recording, Series, is_gauge};
use stats::describe::median;
use stats::ops::{OpsRules, ops_rows};

use crate::document::number::{duration, plain};
use crate::document::timeline::{Kind, Line, Timeline};
use crate::document::{Block, Cell, Document, Section, Table, row};
use crate::judge::{Group, Measure, Measures, Scale, View};
use crate::views::blocked::who_blocks;
use crate::views::histogram::histogram;
use crate::views::latency::{latencies, wait_lengths};
use crate::views::notes::notes;
use crate::views::oom::{in_title, oom_section};
use crate::views::pressure::pressure_line;
use crate::views::printed::printed_run;
use crate::views::recordings::with_data;
use crate::views::waits::{by_phase, who_waited};

/// Counters that tell the story of a run under memory pressure, in this order; each entry is a
/// name or the beginning of several.
const KEY_COUNTERS: [&str; 31] = [
    "allocstall",
    "pgscan_kswapd",
    "pgscan_direct",
    "pgsteal_kswapd",
    "pgsteal_direct",
    "pgrefill",
    "pgactivate",
    "pgdeactivate",
    "workingset_refault",
    "workingset_activate",
    "workingset_restore",
    "workingset_nodereclaim",
    "pgmajfault",
    "pswpin",
    "pswpout",
    "nr_vmscan_write",
    "nr_vmscan_immediate_reclaim",
    "slabs_scanned",
    "kswapd_inodesteal",
    "pginodesteal",
    "kswapd_low_wmark_hit_quickly",
    "kswapd_high_wmark_hit_quickly",
    "pageoutrun",
    "compact_stall",
    "compact_success",
    "compact_fail",
    "pgmigrate_success",
    "thp_fault_alloc",
    "thp_fault_fallback",
    "oom_kill",
    "nr_written",
];

/// Columns of the table of phases: heading, and the counters whose sum it shows.
const PHASE_COLUMNS: [(&str, &str); 5] = [
    ("kswapd scanned", "pgscan_kswapd"),
    ("direct scanned", "pgscan_direct"),
    ("refaults", "workingset_refault"),
    ("alloc stalls", "allocstall"),
    ("slab scanned", "slabs_scanned"),
];

/// One recording; with the command that makes it again, if anybody knows it.
pub fn run<'a>(recording: &'a Recording, command: Option<String>, view: &View) -> Document<'a> {
    runs(&[(recording, command)], |_| view.clone())
}

/// Recordings, each by itself, one below the other; `view` tells how each is shown.
pub fn runs<'a>(runs: &[(&'a Recording, Option<String>)], view: impl Fn(&Recording) -> View) -> Document<'a> {
    let recordings: Vec<&Recording> = runs.iter().map(|&(recording, _)| recording).collect();
    let about = recordings.first().map_or("", |recording| &recording.workload);
    let sections =
        runs.iter().flat_map(|(recording, command)| sections(recording, command, &view(recording)));
    with_data(Document::new(about).sections(sections), recordings, &view)
}

fn sections(recording: &Recording, command: &Option<String>, view: &View) -> Vec<Section> {
    let measures = Measures::of([recording], view);
    let alone = [Group { label: "count".to_owned(), command: String::new(), recordings: vec![recording] }];
    let table = |table: Table| Section::untitled().with(table);
    let in_full = |make: &dyn Fn() -> Table| if view.all { table(make()) } else { Section::untitled() };
    let made_by = command.iter().map(|command| (String::new(), command.clone())).collect();
    vec![
        Section::first(title(recording), None).with(Block::Aside(speed(recording))),
        oom_section(recording),
        table(metrics(recording, &measures.first)),
        printed_run(recording),
        in_full(&|| metrics(recording, &measures.rest)),
        in_full(&|| samples(recording, &measures)),
        table(latencies(&alone, view)),
        in_full(&|| histogram(&alone)),
        table(counters(recording)),
        Section::untitled().lines_of(pressure_line(recording)),
        table(phases(&recording.phases_to_the_end())),
        Section::untitled().with(timeline(recording)),
        who_waited(recording, view.all),
        who_blocks(recording, view.all),
        in_full(&|| wait_lengths(&alone)),
        in_full(&|| by_phase(recording)),
        in_full(&|| all_counters(recording)),
        in_full(&|| memcg(recording)),
        Section::untitled().lines_of(more(recording, &measures, view)),
        Section::untitled().lines_of(view.known_lines([recording])),
        notes(&[recording]),
        Section::untitled().with(Block::Commands { heading: "Make it again", commands: made_by }),
    ]
}

fn title(recording: &Recording) -> String {
    let Recording { workload, kernel, backend, seed, label, .. } = recording;
    let label = if label == kernel { String::new() } else { format!("{label}: ") };
    let took = match (recording.is_simulated(), recording.wall_ns) {
        (true, _) => format!("{} simulated", duration(recording.simulated_ns as f64)),
        (false, Some(wall)) => format!("{} on the clock", duration(wall as f64)),
        (false, None) => "time not known".into(),
    };
    let ended = in_title(recording).map_or(String::new(), |killed| format!(", {killed}"));
    format!("{label}{workload} on {kernel} ({backend}, seed {seed}){ended}, {took}")
}

/// How fast it was simulated, which differs each time.
fn speed(recording: &Recording) -> String {
    let wall = recording.wall_ns.filter(|&wall| wall > 0 && recording.is_simulated());
    wall.map_or_else(String::new, |wall| {
        let times = recording.simulated_ns as f64 / wall as f64;
        format!(" in {}, {} times real time", duration(wall as f64), two_digits(times))
    })
}

/// A factor to two digits: 1000 times, 3.8 times, 0.41 times.
fn two_digits(times: f64) -> String {
    let places = if times >= 10.0 || times <= 0.0 { 0.0 } else { 1.0 - times.log10().floor() };
    format!("{times:.0$}", places.clamp(0.0, 9.0) as usize)
}

fn metrics(recording: &Recording, measures: &[Measure]) -> Table {
    let explained = measures.iter().any(|measure| !measure.help.is_empty());
    let mut table = Table::new().texts(["metric"]).numbers(["value"]).texts(["unit"]);
    table = table.texts(explained.then_some("what it is")).grouped([if explained { 3 } else { 2 }]);
    for measure in measures {
        let Some(value) = measure.value(recording) else { continue };
        let scale = Scale::of(measure.unit, [value]);
        let of = measure.of.and_then(|name| recording.metrics.get(name));
        let unit = of.map_or_else(
            || scale.unit.to_owned(),
            |&of| format!("of {} {}", plain(of * scale.factor), scale.unit).trim_end().to_owned(),
        );
        let cells = row![measure.heading(), value * scale.factor, unit].into_iter();
        table.push(cells.chain(explained.then(|| Cell::from(measure.help))));
    }
    table
}

fn samples(recording: &Recording, measures: &Measures) -> Table {
    let mut table = Table::new().texts(["samples", "unit"]).numbers(["n", "min", "median", "max"]);
    for (name, values) in &recording.samples {
        let known = measures.first.iter().chain(&measures.rest).find(|measure| measure.name == *name);
        let scale = Scale::of(known.map_or("", |measure| measure.unit), values.iter().copied());
        let figure = |value: Option<f64>| value.map(|value| value * scale.factor);
        table.push(row![
            name,
            scale.unit,
            values.len(),
            figure(values.iter().copied().min_by(f64::total_cmp)),
            figure(median(values)),
            figure(values.iter().copied().max_by(f64::total_cmp)),
        ]);
    }
    table
}

fn counters(recording: &Recording) -> Table {
    let mut table = Table::new().texts(["counter (/proc/vmstat)"]).numbers(["total"]);
    for (name, &count) in key_counters(recording) {
        table.push(row![name, count]);
    }
    let seconds = recording.duration_ns().map(|ns| ns as f64 / 1e9);
    for row in ops_rows(&recording.vmstat, seconds, OpsRules::Repaired) {
        let (name, scanned) = match row.label {
            "Kswapd efficiency %" => ("kswapd reclaimed of scanned, %", "pgscan_kswapd"),
            "Direct efficiency %" => ("direct reclaimed of scanned, %", "pgscan_direct"),
            _ => continue,
        };
        // With nothing scanned there is no efficiency to speak of.
        if let Some(value) = row.value.filter(|_| sum(&recording.vmstat, scanned) > Some(0.0)) {
            table.push(row![name, format!("{value:.2}")]);
        }
    }
    table
}

/// Those of [`KEY_COUNTERS`] that are not zero.
fn key_counters(recording: &Recording) -> impl Iterator<Item = (&String, &u64)> {
    KEY_COUNTERS.iter().flat_map(|key| counters_of(&recording.vmstat, key)).filter(|&(_, &count)| count > 0)
}

fn all_counters(recording: &Recording) -> Table {
    let mut table = Table::new().texts(["all that are not zero"]).numbers(["total"]);
    for (name, &count) in recording.vmstat.iter().filter(|&(_, &count)| count > 0) {
        table.push(row![name, count]);
    }
    table
}

/// What is not shown, in one line; nothing when there is none.
fn more(recording: &Recording, measures: &Measures, view: &View) -> Option<String> {
    let counters = recording.vmstat.values().filter(|&&count| count > 0).count();
    let rest = [
        (measures.rest.len(), "more metric"),
        (counters - key_counters(recording).count(), "more counter"),
        (recording.memcg.len(), "cgroup"),
    ];
    let some = rest.iter().filter(|(count, _)| *count > 0);
    let told: Vec<String> =
        some.map(|(count, what)| format!("{count} {what}{}", if *count == 1 { "" } else { "s" })).collect();
    (!view.all && !told.is_empty()).then(|| format!("{} with `--all`", told.join(", ")))
}

/// The counter called `key`, or those that `key` begins: `allocstall_normal`, but not a throttle
/// counter that only looks like one of a zone.
fn counters_of<'a>(
    vmstat: &'a BTreeMap<String, u64>,
    key: &'a str,
) -> impl Iterator<Item = (&'a String, &'a u64)> + 'a {
    const PARTS: [&str; 10] =
        ["", "_dma", "_dma32", "_normal", "_high", "_movable", "_device", "_file", "_anon", "_zone"];
    vmstat
        .range(key.to_owned()..)
        .take_while(move |(name, _)| name.starts_with(key))
        .filter(move |(name, _)| PARTS.contains(&&name[key.len()..]))
}

/// The counters that `key` begins together; `None` where there is none.
pub(crate) fn sum(vmstat: &BTreeMap<String, u64>, key: &str) -> Option<f64> {
    counters_of(vmstat, key).map(|(_, &count)| count as f64).reduce(|a, b| a + b)
}

/// A column for each cgroup. What `memory.stat` has in bytes is in MiB, all else counts pages or
/// events.
fn memcg(recording: &Recording) -> Table {
    let groups: Vec<_> = recording.memcg.iter().collect();
    let mut table =
        Table::new().texts(["cgroup (memory.stat)", "unit"]).numbers(groups.iter().map(|(path, _)| path));
    let names: BTreeSet<&String> = groups.iter().flat_map(|(_, counters)| counters.keys()).collect();
    for name in names {
        let cells: Vec<Option<u64>> =
            groups.iter().map(|(_, counters)| counters.get(name).copied()).collect();
        if cells.iter().flatten().any(|&count| count > 0) {
            let is_bytes = (is_gauge(name) && name != "workingset_nodes") || name == "current";
            let value = |count: u64| if is_bytes { Cell::from(mib(count)) } else { Cell::Count(count) };
            let cells = cells.into_iter().map(|cell| Cell::from(cell.map(value)));
            let unit = if is_bytes { "MiB" } else { "" };
            table.push(row![name, unit].into_iter().chain(cells));
        }
    }
    table
}

/// Bytes in MiB to a hundredth; what is less and not nothing is said to be so.
fn mib(bytes: u64) -> String {
    match bytes as f64 / f64::from(1 << 20) {
        0.0 => "0".into(),
        small if small < 0.005 => "<0.01".into(),
        mib => format!("{mib:.2}"),
    }
}

fn phases(phases: &[Phase]) -> Table {
    let columns: Vec<(&str, &str)> = PHASE_COLUMNS
        .into_iter()
        .filter(|(_, key)| phases.iter().any(|phase| sum(&phase.vmstat, key) > Some(0.0)))
        .collect();
    let mut table = Table::new()
        .texts(["phase"])
        .numbers(["ends at"])
        .amounts(["took"])
        .numbers(columns.iter().map(|(heading, _)| heading));
    let mut before = 0;
    for phase in phases {
        let counts = columns.iter().map(|(_, key)| Cell::from(sum(&phase.vmstat, key)));
        let took = Cell::Time(phase.at_ns.saturating_sub(before) as f64);
        before = phase.at_ns;
        let fixed = row![&phase.name, format!("{:.3} s", phase.at_ns as f64 / 1e9), took];
        table.push(fixed.into_iter().chain(counts));
    }
    table
}

/// What a time line shows, if the series has it: name, how to read it, counters to sum.
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

pub(crate) fn timeline(recording: &Recording) -> Timeline {
    let line = |(name, kind, counters): (&str, Kind, &[&str])| {
        let unit = if kind == Kind::Level { "pages" } else { "per s" };
        Some(Line { name: name.to_owned(), unit, kind, values: summed(&recording.series, counters)? })
    };
    timeline_of(recording, LINES.into_iter().filter_map(line))
}

/// These quantities over a run, and behind them the share of slab in runs that are about it.
pub(crate) fn timeline_of(recording: &Recording, lines: impl Iterator<Item = Line>) -> Timeline {
    let times_ns: Vec<u64> = recording.series.times_ns().collect();
    let last = times_ns.last().copied().unwrap_or(0);
    let end_ns = last.max(recording.duration_ns().unwrap_or(0));
    Timeline { times_ns, end_ns, lines: lines.chain(slab_share(recording)).collect() }
}

/// Slab of slab and file pages on LRU lists.
fn slab_share(recording: &Recording) -> Option<Line> {
    recording.metrics.get("slab_share")?;
    let slab = summed(&recording.series, &["nr_slab_reclaimable", "nr_slab_unreclaimable"])?;
    let file = summed(&recording.series, &["nr_active_file", "nr_inactive_file"])?;
    let values = slab.iter().zip(file).map(|(slab, file)| slab / (slab + file).max(1.0)).collect();
    Some(Line { name: "slab share".to_owned(), unit: "", kind: Kind::Share, values })
}

/// A value for each reading: these counters together; `None` where the series has none of them.
pub(crate) fn summed(series: &Series, counters: &[&str]) -> Option<Vec<f64>> {
    let columns = counters.iter().filter_map(|name| series.column(name));
    columns
        .map(|column| column.into_iter().map(|value| value as f64).collect::<Vec<_>>())
        .reduce(|a, b| a.iter().zip(b).map(|(a, b)| a + b).collect())
}
