//! A sweep: one row a run, with what was varied, what came out, what reclaim did, and how long tasks
//! were stalled; as a table, and for programs with one record a run.
//!
//! A run that failed has a row, too, which says why. What was not measured, such as stalls on a real
//! kernel, is `missing`. Left out: which combination is the best one.

use recording::Recording;
use serde_json::{Map, Value, json};

use crate::ReportError;
use crate::export::run;
use crate::notes::{notes_markdown, notes_text, separated};
use crate::number::{plain, seconds};
use crate::oom::oom_killed;
use crate::table::{Align, Table, clean};
use crate::view::{Headline, Measure, Measures, Scale, View};
use crate::wrap::paragraph;

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
        let view = View { headlines: self.headlines.clone(), ..View::from(0) };
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
        clean(&format!("{}{fixed}: {} of {} runs", self.workload, self.rows.len(), self.planned))
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
        let axes = self.axes.iter().map(|axis| (axis.clone(), Align::Left));
        let mut headings: Vec<(String, Align)> = axes.collect();
        headings.extend(measures.iter().map(|(measure, scale)| (measure.heading_in(scale), Align::Number)));
        headings.extend(counters.iter().map(|(name, _)| ((*name).to_owned(), Align::Number)));
        if self.has_counters() {
            headings.push(("stalled, s".to_owned(), Align::Number));
        }
        if self.has_ended_early() {
            headings.push(("how it ended".to_owned(), Align::Left));
        }
        let mut table = Table::new(headings).named_by(self.axes.len());
        for row in &self.rows {
            let cells = match &row.outcome {
                Ok(recording) => self.cells(recording, &measures, counters),
                Err(_) => {
                    vec!["-".to_owned(); measures.len() + counters.len() + usize::from(self.has_counters())]
                }
            };
            let end = self.has_ended_early().then(|| ended(row));
            table.push(row.values.iter().cloned().chain(cells).chain(end));
        }
        table
    }

    fn cells(
        &self,
        recording: &Recording,
        measures: &[(Measure, Scale)],
        counters: &[(&str, &str)],
    ) -> Vec<String> {
        const MISSING: &str = "missing";
        let value = |(measure, scale): &(Measure, Scale)| {
            measure.value(recording).map_or("-".to_owned(), |value| plain(value * scale.factor))
        };
        let mut cells: Vec<String> = measures.iter().map(value).collect();
        for (_, key) in counters {
            cells.push(counted(recording, key).map_or(MISSING.to_owned(), |count| count.to_string()));
        }
        if self.has_counters() {
            cells.push(stalled(recording).map_or(MISSING.to_owned(), plain));
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

/// A row for each run, for a terminal of `width` columns.
///
/// # Errors
/// No run has ended.
pub fn sweep_text(sweep: &SweepRows<'_>, width: usize) -> Result<String, ReportError> {
    check(sweep)?;
    let notes = separated(notes_text(&sweep.recordings(), width));
    let chance = sweep.chance().map_or_else(String::new, |line| paragraph(line, width, 2));
    Ok(format!("{}\n\n{}{chance}{notes}", sweep.title(), sweep.table().to_text(width)))
}

/// [`sweep_text`] in Markdown.
///
/// # Errors
/// No run has ended.
pub fn sweep_markdown(sweep: &SweepRows<'_>) -> Result<String, ReportError> {
    check(sweep)?;
    let notes = separated(notes_markdown(&sweep.recordings()));
    let chance = sweep.chance().map_or_else(String::new, |line| format!("\n{line}\n"));
    Ok(format!("## {}\n\n{}{chance}{notes}", sweep.title(), sweep.table().to_markdown()))
}

/// `{"schema": 1, "workload", "axes": [names], "planned", "runs": [...]}`. A run has what
/// [`crate::to_json`] says of one, and `axes`, the value of each by name, `stall_seconds`, and `error`;
/// one that failed has `label`, `axes` and `error` only.
///
/// # Errors
/// No run has ended.
pub fn sweep_json(sweep: &SweepRows<'_>) -> Result<String, ReportError> {
    check(sweep)?;
    let runs: Vec<Value> = sweep
        .rows
        .iter()
        .map(|row| {
            let pairs = sweep.axes.iter().zip(&row.values);
            let axes: Map<String, Value> = pairs.map(|(axis, value)| (axis.clone(), json!(value))).collect();
            match &row.outcome {
                Ok(recording) => {
                    let mut object = run(recording);
                    object["axes"] = Value::Object(axes);
                    object[STALLED] = json!(stalled(recording));
                    object[ERROR] = Value::Null;
                    object
                }
                Err(error) => {
                    let label: Vec<String> = sweep
                        .axes
                        .iter()
                        .zip(&row.values)
                        .map(|(axis, value)| format!("{axis}={value}"))
                        .collect();
                    json!({ "label": label.join(", "), "axes": axes, ERROR: error })
                }
            }
        })
        .collect();
    let object = json!({
        "schema": 1, "workload": sweep.workload, "axes": sweep.axes, "planned": sweep.planned, "runs": runs,
    });
    Ok(format!("{object:#}\n"))
}

/// One record for each run: its axes, all metrics, `stall_seconds`, all of `/proc/vmstat`, and `error`.
/// What a run does not have is empty.
///
/// # Errors
/// No run has ended.
pub fn sweep_csv(sweep: &SweepRows<'_>) -> Result<String, ReportError> {
    check(sweep)?;
    let metrics = sweep.metrics();
    let recordings = sweep.recordings();
    let mut counters: Vec<&String> =
        recordings.iter().flat_map(|recording| recording.vmstat.keys()).collect();
    counters.sort_unstable();
    counters.dedup();
    let mut writer = csv::Writer::from_writer(Vec::new());
    let header = (sweep.axes.iter().map(String::as_str))
        .chain(metrics.iter().map(String::as_str))
        .chain([STALLED])
        .chain(counters.iter().map(|name| name.as_str()))
        .chain([ERROR]);
    writer.write_record(header).expect("memory takes every write");
    for row in &sweep.rows {
        let recording = row.outcome.as_ref().ok().copied();
        let float = |value: Option<f64>| {
            value.filter(|value| value.is_finite()).map_or_else(String::new, |value| value.to_string())
        };
        let metric =
            |name: &String| float(recording.and_then(|recording| recording.metrics.get(name).copied()));
        let counter = |name: &&String| {
            let count = recording.and_then(|recording| recording.vmstat.get(*name));
            count.map_or_else(String::new, ToString::to_string)
        };
        let record = (row.values.iter().cloned())
            .chain(metrics.iter().map(metric))
            .chain([float(recording.and_then(stalled))])
            .chain(counters.iter().map(counter))
            .chain([row.outcome.as_ref().err().cloned().unwrap_or_default()]);
        writer.write_record(record).expect("memory takes every write");
    }
    let bytes = writer.into_inner().expect("memory takes every write");
    Ok(String::from_utf8(bytes).expect("made of text"))
}

fn check(sweep: &SweepRows<'_>) -> Result<(), ReportError> {
    if sweep.rows.is_empty() { Err(ReportError::NoRecordings) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

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

    fn sweep<'a>(sim: &'a Recording, real: &'a Recording) -> SweepRows<'a> {
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
        insta::assert_snapshot!(sweep_text(&sweep(&sim, &real), 120).unwrap(), @"
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
        let sweep = sweep(&sim, &real);
        insta::assert_snapshot!(sweep_csv(&sweep).unwrap(), @"
        mem,vm.swappiness,hot_pages_cached,other,stall_seconds,allocstall_dma32,allocstall_normal,pgscan_direct_throttle,pgscan_kswapd,error
        20M,10,,,,,,,,it cannot boot
        256M,10,77,1,1.75,2,3,9,1000,
        1G,10,80,1,,2,3,9,12,
        ");
        let json: Value = serde_json::from_str(&sweep_json(&sweep).unwrap()).unwrap();
        assert_eq!(json["runs"][1]["axes"]["mem"], "256M");
        assert_eq!(json["runs"][1]["stall_seconds"], 1.75);
        assert_eq!(json["runs"][0]["error"], "it cannot boot");
        assert_eq!(json["runs"][2]["stall_seconds"], Value::Null);
    }
}
