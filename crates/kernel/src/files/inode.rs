//! A file on the disk: its size, its blocks, and what the kernel remembers of it while it runs.
//!
//! Left out: times, owners, modes, links. Next: the objects in memory are in [`mm::fs::inode`].

use std::cell::{Cell, RefCell};

use mm::base::ids::MappingId;
use units::{Nanos, PAGE_SIZE};

/// Where the metadata of an inode is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Metadata {
    /// In a block of its own that maps its extents: a file that was laid out.
    OwnBlock,
    /// In the inode tables, 16 to a block: a file that was created.
    Table,
    /// Nowhere: the block device itself.
    None,
}

/// Consecutive pages of a file that lie one behind the other on the disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Extent {
    first: u32,
    pages: u32,
    offset: u64,
}

/// Which list of the flusher an inode is on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum DirtyList {
    /// None: it is clean.
    #[default]
    None,
    /// Waiting for its age, or for its turn.
    Dirty,
    /// To be written now.
    Io,
    /// Had its turn, has pages left.
    MoreIo,
    /// The flusher works on it.
    Writing,
}

/// A file on the disk, with what the kernel remembers of it while it runs.
#[derive(Debug)]
pub(crate) struct Inode {
    pub(crate) number: u32,
    /// The disk that it is on.
    pub(crate) device: u16,
    pub(crate) size: Cell<u64>,
    pub(crate) mapping: MappingId,
    pub(crate) metadata: Metadata,
    extents: RefCell<Vec<Extent>>,
    /// It has no name any more.
    pub(crate) unlinked: Cell<bool>,
    /// Its mapping was removed: nothing of it may be touched.
    pub(crate) gone: Cell<bool>,
    /// Descriptors on it.
    pub(crate) opens: Cell<u32>,
    pub(crate) list: Cell<DirtyList>,
    pub(crate) dirtied_when: Cell<Nanos>,
    /// Where the flusher goes on in the file.
    pub(crate) writeback_index: Cell<u32>,
}

impl Inode {
    /// Of a file that was created on the first disk, without blocks yet.
    pub(crate) fn new(number: u32, mapping: MappingId, size: u64) -> Self {
        Self {
            number,
            device: 0,
            size: Cell::new(size),
            mapping,
            metadata: Metadata::Table,
            extents: RefCell::new(Vec::new()),
            unlinked: Cell::new(false),
            gone: Cell::new(false),
            opens: Cell::new(0),
            list: Cell::new(DirtyList::None),
            dirtied_when: Cell::new(Nanos::ZERO),
            writeback_index: Cell::new(0),
        }
    }

    /// Whether nobody can reach it any more: its pages are not worth writing.
    pub(crate) fn is_orphan(&self) -> bool {
        self.gone.get() || (self.unlinked.get() && self.opens.get() == 0)
    }

    /// Whether it lies in the inode tables like every file that was created.
    pub(crate) fn is_in_table(&self) -> bool {
        self.metadata == Metadata::Table
    }

    /// Pages that have blocks: all up to here.
    pub(crate) fn mapped_pages(&self) -> u32 {
        self.extents.borrow().last().map_or(0, |extent| extent.first + extent.pages)
    }

    /// Where a page lies on the disk, and how many pages from it lie there one behind the other.
    pub(crate) fn place(&self, page: u32) -> Option<(u64, u32)> {
        let extents = self.extents.borrow();
        let behind = extents.partition_point(|extent| extent.first <= page);
        let extent = extents.get(behind.checked_sub(1)?)?;
        let within = page - extent.first;
        (within < extent.pages)
            .then(|| (extent.offset + (u64::from(within) * PAGE_SIZE), extent.pages - within))
    }

    pub(crate) fn add_extent(&self, pages: u32, offset: u64) {
        let first = self.mapped_pages();
        let mut extents = self.extents.borrow_mut();
        if let Some(last) = extents.last_mut()
            && last.offset + (u64::from(last.pages) * PAGE_SIZE) == offset
        {
            last.pages += pages;
            return;
        }
        extents.push(Extent { first, pages, offset });
    }
}
