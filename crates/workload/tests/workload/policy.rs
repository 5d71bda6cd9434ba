//! Replacement policies against naive ones that keep their objects in a list.

use std::collections::VecDeque;
use std::io::Write as _;
use std::path::PathBuf;

use pagetide_workload::policy::{
    Access, Cache, Capacity, Clock, Counted, Fifo, Lru, Policy, PolicyError, PolicyKind, Wanted,
};
use pagetide_workload::trace::TraceReader;
use pagetide_workload::zipf::Zipf;
use proptest::prelude::*;
use units::Seed;

fn capacity(objects: u64) -> Capacity {
    Capacity::new(objects).unwrap()
}

fn replay_all(kind: PolicyKind, objects: u64, requests: impl IntoIterator<Item = u64>) -> Counted {
    let wanted: Vec<Wanted> = requests.into_iter().map(|object| Wanted { object, bytes: 1 }).collect();
    let mut cache = Cache::new(kind, capacity(objects));
    cache.feed(&wanted, true);
    cache.counted()
}

/// Requests and what they did: `-` a hit, `+` a miss, `+c` a miss that evicted `c`.
fn story(mut policy: impl Policy, requests: &str) -> String {
    let step = |request: char| match policy.request(request.into()) {
        Access::Hit => format!("{request}-"),
        Access::Miss { evicted: None } => format!("{request}+"),
        Access::Miss { evicted: Some(evicted) } => {
            format!("{request}+{}", char::from_u32(evicted.try_into().unwrap()).unwrap())
        }
    };
    requests.chars().map(step).collect::<Vec<_>>().join(" ")
}

#[test]
fn each_policy_evicts_another_object_of_the_same_requests() {
    let requests = "abcadaebf";
    let room = capacity(3);
    assert_eq!(story(Lru::new(room), requests), "a+ b+ c+ a- d+b a- e+c b+d f+a");
    assert_eq!(story(Fifo::new(room), requests), "a+ b+ c+ a- d+a a+b e+c b+d f+a");
    assert_eq!(story(Clock::new(room), requests), "a+ b+ c+ a- d+b a- e+c b+d f+e");
}

#[test]
fn a_cache_of_one_object_holds_the_last_one() {
    for kind in PolicyKind::ALL {
        let counted = replay_all(kind, 1, [5, 5, 6, 6, 5]);
        let expected = Counted { requests: 5, misses: 3, bytes: 5, missed_bytes: 3, evictions: 2 };
        assert_eq!(counted, expected, "{kind:?}");
    }
}

#[test]
fn capacities_and_names_are_checked() {
    assert_eq!(Capacity::new(0), Err(PolicyError::ZeroCapacity));
    assert_eq!(Capacity::new(u64::from(u32::MAX)), Err(PolicyError::TooLarge(u64::from(u32::MAX))));
    for kind in PolicyKind::ALL {
        assert_eq!(kind.name().parse(), Ok(kind));
    }
    assert_eq!("lfu".parse::<PolicyKind>().unwrap_err().hint(), "did you mean `lru`?");
    assert_eq!(Counted::default().miss_ratio(), None);
}

#[test]
fn misses_are_also_counted_in_bytes_and_a_warm_up_fills_without_counting() {
    let wanted = |object, bytes| Wanted { object, bytes };
    let mut cache = Cache::new(PolicyKind::Lru, capacity(2));
    cache.feed(&[wanted(1, 100), wanted(2, 1000)], false);
    assert_eq!(cache.counted(), Counted::default());
    cache.feed(&[wanted(1, 100), wanted(3, 900)], true);
    let counted = cache.counted();
    assert_eq!((counted.miss_ratio(), counted.byte_miss_ratio()), (Some(0.5), Some(0.9)));
}

#[test]
fn misses_on_a_zipf_trace_never_change() {
    let requests: Vec<u64> = Zipf::new(10_000, 100, Seed(1)).take(100_000).collect();
    let misses = PolicyKind::ALL.map(|kind| replay_all(kind, 1000, requests.iter().copied()).misses);
    assert_eq!(misses, [32756, 37156, 31682], "lru, fifo, clock");
}

/// What LRU means, without an index: the most recent object in front.
fn naive_lru(held: &mut VecDeque<u64>, capacity: usize, object: u64) -> Access {
    let found = held.iter().position(|&other| other == object);
    if let Some(index) = found {
        held.remove(index);
    }
    held.push_front(object);
    match found {
        Some(_) => Access::Hit,
        None => Access::Miss { evicted: if held.len() > capacity { held.pop_back() } else { None } },
    }
}

fn naive_fifo(held: &mut VecDeque<u64>, capacity: usize, object: u64) -> Access {
    if held.contains(&object) {
        return Access::Hit;
    }
    held.push_front(object);
    Access::Miss { evicted: if held.len() > capacity { held.pop_back() } else { None } }
}

/// The queue form of CLOCK: the oldest object goes back in line as long as its bit is set.
fn naive_clock(held: &mut VecDeque<(u64, bool)>, capacity: usize, object: u64) -> Access {
    if let Some(entry) = held.iter_mut().find(|entry| entry.0 == object) {
        entry.1 = true;
        return Access::Hit;
    }
    let mut evicted = None;
    while held.len() == capacity && evicted.is_none() {
        match held.pop_back().unwrap() {
            (spared, true) => held.push_front((spared, false)),
            (victim, false) => evicted = Some(victim),
        }
    }
    held.push_front((object, false));
    Access::Miss { evicted }
}

proptest! {
    #[test]
    fn every_access_is_that_of_the_naive_policy(
        requests in proptest::collection::vec(0_u64..40, 0..400),
        room in 1_usize..30,
    ) {
        let capacity = capacity(room as u64);
        let (mut lru, mut lru_list) = (Lru::new(capacity), VecDeque::new());
        let (mut fifo, mut fifo_list) = (Fifo::new(capacity), VecDeque::new());
        let (mut clock, mut clock_list) = (Clock::new(capacity), VecDeque::new());
        for object in requests {
            prop_assert_eq!(lru.request(object), naive_lru(&mut lru_list, room, object));
            prop_assert_eq!(fifo.request(object), naive_fifo(&mut fifo_list, room, object));
            prop_assert_eq!(clock.request(object), naive_clock(&mut clock_list, room, object));
            prop_assert_eq!(lru.len() as usize, lru_list.len());
        }
    }
}

/// Part of a published block trace, one object per block number. Set `PAGETIDE_TRACES` to the
/// folder that holds `cloudPhysicsIO.csv` of libCacheSim.
#[test]
fn lru_misses_on_a_real_trace_as_others_measured() {
    let Some(folder) = std::env::var_os("PAGETIDE_TRACES").map(PathBuf::from) else {
        // Straight to the stream: the test harness hides what the macros print.
        let skipped = "SKIPPED: PAGETIDE_TRACES is not set, so no real trace was replayed";
        writeln!(std::io::stderr(), "{skipped}").unwrap();
        return;
    };
    for (objects, miss_ratio) in [(1000, "0.8327"), (4000, "0.8151"), (16000, "0.6587")] {
        let reader = TraceReader::open(&folder.join("cloudPhysicsIO.csv"), None).unwrap();
        let counted = replay_all(PolicyKind::Lru, objects, reader.map(|request| request.unwrap().object));
        assert_eq!(counted.requests, 113_872);
        assert_eq!(format!("{:.4}", counted.miss_ratio().unwrap()), miss_ratio, "with {objects} objects");
    }
}
