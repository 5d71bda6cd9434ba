//! Counters of a real kernel without what it counted while files were laid out and caches dropped behind them, which is
//! before the run in every sense but that of time.
//!
//! Left out: the model, which lays files out in no time. Next: [`crate::run::counted`] for what happened in a run.

use linux::{LaidOut, Row};
use recording::is_gauge;

use crate::run::counted::Counters;

/// Takes what was counted while files were laid out, before the run in every sense but that of time, from `now`, read
/// at `at_ns`; in the middle of such a time counters stand as at its start.
pub(crate) fn without(laid_out: &[LaidOut], at_ns: u64, now: &mut Counters) {
    for (name, value) in now.iter_mut().filter(|(name, _)| !is_gauge(name)) {
        *value = value.saturating_sub(counted_then(laid_out, at_ns, name, *value));
    }
}

/// The same of each of `rows`. Of files that are laid out before `first_phase_ns`, gauges have from the beginning what
/// that changed: page cache and slab that are there when the run begins, in the model too.
pub(crate) fn rows_without(laid_out: &[LaidOut], first_phase_ns: u64, columns: &[String], rows: &mut [Row]) {
    let Some(first) = laid_out.first() else { return };
    for LaidOut { ns: [begin, end], vmstat: [before, after] } in laid_out {
        if *end > first_phase_ns {
            break;
        }
        let gauges = columns.iter().enumerate().filter(|(_, name)| is_gauge(name));
        for (column, name) in gauges {
            let Some((&before, &after)) = before.get(name).zip(after.get(name)) else { continue };
            for (at_ns, values) in rows.iter_mut().take_while(|(at_ns, _)| at_ns < end) {
                let value = &mut values[column];
                *value = if *at_ns < *begin { (*value + after).saturating_sub(before) } else { after };
            }
        }
    }
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

#[cfg(test)]
mod tests {
    use super::*;

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
        let free = [950, 890, 800, 650, 620].into_iter();
        let rows: Vec<Row> = read
            .into_iter()
            .zip(free)
            .map(|((at_ns, dirtied), free)| (at_ns, vec![free, dirtied, dirtied]))
            .collect();
        let numbers = |rows: &[Row], column: usize| rows.iter().map(|row| row.1[column]).collect::<Vec<_>>();
        // The first phase ends before files are laid out, between both, and after them.
        for (phase_ns, free) in
            [(1, [950, 890, 800, 650, 620]), (5, [850, 800, 800, 650, 620]), (9, [750, 700, 700, 600, 620])]
        {
            let mut rows = rows.clone();
            rows_without(&laid_out, phase_ns, &columns, &mut rows);
            assert_eq!((numbers(&rows, 0), numbers(&rows, 1)), (free.to_vec(), left.to_vec()));
            assert_eq!(numbers(&rows, 2), read.map(|(_, file)| file));
        }
    }
}
