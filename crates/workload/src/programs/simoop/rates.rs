//! What becomes of the works of `simoop`: percentiles of latencies, and rates by reporting interval.
//!
//! A rate has, as in the source's report: its value in the last interval, its average over all, and
//! percentiles of the average as it stood at each report. That these are percentiles of averages is read
//! from the source's own figures: its last rate of stalls, 3.80 a second, is above the 99th percentile,
//! 3.02, and single intervals had 20. Those of the intervals alone are samples.

use units::Nanos;

use super::tasks::Work;
use crate::system::outcome::Outcome;

/// The end of the warm-up or of an interval.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Report {
    pub(super) at: Nanos,
    /// When the run began.
    pub(super) begin: Nanos,
    /// Allocations that stalled since the warm-up, where the kernel counts them.
    pub(super) stalls: Option<u64>,
}

const PERCENTILES: [(&str, u64); 3] = [("p50", 50), ("p95", 95), ("p99", 99)];

/// The metrics and samples of works, of which those before the first report do not count.
pub(super) fn outcome(works: &[Work], reports: &[Report]) -> Outcome {
    let mut outcome = Outcome::default();
    let (Some(first), Some(last)) = (reports.first(), reports.last()) else { return outcome };
    outcome.metric("run_seconds", last.at.saturating_sub(last.begin).as_secs_f64());
    let measured: Vec<&Work> =
        works.iter().filter(|work| first.at < work.ended && work.ended <= last.at).collect();
    latency(&mut outcome, "read_latency", measured.iter().map(|work| work.read_us));
    latency(&mut outcome, "write_latency", measured.iter().map(|work| work.write_us));
    latency(&mut outcome, "alloc_latency", measured.iter().map(|work| work.alloc_us));
    let done_by = |report: &Report| measured.iter().filter(|work| work.ended <= report.at).count() as u64;
    let works: Vec<u64> = reports.iter().map(done_by).collect();
    rates(&mut outcome, "work_rate", reports, &works);
    if let Some(stalls) = reports.iter().map(|report| report.stalls).collect::<Option<Vec<u64>>>() {
        rates(&mut outcome, "alloc_stall_rate", reports, &stalls);
    }
    outcome
}

/// The percentiles of one part of all works.
fn latency(outcome: &mut Outcome, name: &str, micros: impl Iterator<Item = u64>) {
    let mut micros: Vec<u64> = micros.collect();
    micros.sort_unstable();
    for (percentile, percent) in PERCENTILES {
        if let Some(&value) = nearest_rank(&micros, percent) {
            outcome.metric(&format!("{name}_{percentile}_us"), value as f64);
        }
    }
}

/// The metrics of one rate; `counts` are what there was since the first report.
fn rates(outcome: &mut Outcome, name: &str, reports: &[Report], counts: &[u64]) {
    let of = |from: usize, to: usize| {
        let seconds = reports[to].at.saturating_sub(reports[from].at).as_secs_f64();
        (counts[to] - counts[from]) as f64 / seconds
    };
    let intervals: Vec<f64> = (1..reports.len()).map(|end| of(end - 1, end)).collect();
    let mut averages: Vec<f64> = (1..reports.len()).map(|end| of(0, end)).collect();
    let (Some(&last), Some(&average)) = (intervals.last(), averages.last()) else { return };
    averages.sort_by(f64::total_cmp);
    outcome.metric(name, average);
    outcome.metric(&format!("{name}_last"), last);
    outcome.metric(&format!("{name}_most"), intervals.iter().copied().fold(0.0, f64::max));
    for (percentile, percent) in PERCENTILES {
        if let Some(&value) = nearest_rank(&averages, percent) {
            outcome.metric(&format!("{name}_{percentile}"), value);
        }
    }
    outcome.samples.insert(format!("{name}_of_interval"), intervals);
}

/// The smallest of `sorted` that `percent` of them are not above.
fn nearest_rank<T>(sorted: &[T], percent: u64) -> Option<&T> {
    let rank = (sorted.len() as u64 * percent).div_ceil(100).max(1);
    sorted.get(usize::try_from(rank).expect("an index") - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    fn report(second: u64, stalls: u64) -> Report {
        Report { at: Nanos(second * SECOND), begin: Nanos(0), stalls: Some(stalls) }
    }

    fn work(second: u64, micros: u64) -> Work {
        Work { ended: Nanos(second * SECOND), read_us: micros, alloc_us: 2 * micros, write_us: 3 * micros }
    }

    /// ```text
    ///  second  0     10        20        30       40
    ///          | warm |         |         |        |
    ///  works   x   x  |   x     |  xxx    |        | x
    ///  stalls         |   40    |   0     |   2    |
    /// ```
    #[test]
    fn rates_are_those_of_intervals_and_percentiles_those_of_the_average_so_far() {
        let reports = [report(10, 0), report(20, 40), report(30, 40), report(40, 42)];
        let works = [work(1, 7), work(5, 7), work(15, 100), work(22, 200), work(23, 300), work(24, 400)];
        let late = [&works[..], &[work(41, 7)]].concat();
        assert_eq!(
            outcome(&works, &reports),
            outcome(&late, &reports),
            "what ends after the end is not counted"
        );
        let outcome = outcome(&works, &reports);
        let of = |name: &str| outcome.metrics[name];
        assert_eq!(outcome.samples["alloc_stall_rate_of_interval"], [4.0, 0.0, 0.2]);
        assert_eq!(outcome.samples["work_rate_of_interval"], [0.1, 0.3, 0.0]);
        assert_eq!((of("alloc_stall_rate"), of("alloc_stall_rate_last")), (1.4, 0.2));
        // Averages so far: 4, 2 and 1.4.
        assert_eq!((of("alloc_stall_rate_p50"), of("alloc_stall_rate_p99")), (2.0, 4.0));
        assert_eq!(of("alloc_stall_rate_most"), 4.0);
        assert_eq!((of("read_latency_p50_us"), of("read_latency_p99_us")), (200.0, 400.0));
        assert_eq!((of("alloc_latency_p50_us"), of("write_latency_p50_us")), (400.0, 600.0));
        assert_eq!(of("run_seconds"), 40.0);
    }

    #[test]
    fn a_kernel_that_counts_no_stalls_has_no_rate_of_them() {
        let reports = [10, 20].map(|second| Report { stalls: None, ..report(second, 0) });
        let outcome = outcome(&[work(15, 1)], &reports);
        assert!(!outcome.metrics.keys().any(|name| name.starts_with("alloc_stall")));
        assert_eq!(outcome.metrics["work_rate"], 0.1);
    }
}
