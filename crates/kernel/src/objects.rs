//! Allocating memory of the kernel's own: objects of slab caches and whole pages, charged to a cgroup,
//! with reclaim where that is allowed (MECHANISMS 9.1).

use mm::MemcgId;
use mm::base::event::Trace;
use mm::base::gfp::Gfp;
use mm::slab::object::{Object, ObjectAlloc};
use mm::version::geometry::Cache;
use units::{Order, Pfn};

use crate::errno::Errno;
use crate::handle::Kernel;
use crate::machine::{CostOp, Machine};
use crate::tasks::process::Process;

impl<M: Machine, T: Trace> Kernel<M, T> {
    /// Allocates an object for `process` (`kmem_cache_alloc`); accounted caches are charged to its
    /// cgroup. A kernel thread has no process, and the root pays for nothing.
    ///
    /// # Errors
    /// `NoMem`; `Killed`.
    pub(crate) async fn alloc_object(
        &self,
        process: Option<&Process>,
        cache: Cache,
        gfp: Gfp,
    ) -> Result<Object, Errno> {
        let memcg = process.map_or(MemcgId::ROOT, Process::memcg);
        loop {
            let cpu = self.machine().current_cpu();
            match self.mem(|mem| mem.alloc_object(cpu, cache, memcg)) {
                ObjectAlloc::Done(object) => {
                    self.machine().charge(CostOp::SlabObject, 1);
                    return Ok(object);
                }
                ObjectAlloc::NeedsCharge { pages } => {
                    let process = process.expect("only the cgroup of a process is charged");
                    self.charge_objects(process, pages, gfp).await?;
                }
                ObjectAlloc::NeedsSlab => self.grow_slab(process, cache, gfp).await?,
            }
        }
    }

    /// Charges whole pages for objects to the cgroup of `process`.
    pub(crate) async fn charge_objects(&self, process: &Process, pages: u32, gfp: Gfp) -> Result<(), Errno> {
        let memcg = process.memcg();
        self.charge_pages(process, memcg, pages, gfp | Gfp::ACCOUNT).await?;
        let cpu = self.machine().current_cpu();
        self.mem(|mem| mem.core.cgroups.object_pages_charged(cpu, memcg, pages));
        Ok(())
    }

    /// Gives a cache a new slab: first of its preferred order without reclaim, then one page with
    /// it.
    pub(crate) async fn grow_slab(
        &self,
        process: Option<&Process>,
        cache: Cache,
        gfp: Gfp,
    ) -> Result<(), Errno> {
        let (order, mobility) = self.mem(|mem| mem.slab_request(cache));
        let gfp = gfp | mobility;
        let easy =
            gfp.without(Gfp::DIRECT_RECLAIM).without(Gfp::KSWAPD_RECLAIM) | Gfp::NORETRY | Gfp::NOMEMALLOC;
        let block = match self.alloc_pages(process, easy, order).await {
            Some(pfn) => Some(pfn),
            None => self.alloc_pages(process, gfp, Order(0)).await,
        };
        let pfn = block.ok_or(Errno::NoMem)?;
        self.mem(|mem| mem.grow_slab(cache, pfn));
        Ok(())
    }

    /// An unmovable page of kernel memory, charged to the process's cgroup.
    pub(crate) async fn alloc_kernel_page(&self, process: &Process) -> Result<Pfn, Errno> {
        let gfp = Gfp::KERNEL | Gfp::ACCOUNT;
        self.charge_pages(process, process.memcg(), 1, gfp).await?;
        let Some(pfn) = self.alloc_pages(Some(process), gfp, Order(0)).await else {
            self.mem(|mem| mem.core.cgroups.uncharge(process.memcg(), 1));
            return Err(Errno::NoMem);
        };
        self.mem(|mem| mem.core.own_kernel_page(process.memcg(), pfn));
        Ok(pfn)
    }

    /// Gives a page of kernel memory back.
    pub(crate) fn free_kernel_page(&self, process: &Process, pfn: Pfn) {
        let cpu = self.machine().current_cpu();
        self.mem(|mem| {
            mem.core.cgroups.uncount_kernel_pages(process.memcg(), 1);
            mem.core.cgroups.uncharge(process.memcg(), 1);
            mem.core.alloc.free(cpu, pfn, Order(0));
        });
    }
}
