//! One scenario, one recording: `pagetide run`.

use std::path::PathBuf;
use std::sync::Arc;

use lab::{Batch, Control, KeepRuns, LabError, PlannedRun, Request, check_new_folder};
use pyo3::prelude::*;
use pyo3::types::PyAny;

use crate::asked::Asked;
use crate::errors::{OrRaised, interrupted, raised};
use crate::recording::Recording;
use crate::work::{Watch, Worked, watched};

/// The scenario with every value, as TOML, and what the file says in vain.
#[pyfunction]
pub(crate) fn resolve(py: Python<'_>, asked: Asked) -> PyResult<(String, Option<String>)> {
    let (scenario, told) = Request::from(asked).resolve_telling().or_raised(py)?;
    Ok((scenario.to_toml(), told))
}

/// Runs one scenario; `warn` is called with what the reader has to know.
#[pyfunction]
pub(crate) fn run(
    py: Python<'_>,
    asked: Asked,
    out: Option<PathBuf>,
    warn: &Bound<'_, PyAny>,
    watcher: Option<&Bound<'_, PyAny>>,
) -> PyResult<Recording> {
    let host = asked.host().or_raised(py)?;
    let (scenario, told) = Request::from(asked).resolve_telling().or_raised(py)?;
    let plan = [PlannedRun { label: lab::label(&scenario), scenario }];
    told.map_or(Ok(()), |told| warn.call1((told,)).map(drop))?;
    warned(py, &plan, warn)?;
    if let Some(out) = &out {
        check_new_folder(out).or_raised(py)?;
    }
    let watch = Watch::new(1);
    let mut control = Control { host, ..watch.control() };
    if let Some(out) = out.clone() {
        control.kept = Some(KeepRuns { detail: None, folder: Arc::new(move |_| out.clone()) });
    }
    let keep = |_: usize, recording: &recording::Recording| match &out {
        Some(out) => recording.write(out).map(drop).map_err(LabError::from),
        None => Ok(()),
    };
    let Worked { value, stopped_by } =
        watched(py, &watch, watcher, || lab::run_all(&plan, 1, &control, keep));
    let Batch { mut recordings, error } = value.or_raised(py)?;
    let recording = recordings.pop().flatten().map(|run| Recording::new(Arc::new(run), out));
    if let Some(error) = stopped_by {
        return Err(stopped(py, error, "interrupted: the run did not finish", None));
    }
    match (recording, error) {
        (Some(recording), None) => Ok(recording),
        (_, Some(error)) => Err(raised(py, &error)),
        (None, None) => unreachable!("a run leaves a recording or an error"),
    }
}

/// What the reader of runs has to know before them.
pub(crate) fn warned(py: Python<'_>, plan: &[PlannedRun], warn: &Bound<'_, PyAny>) -> PyResult<()> {
    for warning in lab::batch::warnings(plan) {
        warn.call1((warning,))?;
    }
    let said = py.detach(|| lab::real::check(plan, &lab::HostPolicy::default())).or_raised(py)?;
    said.into_iter().try_for_each(|text| warn.call1((text,)).map(drop))
}

/// The exception of work that `error` stopped: Ctrl-C has what had finished, anything else goes on as it is.
pub(crate) fn stopped(py: Python<'_>, error: PyErr, message: &str, result: Option<Py<PyAny>>) -> PyErr {
    if !error.is_instance_of::<pyo3::exceptions::PyKeyboardInterrupt>(py) {
        return error;
    }
    let interrupted = interrupted(py, message, result);
    interrupted.set_cause(py, Some(error));
    interrupted
}
