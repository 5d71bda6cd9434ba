//! Means and spread of one set of samples.
//!
//! Rates are averaged harmonically, times arithmetically. The caller says which; nothing here
//! guesses. Next: [`crate::difference`], which compares two sets.

/// Count, arithmetic mean and sample standard deviation.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Summary {
    /// Number of samples, at least 1.
    pub n: usize,
    /// Arithmetic mean.
    pub mean: f64,
    /// Sample standard deviation (n - 1 below the line); `None` for a single sample.
    pub stddev: Option<f64>,
}

impl Summary {
    /// Describes `samples`; `None` when there are none.
    pub fn of(samples: &[f64]) -> Option<Self> {
        Some(Self { n: samples.len(), mean: mean(samples)?, stddev: sample_stddev(samples) })
    }
}

/// Arithmetic mean; `None` without samples.
pub fn mean(samples: &[f64]) -> Option<f64> {
    (!samples.is_empty()).then(|| samples.iter().sum::<f64>() / samples.len() as f64)
}

/// Harmonic mean; `None` without samples and when any sample is not above zero.
pub fn harmonic_mean(samples: &[f64]) -> Option<f64> {
    if samples.is_empty() || !samples.iter().all(|&x| x > 0.0) {
        return None;
    }
    Some(samples.len() as f64 / samples.iter().map(|x| 1.0 / x).sum::<f64>())
}

/// Sample standard deviation (n - 1 below the line); `None` for fewer than two samples.
pub fn sample_stddev(samples: &[f64]) -> Option<f64> {
    if samples.len() < 2 {
        return None;
    }
    if samples.iter().all(|&x| x == samples[0]) {
        return Some(0.0); // Exactly: the rounded mean of equal samples need not equal them.
    }
    let centre = mean(samples)?;
    let squares: f64 = samples.iter().map(|x| (x - centre).powi(2)).sum();
    Some((squares / (samples.len() - 1) as f64).sqrt())
}

/// Median: the middle sample, or the mean of the middle two; `None` without samples.
pub fn median(samples: &[f64]) -> Option<f64> {
    let mut sorted = samples.to_vec();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    match sorted.len() {
        0 => None,
        n if n % 2 == 1 => Some(sorted[middle]),
        _ => Some(f64::midpoint(sorted[middle - 1], sorted[middle])),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_means_of_two_and_eight() {
        let samples = [2.0, 8.0];
        assert_eq!(mean(&samples), Some(5.0));
        assert_eq!(harmonic_mean(&samples), Some(3.2));
        assert_eq!(median(&samples), Some(5.0));
    }

    #[test]
    fn one_sample_has_a_mean_but_no_spread() {
        assert_eq!(Summary::of(&[7.0]), Some(Summary { n: 1, mean: 7.0, stddev: None }));
        assert_eq!(Summary::of(&[]), None);
    }

    #[test]
    fn a_rate_of_zero_has_no_harmonic_mean() {
        assert_eq!(harmonic_mean(&[3.0, 0.0]), None);
    }

    #[test]
    fn equal_samples_have_no_spread_at_all() {
        assert_eq!(sample_stddev(&[0.1, 0.1, 0.1]), Some(0.0));
    }

    proptest! {
        #[test]
        fn the_harmonic_mean_is_not_above_the_arithmetic(samples in prop::collection::vec(0.1_f64..1e6, 1..40)) {
            let (h, a) = (harmonic_mean(&samples).unwrap(), mean(&samples).unwrap());
            prop_assert!(h <= a * (1.0 + 1e-9), "{h} {a}");
        }
    }
}
