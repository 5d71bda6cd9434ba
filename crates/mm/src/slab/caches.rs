//! The slab caches of kernel objects that files cost (MECHANISMS 9.1, MECHANISMS-6X 7.1): how large
//! their slabs are, and which mobility type their pages have.
//!
//! Up to 5.8 each cgroup has caches of its own, whose pages it pays for; since then objects of all cgroups share
//! slabs ([`ObjectCharge`]). Left out: that the first objects of a cgroup come from the shared caches until its
//! own are made, and that the caches of a removed cgroup become its parent's (5.3).
//!
//! Neighbours: [`crate::version::geometry`] for which there are, [`crate::slab::cache`] for one cache,
//! [`crate::slab::account`] for taking objects and freeing them.

use std_alloc::collections::VecDeque;
use std_alloc::vec::Vec;

use units::{NodeId, Order};

use crate::base::gfp::Gfp;
use crate::base::ids::MemcgId;
use crate::slab::cache::SlabCache;
use crate::slab::layout::Layout;
use crate::slab::object::Object;
use crate::slab::rcu::Rcu;
use crate::slab::table::SlabPages;
use crate::version::geometry::{Cache, Geometry, geometry};
use crate::version::presets::Tuning;
use crate::version::rules::{FreeObjects, ObjectCharge, Rules};

impl Cache {
    /// Its geometry in a kernel with these constants.
    pub fn geometry(self, tuning: &Tuning) -> Geometry {
        match self {
            Self::TreeNode => geometry(tuning.tree_node_size, true, true),
            other => match other.payers_size() {
                Some(size) => geometry(size, false, false),
                None => tuning.file_caches[other as usize - 1],
            },
        }
    }

    /// The cache of what a slab of this one needs in order to know who pays for each of its objects, a pointer for
    /// every place (since 5.9; "The new cgroup slab memory controller"). Of 7.2 guests have none where what is left of
    /// a slab has room for it.
    fn payers(self, tuning: &Tuning, layout: &Layout) -> Option<Self> {
        let bytes = layout.objects() * size_of::<u64>() as u32;
        if !self.geometry(tuning).accounted || (tuning.payers_in_rest && bytes <= layout.rest()) {
            return None;
        }
        Self::ALL.into_iter().find(|cache| cache.payers_size().is_some_and(|size| bytes <= size.into()))
    }
}

/// All caches.
#[derive(Debug, Clone)]
pub struct Slabs {
    /// By cgroup, if each has its own, and [`Cache`]. Those that were never used may be missing.
    pub(super) caches: Vec<SlabCache>,
    geometries: [Geometry; Cache::COUNT],
    layouts: [Layout; Cache::COUNT],
    free_objects: FreeObjects,
    pub(super) charge: ObjectCharge,
    cpu_nodes: Vec<NodeId>,
    nodes: usize,
    /// Bytes per object that accounting adds.
    pub(super) cgroup_overhead: u16,
    pub(super) rcu: Rcu,
    /// The cache of who pays for objects of each, if slabs do not have it themselves.
    payers_of: [Option<Cache>; Cache::COUNT],
    /// For each slab of a cache who pays for its objects. Left out: which is whose; the oldest goes first.
    pub(super) payers: [VecDeque<Object>; Cache::COUNT],
    /// Pages that came free with objects that did not wait for RCU.
    pub(super) pages_freed: u64,
    /// Pages of slabs that boot keeps: unreclaimable, reclaimable.
    kept: [u64; 2],
}

impl Slabs {
    /// Empty caches of a kernel on a machine of so many nodes; `cpu_nodes` has the node of each CPU.
    pub fn new(tuning: &Tuning, rules: &Rules, nodes: usize, cpu_nodes: Vec<NodeId>) -> Self {
        let cpus = u16::try_from(cpu_nodes.len()).expect("CPUs are numbered in 16 bits");
        let geometries = Cache::ALL.map(|cache| cache.geometry(tuning));
        let layouts = geometries.map(|geometry| Layout::new(geometry, cpus, tuning));
        let by_object = rules.object_charge == ObjectCharge::ByObject;
        let payers_of =
            Cache::ALL.map(|cache| cache.payers(tuning, &layouts[cache as usize]).filter(|_| by_object));
        let mut slabs = Self {
            caches: Vec::new(),
            geometries,
            layouts,
            free_objects: rules.free_objects,
            charge: rules.object_charge,
            cpu_nodes,
            nodes,
            cgroup_overhead: tuning.object_cgroup_overhead,
            rcu: Rcu::default(),
            payers_of,
            payers: [const { VecDeque::new() }; Cache::COUNT],
            pages_freed: 0,
            kept: [0; 2],
        };
        slabs.make_caches(MemcgId::ROOT);
        slabs
    }

    /// Makes the caches of all cgroups up to this one.
    pub(super) fn make_caches(&mut self, memcg: MemcgId) {
        while self.caches.len() < (memcg.index() + 1) * Cache::COUNT {
            for layout in &self.layouts {
                self.caches.push(SlabCache::new(layout, self.free_objects, &self.cpu_nodes, self.nodes));
            }
        }
    }

    /// The place of the cache that objects of a cgroup are in.
    #[inline]
    pub(super) fn index(&self, cache: Cache, memcg: MemcgId) -> usize {
        match self.charge {
            ObjectCharge::ByObject => cache as usize,
            ObjectCharge::BySlab => (memcg.index() * Cache::COUNT) + cache as usize,
        }
    }

    fn of(&self, cache: Cache) -> impl Iterator<Item = &SlabCache> {
        self.caches[cache as usize..].iter().step_by(Cache::COUNT)
    }

    /// Objects of a cache in use; those that only wait for RCU are not.
    pub fn objects(&self, cache: Cache) -> u64 {
        self.of(cache).map(SlabCache::objects).sum::<u64>() - self.rcu.of(cache)
    }

    /// Objects that wait for the end of their grace period.
    pub fn awaiting_rcu(&self, cache: Cache) -> u64 {
        self.rcu.of(cache)
    }

    /// Places for objects on the slabs of a cache, and those of them that count as used: all but free ones on
    /// slabs which no CPU holds (`num_objs` and `active_objs` of `/proc/slabinfo`).
    pub fn places(&self, cache: Cache) -> (u64, u64) {
        let add = |sum: (u64, u64), slabs: (u64, u64)| (sum.0 + slabs.0, sum.1 + slabs.1);
        self.of(cache).map(SlabCache::places).fold((0, 0), add)
    }

    /// Slabs of a cache, for checks.
    pub fn blocks(&self, cache: Cache) -> impl Iterator<Item = SlabPages> + '_ {
        self.of(cache).flat_map(SlabCache::slabs)
    }

    /// The node that an object lies on.
    #[inline]
    pub fn node(&self, object: Object) -> NodeId {
        self.caches[self.index(object.cache, object.memcg)].node(object.slab)
    }

    /// The objects of a cache, and who pays for them.
    #[inline]
    pub fn geometry(&self, cache: Cache) -> Geometry {
        self.geometries[cache as usize]
    }

    /// What a new slab of `cache` needs beside its pages, to know who pays for its objects.
    pub fn payers_of(&self, cache: Cache) -> Option<Cache> {
        self.payers_of[cache as usize]
    }

    /// What a new slab of `cache` needs is with it until it goes.
    pub(crate) fn keep_payers(&mut self, cache: Cache, payers: Object) {
        self.payers[cache as usize].push_back(payers);
    }

    /// What slabs need to know who pays for their objects.
    pub(crate) fn payers(&self) -> impl Iterator<Item = &Object> {
        self.payers.iter().flatten()
    }

    /// How a cache lays its objects out.
    pub fn layout(&self, cache: Cache) -> Layout {
        self.layouts[cache as usize]
    }

    /// The order that a slab of `cache` is first tried with, and what is added to the request's
    /// flags.
    pub fn request(&self, cache: Cache) -> (Order, Gfp) {
        let gfp = if self.geometry(cache).reclaimable { Gfp::RECLAIMABLE_BIT } else { Gfp::default() };
        (self.layout(cache).order, gfp)
    }

    /// Boot keeps so many pages in slabs of caches that are not among these: unreclaimable, reclaimable.
    pub(crate) fn keep(&mut self, pages: [u64; 2]) {
        self.kept = pages;
    }

    /// Pages of all slabs of reclaimable or of other caches.
    pub fn pages(&self, reclaimable: bool) -> u64 {
        let caches = Cache::ALL.into_iter().filter(|&cache| self.geometry(cache).reclaimable == reclaimable);
        let used: u64 = caches.flat_map(|cache| self.of(cache)).map(SlabCache::pages).sum();
        used + self.kept[usize::from(reclaimable)]
    }

    /// Pages of all slabs of a cache.
    pub fn cache_pages(&self, cache: Cache) -> u64 {
        self.of(cache).map(SlabCache::pages).sum()
    }

    /// Pages that came free since boot with objects that did not wait for RCU: what a reclaimer frees of them in
    /// a step is its own doing (`reclaimed_slab`).
    pub fn pages_freed(&self) -> u64 {
        self.pages_freed
    }

    /// Whether objects wait for a grace period.
    pub fn needs_grace_period(&self) -> bool {
        !self.rcu.is_empty()
    }

    /// Whether an object was freed that waits for a grace period, while none was under way.
    #[inline]
    pub fn has_rcu_request(&self) -> bool {
        self.rcu.is_requested()
    }

    /// [`has_rcu_request`](Self::has_rcu_request), asked once.
    pub fn take_rcu_request(&mut self) -> bool {
        self.rcu.take_request()
    }

    /// Goes through all caches; returns what is wrong, and where.
    pub(crate) fn check(&self) -> Result<(), (Cache, &'static str)> {
        let mut all = self.caches.iter().zip(Cache::ALL.into_iter().cycle());
        all.try_for_each(|(slabs, cache)| slabs.check().map_err(|problem| (cache, problem)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::version::presets::Version;

    fn slabs(kernel: &str, cpus: usize) -> Slabs {
        let version = Version::parse(kernel).unwrap();
        Slabs::new(&version.tuning, &version.rules, 1, std_alloc::vec![NodeId(0); cpus])
    }

    #[test]
    fn slabs_hold_as_many_objects_as_were_counted() {
        // MECHANISMS-6X 7.1 and MECHANISMS-510-72 7.1 for guests of two CPUs, MECHANISMS 9.1 for 5.3 on eight.
        for (kernel, cpus, cache, order, objects) in [
            ("linux-6.1", 2, Cache::Dentry, 0, 21),
            ("linux-6.1", 2, Cache::Ext4Inode, 2, 13),
            ("linux-6.12", 2, Cache::Ext4Inode, 2, 14),
            ("linux-7.2", 2, Cache::Ext4Inode, 2, 15),
            ("linux-5.10", 2, Cache::Ext4Inode, 2, 13),
            ("linux-6.1", 2, Cache::XfsInode, 2, 16),
            ("linux-6.1", 2, Cache::XfsLogItem, 0, 20),
            ("linux-6.1", 2, Cache::BufferHead, 0, 39),
            ("linux-7.2", 2, Cache::BufferHead, 0, 42),
            ("linux-5.10", 2, Cache::TreeNode, 1, 14),
            ("linux-6.1", 2, Cache::TreeNode, 1, 14),
            ("linux-7.2", 2, Cache::TreeNode, 1, 14),
            ("linux-5.3", 8, Cache::Dentry, 0, 21),
            ("linux-5.3", 8, Cache::XfsInode, 3, 34),
            ("linux-5.3", 8, Cache::TreeNode, 2, 28),
        ] {
            let layout = slabs(kernel, cpus).layout(cache);
            assert_eq!((layout.order.0, layout.objects()), (order, objects), "{kernel} {}", cache.name());
            assert_eq!(layout.least_order, Order(0), "{kernel} {}", cache.name());
        }
    }

    #[test]
    fn sheaves_of_a_guest_hold_as_many_objects_as_were_counted() {
        // Two for each of two CPUs and ten in the barn: MECHANISMS-510-72 7.1.
        let slabs = slabs("linux-7.2", 2);
        for (cache, objects) in [
            (Cache::Dentry, 840),
            (Cache::XfsInode, 392),
            (Cache::Ext4Inode, 168),
            (Cache::TreeNode, 392),
            (Cache::BufferHead, 840),
        ] {
            assert_eq!((2 * 2 + 10) * slabs.layout(cache).sheaf, objects, "{}", cache.name());
        }
    }
}
