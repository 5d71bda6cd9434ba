//! Sweeps for Python: the plan, a part of it run to the bytes of a file, and what is known of all runs.
//!
//! Left out: who runs which part, and where files go; that is Python's (`pagetide/_sweep.py`, `_dask.py`).
//! Neighbours: `lab::sweep::chunk`.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use arrow_array::{ArrayRef, Float64Array, Int64Array, RecordBatch, StringArray, UInt64Array};
use arrow_schema::{DataType, Field, Schema};
use lab::Request;
use lab::sweep::chunk::{self, HandedRun, PlacedRun};
use lab::sweep::{RUNS_MAX_OF_DATASET, SweepRequest, Swept, plan_points, plan_up_to};
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use recording::chunk::{ChunkAxis, ChunkRun, Fact, FactKind, decode_chunk, encode_chunk};
use report::{SweepRow, SweepRows};

use crate::asked::{Asked, Reading};
use crate::errors::{OrRaised, usage};
use crate::recording::Recording;
use crate::shown::format_of;
use crate::table::Table;

/// To end runs soon that go on in other threads.
#[pyclass(frozen, module = "pagetide._native")]
#[derive(Debug, Default)]
pub(crate) struct Stop(Arc<AtomicBool>);

#[pymethods]
impl Stop {
    #[new]
    fn new() -> Self {
        Self::default()
    }

    /// Ends them.
    fn set(&self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

fn swept(py: Python<'_>, name: &str) -> PyResult<Swept> {
    Ok(match name {
        "kernel" => Swept::Kernel,
        "machine" => Swept::Machine,
        "mem" => Swept::Mem,
        "swap" => Swept::Swap,
        "set" => Swept::Set,
        "param" => Swept::Param,
        "seed" => Swept::Seed,
        "policy" => Swept::Policy,
        "capacity" => Swept::Capacity,
        other => return Err(usage(py, &format!("`{other}` is nothing to sweep over"))),
    })
}

/// The plan of a sweep as JSON. With `points` a single combination will do.
#[pyfunction]
pub(crate) fn plan_sweep(
    py: Python<'_>,
    asked: Asked,
    subject: String,
    options: Vec<(String, String)>,
    seeds: Option<u64>,
    reading: Reading,
    points: bool,
) -> PyResult<String> {
    let options: PyResult<Vec<_>> =
        options.into_iter().map(|(name, text)| Ok((swept(py, &name)?, text))).collect();
    let (base, reading) = (Request::from(asked), reading.options().or_raised(py)?);
    let request = SweepRequest { subject, options: options?, seeds, base, reading };
    let plan = || {
        let plan = if points { plan_points } else { plan_up_to };
        plan(&request, RUNS_MAX_OF_DATASET)?.handed_over()
    };
    Ok(chunk::written(&py.detach(plan).or_raised(py)?))
}

/// Checks a plan that was made elsewhere.
#[pyfunction]
pub(crate) fn read_plan(py: Python<'_>, json: &str) -> PyResult<()> {
    chunk::read_handed_over(json).map(drop).or_raised(py)
}

/// The name of an axis, and whether its values are numbers.
type Axis = (String, Vec<String>);

fn chunk_axes(axes: &[Axis]) -> Vec<ChunkAxis> {
    axes.iter().map(|(name, values)| ChunkAxis::new(name, values)).collect()
}

/// Runs a part of a sweep and returns the bytes of its file. A run is its place, label, values and scenario.
#[pyfunction]
#[pyo3(signature = (axes, runs, stop=None))]
pub(crate) fn run_chunk<'py>(
    py: Python<'py>,
    axes: Vec<Axis>,
    runs: Vec<(u64, String, Vec<String>, String)>,
    stop: Option<PyRef<'_, Stop>>,
) -> PyResult<Bound<'py, PyBytes>> {
    let placed = |(place, label, values, scenario): (u64, String, Vec<String>, String)| PlacedRun {
        place,
        run: HandedRun { label, values, scenario },
    };
    let runs: Vec<PlacedRun> = runs.into_iter().map(placed).collect();
    let stop = stop.map_or_else(Arc::default, |stop| Arc::clone(&stop.0));
    let bytes = py.detach(|| chunk::run_chunk(&chunk_axes(&axes), &runs, &stop)).or_raised(py)?;
    Ok(PyBytes::new(py, &bytes))
}

/// Parts of a sweep as one, in this order.
#[pyfunction]
pub(crate) fn join_chunks<'py>(
    py: Python<'py>,
    axes: Vec<Axis>,
    chunks: Vec<Vec<u8>>,
) -> PyResult<Bound<'py, PyBytes>> {
    let axes = chunk_axes(&axes);
    let runs = chunks.into_iter().map(|bytes| decode_chunk(&axes, bytes, Path::new("a part of a chunk")));
    let runs = runs.collect::<Result<Vec<_>, _>>().or_raised(py)?.concat();
    Ok(PyBytes::new(py, &encode_chunk(&axes, &runs)))
}

/// The recording of one run of a plan, whole.
#[pyfunction]
#[pyo3(signature = (label, scenario, stop=None))]
pub(crate) fn record(
    py: Python<'_>,
    label: String,
    scenario: String,
    stop: Option<PyRef<'_, Stop>>,
) -> PyResult<Recording> {
    let run = HandedRun { label, values: Vec::new(), scenario };
    let stop = stop.map_or_else(Arc::default, |stop| Arc::clone(&stop.0));
    let recording = py.detach(|| chunk::record(&run, &stop)).or_raised(py)?;
    Ok(Recording::new(Arc::new(recording), None))
}

/// What is known of the runs of a sweep.
#[pyclass(frozen, module = "pagetide._native")]
#[derive(Debug)]
pub(crate) struct Sweep {
    workload: String,
    axes: Vec<ChunkAxis>,
    fixed: Vec<String>,
    planned: usize,
    /// In the order of the plan.
    runs: Vec<ChunkRun>,
}

#[pymethods]
impl Sweep {
    /// Of the files of a dataset: names for messages, and bytes.
    #[new]
    fn new(
        py: Python<'_>,
        workload: String,
        axes: Vec<Axis>,
        fixed: Vec<String>,
        planned: usize,
        chunks: Vec<(String, Vec<u8>)>,
    ) -> PyResult<Self> {
        let axes = chunk_axes(&axes);
        let read = || {
            let one = |(name, bytes)| decode_chunk(&axes, bytes, Path::new::<String>(&name));
            chunks.into_iter().map(one).collect::<Result<Vec<_>, _>>()
        };
        let mut runs = py.detach(read).or_raised(py)?.concat();
        runs.sort_by_key(|run| run.run);
        Ok(Self { workload, axes, fixed, planned, runs })
    }

    fn __len__(&self) -> usize {
        self.runs.len()
    }

    /// For each run that failed: its place, its label, the exit code, and why.
    #[getter]
    fn failures(&self) -> Vec<(u64, String, u8, String)> {
        let failed = |run: &ChunkRun| {
            let of = |fact: &&Fact| fact.kind == FactKind::Run && fact.name == "error";
            let fact = run.facts.iter().find(of)?;
            let code = fact.value.unwrap_or(1.0) as u8;
            Some((run.run, run.label.clone(), code, fact.text.clone().unwrap_or_default()))
        };
        self.runs.iter().filter_map(failed).collect()
    }

    /// A row for each run: its axes, metrics, counters of `/proc/vmstat`, and what else is known.
    #[getter]
    fn table(&self) -> Table {
        let mut columns: Vec<(String, ArrayRef)> = self.of_runs(self.runs.iter());
        let kinds = [
            (FactKind::Metric, true),
            (FactKind::Run, true),
            (FactKind::Vmstat, true),
            (FactKind::Run, false),
        ];
        for (kind, numbers) in kinds {
            for name in self.names(kind, numbers) {
                if columns.iter().any(|(taken, _)| *taken == name) {
                    continue;
                }
                let fact = |run: &ChunkRun| {
                    run.facts.iter().find(|fact| fact.kind == kind && fact.name == name).cloned()
                };
                let facts = self.runs.iter().map(fact);
                let cells: ArrayRef = if numbers {
                    Arc::new(facts.map(|fact| fact.and_then(|fact| fact.value)).collect::<Float64Array>())
                } else {
                    Arc::new(facts.map(|fact| fact.and_then(|fact| fact.text)).collect::<StringArray>())
                };
                columns.push((name, cells));
            }
        }
        table(columns)
    }

    /// A row for each fact of each run, as the files have it.
    #[getter]
    fn facts(&self) -> Table {
        let rows = || self.runs.iter().flat_map(|run| run.facts.iter().map(move |fact| (run, fact)));
        let mut columns = self.of_runs(rows().map(|(run, _)| run));
        let kinds: StringArray = rows().map(|(_, fact)| Some(fact.kind.name())).collect();
        let names: StringArray = rows().map(|(_, fact)| Some(fact.name.as_str())).collect();
        let values: Float64Array = rows().map(|(_, fact)| fact.value).collect();
        let texts: StringArray = rows().map(|(_, fact)| fact.text.as_deref()).collect();
        columns.push(("kind".to_owned(), Arc::new(kinds)));
        columns.push(("name".to_owned(), Arc::new(names)));
        columns.push(("value".to_owned(), Arc::new(values)));
        columns.push(("text".to_owned(), Arc::new(texts)));
        table(columns)
    }

    /// The report of the command line: `text`, `json`, `csv` or `md`.
    #[pyo3(signature = (format="text", *, all=false, width=80))]
    fn report(&self, py: Python<'_>, format: &str, all: bool, width: usize) -> PyResult<String> {
        let recordings: Vec<_> =
            self.runs.iter().map(|run| chunk::recording_of(run, &self.workload)).collect();
        let rows = self.runs.iter().zip(&recordings).map(|(run, outcome)| SweepRow {
            values: run.values.clone(),
            outcome: outcome.as_ref().map_err(Clone::clone),
        });
        let rows = SweepRows {
            workload: self.workload.clone(),
            axes: self.axes.iter().map(|axis| axis.name.clone()).collect(),
            fixed: self.fixed.clone(),
            rows: rows.collect(),
            planned: self.planned,
            headlines: if all { Vec::new() } else { lab::headlines(&self.workload) },
        };
        let format = format_of(py, format)?;
        Ok(report::views::sweep(&rows).or_raised(py)?.render(format, width))
    }

    /// For each metric to look at first whether more of it is better, less is, or neither.
    #[getter]
    fn directions(&self) -> Vec<(&'static str, &'static str)> {
        let word = |direction| match direction {
            report::Direction::Higher => "maximize",
            report::Direction::Lower => "minimize",
            report::Direction::Neutral => "neither",
        };
        lab::headlines(&self.workload).iter().map(|line| (line.name, word(line.direction))).collect()
    }
}

impl Sweep {
    /// Names of facts that have numbers, or texts, sorted.
    fn names(&self, kind: FactKind, numbers: bool) -> Vec<String> {
        let wanted = |fact: &&Fact| fact.kind == kind && fact.text.is_none() == numbers;
        let facts = self.runs.iter().flat_map(|run| run.facts.iter().filter(wanted));
        let mut names: Vec<String> = facts.map(|fact| fact.name.clone()).collect();
        names.sort_unstable();
        names.dedup();
        names
    }

    /// Columns of what is known of a run before it runs.
    fn of_runs<'a>(&self, runs: impl Iterator<Item = &'a ChunkRun> + Clone) -> Vec<(String, ArrayRef)> {
        let places: Int64Array = runs.clone().map(|run| Some(run.run.cast_signed())).collect();
        let labels: StringArray = runs.clone().map(|run| Some(run.label.as_str())).collect();
        let seeds: UInt64Array = runs.clone().map(|run| Some(run.seed)).collect();
        let mut columns: Vec<(String, ArrayRef)> = vec![
            ("run".to_owned(), Arc::new(places)),
            ("label".to_owned(), Arc::new(labels)),
            ("seed".to_owned(), Arc::new(seeds)),
        ];
        for (place, axis) in self.axes.iter().enumerate() {
            let Some(name) = axis.column() else { continue };
            let texts = runs.clone().map(|run| run.values[place].as_str());
            let cells: ArrayRef = if axis.is_number {
                Arc::new(texts.map(|text| text.parse::<i64>().ok()).collect::<Int64Array>())
            } else {
                Arc::new(texts.map(Some).collect::<StringArray>())
            };
            columns.push((name, cells));
        }
        columns
    }
}

/// A table with these columns, each of numbers or of texts; `None` is no cell.
#[pyfunction]
pub(crate) fn table_of(
    numbers: Vec<(String, Vec<Option<f64>>)>,
    texts: Vec<(String, Vec<Option<String>>)>,
) -> Table {
    let texts = texts.into_iter().map(|(name, cells)| (name, Arc::new(StringArray::from(cells)) as ArrayRef));
    let numbers =
        numbers.into_iter().map(|(name, cells)| (name, Arc::new(Float64Array::from(cells)) as ArrayRef));
    table(texts.chain(numbers).collect())
}

fn table(columns: Vec<(String, ArrayRef)>) -> Table {
    let kind = |array: &ArrayRef| -> DataType { array.data_type().clone() };
    let fields: Vec<Field> =
        columns.iter().map(|(name, cells)| Field::new(name, kind(cells), true)).collect();
    let arrays = columns.into_iter().map(|(_, cells)| cells).collect();
    let batch = RecordBatch::try_new(Arc::new(Schema::new(fields)), arrays);
    Table::of_batch(batch.expect("the columns have a cell for each row"))
}
