//! Names that can be given, and the zones of a machine: `pagetide list`.

use lab::names::list;
use lab::zones::ZonesRequest;
use pyo3::prelude::*;
use report::{Format, views};

use crate::errors::{OrRaised, usage};
use crate::shown::{WIDTH, parsed};

/// The rows of a list, each a dictionary.
#[pyfunction]
pub(crate) fn list_names<'py>(py: Python<'py>, what: &str) -> PyResult<Bound<'py, PyAny>> {
    let list = list(what).ok_or_else(|| usage(py, &format!("there is no list of {what}")))?;
    rows(py, &list)
}

/// The zones of a machine after boot.
#[pyfunction]
pub(crate) fn list_zones<'py>(
    py: Python<'py>,
    kernel: Option<String>,
    machine: Option<String>,
    mem: Option<String>,
    sysctls: Vec<String>,
) -> PyResult<Bound<'py, PyAny>> {
    let request = ZonesRequest { kernel, machine, mem, sysctls };
    rows(py, &py.detach(|| lab::zones::zones(&request)).or_raised(py)?)
}

/// The rows of `list` as a list of dictionaries.
pub(crate) fn rows<'py>(py: Python<'py>, list: &report::List) -> PyResult<Bound<'py, PyAny>> {
    parsed(py, &views::list(list).render(Format::Json, WIDTH))?.get_item("rows")
}
