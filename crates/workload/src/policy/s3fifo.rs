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

use super::slots::{List, Slots};
use super::{Capacity, Policy, Share};

/// The highest value of an object's counter: it has two bits.
const COUNT_MAX: u8 = 3;

/// A cache with S3-FIFO's eviction.
#[derive(Debug, Clone)]
pub struct S3Fifo {
    slots: Slots<Noted>,
    small: List,
    main: List,
    ghosts: List,
    /// S gives the victim when it has so many objects.
    small_share: u32,
    ghosts_max: u32,
    /// S's tail goes to M when its counter says at least that.
    promote: u8,
    /// The object that was missed last, if G knew it.
    returning: Option<u64>,
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
        let mut slots = Slots::new();
        let (small_queue, main, ghosts) = (slots.list(), slots.list(), slots.list());
        Self {
            slots,
            small: small_queue,
            main,
            ghosts,
            small_share: small.of(capacity.get()).max(1),
            ghosts_max: ghost.of(capacity.get()),
            promote,
            returning: None,
            capacity,
        }
    }

    fn put(&mut self, object: u64, place: Place) {
        let slot = self.slots.add(object, Noted { place, count: 0 });
        let queue = if place == Place::Main { &mut self.main } else { &mut self.small };
        queue.push(&mut self.slots, slot);
    }

    /// What becomes of S's tail: the victim, or nothing when it has gone to M.
    fn try_small(&mut self) -> Option<u64> {
        let slot = self.small.pop(&mut self.slots);
        let node = &mut self.slots[slot];
        if node.state.count >= self.promote {
            node.state = Noted { place: Place::Main, count: 0 };
            self.main.push(&mut self.slots, slot);
            return None;
        }
        let object = node.object();
        node.state.place = Place::Ghost;
        self.ghosts.push(&mut self.slots, slot);
        if self.ghosts.len() > self.ghosts_max {
            let oldest = self.ghosts.pop(&mut self.slots);
            self.slots.remove(oldest);
        }
        Some(object)
    }

    /// The same of M's tail, which may get another round.
    fn try_main(&mut self) -> Option<u64> {
        let slot = self.main.pop(&mut self.slots);
        let count = &mut self.slots[slot].state.count;
        if *count > 0 {
            *count -= 1;
            self.main.push(&mut self.slots, slot);
            return None;
        }
        Some(self.slots.remove(slot))
    }
}

impl Policy for S3Fifo {
    #[inline]
    fn access(&mut self, object: u64) -> bool {
        let Some(slot) = self.slots.find(object) else { return false };
        let noted = &mut self.slots[slot].state;
        if noted.place != Place::Ghost {
            noted.count = (noted.count + 1).min(COUNT_MAX);
            return true;
        }
        self.ghosts.remove(&mut self.slots, slot);
        self.slots.remove(slot);
        self.returning = Some(object);
        false
    }

    #[inline]
    fn holds(&self, object: u64) -> bool {
        self.slots.find(object).is_some_and(|slot| self.slots[slot].state.place != Place::Ghost)
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
        self.put(object, Place::Small);
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
        self.small.len() + self.main.len()
    }

    fn capacity(&self) -> u32 {
        self.capacity.get()
    }
}
