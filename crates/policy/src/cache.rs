//! A cache of any policy, fed a trace in parts.

use std::sync::Arc;

use crate::feed::{Counted, Fed, Pace, Wanted};
use crate::table::{Making, PolicySpec};
use crate::{Capacity, Future};

/// A cache that is fed a trace in parts, of any policy.
#[derive(Debug)]
pub struct Cache {
    policy: Box<dyn Fed>,
    pace: Pace,
    counted: Counted,
}

impl Cache {
    /// An empty cache. A policy that needs the future is told all of the trace in `future`.
    pub fn new(spec: &PolicySpec, capacity: Capacity, future: &Arc<Future>) -> Self {
        let policy = (spec.info().make)(&Making { capacity, params: spec.params(), future });
        Self { policy, pace: spec.pace(), counted: Counted::default() }
    }

    /// Makes requests of it. Those of the warm-up are not `counted`.
    pub fn feed(&mut self, requests: &[Wanted], counted: bool) {
        let count = self.policy.feed(requests, self.pace);
        if counted {
            self.counted.add(count);
        }
    }

    /// What was counted so far.
    pub fn counted(&self) -> Counted {
        self.counted
    }
}
