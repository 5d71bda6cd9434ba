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
        scattered: Scattered,
        next: u64,
        pass: u64,
        drawn_by: DrawnBy,
    },
    /// Popular places lie anywhere.
    Zipf {
        zipf: Box<Zipf>,
        scattered: Scattered,
    },
}

/// Ranks, of popularity or of time, scattered over as many places: a permutation that takes no memory, for what a task
/// of a real machine holds is charged to its cgroup. Luby and Rackoff's: four Feistel rounds over the least power of
/// four that has all places, gone through again where the result is none.
pub(super) struct Scattered {
    keys: [u64; 4],
    /// Bits of each half.
    half: u32,
    places: u64,
}

impl Scattered {
    fn new(places: u64, mut stream: Stream) -> Self {
        let bits = u64::BITS - (places - 1).leading_zeros();
        Self { keys: std::array::from_fn(|_| stream.bits()), half: bits.div_ceil(2), places }
    }

    fn place(&self, rank: u64) -> u64 {
        let mask = (1 << self.half) - 1;
        let mut place = rank;
        loop {
            let (mut left, mut right) = (place >> self.half, place & mask);
            for key in self.keys {
                let mixed = (right ^ key).wrapping_mul(0x9e37_79b9_7f4a_7c15);
                (left, right) = (right, left ^ ((mixed ^ (mixed >> 29)).wrapping_mul(key | 1) >> 40 & mask));
            }
            place = left << self.half | right;
            if place < self.places {
                return place;
            }
        }
    }
}

/// The stream that orders are drawn from: `$pass` in its name is the number of the pass.
pub(super) struct DrawnBy {
    seed: Seed,
    name: String,
}

impl DrawnBy {
    /// All places in an order.
    fn draw(&self, places: u64, pass: u64) -> Scattered {
        Scattered::new(places, self.seed.stream(&self.name.replace(PASS, &pass.to_string())))
    }
}

/// As many places as popularity can have.
pub(super) const PLACES_MAX: u64 = OBJECTS_MAX as u64;

impl Walk {
    /// A walk over `places`, at least one, by the stream `name` of `seed`. An order of all places is drawn by the
    /// stream `order_by`.
    pub(super) fn new(order: Order, places: u64, seed: Seed, name: &str, order_by: String) -> Self {
        match order {
            Order::Sequential => Self::Sequential { next: 0, places },
            Order::Random => Self::Random { stream: seed.stream(name), places },
            Order::Shuffled => {
                let drawn_by = DrawnBy { seed, name: order_by };
                Self::Shuffled { scattered: drawn_by.draw(places, 0), next: 0, pass: 0, drawn_by }
            }
            Order::Zipf(skew) => {
                let objects = u32::try_from(places).expect("it was checked");
                let own = Seed(seed.stream(name).bits());
                let zipf = Box::new(Zipf::in_groups(objects, skew, own));
                Self::Zipf { zipf, scattered: Scattered::new(places, seed.stream(&order_by)) }
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
            Self::Shuffled { scattered, next, pass, drawn_by } => {
                if *next == scattered.places {
                    (*next, *pass) = (0, *pass + 1);
                    if drawn_by.name.contains(PASS) {
                        *scattered = drawn_by.draw(scattered.places, *pass);
                    }
                }
                *next += 1;
                scattered.place(*next - 1)
            }
            Self::Zipf { zipf, scattered } => scattered.place(zipf.next().expect("it has no end")),
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
                let mut walk = Walk::new(order, 10, Seed(1), "read", "order".to_owned());
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
    fn each_rank_has_a_place_of_its_own_anywhere() {
        for places in [1, 2, 3, 10, 64, 1000, 1025] {
            let scattered = Scattered::new(places, Seed(1).stream("popularity"));
            let all: Vec<u64> = (0..places).map(|rank| scattered.place(rank)).collect();
            let mut sorted = all.clone();
            sorted.sort_unstable();
            assert_eq!(sorted, (0..places).collect::<Vec<_>>());
            // Neighbours in popularity are no neighbours in the file.
            let near = all.windows(2).filter(|two| two[0].abs_diff(two[1]) < 10).count();
            assert!(places < 1000 || near < 40, "{near} of {places}");
        }
    }

    #[test]
    fn tasks_by_one_popularity_agree_on_what_is_popular() {
        let most = |name: &str| {
            let mut walk = Walk::new(Order::Zipf(140), 1000, Seed(1), name, "popularity of data".to_owned());
            let mut times = [0; 1000];
            (0..1000).for_each(|_| times[walk.next() as usize] += 1);
            (0..1000).max_by_key(|&place| times[place])
        };
        assert_eq!(most("client-0/step1"), most("client-1/step4"));
    }

    #[test]
    fn orders_of_one_name_are_one_order_and_of_each_pass_another() {
        let passes = |draw: &str| {
            let mut walk = Walk::new(Order::Shuffled, 50, Seed(1), "touch", draw.to_owned());
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
