//! How what is known of runs is shown in Python: pages, texts and objects, the same for one run and for several.

use pyo3::prelude::*;
use pyo3::types::PyString;
use report::page::Page;
use report::{Format, Group, Style};

use crate::errors::{OrRaised, raised, usage};

/// Width of tables in columns where nobody says: that of the command line's files.
pub(crate) const WIDTH: usize = 80;

/// The page of `groups`.
pub(crate) fn page<'a>(groups: &'a [Group<'a>], warnings: Vec<String>) -> Page<'a> {
    lab::page::page(groups, None, Vec::new(), warnings, String::new())
}

/// A page for a notebook: in a frame of its own, so that neither changes how the other looks.
pub(crate) fn framed(page: &str) -> String {
    let quoted = page.replace('&', "&amp;").replace('"', "&quot;");
    format!("<iframe srcdoc=\"{quoted}\" style=\"width: 100%; height: 40em; border: 0\"></iframe>")
}

/// A text of JSON as objects of Python.
pub(crate) fn parsed<'py>(py: Python<'py>, json: &str) -> PyResult<Bound<'py, PyAny>> {
    py.import("json")?.call_method1("loads", (PyString::new(py, json),))
}

/// The format of this name.
pub(crate) fn format_of(py: Python<'_>, given: &str) -> PyResult<Format> {
    match given {
        "text" => Ok(Format::Text),
        "json" => Ok(Format::Json),
        "csv" => Ok(Format::Csv),
        "md" => Ok(Format::Markdown),
        other => {
            Err(usage(py, &format!("unknown format `{other}`: there are `text`, `json`, `csv` and `md`")))
        }
    }
}

/// Names of the figures of a page.
pub(crate) fn figures(py: Python<'_>, page: &Page<'_>) -> PyResult<Vec<String>> {
    let page = report::page::page(page).or_raised(py)?;
    Ok(page.figures().into_iter().map(str::to_owned).collect())
}

/// A figure of a page as SVG: the one of this name, or the first.
pub(crate) fn figure(py: Python<'_>, page: &Page<'_>, name: Option<&str>) -> PyResult<String> {
    let page = report::page::page(page).or_raised(py)?;
    page.svg(name).ok_or_else(|| raised(py, &lab::page::no_figure(name, &page.figures())))
}

/// A page as a file.
pub(crate) fn html(py: Python<'_>, page: &Page<'_>) -> PyResult<String> {
    let style = Style { width: WIDTH, made_by: concat!("pagetide ", env!("CARGO_PKG_VERSION")) };
    Ok(report::page::page(page).or_raised(py)?.render(Format::Html, style))
}
