//! Reading and writing through the page cache (MECHANISMS 6.2, MECHANISMS-6X 2.3, 2.4).
//!
//! A read finds each page, starts readahead where one is missing or a marker is reached, waits for
//! pages that are on their way, marks them accessed and copies. Content is not stored.
//!
//! A write finds or adds each folio, reading it first where the write covers only a part of what is
//! on the disk, makes it dirty, and pauses where the writer goes too fast. On XFS (6.6) and
//! ext4 (6.16) a new folio is as large as the rest of the write. Whether a write is an access to the page is a rule
//! of the version.
//!
//! Left out: direct I/O, which blocks of a large folio are dirty (it is written whole). Next:
//! [`crate::writeback`].

use std::rc::Rc;

use mm::base::event::Trace;
use mm::base::gfp::Gfp;
use mm::pages::tree::Slot;
use mm::version::rules::ReadaheadPosition;
use units::{Order, PAGE_SIZE, Pfn};

use crate::cache::add::Place;
use crate::cache::in_flight::PageRange;
use crate::cache::look::Found;
use crate::cache::readahead::LARGEST_FOLIO;
use crate::cache::window::Readahead;
use crate::errno::Errno;
use crate::files::descriptor::OpenFile;
use crate::files::inode::Inode;
use crate::files::lock::Hold;
use crate::handle::Kernel;
use crate::machine::{CostOp, Machine};
use crate::tasks::process::Process;

/// A folio that a write made dirty.
pub(crate) struct DirtyFolio {
    /// The index behind it.
    behind: u32,
    /// Its first page; none when another took its place meanwhile.
    pub(crate) page: Option<Pfn>,
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
        let locks = self.readers_lock();
        if locks && !file.inode.lock.take_at_once(Hold::Shared) {
            self.wait_for_file(&file.inode, Hold::Shared).await;
        }
        let read = self.read_locked(process, file, offset, len).await;
        if locks {
            self.unlock_file(&file.inode);
        }
        let read = read?;
        if read > 0 {
            self.return_to_user(process).await;
        }
        Ok(read)
    }

    /// Reads under the file's lock, where readers take it.
    async fn read_locked(
        &self,
        process: &Process,
        file: &OpenFile,
        offset: u64,
        len: u64,
    ) -> Result<u64, Errno> {
        let size = file.inode.size.get();
        let end = offset.saturating_add(len).min(size);
        if end <= offset {
            return Ok(0);
        }
        let (first, past) = page_range(offset, end);
        let mut last_folio = self.continued_folio(file, first);
        let mut index = first;
        loop {
            let (mapping, cpu) = (file.inode.mapping, self.machine().current_cpu());
            let read = self.mem(|mem| mem.read_present(cpu, mapping, index..past, &mut last_folio));
            self.machine().charge(CostOp::CopyPage, u64::from(read - index));
            if read == past {
                break;
            }
            index = read;
            let refused = self.refused_pages(process, &file.inode, index, past - index);
            if refused > 0 {
                self.read_uncached(process, &file.inode, index, refused).await?;
                (index, last_folio) = (index + refused, None);
                continue;
            }
            if index > first && self.readahead_position() == ReadaheadPosition::EndOfBatch {
                file.readahead.set(Readahead { position: Some(index), ..file.readahead.get() });
            }
            let page = self.get_page(process, file, index, past - index).await?;
            // One access for each folio of the call, unless the last call ended in it.
            if let Some(pfn) = page.filter(|_| page != last_folio) {
                let cpu = self.machine().current_cpu();
                self.mem(|mem| mem.mark_accessed(cpu, pfn));
                last_folio = page;
            }
            self.machine().charge(CostOp::CopyPage, 1);
            index += 1;
        }
        let position = match self.readahead_position() {
            ReadaheadPosition::LastPage => past - 1,
            ReadaheadPosition::EndOfBatch | ReadaheadPosition::EndOfCall => page_range(end, end).0,
        };
        let (previous, position) = (Some(past - 1), Some(position));
        file.readahead.set(Readahead { previous, position, ..file.readahead.get() });
        Ok(end - offset)
    }

    fn readahead_position(&self) -> ReadaheadPosition {
        self.mem(|mem| mem.core.rules().readahead_position)
    }

    /// The folio in which the last read of this file ended, if this one starts in it.
    fn continued_folio(&self, file: &OpenFile, first: u32) -> Option<Pfn> {
        let previous = file.readahead.get().previous?;
        self.mem(|mem| {
            let Slot::Page(pfn) = mem.cache.find(file.inode.mapping, first) else { return None };
            let (frames, place) = (&mem.core.alloc.frames, mem.core.alloc.frames.index(pfn));
            (place..place + frames.pages(pfn)).contains(&previous).then_some(pfn)
        })
    }

    /// A valid page at `index`; `request` pages are wanted from there (`filemap_get_pages`). None:
    /// it was there, and reclaimed while this task waited for it or for memory of the next window. On
    /// Linux the task holds a reference meanwhile, so that it gets at the data in any case; only the access
    /// is lost here.
    async fn get_page(
        &self,
        process: &Process,
        file: &OpenFile,
        index: u32,
        request: u32,
    ) -> Result<Option<Pfn>, Errno> {
        let mut was_there = false;
        loop {
            match self.look(&file.inode, index) {
                Found::Ready(pfn) => return Ok(Some(pfn)),
                Found::Missing if was_there => return Ok(None),
                Found::Marker(order) => {
                    // A failing readahead is no error of the read.
                    let _ = self.async_readahead(process, file, index, request, order).await;
                    was_there = true;
                }
                Found::Locked => {
                    self.wait_for_page(file.inode.mapping, index).await;
                    was_there = true;
                }
                Found::Missing => {
                    // Readahead may fail, then this one page matters.
                    let _ = self.sync_readahead(process, file, index, request).await;
                    // A look would take the marker, which may be on this very page, and lose it.
                    let slot = self.mem(|mem| mem.cache.find(file.inode.mapping, index));
                    if !matches!(slot, Slot::Page(_)) {
                        let gfp = self.shared.filesystem.page_gfp();
                        self.read_one_page(process, &file.inode, index, gfp).await?;
                    }
                }
            }
            process.check_alive()?;
        }
    }

    /// Reads one page without readahead, retrying and killing if need be
    /// (`filemap_create_folio`).
    pub(crate) async fn read_one_page(
        &self,
        process: &Process,
        inode: &Inode,
        index: u32,
        gfp: Gfp,
    ) -> Result<(), Errno> {
        self.map_blocks(process, inode, index..index + 1).await?;
        if self.add_folio(process, inode, Place::page(index), gfp).await? {
            self.submit_read(inode, index, 1);
        }
        Ok(())
    }

    /// `write(2)` into the page cache. The file grows if need be.
    ///
    /// # Errors
    /// `NoMem`; `Killed`; `Inval` beyond 16 TiB.
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
        if end.div_ceil(PAGE_SIZE) >= u64::from(u32::MAX) {
            return Err(Errno::Inval);
        }
        if len == 0 {
            return Ok(0);
        }
        self.lock_file(&file.inode, Hold::Exclusive).await;
        let written = self.write_locked(process, file, offset, end).await;
        self.unlock_file(&file.inode);
        written?;
        self.return_to_user(process).await;
        Ok(len)
    }

    /// Writes from `offset` to `end`, under the file's lock.
    async fn write_locked(
        &self,
        process: &Process,
        file: &OpenFile,
        offset: u64,
        end: u64,
    ) -> Result<(), Errno> {
        let (first, past) = page_range(offset, end);
        let makes_large = self.mem(|mem| self.shared.filesystem.writes_large_folios(mem.core.rules()));
        let mut index = first;
        while index < past {
            let start = u64::from(index) * PAGE_SIZE;
            let covers = offset <= start && (end >= start + PAGE_SIZE || end >= file.inode.size.get());
            let keeps_some = !covers && index < file.inode.mapped_pages();
            let largest = if makes_large { write_order(index, end - offset.max(start)) } else { Order(0) };
            let folio = self.write_folio(process, &file.inode, index, keeps_some, largest).await?;
            if let Some(pfn) = folio.page {
                let cpu = self.machine().current_cpu();
                self.mem(|mem| mem.mark_written(cpu, pfn));
            }
            let behind = folio.behind.min(past);
            self.machine().charge(CostOp::CopyPage, u64::from(behind - index));
            let written = end.min(u64::from(behind) * PAGE_SIZE);
            if written > file.inode.size.get() {
                let begins = file.inode.size.replace(written) == 0;
                self.mem(|mem| mem.set_inode_dirty(file.inode.mapping, true));
                if begins && !self.log_core_at_once(&file.inode) {
                    self.log_begun(process, &file.inode).await;
                }
            }
            for _ in index..behind {
                if self.dirtied_enough(process) {
                    self.balance_dirty_pages(process, file.inode.device).await;
                }
            }
            index = behind;
        }
        Ok(())
    }

    /// Makes the folio at `index` dirty; one that is missing is added, of order `largest` at most, or read
    /// first if the write `keeps_some` of it.
    pub(crate) async fn write_folio(
        &self,
        process: &Process,
        inode: &Rc<Inode>,
        index: u32,
        keeps_some: bool,
        largest: Order,
    ) -> Result<DirtyFolio, Errno> {
        loop {
            let (pfn, is_new) = self.folio_for_write(process, inode, index, keeps_some, largest).await?;
            let behind = self.mem(|mem| mem.core.alloc.frames.index(pfn) + mem.core.alloc.frames.pages(pfn));
            let dirtied = self.dirty_page(process, inode, index).await;
            if is_new {
                self.unlock_pages(PageRange { mapping: inode.mapping, first: index, count: behind - index });
            }
            if dirtied? {
                let slot = self.mem(|mem| mem.cache.find(inode.mapping, index));
                return Ok(DirtyFolio { behind, page: (slot == Slot::Page(pfn)).then_some(pfn) });
            }
        }
    }

    /// A folio to write to, and whether it is new: then it is locked by the caller.
    async fn folio_for_write(
        &self,
        process: &Process,
        inode: &Inode,
        index: u32,
        keeps_some: bool,
        largest: Order,
    ) -> Result<(Pfn, bool), Errno> {
        loop {
            match self.look(inode, index) {
                Found::Ready(pfn) => return Ok((pfn, false)),
                Found::Marker(_) => {}
                Found::Locked => self.wait_for_page(inode.mapping, index).await,
                Found::Missing if keeps_some => {
                    self.mem(|mem| mem.note_dirty_full_nodes());
                    let gfp = self.shared.filesystem.page_gfp() | Gfp::WRITE;
                    self.read_one_page(process, inode, index, gfp).await?;
                }
                Found::Missing => {
                    self.mem(|mem| mem.note_dirty_full_nodes());
                    if self.add_for_write(process, inode, index, largest).await?
                        && let Slot::Page(pfn) = self.mem(|mem| mem.cache.find(inode.mapping, index))
                    {
                        return Ok((pfn, true)); // Locked by us, and wholly overwritten: nothing to read.
                    }
                }
            }
            process.check_alive()?;
        }
    }

    /// Adds a folio at `index` of order `largest`, or of the next lower one for which there is a block, a
    /// charge and the place (`__filemap_get_folio`). Only a single page is worth trying again for. False:
    /// the place was taken meanwhile.
    async fn add_for_write(
        &self,
        process: &Process,
        inode: &Inode,
        index: u32,
        largest: Order,
    ) -> Result<bool, Errno> {
        let gfp = self.shared.filesystem.page_gfp() | Gfp::WRITE;
        for order in (1..=largest.0).rev().map(Order) {
            let place = Place { order, ..Place::page(index) };
            if self.add_folio(process, inode, place, gfp | Gfp::NORETRY).await == Ok(true) {
                return Ok(true);
            }
        }
        self.add_folio(process, inode, Place::page(index), gfp).await
    }

    /// Makes a page of the cache dirty. False: the page is gone.
    pub(crate) async fn dirty_page(
        &self,
        process: &Process,
        inode: &Rc<Inode>,
        index: u32,
    ) -> Result<bool, Errno> {
        self.prepare_dirty(process, inode, index).await?;
        let found = self.mem(|mem| match mem.cache.find(inode.mapping, index) {
            Slot::Page(pfn) => {
                mem.set_dirty(pfn);
                true
            }
            _ => false,
        });
        if found {
            self.note_dirty_inode(inode, process.memcg());
        }
        Ok(found)
    }

    /// Pages of the range that are in memory. Touches nothing.
    pub fn resident_pages(&self, file: &OpenFile, offset: u64, len: u64) -> u64 {
        let end = offset.saturating_add(len).min(file.inode.size.get());
        if end <= offset {
            return 0;
        }
        let pages = (offset / PAGE_SIZE)..end.div_ceil(PAGE_SIZE);
        self.mem(|mem| {
            pages
                .filter(|&index| {
                    let index = u32::try_from(index).expect("sizes are checked at creation");
                    matches!(mem.cache.find(file.inode.mapping, index), Slot::Page(_))
                })
                .count() as u64
        })
    }
}

/// The order of a new folio at `index` that a write of `bytes` fills: the largest power of two that is
/// aligned and does not reach beyond the write (MECHANISMS-6X 2.2).
fn write_order(index: u32, bytes: u64) -> Order {
    let filled = (bytes / PAGE_SIZE).max(1).ilog2().min(LARGEST_FOLIO);
    let aligned = if index == 0 { filled } else { filled.min(index.trailing_zeros()) };
    Order(u8::try_from(aligned).expect("at most 9"))
}

/// Pages that a byte range covers: the first one and the one behind the last.
fn page_range(offset: u64, end: u64) -> (u32, u32) {
    let page = |n: u64| u32::try_from(n).expect("sizes are checked at creation");
    (page(offset / PAGE_SIZE), page(end.div_ceil(PAGE_SIZE)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_new_folio_is_as_large_as_the_rest_of_the_write_and_aligned() {
        // MECHANISMS-6X 2.2: 64 KiB -> order 4, 4 KiB -> order 0.
        for (index, kib, order) in
            [(0, 64, 4), (0, 4, 0), (7, 64, 0), (8, 64, 3), (0, 100, 4), (16, 36, 3), (24, 4, 0), (0, 2, 0)]
        {
            assert_eq!(write_order(index, kib << 10), Order(order), "{kib} KiB at page {index}");
        }
        assert_eq!(write_order(0, 1 << 30), Order(9), "a huge page at most");
        assert_eq!(write_order(1 << 20, 1 << 30), Order(9));
    }
}
