//! By how much the mean of one set lies above that of another: our default, which assumes no distribution.
//!
//! What can be said depends on how many samples there are, so [`shift()`] chooses, and says what it chose:
//!
//! 1. Few samples: an exact permutation test, and the interval that belongs to it. Independent sets: had the
//!    labels of some samples of one set been exchanged with as many of the other, the difference of means would
//!    be larger or smaller, as the mean of those is above or below the mean of these. Differences of all such
//!    pairs of subsets divide the line into as many parts as there are ways to deal out the samples, and the
//!    true shift lies in each with the same chance. So order statistics of them are an exact interval
//!    (Maritz, "Distribution-Free Statistical Methods", 1995). Pairs: the same with means of all
//!    subsets of the differences (Hartigan, "Using Subsample Values as Typical Values", JASA 64, 1969).
//! 2. So few that no permutation reaches the level, or a level so high that it would take too many drawn sets: a
//!    t test, Welch's or paired. It assumes that means are normal, which the caller has to say.
//! 3. Many: a bootstrap of the difference with a fixed seed, both sets drawn anew by themselves, so that spreads
//!    may differ. Percentiles are widened as t quantiles are for so many samples (Hesterberg, "What Teachers
//!    Should Know About the Bootstrap", 2015).
//!
//! Interval and p value are two views of one test: the interval excludes 0 exactly when p is not above 1 minus
//! the level. Cost: 20 000 differences at most are sorted, about 400 000 numbers drawn.
//! Next: [`crate::difference`], the t tests; [`crate::multiple`], which says what level each of many needs.

use statrs::distribution::{ContinuousCDF, Normal};
use units::{Seed, Stream};

use crate::describe::mean;
use crate::difference::{Difference, Method, Test, paired_t_test, t_quantile, two_sided_p, welch_t_test};

/// Ways to deal out the samples that are counted one by one; where there are more, sets are drawn.
const WAYS_MAX: u64 = 20_000;
/// Numbers that a bootstrap draws, roughly.
const DRAWN: usize = 400_000;
/// Sets that a bootstrap draws: at least, and at most.
const ROUNDS: (usize, usize) = (999, 9_999);
/// Drawn differences beyond each end of an interval, at least.
const BEYOND_MIN: f64 = 2.0;

/// The difference of the means of `new` and `base`, with an interval at `level` (such as 0.95); `paired` where
/// sample `i` of both belongs together, say to one seed.
///
/// The same samples give the same figures for ever: the bootstrap's seed is fixed. `None` when a side has fewer than
/// two samples, one is not finite, or pairs are not of equal number.
pub fn shift(base: &[f64], new: &[f64], paired: bool, level: f64) -> Option<Difference> {
    let t_test = if paired { paired_t_test(base, new, level)? } else { welch_t_test(base, new, level)? };
    let tail = (1.0 - level) / 2.0;
    match ways(base.len(), new.len(), paired) {
        _ if !reaches(base.len(), new.len(), paired, tail) => Some(t_test),
        Some(ways) => {
            let typical = if paired { means_of_pairs(base, new) } else { means_apart(base, new) };
            Some(permuted(t_test, typical, ways, tail))
        }
        None => bootstrapped(t_test, base, new, tail),
    }
}

/// How many runs a side it takes to reach `level` without a t test, pairs or independent sets of one size; `None`
/// where no number does.
pub fn needed(paired: bool, level: f64) -> Option<usize> {
    const MANY: usize = 100;
    (2..MANY).find(|&runs| reaches(runs, runs, paired, (1.0 - level) / 2.0))
}

/// Whether counting or drawing can tell what lies beyond such a tail.
fn reaches(base: usize, new: usize, paired: bool, tail: f64) -> bool {
    match ways(base, new, paired) {
        Some(ways) => at_most(tail, ways) > 0,
        None => widened(tail, base.min(new)).is_some_and(|tail| tail * ROUNDS.1 as f64 >= BEYOND_MIN),
    }
}

/// The tail of drawn means that stands for `tail`: percentiles of n samples are those of a spread with n below the
/// line, and of a normal distribution.
fn widened(tail: f64, samples: usize) -> Option<f64> {
    let t = t_quantile(1.0 - tail, (samples - 1) as f64)?;
    Some(Normal::standard().cdf(-widening(samples) * t))
}

fn widening(samples: usize) -> f64 {
    (samples as f64 / (samples - 1) as f64).sqrt()
}

/// In how many ways labels can be dealt out; `None` where they are too many to count.
fn ways(base: usize, new: usize, paired: bool) -> Option<u64> {
    if paired {
        return u32::try_from(base)
            .ok()
            .and_then(|pairs| 2_u64.checked_pow(pairs))
            .filter(|&ways| ways <= WAYS_MAX);
    }
    binomial_at_most(base + new, base, WAYS_MAX)
}

/// How many of `ways` equally likely parts make up `tail` at most.
fn at_most(tail: f64, ways: u64) -> usize {
    // Not to lose one to the rounding of 0.05 * 40.
    (tail * ways as f64 * (1.0 + 1e-12)) as usize
}

/// Means of all subsets of the differences of pairs, without the empty one.
fn means_of_pairs(base: &[f64], new: &[f64]) -> Vec<f64> {
    let differences: Vec<f64> = base.iter().zip(new).map(|(base, new)| new - base).collect();
    let mut sums = vec![0.0; 1 << differences.len()];
    for subset in 1..sums.len() {
        let without_last = subset & (subset - 1);
        sums[subset] = sums[without_last] + differences[subset.trailing_zeros() as usize];
    }
    (1..sums.len()).map(|subset| sums[subset] / f64::from(subset.count_ones())).collect()
}

/// Mean of a subset of `new` minus that of one of `base` of the same size, for all of them.
fn means_apart(base: &[f64], new: &[f64]) -> Vec<f64> {
    let mut apart = Vec::new();
    for size in 1..=base.len().min(new.len()) {
        let mut of_base = Vec::new();
        each_split(base, size, 0.0, &mut |sum| of_base.push(sum));
        each_split(new, size, 0.0, &mut |sum| {
            apart.extend(of_base.iter().map(|base| (sum - base) / size as f64));
        });
    }
    apart
}

/// Calls `visit` with the sum of every choice of `take` of the numbers.
fn each_split(numbers: &[f64], take: usize, sum: f64, visit: &mut impl FnMut(f64)) {
    if take == 0 {
        return visit(sum);
    }
    for first in 0..=numbers.len() - take {
        each_split(&numbers[first + 1..], take - 1, sum + numbers[first], visit);
    }
}

/// n over k, unless it exceeds `limit`.
fn binomial_at_most(n: usize, k: usize, limit: u64) -> Option<u64> {
    let k = k.min(n - k);
    let mut ways = 1_u64;
    for step in 1..=k {
        ways = ways.checked_mul(u64::try_from(n - k + step).ok()?)? / u64::try_from(step).ok()?;
        if ways > limit {
            return None;
        }
    }
    Some(ways)
}

/// `found` with the interval and the p value that `typical` values of it give, one fewer than `ways`.
fn permuted(found: Difference, mut typical: Vec<f64>, ways: u64, tail: f64) -> Difference {
    typical.sort_unstable_by(f64::total_cmp);
    let beyond = at_most(tail, ways).min(typical.len().div_ceil(2));
    let (low, high) = (typical[beyond - 1], typical[typical.len() - beyond]);
    let below = typical.iter().filter(|&&value| value <= 0.0).count();
    let above = typical.iter().filter(|&&value| value >= 0.0).count();
    let p = (2.0 * (below.min(above) + 1) as f64 / ways as f64).min(1.0);
    let test = Test { method: Method::Permutation, ..found.test };
    Difference { test, low, high, p, df: None, ..found }
}

fn bootstrapped(found: Difference, base: &[f64], new: &[f64], tail: f64) -> Option<Difference> {
    let paired = found.test.paired;
    let smaller = base.len().min(new.len());
    let tail = widened(tail, smaller)?;
    let drawn_at_once = if paired { smaller } else { base.len() + new.len() };
    let rounds = (DRAWN / drawn_at_once).clamp(ROUNDS.0, ROUNDS.1).max((BEYOND_MIN / tail).ceil() as usize);
    let mut stream = Seed(1).stream("difference of means");
    let differences: Vec<f64> = base.iter().zip(new).map(|(base, new)| new - base).collect();
    let draw = |stream: &mut Stream| {
        if paired {
            mean_of_drawn(&differences, stream)
        } else {
            mean_of_drawn(new, stream) - mean_of_drawn(base, stream)
        }
    };
    let mut drawn: Vec<f64> = (0..rounds).map(|_| draw(&mut stream)).collect();
    drawn.sort_unstable_by(f64::total_cmp);
    let beyond = ((tail * (rounds + 1) as f64) as usize).clamp(1, rounds);
    let (low, high) = (drawn[beyond - 1], drawn[rounds - beyond]);
    let below = drawn.iter().filter(|&&value| value <= 0.0).count();
    let above = drawn.iter().filter(|&&value| value >= 0.0).count();
    let share = (below.min(above) + 1) as f64 / (rounds + 1) as f64;
    let normal = Normal::standard();
    let t = normal.inverse_cdf(share) / widening(smaller);
    let p = if share >= 0.5 { 1.0 } else { two_sided_p(t, (smaller - 1) as f64) };
    let test = Test { method: Method::Bootstrap, ..found.test };
    Some(Difference { test, low, high, p, df: None, ..found })
}

fn mean_of_drawn(samples: &[f64], stream: &mut Stream) -> f64 {
    let count = samples.len() as u64;
    let sum: f64 = (0..count).map(|_| samples[stream.below(count) as usize]).sum();
    sum / count as f64
}

/// [`shift()`] of the harmonic means of rates, taken where it is an arithmetic one: of the time for each piece of
/// work. `None` also where a rate is not above zero.
pub fn shift_of_rates(base: &[f64], new: &[f64], paired: bool, level: f64) -> Option<Difference> {
    let times = |rates: &[f64]| -> Option<Vec<f64>> {
        rates.iter().map(|&rate| (rate > 0.0).then(|| 1.0 / rate)).collect()
    };
    let (base, new) = (times(base)?, times(new)?);
    let found = shift(&base, &new, paired, level)?;
    let time = mean(&base)?;
    // More time is a lower rate; where no time would be left, the rate has no bound.
    let rate = |change: f64| if time + change > 0.0 { 1.0 / (time + change) } else { f64::INFINITY };
    let change = |of: f64| rate(of) - 1.0 / time;
    Some(Difference {
        difference: change(found.difference),
        low: change(found.high),
        high: change(found.low),
        ..found
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Three against three, drawn: of base 1 2 3 and new 7 8 9 the 20 ways to deal out leave 19 differences, from
    /// 7 - 3 = 4 to 9 - 1 = 8. At 90 % one part of the 20 lies beyond each end.
    #[test]
    fn three_against_three_by_hand() {
        let found = shift(&[1.0, 2.0, 3.0], &[7.0, 8.0, 9.0], false, 0.9).unwrap();
        assert_eq!(found.test, Test { method: Method::Permutation, paired: false });
        assert_eq!((found.difference, found.low, found.high, found.p), (6.0, 4.0, 8.0, 0.1));
    }

    /// Pairs that differ by 1, 2 and 6: means of their seven subsets are 1 1.5 2 3 3.5 4 6, and two of eight signs
    /// are as extreme.
    #[test]
    fn three_pairs_by_hand() {
        let found = shift(&[10.0, 10.0, 10.0], &[11.0, 12.0, 16.0], true, 0.75).unwrap();
        assert_eq!(found.test, Test { method: Method::Permutation, paired: true });
        assert_eq!((found.difference, found.low, found.high, found.p), (3.0, 1.0, 6.0, 0.25));
    }

    #[test]
    fn the_permutation_test_agrees_with_the_one_that_counts_differences() {
        let (base, new) = ([3.0, 5.5, 4.0, 8.0, 6.0], [5.0, 7.0, 9.5, 8.5, 4.5]);
        let pooled = [base, new].concat();
        let total: f64 = pooled.iter().sum();
        let mut differences = Vec::new();
        each_split(&pooled, base.len(), 0.0, &mut |of_base| differences.push((total - 2.0 * of_base).abs()));
        let seen = total - 2.0 * base.iter().sum::<f64>();
        let as_far = differences.iter().filter(|&&difference| difference >= seen - 1e-9).count();
        let counted = as_far as f64 / differences.len() as f64;
        let found = shift(&base, &new, false, 0.95).unwrap();
        // Both tails are not alike where sets differ in shape, but here they are.
        assert!((found.p - counted).abs() < 0.02, "{found:?} {counted}");
    }

    #[test]
    fn too_few_for_a_permutation_are_left_to_a_t_test() {
        let pairs = |n: usize| (0..n).map(|i| i as f64).collect::<Vec<_>>();
        for (n, method) in
            [(5, Method::T), (6, Method::Permutation), (14, Method::Permutation), (15, Method::Bootstrap)]
        {
            let new: Vec<f64> = pairs(n).iter().map(|x| x * 1.5 + 1.0).collect();
            assert_eq!(shift(&pairs(n), &new, true, 0.95).unwrap().test.method, method, "{n} pairs");
        }
        assert_eq!((needed(true, 0.95), needed(false, 0.95)), (Some(6), Some(4)));
        assert_eq!(needed(true, 1.0 - 0.05 / 20.0), Some(10));
        assert_eq!(needed(true, 1.0 - 1e-6), None, "neither counted nor drawn");
        let many: Vec<f64> = pairs(40);
        let new: Vec<f64> = many.iter().map(|x| x * 1.5 + 1.0).collect();
        assert_eq!(shift(&many, &new, true, 1.0 - 1e-6).unwrap().test.method, Method::T);
    }

    #[test]
    fn one_sample_a_side_tells_nothing() {
        assert_eq!(shift(&[5.0], &[7.0], false, 0.95), None);
        assert_eq!(shift(&[5.0, f64::NAN], &[7.0, 8.0], false, 0.95), None);
        assert_eq!(shift(&[5.0, 6.0, 7.0], &[7.0, 8.0], true, 0.95), None);
    }

    /// 2 and 8 files/s take 0.3125 s a file on average: a harmonic mean of 3.2.
    #[test]
    fn rates_are_shifted_in_the_time_that_they_take() {
        let found = shift_of_rates(&[2.0, 8.0, 2.0, 8.0], &[4.0, 16.0, 4.0, 16.0], false, 0.95).unwrap();
        assert!((found.difference - 3.2).abs() < 1e-12, "{found:?}");
        assert!(found.low < 3.2 && 3.2 < found.high, "{found:?}");
        assert_eq!(shift_of_rates(&[2.0, 0.0], &[4.0, 4.0], false, 0.95), None);
    }

    /// Of many pairs of sets from one population about 5 % differ "at 95 %", by each method.
    #[test]
    fn as_many_equal_sets_look_different_as_the_level_says() {
        let mut stream = Seed(7).stream("populations");
        // Skewed: the square of a number from a triangle.
        let mut draw = || {
            let unit = (0..3).map(|_| stream.below(1000) as f64 / 1000.0).sum::<f64>();
            unit * unit
        };
        for (n, paired) in [(6, false), (8, true), (20, false), (25, true)] {
            let trials = 200;
            let wrong = (0..trials)
                .filter(|_| {
                    let base: Vec<f64> = (0..n).map(|_| draw()).collect();
                    let new: Vec<f64> = (0..n).map(|_| draw()).collect();
                    shift(&base, &new, paired, 0.95).unwrap().excludes_zero()
                })
                .count();
            let share = 100.0 * wrong as f64 / f64::from(trials);
            assert!((1.0..9.0).contains(&share), "{n} {paired}: {share} %");
        }
    }

    proptest! {
        #[test]
        fn the_interval_excludes_zero_exactly_when_p_is_small(
            base in prop::collection::vec(0.0_f64..100.0, 2..12),
            new in prop::collection::vec(0.0_f64..140.0, 2..12),
            paired in any::<bool>(),
            tests in 1_usize..6,
        ) {
            let family = crate::multiple::Family { tests };
            let new = if paired { base.iter().zip(new.iter().cycle()).map(|(_, new)| *new).collect() } else { new };
            let found = shift(&base, &new, paired, family.level_of_each(0.95)).unwrap();
            prop_assert!((0.0..=1.0).contains(&found.p) && found.low <= found.high, "{:?}", found);
            let level = 0.05 / tests as f64;
            prop_assume!(found.test.method == Method::Permutation || (found.p / level - 1.0).abs() > 0.02);
            prop_assert_eq!(found.excludes_zero(), found.p <= level * (1.0 + 1e-9), "{:?}", found);
        }

        #[test]
        fn equal_sets_never_look_different(samples in prop::collection::vec(-50.0_f64..50.0, 2..30)) {
            prop_assert!(!shift(&samples, &samples, false, 0.95).unwrap().excludes_zero());
        }
    }
}
