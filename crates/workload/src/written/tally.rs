//! What labelled steps of tasks did, and how long each operation took.
//!
//! Latencies are kept as a histogram whose buckets are 1/32 apart: a percentile is right to 3 %. Next:
//! [`super::measure`], which makes metrics of it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use units::Nanos;

/// Buckets from one power of two to the next.
const PARTS_SHIFT: u32 = 5;

/// What the steps of each label did.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Tally(BTreeMap<String, Figures>);

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
struct Figures {
    operations: u64,
    bytes: u64,
    /// From the beginning to the end of steps, all tasks added up.
    busy_ns: u64,
    tasks: u64,
    /// Each pass, in nanoseconds.
    passes: Vec<u64>,
    /// MiB a second along passes.
    rates: Vec<f64>,
    /// What was counted.
    found: Vec<u64>,
    /// By bucket.
    latencies: BTreeMap<u32, u64>,
}

impl Tally {
    /// An operation of `label` took so long.
    pub(crate) fn operation(&mut self, label: &str, bytes: u64, took: Nanos) {
        let figures = self.figures(label);
        figures.operations += 1;
        figures.bytes += bytes;
        *figures.latencies.entry(bucket(took.get())).or_default() += 1;
    }

    /// A step of `label` took so long, pauses included.
    pub(crate) fn step(&mut self, label: &str, took: Nanos) {
        let figures = self.figures(label);
        figures.busy_ns += took.get();
        figures.tasks = 1;
    }

    /// A pass of `label` took so long.
    pub(crate) fn pass(&mut self, label: &str, took: Nanos) {
        self.figures(label).passes.push(took.get());
    }

    /// So many bytes of a pass took so long; nothing where no time has passed.
    pub(crate) fn part(&mut self, label: &str, bytes: u64, took: Nanos) {
        if took > Nanos::ZERO {
            let rate = (bytes as f64 / f64::from(1 << 20)) / took.as_secs_f64();
            self.figures(label).rates.push(rate);
        }
    }

    /// So many were counted.
    pub(crate) fn counted(&mut self, label: &str, pages: u64) {
        self.figures(label).found.push(pages);
    }

    /// Adds what another task did.
    pub(crate) fn add(&mut self, other: Self) {
        for (label, theirs) in other.0 {
            let own = self.0.entry(label).or_default();
            own.operations += theirs.operations;
            own.bytes += theirs.bytes;
            own.busy_ns += theirs.busy_ns;
            own.tasks += theirs.tasks;
            own.passes.extend(theirs.passes);
            own.rates.extend(theirs.rates);
            own.found.extend(theirs.found);
            for (bucket, count) in theirs.latencies {
                *own.latencies.entry(bucket).or_default() += count;
            }
        }
    }

    /// Seconds of each pass.
    pub(crate) fn passes(&self, label: &str) -> Vec<f64> {
        let passes = self.0.get(label).into_iter().flat_map(|figures| &figures.passes);
        passes.map(|&pass| Nanos(pass).as_secs_f64()).collect()
    }

    /// Seconds of all passes.
    pub(crate) fn took(&self, label: &str) -> f64 {
        Nanos(self.0.get(label).map_or(0, |figures| figures.passes.iter().sum())).as_secs_f64()
    }

    pub(crate) fn rates(&self, label: &str) -> Vec<f64> {
        self.0.get(label).map_or(Vec::new(), |figures| figures.rates.clone())
    }

    pub(crate) fn found(&self, label: &str) -> &[u64] {
        self.0.get(label).map_or(&[], |figures| &figures.found)
    }

    pub(crate) fn operations(&self, label: &str) -> u64 {
        self.0.get(label).map_or(0, |figures| figures.operations)
    }

    /// What all tasks together move in a second, on average over the time that each of them is at it.
    pub(crate) fn mib_per_second(&self, label: &str) -> Option<f64> {
        let figures = self.0.get(label).filter(|figures| figures.busy_ns > 0)?;
        let seconds = figures.busy_ns as f64 / 1e9 / figures.tasks.max(1) as f64;
        Some(figures.bytes as f64 / (1 << 20) as f64 / seconds)
    }

    /// The latency below which so many of a hundred operations lie.
    pub(crate) fn percentile_us(&self, label: &str, percentile: f64) -> Option<f64> {
        let figures = self.0.get(label).filter(|figures| figures.operations > 0)?;
        let rank = (percentile / 100.0 * figures.operations as f64).ceil().max(1.0) as u64;
        let mut below = 0;
        for (&bucket, &count) in &figures.latencies {
            below += count;
            if below >= rank {
                return Some(upper(bucket) / 1000.0);
            }
        }
        None
    }

    fn figures(&mut self, label: &str) -> &mut Figures {
        if !self.0.contains_key(label) {
            self.0.insert(label.to_owned(), Figures::default());
        }
        self.0.get_mut(label).expect("it is there")
    }
}

/// The bucket of a number: its power of two, and five bits behind it.
fn bucket(ns: u64) -> u32 {
    let power = ns.max(1).ilog2();
    if power <= PARTS_SHIFT {
        return u32::try_from(ns).expect("it is below 64");
    }
    let part = (ns >> (power - PARTS_SHIFT)) & ((1 << PARTS_SHIFT) - 1);
    (power << PARTS_SHIFT) + u32::try_from(part).expect("it is below 32")
}

/// Where a bucket ends.
fn upper(bucket: u32) -> f64 {
    let (power, part) = (bucket >> PARTS_SHIFT, bucket & ((1 << PARTS_SHIFT) - 1));
    if bucket < 2 << PARTS_SHIFT {
        return f64::from(bucket);
    }
    let base = 2_f64.powi(i32::try_from(power).expect("it is below 64"));
    base * (1.0 + f64::from(part + 1) / f64::from(1 << PARTS_SHIFT))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_right_to_three_per_cent() {
        let mut tally = Tally::default();
        for us in 1..=1000 {
            tally.operation("read", 4096, Nanos::from_micros(us));
        }
        for (percentile, us) in [(50.0, 500.0), (99.0, 990.0), (100.0, 1000.0), (0.1, 1.0)] {
            let told = tally.percentile_us("read", percentile).unwrap();
            assert!((told / us - 1.0).abs() < 0.035, "{percentile}: {told} for {us}");
        }
        assert_eq!(tally.percentile_us("write", 50.0), None);
    }

    #[test]
    fn buckets_grow_with_what_they_hold() {
        let mut last = 0;
        for ns in (0..200).chain([1000, 1024, 1055, 1 << 40, u64::MAX]) {
            assert!(bucket(ns) >= last, "{ns}");
            assert!(upper(bucket(ns)) >= ns as f64 * 0.999_999, "{ns}");
            last = bucket(ns);
        }
    }

    #[test]
    fn tasks_at_the_same_time_add_up_their_rates() {
        let one = || {
            let mut tally = Tally::default();
            tally.operation("read", 1 << 20, Nanos::from_secs(1));
            tally.step("read", Nanos::from_secs(1));
            tally
        };
        let mut both = one();
        both.add(one());
        assert_eq!((one().mib_per_second("read"), both.mib_per_second("read")), (Some(1.0), Some(2.0)));
    }
}
