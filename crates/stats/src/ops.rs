//! mmtests' "Ops" rows: what `/proc/vmstat` says about reclaim and compaction over a run.
//!
//! Input is the difference of each counter over the run. Three repairs against mmtests as
//! shipped: allocation stalls are summed over all zones (it prints the last zone only), the cost
//! of compaction counts free pages scanned (it reads a key that does not exist), and scans by
//! khugepaged and by proactive reclaim have rows of their own. A row whose counters the kernel
//! does not have is `None`, not 0. Rows that mmtests fills from dead counters are left out.

use std::collections::BTreeMap;

use crate::describe::mean;

/// One row: mmtests' label and the value.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct OpsRow {
    /// mmtests' own label, without the leading `Ops`.
    pub label: &'static str,
    /// The value; `None` when the counters or the elapsed time are not known.
    pub value: Option<f64>,
}

/// Zone suffixes of `/proc/vmstat`; kernels before 4.8 put them on scan counters too.
const ZONES: [&str; 6] = ["dma", "dma32", "normal", "high", "movable", "device"];

/// All Ops rows from counter totals of one run; `elapsed_seconds` gives the velocities.
pub fn ops_rows(vmstat: &BTreeMap<String, u64>, elapsed_seconds: Option<f64>) -> Vec<OpsRow> {
    let count = Counters(vmstat);
    let mut rows = faults_and_io(count);
    rows.extend(reclaim(count, elapsed_seconds));
    rows.extend(huge_pages_and_compaction(count));
    rows.extend(numa(count));
    rows.into_iter().map(|(label, value)| OpsRow { label, value }).collect()
}

/// The rows of several iterations as one: the mean of each (mmtests prints the smallest).
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

type Rows = Vec<(&'static str, Option<f64>)>;

#[derive(Clone, Copy)]
struct Counters<'a>(&'a BTreeMap<String, u64>);

impl Counters<'_> {
    /// One counter.
    fn get(self, name: &str) -> Option<f64> {
        self.0.get(name).map(|&count| count as f64)
    }

    /// A counter and its per-zone parts; `None` when there is none of them.
    fn with_zones(self, name: &str) -> Option<f64> {
        let zones = ZONES.iter().filter_map(|zone| self.get(&format!("{name}_{zone}")));
        self.get(name).into_iter().chain(zones).reduce(|a, b| a + b)
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
    vec![
        ("Minor Faults", difference(count.get("pgfault"), count.get("pgmajfault"))),
        ("Major Faults", count.get("pgmajfault")),
        ("Swap Ins", count.get("pswpin")),
        ("Swap Outs", count.get("pswpout")),
        ("Allocation stalls", count.with_zones("allocstall")),
        ("DMA allocs", count.get("pgalloc_dma")),
        ("DMA32 allocs", count.get("pgalloc_dma32")),
        ("Normal allocs", count.get("pgalloc_normal")),
        ("Movable allocs", count.get("pgalloc_movable")),
        ("Sector Reads", count.get("pgpgin")), // in KiB, whatever the label says
        ("Sector Writes", count.get("pgpgout")),
    ]
}

fn reclaim(count: Counters<'_>, elapsed_seconds: Option<f64>) -> Rows {
    let (kswapd_scanned, kswapd_reclaimed) =
        (count.with_zones("pgscan_kswapd"), count.with_zones("pgsteal_kswapd"));
    let (direct_scanned, direct_reclaimed) =
        (count.with_zones("pgscan_direct"), count.with_zones("pgsteal_direct"));
    let seconds = elapsed_seconds.filter(|&seconds| seconds > 0.0);
    let velocity = |scanned: Option<f64>| Some(scanned? / seconds?);
    let both = kswapd_scanned.zip(direct_scanned).map(|(kswapd, direct)| kswapd + direct);
    vec![
        ("Direct pages scanned", direct_scanned),
        ("Kswapd pages scanned", kswapd_scanned),
        ("Kswapd pages reclaimed", kswapd_reclaimed),
        ("Direct pages reclaimed", direct_reclaimed),
        ("Kswapd efficiency %", share(kswapd_reclaimed, kswapd_scanned, 100.0)),
        ("Kswapd velocity", velocity(kswapd_scanned)),
        ("Direct efficiency %", share(direct_reclaimed, direct_scanned, 100.0)),
        ("Direct velocity", velocity(direct_scanned)),
        ("Percentage direct scans", share(direct_scanned, both, 0.0)),
        ("Khugepaged pages scanned", count.get("pgscan_khugepaged")),
        ("Khugepaged pages reclaimed", count.get("pgsteal_khugepaged")),
        ("Proactive pages scanned", count.get("pgscan_proactive")),
        ("Proactive pages reclaimed", count.get("pgsteal_proactive")),
        ("Page writes by reclaim", count.get("nr_vmscan_write")),
        ("Page writes file", difference(count.get("nr_vmscan_write"), count.get("pswpout"))),
        ("Page writes anon", count.get("pswpout")),
        ("Page reclaim immediate", count.get("nr_vmscan_immediate_reclaim")),
        ("Slabs scanned", count.get("slabs_scanned")),
        ("Direct inode steals", count.get("pginodesteal")),
        ("Kswapd inode steals", count.get("kswapd_inodesteal")),
    ]
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
        ("THP split", count.get("thp_split_page")),
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

/// mmtests' cost model in millions of its units, with the scan of free pages counted.
fn compaction_cost(count: Counters<'_>) -> Option<f64> {
    let scanned = 7.0 * (count.get("compact_migrate_scanned")? + count.get("compact_free_scanned")?);
    let isolated = 19.0 * count.get("compact_isolated")?;
    let migrated = 1038.0 * count.get("pgmigrate_success")? + 14.0 * count.get("pgmigrate_fail")?;
    Some((scanned + isolated + migrated) / 1e6)
}

fn numa(count: Counters<'_>) -> Rows {
    let (updates, huge_updates) = (count.get("numa_pte_updates"), count.get("numa_huge_pte_updates"));
    let pte_updates = updates.zip(huge_updates).map(|(all, huge)| all - 512.0 * huge);
    let (hints, local) = (count.get("numa_hint_faults"), count.get("numa_hint_faults_local"));
    let migrated = count.get("numa_pages_migrated");
    let cost = || Some((7.0 * pte_updates? + 5000.0 * hints? + 19.0 * migrated?) / 1e6);
    vec![
        ("NUMA alloc hit", count.get("numa_hit")),
        ("NUMA alloc miss", count.get("numa_miss")),
        ("NUMA interleave hit", count.get("numa_interleave")),
        ("NUMA alloc local", count.get("numa_local")),
        ("NUMA base-page range updates", updates),
        ("NUMA PTE updates", pte_updates),
        ("NUMA PMD updates", huge_updates),
        ("NUMA hint faults", hints),
        ("NUMA hint local faults", local),
        ("NUMA hint local percent", share(local, hints, 100.0)),
        ("NUMA pages migrated", migrated),
        ("AutoNUMA cost", cost()),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn vmstat(pairs: &[(&str, u64)]) -> BTreeMap<String, u64> {
        pairs.iter().map(|&(name, count)| (name.to_string(), count)).collect()
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
        let (vanilla, shrinker) = (ops_rows(&vanilla, Some(8124.76)), ops_rows(&shrinker, Some(8358.05)));
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
        assert_eq!(row(&ops_rows(&counters, None), "Allocation stalls"), Some(50.0));
    }

    #[test]
    fn a_throttle_counter_is_not_taken_for_a_zone() {
        let counters =
            vmstat(&[("pgscan_direct", 10), ("pgscan_direct_throttle", 5), ("pgscan_direct_normal", 2)]);
        assert_eq!(row(&ops_rows(&counters, None), "Direct pages scanned"), Some(12.0));
    }

    #[test]
    fn a_counter_that_the_kernel_does_not_have_is_missing_not_zero() {
        let rows = ops_rows(&vmstat(&[("pgscan_kswapd", 0), ("pgsteal_kswapd", 0)]), Some(10.0));
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
        assert_eq!(row(&ops_rows(&counters, None), "Compaction cost"), Some(wanted));
    }

    #[test]
    fn iterations_are_averaged_not_reduced_to_the_smallest() {
        let iterations = [10, 30]
            .map(|scanned| ops_rows(&vmstat(&[("pgscan_kswapd", scanned), ("slabs_scanned", 1)]), None));
        assert_eq!(row(&ops_mean(&iterations), "Kswapd pages scanned"), Some(20.0));
    }
}
