//! Files: names, sizes and where their blocks lie; opening, creating and removing them; and the
//! transfers that are on their way.
//!
//! What is on the disk is here: a name, a size, extents. What of it is in memory (dentry, inode,
//! pages) is in [`mm::inode`] and [`mm::mapping`], and comes back when the file is opened again.
//!
//! Blocks are allocated when pages are first written back, behind everything allocated before, for
//! the whole file as long as it is then: so blocks are a prefix of the file, and a page behind
//! them reads as zeroes. A file that was laid out has one extent, as after a sequential write.
//!
//! Left out: directories as objects (a path is one name), unwritten holes before written blocks,
//! permissions, a full disk, metadata of XFS; of ext4, all but a block for each laid-out file and
//! the inode tables. Next: [`crate::filemap`] reads and writes, [`crate::writeback`].

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;

use mm::event::Trace;
use mm::frame::PageFlags;
use mm::gfp::Gfp;
use mm::inode::InodeObjects;
use mm::mapping::{MappingId, Slot};
use mm::slab_caches::Cache;
use units::{Bytes, Nanos, PAGE_SIZE};

use crate::kernel::Kernel;
use crate::machine::{CostOp, IoKind, IoRequest, Machine, WaitReason};
use crate::readahead::Readahead;
use crate::task::{Errno, Process};
use crate::writeback::DirtyList;

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

/// A file on the disk, with what the kernel remembers of it while it runs.
#[derive(Debug)]
pub(crate) struct Inode {
    pub(crate) number: u32,
    pub(crate) size: Cell<u64>,
    pub(crate) mapping: MappingId,
    metadata: Metadata,
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
    pub(crate) fn new(number: u32, mapping: MappingId, size: u64) -> Self {
        Self {
            number,
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

    fn add_extent(&self, pages: u32, offset: u64) {
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

/// Inodes whose descriptors were dropped: the kernel takes note at its next step.
pub(crate) type Closed = Rc<RefCell<Vec<Rc<Inode>>>>;

/// A descriptor; dropping it closes the file.
#[derive(Debug)]
struct Descriptor {
    inode: Rc<Inode>,
    closed: Closed,
}

impl Drop for Descriptor {
    fn drop(&mut self) {
        self.closed.borrow_mut().push(Rc::clone(&self.inode));
    }
}

/// An open file with its readahead state. Clones share both, as duplicated descriptors do.
#[derive(Debug, Clone)]
pub struct OpenFile {
    pub(crate) inode: Rc<Inode>,
    pub(crate) readahead: Rc<Cell<Readahead>>,
    _descriptor: Rc<Descriptor>,
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
    by_mapping: Vec<Option<Rc<Inode>>>,
    directories: Vec<String>,
    next_inode: u32,
    disk_used: u64,
    /// The block device as a file: ext4 keeps its metadata in that mapping.
    device: Option<Rc<Inode>>,
    /// Inodes without name and descriptors that still have pages on their way.
    orphans: Vec<Rc<Inode>>,
}

/// Laid-out files start at multiples of 1 MiB, so that windows never share a block.
const EXTENT_ALIGN: u64 = 1 << 20;
/// Where the metadata of ext4 lies: away from all data.
const DEVICE_OFFSET: u64 = 1 << 45;
/// The first page of the inode tables in the device's mapping, and inodes in one block of 4 KiB.
const TABLE_FIRST: u32 = 1 << 24;
const INODES_IN_BLOCK: u32 = 16;

impl Files {
    /// Every file and the device: what `drop_caches` visits.
    pub(crate) fn inodes(&self) -> impl Iterator<Item = &Rc<Inode>> {
        self.by_path.values().chain(&self.device)
    }

    pub(crate) fn device(&self) -> Option<Rc<Inode>> {
        self.device.clone()
    }

    pub(crate) fn by_mapping(&self, mapping: MappingId) -> Option<Rc<Inode>> {
        self.by_mapping.get(mapping.0 as usize).cloned().flatten()
    }

    fn register(&mut self, inode: &Rc<Inode>) {
        let index = inode.mapping.0 as usize;
        if self.by_mapping.len() <= index {
            self.by_mapping.resize(index + 1, None);
        }
        self.by_mapping[index] = Some(Rc::clone(inode));
    }

    /// Makes the device's mapping, once, at boot.
    pub(crate) fn set_device(&mut self, mapping: MappingId) {
        let pages = u32::MAX - 1;
        let mut device = Inode::new(0, mapping, u64::from(pages) * PAGE_SIZE);
        device.metadata = Metadata::None;
        device.add_extent(pages, DEVICE_OFFSET);
        let device = Rc::new(device);
        self.register(&device);
        self.device = Some(device);
    }

    /// Gives blocks to a file up to page `end`, behind everything that has blocks.
    fn allocate(&mut self, inode: &Inode, end: u32) {
        let mapped = inode.mapped_pages();
        if end > mapped {
            inode.add_extent(end - mapped, self.disk_used);
            self.disk_used += u64::from(end - mapped) * PAGE_SIZE;
        }
    }

    fn add(&mut self, path: &str, mapping: MappingId, size: u64, metadata: Metadata) -> Rc<Inode> {
        let mut inode = Inode::new(self.next_inode, mapping, size);
        inode.metadata = metadata;
        self.next_inode += 1;
        let inode = Rc::new(inode);
        self.register(&inode);
        self.by_path.insert(path.to_string(), Rc::clone(&inode));
        inode
    }
}

/// A request on its way.
#[derive(Debug, Clone)]
enum Transfer {
    Read(PageRange),
    Write(Vec<PageRange>),
}

/// Requests that are on their way, by tag.
#[derive(Debug, Default)]
pub(crate) struct InFlight {
    transfers: Vec<Option<Transfer>>,
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
    /// `Exist`; `Inval` when the size exceeds what 32-bit page numbers reach (16 TiB).
    pub fn lay_out_file(&self, path: &str, size: Bytes) -> Result<(), Errno> {
        let pages = u32::try_from(size.0.div_ceil(PAGE_SIZE)).map_err(|_| Errno::Inval)?;
        if pages == u32::MAX {
            return Err(Errno::Inval);
        }
        let mut files = self.shared.files.borrow_mut();
        if files.by_path.contains_key(path) {
            return Err(Errno::Exist);
        }
        let mapping = self.mem(|mem| mem.mapping_create());
        let inode = files.add(path, mapping, size.0, Metadata::OwnBlock);
        files.disk_used = files.disk_used.next_multiple_of(EXTENT_ALIGN);
        files.allocate(&inode, pages);
        files.disk_used = files.disk_used.next_multiple_of(EXTENT_ALIGN);
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

    /// Opens a file, or creates an empty one: its dentry and inode are in memory from then on, and
    /// stay there until they are reclaimed.
    ///
    /// # Errors
    /// `NoEnt`; `Exist` for a file to be created; `NoMem`; `Killed`.
    pub async fn open(&self, process: &Process, path: &str, create: bool) -> Result<OpenFile, Errno> {
        process.check_alive()?;
        self.put_closed();
        self.machine().charge(if create { CostOp::FileCreate } else { CostOp::FileOpen }, 1);
        let inode = if create { self.create_inode(path)? } else { self.lookup(path)? };
        // From here on it has a descriptor, whoever unlinks it meanwhile.
        inode.opens.set(inode.opens.get() + 1);
        if let Err(errno) = self.load_inode(process, &inode, create).await {
            if create {
                self.shared.files.borrow_mut().by_path.remove(path);
                inode.unlinked.set(true);
            }
            self.mem(|mem| {
                if mem.inodes.is_cached(inode.mapping).0 {
                    mem.dentry_get(inode.mapping);
                }
            });
            self.close(&inode);
            return Err(errno);
        }
        let closed = Rc::clone(&self.shared.closed);
        let _descriptor = Rc::new(Descriptor { inode: Rc::clone(&inode), closed });
        if create {
            self.mem(|mem| mem.set_inode_dirty(inode.mapping, true));
            self.note_dirty_inode(&inode);
        }
        self.machine().cond_resched().await; // return to user mode
        Ok(OpenFile { inode, readahead: Rc::new(Cell::new(Readahead::new())), _descriptor })
    }

    fn lookup(&self, path: &str) -> Result<Rc<Inode>, Errno> {
        self.shared.files.borrow().by_path.get(path).cloned().ok_or(Errno::NoEnt)
    }

    fn create_inode(&self, path: &str) -> Result<Rc<Inode>, Errno> {
        let mut files = self.shared.files.borrow_mut();
        if files.by_path.contains_key(path) {
            return Err(Errno::Exist);
        }
        let mapping = self.mem(|mem| mem.mapping_create());
        Ok(files.add(path, mapping, 0, Metadata::Table))
    }

    /// Brings dentry and inode into memory and takes a reference.
    async fn load_inode(&self, process: &Process, inode: &Rc<Inode>, create: bool) -> Result<(), Errno> {
        let mapping = inode.mapping;
        loop {
            match self.mem(|mem| mem.inodes.is_cached(mapping)) {
                (true, true) => {
                    self.mem(|mem| mem.dentry_get(mapping));
                    return Ok(());
                }
                (false, _) => {
                    let dentry = self.alloc_object(process, Cache::Dentry, Gfp::KERNEL).await?;
                    let cpu = self.machine().current_cpu();
                    self.mem(|mem| {
                        if mem.inodes.is_cached(mapping).0 {
                            mem.free_object(cpu, dentry);
                        } else {
                            mem.attach_dentry(mapping, dentry);
                        }
                    });
                }
                (true, false) => {
                    self.touch_table(process, inode, create).await?;
                    self.alloc_inode(process, inode, create).await?;
                }
            }
        }
    }

    /// Allocates what an inode costs. On XFS a create is inside a transaction: no FS.
    async fn alloc_inode(&self, process: &Process, inode: &Inode, create: bool) -> Result<(), Errno> {
        let xfs = self.shared.filesystem == Filesystem::Xfs;
        let gfp = if xfs && create { Gfp::NOFS } else { Gfp::KERNEL };
        let (main, extra) =
            if xfs { (Cache::XfsInode, Cache::XfsExtra) } else { (Cache::Ext4Inode, Cache::Ext4Extra) };
        let mut parts = Vec::new();
        let wanted = [Some(main), Some(extra), (xfs && create).then_some(Cache::XfsLogItem)];
        let mut failed = None;
        for cache in wanted.into_iter().flatten() {
            match self.alloc_object(process, cache, gfp).await {
                Ok(object) => parts.push(object),
                Err(errno) => {
                    failed = Some(errno);
                    break;
                }
            }
        }
        let cpu = self.machine().current_cpu();
        self.mem(|mem| {
            if failed.is_some() || mem.inodes.is_cached(inode.mapping).1 {
                for object in parts {
                    mem.free_object(cpu, object);
                }
                return;
            }
            let objects = InodeObjects { inode: parts[0], extra: parts[1], log_item: parts.get(2).copied() };
            mem.attach_inode(inode.mapping, objects);
        });
        failed.map_or(Ok(()), Err)
    }

    /// ext4: the block of the inode tables that a created file is in. It is read when the inode
    /// comes back; when the file is created, it is made dirty.
    async fn touch_table(&self, process: &Process, inode: &Inode, create: bool) -> Result<(), Errno> {
        let device = self.shared.files.borrow().device();
        let Some(device) = device.filter(|_| self.shared.filesystem == Filesystem::Ext4) else {
            return Ok(());
        };
        if inode.metadata != Metadata::Table {
            return Ok(());
        }
        let block = TABLE_FIRST + (inode.number / INODES_IN_BLOCK);
        if !create {
            return self.read_block(process, &device, block).await;
        }
        self.write_page(process, &device, block, false).await
    }

    /// The extents of a file are looked up: on ext4 those of a laid-out file are in a metadata
    /// block that is read through the block device's own page cache, which repeated use makes
    /// active; it is charged to whoever reads it first.
    pub(crate) async fn map_blocks(&self, process: &Process, inode: &Inode) -> Result<(), Errno> {
        if self.shared.filesystem != Filesystem::Ext4 || inode.metadata != Metadata::OwnBlock {
            return Ok(());
        }
        let device = self.shared.files.borrow().device();
        match device {
            Some(device) => self.read_block(process, &device, inode.number).await,
            None => Ok(()),
        }
    }

    /// Takes note of descriptors that were dropped, and removes orphans whose last page is there.
    pub(crate) fn put_closed(&self) {
        loop {
            let Some(inode) = self.shared.closed.borrow_mut().pop() else { break };
            self.close(&inode);
        }
        if self.shared.files.borrow().orphans.is_empty() {
            return;
        }
        let orphans = std::mem::take(&mut self.shared.files.borrow_mut().orphans);
        for inode in orphans {
            self.remove_or_remember(&inode);
        }
    }

    fn close(&self, inode: &Rc<Inode>) {
        inode.opens.set(inode.opens.get() - 1);
        self.mem(|mem| {
            if mem.inodes.is_cached(inode.mapping).0 {
                mem.dentry_put(inode.mapping);
            }
        });
        if inode.is_orphan() {
            self.remove_or_remember(inode);
        }
    }

    fn is_in_transfer(&self, inode: &Inode) -> bool {
        self.mem(|mem| mem.mappings.writeback_pages(inode.mapping)) > 0
            || self.shared.in_flight.borrow().reads(inode.mapping)
    }

    fn remove_or_remember(&self, inode: &Rc<Inode>) {
        if inode.gone.get() {
            return;
        }
        if self.is_in_transfer(inode) {
            self.shared.files.borrow_mut().orphans.push(Rc::clone(inode));
            return;
        }
        inode.gone.set(true);
        self.shared.files.borrow_mut().by_mapping[inode.mapping.0 as usize] = None;
        let cpu = self.machine().current_cpu();
        self.mem(|mem| mem.mapping_remove(cpu, inode.mapping));
    }

    /// Removes a file. Its pages go, dirty or not, once nobody has it open; those that are on their
    /// way to or from the disk are waited for.
    ///
    /// # Errors
    /// `NoEnt`.
    pub async fn unlink(&self, path: &str) -> Result<(), Errno> {
        self.put_closed();
        self.machine().charge(CostOp::FileUnlink, 1);
        let inode = self.shared.files.borrow_mut().by_path.remove(path).ok_or(Errno::NoEnt)?;
        inode.unlinked.set(true);
        while inode.is_orphan() && !inode.gone.get() {
            if self.shared.in_flight.borrow().reads(inode.mapping) {
                let _ = self.machine().wait(self.shared.page_read, WaitReason::PageRead, None).await;
            } else if self.is_in_transfer(&inode) {
                self.wait_for_writeback(inode.mapping).await;
            } else {
                self.remove_or_remember(&inode);
            }
        }
        self.machine().cond_resched().await; // return to user mode
        Ok(())
    }

    /// `fsync(2)`: writes the dirty pages of a file and waits until they are on the disk.
    ///
    /// # Errors
    /// `Killed`.
    pub async fn fsync(&self, process: &Process, file: &OpenFile) -> Result<(), Errno> {
        process.check_alive()?;
        self.machine().charge(CostOp::Syscall, 1);
        self.write_and_wait(&file.inode).await;
        self.machine().cond_resched().await; // return to user mode
        Ok(())
    }

    /// Gives blocks to pages that are about to be written, and to the rest of the file with them.
    pub(crate) fn allocate_blocks(&self, inode: &Inode, first: u32, count: u32) {
        if first + count > inode.mapped_pages() {
            let pages = u32::try_from(inode.size.get().div_ceil(PAGE_SIZE)).expect("sizes are checked");
            self.shared.files.borrow_mut().allocate(inode, pages.max(first + count));
        }
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

    /// Starts reading pages that were just added, locked, to `inode`'s mapping. Pages without
    /// blocks are zeroes at once.
    pub(crate) fn submit_read(&self, inode: &Inode, first: u32, count: u32) {
        let (mut first, end) = (first, first + count);
        while first < end {
            let Some((offset, contiguous)) = inode.place(first) else {
                self.unlock_pages(PageRange { mapping: inode.mapping, first, count: end - first });
                return;
            };
            let count = contiguous.min(end - first);
            let range = PageRange { mapping: inode.mapping, first, count };
            let tag = self.shared.in_flight.borrow_mut().add(Transfer::Read(range));
            let len = u64::from(count) * PAGE_SIZE;
            self.mem(|mem| mem.alloc.events.add(mm::vmstat::VmEvent::PgPgIn, len / 1024));
            self.machine().submit(IoRequest { device: 0, kind: IoKind::Read, offset, len: Bytes(len), tag });
            first += count;
        }
    }

    /// A request is complete.
    pub(crate) fn io_done(&self, tag: u64) {
        let transfer = self.shared.in_flight.borrow_mut().remove(tag);
        match transfer {
            Transfer::Read(range) => self.unlock_pages(range),
            Transfer::Write(ranges) => self.write_done(&ranges),
        }
    }

    /// Pages become valid and their waiters run.
    pub(crate) fn unlock_pages(&self, range: PageRange) {
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
    }
}

impl InFlight {
    fn add(&mut self, transfer: Transfer) -> u64 {
        match self.free.pop() {
            Some(tag) => {
                self.transfers[tag as usize] = Some(transfer);
                u64::from(tag)
            }
            None => {
                self.transfers.push(Some(transfer));
                (self.transfers.len() - 1) as u64
            }
        }
    }

    /// Notes a write of these pages.
    pub(crate) fn add_write(&mut self, ranges: Vec<PageRange>) -> u64 {
        self.add(Transfer::Write(ranges))
    }

    fn remove(&mut self, tag: u64) -> Transfer {
        let tag = u32::try_from(tag).expect("a tag that was handed out");
        self.free.push(tag);
        self.transfers[tag as usize].take().expect("a transfer completes once")
    }

    fn reads(&self, mapping: MappingId) -> bool {
        let is_read = |transfer: &Transfer| match transfer {
            Transfer::Read(range) => range.mapping == mapping,
            Transfer::Write(_) => false,
        };
        self.transfers.iter().flatten().any(is_read)
    }

    /// Mappings with pages being written.
    pub(crate) fn written_mappings(&self) -> Vec<MappingId> {
        let ranges = |transfer: &Transfer| match transfer {
            Transfer::Read(_) => Vec::new(),
            Transfer::Write(ranges) => ranges.iter().map(|range| range.mapping).collect(),
        };
        self.transfers.iter().flatten().flat_map(ranges).collect()
    }
}
