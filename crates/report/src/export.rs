//! Recordings for programs: one JSON object, or one tidy CSV table; of a comparison with what it
//! comes to.

use recording::Recording;
use serde_json::{Value, json};

use crate::blocked::{sections_csv, sections_json};
use crate::compared::{Compared, Row, Rows, by_seed, recordings_of};
use crate::judge::{LEVEL, method_name};
use crate::latency::percentiles_json;
use crate::limits::{limits_csv, limits_value};
use crate::measure::Direction;
use crate::number::seconds;
use crate::oom::oom_json;
use crate::pressure::pressure_json;
use crate::view::View;
use crate::waits::{waits_csv, waits_json};
use crate::{Group, ReportError, common_workload, common_workload_of_groups};

/// The object that `--format json` prints, with a newline at its end.
///
/// `{"schema": 1, "workload", "runs": [{"label", "backend", "kernel", "seed", "metrics", "samples",
/// "percentiles", "vmstat", "wall_seconds", "simulated_seconds", "events", "memcg", "pressure", "phases",
/// "stalls", "waits", "sections",
/// "oom_kills", "notes"}]}`.
/// What is not known is `null`: the wall time of a simulated run, the simulated time and events of a
/// real one, a metric that is not a number.
///
/// # Errors
/// No recordings, or recordings of different workloads.
pub fn to_json(recordings: &[&Recording]) -> Result<String, ReportError> {
    let workload = common_workload(recordings.iter().copied())?;
    let runs: Vec<Value> = recordings.iter().map(|recording| run(recording)).collect();
    let object = json!({ "schema": 1, "workload": workload, "runs": runs });
    Ok(format!("{object:#}\n"))
}

/// The object of [`to_json`] with the keys `warnings`, a list of texts, and `comparison`:
/// `{"baseline", "level", "rows": [{"metric", "unit", "direction", "headline", "label", "values",
/// "change", "change_percent", "interval", "p", "tests", "verdict"}]}`.
///
/// A row is one metric of one column, called `label`, against the baseline; `values` has `{"mean",
/// "sd", "n"}` for both by label. `interval` and `p` hold over `tests` tests together at `level`; they
/// are `null` where nothing was tested. `direction` tells what is better. With limits there is a key `limits`:
/// `[{"limit", "label", "baseline", "value", "outcome", "fails", "why"}]`.
///
/// # Errors
/// No group, a group without recordings, different workloads.
pub fn compare_json(groups: &[Group<'_>], view: impl Into<View>) -> Result<String, ReportError> {
    Ok(format!("{:#}\n", compare_value(groups, &view.into())?))
}

/// The object of [`compare_json`].
pub(crate) fn compare_value(groups: &[Group<'_>], view: &View) -> Result<Value, ReportError> {
    let workload = common_workload_of_groups(groups)?;
    let runs: Vec<Value> = recordings_of(groups).into_iter().map(run).collect();
    let groups = &by_seed(groups)[..];
    let Compared { first, rest } = Compared::of(groups, view);
    let rows: Vec<Value> = [&first, &rest].into_iter().flat_map(|rows| judged(rows, groups)).collect();
    let mut object = json!({
        "schema": 1,
        "workload": workload,
        "runs": runs,
        "warnings": view.warnings,
        "comparison": { "baseline": groups[0].label, "level": LEVEL, "rows": rows },
    });
    if !view.limits.is_empty() {
        object["limits"] = limits_value(&view.limits);
    }
    Ok(object)
}

/// One object for each metric of each group but the first.
fn judged(rows: &Rows, groups: &[Group<'_>]) -> Vec<Value> {
    let columns = |row| (1..groups.len()).map(move |index| (row, index));
    let cells = rows.rows.iter().flat_map(columns);
    cells.map(|(row, index)| judged_cell(row, index, rows, groups)).collect()
}

fn judged_cell(row: &Row, index: usize, rows: &Rows, groups: &[Group<'_>]) -> Value {
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
    json!({
        "metric": row.measure.name,
        "unit": row.measure.unit,
        "direction": match row.measure.direction {
            Direction::Higher => "higher",
            Direction::Lower => "lower",
            Direction::Neutral => "neutral",
        },
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
    })
}

fn percent(row: &Row, index: usize) -> Option<f64> {
    let change = row.changes[index - 1].0.difference()?;
    (row.base() != 0.0).then(|| 100.0 * change / row.base().abs())
}

pub(crate) fn run(recording: &Recording) -> Value {
    let simulated = recording.is_simulated();
    let phases: Vec<Value> = recording
        .phases_to_the_end()
        .iter()
        .map(
            |phase| json!({ "name": phase.name, "at_seconds": seconds(phase.at_ns), "vmstat": phase.vmstat }),
        )
        .collect();
    let stalls: Vec<Value> = recording
        .stalls
        .iter()
        .map(|stall| {
            json!({
                "task": stall.task,
                "reason": stall.reason,
                "count": stall.count,
                "total_seconds": seconds(stall.total_ns),
                "max_seconds": seconds(stall.max_ns),
            })
        })
        .collect();
    json!({
        "label": recording.label,
        "backend": recording.backend,
        "kernel": recording.kernel,
        "seed": recording.seed,
        "metrics": recording.metrics,
        "samples": recording.samples,
        "percentiles": percentiles_json(recording),
        "vmstat": recording.vmstat,
        "wall_seconds": recording.wall_ns.map(seconds),
        "simulated_seconds": simulated.then(|| seconds(recording.simulated_ns)),
        "events": simulated.then_some(recording.events),
        "memcg": recording.memcg,
        "pressure": pressure_json(recording),
        "phases": phases,
        "stalls": stalls,
        "waits": waits_json(recording),
        "sections": sections_json(recording),
        "oom_kills": oom_json(recording),
        "notes": recording.notes,
    })
}

/// One row for each number, for spreadsheets and data frames:
/// `workload,label,backend,kernel,seed,kind,name,index,value`.
///
/// `kind` is `metric`, `sample`, `vmstat`, `memcg:PATH`, `wait:WAIT` (who, and by `index` `times`,
/// `seconds` and where it is known `futile_seconds`), `within:PATH` (who, and by `index` `times` and
/// `seconds`; a path leads into sections, or on to a wait and whom that was on) or `oom_kill` (who, and after how many
/// seconds); `index` counts samples from 0 and is
/// empty elsewhere; a value that is not a number is empty.
///
/// # Errors
/// No recordings, or recordings of different workloads.
pub fn to_csv(recordings: &[&Recording]) -> Result<String, ReportError> {
    common_workload(recordings.iter().copied())?;
    Ok(written(runs_as_rows(recordings)))
}

/// The rows of [`to_csv`], then those of `kind` `comparison`: for each metric of each column against
/// the first one of `index` `change`, `change_percent`, `low` and `high` (the interval), `p` and
/// `verdict`, a word; then those of `kind` `limit`, whose value is the outcome. Backend, kernel and seed are empty
/// there, and so is what was not tested.
///
/// # Errors
/// No group, a group without recordings, different workloads.
pub fn compare_csv(groups: &[Group<'_>], view: impl Into<View>) -> Result<String, ReportError> {
    compare_csv_with(&recordings_of(groups), groups, &view.into())
}

/// [`compare_csv`] with the rows of `runs`, which may be more than those of `groups`.
pub(crate) fn compare_csv_with(
    runs: &[&Recording],
    groups: &[Group<'_>],
    view: &View,
) -> Result<String, ReportError> {
    let workload = common_workload_of_groups(groups)?;
    let mut records = runs_as_rows(runs);
    let groups = &by_seed(groups)[..];
    let Compared { first, rest } = Compared::of(groups, view);
    for (rows, row) in
        [&first, &rest].into_iter().flat_map(|rows| rows.rows.iter().map(move |row| (rows, row)))
    {
        for (index, (change, verdict)) in row.changes.iter().enumerate() {
            let tested = change.tested();
            let cells = [
                ("change", number(change.difference())),
                ("change_percent", number(percent(row, index + 1))),
                ("low", number(tested.map(|d| d.low))),
                ("high", number(tested.map(|d| d.high))),
                ("p", number(tested.map(|d| rows.family.adjusted_p(d.p)))),
                ("verdict", (*verdict).to_owned()),
            ];
            for (what, value) in cells {
                let label = &groups[index + 1].label;
                let cells = [workload, label, "", "", "", "comparison", &row.measure.name, what, &value];
                records.push(cells.map(str::to_owned));
            }
        }
    }
    for [label, limit, outcome] in limits_csv(&view.limits) {
        let cells = [workload, label, "", "", "", "limit", limit, "outcome", outcome];
        records.push(cells.map(str::to_owned));
    }
    Ok(written(records))
}

pub(crate) fn number(value: Option<f64>) -> String {
    value.filter(|value| value.is_finite()).map_or_else(String::new, |value| value.to_string())
}

pub(crate) fn written(records: Vec<[String; 9]>) -> String {
    let mut writer = csv::Writer::from_writer(Vec::new());
    let header = ["workload", "label", "backend", "kernel", "seed", "kind", "name", "index", "value"];
    writer.write_record(header).expect("memory takes every write");
    for record in records {
        writer.write_record(record).expect("memory takes every write");
    }
    let bytes = writer.into_inner().expect("memory takes every write");
    String::from_utf8(bytes).expect("made of text")
}

pub(crate) fn runs_as_rows(recordings: &[&Recording]) -> Vec<[String; 9]> {
    let rows = |recording: &&Recording| -> Vec<[String; 9]> {
        let Recording { workload, label, backend, kernel, seed, .. } = *recording;
        let row = |Number { kind, name, index, value }: Number<'_>| {
            let seed = seed.to_string();
            let identity = [workload, label, backend, kernel, &seed].map(|text| text.to_owned());
            let [workload, label, backend, kernel, seed] = identity;
            [workload, label, backend, kernel, seed, kind, name.to_owned(), index, value]
        };
        numbers(recording).into_iter().map(row).collect()
    };
    recordings.iter().flat_map(rows).collect()
}

struct Number<'a> {
    kind: String,
    name: &'a str,
    index: String,
    value: String,
}

fn numbers(recording: &Recording) -> Vec<Number<'_>> {
    let float = |value: f64| if value.is_finite() { value.to_string() } else { String::new() };
    let mut all = Vec::new();
    for (name, &value) in &recording.metrics {
        all.push(Number { kind: "metric".into(), name, index: String::new(), value: float(value) });
    }
    for (name, samples) in &recording.samples {
        for (index, &value) in samples.iter().enumerate() {
            all.push(Number { kind: "sample".into(), name, index: index.to_string(), value: float(value) });
        }
    }
    for (wait, task, what, value) in waits_csv(recording) {
        let (index, value) = (what.to_owned(), value.to_string());
        all.push(Number { kind: format!("wait:{wait}"), name: task, index, value });
    }
    for (path, task, what, value) in sections_csv(recording) {
        let (index, value) = (what.to_owned(), value.to_string());
        all.push(Number { kind: format!("within:{path}"), name: task, index, value });
    }
    for (index, kill) in recording.oom_kills.iter().enumerate() {
        let (index, value) = (index.to_string(), seconds(kill.at_ns).to_string());
        all.push(Number { kind: "oom_kill".into(), name: &kill.task, index, value });
    }
    let kinds = std::iter::once(("vmstat".to_owned(), &recording.vmstat))
        .chain(recording.memcg.iter().map(|(path, counters)| (format!("memcg:{path}"), counters)));
    for (kind, counters) in kinds {
        for (name, value) in counters {
            all.push(Number { kind: kind.clone(), name, index: String::new(), value: value.to_string() });
        }
    }
    all
}
