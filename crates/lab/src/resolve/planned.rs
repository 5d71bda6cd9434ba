//! A run that is planned. Next: `batch.rs`, which runs many.

use workload::scenario::Scenario;

/// A scenario and what its run is called.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlannedRun {
    /// The label of the recording; often the kernel.
    pub label: String,
    /// What to run.
    pub scenario: Scenario,
}
