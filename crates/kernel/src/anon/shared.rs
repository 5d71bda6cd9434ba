//! Files in memory: tmpfs, `/dev/shm`, and memory that processes share, which is such a file without a name
//! (`shmem_file_read_iter`, `shmem_write_begin`, `shmem_fault`; SWAP 2, 3).
//!
//! ```text
//!   read    a page that is there: accessed     swapped out: brought back     a hole: nothing is allocated
//!   write                                                                    a hole: a page, charged to the writer
//!   fault   through a mapping: as write
//! ```
//! Its pages are page cache that lies on the anonymous lists: never written back, swapped out like anonymous memory,
//! and there to stay where there is no swap. They outlive the process that wrote them, until the file is cut or has
//! neither a name nor anybody who has it open or mapped; they count as `nr_shmem`, and `file` and `shmem` of a cgroup.
//!
//! Left out: the size of the mount, directories, dentries and inodes of such files, huge pages, large folios, more than
//! one page table for a page (a file is accessed through one), readahead of swap by the slots around a page. Next:
//! [`super::shared_file`], [`super::mapping`], [`crate::swap`].

use mm::base::event::Trace;
use mm::base::gfp::Gfp;
use mm::pages::anon_swap::SwapFault;
use units::{Bytes, Order, PAGE_SIZE};

use crate::alloc::purpose::Purpose;
use crate::anon::area::{AnonArea, AnonMapping, HugeAdvice};
use crate::anon::shared_file::SharedFile;
use crate::errno::Errno;
use crate::handle::Kernel;
use crate::machine::{CostOp, Machine};
use crate::tasks::process::Process;

/// Pages of a file at most.
const PAGES_MAX: u64 = (u32::MAX - 1) as u64;

impl<M: Machine, T: Trace> Kernel<M, T> {
    /// Opens a file in memory, or makes an empty one.
    ///
    /// # Errors
    /// `NoEnt`; `Exist` for a file to be made; `Killed`.
    pub fn open_shared(&self, process: &Process, name: &str, create: bool) -> Result<SharedFile, Errno> {
        process.check_alive()?;
        self.machine().charge(if create { CostOp::FileCreate } else { CostOp::FileOpen }, 1);
        let found = self.shared.shared_files.borrow().find(name);
        match (found, create) {
            (Some(_), true) => Err(Errno::Exist),
            (Some(file), false) => Ok(file),
            (None, false) => Err(Errno::NoEnt),
            (None, true) => {
                let anon = self.mem(|mem| mem.shared_create());
                Ok(self.shared.shared_files.borrow_mut().create(name, anon))
            }
        }
    }

    /// Memory that processes share: `mmap(MAP_SHARED | MAP_ANONYMOUS)` makes a file in memory without a name, and
    /// [`Self::map_shared`] maps it (`shmem_zero_setup`).
    ///
    /// # Errors
    /// `Inval` for none; `NoMem` beyond 16 TiB; `Killed`.
    pub fn share_memory(&self, process: &Process, len: Bytes) -> Result<SharedFile, Errno> {
        process.check_alive()?;
        let pages = len.to_pages_ceil().0;
        if pages == 0 {
            return Err(Errno::Inval);
        }
        if pages > PAGES_MAX {
            return Err(Errno::NoMem);
        }
        let anon = self.mem(|mem| mem.shared_create());
        Ok(self.shared.shared_files.borrow().nameless(anon, pages * PAGE_SIZE))
    }

    /// The size of a file in memory by its name.
    ///
    /// # Errors
    /// `NoEnt`.
    pub fn shared_size(&self, name: &str) -> Result<Bytes, Errno> {
        self.machine().charge(CostOp::FileOpen, 1);
        let found = self.shared.shared_files.borrow().find(name);
        found.map(|file| Bytes(file.size.get())).ok_or(Errno::NoEnt)
    }

    /// `read(2)`: returns the bytes that lay before the end of the file. Where nothing was written it reads zeroes,
    /// and no page comes of that.
    ///
    /// # Errors
    /// `NoMem` for a page that is swapped out; `Killed`.
    pub async fn read_shared(
        &self,
        process: &Process,
        file: &SharedFile,
        offset: u64,
        len: u64,
    ) -> Result<u64, Errno> {
        process.check_alive()?;
        self.machine().charge(CostOp::Syscall, 1);
        let end = offset.saturating_add(len).min(file.size.get());
        if end <= offset {
            return Ok(0);
        }
        for index in pages_of(offset, end)? {
            if self.bring_shared(process, file, index).await? {
                self.access_shared(file, index, false);
            }
            self.machine().charge(CostOp::CopyPage, 1);
        }
        self.return_to_user(process).await;
        Ok(end - offset)
    }

    /// `write(2)`. The file grows if need be.
    ///
    /// # Errors
    /// `NoMem`; `Killed`; `Inval` beyond 16 TiB.
    pub async fn write_shared(
        &self,
        process: &Process,
        file: &SharedFile,
        offset: u64,
        len: u64,
    ) -> Result<u64, Errno> {
        process.check_alive()?;
        self.machine().charge(CostOp::Syscall, 1);
        let end = offset.checked_add(len).ok_or(Errno::Inval)?;
        for index in pages_of(offset, end)? {
            while !self.bring_shared(process, file, index).await? {
                self.add_shared_page(process, file, index).await?;
            }
            self.access_shared(file, index, true);
            self.machine().charge(CostOp::CopyPage, 1);
            let written = end.min(u64::from(index + 1) * PAGE_SIZE);
            file.size.set(file.size.get().max(written));
        }
        self.return_to_user(process).await;
        Ok(len)
    }

    /// `ftruncate(2)`: what lies behind the new end goes.
    ///
    /// # Errors
    /// `Inval` beyond 16 TiB; `Killed`.
    pub fn truncate_shared(&self, process: &Process, file: &SharedFile, len: u64) -> Result<(), Errno> {
        process.check_alive()?;
        self.machine().charge(CostOp::Syscall, 1);
        let past = pages_of(0, len)?.end;
        let cpu = self.machine().current_cpu();
        let freed = self.mem(|mem| mem.anon_unmap(cpu, file.anon, past, u32::MAX));
        self.machine().charge(CostOp::PcpFree, freed);
        file.size.set(len);
        Ok(())
    }

    /// `unlink(2)`: its pages go with the last one who has it open or mapped.
    ///
    /// # Errors
    /// `NoEnt`; `Killed`.
    pub fn unlink_shared(&self, process: &Process, name: &str) -> Result<(), Errno> {
        process.check_alive()?;
        self.machine().charge(CostOp::Syscall, 1);
        let file = self.shared.shared_files.borrow_mut().unlink(name);
        let found = file.map(drop).ok_or(Errno::NoEnt);
        self.put_shared();
        found
    }

    /// `rename(2)`.
    ///
    /// # Errors
    /// `NoEnt`; `Killed`.
    pub fn rename_shared(&self, process: &Process, from: &str, to: &str) -> Result<(), Errno> {
        process.check_alive()?;
        self.machine().charge(CostOp::Syscall, 1);
        let found = self.shared.shared_files.borrow_mut().rename(from, to);
        self.put_shared();
        if found { Ok(()) } else { Err(Errno::NoEnt) }
    }

    /// `mincore`: pages in memory of those that a range lies in.
    pub fn resident_shared(&self, file: &SharedFile, offset: u64, len: u64) -> u64 {
        let end = offset.saturating_add(len).min(file.size.get());
        let pages = pages_of(offset, end.max(offset)).unwrap_or_default();
        u64::from(self.mem(|mem| mem.anon_resident(file.anon, pages.start, pages.end - pages.start)))
    }

    /// `mmap(MAP_SHARED)` of a range of a file in memory, which lives at least as long as it is mapped.
    ///
    /// # Errors
    /// `Inval` for an empty mapping and an offset that is not that of a page; `NoMem` beyond 16 TiB; `Killed`.
    pub fn map_shared(
        &self,
        process: &Process,
        file: &SharedFile,
        offset: u64,
        len: Bytes,
    ) -> Result<AnonMapping, Errno> {
        process.check_alive()?;
        self.machine().charge(CostOp::Syscall, 1);
        let pages = len.to_pages_ceil().0;
        if pages == 0 || !offset.is_multiple_of(PAGE_SIZE) {
            return Err(Errno::Inval);
        }
        let first = offset / PAGE_SIZE;
        let past = first.checked_add(pages).filter(|&past| past <= PAGES_MAX).ok_or(Errno::NoMem)?;
        let base = u32::try_from(first).map_err(|_| Errno::NoMem)?;
        let area =
            AnonArea { anon: file.anon, file: None, shared: true, pages: past, advice: HugeAdvice::NoHuge };
        let index = process.add_area(area);
        process.0.shared_files.borrow_mut().insert(index, file.clone());
        Ok(AnonMapping { index, pages, base })
    }

    /// A fault on a page of a mapped file that is not in memory and not swapped out.
    pub(crate) async fn memory_file_fault(
        &self,
        process: &Process,
        mapping: AnonMapping,
        page: u32,
    ) -> Result<(), Errno> {
        let file = process.0.shared_files.borrow().get(&mapping.index).cloned().ok_or(Errno::Killed)?;
        self.machine().charge(CostOp::MinorFault, 1);
        while !self.bring_shared(process, &file, page).await? {
            self.add_shared_page(process, &file, page).await?;
        }
        Ok(())
    }

    /// Frees the pages of files that nobody has any more.
    pub fn put_shared(&self) {
        loop {
            let Some(anon) = self.shared.shared_files.borrow().take_gone() else { return };
            let cpu = self.machine().current_cpu();
            let freed = self.mem(|mem| mem.anon_remove(cpu, anon));
            self.machine().charge(CostOp::PcpFree, freed);
        }
    }

    /// Whether a page is there, once it was brought back from swap if need be.
    async fn bring_shared(&self, process: &Process, file: &SharedFile, index: u32) -> Result<bool, Errno> {
        loop {
            process.check_alive()?;
            let (slot, is_there) = self.mem(|mem| {
                (mem.anon.swapped_at(file.anon, index), mem.anon.find(file.anon, index).is_some())
            });
            let Some(slot) = slot else { return Ok(is_there) };
            let fault = SwapFault { anon: file.anon, index, slot, write: false, locked: false };
            let pages = file.size.get().div_ceil(PAGE_SIZE);
            self.swap_fault(process, fault, u32::try_from(pages).map_err(|_| Errno::Inval)?).await?;
        }
    }

    /// A call reads a page that is there, or writes to it.
    fn access_shared(&self, file: &SharedFile, index: u32, write: bool) {
        let cpu = self.machine().current_cpu();
        self.mem(|mem| mem.access_shared(cpu, file.anon, index, write));
    }

    /// Allocates and charges a page, and puts it where there is none.
    async fn add_shared_page(&self, process: &Process, file: &SharedFile, index: u32) -> Result<(), Errno> {
        let gfp = Gfp::HIGHUSER_MOVABLE;
        let memcg = process.memcg();
        let page = self.alloc_pages_for(Purpose::PageCache, Some(process), gfp, Order(0)).await;
        let pfn = page.ok_or(Errno::NoMem)?;
        let charged = self.charge_pages(process, memcg, 1, gfp).await;
        let cpu = self.machine().current_cpu();
        if let Err(errno) = charged {
            self.mem(|mem| mem.core.alloc.free(cpu, pfn, Order(0)));
            return Err(errno);
        }
        // While it waited for memory, another task may have filled the place.
        self.mem(|mem| match mem.anon.is_range_empty(file.anon, index, 1) {
            true => mem.anon_map(cpu, file.anon, index, pfn, memcg),
            false => {
                mem.core.cgroups.uncharge(memcg, 1);
                mem.core.alloc.free(cpu, pfn, Order(0));
            }
        });
        self.machine().charge(CostOp::ClearPage, 1);
        Ok(())
    }
}

/// The pages that a range of bytes lies in.
fn pages_of(offset: u64, end: u64) -> Result<std::ops::Range<u32>, Errno> {
    let past = end.div_ceil(PAGE_SIZE);
    if past > PAGES_MAX {
        return Err(Errno::Inval);
    }
    let page = |number| u32::try_from(number).map_err(|_| Errno::Inval);
    Ok(page((offset / PAGE_SIZE).min(past))?..page(past)?)
}
