//! ARC: two LRU lists, of objects seen once and seen again, whose sizes follow what would have hit.
//!
//! ```text
//!                    T1 + B1 <= c
//!  miss -----> T1 [ seen once  | LRU ] tail --> out, its name to B1 [ ghosts ]
//!                    | hit
//!                    v
//!    +-------> T2 [ seen again | LRU ] tail --> out, its name to B2 [ ghosts ]
//!    |               ^-- hit                    T1 + B1 + T2 + B2 <= 2c
//!    | in B1: p grows by max(1, B2 / B1)
//!    | in B2: p shrinks by max(1, B1 / B2)
//! ```
//!
//! A victim comes from T1 while it has more than p objects, else from T2; with exactly p, from T1 when who is
//! missing was in B2. p is a real number from 0 to c, here in parts of 2^-32.
//!
//! Written as three steps where the paper has one. It trims the directory before it takes a victim, here that is
//! done when the object comes in, to the same effect: a victim of T1 in a full T1 leaves no ghost.
//!
//! Source: Megiddo, Modha, FAST 2003.

use crate::slots::{LinkedSlots, List, Ring};
use crate::{Capacity, Policy};

/// Bits behind the point of p.
const SHIFT: u32 = 32;
const ONE: u64 = 1 << SHIFT;

/// A cache with ARC's eviction.
#[derive(Debug, Clone)]
pub struct Arc {
    slots: LinkedSlots<Place>,
    once: List,
    again: List,
    once_ghosts: Ring,
    again_ghosts: Ring,
    /// p: how many objects T1 ought to have.
    target: u64,
    /// Whether the object that is about to come was asked for, and its slot if it is a ghost.
    missed: Option<Option<u32>>,
    capacity: Capacity,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Place {
    #[default]
    Once,
    Again,
    OnceGhost,
    AgainGhost,
}

/// `max(1, more / fewer)`.
fn step(more: &Ring, fewer: &Ring) -> u64 {
    ((u64::from(more.len()) << SHIFT) / u64::from(fewer.len())).max(ONE)
}

impl Arc {
    /// An empty cache.
    pub fn new(capacity: Capacity) -> Self {
        let mut slots = LinkedSlots::new();
        let (once, again) = (slots.list(), slots.list());
        let (once_ghosts, again_ghosts) = (Ring::default(), Ring::default());
        Self { slots, once, again, once_ghosts, again_ghosts, target: 0, missed: None, capacity }
    }

    /// A ghost is asked for: learn from it, and take it out of its list.
    fn learn(&mut self, slot: u32) {
        let ghosts = if self.slots[slot] == Place::OnceGhost {
            let target = self.target + step(&self.again_ghosts, &self.once_ghosts);
            self.target = target.min(u64::from(self.capacity.get()) << SHIFT);
            &mut self.once_ghosts
        } else {
            self.target = self.target.saturating_sub(step(&self.once_ghosts, &self.again_ghosts));
            &mut self.again_ghosts
        };
        ghosts.remove(slot);
    }

    fn forget(&mut self, slot: u32) {
        match self.slots[slot] {
            Place::OnceGhost => self.once_ghosts.remove(slot),
            Place::AgainGhost => self.again_ghosts.remove(slot),
            Place::Once | Place::Again => unreachable!("what is held is no ghost"),
        }
        self.slots.remove(slot);
    }

    /// Makes room for one more name in T1.
    fn trim(&mut self) {
        let capacity = self.capacity.get();
        while self.once.len() + self.once_ghosts.len() >= capacity && !self.once_ghosts.is_empty() {
            self.once_ghosts.forget(&mut self.slots);
        }
        let names = || self.len() + self.once_ghosts.len() + self.again_ghosts.len();
        if names() >= 2 * capacity && !self.again_ghosts.is_empty() {
            self.again_ghosts.forget(&mut self.slots);
        }
    }
}

impl Policy for Arc {
    #[inline]
    fn access(&mut self, object: u64) -> bool {
        let slot = self.slots.find(object);
        if let Some(slot) = slot {
            match self.slots[slot] {
                Place::Once => {
                    self.once.remove(&mut self.slots, slot);
                    self.slots[slot] = Place::Again;
                    self.again.push(&mut self.slots, slot);
                    return true;
                }
                Place::Again => {
                    self.again.to_head(&mut self.slots, slot);
                    return true;
                }
                Place::OnceGhost | Place::AgainGhost => self.learn(slot),
            }
        }
        self.missed = Some(slot);
        false
    }

    #[inline]
    fn holds(&self, object: u64) -> bool {
        let is_held = |slot: u32| matches!(self.slots[slot], Place::Once | Place::Again);
        self.slots.find(object).is_some_and(is_held)
    }

    #[inline]
    fn insert(&mut self, object: u64) {
        if let Some(Some(known)) = self.missed {
            self.missed = None;
            self.slots[known] = Place::Again;
            return self.again.push(&mut self.slots, known);
        }
        // Read ahead, it need not be new.
        let known = if self.missed.take().is_none() { self.slots.find(object) } else { None };
        if let Some(ghost) = known {
            self.forget(ghost);
        }
        self.trim();
        let slot = self.slots.add(object, Place::Once);
        self.once.push(&mut self.slots, slot);
    }

    #[inline]
    fn evict(&mut self) -> u64 {
        let once = u64::from(self.once.len()) << SHIFT;
        let was_again = matches!(self.missed, Some(Some(slot)) if self.slots[slot] == Place::AgainGhost);
        let from_once = once > self.target || (was_again && once == self.target);
        let (place, slot) = if !self.once.is_empty() && (from_once || self.again.is_empty()) {
            let slot = self.once.pop(&mut self.slots);
            self.once_ghosts.push(slot);
            (Place::OnceGhost, slot)
        } else {
            let slot = self.again.pop(&mut self.slots);
            self.again_ghosts.push(slot);
            (Place::AgainGhost, slot)
        };
        self.slots[slot] = place;
        self.slots.object(slot)
    }

    fn len(&self) -> u32 {
        self.once.len() + self.again.len()
    }

    fn capacity(&self) -> u32 {
        self.capacity.get()
    }
}
