//! ext4: metadata blocks in the page cache of the block device, and a buffer head for every page
//! that is dirtied.
//!
//! Next: [`super::ext4_change`] for changes in a transaction, [`super::ext4_table`] for which blocks a file costs,
//! [`super::ext4_extents`] for where its pages lie.

use std::rc::Rc;

use mm::base::event::Trace;
use mm::base::gfp::Gfp;
use mm::pages::tree::Slot;
use mm::version::geometry::Cache;

use crate::cache::add::Place;
use crate::cache::in_flight::PageRange;
use crate::cache::look::Found;
use crate::errno::Errno;
use crate::files::inode::Inode;
use crate::handle::Kernel;
use crate::machine::Machine;
use crate::tasks::process::Process;

/// Memory for metadata blocks is allocated inside of transactions.
const METADATA_GFP: Gfp = Gfp::HIGHUSER_MOVABLE.without(Gfp::FS);

impl<M: Machine, T: Trace> Kernel<M, T> {
    pub(crate) fn device_of(&self, inode: &Inode) -> Rc<Inode> {
        self.shared.files.borrow().device_of(inode)
    }

    /// Looks a metadata block up in order to read it. One that was never used holds nothing. True: it had to
    /// be read.
    pub(crate) async fn read_metadata(
        &self,
        process: &Process,
        device: &Rc<Inode>,
        block: u32,
    ) -> Result<bool, Errno> {
        let mut is_read = false;
        loop {
            match self.look(device, block) {
                Found::Ready(pfn) => {
                    let cpu = self.machine().current_cpu();
                    self.mem(|mem| mem.mark_accessed(cpu, pfn));
                    return Ok(is_read);
                }
                Found::Marker(_) => {}
                Found::Locked => self.wait_for_page(device.mapping, block).await,
                // A reference keeps what was read until it is used: only the access is lost here.
                Found::Missing if !is_read && self.mem(|mem| mem.journal_has_block(device.device, block)) => {
                    is_read = self.bring_block(Some(process), device, block).await?;
                }
                Found::Missing => return Ok(is_read),
            }
            process.check_alive()?;
        }
    }

    /// The same. One that was not in memory is looked up twice, to have it read and to use it, so it is active
    /// (measured of directories in a guest of 6.12, of blocks of extents in those of 5.10).
    pub(super) async fn use_metadata(
        &self,
        process: &Process,
        device: &Rc<Inode>,
        block: u32,
    ) -> Result<bool, Errno> {
        let is_read = self.read_metadata(process, device, block).await?;
        if is_read && let Found::Ready(pfn) = self.look(device, block) {
            let cpu = self.machine().current_cpu();
            self.mem(|mem| mem.mark_accessed(cpu, pfn));
        }
        Ok(is_read)
    }

    /// Adds a metadata block to the page cache of its device. True: it was used before, and is being read.
    pub(super) async fn bring_block(
        &self,
        process: Option<&Process>,
        device: &Rc<Inode>,
        block: u32,
    ) -> Result<bool, Errno> {
        let is_read = self.add_block(process, device, block).await?;
        if is_read {
            self.submit_read(device, block, 1);
        }
        Ok(is_read)
    }

    /// Adds a metadata block to the page cache of its device, with its buffer head. True: it is locked, and to be read.
    /// One that was never used is new, and ready at once.
    pub(crate) async fn add_block(
        &self,
        process: Option<&Process>,
        device: &Rc<Inode>,
        block: u32,
    ) -> Result<bool, Errno> {
        if !self.add_metadata_page(process, device, block).await? {
            return Ok(false);
        }
        let is_new = self.mem(|mem| mem.journal_make_block(device.device, block));
        if is_new {
            self.unlock_pages(PageRange { mapping: device.mapping, first: block, count: 1 });
        }
        Ok(!is_new)
    }

    /// Adds a locked page of metadata to the page cache of its device, with its buffer head. False: it was there.
    pub(super) async fn add_metadata_page(
        &self,
        process: Option<&Process>,
        device: &Inode,
        block: u32,
    ) -> Result<bool, Errno> {
        let is_added = self.add_folio_for(process, device, Place::page(block), METADATA_GFP).await?;
        if is_added {
            // Without memory for it the page has none, and nothing else changes.
            let _ = self.give_buffer(process, device, block).await;
        }
        Ok(is_added)
    }

    /// A folio that is dirtied gets a buffer head for each of its pages, charged with them.
    pub(crate) async fn give_buffer(
        &self,
        process: Option<&Process>,
        inode: &Inode,
        index: u32,
    ) -> Result<(), Errno> {
        let bare = |mem: &mut mm::Memory<T>| match mem.cache.find(inode.mapping, index) {
            Slot::Page(pfn) if !mem.core.alloc.frames.flags(pfn).has(mm::base::frame::PageFlags::PRIVATE) => {
                Some(pfn)
            }
            _ => None,
        };
        let Some(pages) = self.mem(|mem| bare(mem).map(|pfn| mem.core.alloc.frames.pages(pfn))) else {
            return Ok(());
        };
        let mut buffers = Vec::with_capacity(pages as usize);
        let mut failure = None;
        while buffers.len() < pages as usize && failure.is_none() {
            match self.alloc_object(process, Cache::BufferHead, Gfp::NOFS).await {
                Ok(buffer) => buffers.push(buffer),
                Err(errno) => failure = Some(errno),
            }
        }
        let cpu = self.machine().current_cpu();
        self.mem(|mem| {
            if !bare(mem).is_some_and(|pfn| mem.attach_buffers(pfn, &buffers)) {
                for buffer in buffers {
                    mem.free_object(cpu, buffer);
                }
            }
        });
        failure.map_or(Ok(()), Err)
    }
}
