//! What every policy keeps its objects in: slots, and lists through them.
//!
//! ```text
//! index:    object -> slot                       `index.rs`
//! objects:  8 bytes a slot     states: what the policy notes, a byte or two     links: older, newer
//! lists:    root -> head -> ... -> tail -> root    roots are slots of their own: no link is ever absent
//! rings:    slots in order of arrival; who leaves from the middle, as a ghost that is asked for, leaves a gap
//! ```
//!
//! Slots are numbered from 0 and reused. A slot is an object that is held or remembered (a ghost). It is in at
//! most one [`List`]. A queue needs no links: where slots leave at its end only it is a `VecDeque`, else a [`Ring`],
//! and what leaves it is known ahead. The arrays are apart, so that a hit that notes a bit touches the index, the
//! object and its state, and no link.
//!
//! What takes time is memory. So whatever is known ahead is read ahead: requests by [`Slots::warm`], what leaves soon
//! by [`Slots::warm_leaving`].

use std::collections::VecDeque;

use super::Wanted;
use super::index::Index;

/// No slot.
const NONE: u32 = u32::MAX;
/// How many leave a queue while what the next one's removal reads is on its way.
const AHEAD: usize = 8;

/// The neighbours of a slot in a list: slots, or the list's root.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Link {
    /// The next one towards the tail.
    pub older: u32,
    /// The next one towards the head.
    pub newer: u32,
}

/// Objects in slots, with what their policy notes of each.
#[derive(Debug, Clone)]
pub struct Slots<S> {
    index: Index,
    objects: Vec<u64>,
    states: Vec<S>,
    links: Vec<Link>,
    /// Slots without an object, linked by `older`; `NONE` ends them.
    free: u32,
}

impl<S: Copy + Default> Default for Slots<S> {
    fn default() -> Self {
        Self { index: Index::new(), objects: Vec::new(), states: Vec::new(), links: Vec::new(), free: NONE }
    }
}

impl<S: Copy + Default> Slots<S> {
    /// No objects.
    pub fn new() -> Self {
        Self::default()
    }

    /// A new, empty list through these slots.
    ///
    /// # Panics
    /// When there are objects already: lists are made first.
    pub fn list(&mut self) -> List {
        assert!(self.index.is_empty(), "lists are made before objects");
        List { root: self.push(0, S::default()), len: 0 }
    }

    /// A slot that was never used.
    fn push(&mut self, object: u64, state: S) -> u32 {
        let slot = u32::try_from(self.objects.len()).expect("capacities leave room for ghosts");
        self.objects.push(object);
        self.states.push(state);
        self.links.push(Link { older: slot, newer: slot });
        slot
    }

    /// The slot of an object.
    #[inline]
    pub fn find(&self, object: u64) -> Option<u32> {
        self.index.find(object, &self.objects)
    }

    /// Reads what a search for these objects will read, so that it is close when each is asked for: the reads
    /// here wait for nothing but memory, and all at once.
    #[inline]
    pub fn warm(&self, requests: &[Wanted]) {
        let Some(&first) = self.objects.first() else { return };
        let read = |sum: u64, wanted: &Wanted| sum ^ self.objects[self.index.guess(wanted.object) as usize];
        std::hint::black_box(requests.iter().fold(first, read));
    }

    /// The same, and the links that change when an object is taken out of its list.
    #[inline]
    pub fn warm_links(&self, requests: &[Wanted]) {
        let Some(&first) = self.objects.first() else { return };
        let read = |sum: u64, wanted: &Wanted| {
            let slot = self.index.guess(wanted.object) as usize;
            let Link { older, newer } = self.links[slot];
            let (older, newer) = (self.links.get(older as usize), self.links.get(newer as usize));
            let neighbours = older.map_or(0, |link| link.newer) ^ newer.map_or(0, |link| link.older);
            sum ^ self.objects[slot] ^ u64::from(neighbours)
        };
        std::hint::black_box(requests.iter().fold(first, read));
    }

    /// The same for the removal of a slot that will leave soon.
    #[inline]
    pub fn warm_leaving(&self, slot: u32) {
        std::hint::black_box(self.index.guess(self.objects[slot as usize]));
    }

    /// The same for the slot that leaves a queue after `AHEAD` others.
    #[inline]
    pub fn warm_queue(&self, queue: &VecDeque<u32>) {
        if let Some(&slot) = queue.get(AHEAD).filter(|&&slot| slot != NONE) {
            self.warm_leaving(slot);
        }
    }

    /// Puts an object that has no slot into one; it is in no list yet.
    #[inline]
    pub fn add(&mut self, object: u64, state: S) -> u32 {
        let slot = match self.free {
            NONE => self.push(object, state),
            slot => {
                self.free = self.links[slot as usize].older;
                self.objects[slot as usize] = object;
                self.states[slot as usize] = state;
                slot
            }
        };
        self.index.insert(object, slot);
        slot
    }

    /// Frees the slot of an object, which is in no list any more; returns the object.
    #[inline]
    pub fn remove(&mut self, slot: u32) -> u64 {
        let object = self.objects[slot as usize];
        self.index.remove(object, slot);
        self.links[slot as usize].older = self.free;
        self.free = slot;
        object
    }

    /// The object in a slot.
    #[inline]
    pub fn object(&self, slot: u32) -> u64 {
        self.objects[slot as usize]
    }
}

/// What the policy notes of the object in a slot.
impl<S> std::ops::Index<u32> for Slots<S> {
    type Output = S;

    #[inline]
    fn index(&self, slot: u32) -> &S {
        &self.states[slot as usize]
    }
}

impl<S> std::ops::IndexMut<u32> for Slots<S> {
    #[inline]
    fn index_mut(&mut self, slot: u32) -> &mut S {
        &mut self.states[slot as usize]
    }
}

impl<S> Slots<S> {
    /// The neighbours of a slot in its list.
    #[inline]
    pub fn link(&self, slot: u32) -> Link {
        self.links[slot as usize]
    }

    #[inline]
    fn link_mut(&mut self, slot: u32) -> &mut Link {
        &mut self.links[slot as usize]
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
    pub fn tail<S>(&self, slots: &Slots<S>) -> u32 {
        slots.link(self.root).newer
    }

    /// Puts a slot that is in no list to the head.
    #[inline]
    pub fn push<S>(&mut self, slots: &mut Slots<S>, slot: u32) {
        self.put_behind(slots, self.root, slot);
    }

    /// Puts a slot that is in no list on the older side of another one: of a ring, the place that whoever goes
    /// towards newer ones from `other` comes to last.
    #[inline]
    pub fn put_behind<S>(&mut self, slots: &mut Slots<S>, other: u32, slot: u32) {
        let older = slots.link(other).older;
        *slots.link_mut(slot) = Link { older, newer: other };
        slots.link_mut(older).newer = slot;
        slots.link_mut(other).older = slot;
        self.len += 1;
    }

    /// Takes a slot out of the list.
    #[inline]
    pub fn remove<S>(&mut self, slots: &mut Slots<S>, slot: u32) {
        let Link { older, newer } = slots.link(slot);
        slots.link_mut(older).newer = newer;
        slots.link_mut(newer).older = older;
        self.len -= 1;
    }

    /// Takes the oldest out of the list, which must have one.
    #[inline]
    pub fn pop<S>(&mut self, slots: &mut Slots<S>) -> u32 {
        let tail = self.tail(slots);
        assert!(tail != self.root, "a list that is popped has a tail");
        self.remove(slots, tail);
        tail
    }

    /// Moves a slot of the list to its head.
    #[inline]
    pub fn to_head<S>(&mut self, slots: &mut Slots<S>, slot: u32) {
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
    pub fn forget<S: Copy + Default>(&mut self, slots: &mut Slots<S>) {
        let oldest = self.pop(slots);
        slots.remove(oldest);
    }

    /// Takes out the oldest, which there must be.
    #[inline]
    pub fn pop<S: Copy + Default>(&mut self, slots: &Slots<S>) -> u32 {
        slots.warm_queue(&self.ring);
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
