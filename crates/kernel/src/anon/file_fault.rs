//! Faults on mappings of files (`do_fault`, `filemap_fault`; MAPPED 2, 3).
//!
//! ```text
//!   read           around: what is in memory of the 16 pages --> done, if its own is among them
//!   any            missing: read around it, major; a marker: read on; being read: wait, and try again
//!   shared write   the page is made dirty (page_mkwrite), then mapped to be written to; the writer may have to pause
//!   private write  a copy is made, which is anonymous
//! ```
//! Left out: that whoever waits gives up the lock of its address space, and what that costs. Next:
//! [`crate::cache::mapped_readahead`], [`crate::cache::filemap`].

use std::ops::Range;

use mm::base::event::Trace;
use mm::base::frame::PageFlags;
use mm::base::ids::{AnonId, FileAreaId};
use mm::base::vmstat::{MemcgStat, VmEvent};
use mm::pages::mapped::{Access, AccessAdvice};
use mm::pages::tree::Slot;
use mm::swapping::Accessed;
use mm::version::rules::{FaultCount, MappedHits, WriteFault};
use units::{NodeId, PAGE_SIZE};

use crate::anon::area::{AnonArea, AnonMapping};
use crate::cache::look::Found;
use crate::errno::Errno;
use crate::files::descriptor::OpenFile;
use crate::handle::Kernel;
use crate::machine::{CostOp, Machine};
use crate::tasks::process::Process;

/// A fault and what has become of it.
struct FileFault<'a> {
    process: &'a Process,
    file: &'a OpenFile,
    area: FileAreaId,
    page: u32,
    /// The page in the file.
    index: u32,
    /// The copies of a private mapping.
    anon: AnonId,
    major: bool,
    tried_again: bool,
}

impl<M: Machine, T: Trace> Kernel<M, T> {
    /// A fault at a page of a file's mapping that the page table does not have, or not to be written to.
    ///
    /// # Errors
    /// `Inval` beyond the end of the file, and for a write to what may not be written to, where a program gets a
    /// signal; `NoMem`; `Killed`.
    pub(crate) async fn file_fault(
        &self,
        process: &Process,
        mapping: AnonMapping,
        page: u32,
        write: bool,
    ) -> Result<(), Errno> {
        self.make_page_table(process, mapping.index, page).await?;
        let (file, area) = self.mapped_file(process, mapping)?;
        let anon = self.area(process, mapping).ok_or(Errno::Killed)?.anon;
        let spec = self.mem(|mem| mem.cache.maps.area(area));
        let index = spec.first + page;
        if u64::from(index) * PAGE_SIZE >= file.inode.size.get() || (write && !spec.writable) {
            return Err(Errno::Inval);
        }
        let mut fault =
            FileFault { process, file: &file, area, page, index, anon, major: false, tried_again: false };
        process.0.in_file_fault.set(self.accesses_count(area));
        let done = match (write, spec.shared) {
            (true, false) => self.copy_fault(&mut fault, mapping).await,
            (true, true) => self.shared_fault(&mut fault).await,
            (false, _) => self.read_fault(&mut fault).await,
        };
        process.0.in_file_fault.set(false);
        self.count_file_fault(&fault);
        done?;
        self.machine().return_to_user().await; // irqentry_exit
        Ok(())
    }

    /// Whether a page that a fault reads counts as accessed by it.
    fn accesses_count(&self, area: FileAreaId) -> bool {
        self.mem(|mem| mem.cache.maps.advice(area)) == AccessAdvice::Normal
    }

    fn count_file_fault(&self, fault: &FileFault<'_>) {
        let tries = match self.mem(|mem| mem.core.rules().fault_count) {
            FaultCount::Tries => 1 + u64::from(fault.tried_again),
            FaultCount::Completed => 1,
        };
        let memcg = fault.process.memcg();
        self.machine().charge(if fault.major { CostOp::MajorFault } else { CostOp::MinorFault }, 1);
        self.mem(|mem| {
            mem.core.alloc.events.add(VmEvent::PgFault, tries);
            mem.core.cgroups.add_stat(memcg, NodeId(0), MemcgStat::PgFault, tries);
            if fault.major {
                mem.core.alloc.events.add(VmEvent::PgMajFault, 1);
                mem.core.cgroups.add_stat(memcg, NodeId(0), MemcgStat::PgMajFault, 1);
            }
        });
    }

    /// Whether the mapping is still there.
    fn check_area(&self, fault: &FileFault<'_>) -> Result<(), Errno> {
        fault.process.check_alive()?;
        let has = |file: &OpenFile| file.mapping() == fault.file.mapping();
        let is_mapped = fault.process.0.mapped_files.borrow().values().any(has);
        if is_mapped { Ok(()) } else { Err(Errno::Killed) }
    }

    /// `do_read_fault`.
    async fn read_fault(&self, fault: &mut FileFault<'_>) -> Result<(), Errno> {
        loop {
            self.check_area(fault)?;
            if let Some(around) = self.mem(|mem| mem.map_around(fault.area, fault.anon, fault.page)) {
                self.machine().charge(CostOp::MapAround, u64::from(around.entries));
                fault.file.mapped_pages_found(match self.mem(|mem| mem.core.rules().mapped_hits) {
                    MappedHits::Around => around.found,
                    MappedHits::Wanted => u32::from(around.wanted && !fault.tried_again && !around.refaulted),
                });
                if around.wanted {
                    return Ok(());
                }
            }
            if self.find_for_fault(fault).await?
                && self.mem(|mem| mem.map_file_page(fault.area, fault.page, false))
            {
                return Ok(());
            }
        }
    }

    /// `do_shared_fault`, and `wp_page_shared` where the page is mapped already.
    async fn shared_fault(&self, fault: &mut FileFault<'_>) -> Result<(), Errno> {
        let is_present = self.mem(|mem| mem.cache.maps.is_present(fault.area, fault.page));
        loop {
            self.check_area(fault)?;
            if !self.find_for_fault(fault).await? {
                continue;
            }
            let inode = &fault.file.inode;
            let dirtied = self.dirty_page(fault.process, inode, fault.index).await?;
            self.check_area(fault)?;
            if dirtied && self.mem(|mem| mem.map_file_page(fault.area, fault.page, true)) {
                if self.dirtied_enough(fault.process) {
                    self.balance_dirty_pages(fault.process, inode.device).await;
                }
                fault.tried_again |= match self.mem(|mem| mem.core.rules().write_fault) {
                    WriteFault::Holding => false,
                    WriteFault::TriedAgain => true,
                    WriteFault::Completed => !is_present,
                };
                return Ok(());
            }
        }
    }

    /// `do_cow_fault`, and `wp_page_copy` where the page is mapped already. The copy is taken before the page is looked
    /// for; where the fault has to wait for that, it gives the copy back and takes another for its second try.
    async fn copy_fault(&self, fault: &mut FileFault<'_>, mapping: AnonMapping) -> Result<(), Errno> {
        let (mut copy, mut waited) = (self.new_anon_page(fault.process).await?, false);
        loop {
            let found = match self.check_area(fault) {
                Ok(()) => self.find_for_fault(fault).await,
                Err(errno) => Err(errno),
            };
            match found {
                Ok(true) => break,
                Ok(false) if waited => {}
                Ok(false) => {
                    self.drop_anon_page(copy);
                    (copy, waited) = (self.new_anon_page(fault.process).await?, true);
                }
                Err(errno) => {
                    self.drop_anon_page(copy);
                    return Err(errno);
                }
            }
        }
        self.place_anon_page(fault.process, mapping.index, fault.page, copy)?;
        let cpu = self.machine().current_cpu();
        self.mem(|mem| mem.zap_area_page(cpu, fault.area, fault.page));
        Ok(())
    }

    /// Looks for the page of a fault once, and reads it or waits for it if need be (`filemap_fault`). False: it is to
    /// be looked for again.
    async fn find_for_fault(&self, fault: &mut FileFault<'_>) -> Result<bool, Errno> {
        let FileFault { process, file, area, index, .. } = *fault;
        let advice = self.mem(|mem| mem.cache.maps.advice(area));
        let found = self.look(&file.inode, index);
        if !fault.tried_again && !matches!(found, Found::Missing) {
            file.mapped_pages_found(u32::from(advice != AccessAdvice::Random));
        }
        match found {
            Found::Ready(_) => return Ok(true),
            Found::Locked => self.wait_for_page(file.inode.mapping, index).await,
            Found::Marker(_) if advice == AccessAdvice::Random => return Ok(false),
            Found::Marker(order) => {
                // A failing readahead is no error of the fault.
                let _ = self.async_mapped_readahead(process, file, index, order).await;
            }
            Found::Missing => {
                fault.major |= !fault.tried_again;
                let is_code = self.mem(|mem| mem.cache.maps.area(area).executable);
                let _ = self.sync_mapped_readahead(process, file, index, advice, is_code).await;
                let slot = self.mem(|mem| mem.cache.find(file.inode.mapping, index));
                if !matches!(slot, Slot::Page(_)) {
                    self.read_one_page(process, &file.inode, index, self.shared.filesystem.page_gfp())
                        .await?;
                }
            }
        }
        fault.tried_again = true;
        Ok(false)
    }

    /// The file of a mapping, and its area.
    pub(crate) fn mapped_file(
        &self,
        process: &Process,
        mapping: AnonMapping,
    ) -> Result<(OpenFile, FileAreaId), Errno> {
        let area = self.area(process, mapping).and_then(|area| area.file);
        let file = process.0.mapped_files.borrow().get(&mapping.index).cloned();
        file.zip(area).ok_or(Errno::Killed)
    }

    /// Accesses a page of a file's mapping; none: that is a fault.
    pub(crate) fn access_file(
        &self,
        area: AnonArea,
        file: FileAreaId,
        page: u32,
        write: bool,
    ) -> Option<Accessed> {
        self.mem(|mem| match mem.access_area(file, page, write) {
            Access::Done => Some(Accessed { is_huge: false, is_fault: false }),
            Access::Fault => Some(Accessed { is_huge: false, is_fault: true }),
            // The copy of a private mapping, if there is one.
            Access::Missing | Access::ReadOnly => mem.access_anon(area.anon, page, write),
        })
    }

    /// `mincore` of a file's mapping: copies, and pages that are in memory, mapped or not.
    pub(crate) fn file_resident(&self, area: AnonArea, file: FileAreaId, range: Range<u32>) -> u64 {
        self.mem(|mem| {
            let spec = mem.cache.maps.area(file);
            let is_there = |&page: &u32| match mem.cache.find(spec.mapping, spec.first + page) {
                Slot::Page(pfn) => !mem.core.alloc.frames.flags(pfn).has(PageFlags::LOCKED),
                _ => false,
            };
            let is_copied = |page: &u32| mem.anon.find(area.anon, *page).is_some();
            range.filter(|page| is_copied(page) || is_there(page)).count() as u64
        })
    }
}
