//! Allocating memory of the kernel's own: objects of slab caches and whole pages, charged to a cgroup,
//! with reclaim where that is allowed (MECHANISMS 9.1); and the thread that ends grace periods.

use mm::MemcgId;
use mm::base::event::Trace;
use mm::base::gfp::Gfp;
use mm::slab::object::{Object, ObjectAlloc};
use mm::version::geometry::Cache;
use units::{Order, Pfn};

use crate::alloc::purpose::Purpose;
use crate::errno::Errno;
use crate::handle::Kernel;
use crate::machine::{CostOp, Machine, WaitReason};
use crate::tasks::process::{Process, STACK_ORDER};

/// Ticks from the begin of a grace period to its end: a tick until the thread of RCU first looks, and one until
/// every CPU has been through its own.
const GRACE_PERIOD_TICKS: u64 = 2;

impl<M: Machine, T: Trace> Kernel<M, T> {
    /// An object of a slab that is at hand, for a kernel thread.
    #[inline]
    pub(crate) fn object_at_hand(&self, cache: Cache) -> Option<Object> {
        let cpu = self.machine().current_cpu();
        let ObjectAlloc::Done(object) = self.mem(|mem| mem.alloc_object(cpu, cache, MemcgId::ROOT)) else {
            return None;
        };
        self.machine().charge(CostOp::SlabObject, 1);
        Some(object)
    }

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

    /// Ends grace periods of RCU, and frees the objects that waited for them, as softirqs do on every CPU.
    /// A period begins when there is something to be freed.
    pub(crate) async fn rcu(&self) {
        loop {
            let is_needed = self.mem(|mem| mem.core.slabs.needs_grace_period());
            if !is_needed && self.shared.processes.borrow().stacks.is_empty() {
                let _ = self.machine().wait(self.shared.rcu, WaitReason::Periodic, None).await;
            }
            let stacks = std::mem::take(&mut self.shared.processes.borrow_mut().stacks);
            let ticks = if self.is_uniprocessor() { 1 } else { GRACE_PERIOD_TICKS };
            self.machine().sleep(self.ticks(ticks), WaitReason::Periodic).await;
            self.end_grace_period(stacks);
        }
    }

    pub(crate) fn is_uniprocessor(&self) -> bool {
        self.machine().build().uniprocessor.is_some()
    }

    fn end_grace_period(&self, stacks: Vec<(Pfn, MemcgId)>) {
        let cpu = self.machine().current_cpu();
        let freed = self.mem(|mem| mem.grace_period_ended(cpu));
        self.machine().charge(CostOp::SlabObject, freed);
        self.free_stacks(stacks);
    }

    /// The program has ended, or dropped caches before it begins. On one CPU the monitor's turn ends each grace period.
    pub fn monitor_takes_over(&self) {
        if self.is_uniprocessor() {
            let stacks = std::mem::take(&mut self.shared.processes.borrow_mut().stacks);
            self.end_grace_period(stacks);
            while self.mem(|mem| mem.core.slabs.needs_grace_period()) {
                self.end_grace_period(Vec::new());
            }
        }
    }

    /// Frees the stacks of processes that ended before a grace period began: one after the other, so that a CPU takes
    /// it for a time of freeing blocks, and gives its lists back.
    fn free_stacks(&self, stacks: Vec<(Pfn, MemcgId)>) {
        for (stack, payer) in stacks {
            let payer = self.mem(|mem| mem.core.cgroups.heir(payer));
            self.free_kernel_pages(payer, stack, STACK_ORDER);
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

    /// Gives a cache a new slab (`allocate_slab`): of its preferred order, without reclaim and without waking
    /// kswapd where a smaller block would do; then of the least order with all that the request may do. Up to
    /// 5.8 its pages are charged ([`mm::slab::account`]).
    pub(crate) async fn grow_slab(
        &self,
        process: Option<&Process>,
        cache: Cache,
        gfp: Gfp,
    ) -> Result<(), Errno> {
        let memcg = process.map_or(MemcgId::ROOT, Process::memcg);
        let (order, mobility) = self.mem(|mem| mem.slab_request(cache));
        let least = self.mem(|mem| mem.core.slabs.layout(cache).least_order);
        let gfp = gfp | mobility;
        // A request that may not reclaim by itself wakes kswapd for the larger block.
        let first = if order > least && gfp.has(Gfp::DIRECT_RECLAIM) {
            gfp.without(Gfp::DIRECT_RECLAIM).without(Gfp::KSWAPD_RECLAIM) | Gfp::NORETRY | Gfp::NOMEMALLOC
        } else {
            gfp | Gfp::NORETRY
        };
        let purpose = Purpose::Slab(cache);
        let block = match self.alloc_pages_for(purpose, process, first, order).await {
            Some(pfn) => Some(pfn),
            None => self.alloc_pages_for(purpose, process, gfp, least).await,
        };
        let pfn = block.ok_or(Errno::NoMem)?;
        self.charge_slab(process, cache, pfn, gfp).await?;
        let payers = match self.mem(|mem| mem.core.slabs.payers_of(cache)) {
            Some(payers) => {
                Box::pin(self.alloc_object(process, payers, gfp.without(Gfp::RECLAIMABLE_BIT))).await.ok()
            }
            None => None,
        };
        let cpu = self.machine().current_cpu();
        self.mem(|mem| mem.grow_slab(cpu, cache, memcg, pfn));
        if let Some(payers) = payers {
            self.mem(|mem| mem.keep_slab_payers(cache, payers));
        }
        Ok(())
    }

    /// Charges the pages of a new slab, where those are charged, or gives them back.
    async fn charge_slab(
        &self,
        process: Option<&Process>,
        cache: Cache,
        pfn: Pfn,
        gfp: Gfp,
    ) -> Result<(), Errno> {
        let Some(process) = process else { return Ok(()) };
        let Some(payer) = self.mem(|mem| mem.core.slabs.slab_payer(cache, process.memcg())) else {
            return Ok(());
        };
        let order = self.mem(|mem| mem.core.alloc.frames.order(pfn));
        let charged = self.charge_pages(process, payer, order.pages(), gfp | Gfp::ACCOUNT).await;
        if charged.is_err() {
            let cpu = self.machine().current_cpu();
            self.mem(|mem| mem.core.alloc.free(cpu, pfn, order));
        }
        charged
    }

    /// An unmovable page of kernel memory, charged to the process's cgroup.
    pub(crate) async fn alloc_kernel_pages(&self, process: &Process, order: Order) -> Result<Pfn, Errno> {
        let gfp = Gfp::KERNEL | Gfp::ACCOUNT;
        self.charge_pages(process, process.memcg(), order.pages(), gfp).await?;
        let Some(pfn) = self.alloc_pages_for(Purpose::PageTable, Some(process), gfp, order).await else {
            self.mem(|mem| mem.core.cgroups.uncharge(process.memcg(), order.pages().into()));
            return Err(Errno::NoMem);
        };
        self.mem(|mem| mem.core.own_kernel_pages(process.memcg(), pfn, order));
        Ok(pfn)
    }

    /// Gives pages of kernel memory back that `payer` was charged for.
    pub(crate) fn free_kernel_pages(&self, payer: MemcgId, pfn: Pfn, order: Order) {
        let cpu = self.machine().current_cpu();
        self.mem(|mem| {
            mem.core.cgroups.uncount_kernel_pages(payer, order.pages().into());
            mem.core.cgroups.uncharge(payer, order.pages().into());
            mem.core.alloc.free(cpu, pfn, order);
        });
    }
}
