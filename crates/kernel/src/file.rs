//! Files: names, sizes and where their blocks lie; and the reads that are on their way.
//!
//! A file's blocks are one extent on the data disk, as after a single sequential write. Left out:
//! directories as objects (a path is one name), holes, permissions, block allocation.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::rc::Rc;

use mm::event::Trace;
use mm::frame::PageFlags;
use mm::mapping::{MappingId, Slot};
use units::{Bytes, PAGE_SIZE};

use crate::kernel::Kernel;
use crate::machine::{IoKind, IoRequest, Machine};
use crate::readahead::{READAHEAD_PAGES_MAX, Readahead};
use crate::task::Errno;

/// The filesystem of the data disk: what matters to memory management.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Filesystem {
    /// Single pages in the cache; metadata blocks are pages of the block device's own mapping.
    Ext4,
    /// Large folios from 5.18 on; metadata in buffers outside of the page cache.
    Xfs,
}

impl Filesystem {
    /// Every one, with its name.
    pub const ALL: [(&'static str, Self); 2] = [("ext4", Self::Ext4), ("xfs", Self::Xfs)];

    /// Finds one by name.
    pub fn by_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|(other, _)| *other == name).map(|(_, filesystem)| filesystem)
    }
}

/// An inode.
#[derive(Debug)]
pub(crate) struct Inode {
    pub(crate) number: u32,
    pub(crate) size: Cell<u64>,
    pub(crate) mapping: MappingId,
    /// Byte offset of its extent on the disk.
    pub(crate) disk_offset: u64,
    /// Descriptors on it: its pages stay while there are any, even without a name.
    open: Cell<u32>,
    /// Its mapping is gone: no name, no descriptor, no read on its way.
    pub(crate) freed: Cell<bool>,
}

/// An open file with its readahead state, until [`Kernel::close`].
#[derive(Debug)]
pub struct OpenFile {
    pub(crate) inode: Rc<Inode>,
    pub(crate) readahead: Cell<Readahead>,
}

impl OpenFile {
    /// Its size.
    pub fn size(&self) -> Bytes {
        Bytes(self.inode.size.get())
    }
}

/// All files of the data disk.
#[derive(Debug, Default)]
pub(crate) struct Files {
    by_path: BTreeMap<String, Rc<Inode>>,
    /// Files without a name that are still open or being read.
    orphans: Vec<Rc<Inode>>,
    directories: Vec<String>,
    next_inode: u32,
    disk_used: u64,
    /// The block device as a file: ext4 keeps its metadata in that mapping, here one block for
    /// each inode number.
    device: Option<Rc<Inode>>,
}

/// Extents start at multiples of 1 MiB, so that windows never share a block.
const EXTENT_ALIGN: u64 = 1 << 20;

/// Largest file in pages: window arithmetic beyond its end must stay within 32 bits.
const FILE_PAGES_MAX: u64 = (1 << 32) - (4 * (READAHEAD_PAGES_MAX as u64));

impl Files {
    /// Every file and the device: what `drop_caches` visits.
    pub(crate) fn inodes(&self) -> impl Iterator<Item = &Rc<Inode>> {
        self.by_path.values().chain(&self.orphans).chain(&self.device)
    }

    pub(crate) fn device(&self) -> Option<Rc<Inode>> {
        self.device.clone()
    }

    /// Makes the device's mapping, once, at boot.
    pub(crate) fn set_device(&mut self, mapping: MappingId) {
        self.device = Some(Rc::new(Inode {
            number: 0,
            size: Cell::new(u64::from(u32::MAX - 1) * PAGE_SIZE),
            mapping,
            disk_offset: 0,
            open: Cell::new(1),
            freed: Cell::new(false),
        }));
    }
}

/// Reads that are on their way, by tag.
#[derive(Debug, Default)]
pub(crate) struct InFlight {
    reads: Vec<Option<PageRange>>,
    free: Vec<u32>,
}

/// Consecutive pages of a mapping.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PageRange {
    pub(crate) mapping: MappingId,
    pub(crate) first: u32,
    pub(crate) count: u32,
}

impl<M: Machine, T: Trace> Kernel<M, T> {
    /// Makes a file of `size` that was written long ago: on disk, not in memory.
    ///
    /// # Errors
    /// `Exist`; `Inval` when the size exceeds what 32-bit page numbers reach (16 TiB, less what
    /// readahead windows may reach beyond the end).
    pub fn lay_out_file(&self, path: &str, size: Bytes) -> Result<(), Errno> {
        if size.0.div_ceil(PAGE_SIZE) > FILE_PAGES_MAX {
            return Err(Errno::Inval);
        }
        let mut files = self.shared.files.borrow_mut();
        if files.by_path.contains_key(path) {
            return Err(Errno::Exist);
        }
        let mapping = self.mem(|mem| mem.mapping_create());
        let inode = Inode {
            number: files.next_inode,
            size: Cell::new(size.0),
            mapping,
            disk_offset: files.disk_used,
            open: Cell::new(0),
            freed: Cell::new(false),
        };
        files.next_inode += 1;
        files.disk_used += size.0.next_multiple_of(EXTENT_ALIGN);
        files.by_path.insert(path.to_string(), Rc::new(inode));
        Ok(())
    }

    /// Makes a directory. Paths of files may name it, but need not.
    ///
    /// # Errors
    /// `Exist`.
    pub fn make_dir(&self, path: &str) -> Result<(), Errno> {
        let mut files = self.shared.files.borrow_mut();
        if files.directories.iter().any(|other| other == path) {
            return Err(Errno::Exist);
        }
        files.directories.push(path.to_string());
        Ok(())
    }

    /// Opens an existing file.
    ///
    /// # Errors
    /// `NoEnt`.
    pub fn open(&self, path: &str) -> Result<OpenFile, Errno> {
        let files = self.shared.files.borrow();
        let inode = Rc::clone(files.by_path.get(path).ok_or(Errno::NoEnt)?);
        inode.open.set(inode.open.get() + 1);
        Ok(OpenFile { inode, readahead: Cell::new(Readahead::new()) })
    }

    /// Gives a descriptor back. The last one of a file without a name takes the file along.
    pub fn close(&self, file: &OpenFile) {
        file.inode.open.set(file.inode.open.get() - 1);
        self.free_orphans();
    }

    /// Removes a file's name. Its pages go at once, or when the last descriptor is closed and the
    /// last read of it has ended.
    ///
    /// # Errors
    /// `NoEnt`.
    pub fn unlink(&self, path: &str) -> Result<(), Errno> {
        {
            let mut files = self.shared.files.borrow_mut();
            let inode = files.by_path.remove(path).ok_or(Errno::NoEnt)?;
            files.orphans.push(inode);
        }
        self.free_orphans();
        Ok(())
    }

    /// Frees the pages of files that nobody can reach any more.
    fn free_orphans(&self) {
        let mut files = self.shared.files.borrow_mut();
        if files.orphans.is_empty() {
            return;
        }
        let in_flight = self.shared.in_flight.borrow();
        let cpu = self.machine().current_cpu();
        files.orphans.retain(|inode| {
            if inode.open.get() > 0 || in_flight.touches(inode.mapping) {
                return true;
            }
            inode.freed.set(true);
            self.mem(|mem| mem.mapping_remove(cpu, inode.mapping));
            false
        });
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
                    matches!(mem.mappings.find(file.inode.mapping, index), Slot::Page(_))
                })
                .count() as u64
        })
    }

    /// Starts reading pages that were just added, locked, to `inode`'s mapping.
    pub(crate) fn submit_read(&self, inode: &Inode, first: u32, count: u32) {
        let range = PageRange { mapping: inode.mapping, first, count };
        let tag = self.shared.in_flight.borrow_mut().add(range);
        let len = u64::from(count) * PAGE_SIZE;
        self.mem(|mem| mem.alloc.events.add(mm::vmstat::VmEvent::PgPgIn, len / 1024));
        self.machine().submit(IoRequest {
            device: 0,
            kind: IoKind::Read,
            offset: inode.disk_offset + (u64::from(first) * PAGE_SIZE),
            len: Bytes(len),
            tag,
        });
    }

    /// A read is complete: its pages become valid and their waiters run.
    pub(crate) fn io_done(&self, tag: u64) {
        let range = self.shared.in_flight.borrow_mut().remove(tag);
        self.mem(|mem| {
            for index in range.first..range.first + range.count {
                if let Slot::Page(pfn) = mem.mappings.find(range.mapping, index) {
                    mem.alloc.frames.clear_flags(pfn, PageFlags::LOCKED);
                }
            }
        });
        if self.machine().has_waiters(self.shared.page_read) {
            self.machine().wake_all(self.shared.page_read);
        }
        self.free_orphans();
    }
}

impl InFlight {
    fn add(&mut self, range: PageRange) -> u64 {
        match self.free.pop() {
            Some(tag) => {
                self.reads[tag as usize] = Some(range);
                u64::from(tag)
            }
            None => {
                self.reads.push(Some(range));
                (self.reads.len() - 1) as u64
            }
        }
    }

    fn remove(&mut self, tag: u64) -> PageRange {
        let tag = u32::try_from(tag).expect("a tag that was handed out");
        self.free.push(tag);
        self.reads[tag as usize].take().expect("a read completes once")
    }

    fn touches(&self, mapping: MappingId) -> bool {
        self.reads.iter().flatten().any(|range| range.mapping == mapping)
    }
}
