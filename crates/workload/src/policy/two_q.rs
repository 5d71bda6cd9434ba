//! 2Q: a FIFO on trial before an LRU list, and a memory of those who left the FIFO.
//!
//! ```text
//!            not in A1out
//!  miss -----------------> A1in [ Kin: 1/4 ] tail --> out, its name to A1out [ Kout: 1/2, oldest out ]
//!    |                          hit: nothing
//!    | in A1out
//!    +-------------------> Am [ rest, LRU ] tail --> out
//!                               ^---- hit
//! ```
//!
//! A victim comes from A1in while it has more than Kin, else from Am.
//!
//! Source: Johnson, Shasha, VLDB 1994 (the full version).

use super::slots::{List, Slots};
use super::{Capacity, Policy, Share};

/// A cache with 2Q's eviction.
#[derive(Debug, Clone)]
pub struct TwoQ {
    slots: Slots<Place>,
    trial: List,
    main: List,
    ghosts: List,
    /// Kin.
    trial_max: u32,
    /// Kout.
    ghosts_max: u32,
    /// The object that was missed last, if A1out knew it.
    returning: Option<u64>,
    capacity: Capacity,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Place {
    #[default]
    Trial,
    Main,
    Ghost,
}

impl TwoQ {
    /// An empty cache with these shares for Kin and Kout.
    pub fn new(capacity: Capacity, kin: Share, kout: Share) -> Self {
        let mut slots = Slots::new();
        let (trial, main, ghosts) = (slots.list(), slots.list(), slots.list());
        let (trial_max, ghosts_max) = (kin.of(capacity.get()), kout.of(capacity.get()));
        Self { slots, trial, main, ghosts, trial_max, ghosts_max, returning: None, capacity }
    }

    fn put(&mut self, object: u64, place: Place) {
        let slot = self.slots.add(object, place);
        let queue = if place == Place::Main { &mut self.main } else { &mut self.trial };
        queue.push(&mut self.slots, slot);
    }
}

impl Policy for TwoQ {
    #[inline]
    fn access(&mut self, object: u64) -> bool {
        let Some(slot) = self.slots.find(object) else { return false };
        match self.slots[slot].state {
            Place::Trial => true,
            Place::Main => {
                self.main.to_head(&mut self.slots, slot);
                true
            }
            Place::Ghost => {
                self.ghosts.remove(&mut self.slots, slot);
                self.slots.remove(slot);
                self.returning = Some(object);
                false
            }
        }
    }

    #[inline]
    fn holds(&self, object: u64) -> bool {
        self.slots.find(object).is_some_and(|slot| self.slots[slot].state != Place::Ghost)
    }

    #[inline]
    fn insert(&mut self, object: u64) {
        if self.returning.take() == Some(object) {
            return self.put(object, Place::Main);
        }
        // Read ahead, it need not be new.
        if let Some(ghost) = self.slots.find(object) {
            self.ghosts.remove(&mut self.slots, ghost);
            self.slots.remove(ghost);
        }
        self.put(object, Place::Trial);
    }

    #[inline]
    fn evict(&mut self) -> u64 {
        if self.trial.len() <= self.trial_max && !self.main.is_empty() {
            let victim = self.main.pop(&mut self.slots);
            return self.slots.remove(victim);
        }
        let slot = self.trial.pop(&mut self.slots);
        let victim = self.slots[slot].object();
        self.slots[slot].state = Place::Ghost;
        self.ghosts.push(&mut self.slots, slot);
        if self.ghosts.len() > self.ghosts_max {
            let oldest = self.ghosts.pop(&mut self.slots);
            self.slots.remove(oldest);
        }
        victim
    }

    fn len(&self) -> u32 {
        self.trial.len() + self.main.len()
    }

    fn capacity(&self) -> u32 {
        self.capacity.get()
    }
}
