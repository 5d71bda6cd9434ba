//! CLOCK-Pro: LIRS' idea with one bit an access: three hands on one clock of hot, cold and remembered objects.
//!
//! ```text
//!        head (new ones)
//!            v
//!   . . . c H c n H c H n c . . .       H hot, held            c cold, held, perhaps on trial (in test)
//!     ^hot        ^test   ^cold         n not held, in test: a ghost; at most as many as c
//!
//!  hit:   set the object's bit
//!  cold hand (a victim is wanted), at a cold object:
//!         bit 0 -> out; in test it stays as n            bit 1, in test  -> hot, m + 1, hot hand runs
//!                                                        bit 1, not      -> on trial again, at the head
//!  hot hand (hot > c - m): H with bit 1 -> bit 0; bit 0 -> cold, not in test: done; ends tests that it passes
//!  test hand (too many n): ends the test of the next one in test: m - 1; an n is forgotten
//!  miss:  an n -> m + 1, hot, at the head, hot hand runs;   else cold, on trial, at the head
//! ```
//!
//! m, from 1 to c - 1, is how many cold objects there ought to be. The head is behind the hot hand: what is put
//! there is what it comes to last. The clock is a list, and a hand that comes to its root steps over it.
//!
//! Source: Jiang, Chen, Zhang, USENIX ATC 2005. Linux's refault distance is closest to this one.

use crate::slots::{LinkedSlots, List};
use crate::{Capacity, Policy};

/// A cache with CLOCK-Pro's eviction.
#[derive(Debug, Clone)]
pub struct ClockPro {
    slots: LinkedSlots<Noted>,
    clock: List,
    hot_hand: u32,
    cold_hand: u32,
    test_hand: u32,
    hot: u32,
    cold: u32,
    ghosts: u32,
    /// m.
    cold_target: u32,
    /// Whether the object that is about to come was asked for, and whether its name was known.
    missed: Option<bool>,
    capacity: Capacity,
}

#[derive(Debug, Clone, Copy, Default)]
struct Noted {
    status: Status,
    requested: bool,
    in_test: bool,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Status {
    Hot,
    #[default]
    Cold,
    Ghost,
}

impl ClockPro {
    /// An empty cache.
    pub fn new(capacity: Capacity) -> Self {
        let mut slots = LinkedSlots::new();
        let clock = slots.list();
        let root = clock.root();
        Self {
            slots,
            clock,
            hot_hand: root,
            cold_hand: root,
            test_hand: root,
            hot: 0,
            cold: 0,
            ghosts: 0,
            cold_target: 1,
            missed: None,
            capacity,
        }
    }

    /// The object at a hand: the root of the list is none.
    fn at(&self, hand: u32) -> u32 {
        if hand == self.clock.root() { self.clock.tail(&self.slots) } else { hand }
    }

    fn next(&self, slot: u32) -> u32 {
        self.slots.link(slot).newer
    }

    /// To the head, right behind the hot hand.
    fn put_at_head(&mut self, slot: u32) {
        self.clock.put_behind(&mut self.slots, self.hot_hand, slot);
    }

    /// Takes a slot off the clock; hands at it go on.
    fn take(&mut self, slot: u32) {
        let next = self.next(slot);
        for hand in [&mut self.hot_hand, &mut self.cold_hand, &mut self.test_hand] {
            if *hand == slot {
                *hand = next;
            }
        }
        self.clock.remove(&mut self.slots, slot);
    }

    fn grow_target(&mut self) {
        self.cold_target = (self.cold_target + 1).min((self.capacity.get() - 1).max(1));
    }

    /// Ends the test of an object: nobody asked for it in time.
    fn end_test(&mut self, slot: u32) {
        let noted = &mut self.slots[slot];
        if !std::mem::take(&mut noted.in_test) {
            return;
        }
        self.cold_target = (self.cold_target - 1).max(1);
        if noted.status == Status::Ghost {
            self.ghosts -= 1;
            self.take(slot);
            self.slots.remove(slot);
        }
    }

    /// Moves the hot hand until one hot object has become cold.
    fn run_hot_hand(&mut self) {
        loop {
            let slot = self.at(self.hot_hand);
            self.hot_hand = self.next(slot);
            let noted = &mut self.slots[slot];
            if noted.status != Status::Hot {
                self.end_test(slot);
            } else if !std::mem::take(&mut noted.requested) {
                noted.status = Status::Cold;
                self.hot -= 1;
                self.cold += 1;
                return;
            }
        }
    }

    fn balance(&mut self) {
        while self.hot > self.capacity.get().saturating_sub(self.cold_target) {
            self.run_hot_hand();
        }
    }

    /// Moves the test hand until one ghost is forgotten.
    fn run_test_hand(&mut self) {
        let before = self.ghosts;
        while self.ghosts == before {
            let slot = self.at(self.test_hand);
            self.test_hand = self.next(slot);
            self.end_test(slot);
        }
    }

    /// What becomes of a cold object at its hand: the victim, or nothing when it stays.
    fn try_cold(&mut self, slot: u32) -> Option<u64> {
        let object = self.slots.object(slot);
        let noted = &mut self.slots[slot];
        if std::mem::take(&mut noted.requested) {
            let was_in_test = std::mem::replace(&mut noted.in_test, true);
            self.take(slot);
            if !was_in_test {
                self.put_at_head(slot);
                return None;
            }
            self.slots[slot] = Noted { status: Status::Hot, requested: false, in_test: false };
            self.put_at_head(slot);
            (self.hot, self.cold) = (self.hot + 1, self.cold - 1);
            self.grow_target();
            self.balance();
            return None;
        }
        self.cold -= 1;
        if noted.in_test {
            noted.status = Status::Ghost;
            self.ghosts += 1;
            if self.ghosts > self.capacity.get() {
                self.run_test_hand();
            }
        } else {
            self.take(slot);
            self.slots.remove(slot);
        }
        Some(object)
    }
}

impl Policy for ClockPro {
    #[inline]
    fn access(&mut self, object: u64) -> bool {
        let Some(slot) = self.slots.find(object) else {
            self.missed = Some(false);
            return false;
        };
        if self.slots[slot].status != Status::Ghost {
            self.slots[slot].requested = true;
            return true;
        }
        self.grow_target();
        self.ghosts -= 1;
        self.take(slot);
        self.slots.remove(slot);
        self.missed = Some(true);
        false
    }

    #[inline]
    fn holds(&self, object: u64) -> bool {
        self.slots.find(object).is_some_and(|slot| self.slots[slot].status != Status::Ghost)
    }

    #[inline]
    fn insert(&mut self, object: u64) {
        let missed = self.missed.take();
        if missed == Some(true) {
            let hot = Noted { status: Status::Hot, requested: false, in_test: false };
            let slot = self.slots.add(object, hot);
            self.put_at_head(slot);
            self.hot += 1;
            return self.balance();
        }
        // Read ahead, it need not be new.
        if missed.is_none()
            && let Some(ghost) = self.slots.find(object)
        {
            self.ghosts -= 1;
            self.take(ghost);
            self.slots.remove(ghost);
        }
        let slot = self.slots.add(object, Noted { status: Status::Cold, requested: false, in_test: true });
        self.put_at_head(slot);
        self.cold += 1;
    }

    #[inline]
    fn evict(&mut self) -> u64 {
        loop {
            if self.cold == 0 {
                self.run_hot_hand();
            }
            let slot = self.at(self.cold_hand);
            self.cold_hand = self.next(slot);
            if self.slots[slot].status == Status::Cold
                && let Some(victim) = self.try_cold(slot)
            {
                return victim;
            }
        }
    }

    fn len(&self) -> u32 {
        self.hot + self.cold
    }

    fn capacity(&self) -> u32 {
        self.capacity.get()
    }
}
