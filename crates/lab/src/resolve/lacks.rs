//! What a version of Linux does not have: refused before a run that would fail for it, told with the results
//! of one that goes on without it.
//!
//! Neighbours: [`crate::resolve::setting`], which asks; `mm::version` for what versions have.

use std::collections::BTreeMap;

use kernel::Filesystem;
use mm::base::layout::{HugeSupport, MemoryLayout, PageTables};
use mm::base::sysctl::Sysctl;
use mm::version::feature::Feature;
use mm::version::presets::Version;
use mm::version::rules::{
    Cgroups, Compaction, HugePages, KswapdDone, NodeReclaim, ProactiveReclaim, Rules, SwapHigh, Writepage,
    Zswap,
};
use sim::Hardware;
use workload::scenario::{ScenarioProblem, Swap};
use workload::{Need, Scenario, Workload};

use crate::error::LabError;

/// Checks that `kernel` has what a workload cannot do without.
///
/// # Errors
/// What it lacks, with a kernel that has it.
pub(crate) fn check_workload(kernel: &Version, workload: &Workload) -> Result<(), LabError> {
    let (rules, base, name) = (&kernel.rules, kernel.base, workload.name());
    for need in workload.needs() {
        let (message, hint) = match need {
            Need::Cgroups if rules.cgroups == Cgroups::Off => {
                let message = format!("`{base}` has no cgroup v2, in which `{name}` puts its tasks");
                (message, first_with(|rules| rules.cgroups == Cgroups::V2))
            }
            Need::HugePageAdvice if rules.huge_pages == HugePages::Off => {
                let message = format!("`{base}` has no huge pages that `{name}` could ask for");
                let hint = "leave out `--param advice=madvise`: every fault is of a single page there";
                (message, hint.to_owned())
            }
            Need::Cgroups | Need::HugePages | Need::HugePageAdvice => continue,
            need => match asked(rules, need) {
                Ok(()) => continue,
                Err((what, has)) => {
                    (format!("`{base}` has no {what}, which `{name}` is to use"), first_with(has))
                }
            },
        };
        return Err(ScenarioProblem::Model { message, hint: Some(hint) }.into());
    }
    Ok(())
}

/// Checks that a machine has the huge pages that a workload asks for: `madvise` fails where they are not built in.
///
/// # Errors
/// It has none.
pub(crate) fn check_huge_advice(layout: &MemoryLayout, scenario: &Scenario) -> Result<(), LabError> {
    let needs = scenario.workload.needs();
    if layout.huge_pages != HugeSupport::Absent || !needs.contains(&Need::HugePageAdvice) {
        return Ok(());
    }
    let machine = scenario.machine.as_deref().unwrap_or_default();
    let message =
        format!("`{machine}` has no huge pages, which `{}` is to ask for", scenario.workload.name());
    let hint = "name another machine, such as `--machine vm-2cpu`, or leave the parameter out".to_owned();
    Err(ScenarioProblem::Model { message, hint: Some(hint) }.into())
}

/// Something that not every kernel has: what it is called, and which rules have it.
type Has = (&'static str, fn(&Rules) -> bool);

/// Whether a kernel can be asked for room like that; if not, what it lacks.
fn asked(rules: &Rules, need: Need) -> Result<(), Has> {
    let (what, has): Has = match need {
        Need::ReclaimSwappiness => ("`swappiness=` in memory.reclaim", |rules| {
            matches!(rules.proactive_reclaim, ProactiveReclaim::Quarters | ProactiveReclaim::QuartersOrAnon)
        }),
        Need::AnonReclaim => ("`swappiness=max` in memory.reclaim", |rules| {
            rules.proactive_reclaim == ProactiveReclaim::QuartersOrAnon
        }),
        Need::SwapHigh => ("memory.swap.high", |rules| rules.swap_high == SwapHigh::Sleep),
        Need::NodeReclaim => ("file `reclaim` of a node", |rules| rules.node_reclaim == NodeReclaim::File),
        _ => ("memory.reclaim", |rules| rules.proactive_reclaim != ProactiveReclaim::None),
    };
    if has(rules) { Ok(()) } else { Err((what, has)) }
}

/// Checks that `kernel` has the sysctls that are set.
///
/// # Errors
/// The first one that it does not have, or that it has another range for.
pub(crate) fn check_sysctls(kernel: &Version, pairs: &BTreeMap<String, String>) -> Result<(), LabError> {
    for (name, value) in pairs {
        let sysctl = Sysctl::parse(name)?;
        if !kernel.rules.has_sysctl(sysctl) {
            let message = format!("`{}` has no `{sysctl}`", kernel.base);
            let hint = format!("leave it out, or {}", first_with(|rules| rules.has_sysctl(sysctl)));
            return Err(ScenarioProblem::Model { message, hint: Some(hint) }.into());
        }
        check_range(kernel, sysctl, sysctl.parse_value(value)?)?;
    }
    Ok(())
}

/// Checks that `kernel` has zswap, if that stands in front of swap.
///
/// # Errors
/// It has none here.
pub(crate) fn check_zswap(kernel: &Version, swap: &Swap) -> Result<(), LabError> {
    if swap.zswap.is_none() || kernel.rules.zswap != Zswap::Absent {
        return Ok(());
    }
    let message = format!("the model of `{}` has no zswap", kernel.base);
    let hint = first_with(|rules| rules.zswap != Zswap::Absent);
    Err(ScenarioProblem::Model { message, hint: Some(hint) }.into())
}

fn check_range(kernel: &Version, sysctl: Sysctl, value: u64) -> Result<(), LabError> {
    let most = kernel.rules.sysctl_max(sysctl);
    if value <= most {
        return Ok(());
    }
    let (base, (least, _)) = (kernel.base, sysctl.range());
    let message = format!("`{value}` is no value for `{sysctl}` of `{base}`: it takes {least} to {most}");
    let hint = first_with(|rules| rules.has_sysctl(sysctl) && rules.sysctl_max(sysctl) >= value);
    Err(ScenarioProblem::Model { message, hint: Some(hint) }.into())
}

/// Names the oldest kernel that is so.
fn first_with(holds: impl Fn(&Rules) -> bool) -> String {
    let has_it = |&(name, _): &(&str, &str)| holds(&Version::parse(name).expect("a preset").rules);
    match Version::presets().find(has_it) {
        Some((name, _)) => format!("name a kernel that has it: `--kernel {name}` or later"),
        None => "name another kernel".to_owned(),
    }
}

/// What is assumed of `kernel` on a machine with this memory.
pub(crate) fn assumed_of_machine(kernel: &Version, layout: &MemoryLayout) -> Vec<String> {
    let (rules, base) = (&kernel.rules, kernel.base);
    let mut told = Vec::new();
    let has_zones = layout.nodes.iter().any(|node| node.zones.len() > 1);
    if rules.kswapd_done == KswapdDone::EveryZone && has_zones {
        told.push(format!(
            "assumed: {base} keeps its lists of pages by node; the real one has them for each zone"
        ));
    }
    if rules.compaction == Compaction::Off {
        told.push(format!(
            "assumed: {base} reclaims for large blocks as for single pages; the real one takes the neighbours \
             of a page, too (lumpy reclaim)"
        ));
    }
    told
}

/// Which of the features that `kernel` has beside its version's, or has no longer, cannot show on a machine.
pub(crate) fn idle_features(kernel: &Version, hardware: &Hardware, layout: &MemoryLayout) -> Vec<String> {
    let released = &Version::parse(kernel.base).expect("a preset").rules;
    let idle = |feature: &Feature| match feature {
        Feature::MglruWalk | Feature::MglruBloom if hardware.build.page_tables != PageTables::Hardware => {
            Some("no CPU marks accesses in page tables there")
        }
        Feature::LargeFolioReadahead | Feature::LargeFolioWrite | Feature::LargeFolioExt4
            if layout.huge_pages == HugeSupport::Absent =>
        {
            Some("its kernels are built without huge pages, and so without large folios of files")
        }
        _ => None,
    };
    let is_changed = |feature: &&Feature| kernel.rules.has(feature.on()) != released.has(feature.on());
    let changed = Feature::ALL.iter().filter(is_changed);
    changed
        .filter_map(|feature| Some((feature.name(), idle(feature)?)))
        .map(|(name, why)| format!("`{name}` makes no difference on this machine: {why}"))
        .collect()
}

/// What is assumed of `kernel` under a workload on this filesystem.
pub(crate) fn assumed_of_workload(
    kernel: &Version,
    workload: &Workload,
    filesystem: Filesystem,
) -> Vec<String> {
    let (rules, base) = (&kernel.rules, kernel.base);
    let mut told = Vec::new();
    if rules.huge_pages == HugePages::Off && workload.needs().contains(&Need::HugePages) {
        told.push(format!("{base} has no huge pages: every fault is of a single page"));
    }
    if rules.writepage == Writepage::Anyone {
        match filesystem {
            Filesystem::Ext3 => {}
            Filesystem::Ext4 => told.push(format!(
                "assumed: files of {base} have extents, as on ext4; those of ext3 have a block of pointers for \
                 each 4 MiB in the page cache"
            )),
            Filesystem::Xfs => told.push(format!(
                "assumed: XFS of {base} reclaims inodes as later ones do; the real one waits for those that \
                 are being written"
            )),
        }
    }
    told
}

#[cfg(test)]
mod tests {
    use sim::machines;
    use units::Bytes;

    use super::*;

    #[test]
    fn features_that_a_guest_of_user_mode_linux_cannot_show_are_named() {
        let told = |machine, kernel| {
            let kernel = Version::parse(kernel).expect("a kernel");
            let (hardware, layout) = machines::build(machine, Bytes(256 << 20), &kernel).expect("a machine");
            idle_features(&kernel, &hardware, &layout)
        };
        assert_eq!(
            told("guest-uml", "linux-7.2+lru-gen-mglru-walk-large-folio-ext4"),
            [
                "`large-folio-ext4` makes no difference on this machine: its kernels are built without huge pages, \
                 and so without large folios of files",
                "`mglru-walk` makes no difference on this machine: no CPU marks accesses in page tables there",
            ]
        );
        for (machine, kernel) in [
            ("guest-uml", "linux-6.12+lru-gen"),
            ("vm-2cpu", "linux-7.2+lru-gen-mglru-walk-large-folio-ext4"),
        ] {
            assert_eq!(told(machine, kernel), [""; 0], "{machine} {kernel}");
        }
    }
}
