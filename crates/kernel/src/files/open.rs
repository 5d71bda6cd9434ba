//! Opening: what a descriptor holds in memory.
//!
//! An open file pins its dentry, and that the inode with its objects of the slab. Left out: tables
//! of descriptors. Next: [`super::close`], [`crate::objects`] allocates the objects, [`mm::fs::inode`]
//! keeps them.

use std::rc::Rc;

use mm::base::event::Trace;
use mm::base::gfp::Gfp;
use mm::fs::inode::InodeObjects;
use mm::version::geometry::Cache;
use units::Bytes;

use crate::errno::Errno;
use crate::files::descriptor::OpenFile;
use crate::files::inode::Inode;
use crate::handle::Kernel;
use crate::machine::{CostOp, Machine};
use crate::tasks::process::Process;

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
        let file = OpenFile::new(&inode, &self.shared.closed);
        if create {
            self.log_create(process, &inode).await;
            if self.shared.filesystem.flusher_writes_inodes() {
                self.mem(|mem| mem.set_inode_dirty(inode.mapping, true));
                self.note_dirty_inode(&inode);
            }
        }
        self.machine().cond_resched().await; // return to user mode
        Ok(file)
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
                (true, false) if self.mem(|mem| mem.recycle_inode(mapping)) => {}
                (true, false) => {
                    self.touch_metadata(process, inode, create).await?;
                    self.alloc_inode(process, inode, create).await?;
                }
            }
        }
    }

    /// Allocates what an inode costs.
    async fn alloc_inode(&self, process: &Process, inode: &Inode, create: bool) -> Result<(), Errno> {
        let (wanted, gfp) = self.shared.filesystem.inode_objects(create);
        let mut parts = Vec::new();
        let mut failed = None;
        for &cache in wanted {
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
            let objects = InodeObjects {
                number: inode.number,
                inode: parts[0],
                extra: parts[1],
                log_item: parts.get(2).copied(),
            };
            mem.attach_inode(inode.mapping, objects);
        });
        failed.map_or(Ok(()), Err)
    }
}
