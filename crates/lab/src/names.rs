//! Every name that can be given on the command line or in a scenario, with one line about it.
//!
//! Left out: what a name means; each crate keeps its own. Neighbours: [`crate::resolve`].

use std::fmt::Write as _;

use mm::feature::{Feature, Kernel};
use mm::sysctl::{Sysctl, Sysctls};
use mm::vmstat::{MemcgStat, VmEvent};
use sim::machines::MACHINES;
use workload::vocabulary::Vocabulary;

/// A list that `pagetide list` can show.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Listing {
    /// Workloads with their parameters.
    Workloads,
    /// Named kernels.
    Kernels,
    /// Features that a kernel can have or not.
    Features,
    /// Sysctls that the model reads.
    Sysctls,
    /// Counters in recordings.
    Counters,
    /// Machines.
    Machines,
}

/// One line of a list: a name and what it is. Parameters of a workload are `details`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// The name as it is written everywhere.
    pub name: String,
    /// One line about it, without a full stop.
    pub help: String,
    /// What belongs to it, in the same form.
    pub details: Vec<Entry>,
}

impl Entry {
    fn new(name: impl Into<String>, help: impl Into<String>) -> Self {
        Self { name: name.into(), help: help.into(), details: Vec::new() }
    }
}

/// The entries of a list, in the order in which they are shown.
pub fn list(listing: Listing) -> Vec<Entry> {
    match listing {
        Listing::Workloads => workload::catalog().iter().map(workload_entry).collect(),
        Listing::Kernels => Kernel::presets().map(|(name, help)| Entry::new(name, help)).collect(),
        Listing::Features => {
            Feature::ALL.iter().map(|feature| Entry::new(feature.name(), feature.help())).collect()
        }
        Listing::Sysctls => Sysctl::ALL.iter().map(|&sysctl| sysctl_entry(sysctl)).collect(),
        Listing::Counters => {
            let of_machine = VmEvent::ALL.iter().map(|event| (event.name(), "/proc/vmstat"));
            let of_cgroup = MemcgStat::ALL.iter().map(|stat| (stat.name(), "memory.stat"));
            of_machine.chain(of_cgroup).map(|(name, file)| Entry::new(name, file)).collect()
        }
        Listing::Machines => (MACHINES.iter())
            .map(|machine| Entry::new(machine.name, format!("{} ({})", machine.help, machine.default_mem)))
            .collect(),
    }
}

fn workload_entry(spec: &workload::WorkloadSpec) -> Entry {
    let details = spec.params.iter().map(|param| {
        let default = param.default.unwrap_or("none");
        Entry::new(format!("{}={default}", param.name), param.help)
    });
    Entry { details: details.collect(), ..Entry::new(spec.name, spec.help) }
}

fn sysctl_entry(sysctl: Sysctl) -> Entry {
    let (min, max) = sysctl.range();
    let mut help = format!("{}, {min} to {max}", sysctl.help());
    let default = Sysctls::default().get(sysctl);
    // 0 is no default but "computed at boot" where the help says so.
    if sysctl != Sysctl::MinFreeKbytes {
        write!(help, ", default {default}").expect("a String takes all that is written");
    }
    Entry::new(sysctl.name(), help)
}

/// All names that a scenario may use, owned so that a [`Vocabulary`] can borrow them.
#[derive(Debug, Clone)]
pub struct Names {
    kernels: Vec<&'static str>,
    features: Vec<&'static str>,
    machines: Vec<&'static str>,
    sysctls: Vec<&'static str>,
}

impl Default for Names {
    fn default() -> Self {
        Self {
            kernels: Kernel::presets().map(|(name, _)| name).collect(),
            features: Feature::ALL.iter().map(|feature| feature.name()).collect(),
            machines: MACHINES.iter().map(|machine| machine.name).collect(),
            sysctls: Sysctl::ALL.iter().map(|sysctl| sysctl.name()).collect(),
        }
    }
}

impl Names {
    /// The names in the form in which scenarios are checked.
    pub fn vocabulary(&self) -> Vocabulary<'_> {
        Vocabulary {
            kernels: &self.kernels,
            features: &self.features,
            machines: &self.machines,
            sysctls: &self.sysctls,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_list_has_entries_and_every_entry_says_what_it_is() {
        for listing in [
            Listing::Workloads,
            Listing::Kernels,
            Listing::Features,
            Listing::Sysctls,
            Listing::Counters,
            Listing::Machines,
        ] {
            let entries = list(listing);
            assert!(!entries.is_empty(), "{listing:?}");
            let silent = entries.iter().find(|entry| entry.name.is_empty() || entry.help.is_empty());
            assert_eq!(silent, None, "{listing:?}");
        }
    }

    #[test]
    fn every_listed_kernel_and_feature_reads_as_a_kernel() {
        let names = Names::default();
        for kernel in list(Listing::Kernels) {
            for feature in list(Listing::Features) {
                let text = format!("{}+{}", kernel.name, feature.name);
                let spec = names.vocabulary().kernel(&text).unwrap();
                assert!(Kernel::parse(&spec.to_string()).is_ok(), "{text}");
            }
        }
    }
}
