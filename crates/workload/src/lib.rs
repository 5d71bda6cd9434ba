//! Programs that put memory under pressure, written once against [`System`] and run unchanged
//! in the simulator and on a real kernel; the traces and scenario files that describe runs.
//!
//! Start with [`system`], the only thing that a program sees of a kernel; then [`hot_and_stream`],
//! a whole program, and [`mod@catalog`], where programs have names, [`params`] and the metrics that
//! head their reports ([`metric`]); [`footprint`] is what one makes, known before it runs. [`scenario`]
//! is a run in full, as a file; [`vocabulary`] the names that a scenario may use. [`trace`] reads
//! recorded requests, [`replay`] makes them against a kernel, [`program`] all that a captured program did, [`zipf`]
//! makes requests up, [`policy`] answers how plain replacement policies do on them, [`amount`] reads how many and how
//! much of them.
//!
//! Deliberately absent: which backend a program runs on, clocks other than [`System::now`], and
//! any knowledge of the mechanisms under test.

pub mod amount;
pub mod anon_and_file;
pub mod catalog;
mod chance;
mod counters;
mod creators;
pub mod footprint;
pub mod hot_and_stream;
pub mod huge_faults;
pub mod inode_storm;
pub mod limits;
pub mod mapped_and_stream;
pub mod memory_stat;
pub mod metric;
pub mod names;
pub mod outcome;
pub mod params;
pub mod policy;
mod portable;
pub mod program;
pub mod replay;
pub mod scenario;
pub mod sequential_readers;
pub mod simoop;
pub mod small_files;
pub mod system;
pub mod trace;
mod turns;
pub mod vocabulary;
pub mod zipf;

pub use catalog::{InputError, Need, Workload, WorkloadSpec, catalog, with_program};
pub use footprint::{Footprint, MachineSize};
pub use limits::Limits;
pub use metric::{Better, MetricSpec};
pub use names::UnknownName;
pub use outcome::{Outcome, WorkloadError};
pub use params::{ParamError, ParamKind, ParamSpec, ParamValue, Params, Share};
pub use replay::{Replay, ReplayOptions, Timing};
pub use scenario::{Backend, Scenario, ScenarioError};
pub use system::{
    Advice, CpuTime, Errno, FileAdvice, FileMapping, Gate, OpenMode, Portable, SharedMemory, System,
    SystemError, TaskSpec,
};
pub use vocabulary::{KernelError, KernelSpec, Vocabulary};
