//! Many worlds in three tables: shares of counters by how near they are, headline metrics, and the counters that
//! disagree, those of the most worlds first.
//!
//! All of it follows from the rows. Left out: how it looks (`pagetide-report`, `worlds.rs`).

use std::collections::{BTreeMap, BTreeSet};

use recording::chunk::FactKind;
use recording::worlds::WorldRow;
use report::{WorldsCounter, WorldsHeadline, WorldsShares, WorldsSummary};
use stats::describe::median;

use super::judge::{Class, first_line, judge_itself};
use crate::show::view::headlines;

/// A headline metric is right within this.
const HEADLINE: f64 = 0.05;
/// What stands in the place of a workload where real runs are judged by each other.
const ITSELF: &str = "each real run by the others";
/// How many names of counters that only one side has are told.
const NAMES: usize = 12;

/// What these rows come to.
pub(super) fn summary(rows: &[WorldRow]) -> WorldsSummary {
    let kernel = rows.first().map_or_else(String::new, |row| row.kernel.clone());
    let worlds = distinct(rows.iter());
    let outcomes: Vec<&WorldRow> = rows.iter().filter(|row| is_run(row, "outcome")).collect();
    let has_real = rows.iter().any(|row| !row.real.is_empty());
    let not_judged = outcomes.iter().filter(|row| row.text.is_some());
    WorldsSummary {
        kernel,
        worlds,
        has_real,
        shares: shares(rows),
        headlines: headline_metrics(rows),
        counters: counters(rows),
        not_judged: not_judged.map(|row| (row.seed, row.workload.clone(), told(row))).collect(),
        notes: notes(rows, has_real),
    }
}

fn is_run(row: &WorldRow, counter: &str) -> bool {
    row.kind == FactKind::Run.name() && row.counter == counter
}

fn told(row: &WorldRow) -> String {
    row.text.as_deref().map(first_line).unwrap_or_default().to_owned()
}

/// In how many worlds.
fn distinct<'a>(rows: impl Iterator<Item = &'a WorldRow>) -> usize {
    rows.map(|row| row.seed).collect::<BTreeSet<_>>().len()
}

fn class(row: &WorldRow) -> Option<Class> {
    Class::named(&row.class)
}

/// Counters of some worlds.
#[derive(Debug, Default)]
struct Counted {
    seeds: BTreeSet<u64>,
    classes: Vec<Class>,
}

/// Each workload under limits and under global pressure, below them all together, and what a model could reach.
fn shares(rows: &[WorldRow]) -> Vec<WorldsShares> {
    let mut groups: BTreeMap<(&str, &str), Counted> = BTreeMap::new();
    for row in rows.iter().filter(|row| row.kind != FactKind::Run.name()) {
        let Some(class) = class(row) else { continue };
        let itself = if class.is_judged() { judge_itself(&row.real) } else { Vec::new() };
        for (workload, classes) in [(&*row.workload, &[class][..]), ("all", &[class]), (ITSELF, &itself)] {
            if !classes.is_empty() {
                let counted = groups.entry((&row.scope, workload)).or_default();
                counted.seeds.insert(row.seed);
                counted.classes.extend(classes);
            }
        }
    }
    let mut shares: Vec<WorldsShares> =
        groups.into_iter().map(|(key, counted)| share(key, &counted)).collect();
    // Behind the workloads of a scope.
    let place =
        |name: &str| ["all", ITSELF].iter().position(|last| *last == name).map_or(0, |place| place + 1);
    shares.sort_by_key(|share| (share.scope == "global", place(&share.workload), share.workload.clone()));
    shares
}

fn share((scope, workload): (&str, &str), counted: &Counted) -> WorldsShares {
    let count = |wanted: Class| counted.classes.iter().filter(|class| **class == wanted).count();
    WorldsShares {
        scope: scope.to_owned(),
        workload: workload.to_owned(),
        worlds: counted.seeds.len(),
        near: [Class::Spread, Class::Within2, Class::Within10, Class::Within25, Class::Beyond].map(count),
        small: count(Class::Small),
    }
}

fn headline_metrics(rows: &[WorldRow]) -> Vec<WorldsHeadline> {
    let mut groups: BTreeMap<(&str, usize, &str), Vec<f64>> = BTreeMap::new();
    let mut order: BTreeMap<&str, Vec<&'static str>> = BTreeMap::new();
    for row in rows.iter().filter(|row| row.kind == FactKind::Metric.name()) {
        let names = order
            .entry(&row.workload)
            .or_insert_with(|| headlines(&row.workload).into_iter().map(|headline| headline.name).collect());
        let place = names.iter().position(|name| *name == row.counter);
        if let (Some(place), Some(error)) = (place, row.error) {
            groups.entry((&row.workload, place, &row.scope)).or_default().push(error);
        }
    }
    let headline = |((workload, place, scope), errors): ((&str, usize, &str), Vec<f64>)| WorldsHeadline {
        workload: workload.to_owned(),
        scope: scope.to_owned(),
        metric: order[workload][place].to_owned(),
        worlds: errors.len(),
        right: errors.iter().filter(|error| error.abs() <= HEADLINE).count(),
        error: median(&errors),
    };
    groups.into_iter().map(headline).collect()
}

/// Counters that disagree anywhere, those of the most worlds first.
fn counters(rows: &[WorldRow]) -> Vec<WorldsCounter> {
    let largest = largest(rows);
    let mut groups: BTreeMap<(&str, &str), Vec<&WorldRow>> = BTreeMap::new();
    for row in rows {
        if class(row).is_some_and(Class::is_judged) {
            groups.entry((&row.counter, &row.scope)).or_default().push(row);
        }
    }
    let mut counters: Vec<WorldsCounter> =
        groups.into_iter().filter_map(|(key, rows)| counter(key, &rows, &largest)).collect();
    counters.sort_by(|a, b| (b.worlds, b.largest, &a.counter).cmp(&(a.worlds, a.largest, &b.counter)));
    counters
}

fn counter(
    (name, scope): (&str, &str),
    rows: &[&WorldRow],
    largest: &BTreeMap<u64, &str>,
) -> Option<WorldsCounter> {
    let apart: Vec<&&WorldRow> = rows.iter().filter(|row| class(row).is_some_and(Class::disagrees)).collect();
    let first = apart.first()?;
    // What is said of the runs is a code.
    let counted = apart.iter().filter(|row| row.kind != FactKind::Run.name());
    let middle = |of: &dyn Fn(&WorldRow) -> Option<f64>| {
        median(&counted.clone().filter_map(|row| of(row)).collect::<Vec<_>>())
    };
    // The world in which the least happened is the easiest to read.
    let size = |row: &&&&WorldRow| median(&row.real).unwrap_or(0.0).max(median(&row.model).unwrap_or(0.0));
    let example = apart.iter().min_by(|a, b| size(a).total_cmp(&size(b))).unwrap_or(first);
    Some(WorldsCounter {
        counter: name.to_owned(),
        kind: first.kind.clone(),
        scope: scope.to_owned(),
        worlds: apart.len(),
        of: rows.len(),
        beyond: apart.iter().filter(|row| class(row) == Some(Class::Beyond)).count(),
        largest: apart.iter().filter(|row| largest.get(&row.seed) == Some(&name)).count(),
        workloads: apart
            .iter()
            .map(|row| row.workload.clone())
            .collect::<BTreeSet<_>>()
            .into_iter()
            .collect(),
        error: middle_error(counted.clone()),
        real: middle(&|row| median(&row.real)),
        model: middle(&|row| median(&row.model)),
        example: example.seed,
    })
}

/// Of errors up and down the one of middle size.
fn middle_error<'a>(rows: impl Iterator<Item = &'a &'a &'a WorldRow>) -> Option<f64> {
    let mut errors: Vec<f64> = rows.filter_map(|row| row.error).collect();
    errors.sort_by(|a, b| a.abs().total_cmp(&b.abs()));
    errors.get(errors.len() / 2).copied()
}

/// Of each world the counter of `/proc/vmstat` that is off by the most.
fn largest(rows: &[WorldRow]) -> BTreeMap<u64, &str> {
    let mut largest: BTreeMap<u64, (f64, &str)> = BTreeMap::new();
    for row in rows.iter().filter(|row| row.kind == FactKind::Vmstat.name()) {
        let (Some(real), Some(model)) = (median(&row.real), median(&row.model)) else { continue };
        if class(row).is_some_and(Class::disagrees) {
            let off = (real - model).abs();
            let most = largest.entry(row.seed).or_insert((off, &row.counter));
            if off > most.0 {
                *most = (off, &row.counter);
            }
        }
    }
    largest.into_iter().map(|(seed, (_, name))| (seed, name)).collect()
}

/// What a reader must know: what one side does not have.
fn notes(rows: &[WorldRow], has_real: bool) -> Vec<String> {
    if !has_real {
        return vec!["the model alone: nothing to judge it by".to_owned()];
    }
    // Paths differ, the counter does not.
    fn name(row: &WorldRow) -> &str {
        row.counter.rsplit(':').next().unwrap_or(&row.counter)
    }
    let on_both = |row: &&WorldRow| class(row).is_some_and(|class| class != Class::OneSide);
    let both: BTreeSet<&str> = rows.iter().filter(on_both).map(name).collect();
    let one_side = |real: bool| -> BTreeSet<&str> {
        let is = |row: &&WorldRow| class(row) == Some(Class::OneSide) && row.model.is_empty() == real;
        rows.iter().filter(is).map(name).filter(|name| !both.contains(name)).collect()
    };
    let note = |names: BTreeSet<&str>, what: &str| {
        let shown: Vec<&str> = names.iter().copied().take(NAMES).collect();
        let more = names.len().saturating_sub(NAMES);
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        (!names.is_empty()).then(|| format!("{what}: {}{more}", shown.join(", ")))
    };
    let only_real = note(one_side(true), "the model does not keep");
    let only_model = note(one_side(false), "the real kernel does not keep");
    only_real.into_iter().chain(only_model).collect()
}
