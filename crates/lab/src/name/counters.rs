//! Every counter that recordings hold: where it comes from, and whether it counts up.
//!
//! Names of simulated counters are read off the model, so that a counter that is added is listed.
//! Real kernels have more lines in the same files, and files that the simulator does not keep; those
//! are listed as they are named. Left out: metrics and samples, which are a workload's own.
//!
//! In names, `N` stands for a node's number, `ZONE` for a zone, and `PATH` for a cgroup with `_` for
//! `/`; below `memcg` in `recording.json` the cgroup's counters are without `cg_PATH_`.

use mm::base::gfp::MigrateType;
use mm::base::layout::MemoryLayout;
use mm::base::sysctl::Sysctls;
use mm::{MemcgId, Version};
use recording::is_gauge;
use report::List;
use sim::SimMemory;
use sim::run::boot_memory;
use units::{Bytes, Pages};

/// What keeps a counter.
const BOTH: &str = "sim, real";
const SIM: &str = "sim";
const REAL: &str = "real";

const EVENT: &str = "event";
const GAUGE: &str = "gauge";

/// What real recordings have beside the names of the model.
const REAL_ONLY: [(&str, &str, &str); 6] = [
    ("any other line of the file", "by name", "/proc/vmstat"),
    ("zN_ZONE_managed", GAUGE, "/proc/zoneinfo"),
    ("buddy_nN_ZONE_oORDER", GAUGE, "/proc/buddyinfo"),
    ("pagetype_nN_ZONE_TYPE_oORDER", GAUGE, "/proc/pagetypeinfo"),
    ("pageblocks_nN_ZONE_TYPE", GAUGE, "/proc/pagetypeinfo"),
    ("mi_LINE", GAUGE, "/proc/meminfo, kB"),
];

/// What is told of each kind of stall: averages in hundredths of a percent, and the total.
const PRESSURE: [&str; 4] = ["avg10", "avg60", "avg300", "total_us"];

/// The list of counters: machine, zones, cgroups, then what only real kernels have.
pub(crate) fn list() -> List {
    let mut list = List::new("counters", &["counter", "kind", "kept_by", "file"]);
    let mut add = |name: &str, kind: &str, kept_by: &str, file: &str| {
        list.push([name.into(), kind.into(), kept_by.into(), file.into()]);
    };
    let memory = any_memory();
    for (name, _) in memory.vmstat() {
        let (kept_by, file) = machine_file(name);
        add(name, kind(name), kept_by, file);
    }
    add("zN_ZONE_free", GAUGE, BOTH, "/proc/zoneinfo");
    for column in ["boost", "min", "low", "high"] {
        add(&format!("zN_ZONE_{column}"), GAUGE, BOTH, "/proc/zoneinfo");
    }
    for kind in &MigrateType::ALL[..MigrateType::PCP_TYPES] {
        let kind = format!("{kind:?}").to_lowercase();
        add(&format!("zN_ZONE_free_{kind}"), GAUGE, BOTH, "/proc/pagetypeinfo, pages");
        add(&format!("zN_ZONE_blocks_{kind}"), GAUGE, BOTH, "/proc/pagetypeinfo, pageblocks");
    }
    add("slab_CACHE_active", GAUGE, BOTH, "/proc/slabinfo, objects");
    add("slab_CACHE_num", GAUGE, BOTH, "/proc/slabinfo, objects");
    for (name, _) in memory.memcg_stat_as_flushed(MemcgId::ROOT) {
        add(&format!("cg_PATH_{name}"), kind(name), BOTH, "memory.stat");
    }
    for event in ["low", "high", "max", "oom", "oom_kill"] {
        add(&format!("cg_PATH_events_{event}"), EVENT, BOTH, "memory.events");
    }
    for file in ["current", "low", "min", "max"] {
        let file = format!("memory.{file}");
        let name = if file == "memory.current" { "current" } else { &file };
        add(&format!("cg_PATH_{name}"), GAUGE, BOTH, &file);
    }
    for (group, file) in [("", "/proc/pressure/memory"), ("cg_PATH_", "memory.pressure")] {
        for (stalled, value) in
            ["some", "full"].into_iter().flat_map(|stalled| PRESSURE.map(|v| (stalled, v)))
        {
            let name = format!("{group}psi_memory_{stalled}_{value}");
            add(&name, kind(&name), BOTH, file);
        }
    }
    for (name, kind, file) in REAL_ONLY {
        add(name, kind, REAL, file);
    }
    list
}

/// Memory that has just booted, for the names of its counters.
fn any_memory() -> SimMemory {
    let kernel = Version::parse(Version::NEWEST_LONG_TERM).expect("it is listed");
    let layout = MemoryLayout::flat(Bytes(64 << 20).to_pages_floor().max(Pages(1)), 1);
    boot_memory(&layout, kernel, Sysctls::default()).expect("it boots in 64 MiB")
}

fn kind(name: &str) -> &'static str {
    if is_gauge(name) { GAUGE } else { EVENT }
}

/// Who keeps a counter of the machine, and where a real kernel has it.
fn machine_file(name: &str) -> (&'static str, &'static str) {
    match name {
        "extfrag_events_all" => (BOTH, "tracepoint mm_page_alloc_extfrag"),
        "extfrag_events" => (BOTH, "the same, where fragmenting"),
        "fragment_stall" => (SIM, "/proc/vmstat, as posted"),
        "fragment_stall_usec" => (SIM, "tracepoint mm_fragmentation_stall"),
        "nr_page_cache_tree_nodes" => (SIM, "/proc/slabinfo, radix_tree_node"),
        "nr_dentries" => (SIM, "/proc/slabinfo, dentry"),
        "nr_inodes" => (SIM, "/proc/sys/fs/inode-nr"),
        _ => (BOTH, "/proc/vmstat"),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::sync::Arc;

    use super::*;
    use crate::resolve::request::{Request, Subject};
    use crate::run::simulate::simulate;

    /// `nr_*` gauges, zones and `memory.current` were in recordings and not in the list.
    #[test]
    fn every_counter_of_a_simulated_recording_is_listed_and_no_other() {
        let mut request = Request::new(Subject::Workload("hot-and-stream".into()));
        request.mem = Some("32M".into());
        request.params = ["hot=1M", "stream=40M", "topology=parent", "limit=16M"].map(String::from).to_vec();
        let scenario = request.resolve().unwrap();
        let run = simulate(&scenario, "a run", &Arc::default(), |_| {}).unwrap();

        let pattern = |name: &str| {
            let zone = name.strip_prefix("z0_").and_then(|rest| rest.split_once('_'));
            let group =
                ["cg_P_A_", "cg_P_B_", "cg_P_"].into_iter().find_map(|prefix| name.strip_prefix(prefix));
            let slab = name.strip_prefix("slab_").and_then(|rest| rest.rsplit_once('_'));
            if let Some((_, column)) = slab.filter(|(_, column)| ["active", "num"].contains(column)) {
                return format!("slab_CACHE_{column}");
            }
            match (zone, group) {
                (Some((_, column)), _) => format!("zN_ZONE_{column}"),
                (_, Some(stat)) => format!("cg_PATH_{stat}"),
                _ => name.to_owned(),
            }
        };
        let sampled = run.series.columns.iter().chain(run.series.constant.keys()).chain(run.vmstat.keys());
        let of_groups = run.memcg.values().flat_map(|stats| stats.keys());
        let held: BTreeSet<String> = sampled
            .map(|name| pattern(name))
            .chain(of_groups.map(|name| format!("cg_PATH_{name}")))
            .collect();

        let list = list();
        let kept_by = list.column("kept_by");
        let listed = list.column("counter").into_iter().zip(kept_by).filter(|(_, by)| by != REAL);
        let listed: BTreeSet<String> = listed.map(|(name, _)| name).collect();
        let missing: Vec<_> = held.difference(&listed).collect();
        let invented: Vec<_> = listed.difference(&held).collect();
        assert!(missing.is_empty() && invented.is_empty(), "missing {missing:?}, invented {invented:?}");
    }

    #[test]
    fn events_count_up_and_gauges_do_not() {
        let list = list();
        let kinds = list.column("kind");
        let of = |name: &str| {
            let index = list.column("counter").iter().position(|counter| counter == name);
            kinds[index.unwrap_or_else(|| panic!("{name} is not listed"))].clone()
        };
        for (name, kind) in [
            ("nr_free_pages", GAUGE),
            ("nr_dirtied", EVENT),
            ("pgscan_kswapd", EVENT),
            ("workingset_nodes", GAUGE),
            ("zN_ZONE_free", GAUGE),
            ("cg_PATH_inactive_file", GAUGE),
            ("cg_PATH_pgscan", EVENT),
            ("cg_PATH_current", GAUGE),
        ] {
            assert_eq!(of(name), kind, "{name}");
        }
    }
}
