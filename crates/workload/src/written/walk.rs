//! In which order a step comes to its places: blocks of a file, pages of a mapping, files of a set.
//!
//! Each step of each task draws from a stream of its own, so that a change elsewhere in a workload file leaves its
//! draws alone. Next: [`super::act`].

use units::{Seed, Stream};

use crate::written::definition::Order;
use trace::requests::zipf::{OBJECTS_MAX, Zipf};

/// Places to come, without an end.
pub(super) enum Walk {
    Sequential {
        next: u64,
        places: u64,
    },
    Random {
        stream: Stream,
        places: u64,
    },
    /// Each of the places once, then again in the same order.
    Shuffled {
        places: Vec<u32>,
        next: usize,
    },
    /// Popular places lie anywhere: the n-th most popular is the n-th of a drawn order.
    Zipf {
        zipf: Box<Zipf>,
        places: Vec<u32>,
    },
}

/// As many places as a drawn order can have.
pub(super) const PLACES_MAX: u64 = OBJECTS_MAX as u64;

impl Walk {
    /// A walk over `places`, at least one, by the stream `name` of `seed`.
    pub(super) fn new(order: Order, places: u64, seed: Seed, name: &str) -> Self {
        let drawn = || {
            let mut stream = seed.stream(&format!("{name}/places"));
            let mut drawn: Vec<u32> = (0..u32::try_from(places).expect("it was checked")).collect();
            for left in (1..drawn.len()).rev() {
                drawn.swap(left, stream.below(left as u64 + 1) as usize);
            }
            drawn
        };
        match order {
            Order::Sequential => Self::Sequential { next: 0, places },
            Order::Random => Self::Random { stream: seed.stream(name), places },
            Order::Shuffled => Self::Shuffled { places: drawn(), next: 0 },
            Order::Zipf(skew) => {
                let objects = u32::try_from(places).expect("it was checked");
                let own = Seed(seed.stream(name).bits());
                Self::Zipf { zipf: Box::new(Zipf::new(objects, skew, own)), places: drawn() }
            }
        }
    }

    /// The next place.
    pub(super) fn next(&mut self) -> u64 {
        match self {
            Self::Sequential { next, places } => {
                let place = *next;
                *next = (place + 1) % *places;
                place
            }
            Self::Random { stream, places } => stream.below(*places),
            Self::Shuffled { places, next } => {
                let place = places[*next];
                *next = (*next + 1) % places.len();
                u64::from(place)
            }
            Self::Zipf { zipf, places } => {
                let rank = zipf.next().expect("it has no end");
                u64::from(places[rank as usize])
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_order_stays_within_its_places_and_draws_the_same_twice() {
        for order in [Order::Sequential, Order::Random, Order::Shuffled, Order::Zipf(110)] {
            let places = || {
                let mut walk = Walk::new(order, 10, Seed(1), "read");
                (0..30).map(|_| walk.next()).collect::<Vec<_>>()
            };
            assert_eq!(places(), places());
            assert!(places().iter().all(|&place| place < 10), "{order:?}");
            let mut first: Vec<u64> = places()[..10].to_vec();
            first.sort_unstable();
            let is_each = first == (0..10).collect::<Vec<_>>();
            assert_eq!(is_each, matches!(order, Order::Sequential | Order::Shuffled), "{order:?}");
        }
    }
}
