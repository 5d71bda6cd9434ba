//! SIEVE: a hand goes along a queue, from old to new, and evicts what was not visited since it came by last.
//!
//! ```text
//!  miss --> [ head . . . . . . tail ]
//!    hit: set    <-- hand        bit set: clear it, go on;  bit clear --> out, wherever it stands
//! ```
//!
//! Nothing that is kept moves, unlike in CLOCK: new objects stand behind what the hand has yet to pass, so those
//! that nobody asks for again are found soon. From the head the hand goes on at the tail.
//!
//! Source: Zhang et al., NSDI 2024.

use crate::slots::{LinkedSlots, List};
use crate::{Capacity, Policy};

/// A cache with SIEVE's eviction.
#[derive(Debug, Clone)]
pub struct Sieve {
    /// With: visited.
    slots: LinkedSlots<bool>,
    queue: List,
    /// The next to look at; the list's root stands for the tail.
    hand: u32,
    capacity: Capacity,
}

impl Sieve {
    /// An empty cache.
    pub fn new(capacity: Capacity) -> Self {
        let mut slots = LinkedSlots::new();
        let queue = slots.list();
        let hand = queue.root();
        Self { slots, queue, hand, capacity }
    }
}

impl Policy for Sieve {
    #[inline]
    fn access(&mut self, object: u64) -> bool {
        let Some(slot) = self.slots.find(object) else { return false };
        self.slots[slot] = true;
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
        assert!(!self.queue.is_empty(), "there is something to evict");
        loop {
            let slot = if self.hand == self.queue.root() { self.queue.tail(&self.slots) } else { self.hand };
            self.hand = self.slots.link(slot).newer;
            if !std::mem::take(&mut self.slots[slot]) {
                self.queue.remove(&mut self.slots, slot);
                return self.slots.remove(slot);
            }
        }
    }

    fn len(&self) -> u32 {
        self.queue.len()
    }

    fn capacity(&self) -> u32 {
        self.capacity.get()
    }
}
