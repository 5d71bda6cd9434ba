//! The slabs of one cache: how full each is, and those that no CPU holds, by node
//! (MECHANISMS 9.1, MECHANISMS-6X 7.1).
//!
//! ```text
//!              last object taken            an object freed
//!   held by a CPU ------------> full -------------------------> where its keeper says
//!        ^                                                            |
//!        |  taken from the head                                       | tail
//!        +---------------------- partial list of its node <-----------+
//!                                      | last object freed, and the list is long enough
//!                                      v
//!                                pages are free
//! ```
//! A slab whose last object went stays while its node has fewer than `min_partial` slabs listed. So pages come
//! back only when all objects of a slab have gone, whatever the order in which they went.
//!
//! Left out: which of its places an object has; the list of full slabs, which debugging needs. Neighbours:
//! [`crate::slab::cpu_slabs`] and [`crate::slab::sheaf`] hold slabs or their objects for CPUs.

use std_alloc::vec;
use std_alloc::vec::Vec;

use units::{NodeId, Order, PAGE_SIZE, Pfn};

use crate::base::list::{Link, Links, List, ListId};

/// A slab of a cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct SlabId(pub u32);

impl ListId for SlabId {
    const NIL: Self = Self(u32::MAX);
}

/// A block of pages that a cache has, or had.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub struct SlabPages {
    /// Its first page.
    pub pfn: Pfn,
    /// Its order.
    pub order: Order,
}

/// Where a slab is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    /// Its pages are free, its number unused.
    Gone,
    /// All its objects are taken, and nobody looks at it.
    Full,
    /// On the list of its node.
    Listed,
    /// Some CPU has it to itself (`frozen`).
    Held,
}

/// 20 bytes: there may be as many slabs as pages.
#[derive(Debug, Clone, Copy)]
struct Slab {
    link: Link<SlabId>,
    pfn: Pfn,
    used: u16,
    capacity: u16,
    order: u8,
    node: u8,
    place: Place,
}

const _: () = assert!(size_of::<Slab>() == 20);

#[derive(Debug, Clone, Default)]
struct Slabs(Vec<Slab>);

impl Links<SlabId> for Slabs {
    fn link(&self, id: SlabId) -> Link<SlabId> {
        self.0[id.0 as usize].link
    }

    fn link_mut(&mut self, id: SlabId) -> &mut Link<SlabId> {
        &mut self.0[id.0 as usize].link
    }
}

/// All slabs of a cache.
#[derive(Debug, Clone)]
pub(super) struct SlabTable {
    object_size: u32,
    min_partial: u32,
    slabs: Slabs,
    unused: Vec<SlabId>,
    /// By node.
    partial: Vec<List<SlabId>>,
    pages: u64,
    /// Objects that slabs have room for.
    places: u64,
    /// Of those, free ones on slabs that are listed.
    listed_free: u64,
    /// Pages that came free and that nobody took yet.
    freed: Vec<SlabPages>,
}

impl SlabTable {
    /// None yet, on a machine of so many nodes.
    pub(super) fn new(object_size: u32, min_partial: u32, nodes: usize) -> Self {
        let (slabs, unused, freed) = (Slabs::default(), Vec::new(), Vec::new());
        let partial = vec![List::EMPTY; nodes];
        Self { object_size, min_partial, slabs, unused, partial, pages: 0, places: 0, listed_free: 0, freed }
    }

    #[inline]
    fn slab(&mut self, id: SlabId) -> &mut Slab {
        &mut self.slabs.0[id.0 as usize]
    }

    /// Adds a block as a slab that the caller holds.
    pub(super) fn add(&mut self, pages: SlabPages, node: NodeId) -> SlabId {
        let bytes = u64::from(pages.order.pages()) * PAGE_SIZE;
        let capacity = u16::try_from(bytes / u64::from(self.object_size)).expect("a slab is small");
        assert!(capacity > 0, "a slab holds an object at least");
        let (link, SlabPages { pfn, order }, used) = (Link::UNUSED, pages, 0);
        let slab = Slab { link, pfn, used, capacity, order: order.0, node: node.0, place: Place::Held };
        self.pages += u64::from(order.pages());
        self.places += u64::from(capacity);
        if let Some(id) = self.unused.pop() {
            *self.slab(id) = slab;
            return id;
        }
        self.slabs.0.push(slab);
        SlabId(u32::try_from(self.slabs.0.len() - 1).expect("fewer slabs than pages"))
    }

    /// Takes an object of a slab; false when none is free.
    #[inline]
    pub(super) fn take(&mut self, id: SlabId) -> bool {
        let slab = self.slab(id);
        let has_free = slab.used < slab.capacity;
        slab.used += u16::from(has_free);
        has_free
    }

    /// Frees an object of a slab. True if the slab was full and no CPU held it: it is to be put somewhere now.
    #[inline]
    #[must_use]
    pub(super) fn put(&mut self, id: SlabId) -> bool {
        let slab = self.slab(id);
        assert!(slab.used > 0 && slab.place != Place::Gone, "freed an object of an empty slab");
        slab.used -= 1;
        let (used, place) = (slab.used, slab.place);
        match place {
            Place::Listed => {
                self.listed_free += 1;
                if used == 0 && self.is_long(id) {
                    self.unlist(id);
                    self.free_pages(id);
                }
                false
            }
            place => place == Place::Full,
        }
    }

    /// Whether the list of the slab's node is long enough for empty slabs to go.
    fn is_long(&mut self, id: SlabId) -> bool {
        let node = usize::from(self.slab(id).node);
        self.partial[node].len() >= self.min_partial
    }

    fn unlist(&mut self, id: SlabId) {
        let node = usize::from(self.slab(id).node);
        self.partial[node].remove(&mut self.slabs, id);
        self.listed_free -= u64::from(self.free_of(id));
        self.slab(id).place = Place::Held;
    }

    fn free_pages(&mut self, id: SlabId) {
        let Slab { pfn, order, capacity, .. } = *self.slab(id);
        self.places -= u64::from(capacity);
        self.slab(id).place = Place::Gone;
        self.unused.push(id);
        self.pages -= u64::from(Order(order).pages());
        self.freed.push(SlabPages { pfn, order: Order(order) });
    }

    /// Its holder has no more use for a slab: it is full, goes to the tail of its node's list, or its pages
    /// are free.
    pub(super) fn release(&mut self, id: SlabId) {
        let Slab { used, capacity, node, .. } = *self.slab(id);
        if used == capacity {
            self.slab(id).place = Place::Full;
        } else if used == 0 && self.is_long(id) {
            self.free_pages(id);
        } else {
            self.partial[usize::from(node)].push_back(&mut self.slabs, id);
            self.listed_free += u64::from(self.free_of(id));
            self.slab(id).place = Place::Listed;
        }
    }

    /// Its holder took objects of a slab or none: it goes back to the head of its node's list, unless it is full.
    pub(super) fn relist(&mut self, id: SlabId) {
        let Slab { used, capacity, node, .. } = *self.slab(id);
        if used < capacity {
            self.partial[usize::from(node)].push_front(&mut self.slabs, id);
            self.listed_free += u64::from(self.free_of(id));
        }
        self.slab(id).place = if used < capacity { Place::Listed } else { Place::Full };
    }

    /// A CPU takes a slab to itself that was full.
    #[inline]
    pub(super) fn hold(&mut self, id: SlabId) {
        self.slab(id).place = Place::Held;
    }

    /// Takes the slab at the head of a node's list.
    pub(super) fn hold_partial_on(&mut self, node: NodeId) -> Option<SlabId> {
        let id = self.partial[node.index()].first()?;
        self.unlist(id);
        Some(id)
    }

    /// The same on `node`, or else on any other.
    pub(super) fn hold_partial(&mut self, node: NodeId) -> Option<SlabId> {
        let others = (0..self.partial.len()).filter(|&other| other != node.index());
        let from = core::iter::once(node.index()).chain(others).find(|&at| !self.partial[at].is_empty())?;
        self.hold_partial_on(NodeId(u8::try_from(from).expect("8 bits of nodes")))
    }

    /// Free objects of a slab.
    pub(super) fn free_of(&self, id: SlabId) -> u32 {
        let slab = &self.slabs.0[id.0 as usize];
        u32::from(slab.capacity - slab.used)
    }

    /// The node that a slab is on.
    #[inline]
    pub(super) fn node(&self, id: SlabId) -> NodeId {
        NodeId(self.slabs.0[id.0 as usize].node)
    }

    /// Pages of all slabs.
    pub(super) fn pages(&self) -> u64 {
        self.pages
    }

    /// Pages that came free since they were last taken.
    #[inline]
    pub(super) fn take_freed(&mut self) -> Option<SlabPages> {
        self.freed.pop()
    }

    fn present(&self) -> impl Iterator<Item = &Slab> {
        self.slabs.0.iter().filter(|slab| slab.place != Place::Gone)
    }

    /// All slabs.
    pub(super) fn blocks(&self) -> impl Iterator<Item = SlabPages> + '_ {
        self.present().map(|slab| SlabPages { pfn: slab.pfn, order: Order(slab.order) })
    }

    /// Objects that slabs have room for.
    pub(super) fn places(&self) -> u64 {
        self.places
    }

    /// Of those, free ones on slabs that no CPU holds.
    pub(super) fn listed_free(&self) -> u64 {
        self.listed_free
    }

    /// Goes through all slabs and lists: objects taken, and how many slabs CPUs hold; or what is wrong.
    pub(super) fn check(&self) -> Result<(u64, usize), &'static str> {
        let (mut taken, mut held, mut listed) = (0, 0, 0);
        let (mut pages, mut places, mut listed_free) = (0, 0, 0);
        for slab in self.present() {
            taken += u64::from(slab.used);
            held += usize::from(slab.place == Place::Held);
            listed += u32::from(slab.place == Place::Listed);
            pages += u64::from(Order(slab.order).pages());
            places += u64::from(slab.capacity);
            if slab.place == Place::Listed {
                listed_free += u64::from(slab.capacity - slab.used);
            }
            let is_full = slab.used == slab.capacity;
            if slab.used > slab.capacity
                || (slab.place == Place::Full) != (is_full && slab.place != Place::Held)
            {
                return Err("a slab is not as full as it says");
            }
        }
        let mut empty_beyond = false;
        for (node, list) in self.partial.iter().enumerate() {
            let mut walked = 0;
            for id in list.iter(&self.slabs) {
                let slab = self.slabs.0[id.0 as usize];
                if slab.place != Place::Listed || usize::from(slab.node) != node {
                    return Err("a slab is on a list that it does not know of");
                }
                walked += 1;
            }
            if walked != list.len() {
                return Err("a list of slabs has another length than it says");
            }
            let on_node = |slab: &&Slab| usize::from(slab.node) == node && slab.place == Place::Listed;
            let empty = self.present().filter(on_node).filter(|slab| slab.used == 0).count();
            empty_beyond |= empty > self.min_partial as usize;
            listed -= walked;
        }
        let sums = (pages, places, listed_free) == (self.pages, self.places, self.listed_free);
        match (listed, sums, empty_beyond) {
            (0, true, false) => Ok((taken, held)),
            (0, true, true) => Err("more empty slabs are kept than min_partial"),
            (0, false, _) => Err("slabs have other pages or places than the cache says"),
            _ => Err("a slab says that it is on a list and is on none"),
        }
    }
}
