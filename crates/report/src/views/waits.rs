//! Who waited for what, for how long, and how much of that for nothing.
//!
//! Recordings of schema 1 and 2 have stalls only, which do not tell what ended a wait: the columns that
//! would say so are left out for them. Idle threads are in recordings and in no table. Next:
//! [`crate::views::findings`], which puts runs side by side.

use std::collections::{BTreeMap, BTreeSet};

use recording::{Recording, Wait, WaitEnd, WaitKind};
use serde_json::{Value, json};

use crate::document::number::{duration, seconds};
use crate::document::{Cell, Section, Table, row};

/// Rows that the tables show when nobody asks for all.
const ROWS_MAX: usize = 12;

/// Waits that are one row.
#[derive(Debug, Clone, Default)]
pub(crate) struct Sum<'a> {
    pub(crate) tasks: BTreeSet<&'a str>,
    /// How many tasks, where their names are not kept.
    unnamed: usize,
    pub(crate) count: u128,
    pub(crate) timed_out: u128,
    pub(crate) spent_ns: u128,
    pub(crate) futile_ns: u128,
    pub(crate) unknown_ns: u128,
    pub(crate) longest_ns: u64,
    /// Whether such waits can be futile.
    pub(crate) imposed: bool,
}

impl<'a> Sum<'a> {
    fn add(&mut self, wait: &'a Wait) {
        let spent = u128::from(wait.spent_ns);
        self.tasks.insert(&wait.task);
        self.count += u128::from(wait.count);
        self.spent_ns += spent;
        self.longest_ns = self.longest_ns.max(wait.longest_ns);
        self.imposed |= wait.kind.is_imposed();
        if wait.ended == WaitEnd::Timeout {
            self.timed_out += u128::from(wait.count);
        }
        match wait.futile {
            Some(true) => self.futile_ns += spent,
            Some(false) => {}
            None => self.unknown_ns += spent,
        }
    }

    /// The part of the time that was futile.
    pub(crate) fn futile(&self) -> String {
        let percent = |part: u128| share(part, self.spent_ns);
        match (self.imposed, self.unknown_ns) {
            (false, _) => "-".to_owned(),
            (true, 0) => percent(self.futile_ns),
            (true, unknown) if unknown == self.spent_ns => "not known".to_owned(),
            (true, unknown) => {
                format!("{} to {}", percent(self.futile_ns), percent(self.futile_ns + unknown))
            }
        }
    }
}

/// A part as a percentage; what is little and not nothing is said to be so.
pub(crate) fn share(part: u128, whole: u128) -> String {
    let percent = 100.0 * part as f64 / whole.max(1) as f64;
    match percent {
        0.0 => "0 %".to_owned(),
        little if little < 0.5 => "<1 %".to_owned(),
        much if much > 99.5 && part < whole => ">99 %".to_owned(),
        percent => format!("{percent:.0} %"),
    }
}

/// Sums of the waits that somebody suffered, by `key`, the longest first.
pub(crate) fn sums<'a, K: Ord + Clone>(
    recording: &'a Recording,
    key: impl Fn(&'a Wait) -> K,
) -> Vec<(K, Sum<'a>)> {
    let mut sums: BTreeMap<K, Sum<'a>> = BTreeMap::new();
    for wait in recording.waits.iter().filter(|wait| wait.kind != WaitKind::Idle) {
        sums.entry(key(wait)).or_default().add(wait);
    }
    in_order(sums)
}

fn in_order<K: Ord>(sums: BTreeMap<K, Sum<'_>>) -> Vec<(K, Sum<'_>)> {
    let mut sums: Vec<(K, Sum<'_>)> = sums.into_iter().collect();
    sums.sort_by_key(|(_, sum)| std::cmp::Reverse(sum.spent_ns)); // stable: by name where equal
    sums
}

/// The table of a run, and a line on what it leaves out; empty where nobody waited.
pub(crate) fn who_waited(recording: &Recording, all: bool) -> Section {
    let rows: Vec<((String, String), Sum<'_>)> = if recording.waits.is_empty() {
        stalls(recording)
    } else {
        sums(recording, |wait| (without_number(&wait.task), wait.wait.clone()))
    };
    let told = !recording.waits.is_empty();
    let mut table =
        Table::new().texts(["who", "waited for"]).numbers(["times"]).amounts(["in all", "mean", "longest"]);
    if told {
        table = table.amounts(["timed out", "futile"]);
    }
    let shown = if all { rows.len() } else { ROWS_MAX };
    for ((task, reason), sum) in rows.iter().take(shown) {
        let tasks = sum.tasks.len().max(sum.unnamed);
        let only = || sum.tasks.first().map_or_else(|| task.clone(), |&name| name.to_owned());
        let who = if tasks > 1 { format!("{task} ({tasks} tasks)") } else { only() };
        let mean = sum.spent_ns as f64 / sum.count.max(1) as f64;
        let fixed = row![
            who,
            reason,
            sum.count.to_string(),
            Cell::Time(sum.spent_ns as f64),
            Cell::Time(mean),
            Cell::Time(sum.longest_ns as f64),
        ];
        let ends = told.then(|| row![share(sum.timed_out, sum.count), sum.futile()]);
        table.push(fixed.into_iter().chain(ends.into_iter().flatten()));
    }
    let rest = rows.iter().skip(shown).map(|(_, sum)| sum.spent_ns).sum::<u128>();
    let left = rows.len().saturating_sub(shown);
    let more = (left > 0).then(|| format!("{left} more rows, {} in all", duration(rest as f64)));
    Section::untitled().with(table).lines_of(more)
}

/// What older recordings have.
fn stalls(recording: &Recording) -> Vec<((String, String), Sum<'_>)> {
    let mut sums: BTreeMap<(String, String), Sum<'_>> = BTreeMap::new();
    for stall in &recording.stalls {
        let sum = sums.entry((without_number(&stall.task), stall.reason.clone())).or_default();
        sum.unnamed += 1;
        sum.count += u128::from(stall.count);
        sum.spent_ns += u128::from(stall.total_ns);
        sum.longest_ns = sum.longest_ns.max(stall.max_ns);
    }
    in_order(sums)
}

/// In which phase how long was waited for what, all tasks together; empty without phases.
pub(crate) fn by_phase(recording: &Recording) -> Table {
    let phases = recording.phases_to_the_end();
    let mut table = Table::new().texts(["phase", "waited for"]).numbers(["times"]).amounts([
        "in all",
        "timed out",
        "futile",
    ]);
    let sums = sums(recording, |wait| (wait.phase.as_str(), wait.wait.as_str()));
    for phase in &phases {
        for ((_, wait), sum) in sums.iter().filter(|((name, _), _)| *name == phase.name) {
            table.push(row![
                &phase.name,
                *wait,
                sum.count.to_string(),
                Cell::Time(sum.spent_ns as f64),
                share(sum.timed_out, sum.count),
                sum.futile(),
            ]);
        }
    }
    table
}

/// `writer-12` and `writer/3` are `writer-*` and `writer/*`.
pub(crate) fn without_number(task: &str) -> String {
    let stem = task.trim_end_matches(|c: char| c.is_ascii_digit());
    if stem.is_empty() || stem.len() == task.len() { task.to_owned() } else { format!("{stem}*") }
}

/// What heads the rows of [`waited`] that are a part of the row above.
const OF_IT_FUTILE: &str = ", futile";

/// Nanoseconds in each wait over all tasks, and under a name of their own those that were futile, where
/// that is known of all.
pub(crate) fn waited(recording: &Recording) -> BTreeMap<String, f64> {
    let mut waited = BTreeMap::new();
    if recording.waits.is_empty() {
        for stall in &recording.stalls {
            *waited.entry(stall.reason.clone()).or_insert(0.0) += stall.total_ns as f64;
        }
    }
    for (wait, sum) in sums(recording, |wait| wait.wait.as_str()) {
        waited.insert(wait.to_owned(), sum.spent_ns as f64);
        if sum.imposed && sum.unknown_ns == 0 {
            waited.insert(format!("{wait}{OF_IT_FUTILE}"), sum.futile_ns as f64);
        }
    }
    waited
}

/// The row of which `name` is a part, if it is one.
pub(crate) fn whole_of(name: &str) -> Option<&str> {
    name.strip_suffix(OF_IT_FUTILE)
}

/// Whether a wait that is not in the recording is known to have taken no time. Real kernels do not tell
/// of all kinds.
pub(crate) fn is_told(recording: &Recording, name: &str, imposed: &BTreeSet<String>) -> bool {
    let is_imposed = imposed.contains(whole_of(name).unwrap_or(name));
    match recording.is_simulated() {
        true => !(recording.waits.is_empty() && recording.stalls.is_empty()),
        false => is_imposed && recording.metrics.contains_key("wait_seconds"),
    }
}

/// Names of the waits in `recording` that can be futile.
pub(crate) fn imposed(recording: &Recording) -> impl Iterator<Item = String> + '_ {
    recording.waits.iter().filter(|wait| wait.kind.is_imposed()).map(|wait| wait.wait.clone())
}

/// For [`crate::to_json`].
pub(crate) fn waits_json(recording: &Recording) -> Vec<Value> {
    let wait = |wait: &Wait| {
        json!({
            "phase": wait.phase,
            "task": wait.task,
            "wait": wait.wait,
            "kind": wait.kind.to_string(),
            "ended": wait.ended.to_string(),
            "futile": wait.futile,
            "count": wait.count,
            "requested_seconds": wait.requested_ns.map(seconds),
            "spent_seconds": seconds(wait.spent_ns),
            "longest_seconds": seconds(wait.longest_ns),
            "lengths": wait.lengths,
            "within": wait.within,
            "on": wait.on,
        })
    };
    recording.waits.iter().map(wait).collect()
}

/// For [`crate::to_csv`]: the wait, the task, what of it, and the number.
pub(crate) fn waits_csv(recording: &Recording) -> Vec<(&str, &str, &'static str, f64)> {
    let mut rows = Vec::new();
    let mut sums = sums(recording, |wait| (wait.wait.as_str(), wait.task.as_str()));
    sums.sort_by_key(|(key, _)| *key);
    for ((wait, task), sum) in sums {
        let seconds = |ns: u128| ns as f64 / 1e9;
        rows.push((wait, task, "times", sum.count as f64));
        rows.push((wait, task, "seconds", seconds(sum.spent_ns)));
        if sum.imposed && sum.unknown_ns == 0 {
            rows.push((wait, task, "futile_seconds", seconds(sum.futile_ns)));
        }
    }
    rows
}
