//! Where the model is farthest off, by how many worlds it explains, each with a world to look at.
//!
//! A counter's weight is in how many worlds no other one is off by more pages or events. Levels at the end of a run
//! have what booting left in them, which a model of another size lacks, and time is not counted in pages: neither is
//! in the list. How a run ended stands before all else, as nothing is counted where the sides differ in it.

use std::collections::{BTreeMap, BTreeSet};

use recording::chunk::FactKind;
use recording::is_gauge;
use recording::worlds::WorldRow;

use crate::hits;
use crate::worlds::{Judged, age, is_run};

/// How many are kept.
const KEPT: usize = 7;

/// A counter that is more than 10 % off in some worlds.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Disagreement {
    pub(crate) counter: String,
    pub(crate) scope: String,
    /// Kernels on which it is.
    pub(crate) kernels: Vec<String>,
    /// In how many worlds.
    pub(crate) worlds: usize,
    /// Of how many in which it was judged.
    pub(crate) of: usize,
    /// In how many no other counter is off by more.
    pub(crate) largest: usize,
    /// The world in which the least happened, of those in which no other counter is off by more: its two sides.
    pub(crate) real: f64,
    pub(crate) model: f64,
    /// What makes the real one again.
    pub(crate) real_command: String,
}

/// A world: the place of its folder, and its seed.
type Place<'a> = (&'a str, u64);

/// The heaviest of them, from all folders.
pub(crate) fn disagreements(judged: &[Judged<'_>], all: &[(String, Vec<WorldRow>)]) -> Vec<Disagreement> {
    let counted: Vec<&Judged<'_>> = judged.iter().filter(|judged| is_counted(judged.row)).collect();
    let largest = largest(&counted);
    let mut groups: BTreeMap<(&str, &str), Vec<&Judged<'_>>> = BTreeMap::new();
    for judged in counted {
        groups.entry((&judged.row.counter, &judged.row.scope)).or_default().push(judged);
    }
    let mut found: Vec<Disagreement> =
        groups.values().filter_map(|group| disagreement(group, &largest, all)).collect();
    found.sort_by(|a, b| (b.largest, b.worlds, &a.counter).cmp(&(a.largest, a.worlds, &b.counter)));
    found.truncate(KEPT);
    found
}

/// A run that was refused says nothing of a kernel.
fn is_counted(row: &WorldRow) -> bool {
    let refused = || row.real.iter().chain(&row.model).any(|&code| hits::outcome(code) == "failed");
    (is_run(row, "outcome") && !refused()) || (row.kind == FactKind::Vmstat.name() && !is_gauge(&row.counter))
}

fn off(row: &WorldRow) -> f64 {
    if is_run(row, "outcome") { f64::INFINITY } else { (middle(&row.real) - middle(&row.model)).abs() }
}

fn middle(values: &[f64]) -> f64 {
    stats::describe::median(values).unwrap_or(0.0)
}

fn place<'a>(judged: &Judged<'a>) -> Place<'a> {
    (judged.kernel, judged.row.seed)
}

/// Of each world the counter that is off by the most.
fn largest<'a>(counted: &[&Judged<'a>]) -> BTreeMap<Place<'a>, &'a str> {
    let mut largest: BTreeMap<Place<'a>, &WorldRow> = BTreeMap::new();
    for judged in counted.iter().filter(|judged| judged.class.disagrees()) {
        let most = largest.entry(place(judged)).or_insert(judged.row);
        if off(judged.row) > off(most) {
            *most = judged.row;
        }
    }
    largest.into_iter().map(|(place, row)| (place, row.counter.as_str())).collect()
}

fn disagreement(
    group: &[&Judged<'_>],
    largest: &BTreeMap<Place<'_>, &str>,
    all: &[(String, Vec<WorldRow>)],
) -> Option<Disagreement> {
    let apart = || group.iter().filter(|judged| judged.class.disagrees());
    let is_largest =
        |judged: &&&Judged<'_>| largest.get(&place(judged)) == Some(&judged.row.counter.as_str());
    let size = |row: &WorldRow| middle(&row.real).max(middle(&row.model));
    let example = apart().filter(is_largest).min_by(|a, b| size(a.row).total_cmp(&size(b.row)))?;
    let (_, rows) = all.iter().find(|(kernel, rows)| {
        kernel == example.kernel && rows.iter().any(|row| std::ptr::eq(row, example.row))
    })?;
    let is_command = |row: &&WorldRow| row.seed == example.row.seed && is_run(row, "real");
    let command = rows.iter().find(is_command).and_then(|row| row.text.clone());
    let kernels: BTreeSet<_> = apart().map(|judged| (age(judged.kernel), judged.kernel.to_owned())).collect();
    Some(Disagreement {
        counter: example.row.counter.clone(),
        scope: example.row.scope.clone(),
        kernels: kernels.into_iter().map(|(_, kernel)| kernel).collect(),
        worlds: apart().count(),
        of: group.len(),
        largest: apart().filter(is_largest).count(),
        real: middle(&example.row.real),
        model: middle(&example.row.model),
        real_command: command.unwrap_or_default(),
    })
}
