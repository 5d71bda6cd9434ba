//! Replacement policies against naive ones that keep their objects in lists and look through all of them, and
//! Belady's bound against every way to choose victims.
//!
//! A naive policy is its paper's one step for a request; index 0 of a list is its head, the newest.

use std::collections::{BTreeSet, VecDeque};

use language::Share;
use pagetide_policy::{
    Access, Arc, Belady, Cache, Capacity, Clock, ClockPro, Fifo, Lirs, Lru, Policy, PolicySpec, S3Fifo,
    Sieve, TwoQ, Wanted,
};
use proptest::prelude::*;

use crate::policies::{self, future, spec};

type Queue<T = u64> = VecDeque<T>;

fn capacity(objects: usize) -> Capacity {
    policies::capacity(objects as u64)
}

/// Takes an object out of a list; whether it was there.
fn take(queue: &mut Queue, object: u64) -> bool {
    let index = queue.iter().position(|&other| other == object);
    index.and_then(|index| queue.remove(index)).is_some()
}

fn lru(held: &mut Queue, room: usize, object: u64) -> Access {
    let found = take(held, object);
    held.push_front(object);
    if found {
        return Access::Hit;
    }
    Access::Miss { evicted: if held.len() > room { held.pop_back() } else { None } }
}

fn fifo(held: &mut Queue, room: usize, object: u64) -> Access {
    if held.contains(&object) {
        return Access::Hit;
    }
    held.push_front(object);
    Access::Miss { evicted: if held.len() > room { held.pop_back() } else { None } }
}

/// The ring as it was first described: a hand over places, where the victim's is the new one's.
#[derive(Default)]
struct NaiveClock {
    places: Vec<(u64, bool)>,
    hand: usize,
}

impl NaiveClock {
    fn request(&mut self, room: usize, object: u64) -> Access {
        if let Some(place) = self.places.iter_mut().find(|place| place.0 == object) {
            place.1 = true;
            return Access::Hit;
        }
        if self.places.len() < room {
            self.places.push((object, false));
            return Access::Miss { evicted: None };
        }
        while std::mem::take(&mut self.places[self.hand].1) {
            self.hand = (self.hand + 1) % room;
        }
        let victim = std::mem::replace(&mut self.places[self.hand], (object, false)).0;
        self.hand = (self.hand + 1) % room;
        Access::Miss { evicted: Some(victim) }
    }
}

/// The hand is the object that it stands at.
#[derive(Default)]
struct NaiveSieve {
    queue: Queue<(u64, bool)>,
    hand: Option<u64>,
}

impl NaiveSieve {
    fn request(&mut self, room: usize, object: u64) -> Access {
        if let Some(entry) = self.queue.iter_mut().find(|entry| entry.0 == object) {
            entry.1 = true;
            return Access::Hit;
        }
        let evicted = (self.queue.len() == room).then(|| self.evict());
        self.queue.push_front((object, false));
        Access::Miss { evicted }
    }

    fn evict(&mut self) -> u64 {
        let place = |hand: u64| self.queue.iter().position(|entry| entry.0 == hand).unwrap();
        let mut at = self.hand.map_or(self.queue.len() - 1, place);
        while std::mem::take(&mut self.queue[at].1) {
            at = if at == 0 { self.queue.len() - 1 } else { at - 1 };
        }
        self.hand = (at > 0).then(|| self.queue[at - 1].0);
        self.queue.remove(at).unwrap().0
    }
}

#[derive(Default)]
struct NaiveS3Fifo {
    small: Queue<(u64, u8)>,
    main: Queue<(u64, u8)>,
    ghosts: Queue,
}

impl NaiveS3Fifo {
    fn request(&mut self, room: usize, [small, ghosts]: [usize; 2], promote: u8, object: u64) -> Access {
        let mut all = self.small.iter_mut().chain(self.main.iter_mut());
        if let Some(entry) = all.find(|entry| entry.0 == object) {
            entry.1 = (entry.1 + 1).min(3);
            return Access::Hit;
        }
        let returns = take(&mut self.ghosts, object);
        let full = self.small.len() + self.main.len() == room;
        let evicted = full.then(|| self.evict(small, ghosts, promote));
        if returns { &mut self.main } else { &mut self.small }.push_front((object, 0));
        Access::Miss { evicted }
    }

    fn evict(&mut self, small: usize, ghosts: usize, promote: u8) -> u64 {
        loop {
            if self.small.len() >= small || self.main.is_empty() {
                let (object, count) = self.small.pop_back().unwrap();
                if count >= promote {
                    self.main.push_front((object, 0));
                    continue;
                }
                self.ghosts.push_front(object);
                self.ghosts.truncate(ghosts);
                return object;
            }
            match self.main.pop_back().unwrap() {
                (object, 0) => return object,
                (object, count) => self.main.push_front((object, count - 1)),
            }
        }
    }
}

#[derive(Default)]
struct NaiveTwoQ {
    trial: Queue,
    main: Queue,
    ghosts: Queue,
}

impl NaiveTwoQ {
    fn request(&mut self, room: usize, kin: usize, kout: usize, object: u64) -> Access {
        if take(&mut self.main, object) {
            self.main.push_front(object);
            return Access::Hit;
        }
        if self.trial.contains(&object) {
            return Access::Hit;
        }
        let returns = take(&mut self.ghosts, object);
        let full = self.trial.len() + self.main.len() == room;
        let evicted = full.then(|| {
            if self.trial.len() <= kin && !self.main.is_empty() {
                return self.main.pop_back().unwrap();
            }
            let victim = self.trial.pop_back().unwrap();
            self.ghosts.push_front(victim);
            self.ghosts.truncate(kout);
            victim
        });
        if returns { &mut self.main } else { &mut self.trial }.push_front(object);
        Access::Miss { evicted }
    }
}

/// Figure 4 of the paper, with p in parts of 2^-32.
#[derive(Default)]
struct NaiveArc {
    t1: Queue,
    t2: Queue,
    b1: Queue,
    b2: Queue,
    p: usize,
}

impl NaiveArc {
    fn request(&mut self, c: usize, x: u64) -> Access {
        if take(&mut self.t1, x) || take(&mut self.t2, x) {
            self.t2.push_front(x);
            return Access::Hit;
        }
        let ratio = |more: &Queue, fewer: &Queue| ((more.len() << 32) / fewer.len()).max(1 << 32);
        if self.b1.contains(&x) {
            self.p = (self.p + ratio(&self.b2, &self.b1)).min(c << 32);
            let evicted = Some(self.replace(false));
            take(&mut self.b1, x);
            self.t2.push_front(x);
            return Access::Miss { evicted };
        }
        if self.b2.contains(&x) {
            self.p = self.p.saturating_sub(ratio(&self.b1, &self.b2));
            let evicted = Some(self.replace(true));
            take(&mut self.b2, x);
            self.t2.push_front(x);
            return Access::Miss { evicted };
        }
        let mut evicted = None;
        if self.t1.len() + self.b1.len() == c {
            if self.t1.len() < c {
                self.b1.pop_back();
                evicted = Some(self.replace(false));
            } else {
                evicted = self.t1.pop_back();
            }
        } else {
            let all = self.t1.len() + self.t2.len() + self.b1.len() + self.b2.len();
            if all >= c {
                if all == 2 * c {
                    self.b2.pop_back();
                }
                evicted = Some(self.replace(false));
            }
        }
        self.t1.push_front(x);
        Access::Miss { evicted }
    }

    fn replace(&mut self, in_b2: bool) -> u64 {
        let t1 = self.t1.len() << 32;
        let (from, to) = if !self.t1.is_empty() && (t1 > self.p || (in_b2 && t1 == self.p)) {
            (&mut self.t1, &mut self.b1)
        } else {
            (&mut self.t2, &mut self.b2)
        };
        let victim = from.pop_back().unwrap();
        to.push_front(victim);
        victim
    }
}

/// S and Q as lists of numbers; who is LIR as a set; who was evicted, in that order.
#[derive(Default)]
struct NaiveLirs {
    s: Queue,
    q: Queue,
    low: BTreeSet<u64>,
    ghosts: Queue,
}

impl NaiveLirs {
    fn request(&mut self, room: usize, low_max: usize, x: u64) -> Access {
        let in_stack = take(&mut self.s, x);
        if self.low.contains(&x) {
            self.s.push_front(x);
            self.prune();
            return Access::Hit;
        }
        if take(&mut self.q, x) {
            self.s.push_front(x);
            if in_stack {
                self.make_low(x, low_max)
            } else {
                self.q.push_front(x)
            }
            self.prune();
            return Access::Hit;
        }
        take(&mut self.ghosts, x);
        let evicted = (self.low.len() + self.q.len() == room).then(|| self.evict(room));
        self.s.push_front(x);
        if in_stack || self.low.len() < low_max {
            self.make_low(x, low_max)
        } else {
            self.q.push_front(x)
        }
        self.prune();
        Access::Miss { evicted }
    }

    fn make_low(&mut self, x: u64, low_max: usize) {
        self.low.insert(x);
        if self.low.len() > low_max {
            let bottom = self.s.pop_back().unwrap();
            self.low.remove(&bottom);
            self.q.push_front(bottom);
        }
    }

    fn evict(&mut self, room: usize) -> u64 {
        let victim = self.q.pop_back().unwrap();
        if self.s.contains(&victim) {
            self.ghosts.push_front(victim);
        }
        if self.ghosts.len() > 2 * room {
            let forgotten = self.ghosts.pop_back().unwrap();
            take(&mut self.s, forgotten);
        }
        victim
    }

    fn prune(&mut self) {
        while let Some(bottom) = self.s.back().filter(|bottom| !self.low.contains(bottom)) {
            take(&mut self.ghosts, *bottom);
            self.s.pop_back();
        }
    }
}

#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Hot,
    Cold,
    Ghost,
}

/// The clock as a list from the head to the tail; hands are objects, and none stands for the tail.
#[derive(Default)]
struct NaiveClockPro {
    /// Object, what it is, its bit, whether it is in test.
    clock: Vec<(u64, Kind, bool, bool)>,
    hands: [Option<u64>; 3],
    m: usize,
}

const HOT: usize = 0;
const COLD: usize = 1;
const TEST: usize = 2;

impl NaiveClockPro {
    fn count(&self, kind: Kind) -> usize {
        self.clock.iter().filter(|entry| entry.1 == kind).count()
    }

    fn at(&self, hand: usize) -> usize {
        let place = |object| self.clock.iter().position(|entry| entry.0 == object).unwrap();
        self.hands[hand].map_or(self.clock.len() - 1, place)
    }

    /// Where a hand stands, which then goes on.
    fn step(&mut self, hand: usize) -> usize {
        let at = self.at(hand);
        self.hands[hand] = (at > 0).then(|| self.clock[at - 1].0);
        at
    }

    fn remove(&mut self, at: usize) -> u64 {
        let object = self.clock[at].0;
        let next = (at > 0).then(|| self.clock[at - 1].0);
        for hand in &mut self.hands {
            if *hand == Some(object) {
                *hand = next;
            }
        }
        self.clock.remove(at).0
    }

    /// Behind the hot hand, on the older side, which it has passed.
    fn put_at_head(&mut self, entry: (u64, Kind, bool, bool)) {
        let at = match self.hands[HOT] {
            None => 0,
            Some(_) => self.at(HOT) + 1,
        };
        self.clock.insert(at, entry);
    }

    fn end_test(&mut self, at: usize) {
        if std::mem::take(&mut self.clock[at].3) {
            self.m = (self.m - 1).max(1);
            if self.clock[at].1 == Kind::Ghost {
                self.remove(at);
            }
        }
    }

    fn balance(&mut self, room: usize) {
        let mut runs = false;
        while runs || self.count(Kind::Hot) > room - self.m {
            runs = true;
            let at = self.step(HOT);
            match &mut self.clock[at] {
                (_, kind @ Kind::Hot, bit, _) => {
                    if !std::mem::take(bit) {
                        *kind = Kind::Cold;
                        runs = false;
                    }
                }
                _ => self.end_test(at),
            }
        }
    }

    fn request(&mut self, room: usize, x: u64) -> Access {
        self.m = self.m.max(1);
        let m_max = (room - 1).max(1);
        let mut returns = false;
        if let Some(at) = self.clock.iter().position(|entry| entry.0 == x) {
            if self.clock[at].1 != Kind::Ghost {
                self.clock[at].2 = true;
                return Access::Hit;
            }
            self.remove(at);
            self.m = (self.m + 1).min(m_max);
            returns = true;
        }
        let mut evicted = None;
        while evicted.is_none() && self.count(Kind::Hot) + self.count(Kind::Cold) == room {
            let at = self.step(COLD);
            match self.clock[at] {
                (_, Kind::Cold, false, true) => {
                    self.clock[at].1 = Kind::Ghost;
                    evicted = Some(self.clock[at].0);
                    while self.count(Kind::Ghost) > room {
                        let at = self.step(TEST);
                        self.end_test(at);
                    }
                }
                (_, Kind::Cold, false, false) => evicted = Some(self.remove(at)),
                (_, Kind::Cold, true, in_test) => {
                    let object = self.remove(at);
                    if in_test {
                        self.put_at_head((object, Kind::Hot, false, false));
                        self.m = (self.m + 1).min(m_max);
                        self.balance(room);
                    } else {
                        self.put_at_head((object, Kind::Cold, false, true));
                    }
                }
                _ => {}
            }
        }
        if returns {
            self.put_at_head((x, Kind::Hot, false, false));
            self.balance(room);
        } else {
            self.put_at_head((x, Kind::Cold, false, true));
        }
        Access::Miss { evicted }
    }
}

/// The fewest misses of all ways to choose victims.
fn fewest_misses(held: &BTreeSet<u64>, room: usize, requests: &[u64]) -> u64 {
    let Some((object, rest)) = requests.split_first() else { return 0 };
    let mut held = held.clone();
    let missed = held.insert(*object);
    if held.len() <= room {
        return u64::from(missed) + fewest_misses(&held, room, rest);
    }
    let others = held.iter().filter(|&other| other != object);
    let without = |victim: &u64| {
        let mut left = held.clone();
        left.remove(victim);
        fewest_misses(&left, room, rest)
    };
    1 + others.map(without).min().expect("others are held")
}

fn requests(objects: u64, len: usize) -> impl Strategy<Value = Vec<u64>> {
    // Some objects are asked for far more than others, and some come in a row.
    let one = prop_oneof![3 => 0..objects, 2 => 0..objects.div_ceil(4)];
    let scan = (0..objects)
        .prop_flat_map(move |from| (from..objects).prop_map(move |to| (from..to).collect::<Vec<_>>()));
    let part = prop_oneof![4 => proptest::collection::vec(one, 1..12), 1 => scan];
    proptest::collection::vec(part, 0..len).prop_map(|parts| parts.concat())
}

fn check(mut policy: impl Policy, mut naive: impl FnMut(u64) -> Access, requests: &[u64]) {
    for (number, &object) in requests.iter().enumerate() {
        assert_eq!(
            policy.request(object),
            naive(object),
            "{}: request {number} of {requests:?}",
            std::any::type_name_of_val(&policy)
        );
        assert!(policy.len() <= policy.capacity() && policy.holds(object));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn every_access_is_that_of_the_naive_policy(requests in requests(40, 40), room in 1_usize..30) {
        let of = capacity(room);
        let mut list = Queue::new();
        check(Lru::new(of), |object| lru(&mut list, room, object), &requests);
        let mut list = Queue::new();
        check(Fifo::new(of), |object| fifo(&mut list, room, object), &requests);
        let mut naive = NaiveClock::default();
        check(Clock::new(of), |object| naive.request(room, object), &requests);
        let mut naive = NaiveSieve::default();
        check(Sieve::new(of), |object| naive.request(room, object), &requests);
        let mut naive = NaiveArc::default();
        check(Arc::new(of), |object| naive.request(room, object), &requests);
        let mut naive = NaiveClockPro::default();
        check(ClockPro::new(of), |object| naive.request(room, object), &requests);
    }

    #[test]
    fn shares_are_those_of_the_naive_policy(
        requests in requests(40, 40), room in 1_usize..30, parts in 0_usize..=10, promote in 1_u8..=3,
    ) {
        let of = capacity(room);
        let text = format!("2q:kin={}.{}", parts / 10, parts % 10);
        let share = spec(&text).params().share("kin").unwrap();
        let whole = room * parts / 10;
        let mut naive = NaiveS3Fifo::default();
        let policy = S3Fifo::new(of, share, share, promote);
        check(policy, |object| naive.request(room, [whole.max(1), whole], promote, object), &requests);
        let mut naive = NaiveTwoQ::default();
        let policy = TwoQ::new(of, share, share);
        check(policy, |object| naive.request(room, whole, whole, object), &requests);
        let mut naive = NaiveLirs::default();
        let policy = Lirs::new(of, share);
        check(policy, |object| naive.request(room, whole.min(room - 1), object), &requests);
    }

    /// In batches, and with objects that nobody has asked for yet.
    #[test]
    fn what_is_held_is_what_was_inserted_and_not_evicted(
        steps in proptest::collection::vec((0_u64..40, 0_u8..4), 0..400), room in 1_usize..30, batch in 1_usize..40,
    ) {
        let asked: Vec<u64> = steps.iter().filter(|step| step.1 > 0).map(|step| step.0).collect();
        let of = capacity(room);
        let share = |text: &str, name: &str| spec(text).params().share(name).unwrap();
        let tenth = share("s3fifo", "small");
        let policies: [(&str, Box<dyn Policy>); 9] = [
            ("lru", Box::new(Lru::new(of))),
            ("clock", Box::new(Clock::new(of))),
            ("s3fifo", Box::new(S3Fifo::new(of, tenth, Share::ALL, 2))),
            ("sieve", Box::new(Sieve::new(of))),
            ("arc", Box::new(Arc::new(of))),
            ("2q", Box::new(TwoQ::new(of, share("2q", "kin"), share("2q", "kout")))),
            ("lirs", Box::new(Lirs::new(of, share("lirs:lir=0.5", "lir")))),
            ("clock-pro", Box::new(ClockPro::new(of))),
            ("belady", Box::new(Belady::new(of, future(&asked)))),
        ];
        for (name, mut policy) in policies {
            let mut held = BTreeSet::new();
            for &(object, how) in &steps {
                let is_asked = how > 0;
                if !is_asked && name == "belady" {
                    continue;
                }
                let is_held = if is_asked { policy.access(object) } else { policy.holds(object) };
                prop_assert_eq!(is_held, held.contains(&object), "{}", name);
                if is_held {
                    continue;
                }
                for _ in 0..if held.len() == room { batch.min(room) } else { 0 } {
                    let victim = policy.evict();
                    prop_assert!(held.remove(&victim), "{} evicts {}, which it does not hold", name, victim);
                }
                policy.insert(object);
                held.insert(object);
                prop_assert_eq!(policy.len() as usize, held.len(), "{}", name);
            }
            for object in 0..40 {
                prop_assert_eq!(policy.holds(object), held.contains(&object), "{} {}", name, object);
            }
        }
    }

    #[test]
    fn no_way_to_choose_victims_misses_less_than_the_bound(
        requests in proptest::collection::vec(0_u64..6, 0..12), room in 1_usize..5,
    ) {
        let mut bound = Belady::new(capacity(room), future(&requests));
        let misses = requests.iter().filter(|&&object| bound.request(object) != Access::Hit).count() as u64;
        prop_assert_eq!(misses, fewest_misses(&BTreeSet::new(), room, &requests));
    }

    #[test]
    fn no_policy_misses_less_than_the_bound(requests in requests(60, 60), room in 1_usize..40, batch in 1..8) {
        let wanted: Vec<Wanted> = requests.iter().map(|&object| Wanted { object, bytes: 1 }).collect();
        let future = future(&requests);
        let misses = |policy: &PolicySpec| {
            let mut cache = Cache::new(policy, capacity(room), &future);
            cache.feed(&wanted, true);
            cache.counted().misses
        };
        let bound = misses(&spec("belady"));
        for policy in PolicySpec::all() {
            prop_assert!(misses(&policy) >= bound, "{}", policy);
            prop_assert!(misses(&spec(&format!("{policy}:batch={batch}"))) >= bound, "{} in batches", policy);
        }
    }
}
