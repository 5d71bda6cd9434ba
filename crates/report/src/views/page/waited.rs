//! Who waited in the kernel, and how much of it for nothing: a bar for each wait, a column for each kernel.
//!
//! The sum over all tasks of a run, the mean over seeds. Idle threads are left out. What ran to its timeout
//! while nothing could have ended it is orange, where that is known.

use std::collections::BTreeMap;

use recording::WaitKind;

use super::words::{Told, by_kernel};
use crate::document::axis::Axis;
use crate::document::figure::{Column, Figure, Key, Mark, Panel};
use crate::document::number::duration;
use crate::judge::Group;

/// Waits that have a bar.
const BARS_MAX: usize = 8;

/// Seconds in a wait, the mean over runs.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
struct Waited {
    spent: f64,
    futile: f64,
}

type Waits = BTreeMap<String, Waited>;

/// The figure; `None` where nobody waited, or nobody knows.
pub(crate) fn figure(groups: &[Group<'_>]) -> Option<Figure> {
    let known: Vec<(&Group<'_>, Waits)> = groups
        .iter()
        .filter(|group| group.recordings.iter().all(|run| !run.waits.is_empty()))
        .map(|group| (group, waits(group)))
        .collect();
    let names = longest(&known);
    if names.is_empty() {
        return None;
    }
    let most =
        known.iter().flat_map(|(_, waits)| waits.values()).map(|waited| waited.spent).fold(0.0, f64::max);
    let (unit, factor) = if most >= 1.0 {
        ("s", 1.0)
    } else if most >= 1e-3 {
        ("ms", 1e3)
    } else {
        ("µs", 1e6)
    };
    let column = |(index, (group, waits)): (usize, &(&Group<'_>, Waits))| {
        let class = if index == 0 { "base" } else { "new" };
        let last = names.len() - 1;
        let panel = |(place, name): (usize, &String)| {
            let waited = waits.get(name).copied().unwrap_or_default();
            let x = Axis::from_zero(most * factor, 4);
            let (x, x_label) = match place == last {
                true => (x, format!("{unit}, all tasks together")),
                false => (x.silent(), String::new()),
            };
            bar(name, waited, x, x_label, factor, class)
        };
        Column { heading: group.label.clone(), panels: names.iter().enumerate().map(panel).collect() }
    };
    let seeds = known.iter().map(|(group, _)| group.recordings.len()).max()?;
    let total =
        known.iter().flat_map(|(_, waits)| waits.keys()).collect::<std::collections::BTreeSet<_>>().len();
    let left_out = total - names.len();
    Some(Figure {
        name: "waits".to_owned(),
        finding: finding(&known),
        n: format!("all waits of all tasks but idle ones; {}{}", if seeds == 1 { "one run".to_owned() } else { format!("mean of {seeds} runs") }, if left_out == 0 { String::new() } else { format!("; {left_out} shorter waits are not drawn") }),
        axes: format!("x: {unit} in a wait, added over all tasks, the same scale for all kernels"),
        keys: vec![
            Key::area("area solid base", "baseline"),
            Key::area("area solid new", "candidate"),
            Key::area("area solid pay", "of it futile: to its timeout while nothing could end it"),
        ].into_iter().filter(|key| known.len() > 1 || !key.class.contains("new")).collect(),
        columns: known.iter().enumerate().map(column).collect(),
        read: "A bar is the time that tasks spent in one wait of the kernel, named by its function, and in the middle of what. Tasks wait at the same time, so a bar may be longer than the run. Orange is time that could not have ended earlier by anything that was under way.".to_owned(),
        commands: known.iter().map(|(group, _)| (group.label.clone(), group.command.clone())).collect(),
    })
}

/// Seconds by wait, the mean over a group's runs.
fn waits(group: &Group<'_>) -> Waits {
    let mut waits = Waits::new();
    let runs = group.recordings.len().max(1) as f64;
    for wait in group.recordings.iter().flat_map(|run| &run.waits).filter(|wait| wait.kind != WaitKind::Idle)
    {
        let name = match wait.within.as_str() {
            "" => wait.wait.clone(),
            within => format!("{} in {within}", wait.wait),
        };
        let seconds = wait.spent_ns as f64 / 1e9 / runs;
        let waited = waits.entry(name).or_default();
        waited.spent += seconds;
        if wait.futile == Some(true) {
            waited.futile += seconds;
        }
    }
    waits
}

/// The names of the longest in any group, the longest first.
fn longest(known: &[(&Group<'_>, Waits)]) -> Vec<String> {
    let mut most: BTreeMap<&String, f64> = BTreeMap::new();
    for (name, waited) in known.iter().flat_map(|(_, waits)| waits) {
        let most = most.entry(name).or_default();
        *most = most.max(waited.spent);
    }
    let mut names: Vec<(&String, f64)> = most.into_iter().filter(|(_, spent)| *spent > 0.0).collect();
    names.sort_by(|a, b| b.1.total_cmp(&a.1)); // stable: by name where equal
    names.truncate(BARS_MAX);
    names.into_iter().map(|(name, _)| name.clone()).collect()
}

fn bar(name: &str, waited: Waited, x: Axis, x_label: String, factor: f64, class: &str) -> Panel {
    let text = |seconds: f64| duration(seconds * 1e9);
    let futile =
        if waited.futile > 0.0 { format!(", of it futile {}", text(waited.futile)) } else { String::new() };
    let caption = match waited.spent > 0.0 {
        true => format!("{name}: {}{futile}", text(waited.spent)),
        false => format!("{name}: none"),
    };
    let bar = |class: &str, from: f64, to: f64| Mark::Bar {
        class: format!("area solid {class}"),
        from: from * factor,
        to: to * factor,
        title: caption.clone(),
    };
    let marks = vec![bar("pay", 0.0, waited.futile), bar(class, waited.futile, waited.spent)];
    let y = Axis::exact(0.0, 1.0, 1).bare();
    Panel { caption, height: 14.0, x, y, x_label, marks, lines: Vec::new() }
}

fn finding(known: &[(&Group<'_>, Waits)]) -> String {
    let told = |(group, waits): &(&Group<'_>, Waits)| {
        let spent: f64 = waits.values().map(|waited| waited.spent).sum();
        let futile: f64 = waits.values().map(|waited| waited.futile).sum();
        let text = match futile > 0.0 {
            true => format!("{} (futile {})", duration(spent * 1e9), duration(futile * 1e9)),
            false => duration(spent * 1e9),
        };
        Told { label: group.label.clone(), value: spent, text }
    };
    by_kernel("tasks waited in all", &known.iter().map(told).collect::<Vec<_>>())
}
