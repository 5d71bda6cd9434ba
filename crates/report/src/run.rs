//! One run: its metrics, what the kernel counted, when, and who waited for what.
//!
//! What matters most comes first; other metrics, samples, all counters and what the cgroups saw are
//! shown on demand.

use std::collections::{BTreeMap, BTreeSet};

use recording::{Phase, Recording, is_gauge};
use stats::describe::median;
use stats::ops::{OpsRules, ops_rows};

use crate::Group;
use crate::blocked::who_blocks;
use crate::histogram::histogram;
use crate::latency::{latencies, wait_lengths};
use crate::notes::notes_text;
use crate::number::{duration, plain};
use crate::oom::{in_title, oom_section};
use crate::pressure::pressure_line;
use crate::printed::printed_run;
use crate::table::{Align, Table, clean};
use crate::timeline::timeline;
use crate::view::{Measure, Measures, Scale, View};
use crate::waits::{by_phase, who_waited};
use crate::wrap::paragraph;

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

/// One recording for a terminal. Sections without content are left out.
pub fn run_text(recording: &Recording, view: impl Into<View>) -> String {
    let view = &view.into();
    let width = view.width;
    let measures = Measures::of([recording], view);
    let in_full = |section: &dyn Fn() -> String| if view.all { section() } else { String::new() };
    let sections = [
        paragraph(&title(recording), width, 2),
        oom_section(recording, width),
        metrics(recording, &measures.first, width),
        printed_run(recording, width),
        in_full(&|| metrics(recording, &measures.rest, width)),
        in_full(&|| samples(recording, &measures, width)),
        section(&latencies(&[of_one(recording)], view), width),
        in_full(&|| section(&histogram(&[of_one(recording)]), width)),
        counters(recording, width),
        pressure_line(recording, width),
        phases(&recording.phases_to_the_end(), width),
        timeline(recording, width),
        who_waited(recording, view.all, width),
        who_blocks(recording, view.all, width),
        in_full(&|| section(&wait_lengths(&[of_one(recording)]), width)),
        in_full(&|| by_phase(recording, width)),
        in_full(&|| section(&all_counters(recording), width)),
        in_full(&|| memcg(recording, width)),
        more(recording, &measures, view),
        notes_text(&[recording], width),
    ];
    sections.into_iter().filter(|section| !section.is_empty()).collect::<Vec<_>>().join("\n")
}

fn of_one(recording: &Recording) -> Group<'_> {
    Group { label: "count".to_owned(), command: String::new(), recordings: vec![recording] }
}

fn title(recording: &Recording) -> String {
    let Recording { workload, kernel, backend, seed, label, .. } = recording;
    let label = if label == kernel { String::new() } else { format!("{label}: ") };
    let took = match (recording.is_simulated(), recording.wall_ns) {
        (true, wall) => {
            let simulated = recording.simulated_ns as f64;
            let speed = wall.filter(|&wall| wall > 0).map(|wall| {
                let times = simulated / wall as f64;
                format!(" in {}, {} times real time", duration(wall as f64), two_digits(times))
            });
            format!("{} simulated{}", duration(simulated), speed.unwrap_or_default())
        }
        (false, Some(wall)) => format!("{} on the clock", duration(wall as f64)),
        (false, None) => "time not known".into(),
    };
    let ended = in_title(recording).map_or(String::new(), |killed| format!(", {killed}"));
    clean(&format!("{label}{workload} on {kernel} ({backend}, seed {seed}){ended}, {took}"))
}

/// A factor to two digits: 1000 times, 3.8 times, 0.41 times.
fn two_digits(times: f64) -> String {
    let places = if times >= 10.0 || times <= 0.0 { 0.0 } else { 1.0 - times.log10().floor() };
    format!("{times:.0$}", places.clamp(0.0, 9.0) as usize)
}

fn metrics(recording: &Recording, measures: &[Measure], width: usize) -> String {
    let explained = measures.iter().any(|measure| !measure.help.is_empty());
    let mut headings = vec![("metric", Align::Left), ("value", Align::Number), ("unit", Align::Left)];
    if explained {
        headings.push(("what it is", Align::Left));
    }
    let mut table = Table::new(headings.into_iter().map(|(text, align)| (text.to_owned(), align)))
        .grouped([if explained { 3 } else { 2 }]);
    for measure in measures {
        let Some(value) = measure.value(recording) else { continue };
        let scale = Scale::of(measure.unit, [value]);
        let of = measure.of.and_then(|name| recording.metrics.get(name));
        let unit = of.map_or_else(
            || scale.unit.to_owned(),
            |&of| format!("of {} {}", plain(of * scale.factor), scale.unit).trim_end().to_owned(),
        );
        let cells = [measure.heading(), plain(value * scale.factor), unit].into_iter();
        table.push(cells.chain(explained.then(|| measure.help.to_owned())));
    }
    section(&table, width)
}

fn samples(recording: &Recording, measures: &Measures, width: usize) -> String {
    let mut table = table([
        ("samples", Align::Left),
        ("unit", Align::Left),
        ("n", Align::Number),
        ("min", Align::Number),
        ("median", Align::Number),
        ("max", Align::Number),
    ]);
    for (name, values) in &recording.samples {
        let known = measures.first.iter().chain(&measures.rest).find(|measure| measure.name == *name);
        let scale = Scale::of(known.map_or("", |measure| measure.unit), values.iter().copied());
        let figure = |value: Option<f64>| value.map_or("-".into(), |value| plain(value * scale.factor));
        table.push([
            name.clone(),
            scale.unit.into(),
            values.len().to_string(),
            figure(values.iter().copied().min_by(f64::total_cmp)),
            figure(median(values)),
            figure(values.iter().copied().max_by(f64::total_cmp)),
        ]);
    }
    section(&table, width)
}

fn counters(recording: &Recording, width: usize) -> String {
    let mut table = table([("counter (/proc/vmstat)", Align::Left), ("total", Align::Number)]);
    for (name, &count) in key_counters(recording) {
        table.push([name.clone(), count.to_string()]);
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
            table.push([name.into(), format!("{value:.2}")]);
        }
    }
    section(&table, width)
}

/// Those of [`KEY_COUNTERS`] that are not zero.
fn key_counters(recording: &Recording) -> impl Iterator<Item = (&String, &u64)> {
    KEY_COUNTERS.iter().flat_map(|key| counters_of(&recording.vmstat, key)).filter(|&(_, &count)| count > 0)
}

fn all_counters(recording: &Recording) -> Table {
    let mut table = table([("all that are not zero", Align::Left), ("total", Align::Number)]);
    for (name, &count) in recording.vmstat.iter().filter(|&(_, &count)| count > 0) {
        table.push([name.clone(), count.to_string()]);
    }
    table
}

/// What is not shown, in one line; empty when there is nothing.
fn more(recording: &Recording, measures: &Measures, view: &View) -> String {
    let counters = recording.vmstat.values().filter(|&&count| count > 0).count();
    let rest = [
        (measures.rest.len(), "more metric"),
        (counters - key_counters(recording).count(), "more counter"),
        (recording.memcg.len(), "cgroup"),
    ];
    let some = rest.iter().filter(|(count, _)| *count > 0);
    let told: Vec<String> =
        some.map(|(count, what)| format!("{count} {what}{}", if *count == 1 { "" } else { "s" })).collect();
    if view.all || told.is_empty() {
        return String::new();
    }
    paragraph(&format!("{} with `--all`", told.join(", ")), view.width, 2)
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
fn memcg(recording: &Recording, width: usize) -> String {
    let groups: Vec<_> = recording.memcg.iter().collect();
    let headings = groups.iter().map(|(path, _)| ((*path).clone(), Align::Number));
    let fixed = [("cgroup (memory.stat)".to_owned(), Align::Left), ("unit".to_owned(), Align::Left)];
    let mut table = Table::new(fixed.into_iter().chain(headings));
    let names: BTreeSet<&String> = groups.iter().flat_map(|(_, counters)| counters.keys()).collect();
    for name in names {
        let cells: Vec<Option<u64>> =
            groups.iter().map(|(_, counters)| counters.get(name).copied()).collect();
        if cells.iter().flatten().any(|&count| count > 0) {
            let is_bytes = (is_gauge(name) && name != "workingset_nodes") || name == "current";
            let value = |count: u64| {
                if is_bytes { mib(count) } else { count.to_string() }
            };
            let texts = cells.into_iter().map(|cell| cell.map_or("-".into(), value));
            let unit = if is_bytes { "MiB" } else { "" };
            table.push([name.clone(), unit.to_owned()].into_iter().chain(texts));
        }
    }
    section(&table, width)
}

/// Bytes in MiB to a hundredth; what is less and not nothing is said to be so.
fn mib(bytes: u64) -> String {
    match bytes as f64 / f64::from(1 << 20) {
        0.0 => "0".into(),
        small if small < 0.005 => "<0.01".into(),
        mib => format!("{mib:.2}"),
    }
}

fn phases(phases: &[Phase], width: usize) -> String {
    let columns: Vec<(&str, &str)> = PHASE_COLUMNS
        .into_iter()
        .filter(|(_, key)| phases.iter().any(|phase| sum(&phase.vmstat, key) > Some(0.0)))
        .collect();
    let headings = [("phase", Align::Left), ("ends at", Align::Number), ("took", Align::Right)]
        .into_iter()
        .chain(columns.iter().map(|&(heading, _)| (heading, Align::Number)));
    let mut table = Table::new(headings.map(|(text, align)| (text.to_owned(), align)));
    let mut before = 0;
    for phase in phases {
        let counts = columns.iter().map(|(_, key)| sum(&phase.vmstat, key).map_or("-".into(), plain));
        let took = phase.at_ns.saturating_sub(before);
        before = phase.at_ns;
        let fixed = [phase.name.clone(), format!("{:.3} s", phase.at_ns as f64 / 1e9), duration(took as f64)];
        table.push(fixed.into_iter().chain(counts));
    }
    section(&table, width)
}

fn table<const N: usize>(headings: [(&str, Align); N]) -> Table {
    Table::new(headings.map(|(text, align)| (text.to_owned(), align)))
}

fn section(table: &Table, width: usize) -> String {
    if table.is_empty() { String::new() } else { table.to_text(width) }
}
