//! An inode in memory: what is read from the disk, and what the kernel remembers beside it.
//!
//! There is one while the inode has objects or a task brings it into memory; when it leaves, it is written
//! back. Left out: times, owners, modes, links. Next: [`super::disk`] for those on the disk,
//! [`mm::fs::inode`] for the objects.

use std::cell::{Cell, RefCell};

use mm::MemcgId;
use mm::base::ids::MappingId;
use mm::fs::ext4::layout::{extents_of_run, has_extent_block};
use units::{Nanos, PAGE_SIZE};

use crate::files::extents::Extents;
use crate::files::lock::FileLock;

/// The mapping of roots, which have none.
pub(crate) const NO_MAPPING: MappingId = MappingId(u32::MAX);

/// Where the metadata of an inode is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Metadata {
    /// In inode tables that are in memory since it was laid out, and in a block of its own if it has many extents.
    LaidOut,
    /// In the inode tables, 16 to a block: a file that was created.
    Table,
    /// Nowhere: the block device itself.
    None,
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

/// An inode in memory.
#[derive(Debug)]
pub(crate) struct Inode {
    pub(crate) number: u32,
    /// The disk that it is on.
    pub(crate) device: u16,
    pub(crate) size: Cell<u64>,
    pub(crate) mapping: MappingId,
    pub(crate) metadata: Metadata,
    pub(crate) extents: RefCell<Extents>,
    /// The block of extents that its inode has no room for was made ([`crate::fs::ext4_extents`]).
    pub(crate) has_leaf: Cell<bool>,
    /// Pages that lie behind its last block on the disk and are kept for it.
    pub(crate) room: Cell<u32>,
    /// It is a directory: which one.
    pub(crate) directory: Option<u32>,
    /// The group of the disk that its blocks come from ([`crate::fs::Filesystem::group_of`]).
    pub(crate) group: Cell<u8>,
    /// It has no name any more.
    pub(crate) unlinked: Cell<bool>,
    /// It is gone, and its number is free ([`Files::inactivate`](crate::files::table::Files::inactivate)).
    pub(crate) reusable: Cell<bool>,
    /// It left memory, and its mapping may be another's: nothing of it may be touched.
    pub(crate) gone: Cell<bool>,
    /// Descriptors on it, and tasks that are about to use it.
    pub(crate) opens: Cell<u32>,
    pub(crate) lock: FileLock,
    pub(crate) list: Cell<DirtyList>,
    pub(crate) dirtied_when: Cell<Nanos>,
    /// The cgroup whose worker writes it: the one that made it dirty. (Linux moves an inode to the cgroup of most of
    /// its pages after some rounds.)
    pub(crate) writer: Cell<MemcgId>,
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
            extents: RefCell::default(),
            has_leaf: Cell::new(false),
            room: Cell::new(0),
            directory: None,
            group: Cell::new(0),
            unlinked: Cell::new(false),
            reusable: Cell::new(false),
            gone: Cell::new(false),
            opens: Cell::new(0),
            lock: FileLock::default(),
            list: Cell::new(DirtyList::None),
            dirtied_when: Cell::new(Nanos::ZERO),
            writer: Cell::new(MemcgId::ROOT),
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

    /// Whether it is the top of a disk or what is mounted: always in memory, without objects.
    pub(crate) fn is_root(&self) -> bool {
        self.mapping == NO_MAPPING
    }

    /// Pages that have blocks: all up to here.
    pub(crate) fn mapped_pages(&self) -> u32 {
        self.extents.borrow().pages()
    }

    /// Where a page lies on the disk, and how many pages from it lie there one behind the other.
    pub(crate) fn place(&self, page: u32) -> Option<(u64, u32)> {
        self.extents.borrow().place(page).map(|(block, pages)| (block * PAGE_SIZE, pages))
    }

    /// Whether ext4 has more extents for its runs of blocks than it has room for.
    pub(crate) fn needs_leaf(&self) -> bool {
        has_extent_block(self.extents.borrow().iter().map(|run| extents_of_run(run.pages)).sum())
    }

    /// Gives blocks to the next pages, from this byte of the disk on.
    pub(crate) fn add_extent(&self, pages: u32, offset: u64) {
        self.extents.borrow_mut().add(pages, offset / PAGE_SIZE);
    }
}
