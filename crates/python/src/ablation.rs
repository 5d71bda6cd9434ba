//! Every subset of features: `pagetide ablate`.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use lab::ablate::{self, Ablation as Planned};
use lab::replay::Outcomes;
use lab::sweep::{SweepControl, SweepFolder, SweepPlan, problem};
use lab::{Control, Ended, HostPolicy, KeepRuns, LabError, Request};
use pyo3::prelude::*;

use crate::asked::Asked;
use crate::errors::{OrRaised, raised, usage};
use crate::recording::Recording;
use crate::run::{stopped, warned};
use crate::shown::{WIDTH, format_of, parsed};
use crate::table::Table;
use crate::work::{Watch, Worked, watched};

/// A workload on every kernel that some features make, switched or not.
#[pyclass(frozen, module = "pagetide")]
pub(crate) struct Ablation {
    plan: Planned,
    outcomes: Arc<Outcomes>,
}

#[pymethods]
impl Ablation {
    /// The changes to the first kernel, such as `+root-aging`.
    #[getter]
    fn features(&self) -> Vec<String> {
        self.plan.factors.iter().map(ToString::to_string).collect()
    }

    /// The recordings of the runs that left one: seed after seed, in each the kernels in their order.
    #[getter]
    fn recordings(&self) -> Vec<Recording> {
        Recording::among(&self.outcomes)
    }

    /// One dictionary for each metric and each feature, or pair of features: effect, interval, verdict.
    #[getter]
    fn effects<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.to_dict(py)?.get_item("effects")
    }

    /// Every number of the runs and all effects, a row for each, as the command line's `--format csv` has them.
    #[getter]
    fn table(&self, py: Python<'_>) -> PyResult<Table> {
        Ok(Table::of_runs(&self.report(py, "csv", true, WIDTH)?))
    }

    /// The ablation as the command line's `--format json` has it.
    fn to_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        parsed(py, &self.report(py, "json", false, WIDTH)?)
    }

    /// The report of the command line: `text`, `json`, `csv` or `md`.
    #[pyo3(signature = (format="text", *, all=false, width=80))]
    fn report(&self, py: Python<'_>, format: &str, all: bool, width: usize) -> PyResult<String> {
        let format = format_of(py, format)?;
        let view = lab::view(self.outcomes.iter().filter_map(Ended::recording), all, Vec::new());
        let ablated = self.plan.ablated(&self.outcomes, view);
        Ok(report::views::ablate(&ablated).or_raised(py)?.render(format, width))
    }

    fn __repr__(&self) -> String {
        format!("<pagetide.Ablation: {}>", self.plan.size())
    }

    fn __str__(&self, py: Python<'_>) -> PyResult<String> {
        self.report(py, "text", false, WIDTH)
    }
}

/// Runs every subset of features.
#[pyfunction]
#[pyo3(signature = (asked, features, seeds, jobs, out, resume, warn, watcher))]
pub(crate) fn ablate_features(
    py: Python<'_>,
    asked: Asked,
    features: Vec<String>,
    seeds: u64,
    jobs: usize,
    out: Option<PathBuf>,
    resume: bool,
    warn: &Bound<'_, PyAny>,
    watcher: Option<&Bound<'_, PyAny>>,
) -> PyResult<Ablation> {
    let host = asked.host().or_raised(py)?;
    let plan = ablate::plan(&Request::from(asked), &features, seeds).or_raised(py)?;
    warned(py, plan.plan.planned().unwrap_or_default(), warn)?;
    let how = How { host, jobs, out, resume };
    let (outcomes, stopped_by) = how.run(py, &plan.plan, watcher)?;
    let total = outcomes.len();
    let finished = outcomes.iter().filter(|outcome| outcome.recording().is_some()).count();
    if finished == 0 && stopped_by.is_none() {
        // There is no table whose rows could say why.
        let failure = outcomes.iter().find_map(Ended::failure);
        let error = failure.map(|error| raised(py, error));
        return Err(error.unwrap_or_else(|| usage(py, "nothing was run")));
    }
    let ablation = Ablation { plan, outcomes: Arc::new(outcomes) };
    match stopped_by {
        None => Ok(ablation),
        Some(error) => {
            let told = LabError::Interrupted { finished, total }.to_string();
            let result = if finished == 0 { None } else { Some(Py::new(py, ablation)?.into_any()) };
            Err(stopped(py, error, &told, result))
        }
    }
}

/// What runs may take of this host, how many are made at a time, and where they are kept.
struct How {
    host: HostPolicy,
    jobs: usize,
    out: Option<PathBuf>,
    resume: bool,
}

impl How {
    /// Runs what has not finished of `plan`; returns also the exception that stopped it.
    fn run(
        self,
        py: Python<'_>,
        plan: &SweepPlan,
        watcher: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<(Outcomes, Option<PyErr>)> {
        let folder = self.out.as_deref().map(|out| SweepFolder::open(out, plan, self.resume));
        let (folder, finished) = match folder.transpose().or_raised(py)? {
            Some((folder, finished)) => (Some(folder), finished),
            None => (None, vec![None; plan.runs.len()]),
        };
        let watch = Watch::new(finished.iter().filter(|run| run.is_none()).count());
        let mut control = Control { host: self.host, ..watch.control() };
        if let Some(folder) = folder.clone() {
            let folder = Arc::new(move |run| folder.folder_of(run));
            control.kept = Some(KeepRuns { detail: None, folder });
        }
        let control = SweepControl::Runs(control);
        let keep = |index: usize, recording: &recording::Recording| match &folder {
            Some(folder) => folder.keep(index, recording),
            None => Ok(()),
        };
        let work = || plan.run(finished, self.jobs, &control, keep);
        let Worked { value, stopped_by } = watched(py, &watch, watcher, work);
        let outcomes = value.or_raised(py)?;
        let is_stopped = watch.stop.load(Ordering::Relaxed);
        // What keeps all of them from being told of is raised; failures of some are rows.
        match problem(&outcomes, is_stopped).filter(|_| !outcomes.iter().any(is_told)) {
            Some(error) if stopped_by.is_none() => Err(raised(py, &error)),
            _ => Ok((outcomes, stopped_by)),
        }
    }
}

/// Whether a run has a row.
fn is_told(outcome: &Ended) -> bool {
    outcome.recording().is_some() || outcome.failure().is_some()
}
