//! In which slot an object is, where none ever leaves: the hash table of a trace that is read into memory.
//!
//! ```text
//! object -> hash -> tag (32 bits); its upper bits say where the search begins
//! words:  [ 0 | tag slot+1 | tag slot+1 | 0 ... ]     8 bytes each, at most five eighths in use
//! ```
//!
//! A search reads one line of the table as a rule: the tags tell strangers off, and only the object that is found
//! is compared. foldhash with a fixed seed mixes an integer with one wide multiplication. Nothing iterates the
//! table, so its order cannot leak. Caches, whose objects leave, have [`super::slots`].

use std::hash::BuildHasher;

use foldhash::fast::FixedState;

/// Slots of objects.
#[derive(Debug, Clone)]
pub struct Index {
    words: Vec<u64>,
    /// Bits of a tag that do not say where the search begins.
    shift: u32,
    len: usize,
    hasher: FixedState,
}

/// log2 of the words of an empty table.
const SMALLEST: u32 = 4;

impl Default for Index {
    fn default() -> Self {
        Self::new()
    }
}

impl Index {
    /// An empty one.
    pub fn new() -> Self {
        let hasher = FixedState::with_seed(0);
        Self { words: vec![0; 1 << SMALLEST], shift: u32::BITS - SMALLEST, len: 0, hasher }
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
    pub fn find(&self, object: u64, objects: &[u64]) -> Option<u32> {
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

    /// Enters an object that is not there.
    #[inline]
    pub fn insert(&mut self, object: u64, slot: u32) {
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
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A table that grows several times on the way.
    #[test]
    fn what_was_entered_is_found_and_nothing_else() {
        let mut index = Index::new();
        let mut objects: Vec<u64> = Vec::new();
        let mut random = units::Seed(1).stream("index");
        for _ in 0..20_000 {
            let object = random.below(10_000);
            let slot = index.find(object, &objects);
            assert_eq!(slot, objects.iter().position(|&other| other == object).map(|slot| slot as u32));
            if slot.is_none() {
                index.insert(object, objects.len() as u32);
                objects.push(object);
            }
        }
        assert!(objects.len() > 5_000);
    }
}
