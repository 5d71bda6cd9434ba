//! Mapped files as a driver sees them: areas, accesses, faults, advice; and parts and names of files that go at a
//! program's word.
//!
//! Neighbours: [`crate::pages::mapped`], [`crate::pages::mapped_pages`].

use core::ops::Range;

use units::{CpuId, Pfn};

use crate::base::event::Trace;
use crate::base::frame::PageFlags;
use crate::base::ids::{AnonId, DentryId, FileAreaId, MappingId};
use crate::base::layout::PageTables;
use crate::lru::mglru::access::faulted_in;
use crate::memory::Memory;
use crate::pages::mapped::{Access, FileArea};
use crate::pages::mapped_pages::Around;
use crate::version::rules::FaultAround;

impl<T: Trace> Memory<T> {
    /// Frees the clean pages of a file that lie wholly in a range and that nothing needs: `posix_fadvise(2)`.
    pub fn mapping_invalidate_range(&mut self, cpu: CpuId, mapping: MappingId, range: Range<u32>) -> u64 {
        let freed = self.cache.invalidate_range(&mut self.core, &mut self.lru, cpu, mapping, range, true);
        self.fs.list_emptied(&self.core, &mut self.cache);
        freed
    }

    /// Frees what a file has in memory from a page on, see [`crate::pages::cache::PageCache::truncate_from`]. False:
    /// some of it is in use.
    #[must_use]
    pub fn mapping_truncate(&mut self, cpu: CpuId, mapping: MappingId, first: u32) -> bool {
        let done = self.cache.truncate_from(&mut self.core, &mut self.lru, cpu, mapping, first);
        self.fs.list_emptied(&self.core, &mut self.cache);
        done
    }

    /// A dentry, which its caller holds, gets another name: [`crate::fs::inode::Vfs::move_dentry`].
    pub fn move_dentry(&mut self, dentry: DentryId, to: DentryId) {
        self.fs.vfs.move_dentry(dentry, to);
    }

    /// Maps a stretch of a file; nothing of it is in the page table yet.
    pub fn map_area(&mut self, spec: FileArea) -> FileAreaId {
        self.cache.maps.create(spec)
    }

    /// Takes an area out of its address space; returns the pages that its page table had.
    pub fn unmap_area(&mut self, cpu: CpuId, area: FileAreaId) -> u64 {
        let unmapped = self.zap_area(cpu, area);
        self.cache.maps.release(area);
        unmapped
    }

    /// Empties the page table of an area (`zap_page_range`); returns the pages that it had. Those that were accessed
    /// through it are marked so.
    pub fn zap_area(&mut self, cpu: CpuId, area: FileAreaId) -> u64 {
        let Self { core, lru, cache, .. } = self;
        cache.unmap_area(core, lru, cpu, area, 0..u32::MAX)
    }

    /// Takes one page out of the page table of an area, as a private copy takes its place.
    pub fn zap_area_page(&mut self, cpu: CpuId, area: FileAreaId, page: u32) {
        let Self { core, lru, cache, .. } = self;
        cache.unmap_area(core, lru, cpu, area, page..page + 1);
    }

    /// Tells who walks page tables, before anything is mapped; without it, hardware does.
    pub fn set_page_tables(&mut self, page_tables: PageTables) {
        self.core.page_tables = page_tables;
    }

    /// A program accesses a page of an area.
    #[inline]
    pub fn access_area(&mut self, area: FileAreaId, page: u32, write: bool) -> Access {
        self.cache.maps.access(area, page, write, self.core.page_tables)
    }

    /// A read fault maps what is in memory around it, where the kernel does so; none where it does not.
    /// `anon`: where its private copies are, which stay.
    pub fn map_around(&mut self, area: FileAreaId, anon: AnonId, page: u32) -> Option<Around> {
        match self.core.rules().fault_around {
            FaultAround::None => None,
            FaultAround::Sixteen => {
                let is_copied = |page| !self.anon.is_range_empty(anon, page, 1);
                Some(self.cache.map_around(&mut self.core, area, page, is_copied))
            }
        }
    }

    /// A page that a fault of a program reads was accessed by that ([`faulted_in`]). To be told before
    /// [`Memory::refault`].
    pub fn fault_brings(&mut self, pfn: Pfn) {
        let flags = faulted_in(&self.core, self.core.alloc.frames.flags(pfn));
        self.core.alloc.frames.put_flags(pfn, flags);
    }

    /// A fault maps its page, to be written to if it is dirty and the area is shared; false: it is gone, or being read.
    #[must_use]
    pub fn map_file_page(&mut self, area: FileAreaId, page: u32, write: bool) -> bool {
        let Self { core, cache, .. } = self;
        let Some(pfn) = cache.mappable(core, area, page) else { return false };
        let flags = core.alloc.frames.flags(pfn);
        if flags.has(PageFlags::LOCKED) || (write && !flags.has(PageFlags::DIRTY)) {
            return false;
        }
        cache.maps.enter(core, area, page, pfn, write, false);
        true
    }
}
