//! In which order a step comes to its places: blocks of a file, pages of a mapping, files of a set.
//!
//! Each step of each task draws from a stream of its own, so that a change elsewhere in a workload file leaves its
//! draws alone. Next: [`super::act`].

use units::{Seed, Stream};

use crate::written::definition::{Order, PASS};
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
    /// Each of the places once, then again: in the same order, or in one that is drawn anew.
    Shuffled {
        places: Vec<u32>,
        next: usize,
        pass: u64,
        drawn_by: DrawnBy,
    },
    /// Popular places lie anywhere: the n-th most popular is the n-th of a drawn order.
    Zipf {
        zipf: Box<Zipf>,
        places: Vec<u32>,
    },
}

/// The stream that orders are drawn from: `$pass` in its name is the number of the pass.
pub(super) struct DrawnBy {
    seed: Seed,
    name: String,
}

impl DrawnBy {
    /// All places in an order.
    fn draw(&self, places: u64, pass: u64) -> Vec<u32> {
        let mut stream = self.seed.stream(&self.name.replace(PASS, &pass.to_string()));
        let mut drawn: Vec<u32> = (0..u32::try_from(places).expect("it was checked")).collect();
        for left in (1..drawn.len()).rev() {
            drawn.swap(left, stream.below(left as u64 + 1) as usize);
        }
        drawn
    }
}

/// As many places as a drawn order can have.
pub(super) const PLACES_MAX: u64 = OBJECTS_MAX as u64;

impl Walk {
    /// A walk over `places`, at least one, by the stream `name` of `seed`; orders of all places are drawn by `draw`.
    pub(super) fn new(order: Order, places: u64, seed: Seed, name: &str, draw: Option<&str>) -> Self {
        let drawn_by = DrawnBy { seed, name: draw.map_or_else(|| format!("{name}/places"), str::to_owned) };
        let drawn = || drawn_by.draw(places, 0);
        match order {
            Order::Sequential => Self::Sequential { next: 0, places },
            Order::Random => Self::Random { stream: seed.stream(name), places },
            Order::Shuffled => Self::Shuffled { places: drawn(), next: 0, pass: 0, drawn_by },
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
            Self::Shuffled { places, next, pass, drawn_by } => {
                if *next == places.len() {
                    (*next, *pass) = (0, *pass + 1);
                    if drawn_by.name.contains(PASS) {
                        *places = drawn_by.draw(places.len() as u64, *pass);
                    }
                }
                *next += 1;
                u64::from(places[*next - 1])
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
                let mut walk = Walk::new(order, 10, Seed(1), "read", None);
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

    #[test]
    fn orders_of_one_name_are_one_order_and_of_each_pass_another() {
        let passes = |draw: &str| {
            let mut walk = Walk::new(Order::Shuffled, 50, Seed(1), "touch", Some(draw));
            let mut pass = || (0..50).map(|_| walk.next()).collect::<Vec<_>>();
            (pass(), pass())
        };
        let (first, second) = passes("x/order");
        assert_eq!(first, second);
        let (first, second) = passes("x/order/$pass");
        assert_ne!(first, second);
        assert_eq!(second, passes("x/order/1").0);
    }
}
