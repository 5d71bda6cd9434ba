//! Objects in use: allocating and freeing them, and who pays (MECHANISMS 9.1, MECHANISMS-6X 7.1).
//!
//! ```text
//!   create or open a file   --> dentry, inode, what the filesystem hangs on it (unreclaimable)
//!   a page at index > 0     --> page cache tree nodes
//!   a page written on ext4  --> one buffer head, until the page goes
//! ```
//! An allocation is made in rounds ([`Slabs::alloc_object`]): it says what it still needs, the
//! caller waits for that and asks again. Objects of accounted caches are charged by their size to
//! the cgroup of the task.
//!
//! Left out: the delay of RCU (freed objects are free at once). Neighbour: [`crate::slab::caches`].

use units::{CpuId, NodeId};

use crate::alloc::page_alloc::PageAllocator;
use crate::base::event::Trace;
use crate::base::ids::MemcgId;
use crate::base::vmstat::MemcgStat;
use crate::cgroup::tree::Memcgs;
use crate::slab::cache::{EmptySlab, SlabId};
use crate::slab::caches::Slabs;
use crate::version::geometry::{Cache, Geometry};

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
    /// Allocate a block with the cache's flags, hand it to [`Slabs::grow`], and ask again.
    NeedsSlab,
}

impl Slabs {
    /// Bytes that one object of `cache` is charged with.
    fn object_bytes(&self, cache: Cache) -> u32 {
        self.cache(cache).object_size() + u32::from(self.cgroup_overhead)
    }

    /// Tries to allocate an object for a task of `memcg`.
    pub fn alloc_object(
        &mut self,
        cgroups: &mut Memcgs,
        cpu: CpuId,
        cache: Cache,
        memcg: MemcgId,
    ) -> ObjectAlloc {
        let geometry = self.geometry(cache);
        let memcg = if geometry.accounted { memcg } else { MemcgId::ROOT };
        let bytes = self.object_bytes(cache);
        if !cgroups.consume_object_stock(cpu, memcg, bytes) {
            return ObjectAlloc::NeedsCharge { pages: bytes.div_ceil(units::PAGE_SIZE as u32) };
        }
        let Some(slab) = self.caches[cache as usize].alloc() else {
            cgroups.uncharge_object(cpu, memcg, bytes);
            return ObjectAlloc::NeedsSlab;
        };
        cgroups.add_stat(memcg, NodeId(0), slab_stat(geometry), u64::from(bytes));
        ObjectAlloc::Done(Object { cache, slab, memcg })
    }

    /// Frees an object; returns the pages that came free with it.
    pub fn free_object<T: Trace>(
        &mut self,
        alloc: &mut PageAllocator<T>,
        cgroups: &mut Memcgs,
        cpu: CpuId,
        object: Object,
    ) -> u64 {
        let Object { cache, slab, memcg } = object;
        let bytes = self.object_bytes(cache);
        cgroups.sub_stat(memcg, NodeId(0), slab_stat(self.geometry(cache)), u64::from(bytes));
        cgroups.uncharge_object(cpu, memcg, bytes);
        match self.caches[cache as usize].free(slab) {
            Some(EmptySlab { pfn, order }) => {
                alloc.free(cpu, pfn, order);
                u64::from(order.pages())
            }
            None => 0,
        }
    }
}

const fn slab_stat(geometry: Geometry) -> MemcgStat {
    if geometry.reclaimable { MemcgStat::SlabReclaimableBytes } else { MemcgStat::SlabUnreclaimableBytes }
}
