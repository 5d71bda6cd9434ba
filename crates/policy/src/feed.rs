//! What a replay does with a policy: asks, makes room, admits, reads ahead, and counts.
//!
//! ```text
//! request --> access --> held: a hit
//!                   \--> not: a miss;  full? evict `batch` --> insert;  then the same for the `readahead`
//!                                                              objects behind it, nobody having asked
//! ```
//!
//! With a batch of one a cache is always full (the papers' mode); a kernel's reclaim takes 32 at a time.

use std::fmt::Debug;

use crate::Policy;

/// What a policy is told of a request: the object, and how many bytes of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Wanted {
    /// The object.
    pub object: u64,
    /// Bytes, which are counted and change nothing.
    pub bytes: u32,
}

/// What a replay counted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counted {
    /// All requests.
    pub requests: u64,
    /// Requests for objects that were not held.
    pub misses: u64,
    /// Bytes of all requests.
    pub bytes: u64,
    /// Bytes of requests for objects that were not held.
    pub missed_bytes: u64,
    /// Objects that had to go.
    pub evictions: u64,
    /// Objects that were read ahead.
    pub read_ahead: u64,
}

impl Counted {
    /// Misses per request; `None` without requests.
    pub fn miss_ratio(&self) -> Option<f64> {
        (self.requests > 0).then(|| self.misses as f64 / self.requests as f64)
    }

    /// Missed bytes per byte; `None` when nobody asked for any.
    pub fn byte_miss_ratio(&self) -> Option<f64> {
        (self.bytes > 0).then(|| self.missed_bytes as f64 / self.bytes as f64)
    }

    pub(crate) fn add(&mut self, other: Self) {
        self.requests += other.requests;
        self.misses += other.misses;
        self.bytes += other.bytes;
        self.missed_bytes += other.missed_bytes;
        self.evictions += other.evictions;
        self.read_ahead += other.read_ahead;
    }
}

/// In what portions a replay evicts and admits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pace {
    /// Objects evicted when there is no room.
    pub batch: u32,
    /// Objects admitted behind one that was missed.
    pub readahead: u32,
}

/// A policy that can be fed: every one that is sent between threads.
pub trait Fed: Debug + Send {
    /// Makes requests of it.
    fn feed(&mut self, requests: &[Wanted], pace: Pace) -> Counted;
}

impl<P: Policy + Debug + Send> Fed for P {
    fn feed(&mut self, requests: &[Wanted], pace: Pace) -> Counted {
        let mut counted = Counted { requests: requests.len() as u64, ..Counted::default() };
        for &Wanted { object, bytes } in requests {
            counted.bytes += u64::from(bytes);
            if self.access(object) {
                continue;
            }
            counted.misses += 1;
            counted.missed_bytes += u64::from(bytes);
            counted.evictions += make_room(self, pace);
            self.insert(object);
            if pace.readahead > 0 {
                read_ahead(self, object, pace, &mut counted);
            }
        }
        counted
    }
}

/// Evicts when there is no room; how many went.
#[inline]
fn make_room(policy: &mut impl Policy, pace: Pace) -> u64 {
    if policy.len() < policy.capacity() {
        return 0;
    }
    let victims = pace.batch.min(policy.len());
    for _ in 0..victims {
        policy.evict();
    }
    u64::from(victims)
}

#[cold]
fn read_ahead(policy: &mut impl Policy, missed: u64, pace: Pace, counted: &mut Counted) {
    for distance in 1..=u64::from(pace.readahead) {
        let Some(object) = missed.checked_add(distance) else { return };
        if !policy.holds(object) {
            counted.evictions += make_room(policy, pace);
            policy.insert(object);
            counted.read_ahead += 1;
        }
    }
}
