//! Whether two sets of samples differ in their mean, by how much, and how sure that is.
//!
//! Welch's test for independent sets, the paired test where sample `i` of both sets saw the same
//! seed. Neither assumes equal spread. The pooled-df test of [`crate::mmtests`] is there for
//! compatibility only. Both tests want roughly normal means; [`mod@crate::shift`] asks for
//! less where there are enough samples.

use statrs::distribution::{ContinuousCDF, StudentsT};
use statrs::function::beta::checked_beta_reg;

use crate::describe::{Summary, mean, sample_stddev};

/// Which test gave a [`Difference`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Test {
    /// The method.
    pub method: Method,
    /// Whether sample `i` of both sets belongs together, and differences were tested.
    pub paired: bool,
}

/// A method of testing a difference of means.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Method {
    /// A t test: Welch's of independent sets, which may have any spread; of pairs, of their differences.
    T,
    /// All ways to deal out the samples, counted.
    Permutation,
    /// Sets drawn with replacement from a fixed seed.
    Bootstrap,
}

/// The difference of two means, with its interval and p value.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Difference {
    /// The test that was used.
    pub test: Test,
    /// Mean of the new set minus mean of the base, in the samples' unit.
    pub difference: f64,
    /// Lower end of the confidence interval of `difference`.
    pub low: f64,
    /// Upper end of the confidence interval of `difference`.
    pub high: f64,
    /// Two-sided p value of "there is no difference".
    pub p: f64,
    /// Degrees of freedom of a t test.
    pub df: Option<f64>,
}

impl Difference {
    /// Whether the interval tells a difference.
    pub fn excludes_zero(self) -> bool {
        self.low > 0.0 || self.high < 0.0
    }
}

/// Welch's t test of `new` against `base`, with a confidence interval at `level` (such as 0.95).
///
/// Without any spread on both sides the means are taken as exact: the interval is one point, and
/// p is 0 when they differ and 1 when they are equal. `None` when a side has fewer than two
/// samples or a sample is not finite.
pub fn welch_t_test(base: &[f64], new: &[f64], level: f64) -> Option<Difference> {
    let (base, new) = (Summary::of(base)?, Summary::of(new)?);
    let (base_share, new_share) = (base.stddev?.powi(2) / base.n as f64, new.stddev?.powi(2) / new.n as f64);
    let variance = base_share + new_share;
    let df = if variance == 0.0 {
        (base.n + new.n - 2) as f64
    } else {
        // Welch-Satterthwaite, with shares of the variance so that tiny variances do not vanish.
        let (b, n) = (base_share / variance, new_share / variance);
        1.0 / (b * b / (base.n - 1) as f64 + n * n / (new.n - 1) as f64)
    };
    around(false, new.mean - base.mean, variance.sqrt(), df, level)
}

/// Paired t test: sample `i` of `new` against sample `i` of `base`, say of the same seed.
///
/// `None` when the sets differ in length, have fewer than two samples, or a sample is not finite.
pub fn paired_t_test(base: &[f64], new: &[f64], level: f64) -> Option<Difference> {
    if base.len() != new.len() {
        return None;
    }
    let differences: Vec<f64> = base.iter().zip(new).map(|(b, n)| n - b).collect();
    let error = sample_stddev(&differences)? / (differences.len() as f64).sqrt();
    around(true, mean(&differences)?, error, (differences.len() - 1) as f64, level)
}

fn around(paired: bool, difference: f64, error: f64, df: f64, level: f64) -> Option<Difference> {
    if !difference.is_finite() || !error.is_finite() || !df.is_finite() {
        return None;
    }
    let half_width = error * t_quantile(0.5 + level / 2.0, df)?;
    let (low, high) = (difference - half_width, difference + half_width);
    let test = Test { method: Method::T, paired };
    Some(Difference { test, difference, low, high, p: p_of_difference(difference, error, df), df: Some(df) })
}

/// Two-sided p of a difference with this standard error.
fn p_of_difference(difference: f64, error: f64, df: f64) -> f64 {
    match (difference == 0.0, error == 0.0) {
        (true, _) => 1.0,
        (false, true) => 0.0,
        (false, false) => two_sided_p(difference / error, df),
    }
}

/// Two-sided p value of Student's t: the chance of a value at least this far from zero.
///
/// 1.0 where it is not defined (`df` not above 0, or `t` not a number): no evidence.
pub fn two_sided_p(t: f64, df: f64) -> f64 {
    if t.is_infinite() && df > 0.0 {
        return 0.0;
    }
    // The regularised incomplete beta function is the tail itself: no 1 - 0.999.. to lose digits.
    checked_beta_reg(df / 2.0, 0.5, df / (df + t * t)).unwrap_or(1.0)
}

/// The value that Student's t stays below with probability `p`; `None` outside 0 < p < 1.
pub fn t_quantile(p: f64, df: f64) -> Option<f64> {
    if !(p > 0.0 && p < 1.0) {
        return None;
    }
    Some(StudentsT::new(0.0, 1.0, df).ok()?.inverse_cdf(p))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Table values of Student's t, two-sided 5 %.
    #[test]
    fn quantiles_match_the_printed_tables() {
        for (df, t) in [(1.0, 12.706_205), (2.0, 4.302_653), (9.0, 2.262_157), (30.0, 2.042_272)] {
            assert!((t_quantile(0.975, df).unwrap() - t).abs() < 1e-5, "df {df}");
            assert!((two_sided_p(t, df) - 0.05).abs() < 1e-6, "df {df}");
        }
    }

    /// Student's sleep data (1908): ten patients, two drugs. R: t.test() and paired = TRUE.
    #[test]
    fn the_sleep_data_give_the_published_values() {
        let first = [0.7, -1.6, -0.2, -1.2, -0.1, 3.4, 3.7, 0.8, 0.0, 2.0];
        let second = [1.9, 0.8, 1.1, 0.1, -0.1, 4.4, 5.5, 1.6, 4.6, 3.4];
        let welch = welch_t_test(&first, &second, 0.95).unwrap();
        assert!((welch.p - 0.079_394).abs() < 1e-6, "{welch:?}");
        assert!((welch.df.unwrap() - 17.776_474).abs() < 1e-5, "{welch:?}");
        assert!((welch.low - -0.205_483).abs() < 1e-5 && (welch.high - 3.365_483).abs() < 1e-5, "{welch:?}");
        let paired = paired_t_test(&first, &second, 0.95).unwrap();
        assert!((paired.p - 0.002_833).abs() < 1e-6, "{paired:?}");
        assert!(
            (paired.low - 0.700_114).abs() < 1e-5 && (paired.high - 2.459_886).abs() < 1e-5,
            "{paired:?}"
        );
    }

    #[test]
    fn without_any_spread_the_difference_is_exact() {
        let changed = welch_t_test(&[5.0, 5.0], &[7.0, 7.0], 0.95).unwrap();
        assert_eq!((changed.low, changed.high, changed.p), (2.0, 2.0, 0.0));
        let same = welch_t_test(&[5.0, 5.0], &[5.0, 5.0], 0.95).unwrap();
        assert_eq!((same.low, same.high, same.p), (0.0, 0.0, 1.0));
    }

    #[test]
    fn one_sample_a_side_tells_nothing() {
        assert_eq!(welch_t_test(&[5.0], &[7.0], 0.95), None);
        assert_eq!(paired_t_test(&[5.0, 6.0], &[7.0], 0.95), None);
        assert_eq!(welch_t_test(&[5.0, f64::NAN], &[7.0, 8.0], 0.95), None);
    }

    proptest! {
        /// The interval and the p value are two views of one test: they must agree.
        #[test]
        fn the_interval_excludes_zero_exactly_when_p_is_small(
            base in prop::collection::vec(0.0_f64..100.0, 2..12),
            new in prop::collection::vec(0.0_f64..140.0, 2..12),
        ) {
            let found = welch_t_test(&base, &new, 0.95).unwrap();
            prop_assert!((0.0..=1.0).contains(&found.p));
            prop_assume!((found.p - 0.05).abs() > 1e-6);
            prop_assert_eq!(found.low > 0.0 || found.high < 0.0, found.p < 0.05, "{:?}", found);
        }
    }
}
