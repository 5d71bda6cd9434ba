//! A trace on simulated kernels and plain policies, and how much memory it needs: `pagetide replay` and `size`.

use std::path::PathBuf;
use std::sync::Arc;

use lab::program_request::ProgramRequest;
use lab::replay::{Outcomes, ReplayRequest, results};
use lab::size::SizeRequest;
use lab::{Batch, Ended, LabError, PolicySpec, Request, check_new_folder};
use pyo3::prelude::*;
use report::{Format, views};

use crate::asked::{Asked, Reading};
use crate::errors::{OrRaised, raised};
use crate::recording::Recording;
use crate::run::{stopped, warned};
use crate::shown::{WIDTH, format_of, parsed};
use crate::table::{Kind, Table};
use crate::work::{Watch, Worked, watched};

/// A trace on several caches: a recording for each.
#[pyclass(frozen, module = "pagetide")]
pub(crate) struct Replay {
    outcomes: Arc<Outcomes>,
}

impl Replay {
    fn runs(&self) -> Vec<&recording::Recording> {
        self.outcomes.iter().filter_map(Ended::recording).collect()
    }
}

#[pymethods]
impl Replay {
    /// The recordings, one for each cache.
    #[getter]
    fn recordings(&self) -> Vec<Recording> {
        Recording::among(&self.outcomes)
    }

    /// Every number, a row for each, as the command line's `--format csv` has them.
    #[getter]
    fn table(&self, py: Python<'_>) -> PyResult<Table> {
        Ok(Table::of_runs(&self.report(py, "csv", false, WIDTH)?))
    }

    /// The replay as the command line's `--format json` has it.
    fn to_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        parsed(py, &self.report(py, "json", false, WIDTH)?)
    }

    /// The report of the command line: `text`, `json`, `csv` or `md`.
    #[pyo3(signature = (format="text", *, all=false, width=80))]
    fn report(&self, py: Python<'_>, format: &str, all: bool, width: usize) -> PyResult<String> {
        let runs = self.runs();
        let format = format_of(py, format)?;
        let view = lab::view(runs.iter().copied(), all, Vec::new());
        Ok(views::metrics(&runs, &view).or_raised(py)?.render(format, width))
    }

    fn __len__(&self) -> usize {
        self.runs().len()
    }

    fn __repr__(&self) -> String {
        let labels: Vec<&str> = self.runs().iter().map(|run| run.label.as_str()).collect();
        format!("<pagetide.Replay on {}>", labels.join(", "))
    }

    fn __str__(&self, py: Python<'_>) -> PyResult<String> {
        self.report(py, "text", false, WIDTH)
    }
}

/// What a replay is asked for beside the run.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct AskedReplay {
    trace: PathBuf,
    policies: Vec<String>,
    capacities: Vec<String>,
    mems: Vec<String>,
    kernels: Vec<String>,
    backends: Vec<String>,
    limits: Vec<String>,
    high: Option<String>,
    low: Option<String>,
    pace: Option<String>,
}

/// Replays a trace of requests, or of a program.
#[pyfunction]
pub(crate) fn replay_trace(
    py: Python<'_>,
    asked: Asked,
    of: AskedReplay,
    reading: Reading,
    jobs: usize,
    warn: &Bound<'_, PyAny>,
    watcher: Option<&Bound<'_, PyAny>>,
) -> PyResult<Replay> {
    let run = Request::from(asked);
    let worked = if lab::program::is_one(&of.trace) {
        program(py, run, of, jobs, warn, watcher)?
    } else {
        requests(py, run, of, &reading, jobs, watcher)?
    };
    let Worked { value: (outcomes, total, error), stopped_by } = worked;
    let finished = outcomes.len();
    let replay = Replay { outcomes: Arc::new(outcomes) };
    match (stopped_by, error) {
        (Some(stop), _) => {
            let told = LabError::Interrupted { finished, total }.to_string();
            let result = if finished == 0 { None } else { Some(Py::new(py, replay)?.into_any()) };
            Err(stopped(py, stop, &told, result))
        }
        (None, Some(error)) => Err(raised(py, &error)),
        (None, None) => Ok(replay),
    }
}

type Replayed = Worked<(Outcomes, usize, Option<LabError>)>;

fn requests(
    py: Python<'_>,
    run: Request,
    of: AskedReplay,
    reading: &Reading,
    jobs: usize,
    watcher: Option<&Bound<'_, PyAny>>,
) -> PyResult<Replayed> {
    let policies = of.policies.iter().map(|policy| policy.parse::<PolicySpec>());
    let request = ReplayRequest {
        trace: of.trace,
        options: reading.options().or_raised(py)?,
        policies: policies.collect::<Result<_, _>>().or_raised(py)?,
        capacities: of.capacities,
        mems: of.mems,
        kernels: of.kernels,
        machine: run.machine,
        swap: run.swap,
        limits: of.limits,
        high: of.high,
        low: of.low,
        sysctls: run.sysctls,
        seed: run.seed,
        interval: run.interval,
    };
    let plan = request.plan().or_raised(py)?;
    let total = plan.caches.len();
    let watch = Watch::new(total);
    let control = watch.replay_control();
    let Worked { value, stopped_by } =
        watched(py, &watch, watcher, || plan.run(jobs, &control, |_, _| Ok(())));
    let (finished, error) = results(value.or_raised(py)?, stopped_by.is_some());
    let outcomes = finished.into_iter().map(|(_, recording)| Ended::Recorded(recording)).collect();
    Ok(Worked { value: (outcomes, total, error), stopped_by })
}

fn program(
    py: Python<'_>,
    run: Request,
    of: AskedReplay,
    jobs: usize,
    warn: &Bound<'_, PyAny>,
    watcher: Option<&Bound<'_, PyAny>>,
) -> PyResult<Replayed> {
    let AskedReplay { trace, mems, kernels, backends, limits, high, low, pace, .. } = of;
    let request = ProgramRequest { trace, limits, high, low, pace, mems, kernels, backends, run };
    let plan = py.detach(|| request.plan()).or_raised(py)?;
    warned(py, &plan, warn)?;
    let watch = Watch::new(plan.len());
    let control = watch.control();
    let Worked { value, stopped_by } =
        watched(py, &watch, watcher, || lab::run_all(&plan, jobs, &control, |_, _| Ok(())));
    let Batch { recordings, error } = value.or_raised(py)?;
    let outcomes = recordings.into_iter().flatten().map(Ended::Recorded).collect();
    Ok(Worked { value: (outcomes, plan.len(), error), stopped_by })
}

/// How much memory a trace needs.
#[pyclass(frozen, module = "pagetide")]
pub(crate) struct Size {
    sized: report::Sized,
}

#[pymethods]
impl Size {
    /// The curve: a row for each limit, `max` for none; bytes, seconds and percent by their names.
    #[getter]
    fn table(&self) -> Table {
        Table::of_csv(&views::size(&self.sized).render(Format::Csv, WIDTH), |name| match name {
            "limit_bytes" | "keeps_target" | "killed" => Kind::Name,
            _ => Kind::Number,
        })
    }

    /// Everything, as the command line's `--format json` has it: the knee, the advice, notes.
    fn to_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        parsed(py, &self.report(py, "json", WIDTH)?)
    }

    /// What to set, and what it came to; nothing where no limit is enough.
    #[getter]
    fn advice<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.to_dict(py)?.get_item("advice")
    }

    /// The report of the command line: `text`, `json`, `csv` or `md`.
    #[pyo3(signature = (format="text", *, width=80))]
    fn report(&self, py: Python<'_>, format: &str, width: usize) -> PyResult<String> {
        Ok(views::size(&self.sized).render(format_of(py, format)?, width))
    }

    /// The curve as a figure, SVG; none where fewer than two limits were run.
    fn figure(&self) -> Option<String> {
        views::size_page(&self.sized).svg(None)
    }

    fn __repr__(&self) -> String {
        format!("<pagetide.Size of {}, {} runs>", self.sized.trace, self.sized.runs)
    }

    fn __str__(&self, py: Python<'_>) -> PyResult<String> {
        self.report(py, "text", WIDTH)
    }

    fn _repr_svg_(&self) -> Option<String> {
        self.figure()
    }
}

/// What a size is asked for.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct AskedSize {
    trace: PathBuf,
    kernel: Option<String>,
    machine: Option<String>,
    mem: Option<String>,
    sysctls: Vec<String>,
    seed: Option<u64>,
    seeds: Option<u64>,
    limits: Option<String>,
    points: Option<usize>,
    resolution: Option<String>,
    slowdown: Option<String>,
    fail_if: Vec<String>,
    headroom: Option<String>,
    sample: Option<String>,
    check_sample: bool,
    verify: Option<String>,
    program: Vec<String>,
    allow_host_pressure: bool,
    disk: Option<String>,
    interval: Option<String>,
}

/// Finds how much memory a trace needs.
#[pyfunction]
pub(crate) fn size_trace(
    py: Python<'_>,
    of: AskedSize,
    reading: Reading,
    jobs: usize,
    out: Option<PathBuf>,
    watcher: Option<&Bound<'_, PyAny>>,
) -> PyResult<Size> {
    let request = SizeRequest {
        trace: of.trace,
        options: reading.options().or_raised(py)?,
        timing: reading.timing,
        kernel: of.kernel,
        machine: of.machine,
        mem: of.mem,
        sysctls: of.sysctls,
        seed: of.seed,
        seeds: of.seeds,
        limits: of.limits,
        points: of.points,
        resolution: of.resolution,
        slowdown: of.slowdown,
        fail_if: of.fail_if,
        headroom: of.headroom,
        sample: of.sample,
        check_sample: of.check_sample,
        verify: of.verify,
        program: of.program.into_iter().map(Into::into).collect(),
        allow_host_pressure: of.allow_host_pressure,
        disk: of.disk,
        interval: of.interval,
    };
    let plan = request.plan().or_raised(py)?;
    out.as_deref().map_or(Ok(()), check_new_folder).or_raised(py)?;
    let watch = Watch::new(0);
    let control = watch.size_control();
    let Worked { value, stopped_by } =
        watched(py, &watch, watcher, || plan.run(jobs, &control, out.as_deref()));
    match (value, stopped_by) {
        (Ok((sized, interrupted)), Some(stop)) => {
            let told = interrupted.map_or_else(|| "interrupted".to_owned(), |error| error.to_string());
            Err(stopped(py, stop, &told, Some(Py::new(py, Size { sized })?.into_any())))
        }
        (Err(_), Some(stop)) => Err(stopped(py, stop, "interrupted before anything was known", None)),
        (found, None) => found.map(|(sized, _)| Size { sized }).or_raised(py),
    }
}
