//! Belady's bound: evicts the object that is asked for last, or never again. No policy that admits whatever it
//! misses has fewer misses.
//!
//! ```text
//!  requests  a b c a d b ...      held objects stand at the time of their next request:
//!            ^now                 times [ . . . a . b ]  <- the largest goes;   never [ c d ], these go first
//! ```
//!
//! It needs the whole trace beforehand ([`Future`]), and what it is asked must be that trace. Whether an object
//! is held is whether its time is in the set, so nothing is looked up.
//!
//! Source: Belady, IBM Systems Journal 1966 (MIN).

use std::sync::Arc;

use crate::future::{Future, NEVER, Times};
use crate::{Capacity, Policy};

/// A cache that knows the future.
#[derive(Debug, Clone)]
pub struct Belady {
    future: Arc<Future>,
    /// Requests so far.
    now: u32,
    /// When held objects are asked for.
    times: Times,
    /// Held objects that nobody asks for again, by their last request.
    never: Vec<u32>,
    len: u32,
    capacity: Capacity,
}

impl Belady {
    /// An empty cache for the trace of `future`.
    pub fn new(capacity: Capacity, future: Arc<Future>) -> Self {
        let times = Times::new(future.len());
        Self { future, now: 0, times, never: Vec::new(), len: 0, capacity }
    }

    /// Notes when the object of a request is wanted again.
    #[inline]
    fn note(&mut self, request: u32) {
        match self.future.next(request) {
            NEVER => self.never.push(request),
            next => self.times.insert(next),
        }
    }
}

impl Policy for Belady {
    #[inline]
    fn access(&mut self, object: u64) -> bool {
        let request = self.now;
        assert_eq!(self.future.object(request), object, "requests are those of the trace");
        self.now += 1;
        let held = self.times.remove(request);
        if held {
            self.note(request);
        }
        held
    }

    /// Takes time in proportion to the trace.
    fn holds(&self, object: u64) -> bool {
        let mut ahead = self.now..self.future.len() as u32;
        match ahead.find(|&request| self.future.object(request) == object) {
            Some(next) => self.times.contains(next),
            None => self.never.iter().any(|&request| self.future.object(request) == object),
        }
    }

    #[inline]
    fn insert(&mut self, object: u64) {
        let request = self.now.checked_sub(1).expect("an object that is admitted was asked for");
        assert_eq!(self.future.object(request), object, "nothing is read ahead");
        self.note(request);
        self.len += 1;
    }

    #[inline]
    fn evict(&mut self) -> u64 {
        self.len -= 1;
        if let Some(request) = self.never.pop() {
            return self.future.object(request);
        }
        let last = self.times.max().expect("there is something to evict");
        self.times.remove(last);
        self.future.object(last)
    }

    fn len(&self) -> u32 {
        self.len
    }

    fn capacity(&self) -> u32 {
        self.capacity.get()
    }
}
