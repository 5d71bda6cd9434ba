//! CLOCK: FIFO that gives every object which was requested again another round.
//!
//! ```text
//! hit:   set the object's bit
//! miss:  when full, move the hand on, clearing bits, until it finds one clear: evict that
//!        object, put the new one there with its bit clear, move the hand on
//! ```
//!
//! As Corbató (1969) describes it, with one bit; this is also the second chance that Linux's
//! inactive list gives a page whose accessed bit is set.

use super::slots::{Entry, Slots};
use super::{Access, Capacity, Policy};

/// A cache with second-chance eviction.
#[derive(Debug, Clone)]
pub struct Clock {
    slots: Slots<Marked>,
    hand: u32,
}

#[derive(Debug, Clone, Copy)]
struct Marked {
    object: u64,
    requested_again: bool,
}

impl Entry for Marked {
    #[inline]
    fn object(&self) -> u64 {
        self.object
    }
}

impl Clock {
    /// An empty cache.
    pub fn new(capacity: Capacity) -> Self {
        Self { slots: Slots::new(capacity), hand: 0 }
    }

    /// The next slot under the hand whose bit is clear. Ends within two rounds, since the first
    /// clears every bit.
    fn victim(&mut self) -> u32 {
        loop {
            let slot = self.hand;
            self.hand = (self.hand + 1) % self.capacity();
            let entry = &mut self.slots.entries[slot as usize];
            if !std::mem::take(&mut entry.requested_again) {
                return slot;
            }
        }
    }
}

impl Policy for Clock {
    #[inline]
    fn request(&mut self, object: u64) -> Access {
        if let Some(slot) = self.slots.find(object) {
            self.slots.entries[slot as usize].requested_again = true;
            return Access::Hit;
        }
        let admitted = Marked { object, requested_again: false };
        if !self.slots.is_full() {
            self.slots.push(admitted);
            return Access::Miss { evicted: None };
        }
        let victim = self.victim();
        Access::Miss { evicted: Some(self.slots.replace(victim, admitted)) }
    }

    fn len(&self) -> u32 {
        self.slots.len()
    }

    fn capacity(&self) -> u32 {
        self.slots.capacity()
    }
}
