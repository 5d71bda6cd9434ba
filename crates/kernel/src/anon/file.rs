//! Mappings of files: `mmap`, `madvise`, `mincore` (MAPPED 1, 6).
//!
//! A mapping of a file is an anonymous one, which holds the copies that writes to a private mapping made, and an area
//! of the file behind it. Left out: `mlock` of it. Next: [`super::file_fault`],
//! and [`super::advice`] for what is said of its pages.

use mm::base::event::Trace;
use mm::base::layout::PageTables;
use mm::pages::mapped::{AccessAdvice, FileArea};
use mm::pages::mapped_pages::FAULT_AROUND;
use mm::version::rules::HugePages;
use units::{Bytes, PAGE_SIZE};

use crate::anon::area::{AnonMapping, HugeAdvice};
use crate::anon::huge::HUGE_PAGES;
use crate::errno::Errno;
use crate::files::descriptor::OpenFile;
use crate::handle::Kernel;
use crate::machine::{CostOp, Machine};
use crate::tasks::process::Process;

/// The page below which mappings of a process lie: in Linux at random (`mmap_base`), and seldom a multiple of 64 KiB.
const MMAP_BASE: u64 = 5;

/// User-Mode Linux has mappings from below upwards, at first in a gap of so many pages before memory of the C library,
/// and what does not fit behind that, where a multiple of 64 MiB is. Measured on 6.12: mappings of 57 MiB and less take
/// one fault more for each marker of readahead, whatever their size, and those of 60 MiB and more none.
const GAP_PAGES: u64 = 58 << 8;
/// Where that gap begins, in pages behind a multiple of 16: of mappings behind 1 to 16 pages of memory only the one
/// behind 14 takes no fault for a marker (the same).
const GAP_BEGIN: u64 = 2;

/// How a file is to be mapped.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct MapHow {
    /// Writes reach the file (`MAP_SHARED`).
    pub shared: bool,
    /// It may be written to (`PROT_WRITE`).
    pub writable: bool,
    /// Code runs in it (`PROT_EXEC`).
    pub executable: bool,
}

impl<M: Machine, T: Trace> Kernel<M, T> {
    /// `mmap` of a range of a file, which stays open as long as it is mapped.
    ///
    /// # Errors
    /// `Inval` for an empty mapping and an offset that is not that of a page; `NoMem` beyond 16 TiB; `Killed`.
    pub fn map_file(
        &self,
        process: &Process,
        file: &OpenFile,
        offset: u64,
        len: Bytes,
        how: MapHow,
    ) -> Result<AnonMapping, Errno> {
        let first = u32::try_from(offset / PAGE_SIZE).map_err(|_| Errno::NoMem)?;
        let pages = u32::try_from(len.to_pages_ceil().0).map_err(|_| Errno::NoMem)?;
        if !offset.is_multiple_of(PAGE_SIZE) || file.inode.is_root() {
            return Err(Errno::Inval);
        }
        if first.checked_add(pages).is_none() {
            return Err(Errno::NoMem);
        }
        let mapping = self.map_anonymous(process, len)?;
        let memcg = process.memcg();
        let MapHow { shared, writable, executable } = how;
        let behind = self.begins_behind(process, pages);
        let spec =
            FileArea { mapping: file.mapping(), memcg, first, pages, behind, shared, writable, executable };
        let area = self.mem(|mem| mem.map_area(spec));
        if let Some(own) = &mut process.0.anon.borrow_mut()[mapping.index] {
            (own.file, own.advice) = (Some(area), HugeAdvice::NoHuge);
        }
        process.0.mapped_files.borrow_mut().insert(mapping.index, file.clone());
        Ok(mapping)
    }

    /// Where the last mapping of a process begins, in pages behind a multiple of those that a fault maps at once: each
    /// lies just below the one before, but that long ones begin at a huge page where there are such
    /// (`thp_get_unmapped_area`, as Linux 6.18 has it on ext4), and that User-Mode Linux has the oldest layout.
    fn begins_behind(&self, process: &Process, pages: u32) -> u32 {
        let has_huge = self.mem(|mem| mem.core.rules().huge_pages) != HugePages::Off;
        if has_huge && pages >= HUGE_PAGES {
            return 0;
        }
        let begin = match self.machine().build().page_tables {
            PageTables::Hardware => MMAP_BASE.wrapping_sub(process.mapped_pages()),
            PageTables::UserMode { .. } => {
                let fits = |pages: u64| pages < GAP_PAGES;
                let pages = u64::from(pages);
                let areas = process.0.anon.borrow();
                let mapped = areas.iter().skip(1).flatten().map(|area| area.pages); // Without its own.
                let all: u64 = mapped.filter(|&other| fits(other) == fits(pages)).sum();
                if fits(pages) { GAP_BEGIN + all - pages } else { all - pages }
            }
        };
        (begin % u64::from(FAULT_AROUND)) as u32
    }

    /// Whether a mapping is that of a file.
    pub fn maps_file(&self, process: &Process, mapping: AnonMapping) -> bool {
        self.area(process, mapping).is_some_and(|area| area.file.is_some())
    }

    /// `madvise` on how a mapping is accessed: readahead of its file heeds it, and reclaim.
    ///
    /// # Errors
    /// `Killed`.
    pub fn advise_access(
        &self,
        process: &Process,
        mapping: AnonMapping,
        advice: AccessAdvice,
    ) -> Result<(), Errno> {
        process.check_alive()?;
        self.machine().charge(CostOp::Syscall, 1);
        if let Some(area) = self.area(process, mapping) {
            self.mem(|mem| {
                if !area.shared {
                    mem.anon.advise(area.anon, advice);
                }
                if let Some(file) = area.file {
                    mem.cache.maps.advise(file, advice);
                }
            });
        }
        Ok(())
    }

    /// Begins to read what is not in memory of a mapped file.
    pub(crate) async fn read_mapping_ahead(
        &self,
        process: &Process,
        mapping: AnonMapping,
    ) -> Result<(), Errno> {
        let (file, area) = self.mapped_file(process, mapping)?;
        let spec = self.mem(|mem| mem.cache.maps.area(area));
        let offset = u64::from(spec.first) * PAGE_SIZE;
        self.read_range(process, &file, offset, offset + u64::from(spec.pages) * PAGE_SIZE).await
    }
}
