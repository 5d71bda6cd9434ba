//! Workloads on real Linux kernels: [`workload::System`] by real system calls, monitors of what
//! the kernel counts meanwhile, and the runners that keep both from harming anybody.
//!
//! Start with [`run()`]: one workload below one cgroup and one directory, on the kernel that we are
//! on. [`host`] prepares and removes these on a machine that others use too; a guest in a virtual
//! machine calls [`run()`] as it is. `bounds` computes before it what a run may take of this host.
//! [`record`] monitors somebody else's command, [`limited`] runs one with a limit. Below them:
//! `system` (the calls), `process` (tasks), `cgroup` (v1 and v2), `monitor` and `parse` (counters),
//! `kmsg` (what the kernel said of a kill), `tracefs` and `waits` (events that no counter has).
//!
//! Deliberately absent: any judgement on the figures, and any write outside of the given cgroup
//! and directory, other than what [`LinuxRun::host_wide`] allows and a trace instance of our own.

mod bounds;
mod cgroup;
mod control;
mod discover;
pub mod disk_speed;
mod error;
pub mod host;
mod in_memory;
mod kmsg;
pub mod limited;
mod machine;
mod memory;
mod monitor;
mod owner;
mod parse;
pub mod probe;
mod process;
pub mod record;
mod run;
mod spec;
mod sysctls;
mod system;
mod trace_line;
mod tracefs;
pub mod vm;
mod waits;
mod writes;

pub use bounds::{BoundsError, DEFAULT_SHARE, DiskShare, NotAShare};
pub use error::LinuxError;
pub use memory::Mapping;
pub use run::run;
pub use spec::{
    CgroupVersion, LaidOut, LinuxResult, LinuxRun, OomKill, PhaseSample, RootPaths, Row, TELL_EVERY, Told,
};
pub use system::{LinuxFile, LinuxSystem, LinuxTask};
pub use waits::{Wait, WaitKind};
