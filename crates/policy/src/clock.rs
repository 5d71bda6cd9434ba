//! CLOCK: FIFO that gives every object which was requested again another round.
//!
//! ```text
//!  miss --> [ head ... tail ] -- bit clear --> out
//!    hit: set ^-----------' bit set: clear it
//! ```
//!
//! As Corbató (1969) describes it, with one bit, here as a queue: what his hand passes over is what goes back
//! to the head. It is also the second chance that Linux's inactive list gives a page whose accessed bit is set.

use std::collections::VecDeque;

use crate::slots::Slots;
use crate::{Capacity, Policy};

/// A cache with second-chance eviction.
#[derive(Debug, Clone)]
pub struct Clock {
    /// With: requested again.
    slots: Slots<bool>,
    /// The oldest first.
    queue: VecDeque<u32>,
    capacity: Capacity,
}

impl Clock {
    /// An empty cache.
    pub fn new(capacity: Capacity) -> Self {
        Self { slots: Slots::new(), queue: VecDeque::new(), capacity }
    }
}

impl Policy for Clock {
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
        self.queue.push_back(slot);
    }

    #[inline]
    fn evict(&mut self) -> u64 {
        loop {
            let slot = self.queue.pop_front().expect("there is something to evict");
            if !std::mem::take(&mut self.slots[slot]) {
                return self.slots.remove(slot);
            }
            self.queue.push_back(slot);
        }
    }

    fn len(&self) -> u32 {
        self.queue.len() as u32 // At most the capacity.
    }

    fn capacity(&self) -> u32 {
        self.capacity.get()
    }
}
