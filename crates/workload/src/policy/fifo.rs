//! FIFO: evicts the object that was admitted first.
//!
//! ```text
//! hit:   nothing
//! miss:  when full, evict the object under the hand, put the new one there, move the hand on
//! ```
//!
//! Slots fill in order of admission, so the oldest is always the one under a hand that goes round.

use super::slots::{Entry, Slots};
use super::{Access, Capacity, Policy};

/// A cache with first-in-first-out eviction.
#[derive(Debug, Clone)]
pub struct Fifo {
    slots: Slots<Object>,
    /// The oldest, once full.
    hand: u32,
}

#[derive(Debug, Clone, Copy)]
struct Object(u64);

impl Entry for Object {
    #[inline]
    fn object(&self) -> u64 {
        self.0
    }
}

impl Fifo {
    /// An empty cache.
    pub fn new(capacity: Capacity) -> Self {
        Self { slots: Slots::new(capacity), hand: 0 }
    }
}

impl Policy for Fifo {
    #[inline]
    fn request(&mut self, object: u64) -> Access {
        if self.slots.find(object).is_some() {
            return Access::Hit;
        }
        if !self.slots.is_full() {
            self.slots.push(Object(object));
            return Access::Miss { evicted: None };
        }
        let evicted = self.slots.replace(self.hand, Object(object));
        self.hand = (self.hand + 1) % self.capacity();
        Access::Miss { evicted: Some(evicted) }
    }

    fn len(&self) -> u32 {
        self.slots.len()
    }

    fn capacity(&self) -> u32 {
        self.slots.capacity()
    }
}
