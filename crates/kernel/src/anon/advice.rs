//! What programs say of their memory: `madvise` with `MADV_FREE`, `MADV_COLD`, `MADV_PAGEOUT` (SWAP 2.8), and
//! `MADV_WILLNEED` of what is swapped out. Next: [`super::mapping`], and `pages/advice.rs` of `mm`.

use mm::base::event::Trace;
use mm::swapping::SwapLook;
use mm::version::rules::{ColdAdvice, LazyFree};

use crate::anon::area::AnonMapping;
use crate::anon::mapping::page_range;
use crate::errno::Errno;
use crate::handle::Kernel;
use crate::machine::{CostOp, Machine};
use crate::tasks::process::Process;

/// Pages that `MADV_PAGEOUT` hands to reclaim at once: of one page table.
const AT_ONCE: u32 = 512;

impl<M: Machine, T: Trace> Kernel<M, T> {
    /// `MADV_FREE` on `count` pages from `first`: they are given up until they are written to again.
    ///
    /// # Errors
    /// `Inval` outside of the mapping, of memory that is shared or a file's, and where the version knows no such
    /// advice; `Killed`.
    pub fn advise_free(
        &self,
        process: &Process,
        mapping: AnonMapping,
        first: u64,
        count: u64,
    ) -> Result<(), Errno> {
        process.check_alive()?;
        self.machine().charge(CostOp::Syscall, 1);
        let range = page_range(mapping, first, count)?;
        if self.mem(|mem| mem.core.rules().lazy_free) == LazyFree::Unknown {
            return Err(Errno::Inval);
        }
        if let Some(area) = self.area(process, mapping) {
            if area.shared || area.file.is_some() {
                return Err(Errno::Inval);
            }
            let cpu = self.machine().current_cpu();
            self.mem(|mem| mem.anon_give_up(cpu, area.anon, range.start, range.end - range.start));
        }
        Ok(())
    }

    /// `MADV_COLD` on `count` pages from `first`: they count as not accessed.
    ///
    /// # Errors
    /// As [`Self::advise_free`].
    pub fn advise_cold(
        &self,
        process: &Process,
        mapping: AnonMapping,
        first: u64,
        count: u64,
    ) -> Result<(), Errno> {
        process.check_alive()?;
        self.machine().charge(CostOp::Syscall, 1);
        let range = page_range(mapping, first, count)?;
        self.knows_cold_advice()?;
        if let Some(area) = self.area(process, mapping) {
            let cpu = self.machine().current_cpu();
            let (first, count) = (range.start, range.end - range.start);
            self.mem(|mem| {
                mem.anon_cool(cpu, area.anon, first, count);
                if let Some(file) = area.file {
                    mem.file_cool(cpu, file, first, count);
                }
            });
        }
        Ok(())
    }

    /// `MADV_PAGEOUT` on `count` pages from `first`: they are swapped out now, and those of a file leave the cache.
    ///
    /// # Errors
    /// As [`Self::advise_free`].
    pub async fn advise_pageout(
        &self,
        process: &Process,
        mapping: AnonMapping,
        first: u64,
        count: u64,
    ) -> Result<(), Errno> {
        process.check_alive()?;
        self.machine().charge(CostOp::Syscall, 1);
        let range = page_range(mapping, first, count)?;
        self.knows_cold_advice()?;
        let mut at = range.start;
        while at < range.end {
            process.check_alive()?;
            let Some(area) = self.area(process, mapping) else { return Ok(()) };
            let end = (at - (at % AT_ONCE) + AT_ONCE).min(range.end);
            let cpu = self.machine().current_cpu();
            let report = self.mem(|mem| mem.anon_page_out(cpu, area.anon, at, end - at));
            self.pay_for_chunk(report);
            if let Some(file) = area.file {
                let report = self.mem(|mem| mem.file_page_out(cpu, file, at, end - at));
                self.pay_for_chunk(report);
            }
            self.write_to_swap().await;
            self.machine().cond_resched().await; // madvise_cold_or_pageout_pte_range
            at = end;
        }
        self.return_to_user(process).await;
        Ok(())
    }

    /// `MADV_WILLNEED`: begins to read what is not in memory of a mapping, of a file as [`Self::read_range`] does, of
    /// memory all that is swapped out, into the swap cache; nothing of that counts as read ahead (measured, guests of
    /// 5.10 to 7.2). Where there is no memory for a page, it ends.
    ///
    /// # Errors
    /// `NotSup` for memory that is shared; `Killed`.
    pub async fn advise_will_need(&self, process: &Process, mapping: AnonMapping) -> Result<(), Errno> {
        process.check_alive()?;
        self.machine().charge(CostOp::Syscall, 1);
        if self.maps_file(process, mapping) {
            return self.read_mapping_ahead(process, mapping).await;
        }
        if self.area(process, mapping).is_some_and(|area| area.shared) {
            return Err(Errno::NotSup);
        }
        for index in 0..u32::try_from(mapping.pages()).expect("a mapping has an index for each page") {
            process.check_alive()?;
            let Some(fault) = self.swapped_at(process, mapping, index, false) else { continue };
            if !matches!(self.mem(|mem| mem.look_swapped(fault)), SwapLook::Bypass | SwapLook::Read) {
                continue; // It is in the swap cache.
            }
            let slot = fault.slot;
            match self.begin_to_read(process, slot, false).await {
                Ok(true) => self.read_swap(&[slot]),
                Ok(false) => {}
                Err(_) => break,
            }
        }
        self.return_to_user(process).await;
        Ok(())
    }

    fn knows_cold_advice(&self) -> Result<(), Errno> {
        match self.mem(|mem| mem.core.rules().cold_advice) {
            ColdAdvice::Unknown => Err(Errno::Inval),
            ColdAdvice::Heeded => Ok(()),
        }
    }
}
