//! Percentiles of latencies: of samples themselves, and of very many by a histogram of bounded size.
//!
//! Both are nearest ranks: the smallest value that at least so many percent of all values do not exceed. A
//! percentile that fewer than one value lies beyond is not known: the largest of ten is no p99.
//! [`Histogram`] is an HDR histogram (Gil Tene), whose classes are so narrow that a value keeps three digits.
//! Left out: interpolation, which makes up values that nobody measured.

/// The percentile of `samples`, by nearest rank; `None` where there are too few for it, or none.
pub fn of_samples(samples: &[f64], percent: f64) -> Option<f64> {
    let rank = rank(samples.len() as u64, percent)?;
    let mut sorted = samples.to_vec();
    let (_, value, _) = sorted.select_nth_unstable_by(usize::try_from(rank).ok()? - 1, f64::total_cmp);
    Some(*value)
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
