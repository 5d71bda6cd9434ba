//! Plain replacement policies over numbered objects of one size, to hold Linux's two lists
//! against: what would LRU do on this trace with N objects?
//!
//! A policy is one file: a sketch, its state, [`Policy`]. All keep their objects in the slots
//! of one table, so that a file holds the order of eviction only. A [`Cache`] is one of them, by
//! [`PolicyKind`], with its counts; several are fed from one reading of a trace.
//!
//! Left out: times, and reads against writes; a miss always admits. Sizes are counted and decide
//! nothing.

mod clock;
mod fifo;
mod lru;
mod slots;

use std::str::FromStr;

use thiserror::Error;

use crate::metric::{Better, MetricSpec};
use crate::names::UnknownName;

pub use clock::Clock;
pub use fifo::Fifo;
pub use lru::Lru;

/// The metrics that head the report of a replay on policies.
pub const METRICS: &[MetricSpec] = &[
    MetricSpec {
        name: "miss_ratio",
        unit: "ratio",
        better: Better::Less,
        of: None,
        resolution: 0.0,
        help: "requests for objects not held",
    },
    MetricSpec {
        name: "byte_miss_ratio",
        unit: "ratio",
        better: Better::Less,
        of: None,
        resolution: 0.0,
        help: "bytes of these requests, of all bytes requested",
    },
    MetricSpec {
        name: "misses",
        unit: "",
        better: Better::Less,
        of: Some("requests"),
        resolution: 0.0,
        help: "requests for objects not held",
    },
];

/// A cache of at most [`Policy::capacity`] objects that decides whom to evict.
///
/// An implementation MUST:
/// - after `request(x)` hold `x`, and never hold more than `capacity` objects;
/// - evict on a miss at full capacity only, exactly one object, and name it;
/// - decide from the order of requests alone: no clock, no randomness, no order of hashing.
///
/// The caller guarantees nothing: every number is an object.
pub trait Policy {
    /// Looks an object up and admits it when it is missing.
    fn request(&mut self, object: u64) -> Access;
    /// Objects held now.
    fn len(&self) -> u32;
    /// Objects held at most; at least 1.
    fn capacity(&self) -> u32;
    /// Whether no object is held.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// What a request found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub enum Access {
    /// The object was held.
    Hit,
    /// It was not, and is now; the other one had to go.
    Miss {
        /// The object that made room, at full capacity.
        evicted: Option<u64>,
    },
}

/// The policies by name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PolicyKind {
    /// Evicts the object that was requested least recently: [`Lru`].
    Lru,
    /// Evicts the object that was admitted first: [`Fifo`].
    Fifo,
    /// FIFO that gives requested objects another round: [`Clock`].
    Clock,
}

impl PolicyKind {
    /// All policies.
    pub const ALL: [Self; 3] = [Self::Lru, Self::Fifo, Self::Clock];

    /// The name on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Lru => "lru",
            Self::Fifo => "fifo",
            Self::Clock => "clock",
        }
    }
}

impl FromStr for PolicyKind {
    type Err = UnknownName;

    fn from_str(text: &str) -> Result<Self, UnknownName> {
        (Self::ALL.into_iter().find(|kind| kind.name() == text))
            .ok_or_else(|| UnknownName::new("policy", text, Self::ALL.map(Self::name)))
    }
}

/// A cache that cannot be made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum PolicyError {
    /// A cache of nothing.
    #[error("a cache needs room for at least one object")]
    ZeroCapacity,
    /// Slots are numbered with 32 bits, one number of which means none.
    #[error("a cache of {0} objects is too large; 4294967294 at most")]
    TooLarge(u64),
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
}

/// What a policy is told of a request: the object, and how many bytes of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Wanted {
    /// The object.
    pub object: u64,
    /// Bytes, which are counted and change nothing.
    pub bytes: u32,
}

/// A cache that is fed a trace in parts, of any policy.
#[derive(Debug, Clone)]
pub struct Cache {
    policy: Held,
    counted: Counted,
}

#[derive(Debug, Clone)]
enum Held {
    Lru(Lru),
    Fifo(Fifo),
    Clock(Clock),
}

impl Cache {
    /// An empty cache.
    pub fn new(kind: PolicyKind, capacity: Capacity) -> Self {
        let policy = match kind {
            PolicyKind::Lru => Held::Lru(Lru::new(capacity)),
            PolicyKind::Fifo => Held::Fifo(Fifo::new(capacity)),
            PolicyKind::Clock => Held::Clock(Clock::new(capacity)),
        };
        Self { policy, counted: Counted::default() }
    }

    /// Makes requests of it. Those of the warm-up are not `counted`.
    pub fn feed(&mut self, requests: &[Wanted], counted: bool) {
        let count = match &mut self.policy {
            Held::Lru(policy) => run(policy, requests),
            Held::Fifo(policy) => run(policy, requests),
            Held::Clock(policy) => run(policy, requests),
        };
        if counted {
            self.counted.requests += count.requests;
            self.counted.misses += count.misses;
            self.counted.bytes += count.bytes;
            self.counted.missed_bytes += count.missed_bytes;
            self.counted.evictions += count.evictions;
        }
    }

    /// What was counted so far.
    pub fn counted(&self) -> Counted {
        self.counted
    }
}

fn run<P: Policy>(policy: &mut P, requests: &[Wanted]) -> Counted {
    let mut counted = Counted { requests: requests.len() as u64, ..Counted::default() };
    for &Wanted { object, bytes } in requests {
        counted.bytes += u64::from(bytes);
        if let Access::Miss { evicted } = policy.request(object) {
            counted.misses += 1;
            counted.missed_bytes += u64::from(bytes);
            counted.evictions += u64::from(evicted.is_some());
        }
    }
    counted
}

/// How many objects a cache holds at most: from 1 to 2^32 - 2.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Capacity(u32);

impl Capacity {
    /// A capacity of `objects`.
    ///
    /// # Errors
    /// [`PolicyError`] when that is none or too many.
    pub fn new(objects: u64) -> Result<Self, PolicyError> {
        match u32::try_from(objects) {
            Ok(0) => Err(PolicyError::ZeroCapacity),
            Ok(capacity) if capacity < u32::MAX => Ok(Self(capacity)),
            _ => Err(PolicyError::TooLarge(objects)),
        }
    }

    /// As a number.
    pub const fn get(self) -> u32 {
        self.0
    }
}
