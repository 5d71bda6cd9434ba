//! Memory against a share of hits: where the curve bends, and which limit to run next.
//!
//! # Knee
//! As Kneedle defines it (Satopaa et al., 2011), without its smoothing: memory and hits, each from the least to the
//! most that was run, become 0 to 1 on linear axes; the knee is the limit that stands highest above the chord from
//! the first point to the last. Hits that fall with more memory, as they may by chance, count as the most before.
//! A curve that nowhere stands [`BEND_MIN`] above its chord has no knee: hits come in proportion to memory, or only
//! once all fits.
//!
//! # Which limit next
//! An interval between two neighbours is split at its geometric mean until its ends are `1 + resolution` apart.
//! First comes the one that holds the least limit that is enough, then those beside the knee, then others by what
//! they may hide: the rectangle that a rising curve can be anywhere in, hits times the logarithm of memory.
//!
//! Left out: smoothing, knees of curves with several (the highest is taken). Pure; `size.rs` runs the limits.

use units::{Bytes, PAGE_SIZE};

/// A limit that was run.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Point {
    pub(super) limit: Bytes,
    /// Hits of all pages asked for, 0 to 1.
    pub(super) hits: f64,
    /// Whether it is enough.
    pub(super) is_enough: bool,
}

/// A curve stands so far above its chord, both from 0 to 1, or it has no knee.
pub(super) const BEND_MIN: f64 = 0.05;
/// Two neighbours whose hits differ by less have nothing between them.
const STEP_MIN: f64 = 0.005;

/// The place of the knee among `points`, whose limits rise.
pub(super) fn knee(points: &[Point]) -> Option<usize> {
    let (first, last) = (points.first()?, points.last()?);
    let hits = rising(points);
    let (low, high) = (*hits.first()?, *hits.last()?);
    let width = (last.limit.get() - first.limit.get()) as f64;
    if width <= 0.0 || high <= low {
        return None;
    }
    let above = |(point, hits): (&Point, &f64)| {
        (hits - low) / (high - low) - ((point.limit.get() - first.limit.get()) as f64 / width)
    };
    let heights: Vec<f64> = points.iter().zip(&hits).map(above).collect();
    // The first of equal ones: the one that needs less memory.
    let best = (0..heights.len()).rev().max_by(|&a, &b| heights[a].total_cmp(&heights[b]))?;
    (heights[best] >= BEND_MIN).then_some(best)
}

/// The least limit that is enough, as every larger one that was run is.
pub(super) fn enough(points: &[Point]) -> Option<usize> {
    match points.iter().rposition(|point| !point.is_enough) {
        None if points.is_empty() => None,
        None => Some(0),
        Some(last) => (last + 1 < points.len()).then_some(last + 1),
    }
}

/// Up to `count` limits to run next, smallest first; none where nothing is left to be known.
pub(super) fn next(points: &[Point], resolution: f64, count: usize) -> Vec<Bytes> {
    let hits = rising(points);
    let mut wanted: Vec<usize> = Vec::new();
    let mut want = |interval: usize| {
        if !wanted.contains(&interval) && split(points, interval, resolution).is_some() {
            wanted.push(interval);
        }
    };
    if let Some(place) = enough(points).filter(|&place| place > 0) {
        want(place - 1);
    }
    if let Some(place) = knee(points) {
        if place > 0 {
            want(place - 1);
        }
        want(place);
    }
    let hidden = |interval: usize| {
        let width = points[interval + 1].limit.get() as f64 / points[interval].limit.get() as f64;
        (hits[interval + 1] - hits[interval]) * width.ln()
    };
    let rises = |&interval: &usize| hits[interval + 1] - hits[interval] >= STEP_MIN;
    let mut others: Vec<usize> = (0..points.len().saturating_sub(1)).filter(rises).collect();
    others.sort_by(|&a, &b| hidden(b).total_cmp(&hidden(a)));
    others.into_iter().for_each(want);
    wanted.truncate(count);
    wanted.sort_unstable();
    wanted.into_iter().filter_map(|interval| split(points, interval, resolution)).collect()
}

/// Limits from `least` to below `most`: two for each doubling, `most` not among them.
pub(super) fn coarse(least: Bytes, most: Bytes) -> Vec<Bytes> {
    let mut limits = Vec::new();
    let mut limit = most.get() as f64;
    loop {
        limit /= std::f64::consts::SQRT_2;
        let next = rounded(limit);
        if next < least || limits.len() >= COARSE_MAX {
            break;
        }
        limits.push(next);
    }
    limits.reverse();
    limits
}

/// Six doublings: below a sixty-fourth of what it could use, nobody runs a service.
pub(super) const COARSE_MAX: usize = 12;

/// Hits that never fall.
fn rising(points: &[Point]) -> Vec<f64> {
    let mut most = f64::MIN;
    let up = |point: &Point| {
        most = most.max(point.hits);
        most
    };
    points.iter().map(up).collect()
}

/// The limit in the middle of an interval that is wider than the resolution.
fn split(points: &[Point], interval: usize, resolution: f64) -> Option<Bytes> {
    let (below, above) = (points.get(interval)?.limit.get(), points.get(interval + 1)?.limit.get());
    if above as f64 <= below as f64 * (1.0 + resolution) {
        return None;
    }
    let middle = rounded((below as f64 * above as f64).sqrt());
    (below < middle.get() && middle.get() < above).then_some(middle)
}

/// To a round number of bytes, at most one part in 128 away.
pub(super) fn rounded(bytes: f64) -> Bytes {
    let step = (((bytes / 64.0).max(1.0) as u64).ilog2() as u64).max(u64::from(PAGE_SIZE.ilog2()));
    let step = 1_u64 << step;
    Bytes((((bytes / step as f64).round() as u64) * step).max(PAGE_SIZE))
}

/// As [`rounded`], and never below.
pub(super) fn rounded_up(bytes: f64) -> Bytes {
    let near = rounded(bytes);
    let step = (bytes / 64.0).max(1.0);
    if near.get() as f64 >= bytes { near } else { rounded(bytes + step / 2.0) }
}

/// A limit that does not limit what keeps so much without one.
pub(super) fn above(held: Bytes) -> Bytes {
    /// Charges are made in batches of 64 pages for each CPU.
    const BATCHES: u64 = 2 << 20;
    rounded_up(1.02 * (held.get() + BATCHES) as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    /// Runs the whole search on a curve that is known.
    fn searched(most: u64, budget: usize, curve: impl Fn(f64) -> f64, needed: u64) -> Vec<Point> {
        let point =
            |limit: Bytes| Point { limit, hits: curve(limit.get() as f64), is_enough: limit.get() >= needed };
        let mut points: Vec<Point> = coarse(Bytes(MIB), Bytes(most)).into_iter().map(point).collect();
        points.push(point(Bytes(most)));
        while points.len() < budget {
            let more = next(&points, 0.05, 4.min(budget - points.len()));
            if more.is_empty() {
                break;
            }
            points.extend(more.into_iter().map(point));
            points.sort_by_key(|point| point.limit);
        }
        points
    }

    /// Whether the first of two limits is within so much of the second.
    fn is_near(limit: Bytes, wanted: u64, part: f64) -> bool {
        (limit.get() as f64 / wanted as f64 - 1.0).abs() <= part
    }

    #[test]
    fn a_curve_with_one_bend_has_its_knee_there_wherever_it_is() {
        for bend in [40, 100, 311, 512, 900] {
            let bend = bend * MIB;
            // Steep up to the bend, nearly flat behind it.
            let curve = |memory: f64| 0.1 + 0.8 * (memory / bend as f64).min(1.0) + 1e-12 * memory;
            let points = searched(1200 * MIB, 40, curve, 0);
            let knee = knee(&points).expect("it bends");
            assert!(is_near(points[knee].limit, bend, 0.05), "{} for {}", points[knee].limit, Bytes(bend));
        }
    }

    #[test]
    fn what_is_enough_is_found_to_the_resolution() {
        for needed in [20, 64, 333, 999, 1199] {
            let needed = needed * MIB;
            let points = searched(1200 * MIB, 40, |memory| memory.sqrt() / 4e4, needed);
            let place = enough(&points).expect("the largest is enough");
            assert!(points[place].limit.get() >= needed && is_near(points[place].limit, needed, 0.055));
            assert!(points[place - 1].limit.get() < needed);
        }
    }

    #[test]
    fn a_cliff_is_found_though_nobody_asks_for_it() {
        let cliff = 777 * MIB;
        let points = searched(1200 * MIB, 40, |memory| if memory < cliff as f64 { 0.1 } else { 0.9 }, 0);
        let above = points.iter().position(|point| point.hits > 0.5).unwrap();
        let (below, above) = (points[above - 1].limit.get(), points[above].limit.get());
        assert!(above as f64 / below as f64 <= 1.05, "{below} to {above}");
    }

    #[test]
    fn a_straight_line_and_one_that_rises_at_its_end_have_no_knee() {
        assert_eq!(knee(&searched(1200 * MIB, 30, |memory| memory / 2e9, 0)), None);
        let loops = |memory: f64| if memory < 1190.0 * MIB as f64 { 0.0 } else { 1.0 };
        let points = searched(1200 * MIB, 30, loops, 0);
        assert!(knee(&points).is_none_or(|knee| knee + 2 >= points.len()));
        assert_eq!(knee(&[]), None);
        assert_eq!(next(&[], 0.05, 4), []);
        assert_eq!(enough(&[]), None);
    }

    /// Curves of all shapes: what is run next always lies between neighbours, is new, and the search ends.
    #[test]
    fn the_search_ends_and_runs_nothing_twice() {
        let mut random = units::Seed(7).stream("curves");
        for _ in 0..200 {
            let steps: Vec<(u64, f64)> = (0..random.below(6))
                .map(|_| (random.below(2000 * MIB), random.below(100) as f64 / 500.0))
                .collect();
            let curve = |memory: f64| {
                steps.iter().filter(|(at, _)| *at as f64 <= memory).map(|(_, step)| step).sum::<f64>()
            };
            let points = searched((2 + random.below(2000)) * MIB, 400, curve, random.below(2000 * MIB));
            assert!(points.len() < 400);
            assert!(points.windows(2).all(|pair| pair[0].limit < pair[1].limit));
            assert!(next(&points, 0.05, 4).is_empty());
        }
    }

    #[test]
    fn limits_are_round_and_near() {
        for bytes in [5e6, 1.234e8, 9.99e9, 3e12] {
            let round = rounded(bytes).get();
            assert!(
                (round as f64 / bytes - 1.0).abs() < 1.0 / 64.0 && round.is_multiple_of(4096),
                "{bytes} {round}"
            );
        }
        assert_eq!(rounded(0.0), Bytes(4096));
        assert_eq!(coarse(Bytes(MIB), Bytes(8 * MIB)).len(), 6);
    }
}
