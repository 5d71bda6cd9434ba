//! A run that is planned, what many are planned for, and how many there are at most. Next: `batch.rs`, which runs
//! them.

use workload::scenario::Scenario;

/// A scenario and what its run is called.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlannedRun {
    /// The label of the recording; often the kernel.
    pub label: String,
    /// What to run.
    pub scenario: Scenario,
}

/// Runs that one sweep takes at most: more than that are a mistake.
pub const RUNS_MAX: usize = 1_000;

/// Runs that a sweep into a dataset takes at most: it holds none of their recordings.
pub const RUNS_MAX_OF_DATASET: usize = 100_000;

/// Features that one ablation takes at most: 64 kernels.
pub const FEATURES_MAX: usize = 6;

/// What many runs were planned for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PlanOf {
    /// `pagetide sweep`.
    Sweep,
    /// `pagetide ablate`.
    Ablation,
    /// `pagetide compare`.
    Comparison,
    /// `pagetide worlds`.
    Worlds,
}

impl PlanOf {
    /// In words, with its article.
    pub const fn told(self) -> &'static str {
        match self {
            Self::Sweep => "a sweep",
            Self::Ablation => "an ablation",
            Self::Comparison => "a comparison",
            Self::Worlds => "worlds",
        }
    }

    /// The file that holds the plan, in the folder of the recordings.
    pub const fn file(self) -> &'static str {
        match self {
            Self::Sweep => "sweep.txt",
            Self::Ablation => "ablation.txt",
            Self::Comparison => "comparison.txt",
            Self::Worlds => "worlds.txt",
        }
    }
}
