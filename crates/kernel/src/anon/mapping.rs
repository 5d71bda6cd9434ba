//! Anonymous memory: mappings, faults, `mlock` (MECHANISMS 6.1, 13.2).
//!
//! A page that was never there is faulted in by a write, alone or with a huge page ([`super::huge`]); one that is
//! swapped out comes back ([`crate::swap`]). Left out: copy on write, the zero page for reads.

use std::ops::Range;

use mm::base::event::Trace;
use mm::base::ids::AnonId;
use mm::pages::anon_swap::SwapFault;
use mm::swapping::Accessed;
use mm::version::rules::HugePages;
use units::Bytes;

use crate::anon::area::{AnonArea, AnonMapping, HugeAdvice};
use crate::anon::huge::HUGE_PAGES;
use crate::errno::Errno;
use crate::handle::Kernel;
use crate::machine::{CostOp, Machine};
use crate::tasks::process::Process;

impl<M: Machine, T: Trace> Kernel<M, T> {
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
        let anon = self.mem(|mem| mem.anon_create());
        let area = AnonArea { anon, file: None, shared: false, pages, advice: HugeAdvice::None };
        let mapping = AnonMapping { index: process.add_area(area), pages, base: 0 };
        self.khugepaged_enter(HugeAdvice::None);
        Ok(mapping)
    }

    /// The anonymous memory of each mapping of a process, of private ones of files its copies, with the mapping's
    /// number: 0 is what it has from the start.
    pub fn anon_of(&self, process: &Process) -> Vec<(usize, AnonId)> {
        let areas = process.0.anon.borrow();
        areas.iter().enumerate().filter_map(|(number, area)| Some((number, area.as_ref()?.anon))).collect()
    }

    /// `munmap`: frees the pages and the mapping.
    pub fn unmap_anonymous(&self, process: &Process, mapping: AnonMapping) {
        self.drop_pages(process, mapping);
        // A process that has ended unmapped everything.
        if let Some(area) = process.take_area(mapping.index) {
            let cpu = self.machine().current_cpu();
            if area.shared {
                process.0.shared_files.borrow_mut().remove(&mapping.index);
                self.put_shared();
            } else {
                self.mem(|mem| mem.anon_remove(cpu, area.anon));
            }
            if let Some(file) = area.file {
                self.mem(|mem| mem.unmap_area(cpu, file));
                process.0.mapped_files.borrow_mut().remove(&mapping.index);
                self.put_closed();
            }
            self.free_page_tables(process, mapping.index);
            process.0.locked.borrow_mut().unlock(mapping.index, 0..u32::MAX);
        }
    }

    /// `madvise(MADV_HUGEPAGE)` and `madvise(MADV_NOHUGEPAGE)` on the whole mapping.
    ///
    /// # Errors
    /// `Killed`.
    pub fn advise_huge(
        &self,
        process: &Process,
        mapping: AnonMapping,
        advice: HugeAdvice,
    ) -> Result<(), Errno> {
        process.check_alive()?;
        self.machine().charge(CostOp::Syscall, 1);
        if self.mem(|mem| mem.core.rules().huge_pages) == HugePages::Off {
            return Err(Errno::Inval);
        }
        if let Some(area) = &mut process.0.anon.borrow_mut()[mapping.index] {
            area.advice = advice;
        }
        self.khugepaged_enter(advice);
        Ok(())
    }

    /// `mincore`: pages present among `count` from `first`.
    ///
    /// # Errors
    /// `Inval` outside of the mapping.
    pub fn mapping_resident(
        &self,
        process: &Process,
        mapping: AnonMapping,
        first: u64,
        count: u64,
    ) -> Result<u64, Errno> {
        let range = page_range(mapping, first, count)?;
        let Some(area) = process.0.anon.borrow()[mapping.index] else { return Ok(0) };
        if let Some(file) = area.file {
            return Ok(self.file_resident(area, file, range));
        }
        Ok(u64::from(self.mem(|mem| mem.anon_resident(area.anon, range.start, range.end - range.start))))
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
        self.access(process, mapping, first, count, true).await
    }

    /// Reads a byte of each of `count` pages from `first`, as [`Self::touch`] writes them. Left out: that pages
    /// which were never written are all one page of zeroes then.
    ///
    /// # Errors
    /// As [`Self::touch`].
    pub async fn touch_reading(
        &self,
        process: &Process,
        mapping: AnonMapping,
        first: u64,
        count: u64,
    ) -> Result<(), Errno> {
        self.access(process, mapping, first, count, false).await
    }

    async fn access(
        &self,
        process: &Process,
        mapping: AnonMapping,
        first: u64,
        count: u64,
        write: bool,
    ) -> Result<(), Errno> {
        let range = page_range(mapping, first, count)?;
        let mut page = range.start;
        while page < range.end {
            process.check_alive()?;
            match self.access_present(process, mapping, page, write) {
                Some(accessed) => {
                    if accessed.is_fault {
                        self.machine().charge(CostOp::AccessFault, 1);
                        self.count_fault(process.memcg());
                    }
                    page = if accessed.is_huge { (page | (HUGE_PAGES - 1)) + 1 } else { page + 1 };
                }
                None => {
                    self.fault(process, mapping, page, write).await?;
                    self.handle_over_high(process).await; // Each fault returns to user mode.
                    page += 1;
                }
            }
        }
        self.return_to_user(process).await;
        Ok(())
    }

    /// Writes every byte of `count` pages from `first`.
    ///
    /// # Errors
    /// As [`Self::touch`].
    pub async fn fill(
        &self,
        process: &Process,
        mapping: AnonMapping,
        first: u64,
        count: u64,
    ) -> Result<(), Errno> {
        self.machine().charge(CostOp::ClearPage, count);
        self.touch(process, mapping, first, count).await
    }

    /// What is written to the mapping compresses to so many bytes a page, and what is there already does so, too.
    pub fn set_compressed_bytes(&self, process: &Process, mapping: AnonMapping, bytes: u16) {
        if let Some(area) = process.0.anon.borrow()[mapping.index] {
            self.mem(|mem| mem.anon.set_compressed(area.anon, bytes));
        }
    }

    /// Accesses the page at `page`, or the huge page that it is a part of; `None` if it is missing.
    fn access_present(
        &self,
        process: &Process,
        mapping: AnonMapping,
        page: u32,
        write: bool,
    ) -> Option<Accessed> {
        let area = self.area(process, mapping)?;
        match area.file {
            Some(file) => self.access_file(area, file, page, write),
            None => self.mem(|mem| mem.access_anon(area.anon, page, write)),
        }
    }

    async fn fault(
        &self,
        process: &Process,
        mapping: AnonMapping,
        page: u32,
        write: bool,
    ) -> Result<(), Errno> {
        match self.swapped_at(process, mapping, page, write) {
            Some(fault) => {
                if self.swap_fault(process, fault, mapping.pages as u32).await? {
                    self.count_major_fault(process);
                }
                self.access_present(process, mapping, page, write);
            }
            None if self.area(process, mapping).is_some_and(|area| area.file.is_some()) => {
                return self.file_fault(process, mapping, page, write).await;
            }
            None if self.area(process, mapping).is_some_and(|area| area.shared) => {
                self.make_page_table(process, mapping.index, page).await?;
                self.memory_file_fault(process, mapping, page).await?;
                self.access_present(process, mapping, page, write);
            }
            None => self.fault_in(process, mapping.index, page).await?,
        }
        self.count_fault(process.memcg());
        self.machine().return_to_user().await; // irqentry_exit
        Ok(())
    }

    /// A fault on a page that was never there.
    async fn fault_in(&self, process: &Process, mapping: usize, page: u32) -> Result<(), Errno> {
        self.make_page_table(process, mapping, page).await?;
        if !self.huge_fault(process, mapping, page).await? {
            let is_locked = process.0.locked.borrow().within(mapping, page..page + 1).is_some();
            self.machine().charge(if is_locked { CostOp::PopulatePage } else { CostOp::MinorFault }, 1);
            self.add_anon_page(process, mapping, page).await?;
        }
        Ok(())
    }

    /// The fault that an access to a page would be, if that is swapped out.
    pub(crate) fn swapped_at(
        &self,
        process: &Process,
        mapping: AnonMapping,
        index: u32,
        write: bool,
    ) -> Option<SwapFault> {
        let area = self.area(process, mapping)?;
        let slot = self.mem(|mem| mem.anon.swapped_at(area.anon, index))?;
        let locked = process.0.locked.borrow().within(mapping.index, index..index + 1).is_some();
        Some(SwapFault { anon: area.anon, index, slot, write, locked })
    }

    /// `mlock`: makes pages unevictable, those that are there, and those that it faults in. Children do not share the
    /// mapping from then on, as drivers of real kernels ask for (`MADV_DONTFORK`).
    ///
    /// # Errors
    /// As [`Self::touch`]; what was faulted in by then stays locked.
    pub async fn lock_memory(
        &self,
        process: &Process,
        mapping: AnonMapping,
        first: u64,
        count: u64,
    ) -> Result<(), Errno> {
        let range = page_range(mapping, first, count)?;
        process.check_alive()?;
        if self.area(process, mapping).is_some_and(|area| area.file.is_some() || area.shared) {
            return Err(Errno::NotSup); // Locked mappings of files are not modelled.
        }
        process.0.locked.borrow_mut().lock(mapping.index, range.clone());
        self.lock_new_pages(process, mapping.index, range);
        self.touch(process, mapping, first, count).await
    }

    /// `madvise(MADV_DONTNEED)` on the whole mapping: frees the pages.
    pub fn drop_pages(&self, process: &Process, mapping: AnonMapping) {
        self.unmap_pages(process, mapping, 0..u32::MAX);
    }

    /// `madvise(MADV_DONTNEED)` on `count` pages from `first`; a huge page that lies partly in there
    /// is split.
    ///
    /// # Errors
    /// `Inval` outside of the mapping.
    pub fn drop_page_range(
        &self,
        process: &Process,
        mapping: AnonMapping,
        first: u64,
        count: u64,
    ) -> Result<(), Errno> {
        let range = page_range(mapping, first, count)?;
        self.unmap_pages(process, mapping, range);
        Ok(())
    }

    /// Batches of this CPU go onto the lists before (`lru_add_drain`), and again as the pages are let go.
    fn unmap_pages(&self, process: &Process, mapping: AnonMapping, range: Range<u32>) {
        let cpu = self.machine().current_cpu();
        self.mem(|mem| mem.lru_drain(cpu));
        // What a mapping drops of a file in memory stays in the file.
        if let Some(area) = self.area(process, mapping).filter(|area| !area.shared) {
            let freed = self.mem(|mem| mem.anon_unmap(cpu, area.anon, range.start, range.end - range.start));
            self.machine().charge(CostOp::PcpFree, freed);
            // Only whole mappings of files are dropped.
            let of_file = if range == (0..u32::MAX) { self.zap_file_pages(cpu, &area) } else { 0 };
            self.mem(|mem| mem.gather(cpu, freed + of_file));
        }
        self.mem(|mem| mem.lru_drain(cpu));
    }
}

/// Pages as the mapping counts them.
///
/// # Errors
/// `Inval` outside of it.
pub(crate) fn page_range(mapping: AnonMapping, first: u64, count: u64) -> Result<Range<u32>, Errno> {
    let end = first.checked_add(count).ok_or(Errno::Inval)?;
    if end > mapping.pages {
        return Err(Errno::Inval);
    }
    let index = |n: u64| u32::try_from(u64::from(mapping.base) + n).map_err(|_| Errno::Inval);
    Ok(index(first)?..index(end)?)
}
