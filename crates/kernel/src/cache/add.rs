//! Adding pages to the page cache: allocated, charged, and put into the tree of their file
//! (`filemap_add_folio`).
//!
//! Next: [`super::filemap`] adds one page, [`super::readahead`] a window, [`super::io`] reads them.

use mm::MemcgId;
use mm::base::event::Trace;
use mm::base::gfp::Gfp;
use mm::decide::slow_path::SlowRequest;
use mm::pages::cache::Prepared;
use mm::pages::tree::Slot;
use mm::pages::window::Window;
use mm::version::geometry::Cache;
use units::{Order, Pfn};

use crate::alloc::purpose::Purpose;
use crate::errno::Errno;
use crate::files::inode::Inode;
use crate::handle::Kernel;
use crate::machine::{CostOp, Machine};
use crate::tasks::process::Process;

/// Where a page or folio goes in a file.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Place {
    /// Its first page.
    pub(crate) index: u32,
    pub(crate) order: Order,
    /// A read of it starts the next readahead window.
    pub(crate) marker: bool,
}

impl Place {
    /// A single page without a marker.
    pub(crate) const fn page(index: u32) -> Self {
        Self { index, order: Order(0), marker: false }
    }
}

impl<M: Machine, T: Trace> Kernel<M, T> {
    /// Allocates, charges and adds one locked page or folio (`filemap_add_folio`). False: the place
    /// was taken meanwhile.
    pub(crate) fn add_folio<'a>(
        &'a self,
        process: &'a Process,
        inode: &'a Inode,
        place: Place,
        gfp: Gfp,
    ) -> impl Future<Output = Result<bool, Errno>> + 'a {
        self.add_folio_for(Some(process), inode, place, gfp)
    }

    /// [`Kernel::add_folio`] for a process, or for a kernel thread, which charges nobody.
    pub(crate) async fn add_folio_for(
        &self,
        process: Option<&Process>,
        inode: &Inode,
        place: Place,
        gfp: Gfp,
    ) -> Result<bool, Errno> {
        let Place { index, order, marker } = place;
        let pfn = match self.alloc_at_once(gfp, order) {
            Some(pfn) => pfn,
            None => self.alloc_slow(Purpose::PageCache, process, gfp, order).await.ok_or(Errno::NoMem)?,
        };
        let added = self.charge_and_insert(process, inode, index, pfn, gfp).await;
        let cpu = self.machine().current_cpu();
        if added != Ok(true) {
            self.mem(|mem| mem.core.alloc.free(cpu, pfn, order));
            return added;
        }
        self.machine().charge(CostOp::PageCacheAdd, u64::from(order.pages()));
        self.mem(|mem| {
            if marker {
                mem.core.mark_readahead(pfn);
            }
            mem.lru_add(cpu, pfn);
        });
        Ok(true)
    }

    /// Adds single pages from the first of a window on, as [`Self::add_folio`] adds one after the other, as far as none
    /// of them has to wait for anything or wakes anybody. Returns the first place that is left.
    pub(crate) fn add_window(&self, process: &Process, window: &Window) -> u32 {
        if process.0.in_file_fault.get() {
            return window.pages.start;
        }
        let past = self.add_run(window);
        if past == window.pages.end || process.is_killed() || !self.would_wake_nobody(window.gfp) {
            return past;
        }
        let cpu = self.machine().current_cpu();
        let slow = self.mem(|mem| SlowRequest::first_try(mem, cpu, window.gfp));
        if slow.is_none() {
            return past;
        }
        let reached = self.add_run(&Window { slow, pages: past..window.pages.end, ..window.clone() });
        if reached > past {
            self.wake_all_kswapds(window.gfp, Order(0)); // Their requests are noted.
            self.machine().charge(CostOp::PcpAlloc, u64::from(reached - past)); // Walks in vain.
        }
        reached
    }

    /// Adds pages of a window in the fast path, or with its flags for the slow one.
    fn add_run(&self, window: &Window) -> u32 {
        let (machine, mut used) = (self.machine(), self.shared.used_frames.borrow_mut());
        let (cpu, mut fresh) = (machine.current_cpu(), 0);
        let each = |pages: &[Pfn]| fresh += used.use_singles(pages);
        let added = self.mem(|mem| mem.add_window(cpu, window, each));
        let count = u64::from(added.past - window.pages.start);
        machine.charge(CostOp::PcpAlloc, count);
        machine.charge(CostOp::PageCacheAdd, count);
        machine.charge(CostOp::PcpRefillPage, u64::from(added.refilled));
        machine.charge(CostOp::FirstUse, fresh);
        added.past
    }

    async fn charge_and_insert(
        &self,
        process: Option<&Process>,
        inode: &Inode,
        index: u32,
        pfn: Pfn,
        gfp: Gfp,
    ) -> Result<bool, Errno> {
        let memcg = process.map_or(MemcgId::ROOT, Process::memcg);
        let pages = self.mem(|mem| mem.core.alloc.frames.pages(pfn));
        if let Some(process) = process
            && memcg != MemcgId::ROOT
        {
            self.charge_pages(process, memcg, pages, gfp).await?;
        }
        let cpu = self.machine().current_cpu();
        let prepared = self.mem(|mem| mem.prepare_insert(cpu, inode.mapping, index, pages, memcg));
        if prepared != Prepared::Ready
            && let Err(errno) = self.prepare_tree(process, inode, index, pages, gfp, prepared).await
        {
            self.mem(|mem| mem.core.cgroups.uncharge(memcg, u64::from(pages)));
            return Err(errno);
        }
        Ok(self.mem(|mem| {
            let taken = (index..index + pages)
                .any(|index| matches!(mem.cache.find(inode.mapping, index), Slot::Page(_)));
            if taken {
                mem.core.cgroups.uncharge(memcg, u64::from(pages));
                return false;
            }
            mem.core.lock_page(pfn);
            if process.is_some_and(|process| process.0.in_file_fault.get()) {
                mem.fault_brings(pfn);
            }
            if let Some(shadow) = mem.insert_page(inode.mapping, index, pfn, memcg) {
                mem.refault(pfn, shadow, gfp);
            }
            true
        }))
    }

    /// Makes the tree nodes on the way to `index`, charging and allocating slab as needed: at first what the last try
    /// came to. They may wait and enter the filesystem as far as `gfp`, which the pages were allocated with, lets them.
    async fn prepare_tree(
        &self,
        process: Option<&Process>,
        inode: &Inode,
        index: u32,
        pages: u32,
        gfp: Gfp,
        mut prepared: Prepared,
    ) -> Result<(), Errno> {
        let memcg = process.map_or(MemcgId::ROOT, Process::memcg);
        let gfp = gfp.without(Gfp::MOVABLE_BIT).without(Gfp::WRITE).without(Gfp::COLD);
        loop {
            match prepared {
                Prepared::Ready => return Ok(()),
                Prepared::NeedsCharge { pages } => {
                    let process = process.expect("only the cgroup of a process is charged");
                    self.charge_objects(process, pages, gfp).await?;
                }
                Prepared::NeedsSlab => self.grow_slab(process, Cache::TreeNode, gfp).await?,
            }
            let cpu = self.machine().current_cpu();
            prepared = self.mem(|mem| mem.prepare_insert(cpu, inode.mapping, index, pages, memcg));
        }
    }
}
