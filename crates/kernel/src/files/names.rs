//! Files: creating and removing them.
//!
//! What is on the disk is a name, a size, extents. What of it is in memory (dentry, inode, pages) is in
//! [`mm::fs`] and [`mm::pages::cache`], and comes back when the file is opened again.
//!
//! Blocks are allocated when pages are first written back, behind everything allocated before, for
//! the whole file as long as it is then: so blocks are a prefix of the file, and a page behind
//! them reads as zeroes. A file that was laid out has one extent, as after a sequential write.
//!
//! Left out: unwritten holes before written blocks, permissions, a full disk. Next: [`super::open`] opens and
//! closes, [`super::directories`], [`crate::cache`] reads and writes, [`crate::writeback`].

use std::rc::Rc;

use mm::MemcgId;
use mm::base::event::Trace;
use mm::base::ids::DentryId;
use mm::fs::dentry::Name;
use mm::fs::inode::InodeObjects;
use mm::version::geometry::Cache;
use units::{Bytes, PAGE_SIZE, Pages, Pfn};

use crate::cache::window::READAHEAD_PAGES_MAX;
use crate::errno::Errno;
use crate::files::inode::Inode;
use crate::files::lookup::{Looked, split_path};
use crate::fs::Filesystem;
use crate::handle::Kernel;
use crate::machine::{CostOp, LaidOut, Machine};
use crate::tasks::process::Process;

/// Largest file in pages: window arithmetic beyond its end must stay within 32 bits.
pub(crate) const FILE_PAGES_MAX: u64 = (1 << 32) - (4 * (READAHEAD_PAGES_MAX as u64));

/// As much of a file is laid out at once, 32 MiB, by the program that does so on real kernels: its pages are freed
/// before more are written.
const LAY_OUT_STEP: Pages = Pages(8192);

impl<M: Machine, T: Trace> Kernel<M, T> {
    /// Makes a file of `size` that was written before: on disk, not in memory.
    ///
    /// # Errors
    /// `Exist`; `NoEnt` without its directory; `Inval` when the size exceeds what 32-bit page numbers reach (16
    /// TiB, less what readahead windows may reach beyond the end).
    pub fn lay_out_file(&self, path: &str, size: Bytes) -> Result<(), Errno> {
        let pages = size.0.div_ceil(PAGE_SIZE);
        if pages > FILE_PAGES_MAX {
            return Err(Errno::Inval);
        }
        let pages = u32::try_from(pages).expect("checked above");
        let mut files = self.shared.files.borrow_mut();
        let (directories, text) = split_path(path);
        let directory = files.directory_on_disk(directories).ok_or(Errno::NoEnt)?;
        let name = files.spellings.number(text);
        if text.is_empty() || files.mounted_at(&directory, name).is_some() {
            return Err(Errno::Exist);
        }
        if files.find(&directory, name).is_some() {
            return Err(Errno::Exist);
        }
        let number = files.lay_out(&directory, name, pages, size.0);
        drop(files);
        if let Some(parent) = self.dentry_of(&directory) {
            // It exists since long ago, so nobody found that it does not.
            self.mem(|mem| mem.forget_negative(parent, name));
        }
        self.shared.shares.borrow_mut().add(MemcgId::ROOT, self.machine().now(), pages.into());
        if self.machine().build().laid_out == LaidOut::JustBefore {
            let (cpu, mut used) = (self.machine().current_cpu(), self.shared.used_frames.borrow_mut());
            let each = |pages: &[Pfn]| {
                used.use_singles(pages);
            };
            self.mem(|mem| {
                mem.begin_pace();
                mem.pass_file(cpu, Pages(pages.into()), LAY_OUT_STEP, each);
            });
            self.keep_in_memory(&directory, name, number);
        }
        Ok(())
    }

    /// What the journal of the disk keeps of a file that was laid out just before, once the time for that is over:
    /// while it lasted, there were more pages of files in memory, and statistics of cgroups were flushed with them.
    pub fn keep_journal_of(&self, path: &str, size: Bytes) {
        if self.shared.filesystem != Filesystem::Ext4 {
            return;
        }
        let directory = self.shared.files.borrow_mut().directory_on_disk(split_path(path).0);
        if let Some(directory) = directory {
            self.keep_log_of_file(directory.device, size.to_pages_ceil().0.div_ceil(LAY_OUT_STEP.0));
        }
    }

    /// A file that was written just before has its dentry and its inode in memory, if there is room.
    fn keep_in_memory(&self, directory: &Inode, name: Name, number: u32) {
        let Some(parent) = self.dentry_of(directory) else { return };
        let cpu = self.machine().current_cpu();
        let (of_inode, _) = self.shared.filesystem.inode_objects(true);
        let caches = [&[Cache::Dentry], of_inode].concat();
        let Some(objects) = self.mem(|mem| mem.objects_of_file(cpu, &caches)) else { return };
        let mapping = self.mem(|mem| mem.mapping_create());
        let inode = self.shared.files.borrow_mut().bring_in(number, mapping);
        inode.opens.set(1);
        self.mem(|mem| {
            let [dentry, inode, extra] = [objects[0], objects[1], objects[2]];
            let log_item = objects.get(3).copied();
            mem.attach_inode(mapping, InodeObjects { number, inode, extra, log_item });
            mem.add_dentry(parent, name, dentry, Some(mapping));
        });
        self.put_inode(&inode);
    }

    /// Creates a file or directory in a directory, which the caller holds. It is held, and was changed in a
    /// transaction.
    pub(crate) async fn create(
        &self,
        process: &Process,
        directory: &Rc<Inode>,
        text: &str,
        is_directory: bool,
    ) -> Result<Rc<Inode>, Errno> {
        let name = self.name_number(text);
        let dentry = match self.look_up_name(process, directory, name).await? {
            Looked::Negative(dentry) => dentry,
            Looked::Inode(inode) => {
                self.put_inode(&inode);
                return Err(Errno::Exist);
            }
        };
        self.put_released();
        let (number, left) = self.shared.files.borrow_mut().take_number();
        let mapping = self.mem(|mem| match left {
            Some(mapping) => {
                mem.reuse_inode(mapping);
                mapping
            }
            None => mem.mapping_create(),
        });
        let inode = self.shared.files.borrow_mut().create(directory, number, mapping, is_directory);
        inode.opens.set(1);
        inode.group.set(self.shared.filesystem.group_of(directory.directory));
        if let Err(errno) = self.enter_name(process, directory, name, dentry, &inode).await {
            inode.unlinked.set(true);
            self.put_inode_and(&inode, Some(dentry));
            return Err(errno);
        }
        self.log_create(process, &inode).await;
        // A new file of ext4 is in the journal, and is to be written by nobody else until it has data.
        if is_directory && self.shared.filesystem.flusher_writes_inodes() {
            self.mem(|mem| mem.set_inode_dirty(inode.mapping, true));
            self.note_dirty_inode(&inode, process.memcg());
        }
        Ok(inode)
    }

    /// Makes a new inode whole, and gives it the name of a negative dentry.
    async fn enter_name(
        &self,
        process: &Process,
        directory: &Rc<Inode>,
        name: Name,
        dentry: DentryId,
        inode: &Rc<Inode>,
    ) -> Result<(), Errno> {
        self.fill_inode(process, inode, true).await?;
        self.change_directory(process, directory, name).await?;
        // Other tasks may have been faster while this one waited.
        let mut files = self.shared.files.borrow_mut();
        if directory.unlinked.get() {
            return Err(Errno::NoEnt);
        }
        if files.find(directory, name).is_some() {
            return Err(Errno::Exist);
        }
        files.add_name(directory, name, inode.number);
        self.mem(|mem| mem.bind_dentry(dentry, inode.mapping));
        Ok(())
    }

    /// Removes a file. Its pages go, dirty or not, once nobody has it open; those that are on their
    /// way to or from the disk are waited for. Its dentry stays, negative, if nobody else uses it.
    ///
    /// # Errors
    /// `NoEnt`; `NotDir`; `IsDir`; `NoMem`; `Killed`.
    pub async fn unlink(&self, process: &Process, path: &str) -> Result<(), Errno> {
        process.check_alive()?;
        self.put_closed();
        self.machine().charge(CostOp::FileUnlink, 1);
        let (directory, name) = self.walk(process, path).await?;
        let removed = self.remove_file(process, &directory, name).await;
        self.put_inode(&directory);
        removed?;
        self.return_to_user(process).await;
        Ok(())
    }

    /// Removes a file from a directory, which the caller holds.
    pub(crate) async fn remove_file(
        &self,
        process: &Process,
        directory: &Rc<Inode>,
        name: &str,
    ) -> Result<(), Errno> {
        let inode = self.remove_name(process, directory, name, false).await?;
        while inode.is_orphan() && !inode.gone.get() {
            if self.shared.in_flight.borrow().reads(inode.mapping) {
                self.wait_for_any_read().await;
            } else if self.is_in_transfer(&inode) {
                self.wait_for_writeback(inode.mapping).await;
            } else {
                self.remove_or_remember(&inode);
            }
        }
        Ok(())
    }

    /// Removes the name of a file, or of an empty directory, from a directory that the caller holds. The inode
    /// is no longer held, and is an orphan if nobody else has it open.
    pub(crate) async fn remove_name(
        &self,
        process: &Process,
        directory: &Rc<Inode>,
        text: &str,
        is_directory: bool,
    ) -> Result<Rc<Inode>, Errno> {
        let name = self.name_number(text);
        let inode = match self.look_up_name(process, directory, name).await? {
            Looked::Inode(inode) => inode,
            Looked::Negative(dentry) => {
                self.put_negative(dentry);
                return Err(Errno::NoEnt);
            }
        };
        if let Err(errno) = self.may_remove(&inode, is_directory) {
            self.put_inode(&inode);
            return Err(errno);
        }
        let changed = self.change_directory(process, directory, name).await;
        let allowed = changed.and_then(|()| self.may_remove(&inode, is_directory));
        if let Err(errno) = allowed {
            self.put_inode(&inode);
            return Err(errno);
        }
        self.shared.files.borrow_mut().remove_name(directory, name);
        inode.unlinked.set(true);
        let (cpu, dentry) = (self.machine().current_cpu(), self.dentry_of(&inode).expect("it is held"));
        self.mem(|mem| {
            if is_directory {
                mem.free_negative_below(cpu, dentry);
            }
            mem.delete_dentry(dentry);
            mem.put_dentry(cpu, dentry);
        });
        self.log_remove(&inode).await;
        inode.opens.set(inode.opens.get() - 1);
        Ok(inode)
    }

    /// Whether the name of an inode may be removed.
    fn may_remove(&self, inode: &Inode, is_directory: bool) -> Result<(), Errno> {
        match (inode.directory, is_directory) {
            _ if inode.is_root() => Err(Errno::Busy),
            _ if inode.unlinked.get() => Err(Errno::NoEnt),
            (None, true) => Err(Errno::NotDir),
            (Some(_), false) => Err(Errno::IsDir),
            (Some(_), true) if self.shared.files.borrow().names(inode).len() > 0 => Err(Errno::NotEmpty),
            _ => Ok(()),
        }
    }
}
