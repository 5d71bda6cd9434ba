//! What Python asks for to requests of the lab.
//!
//! The package makes texts of everything (`pagetide/_scenario.py`), which the lab reads and checks: a mistake is told
//! as on the command line. Left out: lists of values, of which a sweep is made.

use std::path::PathBuf;

use lab::real::parse_max_time;
use lab::{GuestRequest, HostPolicy, LabError, ReplayOptions, Request, Subject};
use pyo3::prelude::*;

/// A run, and what may be said of it.
#[derive(Debug, FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct Asked {
    subject: AskedSubject,
    kernel: Option<String>,
    machine: Option<String>,
    mem: Option<String>,
    swap: Option<String>,
    params: Vec<String>,
    sysctls: Vec<String>,
    seed: Option<u64>,
    interval: Option<String>,
    pub(crate) backend: Option<String>,
    vm_cpus: Option<u16>,
    vm_nodes: Option<u16>,
    vm_lru_gen: Option<String>,
    vm_xfs_log: Option<u16>,
    max_time: Option<String>,
}

impl Asked {
    /// What its runs may take of this host.
    pub(crate) fn host(&self) -> Result<HostPolicy, LabError> {
        let max_time = self.max_time.as_deref().map(parse_max_time).transpose()?;
        Ok(HostPolicy { max_time, ..HostPolicy::default() })
    }
}

/// What runs: `("workload", NAME)`, `("file", PATH)` or `("text", TOML)`.
#[derive(Debug, FromPyObject)]
struct AskedSubject(String, String);

impl From<AskedSubject> for Subject {
    fn from(AskedSubject(what, text): AskedSubject) -> Self {
        match what.as_str() {
            "file" => match Self::of_argument(&text) {
                Self::Workload(path) => Self::File(PathBuf::from(path)),
                subject => subject,
            },
            "text" => Self::of_text(text),
            _ => Self::Workload(text),
        }
    }
}

impl From<Asked> for Request {
    fn from(asked: Asked) -> Self {
        Self {
            kernel: asked.kernel,
            machine: asked.machine,
            mem: asked.mem,
            swap: asked.swap,
            params: asked.params,
            sysctls: asked.sysctls,
            seed: asked.seed,
            interval: asked.interval,
            backend: asked.backend,
            guest: GuestRequest {
                cpus: asked.vm_cpus,
                numa_nodes: asked.vm_nodes,
                lru_gen: asked.vm_lru_gen,
                xfs_log: asked.vm_xfs_log,
            },
            ..Self::new(asked.subject.into())
        }
    }
}

/// How a trace is read.
#[derive(Debug, FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct Reading {
    pub(crate) timing: Option<String>,
    warmup: Option<String>,
    trace_format: Option<String>,
    unsorted: bool,
}

impl Reading {
    /// As the lab takes it.
    pub(crate) fn options(&self) -> Result<ReplayOptions, LabError> {
        lab::replay::options(
            self.trace_format.as_deref(),
            self.timing.as_deref(),
            self.warmup.as_deref(),
            self.unsorted,
        )
    }
}
