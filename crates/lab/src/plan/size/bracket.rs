//! Which limit a real run has next: from what the model recommends to the least that keeps the target.
//!
//! A run of a program takes as long as the program, so there are few. The first is at the recommendation. From there
//! steps grow, down while the target is kept and up while it is not, until one limit is on each side; the interval is
//! then halved, by its logarithm, until its ends are [`RESOLUTION`] apart. Pure; [`super::by_program`] runs the limits.

use units::Bytes;

use super::curve::rounded;
use super::plan::LIMIT_LEAST;

/// Neighbours are at most so far apart where the target begins to be kept.
pub(super) const RESOLUTION: f64 = 1.08;
/// The first step away from the recommendation; each one after it is the square of the one before.
const STEP: f64 = 1.15;
/// Limits at most.
const POINTS_MAX: usize = 14;

/// What is known of limits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Bracket {
    /// The least that keeps the target, as every larger one that was run does.
    pub(super) enough: Option<Bytes>,
    /// The largest below that does not.
    pub(super) too_small: Option<Bytes>,
}

impl Bracket {
    /// Of limits, and whether each keeps the target.
    pub(super) fn of(ran: &[(Bytes, bool)]) -> Self {
        let too_small = ran.iter().filter(|(_, keeps)| !keeps).map(|(limit, _)| *limit).max();
        let above = |limit: &Bytes| too_small.is_none_or(|too_small| *limit > too_small);
        let enough = ran.iter().filter(|(_, keeps)| *keeps).map(|(limit, _)| *limit).filter(above).min();
        Self { enough, too_small }
    }
}

/// The limit to run next; none where enough is known. None is larger than
/// `most`.
pub(super) fn next(start: Bytes, most: Bytes, ran: &[(Bytes, bool)]) -> Option<Bytes> {
    if ran.len() >= POINTS_MAX {
        return None;
    }
    let times = |limit: Bytes, factor: f64| rounded(limit.get() as f64 * factor);
    let wanted = match Bracket::of(ran) {
        Bracket { enough: None, too_small: None } => start.min(most).max(LIMIT_LEAST),
        Bracket { enough: Some(enough), too_small: None } => {
            times(enough, 1.0 / step(start, enough)).max(LIMIT_LEAST)
        }
        Bracket { enough: None, too_small: Some(too_small) } => {
            times(too_small, step(start, too_small)).min(most)
        }
        Bracket { enough: Some(enough), too_small: Some(too_small) } => {
            let (above, below) = (enough.get() as f64, too_small.get() as f64);
            if above <= below * RESOLUTION {
                return None;
            }
            rounded((above * below).sqrt())
        }
    };
    let is_new = ran.iter().all(|(limit, _)| *limit != wanted);
    is_new.then_some(wanted)
}

/// How far the next limit is from one that is this far from the first.
fn step(start: Bytes, at: Bytes) -> f64 {
    let ratio = start.get().max(at.get()) as f64 / start.get().min(at.get()).max(1) as f64;
    (ratio * STEP).clamp(STEP, 2.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    fn searched(start: u64, most: u64, needed: u64) -> Vec<(Bytes, bool)> {
        let mut ran = Vec::new();
        while let Some(limit) = next(Bytes(start), Bytes(most), &ran) {
            ran.push((limit, limit.get() >= needed));
        }
        ran
    }

    #[test]
    fn wherever_it_begins_it_ends_at_the_least_limit_that_is_enough() {
        for start in [30, 120, 228, 352, 700] {
            for needed in [40, 90, 146, 352, 690] {
                let ran = searched(start * MIB, 800 * MIB, needed * MIB);
                let Bracket { enough, too_small } = Bracket::of(&ran);
                let (enough, too_small) = (enough.unwrap(), too_small.unwrap());
                assert!(enough.get() >= needed * MIB && too_small.get() < needed * MIB, "{start} {needed}");
                assert!(
                    enough.get() as f64 <= too_small.get() as f64 * RESOLUTION,
                    "{start} {needed}: {ran:?}"
                );
            }
        }
    }

    /// The recommendation is right: its own run, and those below it that say so.
    #[test]
    fn a_recommendation_that_holds_costs_three_runs() {
        assert_eq!(searched(352 * MIB, 800 * MIB, 350 * MIB).len(), 3);
    }

    #[test]
    fn it_ends_where_nothing_is_enough_and_where_everything_is() {
        let none = searched(100 * MIB, 400 * MIB, u64::MAX);
        assert_eq!(Bracket::of(&none), Bracket { enough: None, too_small: Some(Bytes(400 * MIB)) });
        let all = searched(100 * MIB, 400 * MIB, 0);
        assert_eq!(Bracket::of(&all), Bracket { enough: Some(LIMIT_LEAST), too_small: None });
    }

    /// A run that fails by chance above one that keeps is believed: what is enough lies above it.
    #[test]
    fn what_is_enough_is_above_everything_that_is_not() {
        let ran = [(Bytes(100), true), (Bytes(200), false), (Bytes(300), true)];
        assert_eq!(Bracket::of(&ran), Bracket { enough: Some(Bytes(300)), too_small: Some(Bytes(200)) });
    }
}
