//! What a workload runs on when nobody says: the machine and memory of its source, and the
//! kernels before and after the change that the source is about.
//!
//! Left out: the sources' figures. Nothing in this table tells a run what to measure.

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
    /// The kernel that the change was made to.
    pub before: &'static str,
    /// The same kernel with the change.
    pub after: &'static str,
}

const EXPERIMENTS: &[Experiment] = &[
    // J. Weiner, "mm: fix page aging across multiple cgroups", 7 Nov 2019: MemTotal 1016336 kB.
    Experiment {
        workload: "hot-and-stream",
        machine: "vm-2cpu",
        mem: Bytes(1_016_336 << 10),
        before: "linux-5.4",
        after: "linux-5.4+root-aging",
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
    use crate::names::Names;

    #[test]
    fn every_experiment_names_what_exists() {
        let names = Names::default();
        for experiment in EXPERIMENTS {
            assert!(workload::WorkloadSpec::find(experiment.workload).is_ok());
            assert!(names.vocabulary().machine(experiment.machine).is_ok());
            for kernel in [experiment.before, experiment.after] {
                assert!(names.vocabulary().kernel(kernel).is_ok(), "{kernel}");
            }
        }
    }
}
