//! Which slot an object is in: the one hash table of all policies.
//!
//! Slots are numbered from 0 in the order of admission and reused on eviction, so a policy keeps
//! its links in an array beside. The table holds 4-byte slot numbers and compares objects in the
//! slots themselves: a lookup touches one group of the table and the slot, which the policy is
//! about to touch anyway. hashbrown probes 16 slots at a time; foldhash with a fixed seed mixes an
//! integer with one wide multiplication. Nothing iterates the table, so its order cannot leak.

use std::hash::BuildHasher;

use foldhash::fast::FixedState;
use hashbrown::HashTable;

use super::Capacity;

/// No slot.
pub(super) const NONE: u32 = u32::MAX;

/// A policy's entry for an object.
pub(super) trait Entry {
    /// The object in this slot.
    fn object(&self) -> u64;
}

/// Slots with entries, and where each object is.
#[derive(Debug, Clone)]
pub(super) struct Slots<T> {
    pub(super) entries: Vec<T>,
    table: HashTable<u32>,
    hasher: FixedState,
    capacity: Capacity,
}

impl<T: Entry> Slots<T> {
    pub(super) fn new(capacity: Capacity) -> Self {
        let hasher = FixedState::with_seed(0);
        Self { entries: Vec::new(), table: HashTable::new(), hasher, capacity }
    }

    pub(super) fn len(&self) -> u32 {
        self.entries.len() as u32 // Slots are numbered with 32 bits: see `Capacity`.
    }

    pub(super) fn capacity(&self) -> u32 {
        self.capacity.get()
    }

    pub(super) fn is_full(&self) -> bool {
        self.len() == self.capacity()
    }

    /// The slot of an object.
    #[inline]
    pub(super) fn find(&self, object: u64) -> Option<u32> {
        let entries = &self.entries;
        let is_it = |&slot: &u32| entries[slot as usize].object() == object;
        self.table.find(self.hasher.hash_one(object), is_it).copied()
    }

    /// Puts an entry into a slot that was never used.
    pub(super) fn push(&mut self, entry: T) -> u32 {
        assert!(!self.is_full(), "a cache holds more than its capacity");
        let slot = self.len();
        self.entries.push(entry);
        self.enter(slot);
        slot
    }

    /// Puts an entry into the slot of another, which leaves; returns the object that left.
    #[inline]
    pub(super) fn replace(&mut self, slot: u32, entry: T) -> u64 {
        let evicted = self.entries[slot as usize].object();
        let found = self.table.find_entry(self.hasher.hash_one(evicted), |&other| other == slot);
        found.expect("an object that is held is in the table").remove();
        self.entries[slot as usize] = entry;
        self.enter(slot);
        evicted
    }

    #[inline]
    fn enter(&mut self, slot: u32) {
        let Self { entries, table, hasher, .. } = self;
        let hash = |&slot: &u32| hasher.hash_one(entries[slot as usize].object());
        table.insert_unique(hash(&slot), slot, hash);
    }
}
