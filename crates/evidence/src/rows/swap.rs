//! Rows of measured guests that swap: how near is near enough, and counters of phases other than the usual one.
//!
//! Tolerances are those of SWAP 10: under a limit 6.1 repeats to half a percent, 6.12 with exact statistics to one and
//! otherwise to three beyond its repeats; with a disk, or for a whole machine, counts are bands.
//! Next: `data/swap-reference.toml`.

use recording::Recording;

use super::{Measured, Tolerance};

/// Counters of guests that swap.
pub(super) const REFERENCE: &str = include_str!("../../data/swap-reference.toml");

/// So many pages are activated by whoever else runs on the machine.
const OF_OTHERS: f64 = 36.0;

/// Whether `value` lies within the measured repeats, the least times `below` and the greatest times `above`.
pub(super) fn is_within(measured: &[f64], value: f64, below: f64, above: f64) -> bool {
    let least = measured.iter().copied().fold(f64::INFINITY, f64::min);
    let most = measured.iter().copied().fold(0.0, f64::max);
    (least * below..=most * above).contains(&value)
}

/// What a counter of a phase counted; none where the run has no such phase.
pub(super) fn value_of(run: &Recording, phase: &str, counter: &str) -> Option<f64> {
    let phase = run.phases.iter().find(|candidate| candidate.name == phase)?;
    Some(phase.vmstat.get(counter).map_or(0.0, |&count| count as f64))
}

/// How near a counter of a guest that swaps has to be.
pub(super) fn tolerance(measured: &Measured, counter: &str) -> Tolerance {
    let is_older = measured.kernel.starts_with("linux-6.1+") || measured.kernel == "linux-6.1";
    let on_disk = measured.swap.as_deref().is_some_and(|swap| swap.starts_with("disk"));
    let for_machine = measured.params.get("topology").is_some_and(|topology| topology == "global");
    let is_mglru = measured.kernel.ends_with("+lru-gen");
    let mut repeats = measured.real().get(counter).into_iter().flatten();
    if counter == "pgactivate" && repeats.all(|&pages| pages <= OF_OTHERS) {
        return Tolerance::Shown;
    }
    match (on_disk, for_machine) {
        // Who scans, kswapd or a program, is the scheduler's choice.
        (_, true) if matches!(counter, "pgscan_kswapd" | "pgscan_direct") => Tolerance::Shown,
        (_, true) if is_older || is_mglru => Tolerance::Repeats(0.15),
        (_, true) => Tolerance::Factor(1.8),
        // What is written depends on how many writes are under way.
        (true, false) if counter.ends_with("pswpout") => Tolerance::Factor(1.8),
        (true, false) => Tolerance::Repeats(0.15),
        (false, false) if is_older => Tolerance::Repeats(0.005),
        // All statistics are as old as in the measured guest.
        (false, false) if measured.interval.is_some() => Tolerance::Repeats(0.01),
        (false, false) => Tolerance::Repeats(0.03),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_band_begins_at_the_least_and_ends_at_the_greatest_repeat() {
        let repeats = [25_461.0, 43_615.0];
        let within = |value| is_within(&repeats, value, 0.97, 1.03);
        assert_eq!([24_600.0, 24_700.0, 44_900.0, 45_000.0].map(within), [false, true, true, false]);
        assert!(is_within(&[0.0], 0.0, 0.9, 1.1) && !is_within(&[0.0], 1.0, 0.9, 1.1), "nothing is nothing");
    }
}
