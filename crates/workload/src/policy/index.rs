//! In which slot an object is: the one hash table of all policies.
//!
//! ```text
//! object -> hash -> tag (32 bits); its upper bits say where the search begins
//! words:  [ 0 | tag slot+1 | tag slot+1 | 0 ... ]     8 bytes each, at most five eighths in use
//! ```
//!
//! A search reads one line of the table as a rule: the tags tell strangers off, and only the object that is found
//! is compared. What is removed leaves no gap: those behind move up, for which their tags suffice. foldhash with a
//! fixed seed mixes an integer with one wide multiplication. Nothing iterates the table, so its order cannot leak.

use std::hash::BuildHasher;

use foldhash::fast::FixedState;

/// Slots of objects.
#[derive(Debug, Clone)]
pub(crate) struct Index {
    words: Vec<u64>,
    /// Bits of a tag that do not say where the search begins.
    shift: u32,
    len: usize,
    hasher: FixedState,
}

/// log2 of the words of an empty table.
const SMALLEST: u32 = 4;

impl Index {
    pub(crate) fn new() -> Self {
        let hasher = FixedState::with_seed(0);
        Self { words: vec![0; 1 << SMALLEST], shift: u32::BITS - SMALLEST, len: 0, hasher }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.len == 0
    }

    #[inline]
    fn tag(&self, object: u64) -> u64 {
        self.hasher.hash_one(object) >> 32
    }

    #[inline]
    fn home(&self, tag: u64) -> usize {
        (tag >> self.shift) as usize // Below the number of words.
    }

    #[inline]
    fn after(&self, place: usize) -> usize {
        (place + 1) & (self.words.len() - 1)
    }

    /// The slot of an object; `objects` has that of each slot.
    #[inline]
    pub(crate) fn find(&self, object: u64, objects: &[u64]) -> Option<u32> {
        let tag = self.tag(object);
        let mut place = self.home(tag);
        loop {
            let word = self.words[place];
            if word == 0 {
                return None;
            }
            if word >> 32 == tag {
                let slot = (word as u32) - 1; // The lower half.
                if objects[slot as usize] == object {
                    return Some(slot);
                }
            }
            place = self.after(place);
        }
    }

    /// A slot that is likely to be the object's; any slot if it is not there. For whoever brings memory closer.
    #[inline]
    pub(crate) fn guess(&self, object: u64) -> u32 {
        (self.words[self.home(self.tag(object))] as u32).saturating_sub(1) // The lower half.
    }

    /// Enters an object that is not there.
    #[inline]
    pub(crate) fn insert(&mut self, object: u64, slot: u32) {
        self.len += 1;
        if self.len * 8 > self.words.len() * 5 {
            self.grow();
        }
        self.put((self.tag(object) << 32) | (u64::from(slot) + 1));
    }

    #[inline]
    fn put(&mut self, word: u64) {
        let mut place = self.home(word >> 32);
        while self.words[place] != 0 {
            place = self.after(place);
        }
        self.words[place] = word;
    }

    #[cold]
    fn grow(&mut self) {
        let words = std::mem::take(&mut self.words);
        self.words = vec![0; words.len() * 2];
        self.shift -= 1;
        words.into_iter().filter(|&word| word != 0).for_each(|word| self.put(word));
    }

    /// Removes an object, which is there.
    #[inline]
    pub(crate) fn remove(&mut self, object: u64, slot: u32) {
        let tag = self.tag(object);
        let word = (tag << 32) | (u64::from(slot) + 1);
        let mut gap = self.home(tag);
        while self.words[gap] != word {
            assert!(self.words[gap] != 0, "an object in a slot is in the index");
            gap = self.after(gap);
        }
        let mask = self.words.len() - 1;
        let mut place = gap;
        loop {
            place = self.after(place);
            let word = self.words[place];
            if word == 0 {
                break;
            }
            // A word moves up if its search comes by the gap.
            let home = self.home(word >> 32);
            if (place.wrapping_sub(home) & mask) >= (place.wrapping_sub(gap) & mask) {
                self.words[gap] = word;
                gap = place;
            }
        }
        self.words[gap] = 0;
        self.len -= 1;
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    /// Many objects come and go; a table that is nearly full all the time has long searches.
    #[test]
    fn what_was_entered_is_found_until_it_is_removed() {
        let mut index = Index::new();
        let mut objects = vec![u64::MAX; 12];
        let mut held = BTreeMap::new();
        let mut random = units::Seed(1).stream("index");
        for _ in 0..20_000 {
            let object = random.below(40);
            assert_eq!(index.find(object, &objects), held.get(&object).copied());
            if let Some(slot) = held.remove(&object) {
                index.remove(object, slot);
            } else if let Some(slot) = (0..12).find(|slot| !held.values().any(|other| other == slot)) {
                objects[slot as usize] = object;
                held.insert(object, slot);
                index.insert(object, slot);
            }
        }
        assert_eq!(index.len, held.len());
    }
}
