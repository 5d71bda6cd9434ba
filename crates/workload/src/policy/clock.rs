//! CLOCK: FIFO that gives every object which was requested again another round.
//!
//! ```text
//!  miss --> [ head ... tail ] -- bit clear --> out
//!    hit: set ^-----------' bit set: clear it
//! ```
//!
//! As Corbató (1969) describes it, with one bit, here as a queue: what his hand passes over is what goes back
//! to the head. It is also the second chance that Linux's inactive list gives a page whose accessed bit is set.

use super::slots::{List, Slots};
use super::{Capacity, Policy};

/// A cache with second-chance eviction.
#[derive(Debug, Clone)]
pub struct Clock {
    /// With: requested again.
    slots: Slots<bool>,
    queue: List,
    capacity: Capacity,
}

impl Clock {
    /// An empty cache.
    pub fn new(capacity: Capacity) -> Self {
        let mut slots = Slots::new();
        let queue = slots.list();
        Self { slots, queue, capacity }
    }
}

impl Policy for Clock {
    #[inline]
    fn access(&mut self, object: u64) -> bool {
        let Some(slot) = self.slots.find(object) else { return false };
        self.slots[slot].state = true;
        true
    }

    #[inline]
    fn holds(&self, object: u64) -> bool {
        self.slots.find(object).is_some()
    }

    #[inline]
    fn insert(&mut self, object: u64) {
        let slot = self.slots.add(object, false);
        self.queue.push(&mut self.slots, slot);
    }

    #[inline]
    fn evict(&mut self) -> u64 {
        loop {
            let slot = self.queue.pop(&mut self.slots);
            if !std::mem::take(&mut self.slots[slot].state) {
                return self.slots.remove(slot);
            }
            self.queue.push(&mut self.slots, slot);
        }
    }

    fn len(&self) -> u32 {
        self.queue.len()
    }

    fn capacity(&self) -> u32 {
        self.capacity.get()
    }
}
