//! What is kept of each kill of the OOM killer. Next: [`super::oom`].

use std::collections::BTreeMap;

use units::Nanos;

/// A process that the OOM killer took, or the panic where none was left to take.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OomKill {
    /// When.
    pub at: Nanos,
    /// Its name; in a panic, that of the task that asked for memory.
    pub task: String,
    /// Path of its cgroup; empty for the root.
    pub cgroup: String,
    /// Whether a cgroup's limit was reached, rather than the end of the machine's memory.
    pub by_limit: bool,
    /// Anonymous pages that it held.
    pub anon_pages: u64,
    /// Nobody was left to kill, and the kernel panicked.
    pub panicked: bool,
    /// What the kernel prints of it, line by line: who asked, memory just before, tasks, the verdict.
    pub memory: Vec<String>,
    /// Why reclaim gave up, line by line.
    pub why: Vec<String>,
    /// Gauges of `/proc/vmstat` just before, and `managed_pages`, `nr_xfs_inodes_not_clean`.
    pub gauges: BTreeMap<String, u64>,
}
