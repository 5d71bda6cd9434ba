//! Counters over time, as read: rates are computed from two neighbours by whoever shows them.
//!
//! On disk this is `series.csv`: a header `time_ns,NAME,...`, then a row of integers for each
//! sample. A column that never changes would cost as much as one that tells something, so
//! [`Series::new`] keeps such columns as one number each; they go to `recording.json`.

use std::collections::BTreeMap;

/// Counters over time.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Series {
    /// Names of the columns, without the time.
    pub columns: Vec<String>,
    /// Time of the sample in nanoseconds, and one value for each column. Event counters are
    /// cumulative, gauges are as read.
    pub rows: Vec<(u64, Vec<u64>)>,
    /// Columns that had the same value in every row.
    pub constant: BTreeMap<String, u64>,
}

impl Series {
    /// A series of these samples; columns that never change move to [`Series::constant`].
    ///
    /// # Panics
    /// When a row does not have one value for each column.
    pub fn new(columns: Vec<String>, rows: Vec<(u64, Vec<u64>)>) -> Self {
        for (time, values) in &rows {
            assert_eq!(values.len(), columns.len(), "the row at {time} ns does not fit the columns");
        }
        let Some((_, first)) = rows.first() else {
            return Self { columns, rows, constant: BTreeMap::new() };
        };
        let changes: Vec<bool> = (0..columns.len())
            .map(|index| rows.iter().any(|(_, values)| values[index] != first[index]))
            .collect();
        let constant = columns
            .iter()
            .zip(first)
            .zip(&changes)
            .filter(|&(_, changes)| !changes)
            .map(|((name, &value), _)| (name.clone(), value))
            .collect();
        let keep = |values: Vec<u64>| kept(values, &changes);
        let rows = rows.into_iter().map(|(time, values)| (time, keep(values))).collect();
        Self { columns: kept(columns, &changes), rows, constant }
    }

    /// The values of one column, row by row; `None` when the series does not have it.
    pub fn column(&self, name: &str) -> Option<Vec<u64>> {
        if let Some(&value) = self.constant.get(name) {
            return Some(vec![value; self.rows.len()]);
        }
        let index = self.columns.iter().position(|column| column == name)?;
        Some(self.rows.iter().map(|(_, values)| values[index]).collect())
    }

    /// Times of the rows in nanoseconds.
    pub fn times_ns(&self) -> impl Iterator<Item = u64> + '_ {
        self.rows.iter().map(|(time, _)| *time)
    }
}

fn kept<T>(items: Vec<T>, keep: &[bool]) -> Vec<T> {
    items.into_iter().zip(keep).filter(|&(_, &keep)| keep).map(|(item, _)| item).collect()
}

/// The part of a series that goes into `recording.json`.
pub(crate) mod constant_only {
    use super::Series;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    pub(crate) fn serialize<S: Serializer>(series: &Series, serializer: S) -> Result<S::Ok, S::Error> {
        series.constant.serialize(serializer)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Series, D::Error> {
        Deserialize::deserialize(from).map(|constant| Series { constant, ..Series::default() })
    }
}

/// Whether a counter of `/proc/vmstat` or `memory.stat` says how much there is now, rather than
/// how often something has happened since boot.
pub fn is_gauge(name: &str) -> bool {
    /// `nr_` means a gauge, except for these and `nr_tlb_*`: see `vmstat_text` in `mm/vmstat.c`.
    const EVENTS_NAMED_NR: [&str; 7] = [
        "nr_vmscan_write",
        "nr_vmscan_immediate_reclaim",
        "nr_dirtied",
        "nr_written",
        "nr_throttled_written",
        "nr_foll_pin_acquired",
        "nr_foll_pin_released",
    ];
    /// `memory.stat` has gauges in bytes under these names, and the files of a cgroup.
    const GAUGES_OF_MEMCG: [&str; 22] = [
        "anon",
        "file",
        "kernel",
        "kernel_stack",
        "pagetables",
        "percpu",
        "sock",
        "shmem",
        "file_mapped",
        "file_dirty",
        "file_writeback",
        "anon_thp",
        "file_thp",
        "inactive_anon",
        "active_anon",
        "inactive_file",
        "active_file",
        "unevictable",
        "slab_reclaimable",
        "slab_unreclaimable",
        "slab",
        "swapcached",
    ];
    if name.starts_with("nr_") {
        return !EVENTS_NAMED_NR.contains(&name) && !name.starts_with("nr_tlb_");
    }
    let is_average = name.contains("psi_memory_") && !name.ends_with("_total_us");
    is_average || name == "workingset_nodes" || name.starts_with("memory.") || GAUGES_OF_MEMCG.contains(&name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_that_never_change_are_kept_as_one_number() {
        let names = ["nr_free_pages", "nr_zone_unevictable", "pgscan_kswapd"].map(String::from).to_vec();
        let series = Series::new(names, vec![(0, vec![900, 7, 0]), (10, vec![800, 7, 32])]);
        assert_eq!(
            series,
            Series {
                columns: vec!["nr_free_pages".into(), "pgscan_kswapd".into()],
                rows: vec![(0, vec![900, 0]), (10, vec![800, 32])],
                constant: BTreeMap::from([("nr_zone_unevictable".into(), 7)]),
            }
        );
        assert_eq!(series.column("nr_zone_unevictable"), Some(vec![7, 7]));
        assert_eq!(series.column("pgscan_kswapd"), Some(vec![0, 32]));
        assert_eq!(series.column("pgscan_direct"), None);
    }

    #[test]
    fn a_name_with_nr_is_a_gauge_unless_it_counts_events() {
        assert!(is_gauge("psi_memory_some_avg10") && !is_gauge("psi_memory_some_total_us"));
        assert!(is_gauge("nr_free_pages") && is_gauge("nr_dirty") && is_gauge("inactive_file"));
        assert!(
            !is_gauge("nr_vmscan_write")
                && !is_gauge("nr_tlb_remote_flush")
                && !is_gauge("pgscan_kswapd")
                && !is_gauge("workingset_refault_file")
        );
    }
}
