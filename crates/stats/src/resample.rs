//! Tests that assume no distribution: bootstrap intervals and permutation tests.
//!
//! Randomness comes from a [`Stream`] that the caller names and seeds, so the same call on the
//! same samples gives the same figures for ever.

use units::Stream;

use crate::describe::mean;

/// An interval with its two ends.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Interval {
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
}

/// Percentile bootstrap interval at `level` (such as 0.95) of any statistic of one set.
///
/// `rounds` sets of the same size are drawn with replacement. `None` without samples, without
/// rounds, or where the statistic is not defined for a drawn set.
pub fn bootstrap_interval(
    samples: &[f64],
    statistic: impl Fn(&[f64]) -> Option<f64>,
    level: f64,
    rounds: usize,
    stream: &mut Stream,
) -> Option<Interval> {
    let mut drawn = vec![0.0; samples.len()];
    let mut found = Vec::with_capacity(rounds);
    for _ in 0..rounds {
        draw(samples, &mut drawn, stream)?;
        found.push(statistic(&drawn)?);
    }
    percentile_interval(found, level)
}

/// Percentile bootstrap interval at `level` of mean(`new`) - mean(`base`), both sides redrawn.
pub fn bootstrap_difference(
    base: &[f64],
    new: &[f64],
    level: f64,
    rounds: usize,
    stream: &mut Stream,
) -> Option<Interval> {
    let (mut base_drawn, mut new_drawn) = (vec![0.0; base.len()], vec![0.0; new.len()]);
    let mut found = Vec::with_capacity(rounds);
    for _ in 0..rounds {
        draw(base, &mut base_drawn, stream)?;
        draw(new, &mut new_drawn, stream)?;
        found.push(mean(&new_drawn)? - mean(&base_drawn)?);
    }
    percentile_interval(found, level)
}

fn draw(samples: &[f64], into: &mut [f64], stream: &mut Stream) -> Option<()> {
    let count = u64::try_from(samples.len()).ok().filter(|&count| count > 0)?;
    for slot in into {
        *slot = samples[usize::try_from(stream.below(count)).ok()?];
    }
    Some(())
}

fn percentile_interval(mut found: Vec<f64>, level: f64) -> Option<Interval> {
    if found.is_empty() || !(0.0..1.0).contains(&level) {
        return None;
    }
    found.sort_by(f64::total_cmp);
    let rank = |share: f64| found[((found.len() - 1) as f64 * share).round() as usize];
    let tail = (1.0 - level) / 2.0;
    Some(Interval { low: rank(tail), high: rank(1.0 - tail) })
}

/// Splits that are counted one by one; above this many, `rounds` of them are drawn.
const EXACT_SPLITS_MAX: u64 = 20_000;

/// Two-sided permutation test of the difference of means: the share of all ways to deal the
/// samples into two sets of these sizes that differ at least as much as the sets did.
///
/// Exact up to 20 000 splits, otherwise estimated from `rounds` drawn ones (and then never 0: the
/// split that was seen counts as one of them). `None` when a side is empty.
pub fn permutation_p(base: &[f64], new: &[f64], rounds: usize, stream: &mut Stream) -> Option<f64> {
    let seen = (mean(new)? - mean(base)?).abs();
    let pooled: Vec<f64> = base.iter().chain(new).copied().collect();
    let total: f64 = pooled.iter().sum();
    // Sums of the same numbers in another order may differ in the last digits.
    let tolerance = 1e-9 * pooled.iter().fold(1e-300_f64, |most, x| most.max(x.abs()));
    let counts = |base_sum: f64| {
        let difference = (total - base_sum) / new.len() as f64 - base_sum / base.len() as f64;
        difference.abs() >= seen - tolerance
    };
    if binomial_at_most(pooled.len(), base.len(), EXACT_SPLITS_MAX).is_some() {
        let (mut hits, mut splits) = (0_u64, 0_u64);
        each_split(&pooled, base.len(), 0.0, &mut |base_sum| {
            splits += 1;
            hits += u64::from(counts(base_sum));
        });
        return Some(hits as f64 / splits as f64);
    }
    let mut deck = pooled;
    let mut hits = 1_u64;
    for _ in 0..rounds {
        shuffle_front(&mut deck, base.len(), stream)?;
        hits += u64::from(counts(deck[..base.len()].iter().sum()));
    }
    Some(hits as f64 / (rounds as f64 + 1.0))
}

/// Calls `visit` with the sum of every choice of `take` of the numbers.
pub(crate) fn each_split(numbers: &[f64], take: usize, sum: f64, visit: &mut impl FnMut(f64)) {
    if take == 0 {
        return visit(sum);
    }
    for first in 0..=numbers.len() - take {
        each_split(&numbers[first + 1..], take - 1, sum + numbers[first], visit);
    }
}

/// Fisher-Yates for the first `count` cards: that many drawn without replacement.
fn shuffle_front(deck: &mut [f64], count: usize, stream: &mut Stream) -> Option<()> {
    for place in 0..count {
        let left = u64::try_from(deck.len() - place).ok()?;
        deck.swap(place, place + usize::try_from(stream.below(left)).ok()?);
    }
    Some(())
}

/// n over k, unless it exceeds `limit`.
pub(crate) fn binomial_at_most(n: usize, k: usize, limit: u64) -> Option<u64> {
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

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use units::Seed;

    #[test]
    fn the_same_seed_draws_the_same_interval() {
        let samples = [3.0, 5.0, 4.0, 8.0, 6.0];
        let interval =
            |seed| bootstrap_interval(&samples, mean, 0.95, 500, &mut Seed(seed).stream("bootstrap"));
        assert_eq!(interval(1), interval(1));
        let found = interval(1).unwrap();
        assert!(3.0 <= found.low && found.low < 5.2 && 5.2 < found.high && found.high <= 8.0, "{found:?}");
    }

    #[test]
    fn a_shift_far_beyond_the_spread_is_found() {
        let (base, new) = ([10.0, 11.0, 12.0, 10.5], [20.0, 21.0, 19.5, 20.5]);
        let found = bootstrap_difference(&base, &new, 0.95, 1000, &mut Seed(3).stream("b")).unwrap();
        assert!(8.0 < found.low && found.high < 11.0, "{found:?}");
    }

    /// Two sets of three, fully separated: 2 of the 20 splits are as extreme.
    #[test]
    fn three_against_three_is_counted_exactly() {
        let p = permutation_p(&[1.0, 2.0, 3.0], &[7.0, 8.0, 9.0], 0, &mut Seed(0).stream("unused"));
        assert_eq!(p, Some(0.1));
    }

    #[test]
    fn many_samples_are_estimated_and_never_give_zero() {
        let base: Vec<f64> = (0..20).map(f64::from).collect();
        let new: Vec<f64> = (100..120).map(f64::from).collect();
        assert_eq!(permutation_p(&base, &new, 999, &mut Seed(0).stream("p")), Some(0.001));
    }

    #[test]
    fn nothing_to_draw_from_is_missing_not_zero() {
        assert_eq!(bootstrap_interval(&[], mean, 0.95, 10, &mut Seed(0).stream("x")), None);
        assert_eq!(permutation_p(&[], &[1.0], 10, &mut Seed(0).stream("x")), None);
    }

    proptest! {
        #[test]
        fn equal_sets_never_look_different(samples in prop::collection::vec(-50.0_f64..50.0, 1..8)) {
            let p = permutation_p(&samples, &samples, 200, &mut Seed(5).stream("p")).unwrap();
            prop_assert_eq!(p, 1.0);
        }
    }
}
