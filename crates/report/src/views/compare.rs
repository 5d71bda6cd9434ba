//! Groups of runs side by side: the tables of a comparison.
//!
//! However many groups there are, there is one table with a column for each, and the change to the
//! first beside it. Next: [`crate::judge::compared`] has the rows, [`crate::judge::change`] the rules by which two
//! sides are judged, [`crate::views::findings`] what moved most in the counters.

use recording::Recording;
use serde_json::{Value, json};

use crate::document::{Block, Document, Records, Section, Table, row};
use crate::judge::known::percent as known_percent;
use crate::judge::{
    Change, Compared, Group, LEVEL, ReportError, Row, Rows, Side, TestsTold, View, by_seed,
    common_workload_of_groups, method_name, recordings_of,
};
use crate::views::blocked::blocked;
use crate::views::findings::{all_counters, findings};
use crate::views::histogram::histogram;
use crate::views::latency::{latencies, wait_lengths};
use crate::views::limits::{limits, limits_csv, limits_value};
use crate::views::notes::notes;
use crate::views::oom::{group_ended, oom_lines};
use crate::views::pressure::pressure_of_groups;
use crate::views::printed::printed;
use crate::views::recordings::{number, rows_about, run, runs_as_rows};

/// Groups side by side, the first of which is the baseline: what came out, a table, what moved most in the counters,
/// and the commands at the end.
///
/// JSON is that of recordings (see [`crate::views::run`]) with the keys `warnings`, a list of texts, and `comparison`:
/// `{"baseline", "level", "rows": [{"metric", "unit", "direction", "headline", "label", "values", "change",
/// "change_percent", "interval", "p", "tests", "verdict"}]}`. A row is one metric of one column, called `label`,
/// against the baseline; `values` has `{"mean", "sd", "n"}` for both by label. `interval` and `p` hold over `tests`
/// tests together at `level`; they are `null` where nothing was tested. `direction` tells what is better. Where it is
/// known what real kernels differ by, a row has `known_p90_error` and `within_known_error`, too. With limits
/// there is a key `limits`: `[{"limit", "label", "baseline", "value", "outcome", "fails", "why"}]`.
///
/// CSV is that of recordings, then rows of `kind` `comparison`: for each metric of each column against the first one of
/// `index` `change`, `change_percent`, `low` and `high` (the interval), `p` and `verdict`, a word; then those of `kind`
/// `limit`, whose value is the outcome. What was not tested is empty.
///
/// # Errors
/// Fewer than two groups, a group without recordings, different workloads.
pub fn compare<'a>(groups: &'a [Group<'a>], view: &View) -> Result<Document<'a>, ReportError> {
    let workload = common_workload_of_groups(groups)?;
    if let [only] = groups {
        return Err(ReportError::OneGroup { label: only.label.clone() });
    }
    let (json, csv) = (view.clone(), view.clone());
    Ok(Document::new(workload)
        .sections(sections(workload, &by_seed(groups), view))
        .json(move || value(groups, &json))
        .csv(move || records(&recordings_of(groups), groups, &csv)))
}

fn sections(workload: &str, groups: &[Group<'_>], view: &View) -> Vec<Section> {
    let Compared { first, rest } = Compared::of(groups, view);
    let only = |table: Table| Section::untitled().with(table);
    let mut sections = vec![
        Section::first(title(workload, groups), result(&first, groups))
            .with_all(oom_lines(groups).into_iter().map(Block::Alarm))
            .with_all(view.warnings.iter().cloned().map(Block::Warning)),
        only(table(&first, groups)).lines_of(footer(&first, groups)),
        limits(&view.limits),
        printed(groups),
        only(latencies(groups, view)),
        findings(groups, view.all),
        Section::untitled().lines_of(pressure_of_groups(groups)),
        blocked(groups, view.all),
    ];
    sections.retain(|section| !section.is_empty());
    if view.all {
        sections.extend([
            Section::new("other metrics").with(table(&rest, groups)).lines_of(rest_footer(&rest, groups)),
            only(wait_lengths(groups)),
            Section::new("how often").with(histogram(groups)),
            Section::new("all counters that are not zero").with(all_counters(groups)),
        ]);
    } else if let Some(last) = sections.pop() {
        sections.push(last.lines_of(more(&rest, groups)));
    }
    let made = |group: &Group<'_>| (group.label.clone(), group.command.clone());
    let commands = groups.iter().map(made).collect();
    sections.extend([
        Section::untitled().lines_of(known(&first, groups, view)),
        notes(&recordings_of(groups)),
        Section::untitled().with(Block::Commands { heading: "Make it again", commands }),
    ]);
    sections
}

fn title(workload: &str, groups: &[Group<'_>]) -> String {
    let labels = groups.iter().map(|group| group.label.as_str()).collect::<Vec<_>>();
    format!("{workload}: {}", labels.join(" against "))
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
            let told = values[1..].iter().zip(changes).map(|(value, (change, verdict))| match change {
                Change::OneRun(_) => value.clone(),
                _ => format!("{value} ({verdict})"),
            });
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
    let mut table = Table::new().texts(["metric", "unit"]);
    let mut together = vec![2];
    for (index, group) in groups.iter().enumerate() {
        table = table.numbers([&group.label]);
        if index > 0 {
            table = table.numbers([change]).texts(["verdict"]);
            together.push(3);
        }
    }
    let mut table = table.grouped(together);
    if !oom_lines(groups).is_empty() {
        let mut cells = row!["how it ended", "", group_ended(&groups[0])].to_vec();
        for group in &groups[1..] {
            cells.extend(row![group_ended(group), "", ""]);
        }
        table.push(cells);
    }
    for row in &rows.rows {
        let heading = row.measure.heading() + &partly_missing(row);
        let mut cells = row![heading, row.scale.unit, row.value(0)].to_vec();
        for (index, (change, verdict)) in row.changes.iter().enumerate() {
            let told = change.text(row.base(), row.scale.factor, verdict);
            cells.extend(row![row.value(index + 1), told, *verdict]);
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
            (false, runs) => {
                let few = if runs == 1 { "one run a side" } else { "a side has one run" };
                format!("{few}: how much repeats vary is not known; make more runs for a verdict")
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

/// What real kernels are known to differ by, and which differences are smaller than that.
fn known(rows: &Rows, groups: &[Group<'_>], view: &View) -> Vec<String> {
    let mut lines = view.known_lines(recordings_of(groups));
    let is_smaller = |row: &&Row| {
        let differs =
            |index: usize| row.changes[index - 1].0.difference().is_some_and(|change| change != 0.0);
        let told = (1..groups.len()).filter(|&index| differs(index));
        let mut smaller = told.map(|index| within_known(row, index, groups, view)).peekable();
        smaller.peek().is_some() && smaller.all(|is| is == Some(true))
    };
    let told = |row: &Row| {
        let errors = (1..groups.len()).filter_map(|index| known_error(row, index, groups, view));
        let error = errors.reduce(f64::max).unwrap_or(0.0);
        format!("{} (9 in 10 within {})", row.measure.name, known_percent(error.max(0.001)))
    };
    let smaller: Vec<String> = rows.rows.iter().filter(is_smaller).map(told).collect();
    if !smaller.is_empty() {
        lines.push(format!("smaller than what the model is off by in such worlds: {}", smaller.join(", ")));
    }
    lines
}

/// By what part nine in ten worlds are off at most in this measure: of the two sides, the one that is farther off.
fn known_error(row: &Row, index: usize, groups: &[Group<'_>], view: &View) -> Option<f64> {
    let of = |group: &Group<'_>| {
        let known = view.known_of(group.recordings.first()?)?;
        Some(known.measures.get(&row.measure.name)?.p90)
    };
    let sides = [&groups[0], &groups[index]].into_iter().filter_map(of);
    sides.filter(|error| error.is_finite()).reduce(f64::max)
}

/// Whether the difference is smaller than that.
fn within_known(row: &Row, index: usize, groups: &[Group<'_>], view: &View) -> Option<bool> {
    let error = known_error(row, index, groups, view)?;
    Some(percent(row, index)?.abs() < 100.0 * error)
}

/// How to read the table of the rest, if there is one.
fn rest_footer(rest: &Rows, groups: &[Group<'_>]) -> Vec<String> {
    if rest.rows.is_empty() { Vec::new() } else { footer(rest, groups) }
}

/// What is not shown, in one line; nothing when there is none.
fn more(rest: &Rows, groups: &[Group<'_>]) -> Option<String> {
    let counters = all_counters(groups).len();
    let rest = [
        (rest.rows.len(), format!("{} more metrics", rest.rows.len())),
        (counters, format!("all {counters} counters")),
    ];
    let told: Vec<String> = rest.into_iter().filter(|(count, _)| *count > 0).map(|(_, text)| text).collect();
    (!told.is_empty()).then(|| format!("{} with `--all`", told.join(" and ")))
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

/// The object of JSON.
pub(crate) fn value(groups: &[Group<'_>], view: &View) -> Value {
    let runs: Vec<Value> = recordings_of(groups).into_iter().map(|recording| run(recording, view)).collect();
    let groups = &by_seed(groups)[..];
    let Compared { first, rest } = Compared::of(groups, view);
    let rows: Vec<Value> = [&first, &rest].into_iter().flat_map(|rows| judged(rows, groups, view)).collect();
    let mut object = json!({
        "schema": 1,
        "workload": groups[0].recordings[0].workload,
        "runs": runs,
        "warnings": view.warnings,
        "comparison": { "baseline": groups[0].label, "level": LEVEL, "rows": rows },
    });
    if !view.limits.is_empty() {
        object["limits"] = limits_value(&view.limits);
    }
    object
}

/// One object for each metric of each group but the first.
fn judged(rows: &Rows, groups: &[Group<'_>], view: &View) -> Vec<Value> {
    let columns = |row| (1..groups.len()).map(move |index| (row, index));
    let cells = rows.rows.iter().flat_map(columns);
    cells.map(|(row, index)| judged_cell(row, index, rows, groups, view)).collect()
}

fn judged_cell(row: &Row, index: usize, rows: &Rows, groups: &[Group<'_>], view: &View) -> Value {
    let (change, verdict) = row.changes[index - 1];
    let value = |index: usize| {
        let side = &row.sides[index];
        json!({ "mean": side.mean(), "sd": side.spread(), "n": side.values.len() })
    };
    let (base, new) = (&groups[0].label, &groups[index].label);
    let mut values = serde_json::Map::new();
    values.insert(base.clone(), value(0));
    values.insert(new.clone(), value(index));
    let tested = change.tested();
    let mut object = json!({
        "metric": row.measure.name,
        "unit": row.measure.unit,
        "direction": row.measure.direction.word(),
        "headline": row.measure.is_headline(),
        "label": new,
        "values": values,
        "change": change.difference(),
        "change_percent": percent(row, index),
        "interval": tested.map(|d| [d.low, d.high]),
        "p": tested.map(|d| rows.family.adjusted_p(d.p)),
        "tests": tested.map(|_| rows.family.tests),
        "test": tested.map(|d| method_name(d.test)),
        "verdict": verdict,
    });
    if let Some(error) = known_error(row, index, groups, view) {
        object["known_p90_error"] = json!(error);
        object["within_known_error"] = json!(within_known(row, index, groups, view));
    }
    object
}

fn percent(row: &Row, index: usize) -> Option<f64> {
    let change = row.changes[index - 1].0.difference()?;
    (row.base() != 0.0).then(|| 100.0 * change / row.base().abs())
}

/// The records of CSV, with those of `runs`, which may be more than those of `groups`.
pub(crate) fn records(runs: &[&Recording], groups: &[Group<'_>], view: &View) -> Records {
    let workload = groups[0].recordings[0].workload.as_str();
    let mut records = runs_as_rows(runs);
    let groups = &by_seed(groups)[..];
    let Compared { first, rest } = Compared::of(groups, view);
    for (rows, row) in
        [&first, &rest].into_iter().flat_map(|rows| rows.rows.iter().map(move |row| (rows, row)))
    {
        for (index, (change, verdict)) in row.changes.iter().enumerate() {
            let tested = change.tested();
            let numbers = [
                ("change", number(change.difference())),
                ("change_percent", number(percent(row, index + 1))),
                ("low", number(tested.map(|d| d.low))),
                ("high", number(tested.map(|d| d.high))),
                ("p", number(tested.map(|d| rows.family.adjusted_p(d.p)))),
                ("verdict", (*verdict).to_owned()),
            ];
            let about = [workload, &groups[index + 1].label, "comparison", &row.measure.name];
            records.extend(rows_about(about, numbers));
        }
    }
    for [label, limit, outcome] in limits_csv(&view.limits) {
        records.extend(rows_about([workload, label, "limit", limit], [("outcome", outcome.to_owned())]));
    }
    records
}
