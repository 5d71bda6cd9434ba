//! What a workload's run comes to: its figures, or why it ended early.
//!
//! Left out: what the kernel counted meanwhile, which whoever runs the workload reads. Next:
//! [`mod@crate::catalog`], where workloads are run.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use thiserror::Error;
use units::Bytes;

use crate::system::errno::SystemError;

/// What a workload measured. Names carry their unit at the end; ordered, so that a recording of
/// the same run has the same bytes.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Outcome {
    /// One number for the run.
    pub metrics: BTreeMap<String, f64>,
    /// Many numbers, in the order in which they were measured.
    pub samples: BTreeMap<String, Vec<f64>>,
}

impl Outcome {
    /// Sets one metric.
    ///
    /// # Panics
    /// When it is set already: two measurements share a name.
    pub fn metric(&mut self, name: &str, value: f64) {
        let previous = self.metrics.insert(name.to_owned(), value);
        assert!(previous.is_none(), "metric `{name}` is measured twice");
    }
}

/// Why a run ended early.
#[derive(Debug, Clone, PartialEq, Eq, Error, Serialize, Deserialize)]
pub enum WorkloadError {
    /// A system call failed.
    #[error(transparent)]
    System(#[from] SystemError),
    /// A file ended before its size: somebody else changed it.
    #[error("file `{path}` ended after {read_bytes} of {size_bytes} bytes")]
    ShortRead {
        /// The file.
        path: String,
        /// How much there was.
        read_bytes: u64,
        /// How much there should be.
        size_bytes: u64,
    },
    /// The machine does not have as many disks as the files are to lie on.
    #[error("its files are to lie on {wanted} disks, and there {}", disks_there(*.there))]
    TooFewDisks {
        /// As many as it is told to use.
        wanted: u16,
        /// As many as there are.
        there: u16,
    },
    /// The first amount to pin is more than there is.
    #[error("the first step would pin {wanted}, and the machine has {there}")]
    PinsTooMuch {
        /// As much as it is told to pin.
        wanted: Bytes,
        /// Memory of the machine.
        there: Bytes,
    },
    /// An amount of a workload file comes to nothing that this machine can run.
    #[error("{0}")]
    Amount(String),
    /// The trace that is being replayed cannot be read.
    #[error("{0}")]
    Trace(String),
}

fn disks_there(disks: u16) -> String {
    if disks == 1 { "is 1".to_owned() } else { format!("are {disks}") }
}
