//! Workload files: which file is one, and the workload that comes of it.
//!
//! Next: [`workload::written`], the language; [`crate::resolve::request`], which runs them.

use std::ffi::OsStr;
use std::path::Path;

use recording::Recording;
use workload::scenario::ScenarioProblem;
use workload::written::Mistake;
use workload::written::fio::{Translated, translate};
use workload::{Scenario, ScenarioError, WorkloadSpec};

use crate::error::LabError;
use crate::name::names::Names;

/// How files of `fio` end.
const FIO: &str = "fio";

/// Whether a file is called like a workload or a scenario.
pub(crate) fn is_called_so(path: &Path) -> bool {
    let extension = path.extension();
    extension == Some(OsStr::new("toml")) || extension == Some(OsStr::new(FIO))
}

/// Whether `text`, of the file `path`, is a workload file and no scenario.
pub(crate) fn is_one(path: &Path, text: &str) -> bool {
    path.extension() == Some(OsStr::new(FIO)) || workload::written::is_one(text)
}

/// What came of a workload file.
pub(crate) struct Read {
    pub(crate) spec: &'static WorkloadSpec,
    /// What is to be said of it.
    pub(crate) told: Option<String>,
}

/// The workload that a file describes.
///
/// # Errors
/// The first mistake in it, at its line.
pub(crate) fn read(path: &Path, text: &str) -> Result<Read, LabError> {
    let failed = |mistake| failed(path, mistake);
    if path.extension() != Some(OsStr::new(FIO)) {
        let spec = WorkloadSpec::of_file(text).map_err(failed)?;
        return Ok(Read { spec, told: None });
    }
    let stem = path.file_stem().map_or_else(|| "job".into(), OsStr::to_string_lossy);
    let Translated { text, ignored } = translate(&stem, text).map_err(failed)?;
    // What is wrong with it then is at no line of the job file.
    let spec = WorkloadSpec::of_file(&text)
        .map_err(|mistake| failed(Mistake { position: None, message: mistake.to_string(), ..mistake }))?;
    let told = || format!("options of fio that change nothing here: {}", ignored.join(", "));
    Ok(Read { spec, told: (!ignored.is_empty()).then(told) })
}

/// The name of the workload that a text describes.
///
/// # Errors
/// The first mistake in it, at its line.
pub fn name_of(text: &str) -> Result<&'static str, LabError> {
    read(Path::new("workload text"), text).map(|read| read.spec.name)
}

/// A job file of fio as a workload file; `name` is what it is called.
///
/// # Errors
/// An option that changes the result and is not supported, at its line.
pub fn of_fio(name: &str, text: &str) -> Result<String, LabError> {
    let translated = translate(name, text).map_err(|mistake| failed(Path::new("job file"), mistake))?;
    name_of(&translated.text)?;
    Ok(translated.text)
}

/// A mistake in the file at `path`.
pub(crate) fn failed(path: &Path, mistake: Mistake) -> LabError {
    let problem = ScenarioProblem::Model { message: mistake.message, hint: mistake.hint };
    let source = Box::new(ScenarioError { position: mistake.position, problem });
    LabError::File { path: path.to_owned(), source }
}

/// The workload of a recording; none where it was made by something else.
pub(crate) fn spec_of(recording: &Recording) -> Option<&'static WorkloadSpec> {
    WorkloadSpec::find(&recording.workload).ok().or_else(|| {
        let scenario = Scenario::read(&recording.scenario_toml, &Names::default().vocabulary()).ok()?;
        Some(scenario.workload.spec())
    })
}
