//! Reading and writing through the page cache (MECHANISMS 6.2, MECHANISMS-6X 2.3, 2.4).
//!
//! A read finds each page, starts readahead where one is missing or a marker is reached, waits for
//! pages that are on their way, marks them accessed and copies. Content is not stored.
//!
//! Left out: dirty pages. A write puts its pages into the cache as a read does, but takes them as
//! written back already; writeback and its throttling are not modelled yet.

use mm::event::Trace;
use mm::frame::PageFlags;
use mm::gfp::Gfp;
use mm::mapping::Slot;
use mm::vmstat::VmEvent;
use units::{Order, PAGE_SIZE, Pfn};

use crate::file::{Filesystem, Inode, OpenFile};
use crate::kernel::Kernel;
use crate::machine::{CostOp, Machine, WaitReason};
use crate::task::{Errno, Process};

/// What a look at one page found.
enum Found {
    Missing,
    Locked,
    Marker(Order),
    Ready(Pfn),
}

impl<M: Machine, T: Trace> Kernel<M, T> {
    /// `read(2)`: returns the bytes that lay before the end of the file.
    ///
    /// # Errors
    /// `NoMem` when not even one page could be had; `Killed`.
    pub async fn read(
        &self,
        process: &Process,
        file: &OpenFile,
        offset: u64,
        len: u64,
    ) -> Result<u64, Errno> {
        process.check_alive()?;
        self.machine().charge(CostOp::Syscall, 1);
        let size = file.inode.size.get();
        let end = offset.saturating_add(len).min(size);
        if end <= offset {
            return Ok(0);
        }
        let (first, past) = page_range(offset, end);
        let mut last_folio = self.continued_folio(file, first);
        for index in first..past {
            let page = self.get_page(process, file, index, past - index).await?;
            // One access for each folio of the call, unless the last call ended in it.
            if let Some(pfn) = page.filter(|_| page != last_folio) {
                let cpu = self.machine().current_cpu();
                self.mem(|mem| mem.mark_accessed(cpu, pfn));
                last_folio = page;
            }
            self.machine().charge(CostOp::CopyPage, 1);
        }
        let mut readahead = file.readahead.get();
        readahead.previous = Some(past - 1);
        file.readahead.set(readahead);
        self.handle_over_high(process).await;
        self.machine().cond_resched().await; // return to user mode
        Ok(end - offset)
    }

    /// The folio in which the last read of this file ended, if this one starts in it.
    fn continued_folio(&self, file: &OpenFile, first: u32) -> Option<Pfn> {
        let previous = file.readahead.get().previous?;
        let find = |index| match self.mem(|mem| mem.mappings.find(file.inode.mapping, index)) {
            Slot::Page(pfn) => Some(pfn),
            _ => None,
        };
        let (last, next) = (find(previous)?, find(first)?);
        (last == next).then_some(last)
    }

    /// A valid page at `index`; `request` pages are wanted from there (`filemap_get_pages`). None:
    /// it was read, and reclaimed again before this task ran. On Linux the task holds a reference
    /// while it waits, so that it gets at the data in any case; only the access is lost here.
    async fn get_page(
        &self,
        process: &Process,
        file: &OpenFile,
        index: u32,
        request: u32,
    ) -> Result<Option<Pfn>, Errno> {
        let mut was_read = false;
        loop {
            match self.look(&file.inode, index) {
                Found::Ready(pfn) => return Ok(Some(pfn)),
                Found::Missing if was_read => return Ok(None),
                Found::Marker(order) => {
                    // A failing readahead is no error of the read.
                    let _ = self.async_readahead(process, file, index, request, order).await;
                }
                Found::Locked => {
                    self.wait_for_reads().await;
                    was_read = true;
                }
                Found::Missing => {
                    // Readahead may fail, then this one page matters.
                    let _ = self.sync_readahead(process, file, index, request).await;
                    if matches!(self.look(&file.inode, index), Found::Missing) {
                        self.read_one_page(process, &file.inode, index).await?;
                    }
                }
            }
            process.check_alive()?;
        }
    }

    /// Sleeps until some read completes: reclaim leaves a page alone until its own read has.
    async fn wait_for_reads(&self) {
        let _ = self.machine().wait(self.shared.page_read, WaitReason::PageRead, None).await;
    }

    fn look(&self, inode: &Inode, index: u32) -> Found {
        self.mem(|mem| {
            let Slot::Page(pfn) = mem.mappings.find(inode.mapping, index) else { return Found::Missing };
            let flags = mem.alloc.frames.flags(pfn);
            if flags.has(PageFlags::READAHEAD) {
                mem.alloc.frames.clear_flags(pfn, PageFlags::READAHEAD);
                return Found::Marker(mem.alloc.frames.order(pfn));
            }
            if flags.has(PageFlags::LOCKED) { Found::Locked } else { Found::Ready(pfn) }
        })
    }

    /// Reads one page without readahead, retrying and killing if need be
    /// (`filemap_create_folio`).
    async fn read_one_page(&self, process: &Process, inode: &Inode, index: u32) -> Result<(), Errno> {
        self.map_blocks(process, inode).await?;
        if self.add_single(process, inode, index).await? {
            self.submit_read(inode, index, 1);
        }
        Ok(())
    }

    async fn add_single(&self, process: &Process, inode: &Inode, index: u32) -> Result<bool, Errno> {
        let gfp = Gfp::HIGHUSER_MOVABLE;
        let pfn = self.alloc_pages(Some(process), gfp, Order(0)).await.ok_or(Errno::NoMem)?;
        let added = self.charge_and_insert(process, inode, index, pfn, gfp).await;
        let cpu = self.machine().current_cpu();
        if added == Ok(true) {
            self.machine().charge(CostOp::PageCacheAdd, 1);
            self.mem(|mem| mem.lru_add(cpu, pfn));
        } else {
            self.mem(|mem| mem.alloc.free(cpu, pfn, Order(0)));
        }
        added
    }

    /// `write(2)` into the page cache; see the header for what becomes of dirty pages.
    ///
    /// # Errors
    /// `NoMem`; `Killed`; `NoSpc` beyond the end of the file's extent.
    pub async fn write(
        &self,
        process: &Process,
        file: &OpenFile,
        offset: u64,
        len: u64,
    ) -> Result<u64, Errno> {
        process.check_alive()?;
        self.machine().charge(CostOp::Syscall, 1);
        let end = offset.checked_add(len).ok_or(Errno::Inval)?;
        if end > file.inode.size.get() {
            return Err(Errno::NoSpc);
        }
        if len == 0 {
            return Ok(0);
        }
        let (first, past) = page_range(offset, end);
        for index in first..past {
            let pfn = self.page_for_write(process, &file.inode, index).await?;
            let cpu = self.machine().current_cpu();
            self.mem(|mem| {
                mem.alloc.frames.clear_flags(pfn, PageFlags::LOCKED);
                mem.mark_accessed(cpu, pfn);
                mem.alloc.events.add(VmEvent::NrDirtied, 1);
                mem.alloc.events.add(VmEvent::NrWritten, 1);
                mem.alloc.events.add(VmEvent::PgPgOut, PAGE_SIZE / 1024);
            });
            self.machine().charge(CostOp::CopyPage, 1);
        }
        self.handle_over_high(process).await;
        self.machine().cond_resched().await; // return to user mode
        Ok(len)
    }

    async fn page_for_write(&self, process: &Process, inode: &Inode, index: u32) -> Result<Pfn, Errno> {
        loop {
            match self.look(inode, index) {
                Found::Ready(pfn) => return Ok(pfn),
                Found::Marker(_) => {}
                Found::Locked => self.wait_for_reads().await,
                Found::Missing => {
                    if self.add_single(process, inode, index).await?
                        && let Slot::Page(pfn) = self.mem(|mem| mem.mappings.find(inode.mapping, index))
                    {
                        return Ok(pfn); // Locked by us, and wholly overwritten: nothing to read.
                    }
                }
            }
            process.check_alive()?;
        }
    }

    /// Maps blocks of a file: on ext4 that reads a metadata block through the block device's own
    /// page cache, which repeated use makes active; it is charged to whoever reads it first.
    pub(crate) async fn map_blocks(&self, process: &Process, inode: &Inode) -> Result<(), Errno> {
        let device = self.shared.files.borrow().device();
        let Some(device) = device.filter(|_| self.shared.filesystem == Filesystem::Ext4) else {
            return Ok(());
        };
        let mut was_read = false;
        loop {
            match self.look(&device, inode.number) {
                Found::Missing if was_read => return Ok(()),
                Found::Ready(pfn) => {
                    let cpu = self.machine().current_cpu();
                    self.mem(|mem| mem.mark_accessed(cpu, pfn));
                    return Ok(());
                }
                Found::Marker(_) => {}
                Found::Locked => {
                    self.wait_for_reads().await;
                    was_read = true;
                }
                Found::Missing => {
                    if self.add_single(process, &device, inode.number).await? {
                        self.submit_read(&device, inode.number, 1);
                    }
                }
            }
        }
    }
}

/// Pages that a byte range covers: the first one and the one behind the last.
fn page_range(offset: u64, end: u64) -> (u32, u32) {
    let page = |n: u64| u32::try_from(n).expect("sizes are checked at creation");
    (page(offset / PAGE_SIZE), page(end.div_ceil(PAGE_SIZE)))
}
