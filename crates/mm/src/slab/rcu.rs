//! Objects that are freed a grace period later, because somebody may still look at them without a lock
//! (`call_rcu`; MECHANISMS 9.1).
//!
//! ```text
//!   freed while a period runs --> next --period ends--> waiting --period ends--> their slabs
//! ```
//! So an object waits for one to two periods. Who ends them is a thread of the kernel: there is no clock here.
//! What comes free then is to nobody's credit.
//!
//! Where very many wait, RCU hurries the period (`qhimark`); here it ends at once for those that wait.
//! Left out: callbacks by CPU, and other users of RCU. Neighbour: [`crate::slab::object`].

use std_alloc::vec::Vec;

use crate::slab::object::Object;
use crate::version::geometry::Cache;

/// Objects whose period is hurried (`qhimark`).
const MANY: usize = 10_000;

/// Objects between `call_rcu` and the end of their grace period.
#[derive(Debug, Clone, Default)]
pub(super) struct Rcu {
    next: Vec<Object>,
    waiting: Vec<Object>,
    counts: [u32; Cache::COUNT],
    /// A period is to begin.
    requested: bool,
}

impl Rcu {
    /// An object is to be freed; returns whether others are to be freed now ([`Self::period_ended`]).
    #[inline]
    #[must_use]
    pub(super) fn defer(&mut self, object: Object) -> bool {
        self.counts[object.cache as usize] += 1;
        self.requested |= self.is_empty();
        self.next.push(object);
        self.next.len() > MANY
    }

    /// A grace period is over: takes those that waited for it, and the others wait for the next.
    pub(super) fn period_ended(&mut self) -> Vec<Object> {
        let next = core::mem::take(&mut self.next);
        let over = core::mem::replace(&mut self.waiting, next);
        for object in &over {
            self.counts[object.cache as usize] -= 1;
        }
        over
    }

    /// Takes back the memory of a batch that is freed.
    pub(super) fn recycle(&mut self, mut batch: Vec<Object>) {
        if batch.capacity() > self.next.capacity() && self.next.is_empty() {
            batch.clear();
            self.next = batch;
        }
    }

    /// Objects of a cache that wait.
    pub(super) fn of(&self, cache: Cache) -> u64 {
        u64::from(self.counts[cache as usize])
    }

    /// Whether a period is to begin.
    #[inline]
    pub(super) fn is_requested(&self) -> bool {
        self.requested
    }

    /// Whether a period is to begin; asked once.
    pub(super) fn take_request(&mut self) -> bool {
        core::mem::take(&mut self.requested)
    }

    /// Whether nothing waits.
    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.next.is_empty() && self.waiting.is_empty()
    }
}
