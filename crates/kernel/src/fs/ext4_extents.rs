//! Extents of files on ext4: what of them is known in memory, and the block of those that an inode has no room for.
//!
//! ```text
//!   look for a page -> known:     nothing to do
//!                      not known: four extents or fewer are in the inode, and all are known then
//!                                 more are in a block of the device: all are known if it had to be read, else this one
//! ```
//! In guests of 5.10 with 2,000 files of ten extents, pages of 1,250 files that were read brought 12,500 objects, 5,000
//! KiB more from the disk than the pages are, and that many active pages: what is read is looked up twice. While
//! files grow block by block, each writeback makes the block of extents dirty: 33,295 pages dirtied for 20,000 written.
//!
//! Left out: a second block, from 341 extents on; to read it again when its file is cut or removed. Next:
//! [`mm::fs::ext4::extents`], [`super::ext4_table`].

use std::ops::Range;

use mm::base::event::Trace;
use mm::base::gfp::Gfp;
use mm::fs::ext4::extents::Part;
use mm::fs::ext4::layout::extent_block;
use mm::version::geometry::Cache;

use crate::errno::Errno;
use crate::files::inode::Inode;
use crate::handle::Kernel;
use crate::machine::Machine;
use crate::tasks::process::Process;

impl<M: Machine, T: Trace> Kernel<M, T> {
    /// Where pages of a file lie is looked up (`ext4_map_blocks`).
    pub(crate) async fn read_extents(
        &self,
        process: &Process,
        inode: &Inode,
        pages: Range<u32>,
    ) -> Result<(), Errno> {
        let mut page = pages.start;
        while page < pages.end {
            let run = inode.extents.borrow().at(page);
            let Some(run) = run else { break };
            page = run.first + run.pages;
            if self.mem(|mem| mem.fs.vfs.extents.look_up(inode.mapping, run.first)) {
                continue;
            }
            if inode.has_leaf.get() {
                let device = self.device_of(inode);
                if !self.use_metadata(process, &device, extent_block(inode.number)).await? {
                    self.know_written(process, inode, run.first).await?;
                    continue;
                }
            }
            let all: Vec<u32> = inode.extents.borrow().iter().map(|run| run.first).collect();
            for first in all {
                self.know_written(process, inode, first).await?;
            }
        }
        Ok(())
    }

    /// A written extent is known from now on.
    async fn know_written(&self, process: &Process, inode: &Inode, first: u32) -> Result<(), Errno> {
        if self.mem(|mem| mem.fs.vfs.extents.is_known(inode.mapping, first)) {
            return Ok(());
        }
        let is_there = || inode.extents.borrow().at(first).is_some_and(|run| run.first == first);
        self.know(process, inode, Part::Written { first }, is_there).await
    }

    /// A part of a file is known from now on, if it is still there once an object for it is.
    async fn know(
        &self,
        process: &Process,
        inode: &Inode,
        part: Part,
        is_there: impl Fn() -> bool,
    ) -> Result<(), Errno> {
        let object = self.alloc_object(Some(process), Cache::ExtentStatus, Gfp::NOFS).await?;
        let cpu = self.machine().current_cpu();
        let is_there = is_there() && !inode.gone.get();
        self.mem(|mem| {
            let unused =
                if is_there { mem.fs.vfs.extents.put(inode.mapping, part, object) } else { Some(object) };
            if let Some(unused) = unused {
                mem.free_object(cpu, unused);
            }
        });
        Ok(())
    }

    /// A page of a file is about to be made dirty: behind the last block it joins a delayed extent, and the hole that
    /// it falls into is known (`ext4_da_map_blocks`).
    pub(crate) async fn note_extents(
        &self,
        process: &Process,
        inode: &Inode,
        index: u32,
    ) -> Result<(), Errno> {
        let is_behind = || inode.is_in_table() && index >= inode.mapped_pages();
        if is_behind() {
            let lacking = self.mem(|mem| mem.fs.vfs.extents.lacking(inode.mapping));
            for part in lacking.into_iter().flatten() {
                self.know(process, inode, part, is_behind).await?;
            }
        }
        Ok(())
    }
}
