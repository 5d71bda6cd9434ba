//! Replacement policies over numbered objects of one size, to hold Linux's two lists against: what would
//! LRU do on this trace with N objects?
//!
//! A policy is one file: a sketch, its state, [`Policy`]; and a line of [`POLICIES`]. All keep their objects in
//! [`slots`], so that a file holds the order of eviction only. A [`Cache`] is one of them by its name, with its
//! counts; several are fed from one reading of a trace. `docs/policies.md` adds one.
//!
//! | file | what it holds |
//! |---|---|
//! | `table.rs` | which policies there are, their parameters, and how they are written |
//! | `feed.rs` | what a replay does with a policy, and what it counts |
//! | `cache.rs` | a cache of any policy |
//! | `slots.rs` | objects, lists through them, the hash table that finds them |
//! | `index.rs` | a table of objects that never leave, for traces in memory |
//! | `future.rs` | what a trace will ask for: the bound needs it |
//!
//! Left out: times, and reads against writes; a miss always admits. Sizes are counted and decide
//! nothing.

mod arc;
mod belady;
mod cache;
mod clock;
mod clock_pro;
mod feed;
mod fifo;
mod future;
pub mod index;
mod lirs;
mod lru;
mod s3fifo;
mod sieve;
pub mod slots;
mod table;
mod two_q;

use thiserror::Error;

use language::metric::{Better, MetricSpec, metric};
use language::names::UnknownName;
use language::params::{ParamError, Share};

pub use arc::Arc;
pub use belady::Belady;
pub use cache::Cache;
pub use clock::Clock;
pub use clock_pro::ClockPro;
pub use feed::{Counted, Fed, Pace, Wanted};
pub use fifo::Fifo;
pub use future::Future;
pub use lirs::Lirs;
pub use lru::Lru;
pub use s3fifo::S3Fifo;
pub use sieve::Sieve;
pub use table::{BATCH, Making, POLICIES, PolicyInfo, PolicySpec, READAHEAD};
pub use two_q::TwoQ;

/// The metrics that head the report of a replay on policies.
pub const METRICS: &[MetricSpec] = &[
    metric("miss_ratio", "ratio", Better::Less, "requests for objects not held"),
    metric("byte_miss_ratio", "ratio", Better::Less, "bytes of these requests, of all bytes requested"),
    metric("misses", "", Better::Less, "requests for objects not held").of("requests"),
];

/// A cache of at most [`Policy::capacity`] objects that decides whom to evict.
///
/// An implementation MUST:
/// - hold what was inserted until `evict` names it: neither `access` nor `insert` lets anything go;
/// - not admit a missing object because it is asked for;
/// - name one object that it holds in `evict`, whatever was requested of whom;
/// - decide from the order of calls alone: no clock, no randomness, no order of hashing.
///
/// The caller guarantees:
/// - `insert` of objects that are not held, while there is room; `evict` while something is held;
/// - that after `access` has missed an object comes, perhaps after evictions, its `insert`: so an `access` may
///   note what its `evict` and `insert` need to know. An `insert` without that is of an object read ahead: nobody
///   has asked for it yet.
pub trait Policy {
    /// Notes that an object was asked for; whether it is held. Policies with a memory of what they evicted look
    /// a missing one up there.
    fn access(&mut self, object: u64) -> bool;
    /// Whether an object is held. Notes nothing.
    fn holds(&self, object: u64) -> bool;
    /// Admits an object.
    fn insert(&mut self, object: u64);
    /// Lets one object go, and names it.
    fn evict(&mut self) -> u64;
    /// Objects held now.
    fn len(&self) -> u32;
    /// Objects held at most; at least 1.
    fn capacity(&self) -> u32;

    /// Whether no object is held.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Asks for an object, and admits it when it is missing, in the place of another one when there is no room.
    #[inline]
    fn request(&mut self, object: u64) -> Access {
        if self.access(object) {
            return Access::Hit;
        }
        let evicted = (self.len() == self.capacity()).then(|| self.evict());
        self.insert(object);
        Access::Miss { evicted }
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

/// A cache that cannot be made.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum PolicyError {
    /// A cache of nothing.
    #[error("a cache needs room for at least one object")]
    ZeroCapacity,
    /// Slots are numbered with 32 bits, and ghosts have some, too.
    #[error("a cache of {0} objects is too large; {CAPACITY_MAX} at most")]
    TooLarge(u64),
    /// Requests are numbered with 32 bits where the future is known.
    #[error("the trace has more than 4294967294 requests: too many to know them all beforehand")]
    TooLong,
    /// No policy has this name.
    #[error(transparent)]
    Unknown(#[from] UnknownName),
    /// A parameter that a policy does not have, or not so.
    #[error("policy `{policy}`: {source}")]
    Param {
        /// The policy.
        policy: &'static str,
        /// What is wrong.
        source: ParamError,
    },
    /// Who knows the future has nothing to read ahead.
    #[error("policy `{0}` knows when what was asked for is wanted next, not what is read ahead")]
    NoReadahead(&'static str),
}

impl PolicyError {
    /// What to do about it; `None` when the message says it all.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::ZeroCapacity => Some("write it as in `--capacity 10000`".to_owned()),
            Self::Unknown(unknown) => Some(unknown.hint()),
            Self::Param { source: ParamError::NotAPair(_), .. } => {
                Some("write parameters as in `s3fifo:small=0.1:batch=32`".to_owned())
            }
            Self::Param { source, .. } => source.hint(),
            Self::NoReadahead(_) => Some("leave `readahead` out".to_owned()),
            Self::TooLarge(_) | Self::TooLong => None,
        }
    }
}

/// The most objects that a cache may hold.
const CAPACITY_MAX: u32 = 1 << 30;

/// How many objects a cache holds at most: from 1 to 2^30.
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
            Ok(capacity) if capacity <= CAPACITY_MAX => Ok(Self(capacity)),
            _ => Err(PolicyError::TooLarge(objects)),
        }
    }

    /// As a number.
    pub const fn get(self) -> u32 {
        self.0
    }
}
