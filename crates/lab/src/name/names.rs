//! Every name that can be given on the command line or in a scenario, with one line about it.
//!
//! Left out: what a name means; each crate keeps its own. Neighbours: [`crate::name::counters`] for what
//! recordings hold, [`crate::resolve::zones`] for a machine's zones, [`crate::resolve::request`] for who reads the
//! names.

use cache_ext::PolicyInfo;
use mm::base::sysctl::{Sysctl, Sysctls};
use mm::version::feature::Feature;
use mm::version::presets::Version;
use policy::POLICIES;
use report::{Cell, List};
use sim::machines::MACHINES;
use workload::vocabulary::Vocabulary;
use workload::{ParamSpec, UnknownName};

use crate::error::LabError;

/// The entries of the list `what`, in the order in which they are shown; `None` where there is no such list.
pub fn list(what: &str) -> Option<List> {
    Some(match what {
        "workloads" => workloads(),
        "kernels" => named("kernels", "kernel", Version::presets()),
        "features" => features(),
        "sysctls" => sysctls(),
        "counters" => crate::name::counters::list(),
        "machines" => machines(),
        "policies" => policies(),
        _ => return None,
    })
}

/// Of a list, what has one of these names; all of it without any.
pub fn only(mut list: List, names: &[String]) -> Result<List, LabError> {
    let known = list.column(list.heading());
    if let Some(unknown) = names.iter().find(|name| !known.contains(name)) {
        let mut known: Vec<&str> = known.iter().map(String::as_str).collect();
        known.dedup();
        return Err(UnknownName::new(list.heading(), unknown, known).into());
    }
    list.retain(|name| names.is_empty() || names.iter().any(|one| one == name));
    Ok(list)
}

/// Workloads without what can be set of each.
pub fn workloads_in_brief() -> List {
    let all = workload::with_program().map(|spec| (spec.name, spec.help));
    let mut list = named("workloads", "workload", all);
    list.fact("parameters of one", "`pagetide list workloads NAME`");
    list
}

/// Features with the oldest modelled kernel that has each; `none` has those that were never merged. Policies for file
/// pages are among them.
fn features() -> List {
    let mut list = List::new("features", &["feature", "first in", "help"]);
    for feature in Feature::ALL {
        let help = format!("{} ({})", feature.help(), feature.source());
        list.push([feature.name().into(), feature.first_kernel().unwrap_or("none").into(), help.into()]);
    }
    for PolicyInfo { feature, help, source, .. } in cache_ext::POLICIES {
        let help = format!("{help} (never merged: {source})");
        list.push([(*feature).into(), "none".into(), help.into()]);
    }
    list
}

/// Policies with their parameters and what these are when nobody says.
fn policies() -> List {
    let mut list = List::new("policies", &["policy", "parameters", "help"]);
    for info in POLICIES {
        let default = |spec: &ParamSpec| format!("{}={}", spec.name, spec.default.unwrap_or("none"));
        let params: Vec<String> = info.params.iter().map(default).collect();
        list.push([info.name.into(), params.join(" ").into(), info.help.into()]);
    }
    list
}

fn named<'a>(name: &'static str, what: &'static str, all: impl Iterator<Item = (&'a str, &'a str)>) -> List {
    let mut list = List::new(name, &[what, "help"]);
    all.for_each(|(name, help)| list.push([name.into(), help.into()]));
    list
}

/// A row for each workload; below it one for each of its parameters, and for what its seed decides.
fn workloads() -> List {
    let mut list = List::new("workloads", &["workload", "parameter", "default", "help"]);
    for spec in workload::with_program() {
        list.push([spec.name.into(), Cell::None, Cell::None, spec.help.into()]);
        for param in spec.params {
            let default = param.default.unwrap_or("none").into();
            list.push([spec.name.into(), param.name.into(), default, param.help.into()]);
        }
        for &what in spec.varies {
            list.push([spec.name.into(), "--seed".into(), Cell::None, what.into()]);
        }
    }
    list
}

fn sysctls() -> List {
    let mut list = List::new("sysctls", &["sysctl", "takes", "default", "help"]);
    for &sysctl in Sysctl::ALL {
        let takes = match (sysctl.choices(), sysctl.range()) {
            (Some(names), _) => names.join(", "),
            (None, (min, max)) => format!("{min} to {max}"),
        };
        // 0 is no default but "computed at boot" where the help says so.
        let at_boot = sysctl == Sysctl::MinFreeKbytes || sysctl.choices().is_some();
        let default = if at_boot { Cell::None } else { Sysctls::default().get(sysctl).into() };
        list.push([sysctl.name().into(), takes.into(), default, sysctl.help().into()]);
    }
    list
}

fn machines() -> List {
    let columns = ["machine", "nodes", "cpus", "default_mem", "cpu_percent", "disk", "help", "source"];
    let mut list = List::new("machines", &columns).in_tables(1, &["help"]);
    list.fact("cpu_percent", "CPU time of an operation in percent of the reference cost table");
    for machine in MACHINES {
        list.push([
            machine.name.into(),
            u64::from(machine.nodes).into(),
            u64::from(machine.cpus).into(),
            machine.default_mem.into(),
            u64::from(machine.cpu_percent).into(),
            machine.disk.name.into(),
            machine.help.into(),
            machine.source.into(),
        ]);
    }
    list
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
        let features = Feature::ALL.iter().map(|feature| feature.name());
        Self {
            kernels: Version::presets().map(|(name, _)| name).collect(),
            features: features.chain(cache_ext::POLICIES.iter().map(|info| info.feature)).collect(),
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
            unmodelled: Feature::UNMODELLED,
            machines: &self.machines,
            sysctls: &self.sysctls,
        }
    }
}

#[cfg(test)]
mod tests {
    use mm::version::parse::VersionError;

    use super::*;

    #[test]
    fn every_list_has_entries_and_every_entry_says_what_it_is() {
        for (what, about) in [
            ("workloads", "help"),
            ("kernels", "help"),
            ("features", "help"),
            ("sysctls", "help"),
            ("counters", "file"),
            ("machines", "source"),
            ("policies", "help"),
        ] {
            let about = list(what).unwrap().column(about);
            assert!(!about.is_empty() && about.iter().all(|text| !text.is_empty()), "{what}");
        }
    }

    #[test]
    fn every_listed_kernel_and_feature_reads_as_a_kernel() {
        let names = Names::default();
        for kernel in list("kernels").unwrap().column("kernel") {
            for feature in list("features").unwrap().column("feature") {
                let text = format!("{kernel}+{feature}");
                let spec = names.vocabulary().kernel(&text).unwrap();
                if PolicyInfo::of_feature(&feature).is_some() {
                    continue; // No version has one.
                }
                // A feature that the kernel has already is known, too.
                let version = Version::parse(&spec.to_string());
                assert!(matches!(version, Ok(_) | Err(VersionError::Change(_))), "{text}: {version:?}");
            }
        }
    }
}
