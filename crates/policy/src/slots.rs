//! What every policy keeps its objects in: slots, and lists through them.
//!
//! ```text
//! table:    object -> slot
//! entries:  of each slot its object, 8 bytes; what the policy notes, a byte or two; in lists: older, newer
//! lists:    root -> head -> ... -> tail -> root    roots are slots of their own: no link is ever absent
//! rings:    slots in order of arrival; who leaves from the middle, as a ghost that is asked for, leaves a gap
//! ```
//!
//! Slots are numbered from 0 and reused. A slot is an object that is held or remembered (a ghost). It is in at
//! most one [`List`]. A queue needs no links: where slots leave at its end only it is a `VecDeque`, else a [`Ring`].
//!
//! What takes time is memory, and branches that cannot be foreseen. The table holds 4-byte numbers of slots and
//! compares objects in the slots themselves, which the policy is about to touch anyway; hashbrown probes 16 at a
//! time, without a branch for each. foldhash with a fixed seed mixes an integer with one wide multiplication. Nothing
//! iterates the table, so its order cannot leak.

use std::collections::VecDeque;
use std::hash::BuildHasher;

use foldhash::fast::FixedState;
use hashbrown::HashTable;

/// No slot.
const NONE: u32 = u32::MAX;

/// The neighbours of a slot in a list: slots, or the list's root.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Link {
    /// The next one towards the tail.
    pub older: u32,
    /// The next one towards the head.
    pub newer: u32,
}

/// Slots that lists go through.
pub type LinkedSlots<S> = Slots<S, Link>;

/// Objects in slots, with what their policy notes of each; with `L` = [`Link`] in lists.
#[derive(Debug, Clone)]
pub struct Slots<S, L = ()> {
    table: HashTable<u32>,
    hasher: FixedState,
    entries: Vec<Entry<S, L>>,
    /// Slots without an object, linked by what is there instead of it; `NONE` ends them.
    free: u32,
}

#[derive(Debug, Clone, Copy)]
struct Entry<S, L> {
    object: u64,
    link: L,
    state: S,
}

impl<S: Copy + Default, L: Copy + Default> Default for Slots<S, L> {
    fn default() -> Self {
        let hasher = FixedState::with_seed(0);
        Self { table: HashTable::new(), hasher, entries: Vec::new(), free: NONE }
    }
}

impl<S: Copy + Default, L: Copy + Default> Slots<S, L> {
    /// No objects.
    pub fn new() -> Self {
        Self::default()
    }

    /// A slot that was never used.
    fn push(&mut self, object: u64, state: S) -> u32 {
        let slot = u32::try_from(self.entries.len()).expect("capacities leave room for ghosts");
        self.entries.push(Entry { object, link: L::default(), state });
        slot
    }

    /// The slot of an object.
    #[inline]
    pub fn find(&self, object: u64) -> Option<u32> {
        let entries = &self.entries;
        let is_it = |&slot: &u32| entries[slot as usize].object == object;
        self.table.find(self.hasher.hash_one(object), is_it).copied()
    }

    /// Puts an object that has no slot into one; it is in no list yet.
    #[inline]
    pub fn add(&mut self, object: u64, state: S) -> u32 {
        let slot = match self.free {
            NONE => self.push(object, state),
            slot => {
                let entry = &mut self.entries[slot as usize];
                self.free = entry.object as u32; // A slot.
                (entry.object, entry.state) = (object, state);
                slot
            }
        };
        let (hasher, entries) = (&self.hasher, &self.entries);
        let hash = |&slot: &u32| hasher.hash_one(entries[slot as usize].object);
        self.table.insert_unique(hasher.hash_one(object), slot, hash);
        slot
    }

    /// Frees the slot of an object, which is in no list any more; returns the object.
    #[inline]
    pub fn remove(&mut self, slot: u32) -> u64 {
        let object = self.object(slot);
        let found = self.table.find_entry(self.hasher.hash_one(object), |&other| other == slot);
        found.expect("an object in a slot is in the table").remove();
        self.entries[slot as usize].object = u64::from(self.free);
        self.free = slot;
        object
    }

    /// The object in a slot.
    #[inline]
    pub fn object(&self, slot: u32) -> u64 {
        self.entries[slot as usize].object
    }
}

/// What the policy notes of the object in a slot.
impl<S, L> std::ops::Index<u32> for Slots<S, L> {
    type Output = S;

    #[inline]
    fn index(&self, slot: u32) -> &S {
        &self.entries[slot as usize].state
    }
}

impl<S, L> std::ops::IndexMut<u32> for Slots<S, L> {
    #[inline]
    fn index_mut(&mut self, slot: u32) -> &mut S {
        &mut self.entries[slot as usize].state
    }
}

impl<S: Copy + Default> LinkedSlots<S> {
    /// A new, empty list through these slots.
    ///
    /// # Panics
    /// When there are objects already: lists are made first.
    pub fn list(&mut self) -> List {
        assert!(self.table.is_empty(), "lists are made before objects");
        let root = self.push(0, S::default());
        *self.link_mut(root) = Link { older: root, newer: root };
        List { root, len: 0 }
    }
}

impl<S> LinkedSlots<S> {
    /// The neighbours of a slot in its list.
    #[inline]
    pub fn link(&self, slot: u32) -> Link {
        self.entries[slot as usize].link
    }

    #[inline]
    fn link_mut(&mut self, slot: u32) -> &mut Link {
        &mut self.entries[slot as usize].link
    }
}

/// An order of slots: new ones come to the head, and the tail is the oldest. A ring through a root of its own.
#[derive(Debug, Clone)]
pub struct List {
    root: u32,
    len: u32,
}

impl List {
    /// Slots in the list.
    #[inline]
    pub fn len(&self) -> u32 {
        self.len
    }

    /// Whether there are none.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// What stands behind the tail and before the head: no object.
    #[inline]
    pub fn root(&self) -> u32 {
        self.root
    }

    /// The oldest; the root when there is none.
    #[inline]
    pub fn tail<S>(&self, slots: &LinkedSlots<S>) -> u32 {
        slots.link(self.root).newer
    }

    /// Puts a slot that is in no list to the head.
    #[inline]
    pub fn push<S>(&mut self, slots: &mut LinkedSlots<S>, slot: u32) {
        self.put_behind(slots, self.root, slot);
    }

    /// Puts a slot that is in no list on the older side of another one: of a ring, the place that whoever goes
    /// towards newer ones from `other` comes to last.
    #[inline]
    pub fn put_behind<S>(&mut self, slots: &mut LinkedSlots<S>, other: u32, slot: u32) {
        let older = slots.link(other).older;
        *slots.link_mut(slot) = Link { older, newer: other };
        slots.link_mut(older).newer = slot;
        slots.link_mut(other).older = slot;
        self.len += 1;
    }

    /// Takes a slot out of the list.
    #[inline]
    pub fn remove<S>(&mut self, slots: &mut LinkedSlots<S>, slot: u32) {
        let Link { older, newer } = slots.link(slot);
        slots.link_mut(older).newer = newer;
        slots.link_mut(newer).older = older;
        self.len -= 1;
    }

    /// Takes the oldest out of the list, which must have one.
    #[inline]
    pub fn pop<S>(&mut self, slots: &mut LinkedSlots<S>) -> u32 {
        let tail = self.tail(slots);
        assert!(tail != self.root, "a list that is popped has a tail");
        self.remove(slots, tail);
        tail
    }

    /// Moves a slot of the list to its head.
    #[inline]
    pub fn to_head<S>(&mut self, slots: &mut LinkedSlots<S>, slot: u32) {
        if slots.link(self.root).older != slot {
            self.remove(slots, slot);
            self.push(slots, slot);
        }
    }
}

/// An order of slots that none goes along: the oldest leaves, or one from the middle, and a ring of them is read in
/// the order of memory. For names of evicted objects, as a rule.
#[derive(Debug, Clone, Default)]
pub struct Ring {
    /// Slots, the oldest first; `NONE` where one has left.
    ring: VecDeque<u32>,
    /// The number of the first place of the ring; numbers wrap around.
    first: u32,
    /// The number of each slot's place, where it has one.
    places: Vec<u32>,
    len: u32,
}

impl Ring {
    /// How many there are.
    #[inline]
    pub fn len(&self) -> u32 {
        self.len
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The newest.
    #[inline]
    pub fn push(&mut self, slot: u32) {
        if self.ring.len() > 2 * self.len as usize + 64 {
            self.close_gaps();
        }
        if self.places.len() <= slot as usize {
            self.places.resize(slot as usize + 1, 0);
        }
        self.places[slot as usize] = self.first.wrapping_add(self.ring.len() as u32); // At most 2^31.
        self.ring.push_back(slot);
        self.len += 1;
    }

    /// Takes out a slot that is there.
    #[inline]
    pub fn remove(&mut self, slot: u32) {
        let place = self.places[slot as usize].wrapping_sub(self.first);
        debug_assert_eq!(self.ring[place as usize], slot);
        self.ring[place as usize] = NONE;
        self.len -= 1;
    }

    /// Forgets the oldest, which there must be, and frees its slot.
    #[inline]
    pub fn forget<S: Copy + Default, L: Copy + Default>(&mut self, slots: &mut Slots<S, L>) {
        let oldest = self.pop();
        slots.remove(oldest);
    }

    /// Takes out the oldest, which there must be.
    #[inline]
    pub fn pop(&mut self) -> u32 {
        loop {
            let slot = self.ring.pop_front().expect("a ring that is popped has a slot");
            self.first = self.first.wrapping_add(1);
            if slot != NONE {
                self.len -= 1;
                return slot;
            }
        }
    }

    #[cold]
    fn close_gaps(&mut self) {
        self.ring.retain(|&slot| slot != NONE);
        for (place, &slot) in self.ring.iter().enumerate() {
            self.places[slot as usize] = self.first.wrapping_add(place as u32); // As above.
        }
    }
}
