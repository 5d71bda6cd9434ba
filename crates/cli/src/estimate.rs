//! How long the rest of the runs will take, by those that have finished.
//!
//! Every run is taken to be as long as the mean of those before it, and as many go on at once as did so far.
//! Left out: how far a run is; the simulated time of its end is not known.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// Runs that began and ended.
#[derive(Debug, Default)]
pub(crate) struct Estimate {
    begun: BTreeMap<usize, Instant>,
    finished: u32,
    took: Duration,
    at_once: usize,
    told: BTreeMap<usize, Duration>,
}

/// How often is told how far a run is that is not drawn.
const TOLD_EVERY: Duration = Duration::from_secs(30);

impl Estimate {
    /// Run `index` begins at `now`.
    pub(crate) fn begin(&mut self, index: usize, now: Instant) {
        self.begun.insert(index, now);
        self.at_once = self.at_once.max(self.begun.len());
    }

    /// How long run `index` has taken, if that was not told for a while; it is told now.
    pub(crate) fn due(&mut self, index: usize, now: Instant) -> Option<Duration> {
        let took = now - *self.begun.get(&index)?;
        let told = self.told.entry(index).or_default();
        (took >= *told + TOLD_EVERY).then(|| {
            *told = took;
            took
        })
    }

    /// Run `index` is over.
    pub(crate) fn end(&mut self, index: usize, now: Instant) {
        if let Some(begun) = self.begun.remove(&index) {
            self.finished += 1;
            self.took += now - begun;
        }
    }

    /// How long the rest of `total` runs will take from `now` on; `None` before the first has ended.
    pub(crate) fn left(&self, total: usize, now: Instant) -> Option<Duration> {
        let mean = self.took.checked_div(self.finished)?;
        let rests: Vec<Duration> =
            self.begun.values().map(|&begun| mean.saturating_sub(now - begun)).collect();
        let waiting = total.saturating_sub(self.finished as usize + self.begun.len());
        let work = rests.iter().sum::<Duration>() + mean * u32::try_from(waiting).unwrap_or(u32::MAX);
        let shared = work / u32::try_from(self.at_once.max(1)).unwrap_or(u32::MAX);
        Some(rests.into_iter().max().map_or(shared, |longest| longest.max(shared)))
    }
}

/// In words, no more exact than it is: `about 3 min left`; `None` for what is over at once.
pub(crate) fn told(left: Duration) -> Option<String> {
    let seconds = left.as_secs();
    Some(match seconds {
        0..10 => return None,
        10..100 => format!("about {} s left", seconds.next_multiple_of(10)),
        100..6000 => format!("about {} min left", seconds.div_ceil(60)),
        _ => format!("about {:.1} h left", left.as_secs_f64() / 3600.0),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rest_is_as_long_as_what_has_finished_and_as_parallel() {
        let start = Instant::now();
        let at = |seconds| start + Duration::from_secs(seconds);
        let mut estimate = Estimate::default();
        estimate.begin(0, at(0));
        estimate.begin(1, at(0));
        assert_eq!(estimate.left(6, at(20)), None, "nobody knows yet how long a run is");
        estimate.end(0, at(30));
        estimate.begin(2, at(30));
        // Run 1 is due now, run 2 in 30 s, three more wait: 120 s of work for two at once.
        assert_eq!(estimate.left(6, at(30)), Some(Duration::from_secs(60)));
        estimate.end(1, at(50));
        assert_eq!(estimate.left(6, at(50)), Some(Duration::from_secs(70)), "20 and 3 x 40 s, two at once");
        estimate.end(2, at(70));
        assert_eq!(estimate.left(3, at(70)), Some(Duration::ZERO));
    }

    /// A run of an hour said nothing where its progress is not drawn.
    #[test]
    fn a_long_run_is_told_of_every_half_minute() {
        let start = Instant::now();
        let mut estimate = Estimate::default();
        estimate.begin(0, start);
        let mut due =
            |seconds| estimate.due(0, start + Duration::from_secs(seconds)).map(|took| took.as_secs());
        assert_eq!([29, 30, 31, 59, 61, 90].map(&mut due), [None, Some(30), None, None, Some(61), None]);
    }

    #[test]
    fn a_single_run_that_is_left_is_not_shared() {
        let start = Instant::now();
        let mut estimate = Estimate::default();
        (0..4).for_each(|index| estimate.begin(index, start));
        let later = start + Duration::from_secs(40);
        (0..3).for_each(|index| estimate.end(index, later));
        estimate.begin(4, later);
        assert_eq!(estimate.left(5, later), Some(Duration::from_secs(40)));
    }

    #[test]
    fn an_estimate_is_told_as_coarsely_as_it_is_known() {
        let told = |seconds| told(Duration::from_secs(seconds)).unwrap_or_default();
        let texts = [9, 11, 99, 100, 5_999, 6_000].map(told);
        assert_eq!(
            texts,
            [
                "",
                "about 20 s left",
                "about 100 s left",
                "about 2 min left",
                "about 100 min left",
                "about 1.7 h left"
            ]
        );
    }
}
