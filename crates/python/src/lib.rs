//! The module `pagetide._native`: the lab as Python sees it.
//!
//! Start with `run.rs` and [`comparison::Comparison`]. Everything is asked of `pagetide-lab` and shown by
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
//! | `ablation.rs` | subsets of features |
//! | `replay.rs` | traces: replays, and how much memory one needs |
//! | `simulation.rs` | a run that is stopped to look at it |
//! | `names.rs` | names that can be given |
//! | `written.rs` | workloads and machines of files |
//!
//! Left out: any decision about a run, a figure or a text. Types and docstrings for readers are in
//! `python/pagetide/_native.pyi`, beside those here.

mod ablation;
mod asked;
mod batch;
mod comparison;
mod errors;
mod names;
mod recording;
mod replay;
mod run;
mod shown;
mod simulation;
mod table;
mod work;
mod written;

use pyo3::prelude::*;

/// The compiled part of the package pagetide.
#[pymodule]
mod _native {
    #[pymodule_export]
    use super::ablation::{Ablation, ablate_features};
    #[pymodule_export]
    use super::batch::{Stop, Sweep, join_chunks, plan_sweep, read_plan, record, run_chunk, table_of};
    #[pymodule_export]
    use super::comparison::{Comparison, compare_folders, compare_kernels};
    #[pymodule_export]
    use super::names::{list_names, list_zones};
    #[pymodule_export]
    use super::recording::{Recording, load};
    #[pymodule_export]
    use super::replay::{Replay, Size, replay_trace, size_trace};
    #[pymodule_export]
    use super::run::{resolve, run};
    #[pymodule_export]
    use super::simulation::{Simulation, parse_moment};
    #[pymodule_export]
    use super::table::Table;
    #[pymodule_export]
    use super::written::{check_workload, probe_machine, read_machine, translate_fio};

    use super::PyResult;
    use pyo3::prelude::*;

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("__version__", env!("CARGO_PKG_VERSION"))
    }
}
