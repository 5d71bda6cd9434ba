//! What a workload makes on a machine, known before it runs: so that a run on a real kernel can be
//! refused while the disk is still empty.
//!
//! Each workload computes its own part in its own file, from the sizes that its run goes by. Left
//! out: what the filesystem keeps beside the files, page cache (it takes what there is), and the
//! processes' own memory, which is the backend's. Next: [`crate::Workload::footprint`].

use units::{Bytes, Pages};

use crate::system::System;

/// What of a machine decides how much a workload makes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MachineSize {
    /// As [`System::memory_total`] says it.
    pub memory: Pages,
    /// Memory nodes, at least 1.
    pub nodes: u16,
    /// CPUs of all nodes, at least 1.
    pub cpus: u16,
    /// Disks for files, at least 1.
    pub disks: u16,
}

impl MachineSize {
    /// The machine that a program runs on.
    pub fn of<S: System>(sys: &S) -> Self {
        Self {
            memory: sys.memory_total(),
            nodes: sys.nodes_online(),
            cpus: sys.cpus_online(),
            disks: sys.disks_online(),
        }
    }
}

/// What there is of a workload at its largest moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Footprint {
    /// Content of all files.
    pub files: Bytes,
    /// How many files that is.
    pub file_count: u64,
    /// Anonymous memory that is touched.
    pub anonymous: Bytes,
    /// Tasks at the same time, besides the main one.
    pub tasks: u64,
    /// Disks that the files lie on.
    pub disks: u16,
}
