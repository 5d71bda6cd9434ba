//! Giving a file another name (`vfs_rename`, `d_move`).
//!
//! The dentry goes with the file: no negative one stays behind. A file that had the new name is removed first, in a
//! transaction of its own, where Linux has one for all. Left out: directories, exchanging names, the file's own
//! change time. Next: [`super::names`].

use std::rc::Rc;

use mm::base::event::Trace;
use mm::fs::dentry::Name;

use crate::errno::Errno;
use crate::files::inode::Inode;
use crate::files::lookup::Looked;
use crate::handle::Kernel;
use crate::machine::{CostOp, Machine};
use crate::tasks::process::Process;

/// A place for a name.
struct Entry<'a> {
    /// It is held.
    directory: Rc<Inode>,
    text: &'a str,
    name: Name,
}

impl<M: Machine, T: Trace> Kernel<M, T> {
    /// `rename(2)` of a file. One that has the new name is removed, as by [`unlink`](Self::unlink).
    ///
    /// # Errors
    /// `NoEnt`; `NotDir`; `IsDir` for a directory; `Inval` from one disk to another; `NoMem`; `Killed`.
    pub async fn rename(&self, process: &Process, from: &str, to: &str) -> Result<(), Errno> {
        process.check_alive()?;
        self.put_closed();
        self.machine().charge(CostOp::FileUnlink, 1);
        let from = self.entry(process, from).await?;
        let moved = match self.entry(process, to).await {
            Ok(to) => {
                let moved = self.rename_entry(process, &from, &to).await;
                self.put_inode(&to.directory);
                moved
            }
            Err(errno) => Err(errno),
        };
        self.put_inode(&from.directory);
        self.return_to_user(process).await;
        moved
    }

    async fn entry<'a>(&self, process: &Process, path: &'a str) -> Result<Entry<'a>, Errno> {
        let (directory, text) = self.walk(process, path).await?;
        Ok(Entry { directory, text, name: self.name_number(text) })
    }

    async fn rename_entry(&self, process: &Process, from: &Entry<'_>, to: &Entry<'_>) -> Result<(), Errno> {
        let inode = match self.look_up_name(process, &from.directory, from.name).await? {
            Looked::Inode(inode) => inode,
            Looked::Negative(dentry) => {
                self.put_negative(dentry);
                return Err(Errno::NoEnt);
            }
        };
        let moved = if inode.directory.is_some() {
            Err(Errno::IsDir)
        } else if inode.device != to.directory.device {
            Err(Errno::Inval)
        } else {
            self.move_file(process, &inode, from, to).await
        };
        self.put_inode(&inode);
        moved
    }

    /// Gives a file, which the caller holds, another name, until nobody is faster.
    async fn move_file(
        &self,
        process: &Process,
        inode: &Rc<Inode>,
        from: &Entry<'_>,
        to: &Entry<'_>,
    ) -> Result<(), Errno> {
        self.change_directory(process, &from.directory, from.name).await?;
        loop {
            let free = match self.look_up_name(process, &to.directory, to.name).await? {
                Looked::Negative(dentry) => dentry,
                Looked::Inode(victim) => {
                    let is_same = Rc::ptr_eq(&victim, inode);
                    self.put_inode(&victim);
                    if is_same {
                        return Ok(());
                    }
                    match self.remove_file(process, &to.directory, to.text).await {
                        Ok(()) | Err(Errno::NoEnt) => continue, // Another task may have removed it.
                        Err(errno) => return Err(errno),
                    }
                }
            };
            let changed = self.change_directory(process, &to.directory, to.name).await;
            let moved = changed.and_then(|()| {
                // Other tasks may have been faster while this one waited.
                let mut files = self.shared.files.borrow_mut();
                if to.directory.unlinked.get() || files.find(&from.directory, from.name) != Some(inode.number)
                {
                    return Err(Errno::NoEnt);
                }
                if files.find(&to.directory, to.name).is_some() {
                    return Ok(false);
                }
                files.remove_name(&from.directory, from.name);
                files.add_name(&to.directory, to.name, inode.number);
                Ok(true)
            });
            if moved == Ok(true) {
                let dentry = self.dentry_of(inode).expect("it is held");
                self.mem(|mem| mem.move_dentry(dentry, free));
            }
            self.put_negative(free);
            if moved? {
                return Ok(());
            }
        }
    }
}
