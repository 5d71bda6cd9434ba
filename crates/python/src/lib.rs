//! The module `pagetide._native`: the lab as Python sees it.
//!
//! Start with [`run::run`] and [`comparison::Comparison`]. Everything is asked of `pagetide-lab` and shown by
//! `pagetide-report`, as the command line does it; the package `pagetide` in `python` makes texts of what a person
//! gives (scenarios, lists of values) and draws progress.
//!
//! | file | what it holds |
//! |---|---|
//! | `asked.rs` | what Python asks for to requests of the lab |
//! | `work.rs` | long work: off Python's lock, watched, stopped by Ctrl-C |
//! | `errors.rs` | errors of the lab as exceptions |
//! | `table.rs` | tables for Arrow's PyCapsule interface |
//! | `recording.rs` | a recording, and the reading of one |
//! | `run.rs`, `comparison.rs` | one run; several side by side |
//! | `batch.rs` | sweeps: their plan, a part of one, what is known of all |
//!
//! Left out: any decision about a run, a figure or a text. Types and docstrings for readers are in
//! `python/pagetide/_native.pyi`, beside those here.

mod asked;
mod batch;
mod comparison;
mod errors;
mod recording;
mod run;
mod table;
mod work;

use pyo3::prelude::*;

/// The compiled part of the package pagetide.
#[pymodule]
mod _native {
    #[pymodule_export]
    use super::batch::{Stop, Sweep, join_chunks, plan_sweep, read_plan, record, run_chunk, table_of};
    #[pymodule_export]
    use super::comparison::{Comparison, compare_folders, compare_kernels};
    #[pymodule_export]
    use super::recording::{Recording, load};
    #[pymodule_export]
    use super::run::{resolve, run};
    #[pymodule_export]
    use super::table::Table;

    use super::PyResult;
    use pyo3::prelude::*;

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("__version__", env!("CARGO_PKG_VERSION"))
    }
}
