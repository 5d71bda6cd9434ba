//! How often each value came up, for samples that take few values: stalls that last whole ticks.
//!
//! Left out: bins for values that hardly repeat; their median and extremes are in the table of
//! samples. Next: [`crate::views::run`] and [`crate::views::compare`], which show it.

use std::collections::{BTreeMap, BTreeSet};

use recording::Recording;

use crate::document::number::plain;
use crate::document::{Cell, Table, row};
use crate::judge::{Group, unit};

/// More different values than this are no histogram worth a line each.
const VALUES_MAX: usize = 24;

/// One row for each value of each sample set that takes few values, with its count for each of
/// `groups`, whose runs are pooled. Without rows when there is nothing to show.
pub(crate) fn histogram(groups: &[Group<'_>]) -> Table {
    let mut table = Table::new()
        .texts(["samples"])
        .numbers(["value"])
        .texts(["unit"])
        .numbers(groups.iter().map(|group| &group.label));
    let recordings = || groups.iter().flat_map(|group| group.recordings.iter().copied());
    let names: BTreeSet<&String> = recordings().flat_map(|recording| recording.samples.keys()).collect();
    for name in names {
        let counts: Vec<BTreeMap<u64, usize>> =
            groups.iter().map(|group| count(name, &group.recordings)).collect();
        let values: BTreeSet<u64> = counts.iter().flat_map(|counts| counts.keys().copied()).collect();
        let printed: BTreeSet<String> = values.iter().map(|&bits| plain(f64::from_bits(bits))).collect();
        // Values that print alike differ by chance, not in kind.
        let few = values.len() <= VALUES_MAX && printed.len() == values.len();
        if !few || !recordings().any(|recording| repeats(name, recording)) {
            continue;
        }
        for bits in values {
            let counts = counts.iter().map(|counts| Cell::from(counts.get(&bits).copied().unwrap_or(0)));
            table.push(row![name, f64::from_bits(bits), unit(name)].into_iter().chain(counts));
        }
    }
    table
}

/// Whether values repeat within a run. That they do from run to run says nothing: each run of a
/// simulation without randomness has the same.
fn repeats(name: &str, recording: &Recording) -> bool {
    let counts = count(name, &[recording]);
    counts.values().sum::<usize>() >= (2 * counts.len()).max(2)
}

/// Values that are not below 0, by their bits: those order as the values do.
fn count(name: &str, recordings: &[&Recording]) -> BTreeMap<u64, usize> {
    let mut counts = BTreeMap::new();
    for value in recordings.iter().filter_map(|recording| recording.samples.get(name)).flatten() {
        if *value >= 0.0 {
            *counts.entry((value + 0.0).to_bits()).or_insert(0) += 1;
        }
    }
    counts
}
