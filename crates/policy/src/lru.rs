//! LRU: evicts the object that was requested least recently.
//!
//! ```text
//!  miss --> [ head ... tail ] --> out
//!              ^---- hit
//! ```

use crate::slots::{LinkedSlots, List};
use crate::{Capacity, Policy};

/// A cache with least-recently-used eviction.
#[derive(Debug, Clone)]
pub struct Lru {
    slots: LinkedSlots<()>,
    queue: List,
    capacity: Capacity,
}

impl Lru {
    /// An empty cache.
    pub fn new(capacity: Capacity) -> Self {
        let mut slots = LinkedSlots::new();
        let queue = slots.list();
        Self { slots, queue, capacity }
    }
}

impl Policy for Lru {
    #[inline]
    fn access(&mut self, object: u64) -> bool {
        let Some(slot) = self.slots.find(object) else { return false };
        self.queue.to_head(&mut self.slots, slot);
        true
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
