//! Several runs side by side: `pagetide compare`, of kernels that run now or of recordings made earlier.

use std::path::PathBuf;
use std::sync::Arc;

use lab::batch::run_rest;
use lab::folders::{Loaded, SideBySide};
use lab::{Batch, Control, KeepRuns, LabError, Request, compare};
use pyo3::prelude::*;
use report::{Grid, Group, views};

use crate::asked::Asked;
use crate::errors::{OrRaised, raised};
use crate::recording::Recording;
use crate::run::{stopped, warned};
use crate::shown::{WIDTH, figure, figures, format_of, framed, html, page, parsed};
use crate::table::Table;
use crate::work::{Watch, Worked, watched};

/// Runs side by side; the first column is the baseline.
#[pyclass(frozen, module = "pagetide")]
#[derive(Debug)]
pub(crate) struct Comparison {
    of: Of,
    /// What its reader has to know.
    warnings: Vec<String>,
}

/// What is compared.
#[derive(Debug)]
enum Of {
    /// Runs of a plan, an entry for each.
    Plan(Box<lab::Comparison>, Vec<Option<Arc<recording::Recording>>>),
    /// Columns that were read.
    Columns(Vec<Column>),
}

/// Recordings that differ in their seed only, with their folders.
#[derive(Debug)]
struct Column {
    label: String,
    command: String,
    recordings: Vec<(Arc<recording::Recording>, PathBuf)>,
}

impl From<Loaded> for Column {
    fn from(loaded: Loaded) -> Self {
        let Loaded { label, command, recordings, folders } = loaded;
        Self { label, command, recordings: recordings.into_iter().map(Arc::new).zip(folders).collect() }
    }
}

impl Column {
    fn group(&self) -> Group<'_> {
        let (label, command) = (self.label.clone(), self.command.clone());
        Group { label, command, recordings: self.recordings.iter().map(|(run, _)| &**run).collect() }
    }
}

impl Comparison {
    fn groups(&self) -> Vec<Group<'_>> {
        match &self.of {
            Of::Plan(plan, recordings) => plan.groups(recordings),
            Of::Columns(columns) => columns.iter().map(Column::group).collect(),
        }
    }

    /// Further points of the workload's experiment.
    fn grid(&self) -> Option<Grid<'_>> {
        match &self.of {
            Of::Plan(plan, recordings) => plan.grid(recordings),
            Of::Columns(_) => None,
        }
    }
}

#[pymethods]
impl Comparison {
    /// What the columns are called, the baseline first.
    #[getter]
    fn labels(&self) -> Vec<String> {
        self.groups().into_iter().map(|group| group.label).collect()
    }

    /// The recordings, column after column, seed after seed.
    #[getter]
    fn recordings(&self) -> Vec<Recording> {
        match &self.of {
            Of::Plan(_, recordings) => {
                recordings.iter().flatten().map(|run| Recording::new(Arc::clone(run), None)).collect()
            }
            Of::Columns(columns) => {
                let all = columns.iter().flat_map(|column| &column.recordings);
                all.map(|(run, path)| Recording::new(Arc::clone(run), Some(path.clone()))).collect()
            }
        }
    }

    /// What was assumed, or differs beyond what is compared: a sentence each.
    #[getter]
    fn warnings(&self) -> Vec<String> {
        self.warnings.clone()
    }

    /// One dictionary for each metric of each column but the baseline: mean, spread, change, interval, verdict.
    #[getter]
    fn rows<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.to_dict(py)?.get_item("comparison")?.get_item("rows")
    }

    /// Every number of the runs and of their comparison, a row for each, as the command line's `--format csv` has them.
    #[getter]
    fn table(&self, py: Python<'_>) -> PyResult<Table> {
        Ok(Table::of_runs(&self.report(py, "csv", false, WIDTH)?))
    }

    /// The comparison as the command line's `--format json` has it.
    fn to_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        parsed(py, &self.report(py, "json", false, WIDTH)?)
    }

    /// The report of the command line: `text`, `json`, `csv` or `md`.
    #[pyo3(signature = (format="text", *, all=false, width=80))]
    fn report(&self, py: Python<'_>, format: &str, all: bool, width: usize) -> PyResult<String> {
        let format = format_of(py, format)?;
        let (groups, grid) = (self.groups(), self.grid());
        let recordings = groups.iter().flat_map(|group| group.recordings.iter().copied());
        let view = lab::view(recordings, all, self.warnings_of_columns());
        let document = match &grid {
            None => views::compare(&groups, &view),
            Some(grid) => views::grid(grid, &groups, &view),
        };
        Ok(document.or_raised(py)?.render(format, width))
    }

    /// The page of `pagetide report`, one HTML file with its figures.
    fn html(&self, py: Python<'_>) -> PyResult<String> {
        html(py, &page(&self.groups(), self.warnings_of_columns()))
    }

    /// Names of the figures of the page.
    #[getter]
    fn figures(&self, py: Python<'_>) -> PyResult<Vec<String>> {
        figures(py, &page(&self.groups(), Vec::new()))
    }

    /// A figure of the page as SVG: the one of this name, or the first.
    #[pyo3(signature = (name=None))]
    fn figure(&self, py: Python<'_>, name: Option<&str>) -> PyResult<String> {
        figure(py, &page(&self.groups(), Vec::new()), name)
    }

    fn __repr__(&self) -> String {
        format!("<pagetide.Comparison of {}>", self.labels().join(", "))
    }

    fn __str__(&self, py: Python<'_>) -> PyResult<String> {
        self.report(py, "text", false, WIDTH)
    }

    fn _repr_html_(&self, py: Python<'_>) -> PyResult<String> {
        Ok(framed(&self.html(py)?))
    }
}

impl Comparison {
    /// Those that the command line puts into the report: how recordings differ that were made apart.
    fn warnings_of_columns(&self) -> Vec<String> {
        match &self.of {
            Of::Plan(..) => Vec::new(),
            Of::Columns(_) => self.warnings.clone(),
        }
    }
}

/// Runs a workload on several kernels and backends, each with so many seeds.
#[pyfunction]
#[pyo3(signature = (asked, kernels, backends, seeds, jobs, out, resume, warn, watcher))]
pub(crate) fn compare_kernels(
    py: Python<'_>,
    asked: Asked,
    kernels: Vec<String>,
    backends: Vec<String>,
    seeds: u64,
    jobs: usize,
    out: Option<PathBuf>,
    resume: bool,
    warn: &Bound<'_, PyAny>,
    watcher: Option<&Bound<'_, PyAny>>,
) -> PyResult<Comparison> {
    let host = asked.host().or_raised(py)?;
    let comparison = compare::plan(&Request::from(asked), &kernels, &backends, seeds).or_raised(py)?;
    let plan = comparison.runs();
    warned(py, &plan, warn)?;
    let (folder, finished) = match &out {
        Some(out) => {
            let (folder, finished) = comparison.folder(out, resume).or_raised(py)?;
            (Some(folder), finished)
        }
        None => (None, vec![None; plan.len()]),
    };
    let watch = Watch::new(finished.iter().filter(|run| run.is_none()).count());
    let mut control = Control { host, ..watch.control() };
    if let Some(folder) = folder.clone() {
        control.kept = Some(KeepRuns { detail: None, folder: Arc::new(move |run| folder.folder_of(run)) });
    }
    let keep = |index: usize, recording: &recording::Recording| match &folder {
        Some(folder) => folder.keep(index, recording),
        None => Ok(()),
    };
    let work = || run_rest(&plan, finished, jobs, &control, keep);
    let Worked { value, stopped_by } = watched(py, &watch, watcher, work);
    let Batch { recordings, error } = value.or_raised(py)?;
    let warnings = comparison.assumed.clone();
    let recordings: Vec<_> = recordings.into_iter().map(|run| run.map(Arc::new)).collect();
    let (done, total) = (recordings.iter().flatten().count(), recordings.len());
    let compared = Comparison { of: Of::Plan(Box::new(comparison), recordings), warnings };
    if let Some(error) = stopped_by {
        let finished = Py::new(py, compared)?.into_any();
        let told = LabError::Interrupted { finished: done, total }.to_string();
        return Err(stopped(py, error, &told, Some(finished)));
    }
    match error {
        None => Ok(compared),
        Some(error) => Err(raised(py, &error)),
    }
}

/// Puts recordings side by side that are in these folders.
#[pyfunction]
pub(crate) fn compare_folders(py: Python<'_>, folders: Vec<PathBuf>) -> PyResult<Comparison> {
    let SideBySide { columns, warnings, mut unfinished } =
        py.detach(|| lab::folders::load(&folders)).or_raised(py)?;
    unfinished.extend(warnings);
    Ok(Comparison { of: Of::Columns(columns.into_iter().map(Column::from).collect()), warnings: unfinished })
}
