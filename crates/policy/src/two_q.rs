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

use std::collections::VecDeque;

use crate::slots::{LinkedSlots, List, Ring};
use crate::{Capacity, Policy, Share};

/// A cache with 2Q's eviction.
#[derive(Debug, Clone)]
pub struct TwoQ {
    slots: LinkedSlots<Place>,
    /// The oldest first.
    trial: VecDeque<u32>,
    main: List,
    ghosts: Ring,
    /// Kin.
    trial_max: usize,
    /// Kout.
    ghosts_max: u32,
    /// Whether the object that is about to come was asked for, and its slot if A1out knows it.
    missed: Option<Option<u32>>,
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
        let mut slots = LinkedSlots::new();
        let (trial, main, ghosts) = (VecDeque::new(), slots.list(), Ring::default());
        let (trial_max, ghosts_max) = (kin.of(capacity.get()) as usize, kout.of(capacity.get()));
        Self { slots, trial, main, ghosts, trial_max, ghosts_max, missed: None, capacity }
    }
}

impl Policy for TwoQ {
    #[inline]
    fn access(&mut self, object: u64) -> bool {
        let slot = self.slots.find(object);
        if let Some(slot) = slot {
            match self.slots[slot] {
                Place::Trial => return true,
                Place::Main => {
                    self.main.to_head(&mut self.slots, slot);
                    return true;
                }
                Place::Ghost => self.ghosts.remove(slot),
            }
        }
        self.missed = Some(slot);
        false
    }

    #[inline]
    fn holds(&self, object: u64) -> bool {
        self.slots.find(object).is_some_and(|slot| self.slots[slot] != Place::Ghost)
    }

    #[inline]
    fn insert(&mut self, object: u64) {
        if let Some(Some(known)) = self.missed {
            self.missed = None;
            self.slots[known] = Place::Main;
            return self.main.push(&mut self.slots, known);
        }
        // Read ahead, it need not be new.
        let known = if self.missed.take().is_none() { self.slots.find(object) } else { None };
        let slot = match known {
            Some(ghost) => {
                self.ghosts.remove(ghost);
                self.slots[ghost] = Place::Trial;
                ghost
            }
            None => self.slots.add(object, Place::Trial),
        };
        self.trial.push_back(slot);
    }

    #[inline]
    fn evict(&mut self) -> u64 {
        if self.trial.len() <= self.trial_max && !self.main.is_empty() {
            let victim = self.main.pop(&mut self.slots);
            return self.slots.remove(victim);
        }
        let slot = self.trial.pop_front().expect("A1in has a victim where Am has none");
        let victim = self.slots.object(slot);
        self.slots[slot] = Place::Ghost;
        self.ghosts.push(slot);
        if self.ghosts.len() > self.ghosts_max {
            self.ghosts.forget(&mut self.slots);
        }
        victim
    }

    fn len(&self) -> u32 {
        self.trial.len() as u32 + self.main.len() // At most the capacity.
    }

    fn capacity(&self) -> u32 {
        self.capacity.get()
    }
}
