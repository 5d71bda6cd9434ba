//! Opening and closing: what a descriptor holds in memory, and when an unlinked file goes.
//!
//! An open file pins its dentry, and that the inode with its objects of the slab. Left out: tables
//! of descriptors. Next: [`crate::slab`] allocates the objects, [`mm::fs::inode`] keeps them.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use mm::base::event::Trace;
use mm::base::gfp::Gfp;
use mm::fs::inode::InodeObjects;
use mm::version::geometry::Cache;
use units::Bytes;

use super::inode::Metadata;
use super::{Filesystem, INODES_IN_BLOCK, Inode, TABLE_FIRST};
use crate::kernel::Kernel;
use crate::machine::{CostOp, Machine};
use crate::readahead::Readahead;
use crate::task::{Errno, Process};

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

/// An open file with its readahead state. Clones share both, as duplicated descriptors do; dropping the
/// last one closes the file, see [`Kernel::put_closed`].
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

impl<M: Machine, T: Trace> Kernel<M, T> {
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
        if let Err(errno) = self.get_inode(process, &inode, create).await {
            if create {
                self.shared.files.borrow_mut().by_path.remove(path);
                inode.unlinked.set(true);
            }
            self.put_descriptor(&inode);
            return Err(errno);
        }
        let closed = Rc::clone(&self.shared.closed);
        let _descriptor = Rc::new(Descriptor { inode: Rc::clone(&inode), closed });
        if create {
            self.log_inode(Some(process), &inode).await;
            self.mem(|mem| mem.set_inode_dirty(inode.mapping, true));
            self.note_dirty_inode(&inode);
        }
        self.machine().cond_resched().await; // return to user mode
        Ok(OpenFile { inode, readahead: Rc::new(Cell::new(Readahead::new())), _descriptor })
    }

    /// `stat(2)`: the size of a file that is not opened. Its dentry and inode are in memory then, as
    /// after an open and a close. Nothing remembers that a name is not there (no negative dentries).
    ///
    /// # Errors
    /// `NoEnt`; `NoMem`; `Killed`.
    pub async fn stat(&self, process: &Process, path: &str) -> Result<Bytes, Errno> {
        process.check_alive()?;
        self.put_closed();
        self.machine().charge(CostOp::FileOpen, 1);
        let inode = self.lookup(path)?;
        let found = self.get_inode(process, &inode, false).await;
        let size = Bytes(inode.size.get());
        self.put_descriptor(&inode);
        self.machine().cond_resched().await; // return to user mode
        found.map(|()| size)
    }

    /// Takes a descriptor's reference, whoever unlinks the file from then on, and brings dentry and
    /// inode into memory. The reference is there after an error, too.
    async fn get_inode(&self, process: &Process, inode: &Rc<Inode>, create: bool) -> Result<(), Errno> {
        inode.opens.set(inode.opens.get() + 1);
        let loaded = self.load_inode(process, inode, create).await;
        if loaded.is_err() {
            self.mem(|mem| {
                if mem.fs.vfs.is_cached(inode.mapping).0 {
                    mem.dentry_get(inode.mapping);
                }
            });
        }
        loaded
    }

    /// Brings dentry and inode into memory and takes a reference.
    async fn load_inode(&self, process: &Process, inode: &Rc<Inode>, create: bool) -> Result<(), Errno> {
        let mapping = inode.mapping;
        loop {
            match self.mem(|mem| mem.fs.vfs.is_cached(mapping)) {
                (true, true) => {
                    self.mem(|mem| mem.dentry_get(mapping));
                    return Ok(());
                }
                (false, _) => {
                    let dentry = self.alloc_object(Some(process), Cache::Dentry, Gfp::KERNEL).await?;
                    let cpu = self.machine().current_cpu();
                    self.mem(|mem| {
                        if mem.fs.vfs.is_cached(mapping).0 {
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
            match self.alloc_object(Some(process), cache, gfp).await {
                Ok(object) => parts.push(object),
                Err(errno) => {
                    failed = Some(errno);
                    break;
                }
            }
        }
        let cpu = self.machine().current_cpu();
        self.mem(|mem| {
            if failed.is_some() || mem.fs.vfs.is_cached(inode.mapping).1 {
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
    /// comes back; when the file is created, it is made dirty. XFS: the inode's cluster.
    async fn touch_table(&self, process: &Process, inode: &Inode, create: bool) -> Result<(), Errno> {
        if self.shared.filesystem == Filesystem::Xfs && inode.metadata == Metadata::Table {
            return if create {
                self.make_clusters(process, inode.number).await
            } else {
                self.read_cluster(Some(process), inode.number).await
            };
        }
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
    /// The kernel does so at its next step; whoever drops an [`OpenFile`] and wants it closed at
    /// once, as `close(2)` is, calls this.
    pub fn put_closed(&self) {
        loop {
            let Some(inode) = self.shared.closed.borrow_mut().pop() else { break };
            self.put_descriptor(&inode);
        }
        if self.shared.files.borrow().orphans.is_empty() {
            return;
        }
        let orphans = std::mem::take(&mut self.shared.files.borrow_mut().orphans);
        for inode in orphans {
            self.remove_or_remember(&inode);
        }
    }

    fn put_descriptor(&self, inode: &Rc<Inode>) {
        inode.opens.set(inode.opens.get() - 1);
        self.mem(|mem| {
            if mem.fs.vfs.is_cached(inode.mapping).0 {
                mem.dentry_put(inode.mapping);
            }
        });
        if inode.is_orphan() {
            self.remove_or_remember(inode);
        }
    }

    pub(super) fn is_in_transfer(&self, inode: &Inode) -> bool {
        self.mem(|mem| mem.cache.trees().writeback_pages(inode.mapping)) > 0
            || self.shared.in_flight.borrow().reads(inode.mapping)
    }

    pub(super) fn remove_or_remember(&self, inode: &Rc<Inode>) {
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
}
