//! Stall attribution: who waited, in the middle of what, for what, on whom; as a table, as folded stacks for a
//! flame graph, and as JSON.
//!
//! Idle threads are left out, and so is the CPU time of programs: what is attributed is what a task would not
//! have had to do or to wait for on a machine with memory to spare, and its waits for disks. Neighbours:
//! [`crate::views::waits`] sums waits, [`crate::views::blocked`] draws those inside of reclaim as a tree.

use std::collections::{BTreeMap, BTreeSet};

use recording::{Recording, WITHIN, Wait, WaitKind};
use serde_json::{Value, json};

use crate::document::number::duration;
use crate::document::number::seconds;
use crate::document::{Cell, Section, Table, clean, row};
use crate::views::blocked::who;
use crate::views::waits::{Sum, sums, without_number};

/// Rows that the table shows when nobody asks for all.
const ROWS_MAX: usize = 12;
/// What a task does in a part of the kernel when it does not wait there.
const SELF: &str = "itself, or for a CPU";
/// Parts of the kernel in which only its own threads are: their work is no stall.
const KERNEL_THREADS: [&str; 1] = ["kswapd"];

/// Who (with numbers left out), where (the wait last), on whom.
type Key = (String, Vec<String>, String);

/// Time in parts of the kernel outside of waits and of parts within.
#[derive(Debug, Default)]
struct Own<'a> {
    tasks: BTreeSet<&'a str>,
    count: u64,
    spent_ns: u64,
    inside_ns: u64,
}

impl Own<'_> {
    fn ns(&self) -> u64 {
        self.spent_ns.saturating_sub(self.inside_ns)
    }
}

fn path(within: &str) -> Vec<String> {
    within.split(WITHIN).filter(|part| !part.is_empty()).map(str::to_owned).collect()
}

/// By task (with numbers left out) and path.
fn own(recording: &Recording) -> BTreeMap<(String, Vec<String>), Own<'_>> {
    let mut own: BTreeMap<(String, Vec<String>), Own<'_>> = BTreeMap::new();
    for time in &recording.sections {
        let (task, mut path) = (without_number(&time.task), path(&time.within));
        let part = own.entry((task.clone(), path.clone())).or_default();
        part.tasks.insert(&time.task);
        part.count += time.count;
        part.spent_ns += time.spent_ns;
        path.pop();
        if !path.is_empty() {
            own.entry((task, path)).or_default().inside_ns += time.spent_ns;
        }
    }
    for wait in recording.waits.iter().filter(|wait| !wait.within.is_empty()) {
        let key = (without_number(&wait.task), path(&wait.within));
        own.entry(key).or_default().inside_ns += wait.spent_ns;
    }
    own
}

/// On whom a wait was, as far as it is told.
fn on_whom(wait: &Wait) -> String {
    let by_kind = match wait.kind {
        WaitKind::Idle => "nobody",
        WaitKind::Io => "the disk",
        WaitKind::Writes => "any write to a disk",
        WaitKind::Reclaim => "progress of others in reclaim",
        WaitKind::Pause => "nobody: a pause",
        WaitKind::Task => "another task",
    };
    if wait.on.is_empty() { by_kind.to_owned() } else { wait.on.clone() }
}

fn key(wait: &Wait) -> Key {
    let mut stack = path(&wait.within);
    stack.push(wait.wait.clone());
    (without_number(&wait.task), stack, on_whom(wait))
}

/// The section; empty where nobody waited, or nobody knows.
pub(super) fn section(recording: &Recording, all: bool) -> Section {
    let mut rows: Vec<(u128, [Cell; 7])> = Vec::new();
    for ((_, stack, on), sum) in sums(recording, key) {
        rows.push((sum.spent_ns, row_of(&stack, on, &sum)));
    }
    if recording.waits.is_empty() {
        rows.extend(recording.stalls.iter().map(|stall| {
            let (spent, longest) = (Cell::Time(stall.total_ns as f64), Cell::Time(stall.max_ns as f64));
            let (who, what) = (&stall.task, &stall.reason);
            (
                u128::from(stall.total_ns),
                row![who, what, "not told", stall.count, spent, longest, "not known"],
            )
        }));
    }
    for ((_, path), own) in own(recording) {
        if own.ns() > 0 && !KERNEL_THREADS.contains(&path[0].as_str()) {
            let spent = Cell::Time(own.ns() as f64);
            let cells =
                row![who(&own.tasks), path.join(WITHIN), SELF, own.count, spent, Cell::Dash, Cell::Dash];
            rows.push((u128::from(own.ns()), cells));
        }
    }
    rows.sort_by_key(|(spent, _)| std::cmp::Reverse(*spent)); // stable: by name where equal
    let mut amounts = vec!["in all", "longest"];
    // Most waits are for a disk, and of none of these it is a question.
    if rows.iter().any(|(_, cells)| cells[6].shown() != Cell::Dash.shown()) {
        amounts.push("nothing could end");
    }
    let columns = 4 + amounts.len();
    let mut table = Table::new()
        .texts(["who", "where", "waits for"])
        .numbers(["times"])
        .amounts(amounts)
        .named_by(2)
        .breaking_names();
    let shown = if all { rows.len() } else { ROWS_MAX };
    let rest: u128 = rows.iter().skip(shown).map(|(spent, _)| spent).sum();
    let left = rows.len().saturating_sub(shown);
    rows.into_iter().take(shown).for_each(|(_, cells)| table.push(cells.into_iter().take(columns)));
    let section = Section::new("who waited, where, on whom").with(table);
    if left == 0 {
        return section;
    }
    section.paragraph(format!("{left} more rows with `--all`, {} in all", duration(rest as f64)))
}

fn row_of(stack: &[String], on: String, sum: &Sum<'_>) -> [Cell; 7] {
    row![
        who(&sum.tasks),
        stack.join(WITHIN),
        on,
        sum.count.to_string(),
        Cell::Time(sum.spent_ns as f64),
        Cell::Time(sum.longest_ns as f64),
        sum.futile(),
    ]
}

/// Stacks in the format that flame graphs are drawn of: on each line the frames from the outside in, divided
/// by `;`, a blank, and nanoseconds. Tasks that differ in a number share a stack; idle threads are left out.
///
/// ```text
/// reader*;allocation pause;congestion_wait;any write to a disk 878900000
/// ```
pub(super) fn folded(recording: &Recording) -> String {
    let mut stacks: BTreeMap<Vec<String>, u128> = BTreeMap::new();
    for ((task, path, on), sum) in sums(recording, key) {
        let stack = std::iter::once(task).chain(path).chain([on]).collect();
        *stacks.entry(stack).or_default() += sum.spent_ns;
    }
    if recording.waits.is_empty() {
        for stall in &recording.stalls {
            let stack = vec![without_number(&stall.task), stall.reason.clone()];
            *stacks.entry(stack).or_default() += u128::from(stall.total_ns);
        }
    }
    for ((task, path), own) in own(recording) {
        let stack = std::iter::once(task).chain(path).collect();
        *stacks.entry(stack).or_default() += u128::from(own.ns());
    }
    let only = only_tasks(recording);
    let line = |(stack, ns): (&Vec<String>, &u128)| {
        let task = only.get(&stack[0]).copied().flatten().unwrap_or(&stack[0]);
        let frames: Vec<String> =
            std::iter::once(task).chain(stack[1..].iter().map(String::as_str)).map(frame).collect();
        format!("{} {ns}\n", frames.join(";"))
    };
    stacks.iter().filter(|&(_, &ns)| ns > 0).map(line).collect()
}

/// The task that a name without its number stands for; `None` where it stands for several.
fn only_tasks(recording: &Recording) -> BTreeMap<String, Option<&str>> {
    let tasks = recording.waits.iter().map(|wait| &wait.task);
    let tasks = tasks.chain(recording.sections.iter().map(|time| &time.task));
    let mut only: BTreeMap<String, Option<&str>> = BTreeMap::new();
    for task in tasks.chain(recording.stalls.iter().map(|stall| &stall.task)) {
        let one = only.entry(without_number(task)).or_insert(Some(task));
        *one = one.filter(|one| one == task);
    }
    only
}

/// A name as a frame: what divides frames and lines is not in it.
fn frame(name: &str) -> String {
    let name = clean(name).replace(';', ",");
    if name.trim().is_empty() { "?".to_owned() } else { name.trim().to_owned() }
}

/// One object for each row of the whole table.
pub(super) fn json(recording: &Recording) -> Value {
    let waits = sums(recording, key).into_iter().map(|((task, stack, on), sum)| {
        json!({
            "who": task,
            "tasks": sum.tasks.len(),
            "stack": stack,
            "on": on,
            "count": u64::try_from(sum.count).unwrap_or(u64::MAX),
            "seconds": sum.spent_ns as f64 / 1e9,
            "longest_seconds": seconds(sum.longest_ns),
            "futile_seconds": (sum.unknown_ns == 0).then_some(sum.futile_ns as f64 / 1e9),
        })
    });
    let own = own(recording);
    let own = own.iter().filter(|(_, own)| own.ns() > 0).map(|((task, path), own)| {
        json!({
            "who": task,
            "tasks": own.tasks.len(),
            "stack": path,
            "on": SELF,
            "count": own.count,
            "seconds": seconds(own.ns()),
            "longest_seconds": null,
            "futile_seconds": 0.0,
        })
    });
    waits.chain(own).collect()
}

/// What all tasks' imposed waits came to.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Imposed {
    pub(super) spent_ns: u128,
    pub(super) futile_ns: u128,
    pub(super) unknown_ns: u128,
}

/// Time in waits that the allocator and reclaim impose; `None` where nobody knows of any.
pub(super) fn imposed(recording: &Recording) -> Option<Imposed> {
    if recording.waits.is_empty() && !recording.metrics.contains_key("wait_seconds") {
        return None;
    }
    let mut sum = Imposed::default();
    for wait in recording.waits.iter().filter(|wait| wait.kind.is_imposed()) {
        let spent = u128::from(wait.spent_ns);
        sum.spent_ns += spent;
        sum.futile_ns += if wait.futile == Some(true) { spent } else { 0 };
        sum.unknown_ns += if wait.futile.is_none() { spent } else { 0 };
    }
    Some(sum)
}

/// `(16 reader*, congestion_wait)` and the like, the longest first: waits that nothing could end.
pub(super) fn futile(recording: &Recording) -> Vec<(String, String, Sum<'_>)> {
    let of = |wait: &Wait| (wait.futile == Some(true), without_number(&wait.task), wait.wait.clone());
    let futile = sums(recording, of).into_iter().filter(|((futile, ..), sum)| *futile && sum.spent_ns > 0);
    futile.map(|((_, _, wait), sum)| (who(&sum.tasks), wait, sum)).collect()
}

/// The phases in which time was spent in waits that nothing could end, in order.
pub(super) fn phases_of_futile(recording: &Recording) -> Vec<&str> {
    let mut phases: Vec<&str> = Vec::new();
    let futile = recording.waits.iter().filter(|wait| wait.futile == Some(true) && wait.spent_ns > 0);
    for phase in futile.map(|wait| wait.phase.as_str()).filter(|phase| !phase.is_empty()) {
        if !phases.contains(&phase) {
            phases.push(phase);
        }
    }
    phases
}

/// The longest of all waiting, `(who, wait, sum)`, and all of it together.
pub(super) fn longest(recording: &Recording) -> (Vec<(String, String, Sum<'_>)>, u128) {
    let all = sums(recording, |wait| (without_number(&wait.task), wait.wait.clone()));
    let whole = all.iter().map(|(_, sum)| sum.spent_ns).sum();
    let told = all.into_iter().map(|((_, wait), sum)| (who(&sum.tasks), wait, sum));
    (told.collect(), whole)
}
