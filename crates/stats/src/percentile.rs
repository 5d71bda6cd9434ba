//! Percentiles of latencies: of samples themselves, and of very many by a histogram of bounded size.
//!
//! Both are nearest ranks: the smallest value that at least so many percent of all values do not exceed. A
//! percentile that fewer than one value lies beyond is not known: the largest of ten is no p99.
//! [`Histogram`] is an HDR histogram (Gil Tene), whose classes are so narrow that a value keeps three digits.
//! Left out: interpolation, which makes up values that nobody measured.

use std::collections::BTreeMap;

/// The percentile of `samples`, by nearest rank; `None` where there are too few for it, or none.
pub fn of_samples(samples: &[f64], percent: f64) -> Option<f64> {
    let rank = rank(samples.len() as u64, percent)?;
    let mut sorted = samples.to_vec();
    let (_, value, _) = sorted.select_nth_unstable_by(usize::try_from(rank).ok()? - 1, f64::total_cmp);
    Some(*value)
}

/// The percentile of values that came up so often, by nearest rank; `None` where there are too few for it, or none.
pub fn of_counts(counts: &BTreeMap<u64, u64>, percent: f64) -> Option<u64> {
    let rank = rank(counts.values().sum(), percent)?;
    let mut seen = 0;
    let found = counts.iter().find(|(_, count)| {
        seen += **count;
        seen >= rank
    });
    found.map(|(&value, _)| value)
}

/// Which of `count` sorted values is the percentile, from 1; `None` where no whole value lies beyond it.
fn rank(count: u64, percent: f64) -> Option<u64> {
    let beyond = count as f64 * (100.0 - percent) / 100.0;
    // 14 values have a median although 7 lie beyond it; 99 have no p99.
    if count == 0 || beyond < 1.0 - 1e-9 {
        return None;
    }
    let rank = (count as f64 * percent / 100.0 - 1e-9).ceil();
    Some((rank as u64).clamp(1, count))
}

/// How long many things took, in nanoseconds, each with three digits.
#[derive(Debug, Clone)]
pub struct Histogram {
    classes: hdrhistogram::Histogram<u64>,
    longest: Option<u64>,
}

/// Digits that a value keeps.
const DIGITS: u8 = 3;

impl Default for Histogram {
    fn default() -> Self {
        let classes = hdrhistogram::Histogram::new(DIGITS).expect("three digits are allowed");
        Self { classes, longest: None }
    }
}

impl Histogram {
    /// Adds `count` values of so many nanoseconds.
    pub fn add(&mut self, nanoseconds: u64, count: u64) {
        // It grows with its largest value, and all that fit u64 fit it.
        self.classes.record_n(nanoseconds, count).expect("the histogram resizes itself");
        self.longest = self.longest.max((count > 0).then_some(nanoseconds));
    }

    /// How many values there are.
    pub fn count(&self) -> u64 {
        self.classes.len()
    }

    /// The percentile in nanoseconds; `None` where there are too few values for it, or none.
    pub fn percentile(&self, percent: f64) -> Option<u64> {
        let rank = rank(self.count(), percent)?;
        // By rank, as its own percentiles round the other way in the last class.
        let mut seen = 0;
        let class = self.classes.iter_recorded().find(|class| {
            seen += class.count_since_last_iteration();
            seen >= rank
        })?;
        Some(self.classes.median_equivalent(class.value_iterated_to()).min(self.longest?))
    }

    /// The longest, with all its digits.
    pub fn longest(&self) -> Option<u64> {
        self.longest
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn ranks_are_those_of_samples_and_the_largest_of_few_is_no_tail() {
        let samples: Vec<f64> = (1..=100).rev().map(f64::from).collect();
        let of = |percent| of_samples(&samples, percent);
        assert_eq!([of(50.0), of(95.0), of(99.0), of(99.9)], [Some(50.0), Some(95.0), Some(99.0), None]);
        assert_eq!((of_samples(&samples[1..], 99.0), of_samples(&[], 50.0)), (None, None));
        let counts = BTreeMap::from([(10, 98), (20, 1), (30, 1)]);
        assert_eq!(
            [50.0, 98.0, 99.0, 99.9].map(|percent| of_counts(&counts, percent)),
            [Some(10), Some(10), Some(20), None]
        );
        assert_eq!((of_samples(&[7.0], 50.0), of_samples(&[7.0, 9.0], 50.0)), (None, Some(7.0)));
    }

    #[test]
    fn a_histogram_of_nothing_has_no_percentile() {
        let empty = Histogram::default();
        assert_eq!((empty.percentile(50.0), empty.longest(), empty.count()), (None, None, 0));
        let mut whole = Histogram::default();
        whole.add(0, 2);
        whole.add(u64::MAX, 1);
        assert_eq!((whole.percentile(50.0), whole.count()), (Some(0), 3));
    }

    proptest! {
        #[test]
        fn a_histogram_agrees_with_the_samples_to_three_digits(
            samples in prop::collection::vec(1_u64..10_000_000_000, 1..2000),
        ) {
            let mut histogram = Histogram::default();
            samples.iter().for_each(|&value| histogram.add(value, 1));
            let exact: Vec<f64> = samples.iter().map(|&value| value as f64).collect();
            for percent in [50.0, 90.0, 99.0, 99.9] {
                let (found, wanted) = (histogram.percentile(percent), of_samples(&exact, percent));
                prop_assert_eq!(found.is_some(), wanted.is_some());
                if let (Some(found), Some(wanted)) = (found, wanted) {
                    prop_assert!((found as f64 / wanted - 1.0).abs() < 1e-3, "{} {}", found, wanted);
                }
            }
        }
    }
}
