//! From counters as a kernel shows them, which count since boot, to what happened in a run and in
//! each of its phases.
//!
//! Left out: counters of cgroups, which recordings keep as they were at the end. Next:
//! [`recording::is_gauge`], which tells what counts from what does not.

use std::collections::BTreeMap;

use recording::{Phase, is_gauge};
use workload::WorkloadSpec;

/// Values of counters by name, as read at one moment.
pub(crate) type Counters = BTreeMap<String, u64>;

/// Events between two readings; gauges stay as they are in the later one, `now`.
pub(crate) fn since(before: &Counters, now: &Counters) -> Counters {
    let counted = |(name, &value): (&String, &u64)| {
        let past = if is_gauge(name) { 0 } else { before.get(name).copied().unwrap_or(0) };
        (name.clone(), value.saturating_sub(past))
    };
    now.iter().map(counted).collect()
}

/// What happened in each phase: of each its name, when it ended, and what was read then. `before`
/// was read when the first began.
pub(crate) fn phases(
    mut before: Counters,
    ended: impl IntoIterator<Item = (String, u64, Counters)>,
) -> Vec<Phase> {
    let phase = |(name, at_ns, now)| {
        let vmstat = since(&before, &now);
        before = now;
        Phase { name, at_ns, vmstat }
    };
    ended.into_iter().map(phase).collect()
}

/// The metrics of `workload`, those that are called as a counter with that counter's value: the workload and the
/// monitor read it one after the other, and one name is one number. A workload of a file says itself over which
/// phases its metrics count.
pub(crate) fn as_counted(
    mut metrics: BTreeMap<String, f64>,
    workload: &str,
    vmstat: &Counters,
) -> BTreeMap<String, f64> {
    if WorkloadSpec::find(workload).is_err() {
        return metrics;
    }
    for (name, metric) in &mut metrics {
        if let Some(&count) = vmstat.get(name).filter(|_| !is_gauge(name)) {
            *metric = count as f64;
        }
    }
    metrics
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_phase_counts_its_own_events_and_reads_gauges_at_its_end() {
        let counters = |scanned, free| {
            Counters::from([("pgscan_kswapd".to_owned(), scanned), ("nr_free_pages".to_owned(), free)])
        };
        let ended = [("first".to_owned(), 5, counters(10, 900)), ("second".to_owned(), 9, counters(25, 800))];
        let shown = |before| {
            let phases = phases(before, ended.clone());
            phases.into_iter().map(|phase| (phase.at_ns, phase.vmstat)).collect::<Vec<_>>()
        };
        assert_eq!(shown(Counters::new()), [(5, counters(10, 900)), (9, counters(15, 800))]);
        assert_eq!(shown(counters(7, 950)), [(5, counters(3, 900)), (9, counters(15, 800))]);
    }

    /// A guest's kernel counts on between the workload's reading and the monitor's.
    #[test]
    fn a_metric_with_a_counters_name_is_that_counter_over_the_whole_run() {
        let metrics = [("thp_fault_alloc", 34.0), ("percentage_huge", 15.0), ("nr_free_pages", 3.0)];
        let metrics: BTreeMap<_, _> = metrics.map(|(name, value)| (name.to_owned(), value)).into();
        let vmstat = [("thp_fault_alloc", 35), ("nr_free_pages", 9)];
        let vmstat = vmstat.map(|(name, count)| (name.to_owned(), count)).into();
        let told =
            |workload| as_counted(metrics.clone(), workload, &vmstat).into_values().collect::<Vec<_>>();
        assert_eq!(told("huge-faults"), [3.0, 15.0, 35.0]);
        assert_eq!(told("of-a-file"), [3.0, 15.0, 34.0], "it may count over one phase");
    }
}
