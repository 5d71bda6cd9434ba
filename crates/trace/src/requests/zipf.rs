//! Zipf-distributed object numbers: object k (from 1) is drawn in proportion to 1 / k^s.
//!
//! Integers only, so that a trace is the same on every machine: logarithms and powers are worked
//! out bit by bit in fixed point, and draws come from Walker's alias table with exact integer
//! weights, which takes two random numbers and one look into a table for each draw.
//!
//! Left out: changes of popularity over time, and locality other than popularity.

use units::{Seed, Stream};

/// log2 of the weight of the most popular object. Together with [`OBJECTS_MAX`] it keeps sums of
/// weights below 2^62.
const WEIGHT_SHIFT: u32 = 40;
/// The most objects that a table is made for.
pub const OBJECTS_MAX: u32 = 1 << 22;
/// Bits behind the point of a logarithm.
const LOG_SHIFT: u32 = 32;

/// Objects up to this rank have a bucket of their own in any sequence.
const SINGLE: u32 = 128;

/// An endless sequence of object numbers from 0, the most popular, to `objects - 1`.
#[derive(Debug, Clone)]
pub struct Zipf {
    buckets: Vec<Bucket>,
    /// What a bucket's threshold is compared with: the sum of all weights.
    full: u64,
    /// The first object of each bucket, and one past the last of all, where buckets stand for several.
    groups: Option<Vec<u32>>,
    random: Stream,
}

/// One of as many equally likely buckets as there are objects: its own object up to the
/// threshold, another one above.
#[derive(Debug, Clone, Copy)]
struct Bucket {
    threshold: u64,
    alias: u32,
}

impl Zipf {
    /// A sequence over `objects` objects with the exponent `skew_percent` / 100, drawn from the
    /// stream `zipf` of `seed`. 0 is uniform; web and block traces lie around 60 to 100.
    ///
    /// # Panics
    /// When there are no objects or more than [`OBJECTS_MAX`].
    pub fn new(objects: u32, skew_percent: u32, seed: Seed) -> Self {
        Self { groups: None, ..Self::with(objects, skew_percent, seed, |_| 1) }
    }

    /// The same law in a table of some ten kilobytes, however many objects there are: behind the first 128,
    /// neighbours whose ranks differ by less than 1 % are drawn alike. For whoever pays for memory.
    ///
    /// # Panics
    /// As [`Zipf::new`].
    pub fn in_groups(objects: u32, skew_percent: u32, seed: Seed) -> Self {
        Self::with(objects, skew_percent, seed, |first| 1 + first / SINGLE)
    }

    /// A sequence whose bucket that begins with an object stands for as many as `width` says.
    fn with(objects: u32, skew_percent: u32, seed: Seed, width: fn(u32) -> u32) -> Self {
        assert!((1..=OBJECTS_MAX).contains(&objects), "{objects} objects are none or too many");
        let powers = Powers::new();
        let mut firsts = vec![0];
        let mut weights = Vec::new();
        let mut first = 0;
        while first < objects {
            let past = (first + width(first)).min(objects);
            weights.push((first..past).map(|object| powers.weight(object + 1, skew_percent)).sum());
            firsts.push(past);
            first = past;
        }
        let full = weights.iter().sum();
        let buckets = alias_table(&weights, full);
        Self { buckets, full, groups: Some(firsts), random: seed.stream("zipf") }
    }
}

impl Iterator for Zipf {
    type Item = u64;

    #[inline]
    fn next(&mut self) -> Option<u64> {
        let own = self.random.below(self.buckets.len() as u64);
        let bucket = self.buckets[own as usize];
        let is_own = self.random.below(self.full) < bucket.threshold;
        let drawn = if is_own { own } else { u64::from(bucket.alias) };
        let Some(firsts) = &self.groups else { return Some(drawn) };
        let (first, past) = (u64::from(firsts[drawn as usize]), u64::from(firsts[drawn as usize + 1]));
        Some(first + if past - first > 1 { self.random.below(past - first) } else { 0 })
    }
}

/// Vose's construction, in integers: each weight times the number of buckets is spread over
/// buckets that hold `full` each, at most two objects in one.
fn alias_table(weights: &[u64], full: u64) -> Vec<Bucket> {
    let count = weights.len() as u128;
    let full = u128::from(full);
    let mut left: Vec<u128> = weights.iter().map(|&weight| u128::from(weight) * count).collect();
    let is_small = |&object: &u32| left[object as usize] < full;
    let (mut small, mut large): (Vec<u32>, Vec<u32>) = (0..weights.len() as u32).partition(is_small);
    let mut buckets: Vec<Bucket> = Vec::with_capacity(weights.len());
    buckets.extend((0..weights.len() as u32).map(|own| Bucket { threshold: full as u64, alias: own }));
    // Sums are exact: while one bucket is not full, another object has more than fits into one.
    while let Some(own) = small.pop() {
        let donor = *large.last().expect("what is missing here is left over elsewhere");
        let threshold = left[own as usize];
        buckets[own as usize] = Bucket { threshold: threshold as u64, alias: donor };
        left[donor as usize] -= full - threshold;
        if left[donor as usize] < full {
            large.pop();
            small.push(donor);
        }
    }
    buckets
}

/// Powers of two with fractional exponents.
struct Powers {
    /// 2^-(2^-j) for j = 1, 2, ..., as fractions of 2^63.
    roots: [u64; LOG_SHIFT as usize],
}

impl Powers {
    fn new() -> Self {
        let mut roots = [0; LOG_SHIFT as usize];
        let mut power = 1_u128 << 62; // 2^-1.
        for root in &mut roots {
            power = (power << 63).isqrt();
            *root = power as u64; // Below 2^63: the root of a number below 2^126.
        }
        Self { roots }
    }

    /// 2^[`WEIGHT_SHIFT`] / rank^(skew / 100), at least 1.
    fn weight(&self, rank: u32, skew_percent: u32) -> u64 {
        let exponent = u128::from(log2(rank)) * u128::from(skew_percent) / 100;
        let whole = exponent >> LOG_SHIFT;
        if whole >= u128::from(WEIGHT_SHIFT) {
            return 1;
        }
        let mut power = 1_u128 << 63;
        for (bit, &root) in (0..LOG_SHIFT).rev().zip(&self.roots) {
            if (exponent >> bit) & 1 == 1 {
                power = (power * u128::from(root)) >> 63;
            }
        }
        ((power >> (63 - WEIGHT_SHIFT)) >> whole).max(1) as u64 // At most 2^40.
    }
}

/// The binary logarithm of a positive number with [`LOG_SHIFT`] bits behind the point, by
/// repeated squaring.
fn log2(number: u32) -> u64 {
    let whole = number.ilog2();
    let mut mantissa = u128::from(number) << (63 - whole); // From 2^63 to below 2^64: 1 to below 2.
    let mut log = u64::from(whole);
    for _ in 0..LOG_SHIFT {
        mantissa = (mantissa * mantissa) >> 63;
        let bit = mantissa >> 64;
        mantissa >>= bit;
        log = (log << 1) | (bit as u64); // One bit.
    }
    log
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weights_follow_the_power_law() {
        let powers = Powers::new();
        for (rank, skew_percent, expected) in [
            (1, 100, 1 << 40),
            (2, 100, 1 << 39),
            (1000, 100, (1 << 40) / 1000),
            (1 << 20, 100, 1 << 20),
            (10_000, 50, (1 << 40) / 100),
            (123_456, 0, 1 << 40),
            (OBJECTS_MAX, 10_000, 1),
        ] {
            let weight = powers.weight(rank, skew_percent);
            let off = weight.abs_diff(expected);
            assert!(off <= expected / 100_000 + 1, "1/{rank}^{skew_percent}%: {weight}, not {expected}");
        }
    }

    #[test]
    fn the_table_holds_exactly_the_weights() {
        for weights in [vec![7], vec![1, 1, 1], vec![100, 10, 1], vec![5, 1, 5, 1, 5]] {
            let full: u64 = weights.iter().sum();
            let mut held = vec![0; weights.len()];
            for (own, bucket) in alias_table(&weights, full).into_iter().enumerate() {
                held[own] += bucket.threshold;
                held[bucket.alias as usize] += full - bucket.threshold;
            }
            let scaled: Vec<u64> = weights.iter().map(|weight| weight * weights.len() as u64).collect();
            assert_eq!(held, scaled);
        }
    }

    #[test]
    fn popular_objects_are_drawn_as_often_as_the_law_says() {
        let mut drawn = [0_u32; 4];
        for object in Zipf::new(4, 100, Seed(1)).take(25_000) {
            drawn[object as usize] += 1;
        }
        // 12 : 6 : 4 : 3 of 25.
        for (count, expected) in drawn.into_iter().zip([12_000_u32, 6_000, 4_000, 3_000]) {
            assert!(count.abs_diff(expected) < 300, "{drawn:?}");
        }
    }

    #[test]
    fn groups_are_as_popular_as_their_objects() {
        const OBJECTS: u32 = 20_000;
        const DRAWS: usize = 400_000;
        let counted = |zipf: Zipf| {
            // By powers of two.
            let mut drawn = [0_u32; 16];
            zipf.take(DRAWS).for_each(|object| drawn[(object + 1).ilog2() as usize] += 1);
            drawn
        };
        for skew in [0, 60, 99, 140] {
            let single = counted(Zipf::new(OBJECTS, skew, Seed(1)));
            let grouped = Zipf::in_groups(OBJECTS, skew, Seed(1));
            assert!(grouped.buckets.len() < 800, "{} buckets", grouped.buckets.len());
            for (power, (grouped, single)) in counted(grouped).into_iter().zip(single).enumerate() {
                // Five standard deviations of the difference.
                let deviation = (f64::from(grouped) + f64::from(single)).sqrt();
                let off = f64::from(grouped.abs_diff(single));
                assert!(off <= 5.0 * deviation + 1.0, "skew {skew}, 2^{power}: {grouped}, not {single}");
            }
        }
    }

    #[test]
    fn every_object_comes_out_of_its_group() {
        for objects in [1, 2, 127, 128, 129, 300] {
            let mut seen = vec![false; objects as usize];
            Zipf::in_groups(objects, 0, Seed(3)).take(20_000).for_each(|object| seen[object as usize] = true);
            assert!(seen.iter().all(|&seen| seen), "{objects}: {seen:?}");
        }
    }

    #[test]
    fn the_first_draws_never_change() {
        let drawn: Vec<u64> = Zipf::new(1_000_000, 100, Seed(42)).take(6).collect();
        assert_eq!(
            drawn,
            [751619, 156578, 93108, 7647, 37, 36994],
            "traces made with this seed would change"
        );
    }
}
