//! The slab caches of kernel objects that files cost (MECHANISMS 9.1, MECHANISMS-6X 7.1): which
//! there are, how large their slabs are, and which mobility type their pages have.
//!
//! ```text
//!   create or open a file   --> dentry, inode, what the filesystem hangs on it (unreclaimable)
//!   a page at index > 0     --> page cache tree nodes
//!   a page written on ext4  --> one buffer head, until the page goes
//! ```
//! An allocation is made in rounds ([`Memory::alloc_object`]): it says what it still needs, the
//! caller waits for that and asks again. Objects of accounted caches are charged by their size to
//! the cgroup of the task.
//!
//! Left out: the delay of RCU (freed objects are free at once), objects of directories, NUMA
//! placement of objects. Neighbours: [`crate::slab::cache`] for one cache, [`crate::fs::inode`] for the
//! owners of most objects.

use units::{CpuId, NodeId, Order, Pfn};

use crate::base::event::Trace;
use crate::base::gfp::Gfp;
use crate::base::ids::MemcgId;
use crate::base::vmstat::MemcgStat;
use crate::memory::Memory;
use crate::slab::cache::{EmptySlab, SlabCache, SlabId};
use crate::version::feature::Tuning;
use crate::version::geometry::{Cache, Geometry, geometry};

impl Cache {
    /// Its geometry in a kernel with these constants.
    pub fn geometry(self, tuning: &Tuning) -> Geometry {
        match self {
            Self::TreeNode => geometry(tuning.tree_node_size, tuning.tree_node_slab_order, true, true),
            other => tuning.file_caches[other as usize - 1],
        }
    }
}

/// All caches.
#[derive(Debug, Clone)]
pub struct Slabs([SlabCache; Cache::COUNT]);

impl Slabs {
    /// Empty caches of a kernel with these constants.
    pub fn new(tuning: &Tuning) -> Self {
        Self(Cache::ALL.map(|cache| {
            let geometry = cache.geometry(tuning);
            SlabCache::new(u32::from(geometry.object_size), Order(geometry.order))
        }))
    }

    /// One of them.
    pub fn cache(&self, cache: Cache) -> &SlabCache {
        &self.0[cache as usize]
    }

    pub(crate) fn cache_mut(&mut self, cache: Cache) -> &mut SlabCache {
        &mut self.0[cache as usize]
    }
}

/// An object in use: where it lies and who pays for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Object {
    /// Its cache.
    pub cache: Cache,
    /// The slab that it lies in.
    pub slab: SlabId,
    /// The cgroup that it is charged to; the root if it is not accounted.
    pub memcg: MemcgId,
}

/// What an allocation came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub enum ObjectAlloc {
    /// Here it is.
    Done(Object),
    /// Charge this many pages of kernel memory to the cgroup, tell
    /// [`crate::cgroup::tree::Memcgs::object_pages_charged`], and ask again.
    NeedsCharge {
        /// Pages to charge.
        pages: u32,
    },
    /// Allocate a block with the cache's flags, hand it to [`Memory::grow_slab`], and ask again.
    NeedsSlab,
}

impl<T: Trace> Memory<T> {
    /// Bytes that one object of `cache` is charged with.
    fn object_bytes(&self, cache: Cache) -> u32 {
        let tuning = &self.alloc.kernel.tuning;
        self.slabs.cache(cache).object_size() + u32::from(tuning.object_cgroup_overhead)
    }

    /// Tries to allocate an object for a task of `memcg`.
    pub fn alloc_object(&mut self, cpu: CpuId, cache: Cache, memcg: MemcgId) -> ObjectAlloc {
        let geometry = cache.geometry(&self.alloc.kernel.tuning);
        let memcg = if geometry.accounted { memcg } else { MemcgId::ROOT };
        let bytes = self.object_bytes(cache);
        if !self.memcgs.consume_object_stock(cpu, memcg, bytes) {
            return ObjectAlloc::NeedsCharge { pages: bytes.div_ceil(units::PAGE_SIZE as u32) };
        }
        let Some(slab) = self.slabs.cache_mut(cache).alloc() else {
            self.memcgs.uncharge_object(cpu, memcg, bytes);
            return ObjectAlloc::NeedsSlab;
        };
        self.memcgs.add_stat(memcg, NodeId(0), slab_stat(geometry), u64::from(bytes));
        ObjectAlloc::Done(Object { cache, slab, memcg })
    }

    /// Frees an object; returns the pages that came free with it.
    pub fn free_object(&mut self, cpu: CpuId, object: Object) -> u64 {
        let Object { cache, slab, memcg } = object;
        let bytes = self.object_bytes(cache);
        let stat = slab_stat(cache.geometry(&self.alloc.kernel.tuning));
        self.memcgs.sub_stat(memcg, NodeId(0), stat, u64::from(bytes));
        self.memcgs.uncharge_object(cpu, memcg, bytes);
        match self.slabs.cache_mut(cache).free(slab) {
            Some(EmptySlab { pfn, order }) => {
                self.alloc.free(cpu, pfn, order);
                u64::from(order.pages())
            }
            None => 0,
        }
    }

    /// The order that a slab of `cache` is first tried with, and what is added to the request's
    /// flags.
    pub fn slab_request(&self, cache: Cache) -> (Order, Gfp) {
        let geometry = cache.geometry(&self.alloc.kernel.tuning);
        let gfp = if geometry.reclaimable { Gfp::RECLAIMABLE_BIT } else { Gfp::default() };
        (Order(geometry.order), gfp)
    }

    /// Hands a block to a cache.
    pub fn grow_slab(&mut self, cache: Cache, pfn: Pfn) {
        let order = self.alloc.frames.order(pfn);
        self.slabs.cache_mut(cache).grow(pfn, order);
    }

    /// Pages of all slabs of reclaimable or of other caches.
    pub fn slab_pages(&self, reclaimable: bool) -> u64 {
        let tuning = &self.alloc.kernel.tuning;
        Cache::ALL
            .iter()
            .filter(|cache| cache.geometry(tuning).reclaimable == reclaimable)
            .map(|&cache| self.slabs.cache(cache).pages())
            .sum()
    }
}

const fn slab_stat(geometry: Geometry) -> MemcgStat {
    if geometry.reclaimable { MemcgStat::SlabReclaimableBytes } else { MemcgStat::SlabUnreclaimableBytes }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::version::feature::Kernel;
    use units::PAGE_SIZE;

    #[test]
    fn slabs_hold_as_many_objects_as_were_counted() {
        // MECHANISMS-6X 7.1 for 6.1 and 6.12, MECHANISMS 9.1 for 5.3.
        let objects = |kernel: &str, cache: Cache| {
            let geometry = cache.geometry(&Kernel::parse(kernel).unwrap().tuning);
            (PAGE_SIZE << geometry.order) / u64::from(geometry.object_size)
        };
        for (kernel, cache, expected) in [
            ("linux-6.1", Cache::Dentry, 21),
            ("linux-6.1", Cache::Ext4Inode, 13),
            ("linux-6.12", Cache::Ext4Inode, 14),
            ("linux-6.1", Cache::XfsInode, 16),
            ("linux-6.1", Cache::XfsLogItem, 20),
            ("linux-6.1", Cache::BufferHead, 39),
            ("linux-6.1", Cache::TreeNode, 14),
            ("linux-5.3", Cache::XfsInode, 34),
            ("linux-5.3", Cache::TreeNode, 28),
        ] {
            assert_eq!(objects(kernel, cache), expected, "{kernel} {}", cache.name());
        }
    }
}
