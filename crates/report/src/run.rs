//! One run: its metrics, what the kernel counted, what the cgroups saw, and who waited for what.

use std::collections::{BTreeMap, BTreeSet};

use recording::{Phase, Recording, Stall};
use stats::describe::median;
use stats::ops::ops_rows;

use crate::Group;
use crate::histogram::histogram;
use crate::measure::unit;
use crate::notes::notes_text;
use crate::number::{duration, plain};
use crate::oom::{oom_killed, oom_section};
use crate::table::{Align, Table, clean};
use crate::timeline::timeline;

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

/// Waits that the table of stalls shows.
const STALLS_MAX: usize = 12;

/// One recording for a terminal of `width` columns. Sections without content are left out.
pub fn run_text(recording: &Recording, width: usize) -> String {
    let sections = [
        title(recording),
        oom_section(recording),
        metrics(recording, width),
        samples(recording, width),
        section(&histogram(&[of_one(recording)]), width),
        counters(recording, width),
        memcg(recording, width),
        phases(&recording.phases_to_the_end(), width),
        timeline(recording, width),
        stalls(&recording.stalls, width),
        notes_text(&[recording]),
    ];
    sections.into_iter().filter(|section| !section.is_empty()).collect::<Vec<_>>().join("\n")
}

fn of_one(recording: &Recording) -> Group<'_> {
    Group { label: "count".to_owned(), command: String::new(), recordings: vec![recording] }
}

fn title(recording: &Recording) -> String {
    let Recording { workload, kernel, backend, seed, label, .. } = recording;
    let label = if label == kernel { String::new() } else { format!("{label}: ") };
    let took = if recording.is_simulated() {
        format!("{} simulated, {} events", duration(recording.simulated_ns as f64), recording.events)
    } else {
        recording
            .wall_ns
            .map_or("time not known".into(), |wall| format!("{} on the clock", duration(wall as f64)))
    };
    let ended = oom_killed(recording).map_or(String::new(), |killed| format!(", {killed}"));
    clean(&format!("{label}{workload} on {kernel} ({backend}, seed {seed}){ended}, {took}")) + "\n"
}

fn metrics(recording: &Recording, width: usize) -> String {
    let mut table = table([("metric", Align::Left), ("value", Align::Number), ("unit", Align::Left)]);
    for (name, &value) in &recording.metrics {
        table.push([name.clone(), plain(value), unit(name).into()]);
    }
    section(&table, width)
}

fn samples(recording: &Recording, width: usize) -> String {
    let mut table = table([
        ("samples", Align::Left),
        ("unit", Align::Left),
        ("n", Align::Number),
        ("min", Align::Number),
        ("median", Align::Number),
        ("max", Align::Number),
    ]);
    for (name, values) in &recording.samples {
        let figure = |value: Option<f64>| value.map_or("-".into(), plain);
        table.push([
            name.clone(),
            unit(name).into(),
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
    let mut shown = 0;
    for key in KEY_COUNTERS {
        for (name, &count) in counters_of(&recording.vmstat, key).filter(|&(_, &count)| count > 0) {
            table.push([name.clone(), count.to_string()]);
            shown += 1;
        }
    }
    let seconds = recording.duration_ns().map(|ns| ns as f64 / 1e9);
    for row in ops_rows(&recording.vmstat, seconds) {
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
    let rest = recording.vmstat.values().filter(|&&count| count > 0).count() - shown;
    let more = if rest > 0 {
        format!("{rest} more are not zero: `--format json` has them\n")
    } else {
        String::new()
    };
    section(&table, width) + &more
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

fn sum(vmstat: &BTreeMap<String, u64>, key: &str) -> Option<f64> {
    counters_of(vmstat, key).map(|(_, &count)| count as f64).reduce(|a, b| a + b)
}

/// As many cgroups side by side as fit, the rest below.
fn memcg(recording: &Recording, width: usize) -> String {
    const NAMES_WIDTH: usize = 28;
    const NUMBER_WIDTH: usize = 14;
    let groups: Vec<_> = recording.memcg.iter().collect();
    let side_by_side = (width.saturating_sub(NAMES_WIDTH) / NUMBER_WIDTH).max(1);
    groups.chunks(side_by_side).map(|groups| section(&memcg_table(groups), width)).collect()
}

fn memcg_table(groups: &[(&String, &BTreeMap<String, u64>)]) -> Table {
    let headings = groups.iter().map(|(path, _)| ((*path).clone(), Align::Number));
    let mut table =
        Table::new(std::iter::once(("cgroup (memory.stat)".to_owned(), Align::Left)).chain(headings));
    let names: BTreeSet<&String> = groups.iter().flat_map(|(_, counters)| counters.keys()).collect();
    for name in names {
        let cells: Vec<Option<u64>> =
            groups.iter().map(|(_, counters)| counters.get(name).copied()).collect();
        if cells.iter().any(|cell| cell.is_some_and(|count| count > 0)) {
            let texts = cells.into_iter().map(|cell| cell.map_or("-".into(), |count| count.to_string()));
            table.push(std::iter::once(name.clone()).chain(texts));
        }
    }
    table
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

/// Waits of tasks that differ in their number only.
#[derive(Default)]
struct Waits {
    tasks: usize,
    count: u128,
    total_ns: u128,
    max_ns: u64,
}

fn stalls(stalls: &[Stall], width: usize) -> String {
    let mut merged: BTreeMap<(String, &str), Waits> = BTreeMap::new();
    for stall in stalls {
        let waits = merged.entry((without_number(&stall.task), &stall.reason)).or_default();
        waits.tasks += 1;
        waits.count += u128::from(stall.count);
        waits.total_ns += u128::from(stall.total_ns);
        waits.max_ns = waits.max_ns.max(stall.max_ns);
    }
    let mut merged: Vec<_> = merged.into_iter().collect();
    merged.sort_by_key(|(_, waits)| std::cmp::Reverse(waits.total_ns));
    let mut table = table([
        ("who", Align::Left),
        ("waited for", Align::Left),
        ("times", Align::Number),
        ("in all", Align::Right),
        ("mean", Align::Right),
        ("longest", Align::Right),
    ]);
    for ((task, reason), waits) in merged.iter().take(STALLS_MAX) {
        let who = if waits.tasks > 1 { format!("{task} ({} tasks)", waits.tasks) } else { task.clone() };
        let mean = waits.total_ns as f64 / waits.count.max(1) as f64;
        table.push([
            who,
            (*reason).to_owned(),
            waits.count.to_string(),
            duration(waits.total_ns as f64),
            duration(mean),
            duration(waits.max_ns as f64),
        ]);
    }
    let rest = merged.iter().skip(STALLS_MAX).map(|(_, waits)| waits.total_ns).sum::<u128>();
    let more = match merged.len().saturating_sub(STALLS_MAX) {
        0 => String::new(),
        left => format!("{left} more rows, {} in all\n", duration(rest as f64)),
    };
    section(&table, width) + &more
}

/// `writer-12` and `writer/3` are `writer-*` and `writer/*`.
fn without_number(task: &str) -> String {
    let stem = task.trim_end_matches(|c: char| c.is_ascii_digit());
    if stem.is_empty() || stem.len() == task.len() { task.to_owned() } else { format!("{stem}*") }
}

fn table<const N: usize>(headings: [(&str, Align); N]) -> Table {
    Table::new(headings.map(|(text, align)| (text.to_owned(), align)))
}

fn section(table: &Table, width: usize) -> String {
    if table.is_empty() { String::new() } else { table.to_text(width) }
}
