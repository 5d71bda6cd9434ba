//! Finding files: a path is walked dentry by dentry, and what is not in memory is brought there
//! (`link_path_walk`, `lookup_slow`; MECHANISMS 9.4).
//!
//! ```text
//!   name --> dentry in memory? --yes--> its inode, or none: negative
//!               | no
//!               v
//!            new dentry; blocks of the directory are read --> no such name: it is negative
//!               |
//!               v
//!            inode in memory? --no--> its place on the disk is read, its objects are allocated
//! ```
//! Whatever a look-up returns is held, so that it stays in memory. Two tasks may bring in the same name at the
//! same time; the second one finds what the first one made. Left out: the lock of a directory, which would let
//! the second one wait; symbolic links, `.` and `..`. Next: [`super::open`], [`super::names`],
//! [`super::directories`].

use std::rc::Rc;

use mm::base::event::Trace;
use mm::base::gfp::Gfp;
use mm::base::ids::{DentryId, MappingId};
use mm::fs::dentry::Name;
use mm::fs::inode::InodeObjects;
use mm::slab::object::Object;
use mm::version::geometry::Cache;

use crate::errno::Errno;
use crate::files::inode::Inode;
use crate::handle::Kernel;
use crate::machine::Machine;
use crate::tasks::process::Process;

/// What a name leads to.
#[derive(Debug)]
pub(crate) enum Looked {
    /// An inode, which is held.
    Inode(Rc<Inode>),
    /// Nothing: a negative dentry, which is held.
    Negative(DentryId),
}

/// Splits a path: the directory that the last name is in, and that name.
pub(crate) fn split_path(path: &str) -> (&str, &str) {
    split_at(path, path.bytes().rposition(|byte| byte == b'/')).unwrap_or(("", path))
}

/// Splits a path: its first name, and what is below that. Names are too short for a search by words.
fn split_first(path: &str) -> (&str, &str) {
    split_at(path, path.bytes().position(|byte| byte == b'/')).unwrap_or((path, ""))
}

/// What is before and behind a slash, if there is one.
fn split_at(path: &str, slash: Option<usize>) -> Option<(&str, &str)> {
    slash.map(|slash| (&path[..slash], &path[slash + 1..]))
}

impl<M: Machine, T: Trace> Kernel<M, T> {
    /// The mapping of the file at `path` if its inode is in memory: for who only looks, and changes nothing by it.
    pub fn mapping_of(&self, path: &str) -> Option<MappingId> {
        self.shared.files.borrow().look(path).map(|inode| inode.mapping)
    }

    /// Paths and mappings of the files in memory; none where there are more than `most` names to look at. As
    /// [`Kernel::mapping_of`], for who only looks.
    pub fn files_in_memory(&self, most: usize) -> Option<Vec<(String, MappingId)>> {
        self.shared.files.borrow().named(most)
    }

    /// The directory that the last name of a path lies in, held, and that name.
    pub(crate) async fn walk<'a>(
        &self,
        process: &Process,
        path: &'a str,
    ) -> Result<(Rc<Inode>, &'a str), Errno> {
        let (directories, last) = split_path(path);
        if last.is_empty() {
            return Err(Errno::NoEnt);
        }
        let (mut directory, mut rest) = self.walk_in_memory(directories);
        self.hold_inode(&directory);
        while !rest.is_empty() {
            let (name, below) = split_first(rest);
            rest = below;
            if name.is_empty() {
                continue;
            }
            let found = self.look_up(process, &directory, name).await;
            self.put_inode(&directory);
            directory = match found? {
                Looked::Inode(inode) if inode.directory.is_some() => inode,
                Looked::Inode(inode) => {
                    self.put_inode(&inode);
                    return Err(Errno::NotDir);
                }
                Looked::Negative(dentry) => {
                    self.put_negative(dentry);
                    return Err(Errno::NoEnt);
                }
            };
        }
        Ok((directory, last))
    }

    /// Walks as far as dentries of directories are in memory, without holding any: the last one, and what is
    /// left of the path.
    fn walk_in_memory<'a>(&self, mut path: &'a str) -> (Rc<Inode>, &'a str) {
        let files = self.shared.files.borrow();
        let mut directory = files.top();
        while !path.is_empty() {
            let (text, rest) = split_first(path);
            if !text.is_empty() {
                let Some(name) = files.spellings.find(text) else { break };
                let next = files.mounted_at(&directory, name).or_else(|| {
                    let parent = self.dentry_of(&directory)?;
                    let mapping = self.mem(|mem| {
                        mem.fs.vfs.find_dentry(parent, name).and_then(|dentry| mem.fs.vfs.inode_of(dentry))
                    })?;
                    files.by_mapping(mapping).filter(|inode| inode.directory.is_some())
                });
                let Some(next) = next else { break };
                directory = next;
            }
            path = rest;
        }
        (directory, path)
    }

    /// What is in memory of a name, held.
    fn look_in_memory(&self, directory: &Inode, parent: DentryId, name: Name) -> Option<Looked> {
        if let Some(root) = self.shared.files.borrow().mounted_at(directory, name) {
            self.hold_inode(&root);
            return Some(Looked::Inode(root));
        }
        let (dentry, mapping) = self.mem(|mem| {
            let dentry = mem.fs.vfs.find_dentry(parent, name)?;
            mem.hold_dentry(dentry);
            Some((dentry, mem.fs.vfs.inode_of(dentry)))
        })?;
        let Some(mapping) = mapping else { return Some(Looked::Negative(dentry)) };
        let inode = self.shared.files.borrow().by_mapping(mapping).expect("a dentry's inode is in memory");
        inode.opens.set(inode.opens.get() + 1);
        Some(Looked::Inode(inode))
    }

    /// Looks a name up in a directory, which the caller holds.
    pub(crate) async fn look_up(
        &self,
        process: &Process,
        directory: &Rc<Inode>,
        text: &str,
    ) -> Result<Looked, Errno> {
        let name = self.name_number(text);
        self.look_up_name(process, directory, name).await
    }

    /// The number of a name.
    pub(crate) fn name_number(&self, text: &str) -> Name {
        self.shared.files.borrow_mut().spellings.number(text)
    }

    /// [`look_up`](Self::look_up) by the number of the name.
    pub(crate) async fn look_up_name(
        &self,
        process: &Process,
        directory: &Rc<Inode>,
        name: Name,
    ) -> Result<Looked, Errno> {
        loop {
            let parent = self.dentry_of(directory).ok_or(Errno::NoEnt)?;
            if let Some(looked) = self.look_in_memory(directory, parent, name) {
                return Ok(looked);
            }
            if directory.unlinked.get() {
                return Err(Errno::NoEnt);
            }
            let object = self.alloc_object(Some(process), Cache::Dentry, Gfp::KERNEL).await?;
            match self.read_name(process, directory, name).await {
                Ok(inode) => {
                    if let Some(looked) = self.add_dentry(directory, name, object, inode) {
                        return Ok(looked);
                    }
                }
                Err(errno) => {
                    self.free_object(object);
                    return Err(errno);
                }
            }
        }
    }

    /// Finds a name in the blocks of its directory, and brings its inode into memory, held.
    async fn read_name(
        &self,
        process: &Process,
        directory: &Rc<Inode>,
        name: Name,
    ) -> Result<Option<Rc<Inode>>, Errno> {
        self.read_directory(process, directory, name).await?;
        let number = self.shared.files.borrow().find(directory, name);
        match number {
            Some(number) => self.load_inode(process, number).await.map(Some),
            None => Ok(None),
        }
    }

    /// Adds the dentry of a name with what was read of it. None: that is no longer so.
    fn add_dentry(
        &self,
        directory: &Rc<Inode>,
        name: Name,
        object: Object,
        inode: Option<Rc<Inode>>,
    ) -> Option<Looked> {
        let parent = self.dentry_of(directory).filter(|_| !directory.unlinked.get());
        let number = self.shared.files.borrow().find(directory, name);
        let known =
            parent.is_some_and(|parent| self.mem(|mem| mem.fs.vfs.find_dentry(parent, name)).is_some());
        let (Some(parent), true) = (parent, !known && number == inode.as_ref().map(|inode| inode.number))
        else {
            self.free_object(object);
            if let Some(inode) = inode {
                self.put_inode_and(&inode, None);
            }
            return None;
        };
        let mapping = inode.as_ref().map(|inode| inode.mapping);
        let dentry = self.mem(|mem| mem.add_dentry(parent, name, object, mapping));
        Some(inode.map_or(Looked::Negative(dentry), Looked::Inode))
    }

    fn free_object(&self, object: Object) {
        let cpu = self.machine().current_cpu();
        self.mem(|mem| mem.free_object(cpu, object));
    }

    /// A task has no more use for a negative dentry.
    pub(crate) fn put_negative(&self, dentry: DentryId) {
        let cpu = self.machine().current_cpu();
        self.mem(|mem| mem.put_dentry(cpu, dentry));
    }

    /// Brings an inode of the disk into memory (`iget`); its number of users is one more, but not that of its
    /// dentry.
    async fn load_inode(&self, process: &Process, number: u32) -> Result<Rc<Inode>, Errno> {
        loop {
            self.put_released();
            let inode = {
                let mut files = self.shared.files.borrow_mut();
                files.in_memory(number).unwrap_or_else(|| {
                    let mapping = self.mem(|mem| mem.mapping_create());
                    files.bring_in(number, mapping)
                })
            };
            inode.opens.set(inode.opens.get() + 1);
            if self.is_in_memory(&inode) {
                return Ok(inode);
            }
            let filled = self.fill_inode(process, &inode, false).await;
            // Whoever else brought it in may have had no more use for it, so that it was evicted meanwhile.
            if filled.is_ok() && !inode.gone.get() && self.is_in_memory(&inode) {
                return Ok(inode);
            }
            self.put_inode_and(&inode, None);
            filled?;
        }
    }

    /// Whether an inode can be used: one that was evicted and not freed is in use again.
    fn is_in_memory(&self, inode: &Inode) -> bool {
        self.mem(|mem| mem.fs.vfs.has_inode(inode.mapping) || mem.recycle_inode(inode.mapping))
    }

    /// Gives an inode that is new in memory its place on the disk and its objects. A file that is created may have them
    /// from one that is gone.
    pub(crate) async fn fill_inode(
        &self,
        process: &Process,
        inode: &Rc<Inode>,
        create: bool,
    ) -> Result<(), Errno> {
        if create && self.mem(|mem| mem.fs.vfs.has_objects(inode.mapping)) {
            return Ok(());
        }
        self.touch_metadata(process, inode, create).await?;
        self.alloc_inode(process, inode, create).await
    }

    /// Allocates what an inode costs. It may have left memory meanwhile, if another task brought it in.
    async fn alloc_inode(&self, process: &Process, inode: &Inode, create: bool) -> Result<(), Errno> {
        let (wanted, gfp) = self.shared.filesystem.inode_objects(create);
        let mut parts = [None; 3];
        let mut failed = None;
        for (part, &cache) in parts.iter_mut().zip(wanted) {
            match self.alloc_object(Some(process), cache, gfp).await {
                Ok(object) => *part = Some(object),
                Err(errno) => {
                    failed = Some(errno);
                    break;
                }
            }
        }
        let cpu = self.machine().current_cpu();
        self.put_released();
        self.mem(|mem| match parts {
            [Some(object), Some(extra), log_item]
                if failed.is_none() && !inode.gone.get() && !mem.fs.vfs.has_objects(inode.mapping) =>
            {
                let number = inode.number;
                mem.attach_inode(inode.mapping, InodeObjects { number, inode: object, extra, log_item });
            }
            _ => parts.into_iter().flatten().for_each(|object| {
                mem.free_object(cpu, object);
            }),
        });
        failed.map_or(Ok(()), Err)
    }
}
