//! Opening: what a descriptor holds in memory.
//!
//! An open file pins its dentry, and that the inode with its objects of the slab. Left out: tables
//! of descriptors. Next: [`super::lookup`], [`super::names`], [`super::close`].

use mm::base::event::Trace;
use units::{Bytes, PAGE_SIZE};

use crate::errno::Errno;
use crate::files::descriptor::OpenFile;
use crate::files::lookup::Looked;
use crate::handle::Kernel;
use crate::machine::{CostOp, Machine};
use crate::tasks::process::Process;

impl<M: Machine, T: Trace> Kernel<M, T> {
    /// Opens a file, or creates an empty one: its dentry and inode are in memory from then on, and
    /// stay there until they are reclaimed.
    ///
    /// # Errors
    /// `NoEnt`; `NotDir`; `IsDir`; `Exist` for a file to be created; `NoMem`; `Killed`.
    pub async fn open(&self, process: &Process, path: &str, create: bool) -> Result<OpenFile, Errno> {
        process.check_alive()?;
        self.put_closed();
        if create {
            self.machine().charge(CostOp::FileCreate, 1);
        } else {
            self.machine().charge(CostOp::FileOpen, 1);
            self.machine().charge(CostOp::Syscall, 1); // The close.
        }
        let (directory, name) = self.walk(process, path).await?;
        let inode = if create {
            self.create(process, &directory, name, false).await
        } else {
            self.look_up(process, &directory, name).await.and_then(|looked| match looked {
                Looked::Inode(inode) if inode.directory.is_some() => {
                    self.put_inode(&inode);
                    Err(Errno::IsDir)
                }
                Looked::Inode(inode) => Ok(inode),
                Looked::Negative(dentry) => {
                    self.put_negative(dentry);
                    Err(Errno::NoEnt)
                }
            })
        };
        self.put_inode(&directory);
        let file = OpenFile::new(inode?, &self.shared.closed);
        self.return_to_user(process).await;
        Ok(file)
    }

    /// `stat(2)`: the size of a file that is not opened. Its dentry and inode are in memory then, as
    /// after an open and a close; of one that does not exist, a negative dentry.
    ///
    /// # Errors
    /// `NoEnt`; `NotDir`; `NoMem`; `Killed`.
    pub async fn stat(&self, process: &Process, path: &str) -> Result<Bytes, Errno> {
        process.check_alive()?;
        self.put_closed();
        self.machine().charge(CostOp::FileOpen, 1);
        let (directory, name) = self.walk(process, path).await?;
        let looked = self.look_up(process, &directory, name).await;
        self.put_inode(&directory);
        let found = match looked? {
            Looked::Inode(inode) => {
                let size = match inode.directory {
                    Some(_) => u64::from(self.shared.files.borrow().names(&inode).blocks()) * PAGE_SIZE,
                    None => inode.size.get(),
                };
                self.put_inode(&inode);
                Ok(Bytes(size))
            }
            Looked::Negative(dentry) => {
                self.put_negative(dentry);
                Err(Errno::NoEnt)
            }
        };
        self.return_to_user(process).await;
        found
    }
}
