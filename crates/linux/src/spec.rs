//! What a run on a real kernel is made of, and what it leaves.
//!
//! Names of counters and columns are those of the simulator: `/proc/vmstat` names as they are,
//! `cg_<group, / as _>_<stat>` for a cgroup, `z<node>_<zone>_<free|min|low|high|boost|managed>`,
//! `mi_<meminfo name>`, `buddy_n<node>_<zone>_o<order>`, `slab_<cache>_<active|num>`, `psi_memory_*`.
//!
//! Left out: which numbers are events and which are gauges, and waits without a tracepoint.
//! Next: [`crate::run`], which carries a run out.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use units::{Bytes, Pages, Seed};
use workload::{Outcome, Workload};

use crate::waits::Wait;

/// The interface of the memory controller.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum CgroupVersion {
    /// `memory.limit_in_bytes` and so on, in a hierarchy of the controller's own.
    V1,
    /// `memory.max` and so on, in the unified hierarchy.
    V2,
}

/// The directories that a run may change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RootPaths {
    /// Where the workload's files go: an empty directory on a filesystem with a page cache.
    pub files: PathBuf,
    /// The same on further disks, one each; empty where there is one disk.
    pub more_disks: Vec<PathBuf>,
    /// A cgroup of our own with the memory controller on and no process in it.
    pub cgroup: PathBuf,
    /// The interface that `cgroup` has.
    pub version: CgroupVersion,
}

/// One workload, on the kernel that we are on.
#[derive(Debug, Clone)]
pub struct LinuxRun {
    /// What to run.
    pub workload: Workload,
    /// From which all follows that the workload draws.
    pub seed: Seed,
    /// Where.
    pub root: RootPaths,
    /// Sysctls by name (`vm.swappiness` or `vm/swappiness`) and value, written before the run and
    /// restored after it. Needs `host_wide`.
    pub sysctls: Vec<(String, String)>,
    /// Where the old values are kept meanwhile, so that a run that is killed can be cleaned up after.
    pub keep_in: Option<PathBuf>,
    /// Time from one sample of the counters to the next.
    pub sample_period: Duration,
    /// `memory.max` of the root cgroup; `None` leaves it as it is.
    pub limit: Option<Bytes>,
    /// Pages of the machine that its workload is not told of: a guest has them for its own program.
    pub beyond: Pages,
    /// How often to say how far the run is; `None` says only when a phase ends. In a guest nobody
    /// watches the monitor, and what it allocates is counted.
    pub tell_every: Option<Duration>,
    /// Whether the run may change what all processes of the machine share: drop all caches, write
    /// sysctls. In a guest of our own, yes.
    pub host_wide: bool,
    /// Whether nobody else uses the machine: a guest of our own.
    pub alone: bool,
}

/// What a run says while it goes on.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Told<'a> {
    /// Worth keeping: what was removed, what is not as it was asked for.
    Note(&'a str),
    /// A phase of the workload or of the machine has begun or ended.
    Phase(&'a str),
    /// How far it is; the next one takes its place.
    Progress(&'a str),
    /// What the workload has measured so far; the next one takes its place.
    Kept(&'a Outcome),
}

/// Time between two words on how far a run is, so that there is one in any 5 s.
pub const TELL_EVERY: Duration = Duration::from_secs(4);

/// All counters at the end of one of the workload's phases.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PhaseSample {
    /// The phase, as the workload calls it.
    pub name: String,
    /// Time since the start of the run.
    pub at_ns: u64,
    /// `/proc/vmstat` as it was, events included.
    pub vmstat: BTreeMap<String, u64>,
    /// Each cgroup's numbers, by its path below the root; the root is the empty path.
    pub memcg: BTreeMap<String, BTreeMap<String, u64>>,
}

/// A time in which files were laid out that are taken to have been there before the run: what was counted then is
/// none of the run's.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LaidOut {
    /// When it began and ended, since the start of the run.
    pub ns: [u64; 2],
    /// `/proc/vmstat` at both, events included.
    pub vmstat: [BTreeMap<String, u64>; 2],
}

/// A task that the OOM killer took, or a panic for want of one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OomKill {
    /// Time since the start of the run.
    pub at_ns: u64,
    /// The task, as the workload calls it.
    pub task: String,
    /// Its cgroup below the root; empty for the root, or where the kernel did not tell.
    pub cgroup: String,
    /// Whether a cgroup's limit was reached.
    pub by_limit: bool,
    /// Nobody was left to kill, and the kernel panicked: the task is the one that asked for memory.
    #[serde(default)]
    pub panicked: bool,
    /// Anonymous pages that it held, where the kernel told.
    pub anon_pages: Option<u64>,
    /// What the kernel printed of memory; empty where its log is not for us.
    pub memory: Vec<String>,
}

/// A sample: time since the start of the run in nanoseconds, and one value for each column.
pub type Row = (u64, Vec<u64>);

/// What a run leaves.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LinuxResult {
    /// What the workload measured itself; if it was killed what it had told before, if anything.
    pub outcome: Outcome,
    /// What the OOM killer took, if that ended the run.
    #[serde(default)]
    pub oom_kill: Option<OomKill>,
    /// `/proc/vmstat` as it was when the run began.
    pub vmstat_before: BTreeMap<String, u64>,
    /// `/proc/vmstat` as it was when the run ended, events since boot included.
    pub vmstat: BTreeMap<String, u64>,
    /// Each cgroup's numbers at the end, by its path below the root; the root is the empty path.
    pub memcg: BTreeMap<String, BTreeMap<String, u64>>,
    /// In the order in which they ended.
    pub phases: Vec<PhaseSample>,
    /// In order of time.
    #[serde(default)]
    pub laid_out: Vec<LaidOut>,
    /// Names of the columns of `rows`.
    pub columns: Vec<String>,
    /// Samples in order of time. A cgroup's columns are 0 before it exists.
    pub rows: Vec<Row>,
    /// Timed waits in reclaim, as tracepoints tell them; `None` where they were not listened to.
    #[serde(default)]
    pub waits: Option<Vec<Wait>>,
    /// Length of the run.
    pub wall_ns: u64,
    /// As `uname -r` prints it.
    pub kernel_release: String,
    /// What could not be measured or done here, one sentence each, for the reader of the results.
    pub notes: Vec<String>,
}
