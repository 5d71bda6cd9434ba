//! Taking objects and freeing them, and who pays (MECHANISMS 8.1, 9.1, MECHANISMS-6X 4.1, 7.1).
//!
//! ```text
//!   create or open a file   --> dentry, inode, what the filesystem hangs on it (unreclaimable)
//!   a page at index > 0     --> page cache tree nodes
//!   a page written on ext4  --> one buffer head, until the page goes
//! ```
//! An allocation is made in rounds ([`Slabs::alloc_object`]): it says what it still needs, the
//! caller waits for that and asks again. Objects of accounted caches are charged to the cgroup of the task:
//! since 5.9 by their size, out of a page that the CPU holds in advance; before that the slabs that they are on
//! are its own, and their pages are charged when they are made ([`Slabs::grow`]).
//!
//! Objects that RCU frees wait in [`crate::slab::rcu`], taken and charged, until a grace period has passed.
//! Neighbour: [`crate::slab::caches`].

use units::{CpuId, NodeId, PAGE_SIZE};

use crate::alloc::page_alloc::PageAllocator;
use crate::base::event::Trace;
use crate::base::ids::MemcgId;
use crate::base::vmstat::MemcgStat;
use crate::cgroup::tree::Memcgs;
use crate::slab::caches::Slabs;
use crate::slab::object::{Object, ObjectAlloc};
use crate::slab::table::SlabPages;
use crate::version::geometry::{Cache, Geometry};
use crate::version::rules::ObjectCharge;

impl Slabs {
    /// Bytes that one object of `cache` is charged with.
    fn object_bytes(&self, cache: Cache) -> u32 {
        u32::from(self.geometry(cache).object_size) + u32::from(self.cgroup_overhead)
    }

    /// Who pays for what a task of `memcg` takes from `cache`.
    fn payer(&self, cache: Cache, memcg: MemcgId) -> MemcgId {
        if self.geometry(cache).accounted { memcg } else { MemcgId::ROOT }
    }

    /// Tries to allocate an object for a task of `memcg`.
    pub fn alloc_object(
        &mut self,
        cgroups: &mut Memcgs,
        cpu: CpuId,
        cache: Cache,
        memcg: MemcgId,
    ) -> ObjectAlloc {
        let memcg = self.payer(cache, memcg);
        let place = self.index(cache, memcg);
        if self.charge == ObjectCharge::BySlab {
            let taken = self.caches.get_mut(place).and_then(|slabs| slabs.alloc(cpu));
            return taken
                .map_or(ObjectAlloc::NeedsSlab, |slab| ObjectAlloc::Done(Object { cache, slab, memcg }));
        }
        let bytes = self.object_bytes(cache);
        if !cgroups.consume_object_stock(cpu, memcg, bytes) {
            return ObjectAlloc::NeedsCharge { pages: bytes.div_ceil(PAGE_SIZE as u32) };
        }
        let Some(slab) = self.caches[place].alloc(cpu) else {
            cgroups.uncharge_object(cpu, memcg, bytes);
            return ObjectAlloc::NeedsSlab;
        };
        cgroups.add_stat(memcg, NodeId(0), slab_stat(self.geometry(cache)), u64::from(bytes));
        ObjectAlloc::Done(Object { cache, slab, memcg })
    }

    /// Who is to be charged with the pages of a slab of `cache` that a task of `memcg` makes, before it hands
    /// them over; none where pages of slabs are not charged.
    pub fn slab_payer(&self, cache: Cache, memcg: MemcgId) -> Option<MemcgId> {
        let payer = self.payer(cache, memcg);
        (self.charge == ObjectCharge::BySlab && payer != MemcgId::ROOT).then_some(payer)
    }

    /// Hands a block on `node`, charged where it is to be ([`Self::slab_payer`]), to a cache.
    pub fn grow(
        &mut self,
        cgroups: &mut Memcgs,
        cpu: CpuId,
        cache: Cache,
        memcg: MemcgId,
        pages: SlabPages,
        node: NodeId,
    ) {
        let memcg = self.payer(cache, memcg);
        if self.charge == ObjectCharge::BySlab {
            self.make_caches(memcg);
            let bytes = u64::from(pages.order.pages()) * PAGE_SIZE;
            cgroups.add_stat(memcg, NodeId(0), slab_stat(self.geometry(cache)), bytes);
            if memcg != MemcgId::ROOT {
                cgroups.count_kernel_pages(memcg, u64::from(pages.order.pages()));
            }
        }
        let place = self.index(cache, memcg);
        self.caches[place].grow(cpu, pages, node);
    }

    /// Frees an object, or lets it wait for RCU; returns the pages that came free with it.
    pub fn free_object<T: Trace>(
        &mut self,
        alloc: &mut PageAllocator<T>,
        cgroups: &mut Memcgs,
        cpu: CpuId,
        object: Object,
    ) -> u64 {
        if !object.cache.waits_for_rcu() {
            let pages = self.free_now(alloc, cgroups, cpu, object);
            self.pages_freed += pages;
            return pages;
        }
        if self.rcu.defer(object) {
            let _ = self.grace_period_ended(alloc, cgroups, cpu);
        }
        0
    }

    /// Frees the objects that waited for a grace period, which is over, on `cpu`: how many. Those that came
    /// meanwhile wait for the next one.
    pub fn grace_period_ended<T: Trace>(
        &mut self,
        alloc: &mut PageAllocator<T>,
        cgroups: &mut Memcgs,
        cpu: CpuId,
    ) -> u64 {
        let over = self.rcu.period_ended();
        for &object in &over {
            self.free_now(alloc, cgroups, cpu, object);
        }
        let freed = over.len() as u64;
        self.rcu.recycle(over);
        freed
    }

    fn free_now<T: Trace>(
        &mut self,
        alloc: &mut PageAllocator<T>,
        cgroups: &mut Memcgs,
        cpu: CpuId,
        object: Object,
    ) -> u64 {
        let Object { cache, slab, memcg } = object;
        let memcg = cgroups.heir(memcg);
        let place = self.index(cache, memcg);
        if self.charge == ObjectCharge::ByObject {
            let bytes = self.object_bytes(cache);
            cgroups.sub_stat(memcg, NodeId(0), slab_stat(self.geometry(cache)), u64::from(bytes));
            cgroups.uncharge_object(cpu, memcg, bytes);
        }
        self.caches[place].free(cpu, slab);
        let mut freed = 0;
        while let Some(SlabPages { pfn, order }) = self.caches[place].take_freed() {
            alloc.free(cpu, pfn, order);
            freed += u64::from(order.pages());
            if let Some(payers) = self.payers[cache as usize].pop_front() {
                freed += self.free_now(alloc, cgroups, cpu, payers);
            }
        }
        if freed > 0 && self.charge == ObjectCharge::BySlab {
            cgroups.sub_stat(memcg, NodeId(0), slab_stat(self.geometry(cache)), freed * PAGE_SIZE);
            if memcg != MemcgId::ROOT {
                cgroups.uncount_kernel_pages(memcg, freed);
                cgroups.uncharge(memcg, freed);
            }
        }
        freed
    }
}

const fn slab_stat(geometry: Geometry) -> MemcgStat {
    if geometry.reclaimable { MemcgStat::SlabReclaimableBytes } else { MemcgStat::SlabUnreclaimableBytes }
}
