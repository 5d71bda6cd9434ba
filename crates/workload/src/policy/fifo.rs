//! FIFO: evicts the object that was admitted first.
//!
//! ```text
//!  miss --> [ head ... tail ] --> out        hit: nothing
//! ```

use super::slots::{List, Slots};
use super::{Capacity, Policy};

/// A cache with first-in-first-out eviction.
#[derive(Debug, Clone)]
pub struct Fifo {
    slots: Slots<()>,
    queue: List,
    capacity: Capacity,
}

impl Fifo {
    /// An empty cache.
    pub fn new(capacity: Capacity) -> Self {
        let mut slots = Slots::new();
        let queue = slots.list();
        Self { slots, queue, capacity }
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
        self.queue.push(&mut self.slots, slot);
    }

    #[inline]
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
