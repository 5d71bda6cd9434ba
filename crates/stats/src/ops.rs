//! mmtests' "Ops" rows: what `/proc/vmstat` says about reclaim and compaction over a run.
//!
//! Input is the difference of each counter over the run. [`OpsRules`] says whose rows: those that mmtests
//! printed in 2019 or prints today, in its order, under its labels and with its mistakes, or the repaired ones.
//! Repairs: allocation stalls are summed over all zones (mmtests prints the zone that comes last), the cost of
//! compaction counts free pages scanned (it reads a key that does not exist), and scans by khugepaged and by
//! proactive reclaim have rows of their own; rows that it fills from counters that no kernel has are left out.
//! One thing differs everywhere: a row whose counters the kernel does not have is `None`, where mmtests prints 0.
//! Left out: its rows of zones, which it computes and does not print.

use std::collections::BTreeMap;

use crate::describe::mean;
use crate::mmtests::Rules;

/// One row: mmtests' label and the value.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct OpsRow {
    /// mmtests' own label, without the leading `Ops`.
    pub label: &'static str,
    /// The value; `None` when the counters or the elapsed time are not known.
    pub value: Option<f64>,
}

/// Whose rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OpsRules {
    /// Ours.
    Repaired,
    /// mmtests' of a generation, mistakes and all.
    AsShipped(Rules),
}

/// Zone suffixes of `/proc/vmstat`; kernels before 4.8 put them on scan counters too.
const ZONES: [&str; 6] = ["dma", "dma32", "normal", "high", "movable", "device"];

/// All Ops rows from counter totals of one run; `elapsed_seconds` gives the velocities.
pub fn ops_rows(
    vmstat: &BTreeMap<String, u64>,
    elapsed_seconds: Option<f64>,
    rules: OpsRules,
) -> Vec<OpsRow> {
    let count = Counters { vmstat, rules };
    let mut rows = faults_and_io(count);
    rows.extend(reclaim(count, elapsed_seconds));
    rows.extend(huge_pages_and_compaction(count));
    rows.extend(numa(count));
    rows.into_iter().map(|(label, value)| OpsRow { label, value }).collect()
}

/// The rows of several iterations as one: the mean of each (mmtests prints the smallest at HEAD).
pub fn ops_mean(iterations: &[Vec<OpsRow>]) -> Vec<OpsRow> {
    let Some(first) = iterations.first() else { return Vec::new() };
    let value = |label| {
        let values: Option<Vec<f64>> = iterations
            .iter()
            .map(|rows| rows.iter().find(|row| row.label == label).and_then(|row| row.value))
            .collect();
        mean(&values?)
    };
    first.iter().map(|row| OpsRow { label: row.label, value: value(row.label) }).collect()
}

/// Rows that mmtests prints otherwise than it means to.
pub const MISTAKEN: [&str; 2] = ["Allocation stalls", "Compaction cost"];

type Rows = Vec<(&'static str, Option<f64>)>;

#[derive(Clone, Copy)]
struct Counters<'a> {
    vmstat: &'a BTreeMap<String, u64>,
    rules: OpsRules,
}

impl Counters<'_> {
    /// One counter.
    fn get(self, name: &str) -> Option<f64> {
        self.vmstat.get(name).map(|&count| count as f64)
    }

    /// A counter by its name of today or that of before.
    fn renamed(self, name: &str, before: &str) -> Option<f64> {
        self.get(name).or_else(|| self.get(before))
    }

    /// A counter and its per-zone parts; `None` when there is none of them.
    fn with_zones(self, name: &str) -> Option<f64> {
        let zones = ZONES.iter().filter_map(|zone| self.get(&format!("{name}_{zone}")));
        self.get(name).into_iter().chain(zones).reduce(|a, b| a + b)
    }

    fn is_repaired(self) -> bool {
        self.rules == OpsRules::Repaired
    }

    /// A row of a counter that no kernel of Linus has, which mmtests prints as 0.
    fn dead(self, label: &'static str, name: &str) -> Rows {
        if self.is_repaired() { Rows::new() } else { vec![(label, self.get(name))] }
    }

    /// Direct reclaims by allocations. mmtests maps all zones to one key, of which the zone that
    /// `/proc/vmstat` lists last remains, of those that it knows.
    fn allocation_stalls(self) -> Option<f64> {
        if self.is_repaired() {
            return self.with_zones("allocstall");
        }
        let known = ["allocstall_movable", "allocstall_normal", "allocstall_dma32", "allocstall_dma"];
        known.iter().chain(&["allocstall"]).find_map(|name| self.get(name))
    }

    /// Pages that kswapd and direct reclaim freed. Kernels before 3.4 count all of them, zone by zone, and those
    /// of kswapd.
    fn reclaimed(self) -> [Option<f64>; 2] {
        let (kswapd, direct) = (self.with_zones("pgsteal_kswapd"), self.with_zones("pgsteal_direct"));
        match self.get("kswapd_steal") {
            Some(kswapd) => [Some(kswapd), difference(self.with_zones("pgsteal"), Some(kswapd))],
            None => [kswapd, direct],
        }
    }
}

fn difference(a: Option<f64>, b: Option<f64>) -> Option<f64> {
    Some(a? - b?)
}

/// 100 * part / whole, or `otherwise` where the whole is 0.
fn share(part: Option<f64>, whole: Option<f64>, otherwise: f64) -> Option<f64> {
    let (part, whole) = (part?, whole?);
    Some(if whole == 0.0 { otherwise } else { 100.0 * part / whole })
}

fn faults_and_io(count: Counters<'_>) -> Rows {
    let mut rows = vec![
        ("Minor Faults", difference(count.get("pgfault"), count.get("pgmajfault"))),
        ("Major Faults", count.get("pgmajfault")),
        ("Swap Ins", count.get("pswpin")),
        ("Swap Outs", count.get("pswpout")),
        ("Allocation stalls", count.allocation_stalls()),
    ];
    rows.extend(count.dead("Fragmentation stalls", "fragment_stall"));
    rows.extend([
        ("DMA allocs", count.get("pgalloc_dma")),
        ("DMA32 allocs", count.get("pgalloc_dma32")),
        ("Normal allocs", count.get("pgalloc_normal")),
        ("Movable allocs", count.get("pgalloc_movable")),
    ]);
    if count.is_repaired() {
        rows.extend(sectors(count));
    }
    rows
}

/// In KiB, whatever the labels say.
fn sectors(count: Counters<'_>) -> Rows {
    vec![("Sector Reads", count.get("pgpgin")), ("Sector Writes", count.get("pgpgout"))]
}

fn reclaim(count: Counters<'_>, elapsed_seconds: Option<f64>) -> Rows {
    let (kswapd_scanned, direct_scanned) =
        (count.with_zones("pgscan_kswapd"), count.with_zones("pgscan_direct"));
    let [kswapd_reclaimed, direct_reclaimed] = count.reclaimed();
    let seconds = elapsed_seconds.filter(|&seconds| seconds > 0.0);
    let velocity = |scanned: Option<f64>| Some(scanned? / seconds?);
    let both = kswapd_scanned.zip(direct_scanned).map(|(kswapd, direct)| kswapd + direct);
    let mut rows = vec![
        ("Direct pages scanned", direct_scanned),
        ("Kswapd pages scanned", kswapd_scanned),
        ("Kswapd pages reclaimed", kswapd_reclaimed),
        ("Direct pages reclaimed", direct_reclaimed),
        ("Kswapd efficiency %", share(kswapd_reclaimed, kswapd_scanned, 100.0)),
        ("Kswapd velocity", velocity(kswapd_scanned)),
        ("Direct efficiency %", share(direct_reclaimed, direct_scanned, 100.0)),
        ("Direct velocity", velocity(direct_scanned)),
        ("Percentage direct scans", share(direct_scanned, both, 0.0)),
    ];
    if count.is_repaired() {
        rows.extend([
            ("Khugepaged pages scanned", count.get("pgscan_khugepaged")),
            ("Khugepaged pages reclaimed", count.get("pgsteal_khugepaged")),
            ("Proactive pages scanned", count.get("pgscan_proactive")),
            ("Proactive pages reclaimed", count.get("pgsteal_proactive")),
        ]);
    }
    rows.extend([
        ("Page writes by reclaim", count.get("nr_vmscan_write")),
        ("Page writes file", difference(count.get("nr_vmscan_write"), count.get("pswpout"))),
        ("Page writes anon", count.get("pswpout")),
        ("Page reclaim immediate", count.get("nr_vmscan_immediate_reclaim")),
    ]);
    if !count.is_repaired() {
        rows.extend(sectors(count));
    }
    rows.extend(count.dead("Page rescued immediate", "pgrescued"));
    rows.extend([
        ("Slabs scanned", count.get("slabs_scanned")),
        ("Direct inode steals", count.get("pginodesteal")),
        ("Kswapd inode steals", count.get("kswapd_inodesteal")),
    ]);
    rows.extend(count.dead("Kswapd skipped wait", "kswapd_skip_congestion_wait"));
    rows
}

fn huge_pages_and_compaction(count: Counters<'_>) -> Rows {
    let (stalls, success) = (count.get("compact_stall"), count.get("compact_success"));
    let (migrate_scanned, free_scanned) =
        (count.get("compact_migrate_scanned"), count.get("compact_free_scanned"));
    vec![
        ("THP fault alloc", count.get("thp_fault_alloc")),
        ("THP fault fallback", count.get("thp_fault_fallback")),
        ("THP collapse alloc", count.get("thp_collapse_alloc")),
        ("THP collapse fail", count.get("thp_collapse_alloc_failed")),
        ("THP split", count.renamed("thp_split_page", "thp_split")),
        ("THP split failed", count.get("thp_split_page_failed")),
        ("Compaction stalls", stalls),
        ("Compaction success", success),
        ("Compaction failures", count.get("compact_fail")),
        ("Compaction efficiency", share(success, stalls, 0.0)),
        ("Page migrate success", count.get("pgmigrate_success")),
        ("Page migrate failure", count.get("pgmigrate_fail")),
        ("Compaction pages isolated", count.get("compact_isolated")),
        ("Compaction migrate scanned", migrate_scanned),
        ("Compaction free scanned", free_scanned),
        ("Compact scan efficiency", share(migrate_scanned, free_scanned, 0.0)),
        ("Compaction cost", compaction_cost(count)),
        ("Kcompactd wake", count.get("compact_daemon_wake")),
        ("Kcompactd migrate scanned", count.get("compact_daemon_migrate_scanned")),
        ("Kcompactd free scanned", count.get("compact_daemon_free_scanned")),
    ]
}

/// mmtests' cost model in millions of its units: 7 for each page scanned, 19 for each isolated, 1038 for each
/// moved and 14 for each that could not be. As shipped it means to count free pages scanned and does not.
fn compaction_cost(count: Counters<'_>) -> Option<f64> {
    let free = if count.is_repaired() { count.get("compact_free_scanned")? } else { 0.0 };
    let scanned = 7.0 * (count.get("compact_migrate_scanned")? + free);
    let isolated = 19.0 * count.get("compact_isolated")?;
    let migrated = 1038.0 * count.get("pgmigrate_success")? + 14.0 * count.get("pgmigrate_fail")?;
    Some((scanned + isolated + migrated) / 1e6)
}

fn numa(count: Counters<'_>) -> Rows {
    let (updates, huge_updates) = (count.get("numa_pte_updates"), count.get("numa_huge_pte_updates"));
    // A range of 512 counts as one huge update and as 512 small ones, which mmtests once took for one.
    let both = |sign: f64| Some(updates? + sign * 512.0 * huge_updates?);
    let (hints, local) = (count.get("numa_hint_faults"), count.get("numa_hint_faults_local"));
    let migrated = count.get("numa_pages_migrated");
    let charged = if count.is_repaired() { both(-1.0) } else { updates };
    let cost = || Some((7.0 * charged? + 5000.0 * hints? + 19.0 * migrated?) / 1e6);
    let mut rows = vec![
        ("NUMA alloc hit", count.get("numa_hit")),
        ("NUMA alloc miss", count.get("numa_miss")),
        ("NUMA interleave hit", count.get("numa_interleave")),
        ("NUMA alloc local", count.get("numa_local")),
    ];
    rows.extend(match count.rules {
        OpsRules::AsShipped(Rules::G19) => [
            ("NUMA base PTE updates", updates),
            ("NUMA huge PMD updates", huge_updates),
            ("NUMA page range updates", both(1.0)),
        ],
        OpsRules::AsShipped(Rules::Head) | OpsRules::Repaired => [
            ("NUMA base-page range updates", updates),
            ("NUMA PTE updates", both(-1.0)),
            ("NUMA PMD updates", huge_updates),
        ],
    });
    rows.extend([
        ("NUMA hint faults", hints),
        ("NUMA hint local faults %", local),
        ("NUMA hint local percent", share(local, hints, 100.0)),
        ("NUMA pages migrated", migrated),
        ("AutoNUMA cost", cost()),
    ]);
    rows
}

#[cfg(test)]
mod tests {
    use super::*;

    fn vmstat(pairs: &[(&str, u64)]) -> BTreeMap<String, u64> {
        pairs.iter().map(|&(name, count)| (name.to_string(), count)).collect()
    }

    fn repaired(counters: &BTreeMap<String, u64>, seconds: Option<f64>) -> Vec<OpsRow> {
        ops_rows(counters, seconds, OpsRules::Repaired)
    }

    fn row(rows: &[OpsRow], label: &str) -> Option<f64> {
        rows.iter().find(|row| row.label == label).expect("the row exists").value
    }

    /// The counters and elapsed times printed in the change log of August 2019.
    #[test]
    fn the_published_efficiency_and_velocity_follow_from_the_published_counters() {
        let vanilla = vmstat(&[
            ("pgscan_kswapd", 45_382_917),
            ("pgsteal_kswapd", 30_869_570),
            ("pgscan_direct", 99_388),
            ("pgsteal_direct", 74_131),
        ]);
        let shrinker = vmstat(&[("pgscan_kswapd", 33_451_026), ("pgsteal_kswapd", 25_239_655)]);
        let (vanilla, shrinker) = (repaired(&vanilla, Some(8124.76)), repaired(&shrinker, Some(8358.05)));
        let table = |rows: &[OpsRow]| {
            ["Kswapd efficiency %", "Kswapd velocity"]
                .map(|label| format!("{:.2}", row(rows, label).unwrap()))
        };
        assert_eq!(table(&vanilla), ["68.02", "5585.75"]);
        assert_eq!(table(&shrinker), ["75.45", "4002.25"]);
        assert_eq!(format!("{:.1}", row(&vanilla, "Direct efficiency %").unwrap()), "74.6");
    }

    #[test]
    fn allocation_stalls_of_all_zones_are_summed() {
        let counters =
            vmstat(&[("allocstall_dma32", 3), ("allocstall_normal", 40), ("allocstall_movable", 7)]);
        assert_eq!(row(&repaired(&counters, None), "Allocation stalls"), Some(50.0));
    }

    #[test]
    fn a_throttle_counter_is_not_taken_for_a_zone() {
        let counters =
            vmstat(&[("pgscan_direct", 10), ("pgscan_direct_throttle", 5), ("pgscan_direct_normal", 2)]);
        assert_eq!(row(&repaired(&counters, None), "Direct pages scanned"), Some(12.0));
    }

    #[test]
    fn a_counter_that_the_kernel_does_not_have_is_missing_not_zero() {
        let rows = repaired(&vmstat(&[("pgscan_kswapd", 0), ("pgsteal_kswapd", 0)]), Some(10.0));
        assert_eq!(row(&rows, "THP fault alloc"), None);
        assert_eq!(row(&rows, "Kswapd efficiency %"), Some(100.0));
        assert_eq!(row(&rows, "Kswapd velocity"), Some(0.0));
        assert_eq!(row(&rows, "Percentage direct scans"), None);
    }

    #[test]
    fn compaction_cost_counts_the_scan_of_free_pages() {
        let counters = vmstat(&[
            ("compact_migrate_scanned", 1000),
            ("compact_free_scanned", 2000),
            ("compact_isolated", 100),
            ("pgmigrate_success", 10),
            ("pgmigrate_fail", 1),
        ]);
        let wanted = (7.0 * 3000.0 + 1900.0 + 10_380.0 + 14.0) / 1e6;
        assert_eq!(row(&repaired(&counters, None), "Compaction cost"), Some(wanted));
    }

    #[test]
    fn iterations_are_averaged_not_reduced_to_the_smallest() {
        let iterations = [10, 30]
            .map(|scanned| repaired(&vmstat(&[("pgscan_kswapd", scanned), ("slabs_scanned", 1)]), None));
        assert_eq!(row(&ops_mean(&iterations), "Kswapd pages scanned"), Some(20.0));
    }

    #[test]
    fn as_shipped_the_last_zone_and_no_free_pages_are_counted_and_that_is_told() {
        let counters = vmstat(&[
            ("allocstall_normal", 40),
            ("allocstall_movable", 7),
            ("compact_migrate_scanned", 1000),
            ("compact_free_scanned", 2_000_000),
            ("compact_isolated", 0),
            ("pgmigrate_success", 0),
            ("pgmigrate_fail", 0),
        ]);
        for rules in [Rules::G19, Rules::Head] {
            let rows = ops_rows(&counters, None, OpsRules::AsShipped(rules));
            assert_eq!(row(&rows, "Allocation stalls"), Some(7.0));
            assert_eq!(row(&rows, "Compaction cost"), Some(0.007));
            assert_eq!(row(&rows, "Page rescued immediate"), None);
        }
        let right = repaired(&counters, None);
        assert_eq!(MISTAKEN.map(|label| row(&right, label)), [Some(47.0), Some(14.007)]);
    }

    /// Kernels before 3.4 count what kswapd freed, and what everybody did zone by zone.
    #[test]
    fn old_kernels_tell_direct_reclaim_by_a_difference() {
        let counters = vmstat(&[("kswapd_steal", 30), ("pgsteal_dma", 1), ("pgsteal_normal", 99)]);
        let rows = repaired(&counters, None);
        assert_eq!(row(&rows, "Kswapd pages reclaimed"), Some(30.0));
        assert_eq!(row(&rows, "Direct pages reclaimed"), Some(70.0));
    }

    #[test]
    fn the_rows_of_both_generations_differ_in_the_names_of_numa_updates_only() {
        let labels = |rules| -> Vec<&str> {
            ops_rows(&BTreeMap::new(), None, OpsRules::AsShipped(rules)).iter().map(|row| row.label).collect()
        };
        let (then, now) = (labels(Rules::G19), labels(Rules::Head));
        assert_eq!((then.len(), now.len()), (62, 62));
        let differ: Vec<_> = then.iter().zip(&now).filter(|(then, now)| then != now).collect();
        assert_eq!(differ.len(), 3, "{differ:?}");
    }
}
