//! From counters as a kernel shows them, which count since boot, to what happened in a run and in
//! each of its phases.
//!
//! Left out: counters of cgroups, which recordings keep as they were at the end. Next:
//! [`recording::is_gauge`], which tells what counts from what does not.

use std::collections::BTreeMap;

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
}
