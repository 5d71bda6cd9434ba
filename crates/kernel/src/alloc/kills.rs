//! What is kept of each kill of the OOM killer. Next: [`super::oom`].

use units::Nanos;

/// A process that the OOM killer took.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OomKill {
    /// When.
    pub at: Nanos,
    /// Its name.
    pub task: String,
    /// Path of its cgroup; empty for the root.
    pub cgroup: String,
    /// Whether a cgroup's limit was reached, rather than the end of the machine's memory.
    pub by_limit: bool,
    /// Anonymous pages that it held.
    pub anon_pages: u64,
    /// Inodes of XFS that waited to be written, in the log or for it.
    pub dirty_inodes: u64,
    /// Memory just before, as the kernel prints it, line by line.
    pub memory: Vec<String>,
}
