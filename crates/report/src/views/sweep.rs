//! A sweep: one row a run, with what was varied, what came out, what reclaim did, and how long tasks
//! were stalled; as a table, and for programs with one record a run.
//!
//! A run that failed has a row, too, which says why. What was not measured, such as stalls on a real
//! kernel, is `missing`. Left out: which combination is the best one.

use std::collections::BTreeSet;

use recording::Recording;
use serde_json::{Map, Value, json};

use crate::document::number::seconds;
use crate::document::{Cell, Document, Records, Section, Table};
use crate::judge::{Headline, Measure, Measures, ReportError, Scale, View};
use crate::views::notes::notes;
use crate::views::oom::oom_killed;
use crate::views::recordings::{number, run};

/// Counters that every table of a sweep shows: heading, and the beginning of their names, whose parts
/// by zone or type add up.
const COUNTERS: [(&str, &str); 4] = [
    ("pgscan_kswapd", "pgscan_kswapd"),
    ("pgscan_direct", "pgscan_direct"),
    ("allocstall", "allocstall"),
    ("refaults", "workingset_refault"),
];
const STALLED: &str = "stall_seconds";
const ERROR: &str = "error";

/// What became of one combination of values.
#[derive(Debug, Clone)]
pub struct SweepRow<'a> {
    /// The value of each axis.
    pub values: Vec<String>,
    /// What the run left, or why it failed.
    pub outcome: Result<&'a Recording, String>,
}

/// A sweep to report on.
#[derive(Debug, Clone)]
pub struct SweepRows<'a> {
    /// The workload or trace.
    pub workload: String,
    /// What was varied, the slowest first.
    pub axes: Vec<String>,
    /// What was given and has one value: `name=value`.
    pub fixed: Vec<String>,
    /// Runs that are over, in the order of the plan.
    pub rows: Vec<SweepRow<'a>>,
    /// Runs that the plan has.
    pub planned: usize,
    /// The measures that tables show, in this order; none means all.
    pub headlines: Vec<Headline>,
}

impl<'a> SweepRows<'a> {
    fn recordings(&self) -> Vec<&'a Recording> {
        self.rows.iter().filter_map(|row| row.outcome.as_ref().ok().copied()).collect()
    }

    /// All metrics that any run has, by name.
    fn metrics(&self) -> Vec<String> {
        let mut names: Vec<String> =
            self.recordings().iter().flat_map(|recording| recording.metrics.keys().cloned()).collect();
        names.sort_unstable();
        names.dedup();
        names
    }

    /// The measures of a table: those to look at first, or all where no run has any of them.
    fn measures(&self) -> Vec<Measure> {
        let view = View { headlines: self.headlines.clone(), ..View::default() };
        let Measures { first, rest } = Measures::of(self.recordings(), &view);
        if first.is_empty() { rest } else { first }
    }

    fn has_counters(&self) -> bool {
        self.recordings().iter().any(|recording| !recording.vmstat.is_empty())
    }

    /// Whether a run did not come to its end by itself.
    fn has_ended_early(&self) -> bool {
        self.rows.iter().any(|row| !ended(row).is_empty())
    }

    /// What one seed a row cannot show; nothing where seeds are an axis or no kernel ran.
    fn chance(&self) -> Option<&'static str> {
        let of_seeds = self.axes.iter().any(|axis| axis == "seed");
        let told = "one run a row: where a curve is rough, `--seeds 5` shows how much of it is chance";
        (!of_seeds && self.has_counters()).then_some(told)
    }

    fn title(&self) -> String {
        let fixed =
            if self.fixed.is_empty() { String::new() } else { format!(", {}", self.fixed.join(", ")) };
        format!("{}{fixed}: {} of {} runs", self.workload, self.rows.len(), self.planned)
    }

    fn table(&self) -> Table {
        let recordings = self.recordings();
        let measures: Vec<(Measure, Scale)> = (self.measures().into_iter())
            .map(|measure| {
                let values = recordings.iter().filter_map(|recording| measure.value(recording));
                let scale = Scale::of(measure.unit, values);
                (measure, scale)
            })
            .collect();
        let counters: &[(&str, &str)] = if self.has_counters() { &COUNTERS } else { &[] };
        let mut table = Table::new()
            .texts(&self.axes)
            .numbers(measures.iter().map(|(measure, scale)| measure.heading_in(scale)))
            .numbers(counters.iter().map(|(name, _)| name))
            .numbers(self.has_counters().then_some("stalled, s"))
            .texts(self.has_ended_early().then_some("how it ended"))
            .named_by(self.axes.len());
        for row in &self.rows {
            let cells = match &row.outcome {
                Ok(recording) => self.cells(recording, &measures, counters),
                Err(_) => {
                    vec![Cell::Dash; measures.len() + counters.len() + usize::from(self.has_counters())]
                }
            };
            let end = self.has_ended_early().then(|| Cell::from(ended(row)));
            table.push(row.values.iter().map(Cell::from).chain(cells).chain(end));
        }
        table
    }

    fn cells(
        &self,
        recording: &Recording,
        measures: &[(Measure, Scale)],
        counters: &[(&str, &str)],
    ) -> Vec<Cell> {
        let missing = || Cell::from("missing");
        let value = |(measure, scale): &(Measure, Scale)| {
            Cell::from(measure.value(recording).map(|value| value * scale.factor))
        };
        let mut cells: Vec<Cell> = measures.iter().map(value).collect();
        cells
            .extend(counters.iter().map(|(_, key)| counted(recording, key).map_or_else(missing, Cell::from)));
        if self.has_counters() {
            cells.push(stalled(recording).map_or_else(missing, Cell::from));
        }
        cells
    }
}

/// Why a run did not come to its end by itself; empty where it did.
fn ended(row: &SweepRow<'_>) -> String {
    match &row.outcome {
        Ok(recording) => oom_killed(recording).unwrap_or_default(),
        Err(error) => error.clone(),
    }
}

/// The counter called `key`, or the sum of those that it begins: `allocstall_normal`, but not a
/// throttle counter that only looks like one of a zone.
fn counted(recording: &Recording, key: &str) -> Option<u64> {
    const PARTS: [&str; 10] =
        ["", "_dma", "_dma32", "_normal", "_high", "_movable", "_device", "_file", "_anon", "_zone"];
    let parts = PARTS.iter().filter_map(|part| recording.vmstat.get(&format!("{key}{part}")));
    parts.copied().reduce(|a, b| a + b)
}

/// Seconds that tasks were stalled, all waits added up; none where nobody measures it.
fn stalled(recording: &Recording) -> Option<f64> {
    let total: u64 = recording.stalls.iter().map(|stall| stall.total_ns).sum();
    recording.is_simulated().then(|| seconds(total))
}

/// A row for each run.
///
/// JSON: `{"schema": 1, "workload", "axes": [names], "planned", "runs": [...]}`. A run has what [`super::run`] says of
/// one, and `axes`, the value of each by name, `stall_seconds`, and `error`; one that failed has `label`, `axes` and
/// `error` only. CSV: one record for each run: its axes, all metrics, `stall_seconds`, all of `/proc/vmstat`, and
/// `error`. What a run does not have is empty.
///
/// # Errors
/// No run has ended.
pub fn sweep<'a>(sweep: &'a SweepRows<'a>) -> Result<Document<'a>, ReportError> {
    if sweep.rows.is_empty() {
        return Err(ReportError::NoRecordings);
    }
    Ok(Document::new(&sweep.workload)
        .section(Section::first(sweep.title(), None))
        .section(Section::untitled().with(sweep.table()).lines_of(sweep.chance()))
        .section(notes(&sweep.recordings()))
        .json(|| {
            json!({
                "schema": 1, "workload": sweep.workload, "axes": sweep.axes, "planned": sweep.planned,
                "runs": sweep.rows.iter().map(|row| value(sweep, row)).collect::<Vec<_>>(),
            })
        })
        .csv(|| records(sweep)))
}

fn value(sweep: &SweepRows<'_>, row: &SweepRow<'_>) -> Value {
    let pairs = || sweep.axes.iter().zip(&row.values);
    let axes: Map<String, Value> = pairs().map(|(axis, value)| (axis.clone(), json!(value))).collect();
    match &row.outcome {
        Ok(recording) => {
            let mut object = run(recording, &View::default());
            object["axes"] = Value::Object(axes);
            object[STALLED] = json!(stalled(recording));
            object[ERROR] = Value::Null;
            object
        }
        Err(error) => {
            let label: Vec<String> = pairs().map(|(axis, value)| format!("{axis}={value}")).collect();
            json!({ "label": label.join(", "), "axes": axes, ERROR: error })
        }
    }
}

fn records(sweep: &SweepRows<'_>) -> Records {
    let metrics = sweep.metrics();
    let recordings = sweep.recordings();
    let counters: BTreeSet<&String> =
        recordings.iter().flat_map(|recording| recording.vmstat.keys()).collect();
    let header = sweep.axes.iter().chain(&metrics).map(String::as_str).chain([STALLED]);
    let header = header.chain(counters.iter().map(|name| name.as_str())).chain([ERROR]);
    let mut records = vec![header.map(str::to_owned).collect()];
    for row in &sweep.rows {
        let recording = row.outcome.as_ref().ok().copied();
        let metric =
            |name: &String| number(recording.and_then(|recording| recording.metrics.get(name).copied()));
        let counter = |name: &&String| {
            let count = recording.and_then(|recording| recording.vmstat.get(*name));
            count.map_or_else(String::new, ToString::to_string)
        };
        let record = (row.values.iter().cloned())
            .chain(metrics.iter().map(metric))
            .chain([number(recording.and_then(stalled))])
            .chain(counters.iter().map(counter))
            .chain([row.outcome.as_ref().err().cloned().unwrap_or_default()]);
        records.push(record.collect());
    }
    records
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Format;

    fn run(backend: &str, kept: f64, scanned: u64) -> Recording {
        let mut recording = Recording::new("x", "hot-and-stream", backend, "linux-6.1", 1);
        recording.metrics.insert("hot_pages_cached".to_owned(), kept);
        recording.metrics.insert("other".to_owned(), 1.0);
        recording.vmstat.insert("pgscan_kswapd".to_owned(), scanned);
        recording.vmstat.insert("allocstall_dma32".to_owned(), 2);
        recording.vmstat.insert("allocstall_normal".to_owned(), 3);
        recording.vmstat.insert("pgscan_direct_throttle".to_owned(), 9);
        let stall = |total_ns| recording::Stall {
            task: "reader".to_owned(),
            reason: "page read".to_owned(),
            count: 1,
            total_ns,
            max_ns: total_ns,
        };
        recording.stalls = vec![stall(1_500_000_000), stall(250_000_000)];
        recording
    }

    fn rows<'a>(sim: &'a Recording, real: &'a Recording) -> SweepRows<'a> {
        let row = |mem: &str, outcome| SweepRow { values: vec![mem.to_owned(), "10".to_owned()], outcome };
        SweepRows {
            workload: "hot-and-stream".to_owned(),
            axes: vec!["mem".to_owned(), "vm.swappiness".to_owned()],
            fixed: vec!["kernel=linux-6.1".to_owned()],
            rows: vec![
                row("20M", Err("it cannot boot".to_owned())),
                row("256M", Ok(sim)),
                row("1G", Ok(real)),
            ],
            planned: 4,
            headlines: vec![Headline {
                name: "hot_pages_cached",
                unit: "pages",
                direction: crate::Direction::Higher,
                of: None,
                resolution: 0.0,
                help: "of the hot file",
            }],
        }
    }

    #[test]
    fn each_run_is_a_row_with_its_axes_and_what_was_not_measured_is_missing() {
        let (sim, mut real) = (run("sim", 77.0, 1000), run("vm:6.1", 80.0, 12));
        real.stalls.clear();
        insta::assert_snapshot!(super::sweep(&rows(&sim, &real)).unwrap().render(Format::Text, 120), @"
        hot-and-stream, kernel=linux-6.1: 3 of 4 runs

         mem   vm.swappiness  hot_pages_cached,  pgscan_kswapd  pgscan_direct  allocstall  refaults  stalled, s  how it ended
                                          pages
         20M   10                             -              -              -           -         -        -     it cannot boot
         256M  10                            77           1000        missing           5   missing        1.75
         1G    10                            80             12        missing           5   missing     missing
        one run a row: where a curve is rough, `--seeds 5` shows how much of it is chance
        ");
    }

    #[test]
    fn programs_get_one_record_a_run() {
        let (sim, real) = (run("sim", 77.0, 1000), run("vm:6.1", 80.0, 12));
        let rows = rows(&sim, &real);
        let sweep = sweep(&rows).unwrap();
        insta::assert_snapshot!(sweep.render(Format::Csv, 80), @"
        mem,vm.swappiness,hot_pages_cached,other,stall_seconds,allocstall_dma32,allocstall_normal,pgscan_direct_throttle,pgscan_kswapd,error
        20M,10,,,,,,,,it cannot boot
        256M,10,77,1,1.75,2,3,9,1000,
        1G,10,80,1,,2,3,9,12,
        ");
        let json: Value = serde_json::from_str(&sweep.render(Format::Json, 80)).unwrap();
        assert_eq!(json["runs"][1]["axes"]["mem"], "256M");
        assert_eq!(json["runs"][1]["stall_seconds"], 1.75);
        assert_eq!(json["runs"][0]["error"], "it cannot boot");
        assert_eq!(json["runs"][2]["stall_seconds"], Value::Null);
    }
}
