//! A policy of one's own beside the ten that are here, on a trace of requests:
//!
//! ```text
//! cargo run --release -p pagetide-policy --example own_policy -- TRACE OBJECTS
//! ```
//!
//! It is LIP (Qureshi et al., ISCA 2007): an LRU list that takes new objects in at its tail. Without a trace, requests
//! are drawn by Zipf's law. Left out: parameters of the policy's own, which `table.rs` of the crate shows.

use std::error::Error;
use std::sync::Arc;

use pagetide_policy::slots::{LinkedSlots, List};
use pagetide_policy::{BATCH, Cache, Capacity, Future, Policy, PolicyInfo, PolicySpec, READAHEAD, Wanted};
use trace::requests::{TraceReader, zipf::Zipf};

/// A cache with LIP's eviction.
///
///  hit --> [ head ... tail ] --> out
///                       ^-- miss
#[derive(Debug)]
struct Lip {
    slots: LinkedSlots<()>,
    queue: List,
    capacity: Capacity,
}

impl Policy for Lip {
    fn access(&mut self, object: u64) -> bool {
        let Some(slot) = self.slots.find(object) else { return false };
        self.queue.to_head(&mut self.slots, slot);
        true
    }

    fn holds(&self, object: u64) -> bool {
        self.slots.find(object).is_some()
    }

    fn insert(&mut self, object: u64) {
        let slot = self.slots.add(object, ());
        let tail = self.queue.tail(&self.slots);
        self.queue.push(&mut self.slots, slot);
        if tail != self.queue.root() {
            // Behind the tail: on the older side of the oldest.
            self.queue.remove(&mut self.slots, slot);
            self.queue.put_behind(&mut self.slots, tail, slot);
        }
    }

    fn evict(&mut self) -> u64 {
        let victim = self.queue.pop(&mut self.slots);
        self.slots.remove(victim)
    }

    fn len(&self) -> u32 {
        self.queue.len()
    }

    fn capacity(&self) -> u32 {
        self.capacity.get()
    }
}

/// What stands in the table of policies.
static LIP: PolicyInfo = PolicyInfo {
    name: "lip",
    help: "LRU that takes new objects in at its tail",
    params: &[BATCH, READAHEAD],
    needs_future: false,
    make: |of| {
        let mut slots = LinkedSlots::new();
        let queue = slots.list();
        Box::new(Lip { slots, queue, capacity: of.capacity })
    },
};

/// The miss ratio of each policy, the best one first.
fn compare(requests: &[Wanted], capacity: Capacity) -> Result<Vec<(f64, PolicySpec)>, Box<dyn Error>> {
    let mut future = Future::default();
    requests.iter().try_for_each(|wanted| future.push(wanted.object))?;
    let future = Arc::new(future);
    let ratio = |spec: PolicySpec| {
        let mut cache = Cache::new(&spec, capacity, &future);
        cache.feed(requests, true);
        (cache.counted().miss_ratio().unwrap_or(0.0), spec)
    };
    let mut ratios: Vec<_> = PolicySpec::all().chain([PolicySpec::new(&LIP)]).map(ratio).collect();
    ratios.sort_by(|(one, _), (other, _)| one.total_cmp(other));
    Ok(ratios)
}

#[allow(clippy::print_stdout, reason = "a table is what it is for")]
fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let requests: Vec<Wanted> = match arguments.next() {
        None => Zipf::new(100_000, 80, units::Seed(1))
            .take(1 << 20)
            .map(|object| Wanted { object, bytes: 1 })
            .collect(),
        Some(trace) => TraceReader::open(trace.as_ref(), None)?
            .map(|request| {
                request.map(|request| Wanted { object: request.object, bytes: request.size_bytes })
            })
            .collect::<Result<_, _>>()?,
    };
    let objects = arguments.next().map_or(Ok(1000), |text| text.parse())?;
    for (ratio, spec) in compare(&requests, Capacity::new(objects)?)? {
        println!("{ratio:.4}  {spec}");
    }
    Ok(())
}

/// A loop that is one object too large costs LRU everything, and LIP little.
#[test]
fn lip_keeps_most_of_a_loop() {
    let round: Vec<Wanted> = (0..101).map(|object| Wanted { object, bytes: 4096 }).collect();
    let ratios = compare(&round.repeat(10), Capacity::new(100).unwrap()).unwrap();
    let of = |name| ratios.iter().find(|(_, spec)| spec.info().name == name).unwrap().0;
    assert_eq!((ratios.len(), of("lru")), (11, 1.0));
    assert!(of("lip") < 0.13, "{ratios:?}");
}
