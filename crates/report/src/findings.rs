//! "What the runs say": which counters and waits moved most between two groups.
//!
//! A counter is listed when it moved by a tenth or more, beyond a floor that keeps a change from
//! 1 to 3 out, and, with several runs a side, beyond chance (5 %, each by itself: this list
//! suggests where to look, it proves nothing).

use std::collections::{BTreeMap, BTreeSet};

use recording::Recording;

use crate::Group;
use crate::change::{Change, Pairing, Side};
use crate::number::duration;
use crate::table::{Align, Table};

/// Events that are added to both sides before their ratio is taken.
const COUNTER_FLOOR: f64 = 100.0;
/// The same for waiting time: 10 ms.
const WAIT_FLOOR_NS: f64 = 1e7;
/// A ratio below this is no news.
const RATIO_MIN: f64 = 1.1;
/// Rows of each list.
const ROWS_MAX: usize = 8;

/// The section as text, empty when nothing moved.
pub(crate) fn findings(base: &Group<'_>, new: &Group<'_>, width: usize) -> String {
    let counters =
        movers(base, new, &names(base, new, |r| r.vmstat.keys().cloned().collect()), COUNTER_FLOOR, counter);
    let waits =
        movers(base, new, &names(base, new, |r| waits(r).into_keys().collect()), WAIT_FLOOR_NS, |r, name| {
            // A run that recorded waits at all, and none for this reason, waited 0 ns for it.
            if r.stalls.is_empty() { None } else { Some(waits(r).get(name).copied().unwrap_or(0.0)) }
        });
    if counters.is_empty() && waits.is_empty() {
        return "what the runs say: no counter moved by a tenth or more\n".into();
    }
    let headings = |what: &str, align: Align| {
        [(what, Align::Left), (&base.label, align), (&new.label, align), ("change", Align::Number)]
            .map(|(text, align)| (text.to_owned(), align))
    };
    let mut text = String::from("what the runs say\n");
    let mut table = Table::new(headings("counter (/proc/vmstat)", Align::Number));
    for mover in &counters {
        table.push([mover.name.clone(), mover.base.text(), mover.new.text(), mover.change_text()]);
    }
    if !table.is_empty() {
        text += &table.to_text(width);
    }
    let mut table = Table::new(headings("time waited for", Align::Right));
    for mover in &waits {
        let time = |side: &Side| side.mean().map_or("missing".into(), duration);
        table.push([mover.name.clone(), time(&mover.base), time(&mover.new), mover.change_text()]);
    }
    if !table.is_empty() {
        text += &table.to_text(width);
    }
    text
}

struct Mover {
    name: String,
    base: Side,
    new: Side,
    change: Change,
    ratio: f64,
}

impl Mover {
    fn change_text(&self) -> String {
        self.change.text(self.base.mean().unwrap_or(0.0))
    }
}

/// The largest movers, largest first; by name where equal.
fn movers(
    base: &Group<'_>,
    new: &Group<'_>,
    names: &BTreeSet<String>,
    floor: f64,
    value: impl Fn(&Recording, &str) -> Option<f64>,
) -> Vec<Mover> {
    let pairing = Pairing::of(base, new);
    let mut movers: Vec<Mover> = names
        .iter()
        .filter_map(|name| {
            let [base, new] = [base, new].map(|group| Side::of(group, |recording| value(recording, name)));
            let (before, after) = (base.mean()? + floor, new.mean()? + floor);
            let ratio = (after / before).max(before / after);
            let change = Change::between(&base, &new, pairing);
            let by_chance = matches!(change, Change::Tested(difference) if difference.p >= 0.05);
            let mover = Mover { name: name.clone(), base, new, change, ratio };
            (ratio >= RATIO_MIN && !by_chance).then_some(mover)
        })
        .collect();
    movers.sort_by(|a, b| b.ratio.total_cmp(&a.ratio)); // stable: equal ones stay in order of name
    movers.truncate(ROWS_MAX);
    movers
}

fn names(base: &Group<'_>, new: &Group<'_>, of: impl Fn(&Recording) -> Vec<String>) -> BTreeSet<String> {
    base.recordings.iter().chain(&new.recordings).flat_map(|recording| of(recording)).collect()
}

fn counter(recording: &Recording, name: &str) -> Option<f64> {
    recording.vmstat.get(name).map(|&count| count as f64)
}

/// Nanoseconds waited for each reason, over all tasks.
fn waits(recording: &Recording) -> BTreeMap<String, f64> {
    let mut waits = BTreeMap::new();
    for stall in &recording.stalls {
        *waits.entry(stall.reason.clone()).or_insert(0.0) += stall.total_ns as f64;
    }
    waits
}
