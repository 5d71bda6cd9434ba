//! A cache of equal objects: slabs, and what is at hand for each CPU (MECHANISMS 9.1, MECHANISMS-6X 7.1,
//! MECHANISMS-510-72 7.1).
//!
//! An object has no identity beyond the slab that it is in, and a slab's pages are free only when all its
//! objects are. That is what makes shrinking slab slow, and what fragments memory.
//!
//! The cache never allocates pages itself: when nothing is left, the caller allocates a block, waiting if it
//! must, and hands it over ([`SlabCache::grow`]). Pages that come free are taken by the caller, too
//! ([`SlabCache::take_freed`]).
//!
//! Left out: freelist randomisation, caches merged with others of their size. Neighbours:
//! [`crate::slab::table`], [`crate::slab::cpu_slabs`], [`crate::slab::sheaf`]; [`crate::slab::caches`] has all
//! caches.

use units::{CpuId, NodeId};

use crate::slab::cpu_slabs::AllCpuSlabs;
use crate::slab::layout::Layout;
use crate::slab::sheaf::Sheaves;
use crate::slab::table::{SlabId, SlabPages, SlabTable};
use crate::version::rules::FreeObjects;

/// What is at hand for CPUs.
#[derive(Debug, Clone)]
enum AtHand {
    Slabs(AllCpuSlabs),
    Sheaves(Sheaves),
}

/// A cache of objects of one size.
#[derive(Debug, Clone)]
pub struct SlabCache {
    table: SlabTable,
    at_hand: AtHand,
    objects: u64,
}

impl SlabCache {
    /// An empty cache; `cpu_nodes` has the node of each CPU.
    pub fn new(layout: &Layout, free_objects: FreeObjects, cpu_nodes: &[NodeId], nodes: usize) -> Self {
        let at_hand = match free_objects {
            FreeObjects::PartialSlabs => AtHand::Slabs(AllCpuSlabs::new(cpu_nodes, layout.cpu_partial)),
            FreeObjects::Sheaves => AtHand::Sheaves(Sheaves::new(cpu_nodes, nodes, layout.sheaf)),
        };
        Self { table: SlabTable::new(layout.object_size, layout.min_partial, nodes), at_hand, objects: 0 }
    }

    /// Objects in use.
    pub fn objects(&self) -> u64 {
        self.objects
    }

    /// Places for objects on its slabs, and those among them that do not lie free on a slab which no CPU holds
    /// (`num_objs` and `active_objs` of `/proc/slabinfo`).
    pub fn places(&self) -> (u64, u64) {
        (self.table.places(), self.table.places() - self.table.listed_free())
    }

    /// Pages of its slabs.
    pub fn pages(&self) -> u64 {
        self.table.pages()
    }

    /// Its slabs, for checks.
    pub fn slabs(&self) -> impl Iterator<Item = SlabPages> + '_ {
        self.table.blocks()
    }

    /// The node that a slab is on.
    #[inline]
    pub fn node(&self, slab: SlabId) -> NodeId {
        self.table.node(slab)
    }

    /// Takes an object for a task on `cpu`; none when a new slab is needed.
    #[inline]
    pub fn alloc(&mut self, cpu: CpuId) -> Option<SlabId> {
        let taken = match &mut self.at_hand {
            AtHand::Slabs(slabs) => slabs.alloc(&mut self.table, cpu),
            AtHand::Sheaves(sheaves) => sheaves.alloc(&mut self.table, cpu),
        };
        self.objects += u64::from(taken.is_some());
        taken
    }

    /// Adds a block in use as an empty slab, for a task on `cpu`.
    pub fn grow(&mut self, cpu: CpuId, pages: SlabPages, node: NodeId) {
        let id = self.table.add(pages, node);
        match &mut self.at_hand {
            AtHand::Slabs(slabs) => slabs.grow(&mut self.table, cpu, id),
            AtHand::Sheaves(sheaves) => sheaves.grow(&mut self.table, cpu, id),
        }
    }

    /// Frees an object of `slab` on `cpu`. Pages may come free with it: [`Self::take_freed`].
    #[inline]
    pub fn free(&mut self, cpu: CpuId, slab: SlabId) {
        self.objects -= 1;
        match &mut self.at_hand {
            AtHand::Slabs(slabs) => slabs.free(&mut self.table, cpu, slab),
            AtHand::Sheaves(sheaves) => sheaves.free(&mut self.table, cpu, slab),
        }
    }

    /// Pages that came free and that nobody took yet.
    #[inline]
    pub fn take_freed(&mut self) -> Option<SlabPages> {
        self.table.take_freed()
    }

    /// Goes through all slabs; returns what is wrong.
    pub fn check(&self) -> Result<(), &'static str> {
        let (taken, held) = self.table.check()?;
        let (in_sheaves, by_cpus) = match &self.at_hand {
            AtHand::Slabs(slabs) => (0, slabs.held()),
            AtHand::Sheaves(sheaves) => (sheaves.objects(), 0),
        };
        if held != by_cpus {
            return Err("a slab says that a CPU holds it and none does");
        }
        if taken == self.objects + in_sheaves { Ok(()) } else { Err("the count of objects is off") }
    }
}
