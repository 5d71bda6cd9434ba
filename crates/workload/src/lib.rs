//! Programs that put memory under pressure, written once against [`System`] and run unchanged
//! in the simulator and on a real kernel; the scenario files that describe runs.
//!
//! Start with [`system`], the only thing that a program sees of a kernel; then `library/hot-and-stream.toml`, a whole
//! program, and [`mod@catalog`], where programs have names. From the top, a room uses what stands below it:
//!
//! | room | what it holds |
//! |---|---|
//! | [`scenario`] | a run in full, as a file |
//! | [`mod@catalog`] | every program by name, with its parameters and metrics |
//! | `programs` | the programs; `captured` makes again all that a captured one did |
//! | [`written`] | programs as files, built in (`library`) or a user's own |
//! | [`replay`] | makes recorded requests against a kernel |
//! | `parts` | what programs share: what one makes ([`Footprint`]), its cgroup ([`Limits`]), turns, chance |
//! | [`system`] | a program's view of a kernel, what calls fail with, what a run comes to |
//! | `language` | [`table`]: TOML with the place of each key; [`vocabulary`]: the names that scenarios may use |
//!
//! Deliberately absent: which backend a program runs on, clocks other than [`System::now`], and
//! any knowledge of the mechanisms under test.

pub mod catalog;
pub mod replay;
pub mod scenario;
pub mod system;
pub mod written;

/// How people and files say what runs: the words of all crates, and what files and kernels need beside them.
mod language {
    pub mod table;
    pub mod vocabulary;

    pub use ::language::{amount, metric, names, params};
}

/// What several programs have in common.
mod parts {
    pub(crate) mod buffer;
    pub mod chance;
    pub mod counters;
    pub mod creators;
    pub mod footprint;
    pub mod group_figures;
    pub mod limits;
    pub mod need;
    pub mod turns;
}

/// The programs, a file each.
mod programs {
    pub mod captured;
    pub mod huge_faults;
    pub mod inode_storm;
    pub mod random_calls;
    pub mod sequential_readers;
    pub mod simoop;
    pub mod small_files;
}

pub use catalog::{InputError, Workload, WorkloadSpec, catalog, with_program};
pub use language::metric::{Better, MetricSpec};
pub use language::names::UnknownName;
pub use language::params::{ParamError, ParamKind, ParamSpec, ParamValue, Params, Share};
pub use language::vocabulary::{KernelError, KernelSpec, Vocabulary};
pub use language::{amount, metric, names, params, table, vocabulary};
pub use parts::footprint::{Footprint, MachineSize};
pub use parts::limits::{self, Limits};
pub use parts::need::Need;
pub use programs::{captured, huge_faults, inode_storm, sequential_readers, simoop, small_files};
pub use replay::{Replay, ReplayOptions, Timing};
pub use scenario::{Backend, Scenario, ScenarioError};
pub use system::outcome::{Outcome, WorkloadError};
pub use system::{
    Advice, CpuTime, Errno, FileAdvice, FileMapping, Gate, OpenMode, Portable, SharedMemory, System,
    SystemError, TaskSpec,
};
