//! "What the runs say": which counters and waits moved most between groups; and all counters.
//!
//! A counter is listed when in some group it moved by a tenth or more against the first, beyond a
//! floor that keeps a change from 1 to 3 out, and, with several runs a side, beyond chance (5 %, each
//! by itself: this list suggests where to look, it proves nothing, so it has no verdicts).

use std::collections::{BTreeMap, BTreeSet};

use recording::Recording;
use stats::multiple::Family;

use crate::document::number::{duration, plain, signed, signed_percent};
use crate::document::{Align, Section, Table};
use crate::judge::{Change, Group, Pairing, Side, absent, is_modelled};
use crate::views::waits::{imposed, is_told, waited, whole_of};

/// Events that are added to both sides before their ratio is taken.
const COUNTER_FLOOR: f64 = 100.0;
/// The same for waiting time: 10 ms.
const WAIT_FLOOR_NS: f64 = 1e7;
/// A ratio below this is no news.
const RATIO_MIN: f64 = 1.1;
/// Rows of each list, those of parts not counted.
const ROWS_MAX: usize = 6;
/// What heads the list of waits.
const TIMED: &str = "time waited for";
/// And that of counters.
const COUNTED: &str = "counter (/proc/vmstat)";

/// What moved; empty where the runs have neither counters nor waits.
pub(crate) fn findings(groups: &[Group<'_>], all: bool) -> Section {
    let counters = counters(groups);
    let waits = waits(groups);
    if counters.is_empty() && waits.is_empty() {
        return Section::untitled(); // plain policies count nothing
    }
    let unmodelled = unmodelled(groups, &counters);
    let counters = counters.into_iter().filter(|(name, _)| !name.starts_with("psi_memory_")).collect();
    let counters = movers(groups, counters, COUNTER_FLOOR);
    let waits = telling_waits(groups, waits, all);
    let section = match counters.is_empty() && waits.is_empty() {
        true => Section::untitled().line("what the runs say: no counter moved by a tenth or more"),
        false => Section::new("what the runs say")
            .with(table(COUNTED, Align::Number, groups, &counters, plain))
            .with(table(TIMED, Align::Right, groups, &waits, duration)),
    };
    section.lines_of(unmodelled)
}

/// The table of waits alone; empty where nobody knows what ended them.
pub(crate) fn waited_table(groups: &[Group<'_>], all: bool) -> Table {
    let waits = if know_waits(groups) { telling_waits(groups, waits(groups), all) } else { Vec::new() };
    table(TIMED, Align::Right, groups, &waits, duration)
}

/// Time in each wait. A run that recorded waits at all, and none of these, waited 0 ns so.
fn waits(groups: &[Group<'_>]) -> Vec<Named> {
    let imposed = names(groups, |recording| imposed(recording).collect());
    sides_of(groups, &names(groups, |r| waited(r).into_keys().collect()), |r, name| {
        waited(r).get(name).copied().or_else(|| is_told(r, name, &imposed).then_some(0.0))
    })
}

fn know_waits(groups: &[Group<'_>]) -> bool {
    groups.iter().flat_map(|group| &group.recordings).any(|recording| !recording.waits.is_empty())
}

/// The waits that a table shows. Of recordings that tell what ended them the longest in any group, with
/// what was futile below; of older ones those that moved most.
fn telling_waits(groups: &[Group<'_>], mut waits: Vec<Named>, all: bool) -> Vec<Named> {
    if !know_waits(groups) {
        return movers(groups, waits, WAIT_FLOOR_NS);
    }
    let most = |sides: &[Side]| sides.iter().filter_map(Side::mean).fold(0.0, f64::max);
    let longest: BTreeMap<String, f64> =
        waits.iter().map(|(name, sides)| (name.clone(), most(sides))).collect();
    let whole = |name: &str| whole_of(name).unwrap_or(name).to_owned();
    let length_of_whole = |name: &str| longest.get(&whole(name)).copied().unwrap_or(0.0);
    waits.retain(|(name, _)| length_of_whole(name) > 0.0);
    waits.sort_by(|(a, _), (b, _)| length_of_whole(b).total_cmp(&length_of_whole(a)).then_with(|| a.cmp(b)));
    let mut wholes: Vec<String> = waits.iter().map(|(name, _)| whole(name)).collect();
    wholes.dedup();
    wholes.truncate(if all { wholes.len() } else { ROWS_MAX });
    waits.retain(|(name, _)| wholes.contains(&whole(name)));
    waits
}

/// Every counter that some run has above 0, in order of name.
pub(crate) fn all_counters(groups: &[Group<'_>]) -> Table {
    let mut counters = counters(groups);
    counters.retain(|(_, sides)| sides.iter().flat_map(|side| &side.values).any(|&count| count > 0.0));
    table(COUNTED, Align::Number, groups, &counters, plain)
}

/// A name with the side of each group.
type Named = (String, Vec<Side>);

fn counters(groups: &[Group<'_>]) -> Vec<Named> {
    let value = |r: &Recording, name: &str| r.vmstat.get(name).map(|&count| count as f64);
    sides_of(groups, &names(groups, |r| r.vmstat.keys().cloned().collect()), value)
}

fn sides_of(
    groups: &[Group<'_>],
    names: &BTreeSet<String>,
    value: impl Fn(&Recording, &str) -> Option<f64>,
) -> Vec<Named> {
    let side = |name: &String| {
        let sides = groups.iter().map(|group| Side::of(group, |recording| value(recording, name)));
        (name.clone(), sides.collect())
    };
    names.iter().map(side).collect()
}

/// A column for each group, and one for the change to the first beside each other.
pub(crate) fn beside_each_other(what: &str, align: Align, groups: &[Group<'_>]) -> Table {
    let mut table = Table::new().texts([what]);
    for (index, group) in groups.iter().enumerate() {
        table = table.columns(align, [&group.label]);
        if index > 0 {
            table = table.numbers(["change"]);
        }
    }
    table.grouped(std::iter::once(1).chain(groups[1..].iter().map(|_| 2)))
}

/// A row for each of `counters`: its value in each group, and the change to the first group's.
fn table(what: &str, align: Align, groups: &[Group<'_>], rows: &[Named], write: fn(f64) -> String) -> Table {
    let mut table = beside_each_other(what, align, groups);
    let modelled: Vec<bool> = groups.iter().map(is_modelled).collect();
    for (name, sides) in rows {
        let absent = absent(sides, &modelled);
        let value = |index: usize| sides[index].mean().map_or_else(|| absent[index].to_owned(), write);
        let mut cells = vec![name.clone(), value(0)];
        for index in 1..sides.len() {
            let added = if align == Align::Number { signed } else { write };
            cells.extend([value(index), change_of(&sides[0], &sides[index], added)]);
        }
        table.push(cells);
    }
    table
}

/// The change from one side to another as a part of the first, or as `write` has it where that is nothing.
pub(crate) fn change_of(base: &Side, new: &Side, write: fn(f64) -> String) -> String {
    match (base.mean(), new.mean()) {
        (Some(0.0), Some(new)) => {
            let text = write(new);
            if new > 0.0 && !text.starts_with('+') { format!("+{text}") } else { text }
        }
        (None, _) | (_, None) => "-".to_owned(),
        (Some(base), Some(new)) => signed_percent(100.0 * (new - base) / base),
    }
}

/// The largest movers, largest first; by name where equal.
fn movers(groups: &[Group<'_>], named: Vec<Named>, floor: f64) -> Vec<Named> {
    let pairings: Vec<Pairing> = groups[1..].iter().map(|group| Pairing::of(&groups[0], group)).collect();
    let ratio = |sides: &[Side]| -> f64 {
        let ratio = |(new, &pairing): (&Side, &Pairing)| {
            let (before, after) = (sides[0].mean()? + floor, new.mean()? + floor);
            let change = Change::between(&sides[0], new, pairing, Family { tests: 1 });
            let by_chance = change.tested().is_some_and(|difference| difference.p >= 0.05);
            (!by_chance).then(|| (after / before).max(before / after))
        };
        sides[1..].iter().zip(&pairings).filter_map(ratio).fold(0.0, f64::max)
    };
    let mut movers: Vec<(f64, Named)> = named.into_iter().map(|named| (ratio(&named.1), named)).collect();
    movers.retain(|(ratio, _)| *ratio >= RATIO_MIN);
    movers.sort_by(|a, b| b.0.total_cmp(&a.0)); // stable: equal ones stay in order of name
    movers.truncate(ROWS_MAX);
    movers.into_iter().map(|(_, named)| named).collect()
}

/// What of the counters only one kind of kernel has, so that it says nothing here.
fn unmodelled(groups: &[Group<'_>], counters: &[Named]) -> Option<String> {
    let modelled: Vec<bool> = groups.iter().map(is_modelled).collect();
    let said =
        |word: &str| counters.iter().filter(|(_, sides)| absent(sides, &modelled).contains(&word)).count();
    let (model, kernel) = (said("not modelled"), said("not counted"));
    let counters = |count: usize| format!("{count} counter{}", if count == 1 { "" } else { "s" });
    (model + kernel > 0).then(|| {
        let (model, kernel) = (counters(model), counters(kernel));
        format!("not compared: {model} that the model does not keep, {kernel} that the real kernel does not")
    })
}

fn names(groups: &[Group<'_>], of: impl Fn(&Recording) -> Vec<String>) -> BTreeSet<String> {
    groups.iter().flat_map(|group| &group.recordings).flat_map(|recording| of(recording)).collect()
}
