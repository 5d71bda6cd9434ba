//! Workloads and machines of files, checked as they are made.

use std::path::PathBuf;
use std::sync::atomic::AtomicBool;

use pyo3::prelude::*;

use crate::errors::OrRaised;

/// The machine as an option has it, its memory, its sysctls.
type MachineParts = (String, Option<String>, Vec<(String, String)>);

/// The name of the workload that a file describes.
#[pyfunction]
pub(crate) fn check_workload(py: Python<'_>, text: &str) -> PyResult<&'static str> {
    lab::workload_file::name_of(text).or_raised(py)
}

/// A job file of fio as a workload file.
#[pyfunction]
pub(crate) fn translate_fio(py: Python<'_>, name: &str, text: &str) -> PyResult<String> {
    lab::workload_file::of_fio(name, text).or_raised(py)
}

/// A machine file: the machine, its memory, and sysctls.
#[pyfunction]
pub(crate) fn read_machine(py: Python<'_>, text: &str) -> PyResult<MachineParts> {
    let file = lab::machine_file::read_text(text).or_raised(py)?;
    let pair = |pair: &String| pair.split_once('=').map(|(name, value)| (name.to_owned(), value.to_owned()));
    Ok((file.machine, file.memory, file.sysctls.iter().filter_map(pair).collect()))
}

/// This host as a machine file; files are made in `directory`, and removed.
#[pyfunction]
pub(crate) fn probe_machine(py: Python<'_>, directory: PathBuf) -> PyResult<String> {
    py.detach(|| lab::machine_file::probe(&directory, &AtomicBool::new(false))).or_raised(py)
}
