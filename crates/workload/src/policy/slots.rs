//! What every policy keeps its objects in: slots, the one hash table that finds them, and lists
//! through them.
//!
//! ```text
//! table:  hash of object -> slot            4 bytes a slot, hashbrown probes 16 at a time
//! slots:  object | older | newer | state    one cache line holds what an access touches
//! lists:  root -> head -> ... -> tail -> root    roots are slots of their own: no link is ever absent
//! ```
//!
//! Slots are numbered from 0 and reused. A slot is an object that is held or remembered (a ghost). It is in at
//! most one [`List`] through the slots' own links; who needs it in two brings [`Links`] of his own. foldhash with a fixed seed mixes an integer with one wide multiplication. Nothing
//! iterates the table, so its order cannot leak.

use std::hash::BuildHasher;
use std::ops::{Index, IndexMut};

use foldhash::fast::FixedState;
use hashbrown::HashTable;

/// No slot.
pub const NONE: u32 = u32::MAX;

/// The neighbours of a slot in a list: slots, or the list's root.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Link {
    /// The next one towards the tail.
    pub older: u32,
    /// The next one towards the head.
    pub newer: u32,
}

/// Whatever a list goes through: one link for each slot.
pub trait Linked {
    /// The link of a slot.
    fn link(&self, slot: u32) -> Link;
    /// The same, to be changed.
    fn link_mut(&mut self, slot: u32) -> &mut Link;
}

/// An object, its neighbours in its list, and what its policy notes of it.
#[derive(Debug, Clone, Copy)]
pub struct Node<S> {
    object: u64,
    link: Link,
    /// What the policy notes.
    pub state: S,
}

impl<S> Node<S> {
    /// The object in this slot.
    #[inline]
    pub fn object(&self) -> u64 {
        self.object
    }
}

/// Objects in slots. Indexed by the number of a slot.
#[derive(Debug, Clone)]
pub struct Slots<S> {
    nodes: Vec<Node<S>>,
    /// Slots without an object, linked by `older`; `NONE` ends them.
    free: u32,
    table: HashTable<u32>,
    hasher: FixedState,
}

impl<S: Copy + Default> Default for Slots<S> {
    fn default() -> Self {
        let hasher = FixedState::with_seed(0);
        Self { nodes: Vec::new(), free: NONE, table: HashTable::new(), hasher }
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
        assert!(self.table.is_empty(), "lists are made before objects");
        let root = self.nodes.len() as u32; // A handful.
        self.nodes.push(Node { object: 0, link: Link { older: root, newer: root }, state: S::default() });
        List { root, len: 0 }
    }

    /// The slot of an object.
    #[inline]
    pub fn find(&self, object: u64) -> Option<u32> {
        let nodes = &self.nodes;
        self.table.find(self.hasher.hash_one(object), |&slot| nodes[slot as usize].object == object).copied()
    }

    /// Puts an object that has no slot into one; it is in no list yet.
    #[inline]
    pub fn add(&mut self, object: u64, state: S) -> u32 {
        let slot = match self.free {
            NONE => {
                let slot = u32::try_from(self.nodes.len()).expect("capacities leave room for ghosts");
                self.nodes.push(Node { object, link: Link { older: slot, newer: slot }, state });
                slot
            }
            slot => {
                let node = &mut self.nodes[slot as usize];
                self.free = node.link.older;
                *node = Node { object, link: Link { older: slot, newer: slot }, state };
                slot
            }
        };
        let Self { nodes, table, hasher, .. } = self;
        let hash = |&slot: &u32| hasher.hash_one(nodes[slot as usize].object);
        table.insert_unique(hash(&slot), slot, hash);
        slot
    }

    /// Frees the slot of an object, which is in no list any more; returns the object.
    #[inline]
    pub fn remove(&mut self, slot: u32) -> u64 {
        let object = self.nodes[slot as usize].object;
        let found = self.table.find_entry(self.hasher.hash_one(object), |&other| other == slot);
        found.expect("an object in a slot is in the table").remove();
        self.nodes[slot as usize].link.older = self.free;
        self.free = slot;
        object
    }
}

impl<S> Index<u32> for Slots<S> {
    type Output = Node<S>;

    #[inline]
    fn index(&self, slot: u32) -> &Node<S> {
        &self.nodes[slot as usize]
    }
}

impl<S> IndexMut<u32> for Slots<S> {
    #[inline]
    fn index_mut(&mut self, slot: u32) -> &mut Node<S> {
        &mut self.nodes[slot as usize]
    }
}

impl<S> Linked for Slots<S> {
    #[inline]
    fn link(&self, slot: u32) -> Link {
        self[slot].link
    }

    #[inline]
    fn link_mut(&mut self, slot: u32) -> &mut Link {
        &mut self[slot].link
    }
}

/// Links beside those of the slots, for objects that are in two lists.
#[derive(Debug, Clone, Default)]
pub struct Links(Vec<Link>);

impl Links {
    /// A new, empty list through these links, whose root is a slot of its own among `slots`.
    pub fn list<S: Copy + Default>(&mut self, slots: &mut Slots<S>) -> List {
        let list = slots.list();
        self.cover(list.root);
        list
    }

    /// Makes room for a slot that was added.
    #[inline]
    pub fn cover(&mut self, slot: u32) {
        while self.0.len() <= slot as usize {
            let own = self.0.len() as u32; // At most `slot`.
            self.0.push(Link { older: own, newer: own });
        }
    }
}

impl Linked for Links {
    #[inline]
    fn link(&self, slot: u32) -> Link {
        self.0[slot as usize]
    }

    #[inline]
    fn link_mut(&mut self, slot: u32) -> &mut Link {
        &mut self.0[slot as usize]
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
    pub fn tail(&self, links: &impl Linked) -> u32 {
        links.link(self.root).newer
    }

    /// Puts a slot that is in no list to the head.
    #[inline]
    pub fn push(&mut self, links: &mut impl Linked, slot: u32) {
        self.put_behind(links, self.root, slot);
    }

    /// Puts a slot that is in no list on the older side of another one: of a ring, the place that whoever goes
    /// towards newer ones from `other` comes to last.
    #[inline]
    pub fn put_behind(&mut self, links: &mut impl Linked, other: u32, slot: u32) {
        let older = links.link(other).older;
        *links.link_mut(slot) = Link { older, newer: other };
        links.link_mut(older).newer = slot;
        links.link_mut(other).older = slot;
        self.len += 1;
    }

    /// Takes a slot out of the list.
    #[inline]
    pub fn remove(&mut self, links: &mut impl Linked, slot: u32) {
        let Link { older, newer } = links.link(slot);
        links.link_mut(older).newer = newer;
        links.link_mut(newer).older = older;
        self.len -= 1;
    }

    /// Takes the oldest out of the list, which must have one.
    #[inline]
    pub fn pop(&mut self, links: &mut impl Linked) -> u32 {
        let tail = self.tail(links);
        assert!(tail != self.root, "a list that is popped has a tail");
        self.remove(links, tail);
        tail
    }

    /// Moves a slot of the list to its head.
    #[inline]
    pub fn to_head(&mut self, links: &mut impl Linked, slot: u32) {
        if links.link(self.root).older != slot {
            self.remove(links, slot);
            self.push(links, slot);
        }
    }
}
