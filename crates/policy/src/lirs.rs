//! LIRS: keeps what was requested again soon, whenever that was, and tries the rest in a small queue.
//!
//! ```text
//!  S (stack, by recency)   top [ L h L n L ... L ] bottom: always an L, the rest below it is pruned
//!  Q (queue, held)         in  [ h . . . ]  out --> evicted; in S it stays, as n
//!
//!  L  low inter-reference recency (LIR): held, 99 % of c          hit: to the top of S
//!  h  high (HIR), held: in Q, perhaps in S     hit: in S -> L, and the bottom L -> h into Q;
//!                                                   else to the top of S, end of Q
//!  n  HIR, not held: in S only                miss: -> L, and the bottom L -> h into Q
//! ```
//!
//! While there are fewer L than their share, whatever is missing becomes one. Names of n are bounded by 2c: who
//! was evicted longest ago is forgotten first. Where Q is empty (a batch took all of it) the bottom L goes.
//!
//! Source: Jiang, Zhang, SIGMETRICS 2002; the bound on n is ours, as the paper leaves it open.

use crate::slots::{LinkedSlots, List, Ring};
use crate::{Capacity, Policy, Share};

/// A cache with LIRS' eviction.
#[derive(Debug, Clone)]
pub struct Lirs {
    slots: LinkedSlots<Noted>,
    /// S.
    stack: List,
    /// Q.
    queue: Ring,
    /// n in the order of eviction.
    ghosts: Ring,
    low: u32,
    low_max: u32,
    /// Whether the object that is about to come was asked for, and whether its name was known.
    missed: Option<bool>,
    capacity: Capacity,
}

#[derive(Debug, Clone, Copy, Default)]
struct Noted {
    status: Status,
    in_stack: bool,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Status {
    Low,
    #[default]
    High,
    Ghost,
}

impl Lirs {
    /// An empty cache in which `low` are LIR; one object at least is not, if there is room for two.
    pub fn new(capacity: Capacity, low: Share) -> Self {
        let mut slots = LinkedSlots::new();
        let (stack, queue, ghosts) = (slots.list(), Ring::default(), Ring::default());
        let low_max = low.of(capacity.get()).min(capacity.get() - 1);
        Self { slots, stack, queue, ghosts, low: 0, low_max, missed: None, capacity }
    }

    /// To the top of the stack, wherever it was.
    fn put_on_top(&mut self, slot: u32) {
        if self.slots[slot].in_stack {
            self.stack.to_head(&mut self.slots, slot);
        } else {
            self.stack.push(&mut self.slots, slot);
            self.slots[slot].in_stack = true;
        }
    }

    /// Takes from below the last LIR all that stands there.
    fn prune(&mut self) {
        while !self.stack.is_empty() {
            let bottom = self.stack.tail(&self.slots);
            match self.slots[bottom].status {
                Status::Low => return,
                Status::High => {
                    self.stack.remove(&mut self.slots, bottom);
                    self.slots[bottom].in_stack = false;
                }
                Status::Ghost => self.forget(bottom),
            }
        }
    }

    /// Drops the name of an object that is not held.
    fn forget(&mut self, slot: u32) {
        self.ghosts.remove(slot);
        self.forget_name(slot);
    }

    /// The same where the name has left the order of evictions.
    fn forget_name(&mut self, slot: u32) {
        self.stack.remove(&mut self.slots, slot);
        self.slots.remove(slot);
    }

    /// Makes an object LIR that is in no queue, and another one HIR for it.
    fn promote(&mut self, slot: u32) {
        self.slots[slot].status = Status::Low;
        self.put_on_top(slot);
        self.low += 1;
        if self.low > self.low_max {
            let bottom = self.stack.tail(&self.slots);
            self.stack.remove(&mut self.slots, bottom);
            self.slots[bottom] = Noted { status: Status::High, in_stack: false };
            self.queue.push(bottom);
            self.low -= 1;
        }
        self.prune();
    }
}

impl Policy for Lirs {
    #[inline]
    fn access(&mut self, object: u64) -> bool {
        let Some(slot) = self.slots.find(object) else {
            self.missed = Some(false);
            return false;
        };
        let Noted { status, in_stack } = self.slots[slot];
        match status {
            Status::Low => {
                self.stack.to_head(&mut self.slots, slot);
                self.prune();
                true
            }
            Status::High if in_stack => {
                self.queue.remove(slot);
                self.promote(slot);
                true
            }
            Status::High => {
                self.put_on_top(slot);
                self.queue.remove(slot);
                self.queue.push(slot);
                // Nothing is below the last LIR: without any, nothing is kept.
                self.prune();
                true
            }
            Status::Ghost => {
                self.forget(slot);
                self.missed = Some(true);
                false
            }
        }
    }

    #[inline]
    fn holds(&self, object: u64) -> bool {
        self.slots.find(object).is_some_and(|slot| self.slots[slot].status != Status::Ghost)
    }

    #[inline]
    fn insert(&mut self, object: u64) {
        let missed = self.missed.take();
        // Read ahead, it need not be new.
        if missed.is_none()
            && let Some(ghost) = self.slots.find(object)
        {
            self.forget(ghost);
        }
        let slot = self.slots.add(object, Noted { status: Status::High, in_stack: false });
        if missed == Some(true) || self.low < self.low_max {
            self.promote(slot);
        } else {
            self.put_on_top(slot);
            self.queue.push(slot);
            self.prune();
        }
    }

    #[inline]
    fn evict(&mut self) -> u64 {
        if self.queue.is_empty() {
            let bottom = self.stack.pop(&mut self.slots);
            self.low -= 1;
            let victim = self.slots.remove(bottom);
            self.prune();
            return victim;
        }
        let slot = self.queue.pop();
        if !self.slots[slot].in_stack {
            return self.slots.remove(slot);
        }
        let victim = self.slots.object(slot);
        self.slots[slot].status = Status::Ghost;
        self.ghosts.push(slot);
        if self.ghosts.len() > 2 * self.capacity.get() {
            let oldest = self.ghosts.pop();
            self.forget_name(oldest);
        }
        victim
    }

    fn len(&self) -> u32 {
        self.low + self.queue.len()
    }

    fn capacity(&self) -> u32 {
        self.capacity.get()
    }
}
