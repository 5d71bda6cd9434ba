//! Anonymous memory: mappings, faults, `mlock` (MECHANISMS 6.1, 13.2).
//!
//! Every page is faulted in by a write. Left out: huge pages, swap, copy on write, page table
//! pages beyond a process's own.

use mm::event::Trace;
use mm::gfp::Gfp;
use mm::vmstat::{MemcgStat, VmEvent};
use units::{Bytes, NodeId, Order, PAGE_SIZE, Pfn};

use crate::kernel::Kernel;
use crate::machine::{CostOp, Machine};
use crate::task::{Errno, Process};

/// A private anonymous mapping of a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AnonMapping {
    index: usize,
    pages: usize,
}

impl AnonMapping {
    /// Its length in pages.
    pub fn pages(&self) -> usize {
        self.pages
    }
}

impl<M: Machine, T: Trace> Kernel<M, T> {
    /// Allocates, charges and lists one anonymous page.
    pub(crate) async fn alloc_anon_page(&self, process: &Process) -> Result<Pfn, Errno> {
        let gfp = Gfp::HIGHUSER_MOVABLE;
        let memcg = process.memcg();
        let pfn = self.alloc_pages(Some(process), gfp, Order(0)).await.ok_or(Errno::NoMem)?;
        let charged = self.charge_pages(process, memcg, 1, gfp).await;
        let cpu = self.machine().current_cpu();
        if let Err(errno) = charged {
            self.mem(|mem| mem.alloc.free(cpu, pfn, Order(0)));
            return Err(errno);
        }
        self.mem(|mem| mem.anon_add(cpu, pfn, memcg));
        self.machine().charge(CostOp::ClearPage, 1);
        Ok(pfn)
    }

    /// `mmap`: reserves addresses, no memory.
    ///
    /// # Errors
    /// `Inval` for an empty mapping; `NoMem` beyond 16 TiB; `Killed`.
    pub fn map_anonymous(&self, process: &Process, len: Bytes) -> Result<AnonMapping, Errno> {
        process.check_alive()?;
        self.machine().charge(CostOp::Syscall, 1);
        let pages = len.to_pages_ceil().0;
        if pages == 0 {
            return Err(Errno::Inval);
        }
        if pages >= u64::from(u32::MAX) {
            return Err(Errno::NoMem);
        }
        let pages = usize::try_from(pages).map_err(|_| Errno::NoMem)?;
        let mut mappings = process.0.anon.borrow_mut();
        mappings.push(Vec::new());
        Ok(AnonMapping { index: mappings.len() - 1, pages })
    }

    /// Writes to each of `count` pages from `first`, faulting in those that are missing.
    ///
    /// # Errors
    /// `Inval` outside of the mapping; `NoMem`; `Killed`.
    pub async fn touch(
        &self,
        process: &Process,
        mapping: AnonMapping,
        first: u64,
        count: u64,
    ) -> Result<(), Errno> {
        let range = page_range(mapping, first, count)?;
        for page in range {
            process.check_alive()?;
            if self.anon_page(process, mapping, page).is_none() {
                self.fault(process, mapping, page).await?;
            }
        }
        self.handle_over_high(process).await;
        self.machine().cond_resched().await; // return to user mode
        Ok(())
    }

    fn anon_page(&self, process: &Process, mapping: AnonMapping, page: usize) -> Option<Pfn> {
        process.0.anon.borrow()[mapping.index].get(page).copied().flatten()
    }

    async fn fault(&self, process: &Process, mapping: AnonMapping, page: usize) -> Result<(), Errno> {
        self.machine().charge(CostOp::MinorFault, 1);
        let pfn = self.alloc_anon_page(process).await?;
        self.mem(|mem| {
            mem.alloc.events.add(VmEvent::PgFault, 1);
            mem.memcgs.add_stat(process.memcg(), NodeId(0), MemcgStat::PgFault, 1);
        });
        if process.is_killed() {
            let cpu = self.machine().current_cpu();
            self.mem(|mem| mem.anon_free(cpu, pfn));
            return Err(Errno::Killed);
        }
        {
            let pages = &mut process.0.anon.borrow_mut()[mapping.index];
            if pages.len() <= page {
                pages.resize(page + 1, None);
            }
            pages[page] = Some(pfn);
        }
        self.machine().cond_resched().await; // irqentry_exit: a fault ends in user mode
        Ok(())
    }

    /// `mlock`: faults the pages in and makes them unevictable.
    ///
    /// # Errors
    /// As [`Self::touch`].
    pub async fn lock_memory(
        &self,
        process: &Process,
        mapping: AnonMapping,
        first: u64,
        count: u64,
    ) -> Result<(), Errno> {
        self.touch(process, mapping, first, count).await?;
        let cpu = self.machine().current_cpu();
        for page in page_range(mapping, first, count)? {
            if let Some(pfn) = self.anon_page(process, mapping, page) {
                self.mem(|mem| mem.mlock(cpu, pfn));
            }
        }
        Ok(())
    }

    /// `madvise(MADV_DONTNEED)` and `munmap`: frees the pages.
    pub fn drop_pages(&self, process: &Process, mapping: AnonMapping) {
        let cpu = self.machine().current_cpu();
        let pages = std::mem::take(&mut process.0.anon.borrow_mut()[mapping.index]);
        for pfn in pages.into_iter().flatten() {
            self.mem(|mem| mem.anon_free(cpu, pfn));
            self.machine().charge(CostOp::PcpFree, 1);
        }
    }
}

fn page_range(mapping: AnonMapping, first: u64, count: u64) -> Result<std::ops::Range<usize>, Errno> {
    let end = first.checked_add(count).ok_or(Errno::Inval)?;
    if end > mapping.pages as u64 || end.checked_mul(PAGE_SIZE).is_none() {
        return Err(Errno::Inval);
    }
    let index = |n: u64| usize::try_from(n).map_err(|_| Errno::Inval);
    Ok(index(first)?..index(end)?)
}
