//! A recording: what a run leaves, in memory.
//!
//! Every figure is the recording's own field; texts and pages are the command line's. Left out: events, which are in
//! the folder (`events/*.parquet`) and may be more than memory holds.

use std::ops::Deref;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use lab::replay::Outcomes;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use report::{Group, views};

use crate::errors::OrRaised;
use crate::shown::{WIDTH, figure, figures, format_of, framed, html, page, parsed};
use crate::table::Table;

/// What one run leaves: metrics, counters, samples, waits.
#[pyclass(frozen, module = "pagetide")]
#[derive(Debug)]
pub(crate) struct Recording {
    inner: Held,
    /// The folder that it is in.
    path: Option<PathBuf>,
    series: OnceLock<Table>,
    samples: OnceLock<Table>,
    waits: OnceLock<Table>,
}

/// A recording of its own, or one of the outcomes of many runs: both without a copy.
#[derive(Debug, Clone)]
pub(crate) enum Held {
    /// Of its own.
    Own(Arc<recording::Recording>),
    /// That of an outcome that has one.
    Among(Arc<Outcomes>, usize),
}

impl Deref for Held {
    type Target = recording::Recording;

    fn deref(&self) -> &Self::Target {
        match self {
            Self::Own(recording) => recording,
            Self::Among(all, place) => all[*place].recording().expect("it was one with a recording"),
        }
    }
}

impl From<Arc<recording::Recording>> for Held {
    fn from(recording: Arc<recording::Recording>) -> Self {
        Self::Own(recording)
    }
}

impl Recording {
    pub(crate) fn new(inner: impl Into<Held>, path: Option<PathBuf>) -> Self {
        let inner = inner.into();
        Self { inner, path, series: OnceLock::new(), samples: OnceLock::new(), waits: OnceLock::new() }
    }

    /// The recordings among `outcomes`, in their order.
    pub(crate) fn among(outcomes: &Arc<Outcomes>) -> Vec<Self> {
        let places = outcomes.iter().enumerate().filter(|(_, outcome)| outcome.recording().is_some());
        places.map(|(place, _)| Self::new(Held::Among(Arc::clone(outcomes), place), None)).collect()
    }
}

#[pymethods]
impl Recording {
    /// What the run is called in tables; often the kernel.
    #[getter]
    fn label(&self) -> &str {
        &self.inner.label
    }

    /// The workload.
    #[getter]
    fn workload(&self) -> &str {
        &self.inner.workload
    }

    /// Where it ran: `sim`, `host`, `vm:6.12`.
    #[getter]
    fn backend(&self) -> &str {
        &self.inner.backend
    }

    /// The kernel with its features, or the release of a real one.
    #[getter]
    fn kernel(&self) -> &str {
        &self.inner.kernel
    }

    /// The seed of all randomness.
    #[getter]
    fn seed(&self) -> u64 {
        self.inner.seed
    }

    /// The machine in a few words.
    #[getter]
    fn machine(&self) -> &str {
        &self.inner.machine
    }

    /// The command that makes the run again.
    #[getter]
    fn command(&self) -> &str {
        &self.inner.command
    }

    /// The resolved scenario, TOML.
    #[getter]
    fn scenario(&self) -> &str {
        &self.inner.scenario_toml
    }

    /// The pagetide that made it.
    #[getter]
    fn version(&self) -> &str {
        &self.inner.version
    }

    /// The folder that it was read from or written to.
    #[getter]
    fn path(&self) -> Option<&std::path::Path> {
        self.path.as_deref()
    }

    /// The workload's results, one number each; names end in their unit.
    #[getter]
    fn metrics<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        self.inner.metrics.clone().into_pyobject(py)
    }

    /// Counters of `/proc/vmstat`: events over the run, gauges at its end; pages unless the name says otherwise.
    #[getter]
    fn vmstat<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        self.inner.vmstat.clone().into_pyobject(py)
    }

    /// For each cgroup path, `memory.stat` and `memory.events`; bytes and counts as the kernel has them.
    #[getter]
    fn memcg<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        self.inner.memcg.clone().into_pyobject(py)
    }

    /// What could not be measured, or is assumed: a sentence each.
    #[getter]
    fn notes(&self) -> Vec<String> {
        self.inner.notes.clone()
    }

    /// How long the run took on its own clock, in seconds: simulated, or of a real kernel.
    #[getter]
    fn seconds(&self) -> Option<f64> {
        self.inner.duration_ns().map(|ns| ns as f64 / 1e9)
    }

    /// How long it took on this machine's clock, in seconds, if that is known.
    #[getter]
    fn wall_seconds(&self) -> Option<f64> {
        self.inner.wall_ns.map(|ns| ns as f64 / 1e9)
    }

    /// Whether the run did not end: it holds what had reached the disk by then.
    #[getter]
    fn incomplete(&self) -> bool {
        self.inner.incomplete
    }

    /// The hash of its bytes: two simulated runs of one scenario have the same.
    #[getter]
    fn content_hash(&self, py: Python<'_>) -> String {
        py.detach(|| self.inner.content_hash().to_string())
    }

    /// Counters over time: `time_ns` and a column for each that changes.
    #[getter]
    fn series(&self) -> Table {
        self.series.get_or_init(|| Table::of(self.inner.series_table())).clone()
    }

    /// Counters that never changed, by name.
    #[getter]
    fn constant<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        self.inner.series.constant.clone().into_pyobject(py)
    }

    /// Results that have many samples: `name` and `value`.
    #[getter]
    fn samples(&self) -> Table {
        self.samples.get_or_init(|| Table::of(self.inner.samples_table())).clone()
    }

    /// Who waited for what, how long in nanoseconds, and what ended it.
    #[getter]
    fn waits(&self) -> Table {
        self.waits.get_or_init(|| Table::of(self.inner.waits_table())).clone()
    }

    /// Every number of the run, a row for each, as the command line's `--format csv` has them.
    #[getter]
    fn table(&self, py: Python<'_>) -> PyResult<Table> {
        Ok(Table::of_runs(&self.report(py, "csv", false, WIDTH)?))
    }

    /// The recording as the command line's `--format json` has it.
    fn to_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let object = parsed(py, &self.report(py, "json", false, WIDTH)?)?;
        object.get_item("runs")?.get_item(0)
    }

    /// The report of the command line: `text`, `json`, `csv` or `md`.
    #[pyo3(signature = (format="text", *, all=false, width=80))]
    fn report(&self, py: Python<'_>, format: &str, all: bool, width: usize) -> PyResult<String> {
        let run = &*self.inner;
        let command = (format == "md").then(|| self.group().command);
        let format = format_of(py, format)?;
        Ok(views::run(run, command, &lab::view([run], all, Vec::new())).render(format, width))
    }

    /// The page of `pagetide report`, one HTML file with its figures.
    fn html(&self, py: Python<'_>) -> PyResult<String> {
        html(py, &page(&[self.group()], Vec::new()))
    }

    /// Names of the figures of the page.
    #[getter]
    fn figures(&self, py: Python<'_>) -> PyResult<Vec<String>> {
        figures(py, &page(&[self.group()], Vec::new()))
    }

    /// A figure of the page as SVG: the one of this name, or the first.
    #[pyo3(signature = (name=None))]
    fn figure(&self, py: Python<'_>, name: Option<&str>) -> PyResult<String> {
        figure(py, &page(&[self.group()], Vec::new()), name)
    }

    /// Writes the recording as a new folder, which the command line reads, too.
    fn write(&self, py: Python<'_>, path: PathBuf) -> PyResult<Self> {
        py.detach(|| self.inner.write(&path)).or_raised(py)?;
        Ok(Self::new(self.inner.clone(), Some(path)))
    }

    fn __repr__(&self) -> String {
        let run = &*self.inner;
        format!("<pagetide.Recording of {} on {}, seed {}>", run.workload, run.label, run.seed)
    }

    fn __str__(&self, py: Python<'_>) -> PyResult<String> {
        self.report(py, "text", false, WIDTH)
    }

    fn _repr_html_(&self, py: Python<'_>) -> PyResult<String> {
        Ok(framed(&self.html(py)?))
    }
}

impl Recording {
    fn group(&self) -> Group<'_> {
        let (label, command) = (self.inner.label.clone(), self.inner.command.clone());
        Group { label, command, recordings: vec![&self.inner] }
    }
}

/// Reads the recording in the folder `path`.
#[pyfunction]
pub(crate) fn load(py: Python<'_>, path: PathBuf) -> PyResult<Vec<Recording>> {
    let folders = [path];
    let read = py.detach(|| lab::folders::load(&folders)).or_raised(py)?;
    let runs = read.columns.into_iter().flat_map(|column| column.recordings.into_iter().zip(column.folders));
    Ok(runs.map(|(run, folder)| Recording::new(Arc::new(run), Some(folder))).collect())
}
