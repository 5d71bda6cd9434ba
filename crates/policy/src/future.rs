//! What a trace will ask for: of every request, when its object is asked for next. For bounds alone.
//!
//! It takes 8 bytes a request and some 30 a distinct object.

use crate::PolicyError;
use crate::slots::Slots;

/// An object that is never asked for again.
pub(crate) const NEVER: u32 = u32::MAX;

/// All requests of a trace, in order.
#[derive(Debug, Clone, Default)]
pub struct Future {
    /// Of each request, the number of the next one for the same object.
    next: Vec<u32>,
    /// Of each request, the slot of its object.
    slot: Vec<u32>,
    /// Objects, with their last request so far.
    slots: Slots<u32>,
}

impl Future {
    /// The next request of the trace.
    ///
    /// # Errors
    /// There are too many to be numbered.
    pub fn push(&mut self, object: u64) -> Result<(), PolicyError> {
        let now = u32::try_from(self.next.len()).ok().filter(|&now| now != NEVER);
        let now = now.ok_or(PolicyError::TooLong)?;
        let slot = match self.slots.find(object) {
            Some(slot) => {
                let last = std::mem::replace(&mut self.slots[slot], now);
                self.next[last as usize] = now;
                slot
            }
            None => self.slots.add(object, now),
        };
        self.next.push(NEVER);
        self.slot.push(slot);
        Ok(())
    }

    /// Requests.
    pub(crate) fn len(&self) -> usize {
        self.next.len()
    }

    /// When the object of a request is asked for next.
    pub(crate) fn next(&self, request: u32) -> u32 {
        self.next[request as usize]
    }

    /// The object of a request.
    pub(crate) fn object(&self, request: u32) -> u64 {
        self.slots.object(self.slot[request as usize])
    }
}

/// A set of request numbers that knows its largest: bits, and bits that tell which words of them are not empty,
/// and so on up to one word.
#[derive(Debug, Clone)]
pub(crate) struct Times {
    levels: Vec<Vec<u64>>,
}

impl Times {
    /// An empty set of numbers below `len`.
    pub(crate) fn new(len: usize) -> Self {
        let mut levels = Vec::new();
        let mut words = len;
        loop {
            words = words.div_ceil(64).max(1);
            levels.push(vec![0; words]);
            if words == 1 {
                return Self { levels };
            }
        }
    }

    pub(crate) fn contains(&self, time: u32) -> bool {
        (self.levels[0][time as usize / 64] >> (time % 64)) & 1 == 1
    }

    #[inline]
    pub(crate) fn insert(&mut self, time: u32) {
        let mut at = time as usize;
        for level in &mut self.levels {
            let word = &mut level[at / 64];
            let was_empty = *word == 0;
            *word |= 1 << (at % 64);
            if !was_empty {
                return;
            }
            at /= 64;
        }
    }

    /// Takes a number out; whether it was there.
    #[inline]
    pub(crate) fn remove(&mut self, time: u32) -> bool {
        if !self.contains(time) {
            return false;
        }
        let mut at = time as usize;
        for level in &mut self.levels {
            let word = &mut level[at / 64];
            *word &= !(1 << (at % 64));
            if *word != 0 {
                break;
            }
            at /= 64;
        }
        true
    }

    #[inline]
    pub(crate) fn max(&self) -> Option<u32> {
        let mut at = 0;
        for level in self.levels.iter().rev() {
            let word = level[at];
            at = at * 64 + word.checked_ilog2()? as usize;
        }
        Some(at as u32) // A request's number.
    }
}
