//! The tables of an experiment that has several points: for each kernel what it counted at several values of
//! a parameter, and how a metric changes with memory.
//!
//! The first memory table is relative to the experiment's own memory, kernel by kernel; the second to the
//! first kernel at the same memory. Both pair runs of one seed. Below them stands the comparison at the
//! experiment's own point, see [`crate::views::compare`]. Left out: tests; a table of many points is read for its
//! shape.

use recording::Recording;
use serde_json::{Value, json};
use stats::Summary;

use crate::document::number::{plain, with_spread};
use crate::document::{Document, Section, Table};
use crate::judge::{Group, ReportError, View};
use crate::views::compare::{compare, records, value};
use crate::views::recordings::run;

/// What a row of a kernel's table is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GridRow {
    /// A counter.
    Counter(&'static str),
    /// A counter, and its share of another one.
    Share(&'static str, &'static str),
    /// A metric of the workload.
    Metric(&'static str),
}

impl GridRow {
    /// The counter or metric.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Counter(name) | Self::Share(name, _) | Self::Metric(name) => name,
        }
    }
}

/// What the tables are made of, the same for every kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GridLayout {
    /// The parameter that makes the columns of a kernel's table.
    pub param: &'static str,
    /// Its values; shares are those at the last.
    pub values: &'static [&'static str],
    /// The rows of a kernel's table.
    pub rows: &'static [GridRow],
    /// The phase whose events counters are.
    pub phase: &'static str,
    /// The sizes of memory that make the columns of the other tables.
    pub mems: &'static [&'static str],
    /// The one that the others are relative to.
    pub own_mem: &'static str,
    /// The metric of those tables.
    pub metric: &'static str,
}

/// One kernel at all points; a point has a run for each seed that has finished.
#[derive(Debug, Clone)]
pub struct GridKernel<'a> {
    /// The kernel.
    pub label: String,
    /// Its runs for each value of the parameter.
    pub by_value: Vec<Vec<&'a Recording>>,
    /// Its runs for each size of memory.
    pub by_mem: Vec<Vec<&'a Recording>>,
}

/// An experiment with several points to report on.
#[derive(Debug, Clone)]
pub struct Grid<'a> {
    /// What its tables are made of.
    pub layout: GridLayout,
    /// The kernels, the baseline first.
    pub kernels: Vec<GridKernel<'a>>,
    /// All runs, each once.
    pub recordings: Vec<&'a Recording>,
}

impl<'a> Grid<'a> {
    /// A kernel's table.
    fn counts(&self, kernel: &GridKernel<'a>) -> Table {
        let GridLayout { param, values, rows, .. } = self.layout;
        let mut table = Table::new()
            .texts([""])
            .numbers(values.iter().map(|value| format!("{value} {param}")))
            .numbers(["% portions"])
            .breaking_names();
        for &row in rows {
            let cells = kernel.by_value.iter().map(|runs| text(&self.values(row, runs)));
            let share = self.share(row, kernel).map_or_else(String::new, |share| format!("{share:.2} %"));
            table.push(std::iter::once(row.name().to_owned()).chain(cells).chain([share]));
        }
        table
    }

    /// The value of a row in each run that has it.
    fn values(&self, row: GridRow, runs: &[&Recording]) -> Vec<f64> {
        let of_run = |run: &&Recording| match row {
            GridRow::Counter(name) | GridRow::Share(name, _) => counted(run, self.layout.phase, name),
            GridRow::Metric(name) => run.metrics.get(name).copied().filter(|value| value.is_finite()),
        };
        runs.iter().filter_map(of_run).collect()
    }

    /// The share of a row at the last value, in percent: that of the sums over seeds.
    fn share(&self, row: GridRow, kernel: &GridKernel<'a>) -> Option<f64> {
        let GridRow::Share(name, of) = row else { return None };
        let runs = kernel.by_value.last()?;
        let total = |name| -> f64 { self.values(GridRow::Counter(name), runs).iter().sum() };
        let whole = total(of);
        (whole > 0.0).then(|| 100.0 * total(name) / whole)
    }

    /// The metric at each size of memory, in percent of what `base` says it is beside; by pairs of one seed.
    fn deviations(&self, kernel: usize, base: impl Fn(usize) -> &'a [&'a Recording]) -> Vec<Vec<f64>> {
        let metric = |run: &Recording| run.metrics.get(self.layout.metric).copied();
        let deviation = |mem: usize, run: &&Recording| {
            let base = base(mem).iter().find(|base| base.seed == run.seed)?;
            let (base, value) = (metric(base)?, metric(run)?);
            (base != 0.0).then(|| 100.0 * (value / base - 1.0)).filter(|percent| percent.is_finite())
        };
        let by_mem = self.kernels[kernel].by_mem.iter().enumerate();
        by_mem.map(|(mem, runs)| runs.iter().filter_map(|run| deviation(mem, run)).collect()).collect()
    }

    /// Each kernel against itself with the experiment's own memory.
    fn to_own_mem(&'a self, kernel: usize) -> Vec<Vec<f64>> {
        let own = self.own_mem();
        self.deviations(kernel, |_| &self.kernels[kernel].by_mem[own])
    }

    /// A kernel against the first one with the same memory.
    fn to_first(&'a self, kernel: usize) -> Vec<Vec<f64>> {
        self.deviations(kernel, |mem| &self.kernels[0].by_mem[mem])
    }

    fn own_mem(&self) -> usize {
        let GridLayout { mems, own_mem, .. } = self.layout;
        mems.iter().position(|mem| *mem == own_mem).expect("the layout has its own memory")
    }

    /// What a table of memory sizes says, and the table.
    fn by_mem(&'a self) -> [(String, Table); 2] {
        let GridLayout { metric, own_mem, mems, .. } = self.layout;
        let first = &self.kernels[0].label;
        let table = || Table::new().texts(["%"]).numbers(mems).breaking_names();
        let own = self.own_mem();
        let mut normalised = table();
        let mut between = table();
        for (index, kernel) in self.kernels.iter().enumerate() {
            let mut cells: Vec<String> = self.to_own_mem(index).iter().map(|all| deviation(all)).collect();
            cells[own] = "=100".to_owned();
            normalised.push(std::iter::once(kernel.label.clone()).chain(cells));
            if index > 0 {
                let cells = self.to_first(index);
                between.push(
                    std::iter::once(kernel.label.clone()).chain(cells.iter().map(|all| deviation(all))),
                );
            }
        }
        [
            (format!("{metric} by memory: deviation from the same kernel's at {own_mem}, %"), normalised),
            (format!("{metric} by memory: deviation from that of {first} at the same memory, %"), between),
        ]
    }

    fn note(&self) -> Option<String> {
        let seeds = self.kernels.iter().flat_map(|kernel| kernel.by_mem.iter().map(Vec::len)).max()?;
        (seeds > 1).then(|| {
            format!(
                "{seeds} seeds: mean ± standard deviation; deviations are those of runs with the same seed"
            )
        })
    }

    fn shares(&self) -> String {
        let GridLayout { param, values, rows, phase, .. } = self.layout;
        let of_what = rows.iter().filter_map(|row| match row {
            GridRow::Share(name, of) => Some(format!("{name} of {of}")),
            _ => None,
        });
        let last = values.last().expect("a grid has values");
        format!(
            "% portions with {last} {param}: {}; counters are those of phase {phase}",
            of_what.collect::<Vec<_>>().join(", ")
        )
    }
}

/// Events of `name` in the phase of a run; nothing where the kernel does not have the counter.
fn counted(run: &Recording, phase: &str, name: &str) -> Option<f64> {
    let phase = run.phases.iter().find(|own| own.name == phase)?;
    phase.vmstat.get(name).map(|&count| count as f64)
}

fn text(values: &[f64]) -> String {
    match Summary::of(values) {
        None => "-".to_owned(),
        Some(Summary { mean, stddev: Some(stddev), .. }) if stddev != 0.0 => with_spread(mean, stddev),
        Some(Summary { mean, .. }) => plain(mean),
    }
}

/// A deviation in percent, with its spread over seeds.
fn deviation(percents: &[f64]) -> String {
    match Summary::of(percents) {
        None => "-".to_owned(),
        Some(Summary { mean, stddev: Some(stddev), .. }) if stddev >= SMALLEST => {
            format!("{mean:+.2} ± {stddev:.2}")
        }
        Some(Summary { mean: 0.0, .. }) => "0".to_owned(),
        Some(Summary { mean, .. }) if mean.abs() < SMALLEST => "<0.01".to_owned(),
        Some(Summary { mean, .. }) => format!("{mean:+.2}"),
    }
}

/// What two digits behind the point would show as 0.
const SMALLEST: f64 = 0.005;

/// The tables of the grid, then the comparison of `groups`, which are its own point.
///
/// JSON is what [`compare`] says of `groups`, with the runs of all points in `runs`, and a key `grid`: `{"param",
/// "phase", "counts": [{"kernel", "value", "name", "mean", "sd", "n"}], "shares": [{"kernel", "name", "of",
/// "percent"}], "metric", "own_mem", "memory": [{"kernel", "mem", "mean", "sd", "n", "percent_of_own_mem",
/// "percent_of_first"}]}`; the percentages are deviations, means over seeds. CSV is what [`compare`] has, with the
/// rows of the runs of all points; their labels say which.
///
/// # Errors
/// As [`compare`].
pub fn grid<'a>(
    grid: &'a Grid<'a>,
    groups: &'a [Group<'a>],
    view: &View,
) -> Result<Document<'a>, ReportError> {
    let below = compare(groups, view)?;
    let (json, csv) = (view.clone(), view.clone());
    let counts = grid.kernels.iter().map(|kernel| Section::new(&kernel.label).with(grid.counts(kernel)));
    let by_mem = grid.by_mem().map(|(title, table)| Section::new(title).with(table));
    Ok(Document::new(&below.about)
        .sections(counts)
        .section(Section::untitled().line(grid.shares()))
        .sections(by_mem)
        .section(Section::untitled().lines_of(grid.note()))
        .sections(below.sections)
        .json(move || {
            let mut object = value(groups, &json);
            object["runs"] = grid.recordings.iter().map(|recording| run(recording, &json)).collect();
            object["grid"] = value_of(grid);
            object
        })
        .csv(move || records(&grid.recordings, groups, &csv)))
}

fn value_of(grid: &Grid<'_>) -> Value {
    let GridLayout { param, phase, metric, own_mem, .. } = grid.layout;
    json!({
        "param": param,
        "phase": phase,
        "counts": counts_json(grid),
        "shares": shares_json(grid),
        "metric": metric,
        "own_mem": own_mem,
        "memory": memory_json(grid),
    })
}

fn counts_json(grid: &Grid<'_>) -> Vec<Value> {
    let mut all = Vec::new();
    for kernel in &grid.kernels {
        for (value, runs) in grid.layout.values.iter().zip(&kernel.by_value) {
            for &row in grid.layout.rows {
                let mut object = summary(&grid.values(row, runs));
                object["kernel"] = json!(kernel.label);
                object["value"] = json!(value);
                object["name"] = json!(row.name());
                all.push(object);
            }
        }
    }
    all
}

fn shares_json(grid: &Grid<'_>) -> Vec<Value> {
    let mut all = Vec::new();
    for kernel in &grid.kernels {
        for &row in grid.layout.rows {
            let GridRow::Share(name, of) = row else { continue };
            let percent = grid.share(row, kernel);
            all.push(json!({ "kernel": kernel.label, "name": name, "of": of, "percent": percent }));
        }
    }
    all
}

fn memory_json<'a>(grid: &'a Grid<'a>) -> Vec<Value> {
    let mean = |percents: &[f64]| stats::describe::mean(percents);
    let mut all = Vec::new();
    for (index, kernel) in grid.kernels.iter().enumerate() {
        let (own, first) = (grid.to_own_mem(index), grid.to_first(index));
        for (place, mem) in grid.layout.mems.iter().enumerate() {
            let row = GridRow::Metric(grid.layout.metric);
            let mut object = summary(&grid.values(row, &kernel.by_mem[place]));
            object["kernel"] = json!(kernel.label);
            object["mem"] = json!(mem);
            object["percent_of_own_mem"] = json!(mean(&own[place]));
            object["percent_of_first"] = json!(mean(&first[place]));
            all.push(object);
        }
    }
    all
}

fn summary(values: &[f64]) -> Value {
    let summary = Summary::of(values);
    json!({
        "mean": summary.map(|summary| summary.mean),
        "sd": summary.and_then(|summary| summary.stddev),
        "n": values.len(),
    })
}

#[cfg(test)]
mod tests;
