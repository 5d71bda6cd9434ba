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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Workload;

    fn of(name: &str, pairs: &[(&'static str, &'static str)], mib: u64) -> Footprint {
        let machine = MachineSize { memory: Bytes(mib << 20).to_pages_floor(), nodes: 1, cpus: 2, disks: 1 };
        Workload::new(name, pairs.iter().copied()).unwrap().footprint(machine)
    }

    #[test]
    fn files_of_huge_faults_are_half_as_much_again_as_memory_and_mappings_three_eighths() {
        assert_eq!(
            of("huge-faults", &[], 1024),
            Footprint {
                files: Bytes(1536 << 20),
                file_count: (1536 << 4) + 1,
                anonymous: Bytes(384 << 20),
                tasks: 5,
                disks: 1
            }
        );
        let scaled = of("huge-faults", &[("scale", "10"), ("file_size", "1M")], 1024);
        assert_eq!((scaled.files, scaled.file_count), (Bytes(152 << 20), 153));
        // Each thread maps two regions at least, however small the machine is.
        assert_eq!(of("huge-faults", &[("threads", "4096")], 64).anonymous, Bytes(4096 << 21));
    }

    #[test]
    fn files_of_hot_and_stream_are_its_two_what_readahead_may_reach_and_what_moves_them() {
        for mib in [64, 4096] {
            let made = of("hot-and-stream", &[("hot", "50M"), ("stream", "2G")], mib);
            assert_eq!((made.files, made.file_count), (Bytes((50 + 2048 + 16 + 1) << 20), 3));
            assert_eq!((made.anonymous, made.tasks), (Bytes(0), 1));
        }
    }
}
