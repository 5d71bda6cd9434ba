//! Errors of the lab as Python's exceptions: the command line's message, causes and hint.
//!
//! The classes are those of the package (`pagetide/_errors.py`), one for each of the lab's; what decides an exit code
//! there decides the class here.

use lab::{Class, LabError};
use pyo3::prelude::*;

/// The exception that tells `error`.
pub(crate) fn raised(py: Python<'_>, error: &LabError) -> PyErr {
    let class = match error.class() {
        Class::Input | Class::CommandNotFound | Class::CommandNotExecutable => "InputError",
        Class::Internal => "InternalError",
        Class::Invariant => "InvariantError",
        Class::Limit => "LimitError",
        Class::Interrupted => "Interrupted",
    };
    told(py, class, &error.to_string(), error.causes(), error.hint())
}

/// Options that do not go together.
pub(crate) fn usage(py: Python<'_>, problem: &str) -> PyErr {
    told(py, "UsageError", problem, Vec::new(), None)
}

/// Work that was stopped by Ctrl-C, with what had finished, if that is something.
pub(crate) fn interrupted(py: Python<'_>, message: &str, result: Option<Py<PyAny>>) -> PyErr {
    let raised = told(py, "Interrupted", message, Vec::new(), None);
    match result.map(|result| raised.value(py).setattr("result", result)) {
        Some(Err(error)) => error,
        None | Some(Ok(())) => raised,
    }
}

/// What [`raised`] does, for `?`.
pub(crate) trait OrRaised<T> {
    /// The value, or the exception.
    fn or_raised(self, py: Python<'_>) -> PyResult<T>;
}

impl<T, E: Into<LabError>> OrRaised<T> for Result<T, E> {
    fn or_raised(self, py: Python<'_>) -> PyResult<T> {
        self.map_err(|error| raised(py, &error.into()))
    }
}

fn told(py: Python<'_>, class: &str, message: &str, causes: Vec<String>, hint: Option<String>) -> PyErr {
    let class = py.import("pagetide._errors").and_then(|module| module.getattr(class));
    match class.and_then(|class| class.call1((message, causes, hint))) {
        Ok(raised) => PyErr::from_value(raised),
        Err(error) => error,
    }
}
