//! From counters as a kernel shows them, which count since boot, to what happened in a run and in
//! each of its phases.
//!
//! Left out: counters of cgroups, which recordings keep as they were at the end. Next:
//! [`recording::is_gauge`], which tells what counts from what does not.

use std::collections::BTreeMap;

use linux::{LaidOut, Row};
use recording::{Phase, is_gauge};

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

/// Takes what was counted while files were laid out, before the run in every sense but that of time, from `now`, read
/// at `at_ns`; in the middle of such a time counters stand as at its start.
pub(crate) fn without(laid_out: &[LaidOut], at_ns: u64, now: &mut Counters) {
    for (name, value) in now.iter_mut().filter(|(name, _)| !is_gauge(name)) {
        *value = value.saturating_sub(counted_then(laid_out, at_ns, name, *value));
    }
}

/// The same of each of `rows`.
pub(crate) fn rows_without(laid_out: &[LaidOut], columns: &[String], rows: &mut [Row]) {
    let Some(first) = laid_out.first() else { return };
    let is_counter = |name: &String| !is_gauge(name) && first.vmstat[0].contains_key(name);
    let counters = columns.iter().enumerate().filter(|(_, name)| is_counter(name));
    for (column, name) in counters {
        // Both are in the order of time, and there can be thousands of either.
        let (mut left, mut counted) = (laid_out.iter().peekable(), 0);
        for (at_ns, values) in &mut *rows {
            while let Some(time) = left.next_if(|time| time.ns[1] <= *at_ns) {
                counted += counted_then(core::slice::from_ref(time), *at_ns, name, values[column]);
            }
            let now = left
                .peek()
                .map_or(0, |&time| counted_then(core::slice::from_ref(time), *at_ns, name, values[column]));
            values[column] = values[column].saturating_sub(counted + now);
        }
    }
}

/// What of `value`, a counter's at `at_ns`, was counted while files were laid out.
fn counted_then(laid_out: &[LaidOut], at_ns: u64, name: &str, value: u64) -> u64 {
    let begun = laid_out.iter().filter(|time| time.ns[0] <= at_ns);
    let counted = begun.map(|LaidOut { ns, vmstat }| {
        let [before, after] = vmstat.each_ref().map(|counters| counters.get(name).copied().unwrap_or(0));
        (if ns[1] <= at_ns { after } else { value }).saturating_sub(before)
    });
    counted.sum()
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

/// The workload's metrics, those that are called as a counter with that counter's value: the
/// workload and the monitor read it one after the other, and one name is one number.
pub(crate) fn as_counted(mut metrics: BTreeMap<String, f64>, vmstat: &Counters) -> BTreeMap<String, f64> {
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

    /// The model lays files out in no time, and a guest wrote 13,231 pages in every world with a laid-out file.
    #[test]
    fn what_is_counted_while_files_are_laid_out_is_not_the_runs() {
        let counters = |dirtied, free| {
            Counters::from([("nr_dirtied".to_owned(), dirtied), ("nr_free_pages".to_owned(), free)])
        };
        let laid_out = [
            LaidOut { ns: [2, 4], vmstat: [counters(10, 900), counters(110, 800)] },
            LaidOut { ns: [6, 8], vmstat: [counters(120, 700), counters(170, 600)] },
        ];
        // Read at 1, 3, 4, 7 and 9.
        let read = [(1, 8), (3, 50), (4, 110), (7, 140), (9, 175)];
        let left = read.map(|(at_ns, dirtied)| {
            let mut now = counters(dirtied, 500);
            without(&laid_out, at_ns, &mut now);
            assert_eq!(now["nr_free_pages"], 500);
            now["nr_dirtied"]
        });
        assert_eq!(left, [8, 10, 10, 20, 25]);
        let columns = ["nr_free_pages", "nr_dirtied", "cg_root_file"].map(str::to_owned);
        let mut rows: Vec<Row> = read.map(|(at_ns, dirtied)| (at_ns, vec![500, dirtied, dirtied])).into();
        rows_without(&laid_out, &columns, &mut rows);
        assert_eq!(rows.iter().map(|(_, values)| values[1]).collect::<Vec<_>>(), left);
        assert!(rows.iter().zip(read).all(|((_, values), (_, file))| values[0] == 500 && values[2] == file));
    }

    /// A guest's kernel counts on between the workload's reading and the monitor's.
    #[test]
    fn a_metric_with_a_counters_name_is_that_counter_over_the_whole_run() {
        let metrics = [("thp_fault_alloc", 34.0), ("percentage_huge", 15.0), ("nr_free_pages", 3.0)];
        let metrics = metrics.map(|(name, value)| (name.to_owned(), value)).into();
        let vmstat = [("thp_fault_alloc", 35), ("nr_free_pages", 9)];
        let told = as_counted(metrics, &vmstat.map(|(name, count)| (name.to_owned(), count)).into());
        assert_eq!(told.into_values().collect::<Vec<_>>(), [3.0, 15.0, 35.0]);
    }
}
