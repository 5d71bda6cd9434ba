//! Which mechanism a counter tells of: the groups that `docs/fidelity.md` counts by.
//!
//! The first group with a beginning of the counter's name has it. A metric goes by what it is measured in. Left out:
//! how a run ended, which is counted by itself.

use recording::chunk::FactKind;
use recording::is_gauge;

/// Groups in the order in which they are shown, and what their counters begin with.
const COUNTERS: [(&str, &[&str]); 9] = [
    (
        "scanning and freeing",
        &["pgscan", "pgsteal", "pgskip", "pginodesteal", "kswapd_inodesteal", "slabs_scanned"],
    ),
    (
        "active and inactive lists",
        &["pgactivate", "pgdeactivate", "pgrefill", "pgrotated", "pglazyfree", "pgmoved"],
    ),
    ("refaults", &["workingset_"]),
    ("kswapd and stalls", &["allocstall", "pageoutrun", "kswapd_", "pgscan_direct_throttle", "drop_"]),
    ("swap", &["pswp", "swap_", "swpin", "swpout", "zsw", "nr_vmscan_write"]),
    ("faults", &["pgfault", "pgmajfault", "pgreuse"]),
    (
        "input, output, dirty pages",
        &["pgpg", "nr_dirtied", "nr_written", "nr_vmscan_immediate", "nr_throttled"],
    ),
    ("allocating and freeing pages", &["pgalloc", "pgfree", "compact_", "htlb", "unevictable_pgs"]),
    ("limits of cgroups", &["max", "high", "low", "oom", "events"]),
];
/// How many of them are of reclaim and swap.
const OF_RECLAIM: usize = 5;
/// Groups of what is no counter, behind those.
const LEVELS: &str = "levels at the end";
const OTHERS: &str = "other counters";
const RESULTS: &str = "results of workloads";
const TIMES: &str = "times and rates";

/// All groups.
pub(crate) fn groups() -> impl Iterator<Item = &'static str> {
    COUNTERS.iter().map(|(group, _)| *group).chain([OTHERS, LEVELS, RESULTS, TIMES])
}

/// The group of a counter or metric.
pub(crate) fn group_of(kind: &str, counter: &str) -> &'static str {
    if kind == FactKind::Metric.name() {
        return if is_time(counter) { TIMES } else { RESULTS };
    }
    let found = COUNTERS.iter().find(|(_, begin)| begin.iter().any(|begin| counter.starts_with(begin)));
    match found {
        // `workingset_nodes` and `swap` of a cgroup are levels, as `file` is.
        _ if is_gauge(counter) => LEVELS,
        Some((group, _)) => group,
        None => OTHERS,
    }
}

/// Whether a counter of `/proc/vmstat` tells of reclaim or swap.
pub(crate) fn is_of_reclaim(counter: &str) -> bool {
    let group = group_of(FactKind::Vmstat.name(), counter);
    COUNTERS[..OF_RECLAIM].iter().any(|(of_reclaim, _)| *of_reclaim == group)
}

/// Whether a metric is a time or a rate.
pub(crate) fn is_time(metric: &str) -> bool {
    let unit = report::unit(metric);
    matches!(unit, "s" | "ms" | "µs" | "ns") || unit.ends_with("/s")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_levels_and_metrics_go_to_their_mechanisms() {
        for (kind, counter, group) in [
            ("vmstat", "pgscan_direct", "scanning and freeing"),
            ("memcg", "pgrefill", "active and inactive lists"),
            ("vmstat", "workingset_refault_file", "refaults"),
            ("vmstat", "allocstall_normal", "kswapd and stalls"),
            ("vmstat", "pswpout", "swap"),
            ("vmstat", "nr_dirtied", "input, output, dirty pages"),
            ("vmstat", "nr_free_pages", LEVELS),
            ("vmstat", "numa_hit", OTHERS),
            ("metric", "hot_pages_cached", RESULTS),
            ("metric", "reread_seconds", TIMES),
        ] {
            assert_eq!(group_of(kind, counter), group, "{counter}");
            assert!(groups().any(|known| known == group));
        }
    }
}
