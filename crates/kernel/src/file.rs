//! Files: names, sizes and where their blocks lie; creating, removing and writing them out.
//!
//! What is on the disk is here: a name, a size, extents. What of it is in memory (dentry, inode,
//! pages) is in [`mm::fs::inode`] and [`mm::pages::cache`], and comes back when the file is opened again.
//!
//! Blocks are allocated when pages are first written back, behind everything allocated before, for
//! the whole file as long as it is then: so blocks are a prefix of the file, and a page behind
//! them reads as zeroes. A file that was laid out has one extent, as after a sequential write.
//!
//! Left out: directories as objects (a path is one name), unwritten holes before written blocks,
//! permissions, a full disk; of XFS all metadata but inodes, of ext4 all but a block for each
//! laid-out file and the inode tables. Next: `file/open.rs` opens and closes, `file/in_flight.rs`
//! has the transfers on their way, [`crate::filemap`] reads and writes, [`crate::writeback`].

mod in_flight;
mod inode;
mod open;

use std::collections::BTreeMap;
use std::rc::Rc;

use mm::base::event::Trace;
use mm::base::ids::MappingId;
use mm::pages::tree::Slot;
use units::{Bytes, PAGE_SIZE};

use crate::kernel::Kernel;
use crate::machine::{CostOp, Machine};
use crate::readahead::READAHEAD_PAGES_MAX;
use crate::task::{Errno, Process};

pub(crate) use in_flight::{InFlight, PageRange, Transfer};
pub(crate) use inode::Inode;
use inode::Metadata;
pub(crate) use open::Closed;
pub use open::OpenFile;

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

impl<M: Machine, T: Trace> Kernel<M, T> {
    /// Makes a file of `size` that was written long ago: on disk, not in memory.
    ///
    /// # Errors
    /// `Exist`; `Inval` when the size exceeds what 32-bit page numbers reach (16 TiB, less what
    /// readahead windows may reach beyond the end).
    pub fn lay_out_file(&self, path: &str, size: Bytes) -> Result<(), Errno> {
        let pages = size.0.div_ceil(PAGE_SIZE);
        if pages > FILE_PAGES_MAX {
            return Err(Errno::Inval);
        }
        let pages = u32::try_from(pages).expect("checked above");
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
                self.wait_for_any_read().await;
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
        self.force_log().await;
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
                    matches!(mem.cache.find(file.inode.mapping, index), Slot::Page(_))
                })
                .count() as u64
        })
    }
}
