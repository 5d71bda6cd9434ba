//! Files: names, sizes and where their blocks lie; creating and removing them.
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
//! laid-out file and the inode tables. Next: [`super::open`] opens and closes, [`crate::cache`]
//! reads and writes, [`crate::writeback`].

use std::rc::Rc;

use mm::base::event::Trace;
use units::{Bytes, PAGE_SIZE};

use crate::cache::window::READAHEAD_PAGES_MAX;
use crate::errno::Errno;
use crate::files::inode::{Inode, Metadata};
use crate::fs::Filesystem;
use crate::handle::Kernel;
use crate::machine::{CostOp, Machine};
use crate::tasks::process::Process;

/// Largest file in pages: window arithmetic beyond its end must stay within 32 bits.
const FILE_PAGES_MAX: u64 = (1 << 32) - (4 * (READAHEAD_PAGES_MAX as u64));

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
        files.lay_out(&inode, pages);
        Ok(())
    }

    /// `mkdir(2)`. Paths of files may name it, but need not.
    ///
    /// # Errors
    /// `Exist`; `Killed`.
    pub async fn make_dir(&self, process: &Process, path: &str) -> Result<(), Errno> {
        process.check_alive()?;
        self.machine().charge(CostOp::Syscall, 1);
        let made = self.add_dir(path);
        self.machine().cond_resched().await; // return to user mode
        made
    }

    fn add_dir(&self, path: &str) -> Result<(), Errno> {
        let mut files = self.shared.files.borrow_mut();
        if !files.directories.insert(path.to_string()) {
            return Err(Errno::Exist);
        }
        Ok(())
    }

    /// Names in a directory.
    ///
    /// # Errors
    /// `NoEnt`; `Killed`.
    pub async fn read_dir(&self, process: &Process, path: &str) -> Result<Vec<String>, Errno> {
        process.check_alive()?;
        self.machine().charge(CostOp::Syscall, 1);
        let names = self.names_in(path);
        self.machine().cond_resched().await; // return to user mode
        names
    }

    fn names_in(&self, path: &str) -> Result<Vec<String>, Errno> {
        let files = self.shared.files.borrow();
        if !files.directories.contains(path) {
            return Err(Errno::NoEnt);
        }
        let prefix = format!("{path}/");
        let paths = files.by_path.range(prefix.clone()..).map(|(path, _)| path);
        let directories = files.directories.range(prefix.clone()..);
        let names = |paths: &mut dyn Iterator<Item = &String>| -> Vec<String> {
            let below = paths.map_while(|path| path.strip_prefix(&prefix));
            below.filter(|name| !name.contains('/')).map(str::to_string).collect()
        };
        Ok([names(&mut { paths }), names(&mut { directories })].concat())
    }

    /// `rmdir(2)`.
    ///
    /// # Errors
    /// `NoEnt`; `NotEmpty`; `Killed`.
    pub async fn remove_dir(&self, process: &Process, path: &str) -> Result<(), Errno> {
        process.check_alive()?;
        self.machine().charge(CostOp::FileUnlink, 1);
        let empty = self.names_in(path)?.is_empty();
        if empty {
            self.shared.files.borrow_mut().directories.remove(path);
        }
        self.machine().cond_resched().await; // return to user mode
        if empty { Ok(()) } else { Err(Errno::NotEmpty) }
    }

    /// Makes a directory whose files lie on disk `device`: where that disk is mounted.
    ///
    /// # Errors
    /// `Exist`; `NoEnt` when there is no such disk; `Inval` when the directory is inside of another one,
    /// and on XFS for every disk but the first: its inodes and its log are modelled on that one only.
    pub fn make_dir_on(&self, path: &str, device: u16) -> Result<(), Errno> {
        let is_modelled = device == 0 || self.shared.filesystem != Filesystem::Xfs;
        if path.contains('/') || !is_modelled {
            return Err(Errno::Inval);
        }
        if !self.disks().contains(&device) {
            return Err(Errno::NoEnt);
        }
        self.add_dir(path)?;
        let mounted = self.shared.files.borrow_mut().mount(path, device);
        assert!(mounted, "every device of the machine has a filesystem");
        Ok(())
    }

    pub(crate) fn lookup(&self, path: &str) -> Result<Rc<Inode>, Errno> {
        self.shared.files.borrow().by_path.get(path).cloned().ok_or(Errno::NoEnt)
    }

    pub(crate) fn create_inode(&self, path: &str) -> Result<Rc<Inode>, Errno> {
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
    /// `NoEnt`; `Killed`.
    pub async fn unlink(&self, process: &Process, path: &str) -> Result<(), Errno> {
        process.check_alive()?;
        self.put_closed();
        self.machine().charge(CostOp::FileUnlink, 1);
        let inode = self.shared.files.borrow_mut().by_path.remove(path).ok_or(Errno::NoEnt)?;
        inode.unlinked.set(true);
        self.log_remove(&inode).await;
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
}
