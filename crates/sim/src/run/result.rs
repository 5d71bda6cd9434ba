//! What a run leaves, or why it leaves nothing.

use std::collections::BTreeMap;

use kernel::OomKill;
use mm::Violation;
use mm::alloc::boot::BootError;
use units::Nanos;
use workload::{Errno, Outcome, SystemError, WorkloadError};

use crate::accounts::sections::SectionTime;
use crate::accounts::waits::Waits;
use crate::engine::simulation::RunError;
use crate::hardware::HardwareError;
use crate::machine::readings::Stall;
use crate::run::handing::PhaseSample;

/// What a simulated run leaves.
#[derive(Debug, Clone)]
pub struct SimResult {
    /// The workload's own figures; none if it was killed, what it kept if the kernel panicked.
    pub outcome: Outcome,
    /// What the OOM killer took, the first one first; mostly empty. Whether that ended the run or its
    /// workload went on, `outcome` tells; where nobody was left to take, the last one is the panic.
    pub oom_kills: Vec<OomKill>,
    /// `/proc/vmstat` when the program began: what booting and starting its process counted.
    pub vmstat_before: BTreeMap<String, u64>,
    /// `/proc/vmstat` when it had ended: events since boot, gauges as they are.
    pub vmstat: BTreeMap<String, u64>,
    /// `memory.stat` of every cgroup at the end, by path.
    pub memcg: BTreeMap<String, BTreeMap<String, u64>>,
    /// The phases in order.
    pub phases: Vec<PhaseSample>,
    /// Names of the sampled columns.
    pub columns: Vec<String>,
    /// Samples: simulated time and one value for each column.
    pub rows: Vec<(Nanos, Vec<u64>)>,
    /// Who waited for what; waits that are idleness are left out.
    pub stalls: Vec<Stall>,
    /// Every wait, idleness included, by the phase in which it ended: what ended it, and whether
    /// anything could have.
    pub waits: Vec<Waits>,
    /// How long tasks were in which parts of the kernel, by the phase in which they left them.
    pub sections: Vec<SectionTime>,
    /// Events that the simulator handled.
    pub events: u64,
    /// Simulated time when the program ended.
    pub simulated: Nanos,
}

/// Why a simulated run has no result.
#[derive(Debug, thiserror::Error)]
pub enum SimError {
    /// The machine cannot be built.
    #[error(transparent)]
    Hardware(#[from] HardwareError),
    /// The kernel cannot boot in this memory.
    #[error("{0}")]
    Boot(BootError),
    /// The workload failed, and not because the OOM killer took one of its tasks.
    #[error(transparent)]
    Workload(#[from] WorkloadError),
    /// The run was stopped, deadlocked or took too long.
    #[error(transparent)]
    Run(#[from] RunError),
    /// The policy for file pages gave up: what it did wrong.
    #[error("the policy for file pages ends early: {0}")]
    Policy(String),
    /// The memory state at the end is inconsistent: a bug of the simulator.
    #[error("{0}")]
    Violation(Violation),
}

impl SimError {
    /// What to do about it, where something can be done.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Hardware(_) | Self::Policy(_) => None,
            Self::Boot(_) => Some("give the machine more memory with `--mem`".to_string()),
            Self::Workload(WorkloadError::System(SystemError {
                errno: Errno::NoMem | Errno::Killed,
                ..
            })) => Some("give it more memory with `--mem`, or make it smaller with `--param`".to_string()),
            Self::Workload(_) => None,
            Self::Run(RunError::TimeLimit { .. }) => Some(
                "make the workload smaller with `--param`, or give it more memory with `--mem`".to_string(),
            ),
            Self::Run(RunError::NoProgress { hope: false, .. }) => Some(
                "Linux would not go on either: give it more memory with `--mem`, or make the workload smaller with \
                 `--param`"
                    .to_string(),
            ),
            Self::Run(RunError::NoProgress { .. }) => Some(
                "the model does not get on where Linux might: give it more memory with `--mem`, or report it with this \
                 scenario and seed"
                    .to_string(),
            ),
            Self::Run(_) => None,
            Self::Violation(_) => {
                Some("this is a bug of pagetide: please report it with the scenario and seed".to_string())
            }
        }
    }
}

/// The samples that hold the length of every stall on fragmentation in microseconds, in whole ticks:
/// the tracepoint `mm_fragmentation_stall`.
pub const FRAGMENT_STALL_SAMPLES: &str = "fragment_stall_us";
