//! Directories: making, reading and removing them, and mounting disks.
//!
//! A directory has a dentry and an inode like a file; what lies below it in memory keeps it there. Its blocks
//! are its filesystem's matter ([`crate::fs::directories`]). Left out: `.` and `..`, links. Next:
//! [`super::lookup`], [`super::names`].

use mm::base::event::Trace;

use crate::errno::Errno;
use crate::files::lookup::Looked;
use crate::fs::Filesystem;
use crate::handle::Kernel;
use crate::machine::{CostOp, Machine};
use crate::tasks::process::Process;

/// Blocks of a directory whose names one call of `getdents(2)` returns: 32 KiB of them.
const BLOCKS_IN_CALL: u32 = 8;

impl<M: Machine, T: Trace> Kernel<M, T> {
    /// `mkdir(2)`.
    ///
    /// # Errors
    /// `Exist`, also for a file; `NoEnt`; `NotDir`; `NoMem`; `Killed`.
    pub async fn make_dir(&self, process: &Process, path: &str) -> Result<(), Errno> {
        process.check_alive()?;
        self.put_closed();
        self.machine().charge(CostOp::FileOpen, 1);
        let (directory, name) = self.walk(process, path).await?;
        let made = self.create(process, &directory, name, true).await;
        self.put_inode(&directory);
        if let Ok(inode) = &made {
            self.machine().charge(CostOp::FileCreate, 1);
            self.put_inode(inode);
        }
        self.return_to_user(process).await;
        made.map(|_| ())
    }

    /// Makes a directory whose files lie on disk `device`: where that disk is mounted.
    ///
    /// # Errors
    /// `Exist`; `NoEnt` when there is no such disk; `Inval` when the directory is inside of another one,
    /// and on XFS for every disk but the first: its inodes and its log are modelled on that one only.
    pub fn make_dir_on(&self, path: &str, device: u16) -> Result<(), Errno> {
        let is_modelled = device == 0 || self.shared.filesystem != Filesystem::Xfs;
        if path.is_empty() || path.contains('/') || !is_modelled {
            return Err(Errno::Inval);
        }
        let mut files = self.shared.files.borrow_mut();
        let (top, name) = (files.top(), files.spellings.number(path));
        if files.mounted_at(&top, name).is_some() || files.find(&top, name).is_some() {
            return Err(Errno::Exist);
        }
        if files.mount(path, device) { Ok(()) } else { Err(Errno::NoEnt) }
    }

    /// Names in a directory, in the order in which they were made: `getdents(2)` until the end.
    ///
    /// # Errors
    /// `NoEnt`; `NotDir`; `NoMem`; `Killed`.
    pub async fn read_dir(&self, process: &Process, path: &str) -> Result<Vec<String>, Errno> {
        process.check_alive()?;
        self.put_closed();
        self.machine().charge(CostOp::FileOpen, 1);
        let (parent, name) = self.walk(process, path).await?;
        let looked = self.look_up(process, &parent, name).await;
        self.put_inode(&parent);
        let directory = match looked? {
            Looked::Inode(inode) => inode,
            Looked::Negative(dentry) => {
                self.put_negative(dentry);
                return Err(Errno::NoEnt);
            }
        };
        let mut read = if directory.directory.is_some() { Ok(()) } else { Err(Errno::NotDir) };
        let (mut block, mut blocks) = (0, 1);
        while read.is_ok() && block < blocks {
            blocks = self.shared.files.borrow().names(&directory).blocks();
            if block.is_multiple_of(BLOCKS_IN_CALL) {
                self.machine().charge(CostOp::Syscall, 1);
                self.return_to_user(process).await;
            }
            read = self.read_directory_block(process, &directory, block).await;
            block += 1;
        }
        let names = read.map(|()| {
            let files = self.shared.files.borrow();
            files.names(&directory).entries().map(|(name, _)| files.spellings.text(name)).collect()
        });
        self.put_inode(&directory);
        names
    }

    /// `rmdir(2)`.
    ///
    /// # Errors
    /// `NotEmpty`; `NoEnt`; `NotDir`; `Busy` where a disk is mounted; `NoMem`; `Killed`.
    pub async fn remove_dir(&self, process: &Process, path: &str) -> Result<(), Errno> {
        process.check_alive()?;
        self.put_closed();
        self.machine().charge(CostOp::FileUnlink, 1);
        let (directory, name) = self.walk(process, path).await?;
        let removed = self.remove_name(process, &directory, name, true).await;
        self.put_inode(&directory);
        if let Ok(inode) = &removed
            && inode.is_orphan()
        {
            self.remove_or_remember(inode);
        }
        self.return_to_user(process).await;
        removed.map(|_| ())
    }
}
