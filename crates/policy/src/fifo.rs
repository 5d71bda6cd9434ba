//! FIFO: evicts the object that was admitted first.
//!
//! ```text
//!  miss --> [ head ... tail ] --> out        hit: nothing
//! ```

use std::collections::VecDeque;

use crate::slots::Slots;
use crate::{Capacity, Policy};

/// A cache with first-in-first-out eviction.
#[derive(Debug, Clone)]
pub struct Fifo {
    slots: Slots<()>,
    /// The oldest first.
    queue: VecDeque<u32>,
    capacity: Capacity,
}

impl Fifo {
    /// An empty cache.
    pub fn new(capacity: Capacity) -> Self {
        Self { slots: Slots::new(), queue: VecDeque::new(), capacity }
    }
}

impl Policy for Fifo {
    #[inline]
    fn access(&mut self, object: u64) -> bool {
        self.holds(object)
    }

    #[inline]
    fn holds(&self, object: u64) -> bool {
        self.slots.find(object).is_some()
    }

    #[inline]
    fn insert(&mut self, object: u64) {
        let slot = self.slots.add(object, ());
        self.queue.push_back(slot);
    }

    #[inline]
    fn evict(&mut self) -> u64 {
        let victim = self.queue.pop_front().expect("there is something to evict");
        self.slots.remove(victim)
    }

    fn len(&self) -> u32 {
        self.queue.len() as u32 // At most the capacity.
    }

    fn capacity(&self) -> u32 {
        self.capacity.get()
    }
}
