//! The statistics of mmtests' comparison table, as two labelled compatibility modes.
//!
//! [`Rules::G19`] is mmtests of August 2019, which the kernel change logs of that time used;
//! [`Rules::Head`] is mmtests of 2024 to 2026: other labels, fewer rows, another star. Formulas
//! and edge cases follow what its scripts print for synthetic logs. What we deliberately do
//! differently: a value that cannot be computed is `None` and prints as `-`, where mmtests
//! prints 0.00; and quantiles of the normal distribution are ours, not those of an external
//! program whose absence changes the stars.
//!
//! The star rules are weak statistics (see [`star_g19`], [`star_head`]); for an honest answer use
//! [`crate::difference`]. Left out: ratio mode and the "Subselection" row set.
//! Next: [`crate::mmtests_table`] for the layout.

use statrs::distribution::{Binomial, DiscreteCDF};

use crate::describe::{harmonic_mean, mean, sample_stddev};
use crate::difference::two_sided_p;

/// Which way of a measure is the good one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Better {
    /// Rates: the mean is harmonic.
    Higher,
    /// Times and spread: the mean is arithmetic.
    Lower,
}

/// Which generation of mmtests to follow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rules {
    /// August 2019.
    G19,
    /// 2024 to 2026.
    Head,
}

/// Which rows a table has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RowSet {
    /// All 20 rows: extremes, quartiles, percentiles, mean, spread, means of the best.
    Variable,
    /// Min, mean, Stddev, CoeffVar, Max and means of the best: of the best 95 % at HEAD, in 2019 of the best
    /// 50, 95 and 99 %.
    Multiops,
}

/// One row of the table: a statistic of the samples of one operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Statistic {
    /// Smallest sample, whatever the direction.
    Min,
    /// The sample at 25, 50 or 75 % in best-first order, labelled as quartile.
    Quartile(u8),
    /// The sample at N % in best-first order.
    Percentile(u8),
    /// Largest sample, whatever the direction.
    Max,
    /// Harmonic mean of rates, arithmetic mean of times.
    Mean,
    /// Spread; see [`Statistic::value`] for which one.
    Stddev,
    /// Spread as a percentage of the mean.
    CoeffVar,
    /// Mean of the best N %.
    BestMean(u8),
}

impl RowSet {
    /// The rows of that generation, top to bottom.
    pub fn statistics(self, rules: Rules) -> Vec<Statistic> {
        use Statistic::{BestMean, CoeffVar, Max, Mean, Min, Percentile, Quartile, Stddev};
        let best: &[u8] = if rules == Rules::G19 { &[50, 95, 99] } else { &[95] };
        match self {
            Self::Multiops => [Min, Mean, Stddev, CoeffVar, Max]
                .into_iter()
                .chain(best.iter().map(|&percent| BestMean(percent)))
                .collect(),
            Self::Variable => [Min, Quartile(25), Quartile(50), Quartile(75)]
                .into_iter()
                .chain([1, 5, 10, 90, 95, 99].map(Percentile))
                .chain([Max, Mean, Stddev, CoeffVar])
                .chain([99, 95, 90, 75, 50, 25].map(BestMean))
                .collect(),
        }
    }
}

impl Statistic {
    /// The row's name as that generation prints it.
    pub fn label(self, rules: Rules, better: Better) -> String {
        let mean_letter = if better == Better::Higher { 'H' } else { 'A' };
        let harmonic_spread = rules == Rules::Head && better == Better::Higher;
        match (self, rules) {
            (Self::Min, _) => "Min".into(),
            (Self::Max, _) => "Max".into(),
            (Self::Mean, _) => format!("{mean_letter}mean"),
            (Self::Stddev, _) => if harmonic_spread { "HStddev" } else { "Stddev" }.into(),
            (Self::CoeffVar, _) => if harmonic_spread { "HCoeffVar" } else { "CoeffVar" }.into(),
            (Self::Quartile(25), Rules::G19) => "1st-qrtle".into(),
            (Self::Quartile(50), Rules::G19) => "2nd-qrtle".into(),
            (Self::Quartile(_), Rules::G19) => "3rd-qrtle".into(),
            (Self::Percentile(n), Rules::G19) => format!("Max-{n}"),
            (Self::Quartile(n) | Self::Percentile(n), Rules::Head) => format!("Pctile.{n}"),
            (Self::BestMean(n), Rules::G19) => format!("B{mean_letter}mean-{n}"),
            (Self::BestMean(n), Rules::Head) => format!("B{mean_letter}mean.{n}"),
        }
    }

    /// Which way of this row is the good one: less spread always is.
    pub fn better(self, samples: Better) -> Better {
        match self {
            Self::Stddev | Self::CoeffVar => Better::Lower,
            _ => samples,
        }
    }

    /// The row's value; `None` where there is nothing to compute it from.
    ///
    /// A harmonic mean over a sample of 0 or less prints as -1 in G19 and NaN at HEAD. The spread
    /// is arithmetic in G19 even beside a harmonic mean; at HEAD that of a rate is taken about
    /// the harmonic mean.
    pub fn value(self, samples: &[f64], rules: Rules, better: Better) -> Option<f64> {
        if samples.is_empty() {
            return None;
        }
        let sorted = best_first(samples, better);
        match self {
            Self::Min => samples.iter().copied().reduce(f64::min),
            Self::Max => samples.iter().copied().reduce(f64::max),
            Self::Quartile(n) | Self::Percentile(n) => Some(sorted[rank(sorted.len(), n) - 1]),
            Self::Mean => mean_of(&sorted, rules, better),
            Self::BestMean(n) => mean_of(&sorted[..rank(sorted.len(), n)], rules, better),
            Self::Stddev => spread_about(samples, rules, better).map(|(_, stddev)| stddev),
            Self::CoeffVar => {
                let (centre, stddev) = spread_about(samples, rules, better)?;
                (centre != 0.0).then(|| 100.0 * stddev / centre)
            }
        }
    }
}

/// The samples, best first: the order in which mmtests counts its percentiles.
pub fn best_first(samples: &[f64], better: Better) -> Vec<f64> {
    let mut sorted = samples.to_vec();
    sorted.sort_by(f64::total_cmp);
    if better == Better::Higher {
        sorted.reverse();
    }
    sorted
}

/// k(p) = max(1, floor(n p / 100)): how many samples make up the best p %. No interpolation.
fn rank(n: usize, percent: u8) -> usize {
    (n * usize::from(percent) / 100).clamp(1, n)
}

fn mean_of(samples: &[f64], rules: Rules, better: Better) -> Option<f64> {
    let undefined = if rules == Rules::G19 { -1.0 } else { f64::NAN };
    match better {
        Better::Higher => Some(harmonic_mean(samples).unwrap_or(undefined)),
        Better::Lower => mean(samples),
    }
}

/// Standard deviation of this mode, and the mean about which it was taken.
fn spread_about(samples: &[f64], rules: Rules, better: Better) -> Option<(f64, f64)> {
    if rules == Rules::G19 || better == Better::Lower {
        return Some((mean(samples)?, sample_stddev(samples)?));
    }
    // Delta method about the harmonic mean H: sqrt(H^4 * mean((1/x - 1/H)^2)).
    let h = harmonic_mean(samples)?;
    let squares: f64 = samples.iter().map(|x| (1.0 / x - 1.0 / h).powi(2)).sum();
    Some((h, (h.powi(4) * squares / samples.len() as f64).sqrt()))
}

/// The percentage in parentheses: positive always means better.
///
/// The edge cases are mmtests' own: a rate that collapses to zero prints 0.00, which looks
/// neutral. Our own reports do not use this function.
pub fn percent(base: f64, new: f64, better: Better) -> f64 {
    match better {
        _ if base == new => 0.0,
        Better::Higher if new == 0.0 => 0.0,
        Better::Higher if base == 0.0 => 100.0,
        Better::Higher => 100.0 * new / base - 100.0,
        Better::Lower if new == 0.0 => 100.0,
        Better::Lower if base == 0.0 => -99.0,
        Better::Lower => 100.0 - 100.0 * new / base,
    }
}

/// Whether a row carries the star in this mode, for these samples.
pub fn star(
    statistic: Statistic,
    set: RowSet,
    rules: Rules,
    better: Better,
    base: &[f64],
    new: &[f64],
) -> bool {
    match (rules, set, statistic) {
        (Rules::G19, _, Statistic::Mean) => star_g19(base, new, better),
        (Rules::Head, RowSet::Multiops, Statistic::Mean) => star_head(base, new, better),
        (Rules::Head, RowSet::Variable, Statistic::Percentile(95)) => {
            star_head_percentile(base, new, better, 95)
        }
        _ => false,
    }
}

/// p value of G19's t test: error of the means from both spreads, but n1 + n2 - 2 degrees of
/// freedom (so neither Student's nor Welch's), harmonic means of rates beside arithmetic spread.
///
/// Without spread on both sides any difference gives 0. `None` with fewer than two samples a side.
pub fn p_value_g19(base: &[f64], new: &[f64], better: Better) -> Option<f64> {
    let error = (sample_stddev(base)?.powi(2) / base.len() as f64
        + sample_stddev(new)?.powi(2) / new.len() as f64)
        .sqrt();
    let apart = (mean_of(base, Rules::G19, better)? - mean_of(new, Rules::G19, better)?).abs();
    if error == 0.0 {
        return Some(if apart == 0.0 { 1.0 } else { 0.0 });
    }
    Some(two_sided_p(apart / error, (base.len() + new.len() - 2) as f64))
}

/// G19's star: [`p_value_g19`] below 0.10.
pub fn star_g19(base: &[f64], new: &[f64], better: Better) -> bool {
    p_value_g19(base, new, better).is_some_and(|p| p < 0.10)
}

/// The value that a standard normal stays below with probability 0.975.
const Z_975: f64 = 1.959_963_984_540_054;

/// HEAD's star on a mean: the intervals mean +- 1.96 s do not overlap. It is s, not s / sqrt(n),
/// so more samples never help.
pub fn star_head(base: &[f64], new: &[f64], better: Better) -> bool {
    let apart = |(base_mean, base_stddev): (f64, f64), (new_mean, new_stddev): (f64, f64)| {
        (base_mean - new_mean).abs() > Z_975 * (base_stddev + new_stddev)
    };
    let spread = |samples| spread_about(samples, Rules::Head, better);
    spread(base).zip(spread(new)).is_some_and(|(base, new)| apart(base, new))
}

/// HEAD's star on a percentile: the order-statistic intervals do not overlap.
pub fn star_head_percentile(base: &[f64], new: &[f64], better: Better, percent: u8) -> bool {
    let interval = |samples| percentile_interval_head(samples, better, percent);
    interval(base).zip(interval(new)).is_some_and(|(base, new)| base.1 < new.0 || new.1 < base.0)
}

/// HEAD's 95 % interval of a percentile: the samples at the binomial ranks qbinom(0.025, n-1, q)
/// and qbinom(0.975, n-1, q), counted from 0 in best-first order; returned low to high.
pub fn percentile_interval_head(samples: &[f64], better: Better, percent: u8) -> Option<(f64, f64)> {
    let sorted = best_first(samples, better);
    let last = u64::try_from(sorted.len().checked_sub(1)?).ok()?;
    let ranks = Binomial::new(f64::from(percent) / 100.0, last).ok()?;
    let at = |p: f64| {
        let rank = (0..=last).find(|&k| ranks.cdf(k) >= p).unwrap_or(last);
        usize::try_from(rank).ok().map(|rank| sorted[rank])
    };
    let (one, other) = (at(0.025)?, at(0.975)?);
    Some((one.min(other), one.max(other)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positive_means_better_also_at_the_edges() {
        use Better::{Higher, Lower};
        for (base, new, better, wanted) in [
            (100.0, 120.0, Higher, 20.0),
            (100.0, 120.0, Lower, -20.0),
            (0.0, 0.0, Higher, 0.0),
            (5.0, 0.0, Higher, 0.0), // mmtests: a collapse looks neutral
            (0.0, 5.0, Higher, 100.0),
            (5.0, 0.0, Lower, 100.0),
            (0.0, 5.0, Lower, -99.0),
        ] {
            assert_eq!(percent(base, new, better), wanted, "{base} -> {new} {better:?}");
        }
    }

    #[test]
    fn few_samples_make_several_percentiles_the_best_one() {
        let rates: Vec<f64> = (1..=14).map(f64::from).collect();
        for n in [1, 5, 10] {
            assert_eq!(Statistic::Percentile(n).value(&rates, Rules::G19, Better::Higher), Some(14.0));
        }
        assert_eq!(Statistic::Quartile(25).value(&rates, Rules::G19, Better::Higher), Some(12.0));
        assert_eq!(Statistic::Quartile(25).value(&rates, Rules::G19, Better::Lower), Some(3.0));
    }

    #[test]
    fn a_zero_rate_spoils_the_harmonic_mean_as_each_generation_prints_it() {
        let samples = [4.0, 0.0];
        assert_eq!(Statistic::Mean.value(&samples, Rules::G19, Better::Higher), Some(-1.0));
        assert!(Statistic::Mean.value(&samples, Rules::Head, Better::Higher).unwrap().is_nan());
        assert_eq!(Statistic::Mean.value(&samples, Rules::Head, Better::Lower), Some(2.0));
    }

    #[test]
    fn no_samples_are_missing_not_zero() {
        for statistic in RowSet::Variable.statistics(Rules::G19) {
            assert_eq!(statistic.value(&[], Rules::G19, Better::Higher), None, "{statistic:?}");
        }
        assert_eq!(Statistic::Stddev.value(&[3.0], Rules::G19, Better::Lower), None);
    }

    #[test]
    fn head_takes_the_spread_of_rates_about_their_harmonic_mean() {
        // H of 2 and 8 is 3.2; deviations of 1/x are +-0.1875, so s = 3.2^2 * 0.1875 = 1.92.
        let found = Statistic::Stddev.value(&[2.0, 8.0], Rules::Head, Better::Higher).unwrap();
        assert!((found - 1.92).abs() < 1e-12, "{found}");
        let share = Statistic::CoeffVar.value(&[2.0, 8.0], Rules::Head, Better::Higher).unwrap();
        assert!((share - 60.0).abs() < 1e-9, "{share}");
    }

    /// n = 15 a side: a shift of 3 s is a star in G19 only, 4.1 s in both.
    #[test]
    fn head_needs_a_far_larger_shift_than_g19() {
        let base: Vec<f64> = (0..15).map(|i| 1000.0 + f64::from(i % 3) - 1.0).collect();
        let s = sample_stddev(&base).unwrap();
        let shifted = |by: f64| base.iter().map(|x| x + by * s).collect::<Vec<_>>();
        assert!(
            star_g19(&base, &shifted(3.0), Better::Lower) && !star_head(&base, &shifted(3.0), Better::Lower)
        );
        assert!(
            star_g19(&base, &shifted(4.1), Better::Lower) && star_head(&base, &shifted(4.1), Better::Lower)
        );
    }

    #[test]
    fn without_spread_any_difference_is_a_star_in_g19() {
        assert!(star_g19(&[5.0, 5.0], &[5.01, 5.01], Better::Lower));
        assert!(!star_g19(&[5.0, 5.0], &[5.0, 5.0], Better::Lower));
        assert!(!star_g19(&[5.0], &[9.0], Better::Lower));
    }

    #[test]
    fn a_percentile_interval_uses_binomial_ranks() {
        // R: qbinom(c(0.025, 0.975), 19, 0.5) is 5 and 14.
        let samples: Vec<f64> = (0..20).map(f64::from).collect();
        assert_eq!(percentile_interval_head(&samples, Better::Lower, 50), Some((5.0, 14.0)));
        let moved: Vec<f64> = samples.iter().map(|x| x + 100.0).collect();
        assert!(star_head_percentile(&samples, &moved, Better::Lower, 95));
        assert!(!star_head_percentile(&samples, &samples, Better::Lower, 95));
    }
}
