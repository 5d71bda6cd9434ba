//! Finding entries of a table by what they are called: open addressing over their numbers.
//!
//! ```text
//!   slots:  [hash, 7] [hash, 2] [ -  ] [hash, 9] ...      8 bytes each, at most 5 of 8 in use
//!   table:     2: "b"    7: "a"   9: "c"                  holds the names; it is passed to every call
//! ```
//! Entries move up when one before them goes, so there are no tombstones, and the same calls leave the same
//! slots. Names that count upwards share a cache line by eights ([`hash_name`]): files are mostly made, looked
//! for and removed in that order.

use std_alloc::vec;
use std_alloc::vec::Vec;

/// Numbers of entries, by hash.
#[derive(Debug, Clone, Default)]
pub struct IdTable {
    /// The hash above the number.
    slots: Vec<u64>,
    len: u32,
}

const FREE: u64 = u64::MAX;
const SLOTS_MIN: usize = 8;

/// The hash of a name below a directory; both are numbers.
#[inline]
pub fn hash_name(directory: u32, name: u64) -> u32 {
    let mixed = mix((name >> 3) ^ (u64::from(directory) << 40) ^ u64::from(directory));
    (mixed & !7) | (name as u32 & 7)
}

/// The hash of some bytes.
pub fn hash_bytes(bytes: &[u8]) -> u32 {
    bytes.iter().fold(0x811c_9dc5, |hash: u32, &byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193))
}

/// Every bit of the result depends on every bit of `value`.
#[inline]
fn mix(value: u64) -> u32 {
    let value = (value ^ (value >> 32)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let value = (value ^ (value >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    (value >> 32) as u32
}

#[inline]
fn slot(hash: u32, id: u32) -> u64 {
    (u64::from(hash) << 32) | u64::from(id)
}

impl IdTable {
    /// How many entries it names.
    pub fn len(&self) -> u32 {
        self.len
    }

    /// Whether it names none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    #[inline]
    fn mask(&self) -> usize {
        self.slots.len() - 1
    }

    /// The number with this hash that `is` the one.
    #[inline]
    pub fn find(&self, hash: u32, is: impl Fn(u32) -> bool) -> Option<u32> {
        if self.slots.is_empty() {
            return None;
        }
        let mut at = hash as usize & self.mask();
        loop {
            let found = self.slots[at];
            if found == FREE {
                return None;
            }
            let id = found as u32;
            if (found >> 32) as u32 == hash && is(id) {
                return Some(id);
            }
            at = (at + 1) & self.mask();
        }
    }

    /// Adds a number that is not there.
    pub fn insert(&mut self, hash: u32, id: u32) {
        assert!(slot(hash, id) != FREE, "the last number is none");
        if (self.len as usize + 1) * 8 > self.slots.len() * 5 {
            self.grow();
        }
        self.put(slot(hash, id));
        self.len += 1;
    }

    #[inline]
    fn put(&mut self, slot: u64) {
        let mask = self.mask();
        let mut at = (slot >> 32) as usize & mask;
        while self.slots[at] != FREE {
            at = (at + 1) & mask;
        }
        self.slots[at] = slot;
    }

    fn grow(&mut self) {
        let size = (self.slots.len() * 2).max(SLOTS_MIN);
        let old = core::mem::replace(&mut self.slots, vec![FREE; size]);
        old.into_iter().filter(|&slot| slot != FREE).for_each(|slot| self.put(slot));
    }

    /// Takes a number out.
    ///
    /// # Panics
    /// When it is not there.
    pub fn remove(&mut self, hash: u32, id: u32) {
        let mask = self.mask();
        let mut at = hash as usize & mask;
        while self.slots[at] != slot(hash, id) {
            assert!(self.slots[at] != FREE, "only what is there is taken out");
            at = (at + 1) & mask;
        }
        self.len -= 1;
        // Whatever follows without a gap and may lie here moves up.
        let mut next = at;
        loop {
            next = (next + 1) & mask;
            let found = self.slots[next];
            if found == FREE {
                break;
            }
            let home = (found >> 32) as usize & mask;
            if (next.wrapping_sub(home) & mask) >= (next.wrapping_sub(at) & mask) {
                self.slots[at] = found;
                at = next;
            }
        }
        self.slots[at] = FREE;
    }
}

#[cfg(test)]
mod tests {
    use std_alloc::collections::BTreeMap;

    use super::*;

    #[test]
    fn names_that_count_upwards_share_cache_lines() {
        let lines = |names: core::ops::Range<u64>| -> Vec<u32> {
            names.map(|name| hash_name(5, name) >> 3).collect()
        };
        assert!(lines(16..24).iter().all(|&line| line == lines(16..17)[0]));
        assert_ne!(lines(24..25), lines(16..17));
        assert_ne!(hash_name(4, 16), hash_name(5, 16));
    }

    /// Against a map, with hashes that collide often.
    #[test]
    fn it_finds_what_a_map_finds() {
        let mut stream = units::Seed(7).stream("hash");
        for spread in [1, 8, 60, 1 << 20] {
            let hash = |id: u32| mix(u64::from(id)) % spread;
            let (mut table, mut map) = (IdTable::default(), BTreeMap::new());
            for _ in 0..3000 {
                let id = u32::try_from(stream.below(120)).unwrap();
                if map.remove(&id).is_some() {
                    table.remove(hash(id), id);
                } else {
                    map.insert(id, ());
                    table.insert(hash(id), id);
                }
                let probe = u32::try_from(stream.below(120)).unwrap();
                let found = table.find(hash(probe), |id| id == probe);
                assert_eq!(found.is_some(), map.contains_key(&probe));
                assert_eq!(table.len() as usize, map.len());
            }
        }
    }
}
