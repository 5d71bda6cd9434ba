//! What a workload runs on when nobody says: the machine and memory of its source, and the
//! kernels before and after the change that the source is about.
//!
//! Left out: the sources' figures. Nothing in this table tells a run what to measure.

use report::{GridLayout, GridRow};
use units::Bytes;

/// A source's own setting for one workload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Experiment {
    /// The workload.
    pub workload: &'static str,
    /// The machine, by name.
    pub machine: &'static str,
    /// Its memory: what the source's kernel reports as `MemTotal`.
    pub mem: Bytes,
    /// What it swaps to: `none`, or as `--swap` takes it.
    pub swap: &'static str,
    /// The kernel that the change was made to, and the same one with the change; for a series, with
    /// ever more of its steps.
    pub kernels: &'static [&'static str],
    /// Further points at which its source measured, and the tables that it made of them.
    pub grid: Option<&'static GridLayout>,
}

/// The tables of C. Ehrhardt's mail: what he counted with 4, 8 and 16 readers, and the throughput with 160 to
/// 356 megabytes "in 32mb steps", the last of which is one of 36.
const READERS_AND_MEMORY: GridLayout = GridLayout {
    param: "readers",
    values: &["4", "8", "16"],
    rows: &[
        GridRow::Counter("perf_count_congestion_wait"),
        GridRow::Counter("perf_count_call_congestion_wait_from_alloc_pages_high_priority"),
        GridRow::Share(
            "perf_count_call_congestion_wait_from_alloc_pages_slowpath",
            "perf_count_congestion_wait",
        ),
        GridRow::Counter("perf_count_pages_direct_reclaim"),
        GridRow::Counter("perf_count_failed_pages_direct_reclaim"),
        GridRow::Share(
            "perf_count_failed_pages_direct_reclaim_but_progress",
            "perf_count_pages_direct_reclaim",
        ),
        GridRow::Metric("throughput_kb_per_sec"),
        GridRow::Metric("futile_wait_seconds"),
        GridRow::Metric("failed_but_progress_percent"),
    ],
    phase: "read_done",
    mems: &["160M", "192M", "224M", "256M", "288M", "320M", "356M"],
    own_mem: "256M",
    metric: "throughput_kb_per_sec",
};

const EXPERIMENTS: &[Experiment] = &[
    // The measured guests of the rows below a limit (docs/fidelity.md): 768 MiB, zram of 512 MiB.
    Experiment {
        workload: "anon-and-file",
        machine: "guest-tcg",
        mem: Bytes(768 << 20),
        swap: "zram:512M",
        kernels: &["linux-6.1", "linux-6.12"],
        grid: None,
    },
    // The measured guests (docs/fidelity.md): 768 MiB, no swap.
    Experiment {
        workload: "mapped-and-stream",
        machine: "guest-tcg",
        mem: Bytes(768 << 20),
        swap: "none",
        kernels: &["linux-6.1", "linux-6.12"],
        grid: None,
    },
    // J. Weiner, "mm: fix page aging across multiple cgroups", 7 Nov 2019: MemTotal 1016336 kB.
    Experiment {
        workload: "hot-and-stream",
        machine: "vm-2cpu",
        mem: Bytes(1_016_336 << 10),
        swap: "none",
        kernels: &["linux-5.4", "linux-5.4+root-aging"],
        grid: None,
    },
    // C. Ehrhardt and M. Gorman, "Performance regression in scsi sequential throughput", 8 Feb 2010: a
    // guest of 256 MiB, the bad case and the good one; each commit reverted alone; the ratio of the active
    // and the inactive list reverted; the pressure queue alone and on top of that.
    Experiment {
        workload: "sequential-readers",
        machine: "s390-fcp",
        mem: Bytes(256 << 20),
        swap: "none",
        kernels: &[
            "linux-2.6.32",
            "linux-2.6.32-pcp-cold-order-pcp-per-migratetype",
            "linux-2.6.32-pcp-cold-order",
            "linux-2.6.32-pcp-per-migratetype",
            "linux-2.6.32-evict-once-ratio",
            "linux-2.6.32+pressure-wait",
            "linux-2.6.32-pcp-cold-order-pcp-per-migratetype+pressure-wait",
            "linux-2.6.32-pcp-cold-order-pcp-per-migratetype-evict-once-ratio",
        ],
        grid: Some(&READERS_AND_MEMORY),
    },
    // M. Gorman, "fragmentation avoidance improvements v2", 7 Nov 2018: one socket of 32 GiB; steps
    // 1, 1 to 3 (the second changes nothing), 1 to 4.
    Experiment {
        workload: "huge-faults",
        machine: "skylake-1s",
        mem: Bytes(32 << 30),
        swap: "none",
        kernels: &[
            "linux-4.20-rc1",
            "linux-4.20-rc1+nofragment",
            "linux-4.20-rc1+nofragment+watermark-boost-v2",
            "linux-4.20-rc1+nofragment+watermark-boost-v2+fragment-stall",
        ],
        grid: None,
    },
    // D. Chinner, "xfs: make inode reclaim almost non-blocking", 29 Jun 2020: 4 nodes, 16 CPUs, 16 GB.
    Experiment {
        workload: "inode-storm",
        machine: "quad-node-16g",
        mem: Bytes(16 << 30),
        swap: "none",
        kernels: &[
            "linux-5.7",
            "linux-5.7+async-inode-reclaim",
            "linux-5.7+pin-inode-cluster",
            "linux-5.7+async-inode-reclaim+pin-inode-cluster",
        ],
        grid: None,
    },
    // M. Gorman, "mm, vmscan: do not special-case slab reclaim when watermarks are boosted", 8 Aug 2019: a
    // machine of one socket, with XFS on an SSD; with a 16th of its memory, so that it takes seconds.
    Experiment {
        workload: "small-files",
        machine: "evo-ssd",
        mem: Bytes(1 << 30),
        swap: "none",
        kernels: &["linux-5.3", "linux-5.3+shrink-slab-when-boosted"],
        grid: None,
    },
    // The same change. The disk is as fast as 13.44 works a second, the source's, make it that each move 24 MiB.
    Experiment {
        workload: "simoop",
        machine: "quad-node-16g+bandwidth=340M",
        mem: Bytes(16 << 30),
        swap: "none",
        kernels: &["linux-5.7", "linux-5.7+async-inode-reclaim+pin-inode-cluster"],
        grid: None,
    },
];

impl Experiment {
    /// The setting of `workload`, if its source has one.
    pub fn of(workload: &str) -> Option<&'static Self> {
        EXPERIMENTS.iter().find(|experiment| experiment.workload == workload)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::name::names::Names;

    #[test]
    fn every_experiment_names_what_exists() {
        let names = Names::default();
        for experiment in EXPERIMENTS {
            assert!(workload::WorkloadSpec::find(experiment.workload).is_ok());
            assert!(names.vocabulary().machine(experiment.machine).is_ok());
            assert!(experiment.swap.parse::<workload::scenario::Swap>().is_ok(), "{}", experiment.workload);
            assert!(experiment.kernels.len() >= 2, "{}", experiment.workload);
            for kernel in experiment.kernels {
                assert!(names.vocabulary().kernel(kernel).is_ok(), "{kernel}");
            }
        }
    }
}
