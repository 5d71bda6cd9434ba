//! S3-FIFO: a small queue on trial before the main one, and a memory of those who failed.
//!
//! ```text
//!            not in G                      f <= 1
//!  miss -------------> S [ 10 % ] tail ------------> out, its name to G
//!    |                              |
//!    | in G                         | f > 1: f = 0
//!    v                              v
//!    +-----------------> M [ rest ] tail -- f = 0 --> out
//!                        ^----------' f > 0: f - 1
//!
//!  hit: f = min(3, f + 1)          G [ 90 % ]: names only, oldest out
//! ```
//!
//! A victim comes from S while S holds its share, else from M. G may have as many names as a full M has objects,
//! also while M still fills: with fewer, the first objects that come back would not get into M.
//!
//! Source: Yang et al., SOSP 2023. Simpler variants promote at f > 0 (`promote=1`).

use std::collections::VecDeque;

use crate::slots::{Ring, Slots};
use crate::{Capacity, Policy, Share};

/// The highest value of an object's counter: it has two bits.
const COUNT_MAX: u8 = 3;

/// A cache with S3-FIFO's eviction.
#[derive(Debug, Clone)]
pub struct S3Fifo {
    slots: Slots<Noted>,
    /// The oldest first, as in the others.
    small: VecDeque<u32>,
    main: VecDeque<u32>,
    ghosts: Ring,
    /// S gives the victim when it has so many objects.
    small_share: usize,
    ghosts_max: u32,
    /// S's tail goes to M when its counter says at least that.
    promote: u8,
    /// Whether the object that is about to come was asked for, and its slot if G knows it.
    missed: Option<Option<u32>>,
    capacity: Capacity,
}

#[derive(Debug, Clone, Copy, Default)]
struct Noted {
    place: Place,
    count: u8,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Place {
    #[default]
    Small,
    Main,
    Ghost,
}

impl S3Fifo {
    /// An empty cache whose small queue has a share of `small`, which objects leave for the main one when they
    /// were requested at least `promote` times since they came; and which remembers as many as a share of `ghost`.
    pub fn new(capacity: Capacity, small: Share, ghost: Share, promote: u8) -> Self {
        Self {
            slots: Slots::new(),
            small: VecDeque::new(),
            main: VecDeque::new(),
            ghosts: Ring::default(),
            small_share: small.of(capacity.get()).max(1) as usize,
            ghosts_max: ghost.of(capacity.get()),
            promote,
            missed: None,
            capacity,
        }
    }

    /// What becomes of S's tail: the victim, or nothing when it has gone to M.
    fn try_small(&mut self) -> Option<u64> {
        let slot = self.small.pop_front().expect("S has a victim where M has none");
        let noted = &mut self.slots[slot];
        if noted.count >= self.promote {
            *noted = Noted { place: Place::Main, count: 0 };
            self.main.push_back(slot);
            return None;
        }
        noted.place = Place::Ghost;
        let object = self.slots.object(slot);
        self.ghosts.push(slot);
        if self.ghosts.len() > self.ghosts_max {
            self.ghosts.forget(&mut self.slots);
        }
        Some(object)
    }

    /// The same of M's tail, which may get another round.
    fn try_main(&mut self) -> Option<u64> {
        let slot = self.main.pop_front().expect("M is asked where it is not empty");
        let count = &mut self.slots[slot].count;
        if *count > 0 {
            *count -= 1;
            self.main.push_back(slot);
            return None;
        }
        Some(self.slots.remove(slot))
    }
}

impl Policy for S3Fifo {
    #[inline]
    fn access(&mut self, object: u64) -> bool {
        let slot = self.slots.find(object);
        if let Some(slot) = slot {
            let noted = &mut self.slots[slot];
            if noted.place != Place::Ghost {
                noted.count = (noted.count + 1).min(COUNT_MAX);
                return true;
            }
            self.ghosts.remove(slot);
        }
        self.missed = Some(slot);
        false
    }

    #[inline]
    fn holds(&self, object: u64) -> bool {
        self.slots.find(object).is_some_and(|slot| self.slots[slot].place != Place::Ghost)
    }

    #[inline]
    fn insert(&mut self, object: u64) {
        if let Some(Some(known)) = self.missed {
            self.missed = None;
            self.slots[known] = Noted { place: Place::Main, count: 0 };
            return self.main.push_back(known);
        }
        // Read ahead, it need not be new.
        let known = if self.missed.take().is_none() { self.slots.find(object) } else { None };
        let slot = match known {
            Some(ghost) => {
                self.ghosts.remove(ghost);
                self.slots[ghost] = Noted::default();
                ghost
            }
            None => self.slots.add(object, Noted::default()),
        };
        self.small.push_back(slot);
    }

    #[inline]
    fn evict(&mut self) -> u64 {
        loop {
            let from_small = self.small.len() >= self.small_share || self.main.is_empty();
            if let Some(victim) = if from_small { self.try_small() } else { self.try_main() } {
                return victim;
            }
        }
    }

    fn len(&self) -> u32 {
        (self.small.len() + self.main.len()) as u32 // At most the capacity.
    }

    fn capacity(&self) -> u32 {
        self.capacity.get()
    }
}
