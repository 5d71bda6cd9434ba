//! Groups of runs side by side: the tables of a comparison, for a terminal and in Markdown.
//!
//! However many groups there are, there is one table with a column for each, and the change to the
//! first beside it. Next: [`crate::compared`] has the rows, [`crate::judge`] the rules by which two
//! sides are judged, [`crate::findings`] what moved most in the counters.

use crate::blocked::{blocked_table, stall_lines};
use crate::compared::{Compared, Row, Rows, by_seed, recordings_of};
use crate::findings::{all_counters, findings, waited_table};
use crate::histogram::histogram;
use crate::judge::{Change, Side, TestsTold};
use crate::latency::{latencies, wait_lengths};
use crate::limits::{limits_markdown, limits_text};
use crate::notes::{notes_markdown, notes_text, separated};
use crate::oom::{group_ended, in_markdown, oom_lines};
use crate::pressure::pressure_of_groups;
use crate::printed::{printed, printed_markdown};
use crate::table::{Align, Table, clean};
use crate::view::View;
use crate::wrap::{command, paragraph};
use crate::{Group, ReportError, common_workload_of_groups};

/// The comparison for a terminal: what came out, a table in which the first group is the baseline,
/// what moved most in the counters, and the commands at the end.
///
/// # Errors
/// Fewer than two groups, a group without recordings, different workloads.
pub fn compare_text(groups: &[Group<'_>], view: impl Into<View>) -> Result<String, ReportError> {
    let view = &view.into();
    let workload = common_workload_of_groups(groups)?;
    let groups = &by_seed(groups)[..];
    if let [only] = groups {
        return Err(ReportError::OneGroup { label: only.label.clone() });
    }
    let width = view.width;
    let compared = Compared::of(groups, view);
    let mut text =
        result(&compared.first, groups).map_or_else(String::new, |line| paragraph(&line, width, 2));
    text += &paragraph(&title(workload, groups), width, 2);
    for line in oom_lines(groups).lines() {
        text += &paragraph(line, width, 2);
    }
    for warning in &view.warnings {
        text += &paragraph(&format!("warning: {}", clean(warning)), width, 2);
    }
    text += &format!("\n{}", table(&compared.first, groups).to_text(width));
    for line in footer(&compared.first, groups) {
        text += &paragraph(&line, width, 2);
    }
    text += &separated(limits_text(&view.limits, width));
    text += &separated(printed(groups, width));
    let long = latencies(groups, view);
    if !long.is_empty() {
        text += &format!("\n{}", long.to_text(width));
    }
    text += &separated(findings(groups, view.all, width));
    text += &separated(pressure_of_groups(groups, width));
    text += &separated(blocked(groups, view.all, width));
    if view.all {
        text += &in_full(&compared.rest, groups, width);
    } else {
        text += &more(&compared.rest, groups, width);
    }
    let notes = notes_text(&recordings_of(groups), width);
    text += &separated(notes);
    text += "\nmade by\n";
    for group in groups {
        text += &made_by(group, width);
    }
    Ok(text)
}

/// The comparison in Markdown; with one group, its values only.
///
/// # Errors
/// No group, a group without recordings, different workloads.
pub fn to_markdown(groups: &[Group<'_>], view: impl Into<View>) -> Result<String, ReportError> {
    let view = &view.into();
    let workload = common_workload_of_groups(groups)?;
    let groups = &by_seed(groups)[..];
    let compared = Compared::of(groups, view);
    let mut text = format!("## {}\n\n", title(workload, groups));
    text += &result(&compared.first, groups).map_or_else(String::new, |line| format!("{line}\n\n"));
    text += &in_markdown(&oom_lines(groups));
    for warning in &view.warnings {
        text += &format!("**warning**: {}\n\n", clean(warning));
    }
    text += &table(&compared.first, groups).to_markdown();
    let lines =
        |rows: &Rows| footer(rows, groups).into_iter().map(|line| format!("\n{line}\n")).collect::<String>();
    text += &lines(&compared.first);
    text += &separated(limits_markdown(&view.limits));
    text += &separated(printed_markdown(groups));
    let long = latencies(groups, view);
    if !long.is_empty() {
        text += &format!("\n{}", long.to_markdown());
    }
    let waited = waited_table(groups, view.all);
    if !waited.is_empty() {
        text += &format!("\n{}", waited.to_markdown());
    }
    let blocked = blocked_table(groups, view.all, true);
    if !blocked.is_empty() {
        text += &format!("\n{}", blocked.to_markdown());
    }
    if view.all {
        let rest = &compared.rest;
        if !rest.rows.is_empty() {
            text += &format!("\n{}{}", table(rest, groups).to_markdown(), lines(rest));
        }
        let histogram = histogram(groups);
        if !histogram.is_empty() {
            text += &format!("\n{}", histogram.to_markdown());
        }
    }
    text += &separated(notes_markdown(&recordings_of(groups)));
    text += "\n```sh\n";
    for group in groups {
        text += &format!("{}  # {}\n", clean(&group.command), clean(&group.label));
    }
    Ok(text + "```\n")
}

/// Who blocks on whom; empty where nobody knows.
fn blocked(groups: &[Group<'_>], all: bool, width: usize) -> String {
    let table = blocked_table(groups, all, false);
    if table.is_empty() {
        return String::new();
    }
    let lines: String = stall_lines(groups).lines().map(|line| paragraph(line, width, 2)).collect();
    table.to_text(width) + &lines
}

fn title(workload: &str, groups: &[Group<'_>]) -> String {
    let labels = groups.iter().map(|group| group.label.as_str()).collect::<Vec<_>>();
    format!("{}: {}", clean(workload), clean(&labels.join(" against ")))
}

/// What came out of the most telling measure, in words; `None` where that takes a table.
fn result(rows: &Rows, groups: &[Group<'_>]) -> Option<String> {
    const GROUPS_MAX: usize = 4;
    let row = rows.rows.first().filter(|row| row.measure.is_headline())?;
    let simple = (2..=GROUPS_MAX).contains(&groups.len());
    if !simple || row.sides.iter().any(|side| side.values.is_empty()) {
        return None;
    }
    let values: Vec<String> = (0..groups.len()).map(|index| row.value(index)).collect();
    let whole = whole(row, groups).map_or_else(String::new, |whole| format!(" of {whole}"));
    let unit = if row.scale.unit.is_empty() { String::new() } else { format!(" {}", row.scale.unit) };
    let name = &row.measure.name;
    Some(match &row.changes[..] {
        [(Change::OneRun(_), _)] => format!("{name}: {} -> {}{whole}{unit}", values[0], values[1]),
        [(_, verdict)] => format!("{name}: {} -> {}{whole}{unit}, {verdict}", values[0], values[1]),
        changes => {
            let told =
                values[1..].iter().zip(changes).map(|(value, (_, verdict))| format!("{value} ({verdict})"));
            format!("{name}{whole}{unit}: {} -> {}", values[0], told.collect::<Vec<_>>().join(", "))
        }
    })
}

/// What the row's measure is a part of, if that is the same for all.
fn whole(row: &Row, groups: &[Group<'_>]) -> Option<String> {
    let of = row.measure.of?;
    let values = groups.iter().map(|group| {
        let side = Side::of(group, |recording| recording.metrics.get(of).copied());
        if side.missing == 0 { side.text(row.scale.factor) } else { None }
    });
    let values: Vec<String> = values.collect::<Option<_>>()?;
    values.iter().all(|value| *value == values[0]).then(|| values[0].clone())
}

/// One row for each measure; for each group its value, and for all but the first the change and a
/// verdict, which stay together.
fn table(rows: &Rows, groups: &[Group<'_>]) -> Table {
    let change = if rows.tests().next().is_some() { "change [95 %]" } else { "change" };
    let mut headings = vec![("metric", Align::Left), ("unit", Align::Left)];
    let mut together = vec![2];
    for (index, group) in groups.iter().enumerate() {
        headings.push((&group.label, Align::Number));
        if index > 0 {
            headings.extend([(change, Align::Number), ("verdict", Align::Left)]);
            together.push(3);
        }
    }
    let headings = headings.into_iter().map(|(text, align)| (text.to_owned(), align));
    let mut table = Table::new(headings).grouped(together);
    if !oom_lines(groups).is_empty() {
        let mut cells = vec!["how it ended".to_owned(), String::new(), group_ended(&groups[0])];
        for group in &groups[1..] {
            cells.extend([group_ended(group), String::new(), String::new()]);
        }
        table.push(cells);
    }
    for row in &rows.rows {
        let mut cells =
            vec![row.measure.heading() + &partly_missing(row), row.scale.unit.to_owned(), row.value(0)];
        for (index, (change, verdict)) in row.changes.iter().enumerate() {
            let told = change.text(row.base(), row.scale.factor, verdict);
            cells.extend([row.value(index + 1), told, (*verdict).to_owned()]);
        }
        table.push(cells);
    }
    table
}

/// How to read the table: what the spread is, what was tested and what was not.
pub(crate) fn footer(rows: &Rows, groups: &[Group<'_>]) -> Vec<String> {
    let changes = || rows.rows.iter().flat_map(|row| row.changes.iter().map(|(change, _)| change));
    let any_exact = changes().any(|change| matches!(change, Change::Exact(_)));
    let runs = groups.iter().map(|group| group.recordings.len()).max().unwrap_or(0);
    let fewest = groups.iter().map(|group| group.recordings.len()).min().unwrap_or(0);
    let many = if fewest == runs { runs.to_string() } else { format!("{fewest} to {runs}") };
    if rows.rows.is_empty() {
        return vec!["no metrics and no samples in these recordings".into()];
    }
    if groups.len() < 2 || changes().all(|change| matches!(change, Change::Missing)) {
        return Vec::new();
    }
    let Some(tests) = TestsTold::of(rows.tests(), rows.family) else {
        return vec![match (any_exact, runs) {
            (true, 1) => {
                "one seed: exact for it, says nothing of others; `--seeds 10` shows the spread".into()
            }
            (true, _) => {
                format!("differences are the same in all {many} seeds, so judged by size, not by a test")
            }
            (false, _) => {
                "one run a side: how much repeats vary is not known; make more runs for a verdict".into()
            }
        }];
    };
    let seeds = if tests.paired { "paired seeds" } else { "runs" };
    let what = if groups.len() == 2 { "rows" } else { "tests" };
    let together = match rows.family.tests {
        1 => "interval and verdict hold at 95 %".to_owned(),
        tests => format!("intervals and verdicts hold at 95 % over all {tests} {what} together (Bonferroni)"),
    };
    let mut lines = vec![format!("{many} {seeds}: mean ± standard deviation; {}; {together}", tests.methods)];
    lines.extend(tests.assumed);
    if any_exact {
        lines.push(format!(
            "without an interval: the difference is the same in all {many} seeds, so judged by size"
        ));
    }
    let one_sided = rows.rows.iter().any(|row| {
        let tested =
            row.changes.iter().zip(&row.sides[1..]).filter(|((change, _), _)| change.tested().is_some());
        tested.map(|(_, new)| new).any(|new| new.is_constant() || row.sides[0].is_constant())
    });
    if one_sided {
        lines.push(format!(
            "an interval beside a value without ±: that side is the same in all {many} seeds, and the spread of the other is tested"
        ));
    }
    lines
}

/// The rest, for who asks for all of it.
fn in_full(rest: &Rows, groups: &[Group<'_>], width: usize) -> String {
    let mut text = String::new();
    if !rest.rows.is_empty() {
        text += &format!("\nother metrics\n{}", table(rest, groups).to_text(width));
        for line in footer(rest, groups) {
            text += &paragraph(&line, width, 2);
        }
    }
    let waited = wait_lengths(groups);
    if !waited.is_empty() {
        text += &format!("\n{}", waited.to_text(width));
    }
    let histogram = histogram(groups);
    if !histogram.is_empty() {
        text += &format!("\nhow often\n{}", histogram.to_text(width));
    }
    let counters = all_counters(groups);
    if !counters.is_empty() {
        text += &format!("\nall counters that are not zero\n{}", counters.to_text(width));
    }
    text
}

/// What is not shown, in one line; empty when there is nothing.
fn more(rest: &Rows, groups: &[Group<'_>], width: usize) -> String {
    let counters = all_counters(groups).len();
    let rest = [
        (rest.rows.len(), format!("{} more metrics", rest.rows.len())),
        (counters, format!("all {counters} counters")),
    ];
    let told: Vec<String> = rest.into_iter().filter(|(count, _)| *count > 0).map(|(_, text)| text).collect();
    if told.is_empty() {
        return String::new();
    }
    paragraph(&format!("{} with `--all`", told.join(" and ")), width, 2)
}

fn made_by(group: &Group<'_>, width: usize) -> String {
    let (label, made) = (clean(&group.label), clean(&group.command));
    let line = format!("  {label}: {made}\n");
    if line.chars().count() <= width + 1 {
        return line;
    }
    // A comment does not go on behind a backslash.
    let made = match made.starts_with('#') {
        true => paragraph(&made, width, 2),
        false => command(&made, width, 4),
    };
    paragraph(&format!("  {label}:"), width, 4) + &made
}

/// In how many runs of each side the measure is, where some have it and some do not.
fn partly_missing(row: &Row) -> String {
    let part = |side: &Side| side.missing > 0 && !side.values.is_empty();
    if !row.sides.iter().any(part) {
        return String::new();
    }
    let runs = |side: &Side| side.values.len() + side.missing;
    let (with, all) = (row.sides.iter().map(|side| side.values.len().to_string()), runs(&row.sides[0]));
    let with = with.collect::<Vec<_>>().join(", ");
    if row.sides.iter().all(|side| runs(side) == all) {
        return format!(" (in {with} of {all} runs)");
    }
    let each = row.sides.iter().map(|side| format!("{} of {}", side.values.len(), runs(side)));
    format!(" (in {} runs)", each.collect::<Vec<_>>().join(", "))
}
