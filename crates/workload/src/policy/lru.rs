//! LRU: evicts the object that was requested least recently.
//!
//! ```text
//! hit:   move the object to the head
//! miss:  when full, evict the tail; put the object at the head
//! ```
//!
//! The order is a list linked by slot numbers, closed to a ring through the head: the tail is the
//! head's predecessor, so no link is ever absent.

use super::slots::{Entry, NONE, Slots};
use super::{Access, Capacity, Policy};

/// A cache with least-recently-used eviction.
#[derive(Debug, Clone)]
pub struct Lru {
    slots: Slots<Linked>,
    /// The most recent; `NONE` when empty.
    head: u32,
}

#[derive(Debug, Clone, Copy)]
struct Linked {
    object: u64,
    /// The next less recent one; the tail's is the head.
    older: u32,
    newer: u32,
}

impl Entry for Linked {
    #[inline]
    fn object(&self) -> u64 {
        self.object
    }
}

impl Lru {
    /// An empty cache.
    pub fn new(capacity: Capacity) -> Self {
        Self { slots: Slots::new(capacity), head: NONE }
    }

    /// Links a slot that is in no list before the head.
    #[inline]
    fn link_at_head(&mut self, slot: u32) {
        let entries = &mut self.slots.entries;
        let (older, newer) = match self.head {
            NONE => (slot, slot),
            head => (head, entries[head as usize].newer),
        };
        entries[slot as usize].older = older;
        entries[slot as usize].newer = newer;
        entries[older as usize].newer = slot;
        entries[newer as usize].older = slot;
        self.head = slot;
    }

    #[inline]
    fn move_to_head(&mut self, slot: u32) {
        if slot == self.head {
            return;
        }
        let entries = &mut self.slots.entries;
        let Linked { older, newer, .. } = entries[slot as usize];
        entries[older as usize].newer = newer;
        entries[newer as usize].older = older;
        self.link_at_head(slot);
    }
}

impl Policy for Lru {
    #[inline]
    fn request(&mut self, object: u64) -> Access {
        if let Some(slot) = self.slots.find(object) {
            self.move_to_head(slot);
            return Access::Hit;
        }
        if self.slots.is_full() {
            // In a ring the tail becomes the head by turning it: no link changes.
            let tail = self.slots.entries[self.head as usize].newer;
            let linked = Linked { object, ..self.slots.entries[tail as usize] };
            let evicted = self.slots.replace(tail, linked);
            self.head = tail;
            return Access::Miss { evicted: Some(evicted) };
        }
        let slot = self.slots.push(Linked { object, older: NONE, newer: NONE });
        self.link_at_head(slot);
        Access::Miss { evicted: None }
    }

    fn len(&self) -> u32 {
        self.slots.len()
    }

    fn capacity(&self) -> u32 {
        self.slots.capacity()
    }
}
